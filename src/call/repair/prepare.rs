//! Mends what the crate that mends the rest would spoil: backslashes that begin no escape, and Python's long strings.

use super::list::List;
use crate::call::RepairKind;

/// The text with every backslash that begins no escape doubled, and every long string as one of JSON.
pub(super) fn prepare(text: &str, list: &mut List) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(start) = next_quote(rest) {
        segment(&rest[..start], &mut out, list);
        let quote = &rest[start..=start];
        let opening = quote.repeat(3);
        let inside = rest[start..].strip_prefix(&opening);
        let is_value = out.trim_end().ends_with([':', ',', '[']);
        if let Some((content, after)) = inside.filter(|_| is_value).and_then(|inside| inside.split_once(&opening)) {
            out.push_str(&serde_json::to_string(content).unwrap_or_default());
            list.add(RepairKind::Quotes, "", "a string in three quotes was read as one of JSON");
            rest = after;
        } else {
            out.push_str(quote);
            rest = &rest[start + 1..];
        }
    }
    segment(rest, &mut out, list);
    out
}

/// The first quote that no backslash stands before.
fn next_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' | b'\'' => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Writes what stands between two quotes.
fn segment(text: &str, out: &mut String, list: &mut List) {
    if !has_foreign_escape(text) {
        out.push_str(text);
        return;
    }
    list.add(RepairKind::Escape, "", "a backslash that begins no escape was doubled");
    let bytes = text.as_bytes();
    let is_path = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'\\';
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let next = bytes.get(at + 1).copied();
        // Nobody means a backspace or a form feed in a text where other backslashes stand for themselves.
        let is_word = matches!(next, Some(b'b' | b'f')) && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic);
        let is_plain = next != Some(b'\\') && (is_path || is_word || !is_escape(&bytes[at + 1..]));
        if is_plain {
            out.push_str(&text[copied..=at]);
            out.push('\\');
            copied = at + 1;
            at += 1;
        } else {
            at += 2;
        }
    }
    out.push_str(&text[copied..]);
}

fn has_foreign_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at.min(bytes.len())..].iter().position(|byte| *byte == b'\\') {
        at += found;
        if !is_escape(&bytes[at + 1..]) {
            return true;
        }
        at += 2;
    }
    false
}

/// Whether what follows a backslash makes an escape of it, in JSON or in a string with single quotes.
fn is_escape(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b'u', digits @ ..] => digits.len() >= 4 && digits[..4].iter().all(u8::is_ascii_hexdigit),
        [byte, ..] => matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'\'' | b'`' | b'\n'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> String {
        prepare(text, &mut List::default())
    }

    #[test]
    fn a_backslash_that_begins_no_escape_is_doubled() {
        assert_eq!(prepared(r#"{"a": "\d+\s\n"}"#), r#"{"a": "\\d+\\s\n"}"#);
        assert_eq!(prepared(r#"{"a": "\u12"}"#), r#"{"a": "\\u12"}"#);
        assert_eq!(prepared(r#"{"a": "\\d \" \u00e4"}"#), r#"{"a": "\\d \" \u00e4"}"#);
    }

    #[test]
    fn a_path_keeps_every_backslash() {
        assert_eq!(prepared(r#"{"a": "C:\dir\new\table"}"#), r#"{"a": "C:\\dir\\new\\table"}"#);
        assert_eq!(prepared(r#"{"a": "\alpha + \beta"}"#), r#"{"a": "\\alpha + \\beta"}"#);
    }

    #[test]
    fn a_long_string_becomes_one_of_json() {
        assert_eq!(prepared("{\"a\": \"\"\"x\n\"y\" \"\"\", 'b': 1}"), "{\"a\": \"x\\n\\\"y\\\" \", 'b': 1}");
        assert_eq!(prepared("{\"a\": \"\", \"b\": \"\"}"), "{\"a\": \"\", \"b\": \"\"}");
    }
}
