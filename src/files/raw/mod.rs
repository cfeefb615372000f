//! The tools for paths of the operating system: AgentScope's `view_text_file`, `write_text_file` and `insert_text_file`.
//!
//! They have no roots and no grants. `guard` reads from the environment, at every call, whether they may run at all; `lines` has
//! the texts. Files are changed in place, as other programs do: links are followed, and the file keeps its owner, its
//! permissions and its hard links. Only regular files are opened.

mod guard;
mod lines;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::guard::GuardedCall;
pub use self::guard::TextIo;
use super::tools::blocking;
use crate::call::{Code, ToolResponse};
use crate::native::{NativeTool, ToolContext};
use crate::policy::ToolKind;

/// The longest text of a reply, in bytes; a longer one is truncated.
const MAX_REPLY: usize = 256 * 1024;
/// The largest file that is changed by lines, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The three tools.
#[must_use]
pub fn tools() -> [NativeTool; 3] {
    [view_text_file(), write_text_file(), insert_text_file()]
}

/// The text of a result, or of a mistake.
type Outcome = Result<String, String>;

/// Makes a guarded tool.
fn tool<P>(name: &'static str, kind: ToolKind, description: &str, run: fn(&P, &Path) -> Outcome) -> NativeTool
where
    P: JsonSchema + DeserializeOwned + HasPath + Send + 'static,
{
    let prepare = || (TextIo::current(), std::env::home_dir());
    let body = move |context: ToolContext, (decision, home): (TextIo, Option<PathBuf>), parameters: P| async move {
        let call = GuardedCall { decision, tool: name, path: parameters.path().to_owned() };
        if let Some(warning) = call.warning() {
            context.warn(warning);
        }
        if decision == TextIo::Deny {
            return Ok(call.blocked());
        }
        let path = expanded(&call.path, home.as_deref());
        Ok(match blocking(move || run(&parameters, &path)).await {
            Ok(text) => call.response(text),
            Err(text) => ToolResponse { code: Some(Code::Failed), ..call.response(text) },
        })
    };
    NativeTool::prepared(name, description, prepare, body).with_kind(kind)
}

/// The parameters of a raw tool.
trait HasPath {
    fn path(&self) -> &str;
}

/// The path with `~` at its beginning replaced by the home directory.
fn expanded(path: &str, home: Option<&Path>) -> PathBuf {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, home) {
        (Some(rest), Some(home)) => {
            let mut expanded = home.as_os_str().to_owned();
            expanded.push(rest);
            expanded.into()
        }
        _ => path.into(),
    }
}

/// The range of lines that a model gives: two integers, or anything else, which is then an error of the tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
struct Ranges(Value);

impl JsonSchema for Ranges {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ranges".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "integer"}})
    }
}

impl Ranges {
    fn is_empty(&self) -> bool {
        self.0.as_array().is_some_and(Vec::is_empty)
    }

    /// The two integers.
    fn bounds(&self) -> Option<(i64, i64)> {
        match self.0.as_array()?.as_slice() {
            [first, last] => Some((first.as_i64()?, last.as_i64()?)),
            _ => None,
        }
    }

    /// The numbers of the first and the last line in a text of `count` lines, where negative ones count from the end; zero is
    /// no line.
    fn resolve((first, last): (i64, i64), count: u64) -> (u64, u64) {
        let from_end = |number: i64| (count + 1).saturating_sub(number.unsigned_abs());
        let first = if first < 0 { from_end(first).max(1) } else { first.unsigned_abs() };
        let last = if last < 0 { from_end(last) } else { last.unsigned_abs() };
        (first, last)
    }

    /// The range as Python prints it.
    fn printed(&self) -> String {
        printed(&self.0)
    }
}

/// A JSON value as Python prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let escaped = text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
            let escaped = if quote == '\'' { escaped.replace('\'', "\\'") } else { escaped };
            format!("{quote}{escaped}{quote}")
        }
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", printed(&key.clone().into()), printed(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

fn backwards(ranges: &Ranges) -> String {
    let ranges = ranges.printed();
    format!("InvalidArgumentError: The start line is greater than the end line in the given range {ranges}.")
}

fn not_a_file(path: &Path) -> String {
    format!("Error: The path {} is not a file.", path.display())
}

fn failed<'a>(doing: &'a str, path: &'a Path) -> impl Fn(io::Error) -> String + 'a {
    move |error| {
        let mut reason = error.to_string();
        reason.truncate(reason.find(" (os error ").unwrap_or(reason.len()));
        format!("Error: cannot {doing} {}: {reason}", path.display())
    }
}

/// True if there is a file of any kind at the path; links are followed.
fn exists(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(_) => true,
        // A name with a zero byte is that of no file.
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput),
    }
}

/// Opens a regular file, without waiting for the other end of a pipe. With `is_written` set, it is created if it does not exist.
fn open(path: &Path, is_written: bool) -> Result<File, String> {
    let doing = if is_written { "write" } else { "read" };
    let mut options = OpenOptions::new();
    options.read(!is_written).write(is_written).create(is_written).truncate(false);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.raw_os_error(), Some(libc::EISDIR | libc::ENXIO)) => return Err(not_a_file(path)),
        Err(error) => return Err(failed(doing, path)(error)),
    };
    let metadata = file.metadata().map_err(failed(doing, path))?;
    if metadata.is_file() { Ok(file) } else { Err(not_a_file(path)) }
}

fn overwrite(path: &Path, content: &[u8]) -> Result<(), String> {
    let mut file = open(path, true)?;
    let written = file.set_len(0).and_then(|()| file.write_all(content));
    written.map_err(failed("write", path))
}

/// Reads a file that is to be changed by lines.
fn whole(path: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = open(path, false)?.take(MAX_FILE + 1).read_to_end(&mut content).map_err(failed("read", path))?;
    if read as u64 > MAX_FILE {
        return Err(format!("Error: The file {} is larger than {MAX_FILE} bytes.", path.display()));
    }
    Ok(content)
}

#[derive(Deserialize, JsonSchema)]
struct ViewTextFile {
    /// The path of the file; `~` is the home directory.
    file_path: String,
    /// The first and the last line to view, for example [1, 100]. Negative numbers count from the end: [-100, -1] are the last
    /// 100 lines. Without it the whole file is returned.
    #[serde(default)]
    ranges: Option<Ranges>,
}

impl HasPath for ViewTextFile {
    fn path(&self) -> &str {
        &self.file_path
    }
}

/// A tool that shows a text file with line numbers.
#[must_use]
pub fn view_text_file() -> NativeTool {
    let description = "View a text file with line numbers, or some of its lines.";
    tool("view_text_file", ToolKind::Read, description, view)
}

fn view(wanted: &ViewTextFile, path: &Path) -> Outcome {
    let shown = path.display();
    if !exists(path) {
        return Err(format!("Error: The file {shown} does not exist."));
    }
    let mut file = open(path, false)?;
    let (mut first, mut last) = (1, u64::MAX);
    if let Some(ranges) = wanted.ranges.as_ref().filter(|ranges| !ranges.is_empty()) {
        let Some(bounds) = ranges.bounds() else {
            let ranges = ranges.printed();
            let expected = "Expected a list of two integers";
            return Err(format!("InvalidArgumentError: Invalid range format. {expected}, but got {ranges}."));
        };
        let count = lines::count(BufReader::new(&file)).and_then(|count| file.rewind().map(|()| count));
        let count = count.map_err(failed("read", path))?;
        (first, last) = Ranges::resolve(bounds, count);
        if first > last && first <= count {
            return Err(backwards(ranges));
        }
        if first == 0 || first > count {
            // AgentScope compares the two numbers before it reads the file.
            if bounds.0 > bounds.1 {
                return Err(backwards(ranges));
            }
            let range = ranges.printed();
            return Err(format!(
                "InvalidArgumentError: The range '{range}' is out of bounds for the file '{shown}', which has only {count} lines."
            ));
        }
    }
    let (text, is_cut) =
        lines::read_numbered(BufReader::new(&file), first, last, MAX_REPLY).map_err(failed("read", path))?;
    let lines = wanted.ranges.as_ref().map(|ranges| format!(" in {} lines", ranges.printed())).unwrap_or_default();
    let note = if is_cut { "\n[truncated: view the rest with `ranges`]" } else { "" };
    Ok(format!("The content of {shown}{lines}:\n```\n{text}```{note}"))
}

#[derive(Deserialize, JsonSchema)]
struct WriteTextFile {
    /// The path of the file; `~` is the home directory.
    file_path: String,
    /// The content to write.
    content: String,
    /// The first and the last line to replace, for example [3, 5]. Without it the whole file is overwritten.
    #[serde(default)]
    ranges: Option<Ranges>,
}

impl HasPath for WriteTextFile {
    fn path(&self) -> &str {
        &self.file_path
    }
}

/// A tool that creates or overwrites a text file, or replaces some of its lines.
#[must_use]
pub fn write_text_file() -> NativeTool {
    let description = "Create a text file, overwrite it, or replace some of its lines.";
    tool("write_text_file", ToolKind::Edit, description, write)
}

fn write(wanted: &WriteTextFile, path: &Path) -> Outcome {
    let shown = path.display();
    let content = wanted.content.as_bytes();
    if !exists(path) {
        overwrite(path, content)?;
        let ignored = wanted
            .ranges
            .as_ref()
            .filter(|ranges| !ranges.is_empty())
            .map(|ranges| format!(" The ranges {} is ignored because the file does not exist.", ranges.printed()));
        return Ok(format!("Create and write {shown} successfully.{}", ignored.unwrap_or_default()));
    }
    let Some(ranges) = &wanted.ranges else {
        overwrite(path, content)?;
        return Ok(format!("Overwrite {shown} successfully."));
    };
    let Some(bounds) = ranges.bounds() else {
        let ranges = ranges.printed();
        return Err(format!("Error: Invalid range format. Expected a list of two integers, but got {ranges}."));
    };
    let old = whole(path)?;
    let old = lines::split(&old);
    let (first, last) = Ranges::resolve(bounds, old.len() as u64);
    if first == 0 || first > old.len() as u64 {
        let (start, count) = (bounds.0, old.len());
        return Err(format!("Error: The start line {start} is invalid. The file only has {count} lines."));
    }
    if first > last {
        return Err(backwards(ranges));
    }
    // The first line is one of the file, and the last one not much further.
    let (first, last) = (to_index(first), to_index(last).min(old.len()));
    let new = lines::replaced(&old, first, last, content);
    overwrite(path, &new)?;
    let new = lines::split(&new);
    let (start, end) = lines::around(first, last, old.len(), new.len());
    let snippet = lines::numbered(&new, start, end);
    Ok(format!("Write {shown} successfully. The new content snippet:\n```\n{snippet}```"))
}

fn to_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[derive(Deserialize, JsonSchema)]
struct InsertTextFile {
    /// The path of the file; `~` is the home directory.
    file_path: String,
    /// The content to insert.
    content: String,
    /// The number of the line before which the content is inserted, from 1. One more than the last line appends it.
    line_number: i64,
}

impl HasPath for InsertTextFile {
    fn path(&self) -> &str {
        &self.file_path
    }
}

/// A tool that inserts lines into a text file.
#[must_use]
pub fn insert_text_file() -> NativeTool {
    let description = "Insert content into a text file, before a line of it or at its end.";
    tool("insert_text_file", ToolKind::Edit, description, insert)
}

fn insert(wanted: &InsertTextFile, path: &Path) -> Outcome {
    let (shown, number) = (path.display(), wanted.line_number);
    if number <= 0 {
        return Err(format!("InvalidArgumentsError: The line number {number} is invalid. "));
    }
    if !exists(path) {
        return Err(format!("InvalidArgumentsError: The target file {shown} does not exist. "));
    }
    let old = whole(path)?;
    let old = lines::split(&old);
    let line = to_index(number.unsigned_abs());
    if line > old.len() + 1 {
        let end = old.len() + 1;
        return Err(format!(
            "InvalidArgumentsError: The given line_number ({number}) is not in the valid range [1, {end}]."
        ));
    }
    let new = lines::inserted(&old, line, wanted.content.as_bytes());
    overwrite(path, &new)?;
    let new = lines::split(&new);
    let (start, end) = lines::around(line, line, old.len(), new.len());
    let snippet = lines::numbered(&new, start, end);
    Ok(format!(
        "Insert content into {shown} at line {number} successfully. The new content between lines {start}-{end} is:\n\
         ```\n{snippet}```"
    ))
}
