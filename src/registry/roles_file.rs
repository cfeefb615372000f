//! Roles as JSON: one record for each, read with a word on everything that is wrong.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

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

/// What a file of roles says.
#[derive(Debug, Clone, Default)]
pub struct RolesFile {
    pub(super) roles: Vec<Role>,
    pub(super) rest: Rest,
    pub(super) problems: Vec<Problem>,
}

/// What a file of roles holds that is no role in use, to be written again.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest {
    /// The records of roles that were deleted.
    deleted: Vec<Value>,
    /// The other entries beside the roles.
    entries: Map<String, Value>,
}

impl RolesFile {
    /// The records that are no roles, and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::RoleFile`] if the file as a whole is none, [`Error::MissingFile`], [`Error::FileTooLarge`] and
    /// [`Error::FileAccess`].
    pub fn load<F: Fs>(fs: &F, path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::RoleFile { path: path.display().to_string(), reason };
        let bytes = store::whole(fs, path, ROLES_LIMIT)?;
        let value = serde_json::from_slice(&bytes).map_err(|error| refused(format!("it is not JSON: {error}")))?;
        read(value).map_err(refused)
    }

    /// Refuses a file in which anything is wrong.
    ///
    /// # Errors
    ///
    /// [`Error::RoleFile`] naming the records that are none.
    pub fn check(&self, path: &Path) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let told = self.problems.iter().take(TOLD).map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let more = self.problems.len().saturating_sub(TOLD);
        let reason = if more == 0 { told } else { format!("{told}; and {more} more") };
        Err(Error::RoleFile { path: path.display().to_string(), reason })
    }

    /// Writes it in place of what the file held; a crash leaves the old content or the new one.
    ///
    /// # Errors
    ///
    /// [`Error::FileTooLarge`] and [`Error::FileAccess`].
    pub fn save<F: Fs>(&self, fs: &F, path: &Path) -> Result<()> {
        let bytes = format!("{:#}\n", self.value()).into_bytes();
        if bytes.len() > ROLES_LIMIT {
            return Err(Error::FileTooLarge { path: path.display().to_string(), limit: ROLES_LIMIT });
        }
        store::replace(fs, path, &bytes)
    }

    /// What is written.
    #[must_use]
    pub fn value(&self) -> Value {
        let roles = self.roles.iter().filter(|role| role.name != ROOT).map(record);
        let mut file = Map::new();
        file.insert("roles".to_owned(), roles.chain(self.rest.deleted.iter().cloned()).collect());
        file.extend(self.rest.entries.clone());
        Value::Object(file)
    }
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

/// Reads what a file says; an error is a clause on the file as a whole.
fn read(value: Value) -> Result<RolesFile, String> {
    let Value::Object(mut entries) = value else { return Err(format!("it holds {}, not an object", kind(&value))) };
    let records = match entries.shift_remove("roles") {
        Some(Value::Array(records)) => records,
        Some(other) => return Err(format!("its `roles` is {}, not a list", kind(&other))),
        None => return Err("it has no list `roles`".to_owned()),
    };
    let mut file = RolesFile { rest: Rest { deleted: Vec::new(), entries }, ..RolesFile::default() };
    let mut names = HashSet::new();
    for (index, record) in records.into_iter().enumerate() {
        match Record::read(record) {
            Ok(Record::Root) => {}
            Ok(Record::Deleted(record)) => file.rest.deleted.push(record),
            Ok(Record::Active(role)) if names.insert(role.name.clone()) => file.roles.push(role),
            Ok(Record::Active(role)) => {
                let reason = format!("the name `{}` is that of a record before", role.name);
                file.problems.push(Problem { index, field: "name".to_owned(), reason });
            }
            Err((field, reason)) => file.problems.push(Problem { index, field, reason }),
        }
    }
    Ok(file)
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
        check_details(&fields)?;
        if name == ROOT || is_root(&fields) {
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

/// Whether the rest of a record says that it is the root role's.
pub(super) fn is_root(details: &Map<String, Value>) -> bool {
    details.get("id").is_some_and(|id| id == ROOT)
}

/// Looks at the fields that every reader knows; the error is the field and what is wrong with it.
pub(super) fn check_details(details: &Map<String, Value>) -> Result<(), (String, String)> {
    let is_wrong = |(key, value): &(&String, &Value)| {
        let may_be_null = OPTIONAL.contains(&key.as_str());
        let is_known = may_be_null || TEXTS.contains(&key.as_str());
        is_known && !value.is_string() && !(may_be_null && value.is_null())
    };
    match details.iter().find(is_wrong) {
        Some((key, value)) => Err((key.clone(), format!("expected text, not {}", kind(value)))),
        None => Ok(()),
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
