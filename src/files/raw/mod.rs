//! The tools for paths of the operating system: AgentScope's `view_text_file`, `write_text_file` and `insert_text_file`.
//!
//! They have no roots and no grants. `guard` reads from the environment, at every call, whether they may run at all; `lines` has
//! the texts. Files are changed in place, as other programs do: links are followed, and the file keeps its owner, its
//! permissions and its hard links. Only regular files are opened. A call locks its file, so that calls at the same time change it
//! one after the other.

mod guard;
mod lines;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::guard::GuardedCall;
pub use self::guard::TextIo;
use self::lines::Numbered;
use crate::call::{Code, ToolResponse};
use crate::native::run::blocking;
use crate::native::{NativeTool, ToolContext};
use crate::policy::ToolKind;

/// The longest text of a reply, in bytes; a longer one is truncated.
const MAX_REPLY: usize = 256 * 1024;
/// The part of a file in which lines are looked for, in bytes.
const MAX_SCANNED: u64 = 1 << 30;
/// The largest file that is changed by lines, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// The time for which a call waits for the lock of another one. Programs that keep a lock for longer are not asked.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const RETRY: Duration = Duration::from_millis(1);

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
        Ok(match blocking(move || run(&parameters, &path)).await? {
            Ok(text) => call.response(text),
            Err(text) => ToolResponse { code: Some(Code::Failed), ..call.response(text) },
        })
    };
    NativeTool::prepared(name, description, prepare, body).with_kind(kind).with_blocking()
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
            [first, last] => Some((integer(first)?, integer(last)?)),
            _ => None,
        }
    }

    /// The numbers of the first and the last line in a text of `count` lines, where negative ones count from the end; zero is
    /// no line.
    fn resolve((first, last): (i64, i64), count: u64) -> (u64, u64) {
        let from_end = |number: i64| count.saturating_add(1).saturating_sub(number.unsigned_abs());
        let first = if first < 0 { from_end(first).max(1) } else { first.unsigned_abs() };
        let last = if last < 0 { from_end(last) } else { last.unsigned_abs() };
        (first, last)
    }

    /// The range as Python prints it.
    fn printed(&self) -> String {
        self.0.as_str().map_or_else(|| printed(&self.0), str::to_owned)
    }
}

/// The integer that a value is; the nearest one for a larger number.
fn integer(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else { return None };
    let digits = number.to_string();
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let nearest = if digits.starts_with('-') { i64::MIN } else { i64::MAX };
    is_whole.then(|| number.as_i64().unwrap_or(nearest))
}

/// A JSON value as Python prints it in a list.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let escaped = |letter: char| match letter {
                '\\' | '\n' | '\r' | '\t' => letter.escape_default().to_string(),
                _ if letter == quote => format!("\\{letter}"),
                _ if letter == '"' || letter == '\'' || letter.escape_debug().len() == 1 => letter.to_string(),
                '\0'..='\u{ff}' => format!("\\x{:02x}", u32::from(letter)),
                '\0'..='\u{ffff}' => format!("\\u{:04x}", u32::from(letter)),
                _ => format!("\\U{:08x}", u32::from(letter)),
            };
            format!("{quote}{}{quote}", text.chars().map(escaped).collect::<String>())
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

/// The use that a call makes of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    View,
    /// Reads it and writes it anew.
    Change,
    /// Writes it.
    Overwrite,
    /// Writes it, and creates it if it does not exist.
    Create,
}

/// A regular file that other calls wait for, unless all of them only view it.
struct LockedFile<'a> {
    file: File,
    /// Its size when it was locked.
    size: u64,
    path: &'a Path,
}

impl<'a> LockedFile<'a> {
    /// Opens a file, without waiting for the other end of a pipe, and locks it. `None` if there is no file at the path; links are
    /// followed.
    fn open(path: &'a Path, access: Access) -> Result<Option<Self>, String> {
        let doing = if access == Access::View { "read" } else { "write" };
        let mut options = OpenOptions::new();
        options.read(matches!(access, Access::View | Access::Change)).write(access != Access::View);
        options.create(access == Access::Create).truncate(false).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = match options.open(path) {
            Ok(file) => file,
            // A name with a zero byte is that of no file.
            Err(error)
                if access != Access::Create
                    && matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput
                    ) =>
            {
                return Ok(None);
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EISDIR | libc::ENXIO)) => {
                return Err(not_a_file(path));
            }
            Err(error) => return Err(failed(doing, path)(error)),
        };
        lock(&file, access);
        let mut locked = Self { file, size: 0, path };
        let metadata = locked.file.metadata().map_err(failed(doing, path))?;
        if !metadata.is_file() {
            return Err(not_a_file(path));
        }
        locked.size = metadata.len();
        Ok(Some(locked))
    }

    /// Reads a file that is to be changed by lines.
    fn whole(&self) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let read = (&self.file).take(MAX_FILE + 1).read_to_end(&mut content).map_err(failed("read", self.path))?;
        if read as u64 > MAX_FILE {
            return Err(format!("Error: The file {} is larger than {MAX_FILE} bytes.", self.path.display()));
        }
        Ok(content)
    }

    /// Counts the lines, and goes back to the beginning.
    fn count_lines(&self) -> Result<u64, String> {
        if self.size > MAX_SCANNED {
            let shown = self.path.display();
            return Err(format!(
                "Error: The file {shown} is larger than {MAX_SCANNED} bytes. Use ranges that count from its beginning."
            ));
        }
        let mut file = &self.file;
        let count = lines::count(BufReader::new(file.take(MAX_SCANNED)));
        count.and_then(|count| file.rewind().map(|()| count)).map_err(failed("read", self.path))
    }

    fn overwrite(&self, content: &[u8]) -> Result<(), String> {
        let written = self.file.write_all_at(content, 0);
        let is_shorter = self.size > content.len() as u64;
        let cut = |()| if is_shorter { self.file.set_len(content.len() as u64) } else { Ok(()) };
        written.and_then(cut).map_err(failed("write", self.path))
    }
}

impl Drop for LockedFile<'_> {
    fn drop(&mut self) {
        // Closing it does not suffice if a fork has the descriptor as well.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn lock(file: &File, access: Access) {
    let operation = match access {
        Access::View => FlockOperation::NonBlockingLockShared,
        Access::Change | Access::Overwrite | Access::Create => FlockOperation::NonBlockingLockExclusive,
    };
    let deadline = Instant::now() + MAX_WAIT;
    while matches!(flock(file, operation), Err(Errno::WOULDBLOCK | Errno::INTR)) && Instant::now() < deadline {
        thread::sleep(RETRY);
    }
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
    let Some(opened) = LockedFile::open(path, Access::View)? else {
        return Err(format!("Error: The file {shown} does not exist."));
    };
    let (mut first, mut last) = (1, u64::MAX);
    // The error for a first line that is not one of `count`; AgentScope compares the two numbers before it reads the file.
    let beyond = |ranges: &Ranges, bounds: (i64, i64), count: u64| {
        if bounds.0 > bounds.1 {
            return backwards(ranges);
        }
        let range = ranges.printed();
        if opened.size > MAX_SCANNED {
            format!(
                "Error: The range '{range}' is not in the first {MAX_SCANNED} bytes of the file '{shown}', which have {count} lines."
            )
        } else {
            format!(
                "InvalidArgumentError: The range '{range}' is out of bounds for the file '{shown}', which has only {count} lines."
            )
        }
    };
    let mut given = None;
    if let Some(ranges) = wanted.ranges.as_ref().filter(|ranges| !ranges.is_empty()) {
        let Some(bounds) = ranges.bounds() else {
            let ranges = ranges.printed();
            let expected = "Expected a list of two integers";
            return Err(format!("InvalidArgumentError: Invalid range format. {expected}, but got {ranges}."));
        };
        // Only lines that are counted from the end, and the line zero, need the number of all lines.
        let count = if bounds.0 < 1 || bounds.1 < 1 { opened.count_lines()? } else { u64::MAX };
        (first, last) = Ranges::resolve(bounds, count);
        if first > last && first <= count {
            return Err(backwards(ranges));
        }
        if first == 0 || first > count {
            return Err(beyond(ranges, bounds, count));
        }
        given = Some((ranges, bounds));
    }
    let reader = BufReader::new((&opened.file).take(MAX_SCANNED));
    let Numbered { text, is_cut, seen } =
        lines::read_numbered(reader, first, last, MAX_REPLY).map_err(failed("read", path))?;
    if let Some((ranges, bounds)) = given.filter(|_| first > seen) {
        return Err(beyond(ranges, bounds, seen));
    }
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
    let access = if wanted.ranges.is_some() { Access::Change } else { Access::Overwrite };
    let Some(file) = LockedFile::open(path, access)? else {
        if let Some(created) = LockedFile::open(path, Access::Create)? {
            created.overwrite(content)?;
        }
        let ignored = wanted
            .ranges
            .as_ref()
            .filter(|ranges| !ranges.is_empty())
            .map(|ranges| format!(" The ranges {} is ignored because the file does not exist.", ranges.printed()));
        return Ok(format!("Create and write {shown} successfully.{}", ignored.unwrap_or_default()));
    };
    let Some(ranges) = &wanted.ranges else {
        file.overwrite(content)?;
        return Ok(format!("Overwrite {shown} successfully."));
    };
    let Some(bounds) = ranges.bounds() else {
        let ranges = ranges.printed();
        return Err(format!("Error: Invalid range format. Expected a list of two integers, but got {ranges}."));
    };
    let old = file.whole()?;
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
    file.overwrite(&new)?;
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
    let Some(file) = LockedFile::open(path, Access::Change)? else {
        return Err(format!("InvalidArgumentsError: The target file {shown} does not exist. "));
    };
    let old = file.whole()?;
    let old = lines::split(&old);
    let line = to_index(number.unsigned_abs());
    if line > old.len() + 1 {
        let end = old.len() + 1;
        return Err(format!(
            "InvalidArgumentsError: The given line_number ({number}) is not in the valid range [1, {end}]."
        ));
    }
    let new = lines::inserted(&old, line, wanted.content.as_bytes());
    file.overwrite(&new)?;
    let new = lines::split(&new);
    let (start, end) = lines::around(line, line, old.len(), new.len());
    let snippet = lines::numbered(&new, start, end);
    Ok(format!(
        "Insert content into {shown} at line {number} successfully. The new content between lines {start}-{end} is:\n\
         ```\n{snippet}```"
    ))
}
