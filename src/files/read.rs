//! Reading files in bounded memory: part of the lines, the matching lines, or all bytes of a small file.

use std::fs::File;
use std::io::{Read, Write};

use memchr::{memchr, memchr_iter};
use regex::bytes::{Regex, RegexBuilder};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::error::{FileError, Subject};
use crate::bytes::into_text;

/// The size of a read, in bytes.
const CHUNK: usize = 128 * 1024;
/// The most that is read to find lines, in bytes. Lines beyond it are out of reach.
const MAX_SCANNED: u64 = 1 << 30;
/// The most that is read after the wanted lines, to count all of them.
const MAX_COUNTED: u64 = 64 << 20;
/// The longest line in which an expression is searched, in bytes; the rest of a longer one is not.
const MAX_LINE: usize = 1 << 20;
/// The largest automaton of an expression, in bytes.
const MAX_AUTOMATON: usize = 1 << 20;

/// The part of a text file that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRequest {
    /// The number of the first line, from 1.
    pub start_line: u64,
    /// The largest number of lines; none for all.
    pub read_lines: Option<u64>,
    /// Puts `line<number>: ` before each line.
    pub with_line_numbers: bool,
    /// Counts the lines of the whole file, also of the part that is not wanted, unless that is very long.
    pub count_lines: bool,
}

impl Default for TextRequest {
    fn default() -> Self {
        Self { start_line: 1, read_lines: None, with_line_numbers: true, count_lines: true }
    }
}

/// Lines of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// The lines, without a line break at the end. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The number of the first line.
    pub start_line: u64,
    /// The number of lines in `text`.
    pub lines: u64,
    /// The number of lines of the file, if the file was read to its end.
    pub line_count: Option<u64>,
    /// The number of lines in the part of the file that was read.
    pub counted_lines: u64,
    /// True if the limit of the reply ended the text before the wanted lines did.
    pub is_truncated: bool,
    /// True if bytes were replaced because they are not UTF-8.
    pub is_lossy: bool,
}

/// A line that an expression was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingLine {
    /// The number of the line, from 1.
    pub line: u64,
    /// The line, without its line break. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The part of the next chunk that a reader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// All of it.
    Text,
    /// All of it, to find something.
    Search,
    /// Its line breaks, to find a line.
    Find,
    /// Its line breaks, to count them.
    Count,
    /// Nothing, nor anything after it.
    Nothing,
}

/// Reads a file of known size in chunks until `take` needs no more, or has searched or counted enough, or the file ends; true if
/// it was read to its end. A file that grows while it is read ends some time, because the number of bytes is limited to its size at
/// the beginning.
fn read_chunks(
    (mut file, size): (File, u64),
    subject: Subject<'_>,
    cancel: &CancellationToken,
    mut take: impl FnMut(&[u8]) -> Need,
) -> Result<bool, FileError> {
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(CHUNK).clamp(1, CHUNK)];
    let (mut position, mut scanned, mut counted) = (0, 0, 0);
    while position < size {
        let wanted = usize::try_from(size - position).unwrap_or(CHUNK).min(buffer.len());
        let read = match file.read(&mut buffer[..wanted]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(subject.failed(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
        };
        position += read as u64;
        let need = take(&buffer[..read]);
        match need {
            Need::Text => {}
            Need::Search | Need::Find => scanned += read as u64,
            Need::Count => counted += read as u64,
            Need::Nothing => return Ok(false),
        }
        if cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        if matches!(need, Need::Find | Need::Count) && buffer[..read].ends_with(&[0]) {
            position = after_hole(&file, position, size);
        }
        if scanned >= MAX_SCANNED || counted >= MAX_COUNTED {
            return Ok(position >= size);
        }
    }
    Ok(true)
}

/// The position of the next data of a file, which the file is moved to. A hole, which is read as zeros, has no line breaks.
fn after_hole(file: &File, position: u64, size: u64) -> u64 {
    #[cfg(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple"))]
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(position)) {
        Ok(data) => return data,
        Err(Errno::NXIO) => return size,
        // Not supported here; the position is then as it was.
        Err(_) => {}
    }
    let _ = (file, size);
    position
}

/// Reads the wanted lines of a text file, at most `limit` bytes of them.
pub(super) fn text(
    file: (File, u64),
    request: &TextRequest,
    limit: usize,
    subject: Subject<'_>,
    cancel: &CancellationToken,
) -> Result<TextPart, FileError> {
    let mut lines = Lines::new(request, limit);
    let is_whole = read_chunks(file, subject, cancel, |chunk| lines.take(chunk))?;
    lines.finish(is_whole)
}

/// The lines that were read so far.
struct Lines<'a> {
    request: &'a TextRequest,
    limit: usize,
    /// The number of the line that the next byte belongs to.
    line: u64,
    /// True if the next byte is the first of its line.
    at_start: bool,
    taken: Vec<u8>,
    /// The length of `taken` up to the last complete line.
    complete: usize,
    taken_count: u64,
    is_truncated: bool,
}

impl<'a> Lines<'a> {
    fn new(request: &'a TextRequest, limit: usize) -> Self {
        let (taken, complete, taken_count) = (Vec::new(), 0, 0);
        Self { request, limit, line: 1, at_start: true, taken, complete, taken_count, is_truncated: false }
    }

    /// The number of the last wanted line.
    fn last(&self) -> u64 {
        self.request.read_lines.map_or(u64::MAX, |lines| self.request.start_line.saturating_add(lines - 1))
    }

    fn is_over(&self) -> bool {
        self.is_truncated || self.line > self.last()
    }

    /// Takes a chunk of the file, and returns what is needed of the next one.
    fn take(&mut self, mut chunk: &[u8]) -> Need {
        while !chunk.is_empty() {
            if self.line < self.request.start_line || self.is_over() {
                if self.is_over() && !self.request.count_lines {
                    return Need::Nothing;
                }
                chunk = self.skip(chunk);
                continue;
            }
            let end = memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            self.push(piece);
            if let Some(end) = end {
                self.end_line();
                chunk = &chunk[end + 1..];
                self.line += 1;
                self.at_start = true;
            } else {
                self.at_start = false;
                break;
            }
        }
        if self.is_over() {
            if self.request.count_lines { Need::Count } else { Need::Nothing }
        } else if self.line < self.request.start_line {
            Need::Find
        } else {
            Need::Text
        }
    }

    /// Counts the line breaks of a chunk up to the first wanted line; returns the rest.
    fn skip<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let mut breaks = memchr_iter(b'\n', chunk);
        let rest = if self.is_over() {
            self.line += breaks.count() as u64;
            &[]
        } else {
            let wanted = usize::try_from(self.request.start_line - self.line - 1).unwrap_or(usize::MAX);
            if let Some(end) = breaks.nth(wanted) {
                self.line = self.request.start_line;
                &chunk[end + 1..]
            } else {
                self.line += memchr_iter(b'\n', chunk).count() as u64;
                &[]
            }
        };
        let read = &chunk[..chunk.len() - rest.len()];
        self.at_start = read.last() == Some(&b'\n');
        rest
    }

    /// Adds a piece of a wanted line.
    fn push(&mut self, piece: &[u8]) {
        if self.is_truncated {
            return;
        }
        if self.at_start {
            if self.taken_count > 0 {
                self.taken.push(b'\n');
            }
            if self.request.with_line_numbers {
                // Writing to memory does not fail.
                let _ = write!(self.taken, "line{}: ", self.line);
            }
        }
        let room = self.limit.saturating_sub(self.taken.len());
        self.taken.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room || self.taken.len() > self.limit {
            self.is_truncated = true;
            if self.taken_count > 0 {
                // The line that does not fit is left to the next call.
                self.taken.truncate(self.complete);
            } else {
                self.taken_count = 1;
            }
        }
    }

    fn end_line(&mut self) {
        if !self.is_truncated {
            self.taken_count += 1;
            self.complete = self.taken.len();
        }
    }

    /// The lines, after the whole file was read, or a part of it.
    fn finish(mut self, is_whole: bool) -> Result<TextPart, FileError> {
        // A last line without a line break is a line as well.
        let count = if self.at_start { self.line - 1 } else { self.line };
        if !self.at_start && !self.is_over() && self.line >= self.request.start_line {
            self.end_line();
        }
        let start_line = self.request.start_line;
        if start_line > count.max(1) && !is_whole {
            return Err(FileError::argument(format!(
                "start_line {start_line} is out of reach: only the first {MAX_SCANNED} bytes of a file are searched, which have \
                 {count} lines"
            )));
        }
        if start_line > count.max(1) {
            return Err(FileError::argument(format!(
                "start_line {start_line} is beyond the end of the file, which has {count} lines"
            )));
        }
        let is_lossy = std::str::from_utf8(&self.taken).is_err_and(|error| {
            // A character that the limit has cut in two is not an error of the file.
            !self.is_truncated || error.error_len().is_some()
        });
        if self.is_truncated
            && let Err(error) = std::str::from_utf8(&self.taken)
            && error.error_len().is_none()
        {
            self.taken.truncate(error.valid_up_to());
        }
        Ok(TextPart {
            text: into_text(self.taken),
            start_line,
            lines: self.taken_count,
            line_count: is_whole.then_some(count),
            counted_lines: count,
            is_truncated: self.is_truncated,
            is_lossy,
        })
    }
}

/// Reads the lines in which an expression is found, at most `limit` bytes of them; the flag is true if there are more.
pub(super) fn matching(
    file: (File, u64),
    pattern: &str,
    limit: usize,
    subject: Subject<'_>,
    cancel: &CancellationToken,
) -> Result<(Vec<MatchingLine>, bool), FileError> {
    let regex = expression(pattern)?;
    let (mut found, mut line, mut number, mut size) = (Vec::new(), Vec::new(), 1, 0);
    let mut is_truncated = false;
    let mut search = |line: &[u8], number| {
        if regex.is_match(line) {
            size += line.len() + 1;
            if size > limit {
                is_truncated = true;
                return false;
            }
            found.push(MatchingLine { line: number, text: String::from_utf8_lossy(line).into_owned() });
        }
        true
    };
    let mut is_over = false;
    let is_whole = read_chunks(file, subject, cancel, |mut chunk| {
        while let Some(end) = memchr(b'\n', chunk) {
            extend(&mut line, &chunk[..end]);
            if !search(&line, number) {
                is_over = true;
                return Need::Nothing;
            }
            line.clear();
            number += 1;
            chunk = &chunk[end + 1..];
        }
        extend(&mut line, chunk);
        // The rest of a line that is too long is not searched.
        if line.len() < MAX_LINE { Need::Search } else { Need::Find }
    })?;
    if !is_over && !line.is_empty() {
        search(&line, number);
    }
    Ok((found, is_truncated || !is_whole))
}

fn extend(line: &mut Vec<u8>, piece: &[u8]) {
    line.extend_from_slice(&piece[..piece.len().min(MAX_LINE.saturating_sub(line.len()))]);
}

/// Compiles an expression of a model, which matches in time linear in the text.
fn expression(pattern: &str) -> Result<Regex, FileError> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_AUTOMATON).dfa_size_limit(MAX_AUTOMATON).build().map_err(|error| {
        let text = error.to_string();
        // The last line of a syntax error is its message; those before show the position.
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        FileError::argument(format!("invalid regular expression: {reason}"))
    })
}

/// Reads all bytes of a file that is not larger than the limit.
pub(super) fn bytes(
    file: (File, u64),
    limit: u64,
    subject: Subject<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let mut is_too_large = false;
    read_chunks(file, subject, cancel, |chunk| {
        is_too_large = (bytes.len() + chunk.len()) as u64 > limit;
        if is_too_large {
            return Need::Nothing;
        }
        bytes.extend_from_slice(chunk);
        Need::Text
    })?;
    if is_too_large {
        return Err(FileError::argument(format!("The file {} is larger than {limit} bytes", subject.path)));
    }
    Ok(bytes)
}
