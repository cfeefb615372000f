//! Writing rules into files.

use std::path::Path;

use serde_json::{Map, Value};

use super::condition::is_same;
use super::file::{LIMIT, text};
use super::read;
use super::rule::invalid;
use super::toml::Document;
use super::{Rule, fault::Fault, hash, hex};
use crate::json::number::Decimal;
use crate::store::{self, Fs};
use crate::{Error, Result};

impl Rule {
    /// Writes it as a table of a file of rules, without its tier.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRule`] if a condition has a value that TOML has no word for, such as `null`.
    pub fn to_toml(&self) -> Result<String> {
        let mut lines = vec!["[[rule]]".to_owned()];
        for (key, value) in self.written() {
            let value = toml_value(&value).map_err(|reason| invalid(&self.id, &[Fault::at(&key, reason)]))?;
            lines.push(format!("{key} = {value}"));
        }
        Ok(lines.join("\n") + "\n")
    }

    /// Whether both do the same in the same tier, whatever they are called.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.tier == other.tier && is_same(&self.said(), &other.said())
    }

    /// What it says, whatever it is called.
    pub(super) fn said(&self) -> Value {
        without_id(&Value::Object(self.written()))
    }

    /// An id that this rule gets wherever it is made, so that a file of such rules never has one twice.
    pub(super) fn lasting_id(&self) -> String {
        let hash = hex(&hash(&Value::Object(self.written())));
        format!("{}-{}", self.tier, &hash[..16])
    }

    /// The fields as a file has them.
    fn written(&self) -> Map<String, Value> {
        match self.to_value() {
            Value::Object(mut fields) => {
                fields.shift_remove("tier");
                fields
            }
            _ => Map::new(),
        }
    }
}

/// Adds a rule to the end of a file of rules, which is made if there is none; false if it already has such a rule.
///
/// What is in the file stays as it is. The file is replaced in one step, after what will be in it has been read back.
///
/// # Errors
///
/// [`Error::InvalidRule`] if the rule cannot be written, [`Error::InvalidPolicyFile`] if the file is no file of rules, or
/// cannot be added to, and what reading and replacing a file can fail with. Then the file is what it was.
pub fn append<F: Fs>(fs: &F, path: &Path, rule: &Rule) -> Result<bool> {
    let refused = |reason: String| Error::InvalidPolicyFile { path: path.display().to_string(), reason };
    let old = match text(fs, path) {
        Ok(text) => text,
        Err(Error::MissingFile { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let before = rules_of(&old).map_err(refused)?;
    let new = rule.written();
    if before.iter().any(|known| is_same(&without_id(known), &without_id(&Value::Object(new.clone())))) {
        return Ok(false);
    }
    let ends = if old.is_empty() || old.ends_with("\n\n") {
        ""
    } else if old.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let whole = [&old, ends, &rule.to_toml()?].concat();
    if whole.len() > LIMIT {
        return Err(Error::FileTooLarge { path: path.display().to_string(), limit: LIMIT });
    }
    let after = rules_of(&whole).map_err(|reason| refused(format!("a rule cannot be added at its end: {reason}")))?;
    let is_right = after.split_last().is_some_and(|(last, rest)| {
        let is_readable = last.as_object().is_some_and(|fields| read::rule(fields, false).rule.is_ok());
        rest == before && is_same(last, &Value::Object(new)) && is_readable
    });
    if !is_right {
        return Err(refused("a rule at its end would be read as something else".to_owned()));
    }
    store::replace(fs, path, whole.as_bytes())?;
    Ok(true)
}

/// The rules of a text, as they stand there.
fn rules_of(text: &str) -> Result<Vec<Value>, String> {
    let document = Document::parse(text).map_err(|(line, reason)| match line {
        Some(line) => format!("line {line}: {reason}"),
        None => reason,
    })?;
    let entries = document.entries().map_err(|line| format!("line {line}: `rule` is no list of tables"))?;
    Ok(entries.into_iter().map(|entry| entry.fields.map_or(Value::Null, Value::Object)).collect())
}

fn without_id(rule: &Value) -> Value {
    let mut rule = rule.clone();
    if let Value::Object(fields) = &mut rule {
        fields.shift_remove("id");
    }
    rule
}

fn toml_value(value: &Value) -> Result<toml::Value, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no `null`: write `{ type = \"null\" }`".to_owned()),
        Value::Bool(flag) => (*flag).into(),
        Value::String(text) => text.clone().into(),
        Value::Array(items) => toml::Value::Array(items.iter().map(toml_value).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let entry = |(key, value): (&String, &Value)| Ok::<_, String>((key.clone(), toml_value(value)?));
            toml::Value::Table(fields.iter().map(entry).collect::<Result<_, _>>()?)
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) if is_exactly(float, number) => float.into(),
            _ => return Err(format!("TOML has no number such as {number}")),
        },
    })
}

fn is_exactly(float: f64, number: &serde_json::Number) -> bool {
    serde_json::Number::from_f64(float).is_some_and(|float| Decimal::of(&float) == Decimal::of(number))
}
