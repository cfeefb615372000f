//! Definitions in Markdown files: fields in YAML front matter, and the system prompt below it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::definition::{AgentDefinition, AgentLimits, AgentOutput, AgentParts};
use super::input::{AgentInput, Inputs};
use crate::front_matter;
use crate::near::did_you_mean;
use crate::store::{self, Fs};
use crate::{Error, Result};

/// The largest file, in bytes.
pub const AGENT_FILE_LIMIT: usize = 1024 * 1024;

const FIELDS: [&str; 12] = [
    "name",
    "description",
    "display_name",
    "inputs",
    "query",
    "initial_messages",
    "tools",
    "groups",
    "output",
    "limits",
    "model",
    "lenient",
];

/// A file with its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The file.
    pub path: PathBuf,
    /// The definition in it.
    pub definition: AgentDefinition,
    /// Its inputs, as they are written in the file.
    pub inputs: Inputs,
    /// True if an input of an unknown type is a string.
    pub lenient: bool,
}

impl AgentFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::AgentFile`] with the reason, [`Error::MissingFile`], [`Error::FileTooLarge`] and [`Error::FileAccess`].
    pub fn read<F: Fs>(fs: &F, path: &Path) -> Result<Self> {
        let bytes = store::whole(fs, path, AGENT_FILE_LIMIT)?;
        let refused = |reason: String| Error::AgentFile { path: path.display().to_string(), reason };
        let text = std::str::from_utf8(&bytes).map_err(|_| refused("it is not UTF-8".to_owned()))?;
        let parts = parts_of(text).map_err(refused)?;
        let (inputs, lenient) = (parts.inputs.clone(), parts.lenient);
        let definition = AgentDefinition::new(parts).map_err(|error| match error {
            Error::InvalidAgent { reason, .. } => refused(reason),
            other => refused(other.to_string()),
        })?;
        Ok(Self { path: path.to_owned(), definition, inputs, lenient })
    }
}

/// A file in a folder that has no valid definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// A folder of definitions: every file `*.md` in it, except `README.md` and names that begin with `.` or `_`.
#[derive(Debug, Clone)]
pub struct AgentFolder {
    path: PathBuf,
    files: Vec<AgentFile>,
    problems: Vec<FileProblem>,
}

impl AgentFolder {
    /// Reads a folder. An invalid file is a problem, and the others are read.
    ///
    /// # Errors
    ///
    /// [`Error::MissingFile`] and [`Error::FileAccess`] for the folder itself.
    pub fn read<F: Fs>(fs: &F, path: &Path) -> Result<Self> {
        let mut folder = Self { path: path.to_owned(), files: Vec::new(), problems: Vec::new() };
        folder.reload(fs)?;
        Ok(folder)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files with a valid definition, by file name.
    #[must_use]
    pub fn files(&self) -> &[AgentFile] {
        &self.files
    }

    /// The files without one, by file name.
    #[must_use]
    pub fn problems(&self) -> &[FileProblem] {
        &self.problems
    }

    /// Reads the folder again, and returns the names of the agents that are new, different or gone.
    ///
    /// # Errors
    ///
    /// As [`AgentFolder::read`]; then nothing changes.
    pub fn reload<F: Fs>(&mut self, fs: &F) -> Result<Vec<String>> {
        let mut names = store::retry_interrupted(|| fs.list(&self.path)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::MissingFile { path: self.path.display().to_string() },
            _ => Error::access("read", &self.path, &error),
        })?;
        names.retain(|name| name.to_str().is_none_or(is_definition));
        names.sort();
        let (mut files, mut problems): (Vec<AgentFile>, Vec<FileProblem>) = (Vec::new(), Vec::new());
        for path in names.into_iter().map(|name| self.path.join(name)) {
            match AgentFile::read(fs, &path) {
                Ok(file) => match files.iter().find(|known| known.definition.name() == file.definition.name()) {
                    Some(known) => {
                        let taken = known.path.file_name().unwrap_or_default().to_string_lossy();
                        let reason = format!("the name `{}` is taken by `{taken}`", file.definition.name());
                        problems.push(FileProblem { path, reason });
                    }
                    None => files.push(file),
                },
                Err(Error::AgentFile { reason, .. }) => problems.push(FileProblem { path, reason }),
                Err(error) => problems.push(FileProblem { path, reason: error.to_string() }),
            }
        }
        let old = std::mem::replace(&mut self.files, files);
        self.problems = problems;
        Ok(changed(&old, &self.files))
    }
}

/// The names of the agents that differ, those that are gone last.
fn changed(old: &[AgentFile], new: &[AgentFile]) -> Vec<String> {
    let find = |files: &'_ [AgentFile], name: &str| files.iter().position(|file| file.definition.name() == name);
    let differs =
        |file: &&AgentFile| find(old, file.definition.name()).is_none_or(|at| old[at].definition != file.definition);
    let gone = |file: &&AgentFile| find(new, file.definition.name()).is_none();
    let names = new.iter().filter(differs).chain(old.iter().filter(gone));
    names.map(|file| file.definition.name().to_owned()).collect()
}

/// True for the name of a file that holds a definition. A name that is not UTF-8 is one too, and is reported when it is read.
fn is_definition(name: &str) -> bool {
    let is_markdown = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    is_markdown && !name.starts_with(['.', '_']) && !name.eq_ignore_ascii_case("README.md")
}

/// Parses a file; the error is a clause on what is wrong with it.
fn parts_of(text: &str) -> Result<AgentParts, String> {
    let matter = front_matter::find(text.as_bytes(), usize::MAX)?;
    let mut fields = match matter.parse()?.json()? {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => return Err("expected a mapping as front matter".to_owned()),
    };
    refuse_unknown("", &fields, &FIELDS)?;
    let body = matter.body.trim();
    let mut text = |key: &str| take(&mut fields, key).map(|value| text_of(key, value)).transpose();
    let (name, description) = (text("name")?.unwrap_or_default(), text("description")?.unwrap_or_default());
    let (display_name, query, model) = (text("display_name")?, text("query")?, text("model")?);
    let mut list = |key: &str| take(&mut fields, key).map_or_else(|| Ok(Vec::new()), |value| names_of(key, value));
    let (tools, groups) = (list("tools")?, list("groups")?);
    let initial_messages = match take(&mut fields, "initial_messages") {
        None => Vec::new(),
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(format!("`initial_messages`: expected a list, got {}", kind(&other))),
    };
    let lenient = match take(&mut fields, "lenient") {
        None => false,
        Some(Value::Bool(flag)) => flag,
        Some(other) => return Err(format!("`lenient`: expected a boolean, got {}", kind(&other))),
    };
    Ok(AgentParts {
        name,
        description,
        display_name,
        inputs: take(&mut fields, "inputs").map_or_else(|| Ok(Inputs::default()), inputs_of)?,
        system_prompt: (!body.is_empty()).then(|| body.to_owned()),
        query,
        initial_messages,
        tools,
        groups,
        output: take(&mut fields, "output").map(output_of).transpose()?,
        limits: take(&mut fields, "limits").map_or_else(|| Ok(AgentLimits::default()), limits_of)?,
        model,
        lenient,
    })
}

/// Takes a field out of a mapping; null is the same as none.
fn take(fields: &mut Map<String, Value>, key: &str) -> Option<Value> {
    fields.shift_remove(key).filter(|value| !value.is_null())
}

fn text_of(key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        other => Err(format!("`{key}`: expected text, got {}", kind(&other))),
    }
}

/// A list of names, or names with commas between them.
fn names_of(key: &str, value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(items) => items.into_iter().map(|item| text_of(key, item)).collect(),
        other => {
            let text = text_of(key, other)?;
            Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
        }
    }
}

fn mapping(key: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(entries) => Ok(entries),
        other => Err(format!("`{key}`: expected a mapping, got {}", kind(&other))),
    }
}

fn inputs_of(value: Value) -> Result<Inputs, String> {
    let entries = mapping("inputs", value)?;
    if entries.get("type").is_some_and(|kind| kind == "object") {
        return Ok(Inputs::Schema(Value::Object(entries)));
    }
    let input = |(name, value): (String, Value)| {
        let key = format!("inputs.{name}");
        let mut fields = mapping(&key, value)?;
        refuse_unknown(&key, &fields, &["type", "description", "required"])?;
        let mut text =
            |field: &str| take(&mut fields, field).map(|value| text_of(&format!("{key}.{field}"), value)).transpose();
        let kind_name = text("type")?.ok_or_else(|| format!("`{key}`: missing `type`"))?;
        let description = text("description")?.unwrap_or_default();
        let required = match take(&mut fields, "required") {
            None => true,
            Some(Value::Bool(flag)) => flag,
            Some(other) => return Err(format!("`{key}.required`: expected a boolean, got {}", kind(&other))),
        };
        Ok((name, AgentInput { kind: kind_name, description, required }))
    };
    Ok(Inputs::Declared(entries.into_iter().map(input).collect::<Result<IndexMap<_, _>, String>>()?))
}

fn output_of(value: Value) -> Result<AgentOutput, String> {
    let mut fields = mapping("output", value)?;
    refuse_unknown("output", &fields, &["name", "description", "schema"])?;
    let mut text = |key: &str| take(&mut fields, key).map_or_else(|| Ok(String::new()), |value| text_of(key, value));
    let (name, description) = (text("name")?, text("description")?);
    let schema = take(&mut fields, "schema").ok_or("`output`: missing `schema`")?;
    Ok(AgentOutput { name, description, schema: Value::Object(mapping("output.schema", schema)?) })
}

fn limits_of(value: Value) -> Result<AgentLimits, String> {
    let fields = mapping("limits", value)?;
    refuse_unknown("limits", &fields, &["turns", "time", "tokens"])?;
    let mut limits = AgentLimits::default();
    let integer = |key: &str, value: &Value| match value {
        Value::Null => Ok(None),
        other => {
            other.as_u64().map(Some).ok_or_else(|| format!("`limits.{key}`: expected an integer >= 1, got {other}"))
        }
    };
    if let Some(value) = fields.get("turns") {
        let too_many = |_| format!("`limits.turns`: expected an integer <= {}, got {value}", u32::MAX);
        limits.turns = integer("turns", value)?.map(u32::try_from).transpose().map_err(too_many)?;
    }
    if let Some(value) = fields.get("tokens") {
        limits.tokens = integer("tokens", value)?;
    }
    match fields.get("time") {
        None => {}
        Some(Value::Null) => limits.time = None,
        Some(value) => {
            let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let refused = || format!("`limits.time`: expected a number of seconds > 0, got {value}");
            limits.time = Some(seconds.ok_or_else(refused)?);
        }
    }
    Ok(limits)
}

fn refuse_unknown(place: &str, fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let place = if place.is_empty() { String::new() } else { format!("`{place}`: ") };
    match did_you_mean(key, known.iter().copied()) {
        hint if hint.is_empty() => Err(format!("{place}unknown field `{key}`: expected {}", known.join(", "))),
        hint => Err(format!("{place}unknown field `{key}`{hint}")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
