//! The lock file: the definitions of tools as a person has reviewed them, and what has changed since.
//!
//! The file is JSON, sorted, with one readable block for each tool, to be committed and reviewed beside the code that uses the
//! tools. Each block has the digest of its definition, so that an edit by hand, or a bad merge, is noticed. The digest is not
//! a signature: a program that can write the file can replace both.
//!
//! Read in this order:
//!
//! 1. this file: [`Lock`], reading and writing;
//! 2. `change`: [`compare`], the changes of tools and their classes; `render` writes them as text;
//! 3. `schema`: the comparison of two JSON Schemas by the values that they accept; `effect` has that of single keywords,
//!    `vocabulary` what is to be known of all of them.

mod change;
mod effect;
mod render;
mod schema;
mod vocabulary;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};

pub use change::{Change, ChangeClass, Difference, compare};
pub use render::render;

use super::Definition;
use crate::json::parse::parse;
use crate::store::{Fs, replace, whole};
use crate::{Error, Result};

/// The name of the format, the first entry of the file.
const FORMAT: &str = "toolcrib-lock";
/// The version that is written, and the newest that can be read.
const VERSION: u64 = 1;
/// The largest file, in bytes.
const LIMIT: usize = 64 * 1024 * 1024;

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The program itself.
    Local,
    /// An MCP server, by the name of the client.
    Mcp(String),
}

impl Source {
    /// Parses `local` or `mcp:<client>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "local" => Some(Self::Local),
            _ => text.strip_prefix("mcp:").map(|client| Self::Mcp(client.to_owned())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => formatter.write_str("local"),
            Self::Mcp(client) => write!(formatter, "mcp:{client}"),
        }
    }
}

/// A tool in a lock.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedTool {
    /// Where it comes from.
    pub source: Source,
    /// Its definition, under the name by which the toolkit has it.
    pub definition: Definition,
}

impl LockedTool {
    /// The name by which the toolkit has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}

/// The definitions of the tools of a toolkit, by name: as they were reviewed, or as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lock {
    tools: BTreeMap<String, LockedTool>,
}

impl FromIterator<LockedTool> for Lock {
    fn from_iter<T: IntoIterator<Item = LockedTool>>(tools: T) -> Self {
        Self { tools: tools.into_iter().map(|tool| (tool.name().to_owned(), tool)).collect() }
    }
}

impl Lock {
    /// The tools, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = &LockedTool> {
        self.tools.values()
    }

    /// Finds a tool by its exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&LockedTool> {
        self.tools.get(name)
    }

    /// Reads a lock file.
    ///
    /// # Errors
    ///
    /// One for each reason: a file that is missing, foreign, damaged, edited without its digests, too large, or written by a newer
    /// version.
    pub fn load<F: Fs>(fs: &F, path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        let damaged = |reason: String| Error::DamagedFile { path: shown(), reason };
        let bytes = whole(fs, path, LIMIT)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not text".to_owned()))?;
        if text.trim().is_empty() {
            return Err(damaged("it is empty".to_owned()));
        }
        let (file, has_duplicates) = parse(text).map_err(|error| damaged(error.to_string()))?;
        if file.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(Error::ForeignFile { path: shown(), format: FORMAT });
        }
        let version = file.get("version").and_then(Value::as_u64).filter(|version| *version > 0);
        let version = version.ok_or_else(|| damaged("missing `version`".to_owned()))?;
        if version > VERSION {
            return Err(Error::NewerFile { path: shown(), version, known: VERSION });
        }
        if has_duplicates {
            return Err(damaged("an object has a key twice".to_owned()));
        }
        Self::read(&file).map_err(damaged)
    }

    /// Writes the lock file, replacing it in one step.
    ///
    /// # Errors
    ///
    /// [`Error::FileTooLarge`] and [`Error::InvalidSchema`] if it could not be loaded again, and [`Error::FileAccess`] if the
    /// system refuses.
    pub fn save<F: Fs>(&self, fs: &F, path: &Path) -> Result<()> {
        let text = self.to_text();
        if parse(&text).is_err() {
            return Err(Error::InvalidSchema { reason: "It is nested too deep for a lock file.".to_owned() });
        }
        if text.len() > LIMIT {
            return Err(Error::FileTooLarge { path: path.display().to_string(), limit: LIMIT });
        }
        replace(fs, path, text.as_bytes())
    }

    fn read(file: &Value) -> Result<Self, String> {
        let Some(entries) = file.as_object() else { return Err("it is not an object".to_owned()) };
        let unknown = entries.keys().find(|key| !["format", "version", "tools"].contains(&key.as_str()));
        if let Some(key) = unknown {
            return Err(format!("unknown entry `{key}`"));
        }
        let Some(Value::Array(tools)) = entries.get("tools") else { return Err("missing list `tools`".to_owned()) };
        let mut lock = Self::default();
        for tool in tools {
            let tool = read_tool(tool)?;
            let name = tool.name().to_owned();
            if lock.tools.insert(name.clone(), tool).is_some() {
                return Err(format!("tool `{name}` is listed twice"));
            }
        }
        Ok(lock)
    }

    /// The text of the file: sorted, so that equal tools give equal files.
    fn to_text(&self) -> String {
        let file =
            json!({"format": FORMAT, "version": VERSION, "tools": self.tools().map(write_tool).collect::<Vec<_>>()});
        format!("{file:#}\n")
    }
}

/// The fields of a tool beside those of its definition.
const OWN: [&str; 2] = ["source", "digest"];
/// The fields of a definition.
const DEFINED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

fn read_tool(tool: &Value) -> Result<LockedTool, String> {
    let definition = Definition::read(tool).map_err(|error| format!("invalid tool: {error}"))?;
    let (name, text) = (&definition.name, |key: &str| tool.get(key).and_then(Value::as_str));
    let mut keys = tool.as_object().into_iter().flat_map(Map::keys);
    if let Some(key) = keys.find(|key| !OWN.contains(&key.as_str()) && !DEFINED.contains(&key.as_str())) {
        return Err(format!("unknown entry `{key}` of tool `{name}`"));
    }
    let source = text("source").and_then(Source::parse);
    let source =
        source.ok_or_else(|| format!("invalid `source` of tool `{name}`: expected `local` or `mcp:<client>`"))?;
    if text("digest") != Some(&definition.digest().to_string()) {
        return Err(format!(
            "the digest of tool `{name}` does not match its definition: review the tool and lock it again"
        ));
    }
    Ok(LockedTool { source, definition })
}

fn write_tool(tool: &LockedTool) -> Value {
    let mut block = Map::new();
    block.insert("name".to_owned(), tool.name().into());
    block.insert("source".to_owned(), tool.source.to_string().into());
    block.insert("digest".to_owned(), tool.definition.digest().to_string().into());
    let mut definition = tool.definition.to_value();
    for key in &DEFINED[1..] {
        if let Some(value) = definition.get_mut(*key) {
            let mut value = value.take();
            value.sort_all_objects();
            block.insert((*key).to_owned(), value);
        }
    }
    Value::Object(block)
}
