//! Writes rules as TOML, and appends them to policy files.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Document, Fault, LIMIT, NOT_TABLES, invalid, parse, text};
use crate::bytes::hex;
use crate::policy::argument::is_same;
use crate::policy::{Rule, hash};
use crate::store::{self, Fs};
use crate::{Error, Result};

impl Rule {
    /// The rule as a `[[rule]]` table, without its tier.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRule`] if a condition has a value that TOML cannot express, such as `null`.
    pub fn to_toml(&self) -> Result<String> {
        let mut lines = vec!["[[rule]]".to_owned()];
        for (key, value) in self.written() {
            let value = toml_value(&value).map_err(|reason| invalid(&self.id, &[Fault::at(&key, reason)]))?;
            lines.push(format!("{key} = {value}"));
        }
        Ok(lines.join("\n") + "\n")
    }

    /// True if both rules are equal apart from their ids.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.tier == other.tier && is_same(&self.content(), &other.content())
    }

    /// The fields of the rule apart from its id and tier.
    pub(crate) fn content(&self) -> Value {
        without_id(&Value::Object(self.written()))
    }

    /// An id that depends only on the content of the rule, so that a file never has the same rule twice.
    pub(in crate::policy) fn content_id(&self) -> String {
        let hash = hex(&hash(&Value::Object(self.written())));
        format!("{}-{}", self.tier, &hash[..16])
    }

    /// The fields as they are written to a file.
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

/// Appends a rule to a policy file, which is created if it does not exist; false if the file already has an equal rule.
///
/// The rest of the file does not change. The file is replaced in one step, after the new content has been parsed again.
///
/// # Errors
///
/// [`Error::InvalidRule`] if TOML cannot express the rule, [`Error::InvalidPolicyFile`] if the file is not a valid policy file or
/// a rule cannot be appended to it, and the errors of reading and replacing a file. Then the file is unchanged.
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
    let after = rules_of(&whole).map_err(|reason| refused(format!("cannot append a rule: {reason}")))?;
    let is_right = after.split_last().is_some_and(|(last, rest)| {
        let is_readable = last.as_object().is_some_and(|fields| parse::rule(fields, false).rule.is_ok());
        rest == before && is_same(last, &Value::Object(new)) && is_readable
    });
    if !is_right {
        return Err(refused("a rule at its end would be parsed as something else".to_owned()));
    }
    store::replace(fs, path, whole.as_bytes())?;
    Ok(true)
}

/// The fields of all rules in a text.
fn rules_of(text: &str) -> Result<Vec<Value>, String> {
    let document = Document::parse(text).map_err(|(line, reason)| match line {
        Some(line) => format!("line {line}: {reason}"),
        None => reason,
    })?;
    let entries = document.entries().map_err(|line| format!("line {line}: {NOT_TABLES}"))?;
    Ok(entries.into_iter().map(|entry| entry.fields.map_or(Value::Null, Value::Object)).collect())
}

fn without_id(rule: &Value) -> Value {
    let mut rule = rule.clone();
    if let Value::Object(fields) = &mut rule {
        fields.shift_remove("id");
    }
    rule
}

/// The value as TOML on one line. Numbers keep their digits: two texts of one float may be different decimals.
fn toml_value(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no `null`: write `{ type = \"null\" }`".to_owned()),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => toml_text(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let entry = |(key, value): (&String, &Value)| Ok(format!("{} = {}", toml_text(key), toml_value(value)?));
            let entries: Vec<String> = fields.iter().map(entry).collect::<Result<_, String>>()?;
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Number(number) => {
            let digits = number.as_str();
            let is_float = digits.contains(['.', 'e', 'E']) && number.as_f64().is_some_and(f64::is_finite);
            if !is_float && number.as_i64().is_none() {
                return Err(format!("TOML cannot express the number {digits}"));
            }
            digits.to_owned()
        }
    })
}

/// A basic string, also as a key: JSON's escapes are TOML's, which wants one more character escaped.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
