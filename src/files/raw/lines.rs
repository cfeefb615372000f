//! Lines of a text file: numbered for the model, counted in bounded memory, and replaced without changing the others.
//!
//! A line ends in `\n`, `\r\n` or `\r`, as in Python's universal newlines. The model is shown `\n` for each of them; in the file
//! they stay as they are.

use std::fmt::Write;
use std::io::{self, BufRead, Write as _};

use memchr::memchr2;

use crate::bytes::into_text;

/// The number of lines shown before and after a change.
const CONTEXT: usize = 5;

/// Splits a text into its lines, each with its line break.
pub(super) fn split(mut text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(at) = memchr2(b'\r', b'\n', text) {
        let end = if text[at..].starts_with(b"\r\n") { at + 2 } else { at + 1 };
        lines.push(&text[..end]);
        text = &text[end..];
    }
    if !text.is_empty() {
        lines.push(text);
    }
    lines
}

/// The line break of a text: the first one in it.
fn line_break(lines: &[&[u8]]) -> &'static [u8] {
    match lines.first() {
        Some(line) if line.ends_with(b"\r\n") => b"\r\n",
        Some(line) if line.ends_with(b"\r") => b"\r",
        _ => b"\n",
    }
}

fn has_break(line: &[u8]) -> bool {
    line.ends_with(b"\n") || line.ends_with(b"\r")
}

/// The text with the lines `first..=last`, counted from 1, replaced by others. The new text never runs into the line after it.
pub(super) fn replaced(lines: &[&[u8]], first: usize, last: usize, content: &[u8]) -> Vec<u8> {
    let (before, after) = (&lines[..first - 1], &lines[last.min(lines.len())..]);
    let mut text = before.concat();
    text.extend_from_slice(content);
    if !after.is_empty() && !content.is_empty() && !has_break(content) {
        text.extend_from_slice(line_break(lines));
    }
    text.extend(after.concat());
    text
}

/// The text with another at the line of this number, counted from 1, and at most one more than there are.
pub(super) fn inserted(lines: &[&[u8]], number: usize, content: &[u8]) -> Vec<u8> {
    let (before, after) = lines.split_at(number - 1);
    let mut text = before.concat();
    if after.is_empty() && before.last().is_some_and(|line| !has_break(line)) {
        text.extend_from_slice(line_break(lines));
    }
    text.extend_from_slice(content);
    if !after.is_empty() {
        text.extend_from_slice(line_break(lines));
    }
    text.extend(after.concat());
    text
}

/// The numbers of the lines to show after the lines `first..=last` of a text of `old` lines became a text of `new` lines.
pub(super) fn around(first: usize, last: usize, old: usize, new: usize) -> (usize, usize) {
    let end = (last + new + CONTEXT).saturating_sub(old);
    (first.saturating_sub(CONTEXT).max(1), end.min(new))
}

/// Lines with their numbers, from `first` on. Bytes that are not UTF-8 are replaced.
pub(super) fn numbered(lines: &[&[u8]], first: usize, last: usize) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate().take(last).skip(first - 1) {
        let end = if has_break(line) { "\n" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{}: {}{end}", index + 1, String::from_utf8_lossy(trimmed(line)));
    }
    text
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r\n").or_else(|| line.strip_suffix(b"\n")).or_else(|| line.strip_suffix(b"\r")).unwrap_or(line)
}

/// Calls a function with pieces of lines and whether the piece ends its line, until it returns false. Line breaks are not part
/// of the pieces.
fn pieces(mut reader: impl BufRead, mut take: impl FnMut(&[u8], bool) -> io::Result<bool>) -> io::Result<()> {
    let mut is_after_return = false;
    loop {
        let buffer = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        let Some(first) = buffer.first() else { return Ok(()) };
        if std::mem::take(&mut is_after_return) && *first == b'\n' {
            reader.consume(1);
            continue;
        }
        let (piece, used) = match memchr2(b'\r', b'\n', buffer) {
            Some(at) => {
                is_after_return = buffer[at] == b'\r';
                (&buffer[..at], at + 1)
            }
            None => (buffer, buffer.len()),
        };
        let goes_on = take(piece, used > piece.len())?;
        reader.consume(used);
        if !goes_on {
            return Ok(());
        }
    }
}

/// Counts the lines of a text.
pub(super) fn count(reader: impl BufRead) -> io::Result<u64> {
    let (mut lines, mut is_open) = (0, false);
    pieces(reader, |piece, is_end| {
        is_open = !is_end && (is_open || !piece.is_empty());
        lines += u64::from(is_end);
        Ok(true)
    })?;
    Ok(lines + u64::from(is_open))
}

/// Lines of a text with their numbers.
pub(super) struct Numbered {
    pub(super) text: String,
    /// True if the limit ended them.
    pub(super) is_cut: bool,
    /// The number of lines of the text up to the last one that was read.
    pub(super) seen: u64,
}

/// Reads the lines `first..=last` of a text with their numbers, at most about `limit` bytes.
pub(super) fn read_numbered(reader: impl BufRead, first: u64, last: u64, limit: usize) -> io::Result<Numbered> {
    let (mut number, mut is_start, mut is_cut) = (1, true, false);
    let mut text = Vec::new();
    pieces(reader, |piece, is_end| {
        if number > last {
            return Ok(false);
        }
        if number >= first {
            if text.len() >= limit {
                is_cut = true;
                return Ok(false);
            }
            if is_start {
                write!(text, "{number}: ")?;
            }
            let room = limit.saturating_sub(text.len());
            text.extend_from_slice(&piece[..piece.len().min(room)]);
            is_cut = piece.len() > room;
            if is_end {
                text.push(b'\n');
            }
        }
        number += u64::from(is_end);
        is_start = is_end;
        Ok(!is_cut)
    })?;
    // A last line without a line break is a line as well.
    Ok(Numbered { text: into_text(text), is_cut, seen: if is_start { number - 1 } else { number } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_keeps_its_break() {
        assert_eq!(split(b"a\nb\r\n\rc"), [b"a\n" as &[u8], b"b\r\n", b"\r", b"c"]);
        assert!(split(b"").is_empty());
    }

    #[test]
    fn a_replacement_never_runs_into_the_next_line() {
        let lines = split(b"a\r\nb\r\nc");

        assert_eq!(replaced(&lines, 2, 2, b"x"), b"a\r\nx\r\nc");
        assert_eq!(replaced(&lines, 2, 2, b"x\n"), b"a\r\nx\nc");
        assert_eq!(replaced(&lines, 2, 2, b""), b"a\r\nc");
        assert_eq!(replaced(&lines, 2, 9, b"x"), b"a\r\nx");
    }

    #[test]
    fn an_insertion_at_the_end_is_a_line_of_its_own() {
        assert_eq!(inserted(&split(b"a\nb\n"), 3, b"c"), b"a\nb\nc");
        assert_eq!(inserted(&split(b"a\nb"), 3, b"c"), b"a\nb\nc");
        assert_eq!(inserted(&split(b"a\nb"), 1, b"c"), b"c\na\nb");
        assert_eq!(inserted(&split(b""), 1, b"c"), b"c");
    }

    proptest! {
        #[test]
        fn reading_in_pieces_equals_reading_at_once(text in "[ab\r\n\u{e9}]{0,40}", chunk in 1_usize..9) {
            let lines = split(text.as_bytes());
            let reader = || io::BufReader::with_capacity(chunk, text.as_bytes());

            prop_assert_eq!(count(reader()).unwrap(), lines.len() as u64);
            let read = read_numbered(reader(), 1, u64::MAX, usize::MAX).unwrap();
            prop_assert_eq!(read.text, numbered(&lines, 1, lines.len()));
            prop_assert_eq!((read.is_cut, read.seen), (false, lines.len() as u64));
        }
    }
}
