//! The JSON file of roles: parsing its records with a report on everything that is wrong, and writing them.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use super::{ROOT, Role};
use crate::store::{self, FileFormat, Fs};
use crate::{Error, Result};

/// The largest roles file, in bytes.
pub const ROLES_LIMIT: usize = 16 * 1024 * 1024;

/// The format of roles in a store.
pub const ROLES_FORMAT: FileFormat = FileFormat { name: "toolcrib-roles", version: 1, limit: ROLES_LIMIT };

/// The number of problems in an error message.
const SHOWN_PROBLEMS: usize = 8;

/// The optional fields of a record that must be strings; those of the second list may be null.
const STRINGS: [&str; 3] = ["id", "createdAt", "updatedAt"];
const NULLABLE_STRINGS: [&str; 5] = ["createdBy", "llmServiceId", "deletedAt", "deletedBy", "deleteReason"];

/// A problem with one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleProblem {
    /// The index of the record, from 0.
    pub index: usize,
    /// The field; empty for the whole record.
    pub field: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for RoleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, field, reason } = self;
        let dot = if field.is_empty() { "" } else { "." };
        write!(f, "roles[{index}]{dot}{field}: {reason}")
    }
}

/// The content of a roles file.
#[derive(Debug, Clone, Default)]
pub struct RolesFile {
    pub(super) roles: Vec<Role>,
    pub(super) rest: OtherContent,
    pub(super) problems: Vec<RoleProblem>,
}

/// The content of a roles file other than active roles, to be written again.
#[derive(Debug, Clone, Default)]
pub(super) struct OtherContent {
    /// The records of roles that were deleted.
    deleted: Vec<Value>,
    /// The entries other than `roles`.
    entries: Map<String, Value>,
}

impl RolesFile {
    /// The problems of invalid records.
    #[must_use]
    pub fn problems(&self) -> &[RoleProblem] {
        &self.problems
    }

    /// Loads a file.
    ///
    /// # Errors
    ///
    /// [`Error::RoleFile`] if the file as a whole is invalid, [`Error::MissingFile`], [`Error::FileTooLarge`] and
    /// [`Error::FileAccess`].
    pub fn load<F: Fs>(fs: &F, path: &Path) -> Result<Self> {
        Self::read(Self::json(fs, path)?, path)
    }

    /// The JSON value in a file.
    pub(crate) fn json<F: Fs>(fs: &F, path: &Path) -> Result<Value> {
        let bytes = store::whole(fs, path, ROLES_LIMIT)?;
        serde_json::from_slice(&bytes).map_err(|error| Error::RoleFile {
            path: path.display().to_string(),
            reason: format!("invalid JSON: {error}"),
        })
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// [`Error::RoleFile`] if it is invalid as a whole.
    pub fn read(value: Value, path: &Path) -> Result<Self> {
        parse(value).map_err(|reason| Error::RoleFile { path: path.display().to_string(), reason })
    }

    /// Refuses a file with problems.
    ///
    /// # Errors
    ///
    /// [`Error::RoleFile`] with the invalid records.
    pub fn check(&self, path: &Path) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let shown = self.problems.iter().take(SHOWN_PROBLEMS).map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let more = self.problems.len().saturating_sub(SHOWN_PROBLEMS);
        let reason = if more == 0 { shown } else { format!("{shown}; and {more} more") };
        Err(Error::RoleFile { path: path.display().to_string(), reason })
    }

    /// Replaces the content of a file; a crash leaves the old content or the new one.
    ///
    /// # Errors
    ///
    /// [`Error::FileTooLarge`] and [`Error::FileAccess`].
    pub fn save<F: Fs>(&self, fs: &F, path: &Path) -> Result<()> {
        Self::write(fs, path, &self.value())
    }

    /// Replaces the content of a file by a JSON value.
    pub(crate) fn write<F: Fs>(fs: &F, path: &Path, value: &Value) -> Result<()> {
        let bytes = format!("{value:#}\n").into_bytes();
        if bytes.len() > ROLES_LIMIT {
            return Err(Error::FileTooLarge { path: path.display().to_string(), limit: ROLES_LIMIT });
        }
        store::replace(fs, path, &bytes)
    }

    /// The content as JSON.
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

/// Parses the content of a file; an error is a clause on the file as a whole.
fn parse(value: Value) -> Result<RolesFile, String> {
    let Value::Object(mut entries) = value else { return Err(format!("expected an object, got {}", kind(&value))) };
    let records = match entries.shift_remove("roles") {
        Some(Value::Array(records)) => records,
        Some(other) => return Err(format!("expected a list as `roles`, got {}", kind(&other))),
        None => return Err("missing list `roles`".to_owned()),
    };
    let mut file = RolesFile { rest: OtherContent { deleted: Vec::new(), entries }, ..RolesFile::default() };
    let mut names = HashSet::new();
    for (index, record) in records.into_iter().enumerate() {
        match RoleRecord::parse(record) {
            Ok(RoleRecord::Root) => {}
            Ok(RoleRecord::Deleted(record)) => file.rest.deleted.push(record),
            Ok(RoleRecord::Active(role)) if names.insert(role.name.clone()) => file.roles.push(role),
            Ok(RoleRecord::Active(role)) => {
                let reason = format!("the name `{}` is taken by an earlier record", role.name);
                file.problems.push(RoleProblem { index, field: "name".to_owned(), reason });
            }
            Err((field, reason)) => file.problems.push(RoleProblem { index, field, reason }),
        }
    }
    Ok(file)
}

enum RoleRecord {
    Active(Role),
    Deleted(Value),
    Root,
}

impl RoleRecord {
    /// Parses one record; the error is the field and the reason.
    fn parse(value: Value) -> Result<Self, (String, String)> {
        let wrong = |field: &str, reason: String| (field.to_owned(), reason);
        let Value::Object(mut fields) = value else {
            return Err(wrong("", format!("expected an object, got {}", kind(&value))));
        };
        let mut text = |key: &str, default: Option<&str>| match (fields.shift_remove(key), default) {
            (Some(Value::String(text)), _) => Ok(text),
            (None, Some(default)) => Ok(default.to_owned()),
            (Some(other), _) => Err(wrong(key, format!("expected a string, got {}", kind(&other)))),
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
            _ => Err(wrong("status", format!("expected `active` or `deleted`, got `{}`", short(&status)))),
        }
    }
}

/// True if the fields of a record are those of the root role.
pub(super) fn is_root(details: &Map<String, Value>) -> bool {
    details.get("id").is_some_and(|id| id == ROOT)
}

/// Checks the types of known fields; the error is the field and the reason.
pub(super) fn check_details(details: &Map<String, Value>) -> Result<(), (String, String)> {
    let is_wrong = |(key, value): &(&String, &Value)| {
        let may_be_null = NULLABLE_STRINGS.contains(&key.as_str());
        let is_known = may_be_null || STRINGS.contains(&key.as_str());
        is_known && !value.is_string() && !(may_be_null && value.is_null())
    };
    match details.iter().find(is_wrong) {
        Some((key, value)) => Err((key.clone(), format!("expected a string, got {}", kind(value)))),
        None => Ok(()),
    }
}

fn groups(value: Value) -> Result<Option<Vec<String>>, String> {
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        other => return Err(format!("expected a list of ids or null, got {}", kind(&other))),
    };
    let id = |(index, item)| match item {
        Value::String(id) => Ok(id),
        other => Err(format!("expected an id at {index}, got {}", kind(&other))),
    };
    items.into_iter().enumerate().map(id).collect::<Result<_, _>>().map(Some)
}

/// The beginning of a string that may be long.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
