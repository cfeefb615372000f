//! Roles as JSON: one record for each, read with a word on everything that is wrong.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use super::roles::Rest;
use super::{ROOT, Role};
use crate::store::{self, Fs};
use crate::{Error, Result};

/// The largest size of a file of roles in bytes.
pub const ROLES_LIMIT: usize = 16 * 1024 * 1024;

/// How many problems an error tells.
const TOLD: usize = 8;

/// The fields of a record that hold text if they are there; those of the second list may be null.
const TEXTS: [&str; 3] = ["id", "createdAt", "updatedAt"];
const OPTIONAL: [&str; 5] = ["createdBy", "llmServiceId", "deletedAt", "deletedBy", "deleteReason"];

/// What is wrong with one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which of the records, counted from 0.
    pub index: usize,
    /// The field, or nothing if it is the record as a whole.
    pub field: String,
    /// What was expected and what came.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, field, reason } = self;
        let dot = if field.is_empty() { "" } else { "." };
        write!(f, "roles[{index}]{dot}{field}: {reason}")
    }
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) roles: Vec<Role>,
    pub(super) rest: Rest,
    pub(super) problems: Vec<Problem>,
}

pub(super) fn write<'a>(roles: impl Iterator<Item = &'a Role>, rest: &Rest) -> Value {
    let records = roles.filter(|role| role.name != ROOT).map(record).chain(rest.deleted.iter().cloned()).collect();
    let mut file = Map::new();
    file.insert("roles".to_owned(), Value::Array(records));
    file.extend(rest.entries.clone());
    Value::Object(file)
}

fn record(role: &Role) -> Value {
    let mut details = role.details.clone();
    let mut record = Map::new();
    record.extend(details.shift_remove_entry("id"));
    record.insert("name".to_owned(), role.name.clone().into());
    record.insert("rolePrompt".to_owned(), role.prompt.clone().into());
    record.insert("toolGroups".to_owned(), role.tool_groups.clone().into());
    record.insert("status".to_owned(), "active".into());
    for (key, value) in details {
        record.entry(key).or_insert(value);
    }
    Value::Object(record)
}

pub(super) fn save<F: Fs>(fs: &F, path: &Path, file: &Value) -> Result<()> {
    let bytes = format!("{file:#}\n").into_bytes();
    if bytes.len() > ROLES_LIMIT {
        return Err(Error::FileTooLarge { path: path.display().to_string(), limit: ROLES_LIMIT });
    }
    store::replace(fs, path, &bytes)
}

pub(super) fn load<F: Fs>(fs: &F, path: &Path) -> Result<Document> {
    let refused = |reason: String| Error::RoleFile { path: path.display().to_string(), reason };
    let bytes = store::whole(fs, path, ROLES_LIMIT)?;
    let value = serde_json::from_slice(&bytes).map_err(|error| refused(format!("it is not JSON: {error}")))?;
    read(value).map_err(refused)
}

pub(super) fn refused(path: &Path, problems: &[Problem]) -> Error {
    let mut reason = problems.iter().take(TOLD).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if problems.len() > TOLD {
        reason = format!("{reason}; and {} more", problems.len() - TOLD);
    }
    Error::RoleFile { path: path.display().to_string(), reason }
}

/// Reads what a file says; an error is a clause on the file as a whole.
pub(super) fn read(value: Value) -> Result<Document, String> {
    let Value::Object(mut entries) = value else { return Err(format!("it holds {}, not an object", kind(&value))) };
    let records = match entries.shift_remove("roles") {
        Some(Value::Array(records)) => records,
        Some(other) => return Err(format!("its `roles` is {}, not a list", kind(&other))),
        None => return Err("it has no list `roles`".to_owned()),
    };
    let mut document = Document { rest: Rest { deleted: Vec::new(), entries }, ..Document::default() };
    let mut names = HashSet::new();
    for (index, record) in records.into_iter().enumerate() {
        match Record::read(record) {
            Ok(Record::Root) => {}
            Ok(Record::Deleted(record)) => document.rest.deleted.push(record),
            Ok(Record::Active(role)) if names.insert(role.name.clone()) => document.roles.push(role),
            Ok(Record::Active(role)) => {
                let reason = format!("the name `{}` is that of a record before", role.name);
                document.problems.push(Problem { index, field: "name".to_owned(), reason });
            }
            Err((field, reason)) => document.problems.push(Problem { index, field, reason }),
        }
    }
    Ok(document)
}

enum Record {
    Active(Role),
    Deleted(Value),
    Root,
}

impl Record {
    /// Reads one record; the error is the field and what is wrong with it.
    fn read(value: Value) -> Result<Self, (String, String)> {
        let wrong = |field: &str, reason: String| (field.to_owned(), reason);
        let Value::Object(mut fields) = value else {
            return Err(wrong("", format!("expected an object, not {}", kind(&value))));
        };
        let mut text = |key: &str, default: Option<&str>| match (fields.shift_remove(key), default) {
            (Some(Value::String(text)), _) => Ok(text),
            (None, Some(default)) => Ok(default.to_owned()),
            (Some(other), _) => Err(wrong(key, format!("expected text, not {}", kind(&other)))),
            (None, None) => Err(wrong(key, "it is missing".to_owned())),
        };
        let (name, prompt, status) =
            (text("name", None)?, text("rolePrompt", Some(""))?, text("status", Some("active"))?);
        if name.is_empty() {
            return Err(wrong("name", "it is empty".to_owned()));
        }
        let tool_groups = fields.shift_remove("toolGroups").unwrap_or_default();
        let tool_groups = groups(tool_groups).map_err(|reason| wrong("toolGroups", reason))?;
        for (key, value) in &fields {
            let is_text = TEXTS.contains(&&**key) && !value.is_string();
            let is_optional = OPTIONAL.contains(&&**key) && !value.is_string() && !value.is_null();
            if is_text || is_optional {
                return Err(wrong(key, format!("expected text, not {}", kind(value))));
            }
        }
        if name == ROOT || fields.get("id").is_some_and(|id| id == ROOT) {
            return Ok(Self::Root);
        }
        let role = Role { name, prompt, tool_groups, details: fields };
        match status.as_str() {
            "active" => Ok(Self::Active(role)),
            "deleted" => {
                let mut record = record(&role);
                record["status"] = "deleted".into();
                Ok(Self::Deleted(record))
            }
            _ => Err(wrong("status", format!("expected `active` or `deleted`, not `{}`", short(&status)))),
        }
    }
}

fn groups(value: Value) -> Result<Option<Vec<String>>, String> {
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        other => return Err(format!("expected a list of ids or null, not {}", kind(&other))),
    };
    let id = |(index, item)| match item {
        Value::String(id) => Ok(id),
        other => Err(format!("expected an id at {index}, not {}", kind(&other))),
    };
    items.into_iter().enumerate().map(id).collect::<Result<_, _>>().map(Some)
}

/// The beginning of a text that may be long.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
