//! Files of rules as data: what they say, and in which line.

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::fault::Fault;

/// A file of rules that is well-formed TOML.
pub(super) struct Document<'t> {
    text: &'t str,
    table: DeTable<'t>,
}

/// A rule of a file, as it stands there.
pub(super) struct Entry {
    /// Which rule of the file it is, from 1.
    pub(super) index: usize,
    /// The line that it begins in.
    pub(super) line: usize,
    /// Its fields; nothing if it is no table.
    pub(super) fields: Option<Map<String, Value>>,
    /// What JSON has no word for, and is `null` among the fields.
    pub(super) faults: Vec<Fault>,
}

impl<'t> Document<'t> {
    /// Reads a file; the error has the line and what is wrong there.
    pub(super) fn parse(text: &'t str) -> Result<Self, (Option<usize>, String)> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { text, table: table.into_inner() }),
            Err(error) => {
                let line = error.span().map(|span| line_of(text, span.start));
                Err((line, format!("it is no TOML: {}", error.message().replace('\n', ", "))))
            }
        }
    }

    /// The keys beside `rule`, with their lines.
    pub(super) fn other_keys(&self) -> Vec<(&str, usize)> {
        let others = self.table.keys().filter(|key| key.get_ref() != "rule");
        others.map(|key| (key.get_ref().as_ref(), line_of(self.text, key.span().start))).collect()
    }

    /// The rules; nothing if `rule` is no list, with the line that it is in.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, usize> {
        let Some(value) = self.table.get("rule") else { return Ok(Vec::new()) };
        let DeValue::Array(rules) = value.get_ref() else { return Err(line_of(self.text, value.span().start)) };
        let entry = |(index, rule): (usize, &toml::Spanned<DeValue<'_>>)| {
            let mut faults = Vec::new();
            let fields = match json(rule.get_ref(), &mut Vec::new(), &mut faults) {
                Value::Object(fields) => Some(fields),
                _ => None,
            };
            Entry { index, line: line_of(self.text, rule.span().start), fields, faults }
        };
        Ok((1..).zip(rules.iter()).map(entry).collect())
    }

    /// The line of a field of a rule, or of as much of the way there as there is.
    pub(super) fn line(&self, index: usize, field: &[String]) -> Option<usize> {
        let rules = self.table.get("rule")?.get_ref().as_array()?;
        let rule = rules.get(index.checked_sub(1)?)?;
        let (mut table, mut at) = (rule.get_ref().as_table(), rule.span().start);
        for key in field {
            let Some((key, value)) = table.and_then(|table| table.get_key_value(key.as_str())) else { break };
            at = key.span().start;
            table = value.get_ref().as_table();
        }
        Some(line_of(self.text, at))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The value as JSON; what JSON has no word for is `null` and a fault.
fn json(value: &DeValue<'_>, way: &mut Vec<String>, faults: &mut Vec<Fault>) -> Value {
    let number = match value {
        DeValue::String(text) => return Value::String(text.clone().into_owned()),
        DeValue::Boolean(flag) => return Value::Bool(*flag),
        DeValue::Array(items) => return items.iter().map(|item| json(item.get_ref(), way, faults)).collect(),
        DeValue::Table(table) => {
            let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                way.push(key.clone().into_owned());
                let value = json(value.get_ref(), way, faults);
                way.pop();
                (key.clone().into_owned(), value)
            };
            return Value::Object(table.iter().map(entry).collect());
        }
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().trim_start_matches('+').to_owned()),
        DeValue::Datetime(_) => None,
    };
    if let Some(number) = number.and_then(|number| serde_json::from_str(&number).ok()) {
        return Value::Number(number);
    }
    let reason = format!("a {} like this has no place in JSON", value.type_str());
    faults.push(Fault { field: way.clone(), ..Fault::whole(reason) }.suggest("write a string or a number"));
    Value::Null
}
