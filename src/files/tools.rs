//! The native tools over a [`FileService`].
//!
//! A file system can make any operation wait, so every tool runs in a thread for blocking work.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::error::FileError;
use super::grant::Op;
use super::list::{Entry, EntryKind, FileFacts};
use super::path::shown;
use super::read::{TextPart, TextRequest};
use super::system::FileService;
use super::write::Edit;
use crate::call::ToolResponse;
use crate::native::run::blocking;
use crate::native::{NativeTool, ToolContext, ToolError};
use crate::policy::ToolKind;

/// The tools that the grants of a service permit, the reading ones first.
#[must_use]
pub fn tools(service: &FileService) -> Vec<NativeTool> {
    type Make = fn(&FileService) -> NativeTool;
    let all: [(&[Op], Make); 11] = [
        (&[Op::ReadFile], read_text_file),
        (&[Op::ReadFile], read_multiple_files),
        (&[Op::List], list_directory),
        (&[Op::List], list_directory_with_sizes),
        (&[Op::List], search_files),
        (&[Op::File], get_file_info),
        (&[], list_allowed_directories),
        (&[], fs_describe_permissions_markdown),
        (&[Op::Write], write_file),
        (&[Op::ReadFile, Op::Write], edit_file),
        (&[Op::Delete], delete_file),
    ];
    let granted = all.into_iter().filter(|(ops, _)| ops.iter().all(|op| service.handle().grants(*op)));
    granted.map(|(_, tool)| tool(service)).collect()
}

/// Makes a tool of an operation that blocks.
fn tool<P, F>(service: &FileService, (name, kind): (&str, ToolKind), description: &str, operation: F) -> NativeTool
where
    P: JsonSchema + DeserializeOwned + Send + 'static,
    F: Fn(&FileService, P, &CancellationToken) -> Result<ToolResponse, FileError> + Send + Sync + 'static,
{
    let shared = Arc::new((service.clone(), operation));
    NativeTool::new(name, description, move |context: ToolContext, parameters: P| {
        let shared = shared.clone();
        async move {
            let cancel = context.cancellation;
            let run = move || {
                let (service, operation) = &*shared;
                operation(service, parameters, &cancel)
            };
            blocking(run).await?.map_err(answer_to)
        }
    })
    .with_kind(kind)
    .with_blocking()
}

/// The error that the model reads. Only a failure of the operating system is more than a mistake of the model.
fn answer_to(error: FileError) -> ToolError {
    match error {
        FileError::InvalidPath { .. }
        | FileError::AccessDenied { .. }
        | FileError::NotFound { .. }
        | FileError::Conflict { .. }
        | FileError::InvalidArgument { .. } => ToolError::mistake(error.to_string()),
        FileError::Failed { .. } | FileError::Cancelled => error.into(),
    }
}

const fn first_line() -> u64 {
    1
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
struct ReadTextFile {
    /// The path of the file, such as /workspace/notes.txt.
    path: String,
    /// The number of the first line, from 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    start_line: u64,
    /// The largest number of lines. Without it the file is read to its end.
    #[serde(default)]
    #[schemars(range(min = 1))]
    read_lines: Option<u64>,
    /// Puts the number before each line.
    #[serde(default = "yes")]
    with_line_numbers: bool,
    /// Begins with the number of lines of the file and the format.
    #[serde(default = "yes")]
    with_header: bool,
}

fn read_text_file(service: &FileService) -> NativeTool {
    let description =
        "Read a text file, or some of its lines. A long text is truncated, and the last line says how to read on.";
    tool(service, ("read_text_file", ToolKind::Read), description, |service, wanted: ReadTextFile, cancel| {
        let request = TextRequest {
            start_line: wanted.start_line,
            read_lines: wanted.read_lines,
            with_line_numbers: wanted.with_line_numbers,
            count_lines: wanted.with_header,
        };
        let part = service.read_text(&wanted.path, &request, service.policy().max_reply_bytes, cancel)?;
        let mut metadata = json!({
            "path": wanted.path,
            "start_line": part.start_line,
            "lines": part.lines,
            "line_count": part.line_count,
            "truncated": part.is_truncated,
        });
        if part.line_count.is_none() {
            metadata["counted_lines"] = part.counted_lines.into();
        }
        let text = text_of(&part, wanted.with_header, wanted.with_line_numbers);
        Ok(ToolResponse { metadata: Some(metadata), ..ToolResponse::of_text(text) })
    })
}

/// Lines of a file as a reply.
fn text_of(part: &TextPart, with_header: bool, with_line_numbers: bool) -> String {
    let mut parts: Vec<Cow<'_, str>> = Vec::with_capacity(4);
    if with_header {
        let at_least = if part.line_count.is_none() { "at least " } else { "" };
        let format = if with_line_numbers { "line{N}: <content>" } else { "<content>" };
        parts.push(format!("line_count: {at_least}{}\nformat: {format}", part.counted_lines).into());
    }
    if part.lines > 0 {
        parts.push((*part.text).into());
    }
    if part.is_lossy {
        parts.push("[bytes that are not UTF-8 are shown as \u{fffd}]".into());
    }
    if part.is_truncated {
        let (first, next) = (part.start_line, part.start_line + part.lines);
        let last = next - 1;
        parts.push(format!("[truncated after lines {first}-{last}: read on with start_line={next}]").into());
    }
    parts.join("\n")
}

#[derive(Deserialize, JsonSchema)]
struct ReadMultipleFiles {
    /// The paths of the files.
    #[schemars(length(min = 1, max = 1000))]
    paths: Vec<String>,
}

fn read_multiple_files(service: &FileService) -> NativeTool {
    let description =
        "Read several text files at once. A file that cannot be read does not keep the others from being read.";
    tool(service, ("read_multiple_files", ToolKind::Read), description, |service, wanted: ReadMultipleFiles, cancel| {
        let request = TextRequest { with_line_numbers: false, count_lines: false, ..TextRequest::default() };
        let mut room = service.policy().max_reply_bytes;
        let (mut files, mut failed) = (Vec::new(), Vec::new());
        for path in wanted.paths {
            let name = shown(&path);
            if room == 0 {
                files.push(format!("{name}: Error - the reply is full: read this file alone"));
                failed.push(path);
                continue;
            }
            match service.read_text(&path, &request, room, cancel) {
                Ok(part) => {
                    room = room.saturating_sub(part.text.len());
                    files.push(format!("{name}:\n{}", text_of(&part, false, false)));
                }
                Err(FileError::Cancelled) => return Err(FileError::Cancelled),
                Err(error) => {
                    files.push(format!("{name}: Error - {error}"));
                    failed.push(path);
                }
            }
        }
        Ok(ToolResponse::of_text(files.join("\n---\n")).with_metadata("failed", json!(failed)))
    })
}

#[derive(Deserialize, JsonSchema)]
struct Folder {
    /// The path of the directory, such as /workspace/.
    path: String,
}

fn list_directory(service: &FileService) -> NativeTool {
    let description = "List the names in a directory, each with [DIR], [FILE], [LINK] or [OTHER] before it.";
    tool(service, ("list_directory", ToolKind::Read), description, |service, wanted: Folder, cancel| {
        let (entries, total) = service.list(&wanted.path, false, cancel)?;
        let mut lines: Vec<String> = entries.iter().map(line_of).collect();
        if total == 0 {
            lines.push("<empty>".to_owned());
        }
        push_omitted(&mut lines, total, entries.len());
        Ok(ToolResponse::of_text(lines.join("\n")))
    })
}

fn line_of(entry: &Entry) -> String {
    let name = entry.displayed();
    match entry.kind {
        EntryKind::Folder => format!("[DIR] {name}/"),
        EntryKind::File => format!("[FILE] {name}"),
        EntryKind::Link => format!("[LINK] {name}"),
        EntryKind::Other => format!("[OTHER] {name}"),
    }
}

fn push_omitted(lines: &mut Vec<String>, total: usize, shown: usize) {
    if total > shown {
        lines.push(format!("[truncated: {shown} of {total} entries]"));
    }
}

#[derive(Serialize, Deserialize, JsonSchema, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum SortBy {
    #[default]
    Name,
    Size,
}

#[derive(Deserialize, JsonSchema)]
struct SizedFolder {
    /// The path of the directory, such as /workspace/.
    path: String,
    /// The order: by name, or by size with the largest first.
    #[serde(default, rename = "sortBy")]
    sort_by: SortBy,
}

fn list_directory_with_sizes(service: &FileService) -> NativeTool {
    let description = "List the names in a directory with the sizes of the files, and a summary.";
    let name = ("list_directory_with_sizes", ToolKind::Read);
    tool(service, name, description, |service, wanted: SizedFolder, cancel| {
        let (mut entries, total) = service.list(&wanted.path, true, cancel)?;
        if wanted.sort_by == SortBy::Size {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.size));
        }
        let with_size = |entry: &Entry| match entry.size {
            Some(size) => format!("{} ({size} bytes)", line_of(entry)),
            None => line_of(entry),
        };
        let mut lines: Vec<String> = entries.iter().map(with_size).collect();
        if total == 0 {
            lines.push("<empty>".to_owned());
        }
        push_omitted(&mut lines, total, entries.len());
        let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count();
        let bytes: u64 = entries.iter().filter_map(|entry| entry.size).sum();
        let (files, folders) = (count(EntryKind::File), count(EntryKind::Folder));
        lines.push(format!("Total: {files} files, {folders} directories, {bytes} bytes"));
        Ok(ToolResponse::of_text(lines.join("\n")))
    })
}

#[derive(Deserialize, JsonSchema)]
struct SearchFiles {
    /// The path of the directory to search, with everything beneath it.
    path: String,
    /// A part of the name, or a pattern in which * is any text and ? is one character.
    pattern: String,
    /// Names and paths that are left out, in the same form.
    #[serde(default, rename = "excludePatterns")]
    #[schemars(length(max = 100))]
    exclude_patterns: Vec<String>,
}

fn search_files(service: &FileService) -> NativeTool {
    let description = "Search a directory, and the directories beneath it, for files and directories by their names.";
    tool(service, ("search_files", ToolKind::Search), description, |service, wanted: SearchFiles, cancel| {
        let (mut paths, is_truncated) =
            service.search(&wanted.path, &wanted.pattern, &wanted.exclude_patterns, cancel)?;
        let found = paths.len();
        if found == 0 {
            paths.push("<no matches>".to_owned());
        }
        if is_truncated {
            paths.push(format!("[truncated: the first {found} matches; search a smaller directory]"));
        }
        Ok(ToolResponse::of_text(paths.join("\n")))
    })
}

#[derive(Deserialize, JsonSchema)]
struct AnyPath {
    /// The path of the file or directory.
    path: String,
}

fn get_file_info(service: &FileService) -> NativeTool {
    let description = "Get the type, the size, the time of the last change and the permissions of a file or directory.";
    tool(service, ("get_file_info", ToolKind::Read), description, |service, wanted: AnyPath, _| {
        let facts = service.facts(&wanted.path)?;
        Ok(ToolResponse::of_text(format!("path: {}\n{}", shown(&wanted.path), info(&facts))))
    })
}

fn info(facts: &FileFacts) -> String {
    let mut text = format!("type: {}\nsize: {}\n", facts.kind.as_str(), facts.size);
    // Writing to a string does not fail.
    if let Ok(modified) = Timestamp::from_nanosecond(facts.modified) {
        let _ = writeln!(text, "modified: {modified:.0}");
    }
    let _ = write!(text, "permissions: {:03o}", facts.mode);
    text
}

/// A tool without parameters.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn list_allowed_directories(service: &FileService) -> NativeTool {
    let description = "List the directories that you have access to.";
    let name = ("list_allowed_directories", ToolKind::Read);
    tool(service, name, description, |service, _: Nothing, _| {
        let prefixes: Vec<String> = service.handle().permissions().map(|(prefix, _)| prefix.as_folder()).collect();
        Ok(ToolResponse::of_text(or_empty(&prefixes)))
    })
}

fn fs_describe_permissions_markdown(service: &FileService) -> NativeTool {
    let description = "Describe what you may do in each directory: ls, stat, read, write, delete.";
    let name = ("fs_describe_permissions_markdown", ToolKind::Read);
    tool(service, name, description, |service, _: Nothing, _| {
        let line =
            |(prefix, ops): (&super::LogicalPath, super::Ops)| format!("{}: {}", prefix.as_folder(), ops.describe());
        Ok(ToolResponse::of_text(or_empty(&service.handle().permissions().map(line).collect::<Vec<_>>())))
    })
}

fn or_empty(lines: &[String]) -> String {
    if lines.is_empty() { "<empty>".to_owned() } else { lines.join("\n") }
}

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The path of the file, such as /workspace/notes.txt. Missing directories are created.
    path: String,
    /// The whole content of the file.
    content: String,
}

fn write_file(service: &FileService) -> NativeTool {
    let description = "Create a file, or replace the whole content of one.";
    tool(service, ("write_file", ToolKind::Edit), description, |service, wanted: WriteFile, _| {
        service.write(&wanted.path, wanted.content.as_bytes())?;
        Ok(ToolResponse::of_text(format!("wrote {} bytes to {}", wanted.content.len(), shown(&wanted.path))))
    })
}

#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The path of the file.
    path: String,
    /// The edits, each of which applies to the result of those before it.
    #[schemars(length(min = 1))]
    edits: Vec<TextEdit>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct TextEdit {
    /// The text to replace, to the letter. It must occur exactly once in the file.
    #[serde(rename = "oldText")]
    old_text: String,
    /// The new text.
    #[serde(rename = "newText")]
    new_text: String,
}

fn edit_file(service: &FileService) -> NativeTool {
    let description = "Replace parts of a text file. If an edit does not match exactly once, the file stays as it is.";
    tool(service, ("edit_file", ToolKind::Edit), description, |service, wanted: EditFile, cancel| {
        let edit = |edit: TextEdit| Edit { old_text: edit.old_text, new_text: edit.new_text };
        let edits: Vec<Edit> = wanted.edits.into_iter().map(edit).collect();
        let size = service.edit(&wanted.path, &edits, cancel)?;
        Ok(ToolResponse::of_text(format!("edited {} (size={size})", shown(&wanted.path))))
    })
}

#[derive(Deserialize, JsonSchema)]
struct DeleteFile {
    /// The path of the file.
    path: String,
}

fn delete_file(service: &FileService) -> NativeTool {
    let description = "Delete a file. Directories are not deleted.";
    tool(service, ("delete_file", ToolKind::Delete), description, |service, wanted: DeleteFile, _| {
        service.delete(&wanted.path)?;
        Ok(ToolResponse::of_text(format!("deleted {}", shown(&wanted.path))))
    })
}
