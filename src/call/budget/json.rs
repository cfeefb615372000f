//! JSON: what is left is JSON again. Arrays keep their first items, objects as many of their members as possible, and long strings
//! their beginning. Siblings share the room, so that one large member does not hide the others.
//!
//! A document is never parsed into values: a part is found by scanning its text, once for each level that is cut.

use std::fmt::Write;

use super::{Cut, CutKind, Note, characters, fair_share, offset};

/// The most levels that are cut; deeper containers are shown by their size only.
const MAX_DEPTH: usize = 16;

/// The most characters of a value that is shown by its size only, such as `"[1234567890 characters]"`.
const STUB: usize = 30;

/// The key of a note in an object.
const NOTE_KEY: &str = "…";

/// True if the text is a JSON array, object or string.
pub(super) fn is_document(text: &str) -> bool {
    let trimmed = trim(text);
    trimmed.starts_with(['{', '[', '"']) && value_end(trimmed.as_bytes(), 0) == Some(trimmed.len())
}

/// True if there are several lines, and each is a JSON array or object.
pub(super) fn is_document_per_line(text: &str) -> bool {
    let mut lines = documents(text);
    let is_container = |line: &str| !line.starts_with('"') && is_document(line);
    lines.next().is_some_and(is_container) && lines.next().is_some_and(is_container) && lines.all(is_container)
}

fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(trim).filter(|line| !line.is_empty())
}

/// Cuts a document to at most `limit` characters.
pub(super) fn cut(text: &str, limit: usize, note: &Note<'_>) -> Cut {
    let text = trim(text);
    let mut cutter = Cutter { result: String::new() };
    let (shown, total) = cutter.write(text, compact_size(text), limit, 0, Some(note));
    let unit = unit(Frame::of(text));
    let mut text = cutter.result;
    if characters(&text) > limit {
        // Too little room for any value.
        text = if limit < 2 { String::new() } else { "\"\"".to_owned() };
    }
    Cut { text, kind: CutKind::Json, shown, total, unit }
}

/// Cuts documents of one line each to at most `limit` characters; none if there is too little room.
pub(super) fn cut_lines(text: &str, limit: usize, note: &Note<'_>) -> Option<Cut> {
    let mut cutter = Cutter { result: String::new() };
    let (shown, total) = cutter.write_container(text, Frame::Lines, limit, 0, Some(note))?;
    Some(Cut { text: cutter.result, kind: CutKind::Json, shown, total, unit: Frame::Lines.unit() })
}

/// A sequence of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Array,
    Object,
    /// One value to a line.
    Lines,
}

impl Frame {
    fn of(value: &str) -> Option<Self> {
        match value.as_bytes().first() {
            Some(b'[') => Some(Self::Array),
            Some(b'{') => Some(Self::Object),
            _ => None,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Array => "items",
            Self::Object => "members",
            Self::Lines => "lines",
        }
    }

    /// The texts before, between and after the values.
    fn marks(self) -> (&'static str, char, &'static str) {
        match self {
            Self::Array => ("[", ',', "]"),
            Self::Object => ("{", ',', "}"),
            Self::Lines => ("", '\n', ""),
        }
    }

    /// The note as a value of the sequence, whose other members have these keys.
    fn note(self, text: &str, keys: &[Child<'_>]) -> String {
        let text = serde_json::Value::from(text);
        match self {
            Self::Array => text.to_string(),
            Self::Lines => format!("{{\"{NOTE_KEY}\":{text}}}"),
            Self::Object => {
                let mut key = NOTE_KEY.to_owned();
                while keys.iter().any(|child| child.key.is_some_and(|taken| taken[1..taken.len() - 1] == *key)) {
                    key.push_str(NOTE_KEY);
                }
                format!("\"{key}\":{text}")
            }
        }
    }
}

/// A value in a sequence, with its key and its colon if it has them.
struct Child<'a> {
    key: Option<&'a str>,
    value: &'a str,
    /// The number of characters of the value without spaces.
    size: usize,
}

impl Child<'_> {
    /// The characters besides the value: a separator, and the key with a colon.
    fn extra(&self) -> usize {
        1 + self.key.map_or(0, |key| characters(key) + 1)
    }
}

struct Cutter {
    result: String,
}

impl Cutter {
    /// Writes a value in at most `limit` characters, or as a stub. The outermost value has a note. Returns the numbers of parts that
    /// are shown and that there are.
    fn write(
        &mut self,
        value: &str,
        size: usize,
        limit: usize,
        depth: usize,
        note: Option<&Note<'_>>,
    ) -> (usize, usize) {
        let frame = Frame::of(value);
        if size <= limit {
            compact(value, |part| self.result.push_str(part));
            // Only the outermost value is counted: all of it fits without the spaces.
            let total = note.map_or(0, |_| count(value, frame));
            return (total, total);
        }
        let written = match frame {
            Some(frame) if depth < MAX_DEPTH => self.write_container(value, frame, limit, depth, note),
            None if value.starts_with('"') => self.write_string(value, limit, note),
            _ => None,
        };
        written.unwrap_or_else(|| {
            let total = count(value, frame);
            // Writing to a string does not fail.
            let _ = write!(self.result, "\"[{total} {}]\"", unit(frame));
            (0, total)
        })
    }

    /// Writes the beginning of a string; none if there is no room for any of it.
    fn write_string(&mut self, value: &str, limit: usize, note: Option<&Note<'_>>) -> Option<(usize, usize)> {
        let inside = &value[1..value.len() - 1];
        let total = letters(inside).count();
        let about = |shown: usize| {
            let about = format!("{shown} of {total} characters");
            let text = note.map_or_else(|| format!("[{about}]"), |note| note.after(&about));
            // The quotation marks of the note are escaped, those around it are not its own.
            let quoted = serde_json::Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        // Two quotation marks, and an ellipsis with a space.
        let room = limit.checked_sub(characters(&about(total)) + 4).filter(|room| *room > 0)?;
        let (mut end, mut used, mut shown) = (0, 0, 0);
        for letter in letters(inside) {
            used += characters(letter);
            if used > room {
                break;
            }
            end += letter.len();
            shown += 1;
        }
        let _ = write!(self.result, "\"{}… {}\"", &inside[..end], about(shown));
        Some((shown, total))
    }

    /// Writes the first members of a sequence; none if there is no room for any.
    fn write_container(
        &mut self,
        text: &str,
        frame: Frame,
        limit: usize,
        depth: usize,
        note: Option<&Note<'_>>,
    ) -> Option<(usize, usize)> {
        let (open, separator, close) = frame.marks();
        let about = |shown: usize, total: usize| {
            let about = if shown < total {
                format!("{shown} of {total} {}", frame.unit())
            } else {
                format!("all {total} {}, some cut", frame.unit())
            };
            note.map_or_else(|| format!("[{about}]"), |note| note.after(&about))
        };
        // The outermost sequence has a note in any case, the others if members are missing.
        let bare = limit.checked_sub(open.len() + close.len())?;
        let (chosen, total, room) = {
            let (children, total) = first_children(text, frame, bare);
            let noted = || bare.checked_sub(characters(&frame.note(&about(total, total), &children)) + 1);
            let all = if note.is_some() { noted()? } else { bare };
            let least = if frame == Frame::Object { STUB } else { STUB.max(all / 4) };
            let fitting = |room: usize| {
                let mut rest = room;
                let fits = |child: &&Child<'_>| {
                    let left = rest.checked_sub(child.extra() + child.size.min(least));
                    rest = left.unwrap_or(0);
                    left.is_some()
                };
                children.iter().take_while(fits).count()
            };
            let (count, room) = match fitting(all) {
                count if count == total => (count, all),
                _ => {
                    let room = noted()?;
                    (fitting(room), room)
                }
            };
            let mut chosen = children;
            chosen.truncate(count);
            (chosen, total, room)
        };
        if chosen.is_empty() {
            return None;
        }
        let sizes: Vec<usize> = chosen.iter().map(|child| child.size).collect();
        let extras: usize = chosen.iter().map(Child::extra).sum();
        let share = fair_share(&sizes, room - extras);
        let mut unused = 0;
        self.result.push_str(open);
        for (at, child) in chosen.iter().enumerate() {
            if at > 0 {
                self.result.push(separator);
            }
            if let Some(key) = child.key {
                self.result.push_str(key);
                self.result.push(':');
            }
            let (before, room) = (self.result.len(), child.size.min(share.saturating_add(unused)));
            self.write(child.value, child.size, room, depth + 1, None);
            // Values that need less than their share leave it to the next ones.
            let used = characters(&self.result[before..]);
            unused = (child.size.min(share) + unused).saturating_sub(used);
        }
        let shown = chosen.len();
        if shown < total || note.is_some() {
            self.result.push(separator);
            self.result.push_str(&frame.note(&about(shown, total), &chosen));
        }
        self.result.push_str(close);
        Some((shown, total))
    }
}

/// The number of parts of a value.
fn count(value: &str, frame: Option<Frame>) -> usize {
    frame.map_or_else(|| characters(value).saturating_sub(2), |frame| children(value, frame).count())
}

/// The word for the parts of a value.
fn unit(frame: Option<Frame>) -> &'static str {
    frame.map_or("characters", Frame::unit)
}

/// The first members of a sequence, as many as may be shown in `limit` characters, and the number of all.
fn first_children(text: &str, frame: Frame, limit: usize) -> (Vec<Child<'_>>, usize) {
    let (mut first, mut total, mut least) = (Vec::new(), 0, 0_usize);
    for (key, value) in children(text, frame) {
        total += 1;
        if least <= limit {
            let child = Child { key, value, size: compact_size(value) };
            least = least.saturating_add(child.extra() + child.size.min(STUB));
            first.push(child);
        }
    }
    (first, total)
}

/// The keys and values of a sequence, as they are written.
fn children(text: &str, frame: Frame) -> impl Iterator<Item = (Option<&str>, &str)> {
    let bytes = text.as_bytes();
    let mut at = usize::from(frame != Frame::Lines);
    std::iter::from_fn(move || {
        at = skip_spaces(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_spaces(bytes, at + 1);
        }
        let mut key = None;
        if frame == Frame::Object && bytes.get(at) == Some(&b'"') {
            let end = string_end(bytes, at)?;
            key = Some(&text[at..end]);
            at = skip_spaces(bytes, skip_spaces(bytes, end) + 1);
        }
        let end = value_end(bytes, at)?;
        let value = &text[at..end];
        at = end;
        Some((key, value))
    })
}

/// Calls a function with the parts of a document that are not spaces between its values.
fn compact<'a>(text: &'a str, mut write: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\t' | b'\n' | b'\r' => {
                write(&text[start..at]);
                at = skip_spaces(bytes, at);
                start = at;
            }
            _ => at += 1,
        }
    }
    write(&text[start..]);
}

fn compact_size(text: &str) -> usize {
    let mut size = 0;
    compact(text, |part| size += characters(part));
    size
}

/// The letters of the inside of a string, with escapes and surrogate pairs as one each.
fn letters(inside: &str) -> impl Iterator<Item = &str> {
    let mut rest = inside;
    std::iter::from_fn(move || {
        let escape = |text: &str| match text.as_bytes() {
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => 0,
        };
        let length = match escape(rest) {
            0 => offset(rest, 1),
            6 if is_high_surrogate(rest) && escape(&rest[6..]) == 6 => 12,
            length => length,
        };
        let (letter, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(letter).filter(|letter| !letter.is_empty())
    })
}

fn is_high_surrogate(escape: &str) -> bool {
    matches!(escape.as_bytes(), [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B', ..])
}

/// A text without the spaces of JSON around it.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    let spaces = bytes.get(at..).unwrap_or_default().iter();
    at + spaces.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// The end of the JSON value that begins at a byte; none if it is invalid. It needs no stack, however deep the value is.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    // For each container that is open: true if it is an object.
    let mut open: Vec<bool> = Vec::new();
    loop {
        let begins = *bytes.get(at)?;
        let after = skip_spaces(bytes, at + 1);
        at = match begins {
            b'{' if bytes.get(after) == Some(&b'}') => after + 1,
            b'[' if bytes.get(after) == Some(&b']') => after + 1,
            b'{' => {
                open.push(true);
                at = key_end(bytes, after)?;
                continue;
            }
            b'[' => {
                open.push(false);
                at = after;
                continue;
            }
            b'"' => string_end(bytes, at)?,
            b't' => word_end(bytes, at, b"true")?,
            b'f' => word_end(bytes, at, b"false")?,
            b'n' => word_end(bytes, at, b"null")?,
            _ => number_end(bytes, at)?,
        };
        loop {
            let Some(is_object) = open.last() else { return Some(at) };
            at = skip_spaces(bytes, at);
            match (bytes.get(at)?, is_object) {
                (b',', true) => {
                    at = key_end(bytes, skip_spaces(bytes, at + 1))?;
                    break;
                }
                (b',', false) => {
                    at = skip_spaces(bytes, at + 1);
                    break;
                }
                (b'}', true) | (b']', false) => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

/// The begin of the value after a key and its colon.
fn key_end(bytes: &[u8], at: usize) -> Option<usize> {
    let colon = skip_spaces(bytes, string_end(bytes, at)?);
    (bytes.get(colon) == Some(&b':')).then(|| skip_spaces(bytes, colon + 1))
}

fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match bytes.get(at + 1)? {
                b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                _ => return None,
            },
            ..=0x1F => return None,
            _ => at += 1,
        }
    }
}

fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let digits =
        |at: usize| at + bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = at + usize::from(bytes.get(at) == Some(&b'-'));
    let whole = digits(start);
    if whole == start || bytes[start] == b'0' && whole > start + 1 {
        return None;
    }
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
        if end == whole + 1 {
            return None;
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits(exponent);
        if end == exponent {
            return None;
        }
    }
    Some(end)
}
