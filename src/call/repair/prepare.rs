//! The repairs that come before the crate `jsonrepair_rs`, which would get them wrong: invalid escapes, triple-quoted strings
//! and doubled commas.

use super::RepairList;
use super::extract::{end_of_comment, end_of_string};
use crate::call::RepairKind;

/// Repairs invalid escapes, triple-quoted strings and doubled commas.
pub(super) fn prepare(text: &str, list: &mut RepairList) -> String {
    without_doubled_commas(with_valid_strings(text, list), list)
}

/// The text with every invalid escape as a backslash, and every triple-quoted string as a JSON string.
fn with_valid_strings(text: &str, list: &mut RepairList) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(start) = next_quote(rest) {
        push_segment(&rest[..start], &mut out, list);
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
    push_segment(rest, &mut out, list);
    out
}

/// The first quote without a backslash before it.
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

/// Adds the text between two quotes, with its invalid escapes repaired.
fn push_segment(text: &str, out: &mut String, list: &mut RepairList) {
    if !has_invalid_escape(text) {
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
        // In a text with other literal backslashes, `\b` and `\f` before a letter are not a backspace or a form feed.
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

fn has_invalid_escape(text: &str) -> bool {
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

/// True if the text after a backslash makes it a valid escape, in JSON or in a string with single quotes.
fn is_escape(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b'u', digits @ ..] => digits.len() >= 4 && digits[..4].iter().all(u8::is_ascii_hexdigit),
        [byte, ..] => matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'\'' | b'`' | b'\n'),
    }
}

/// The text with one comma between the entries of an object. In a list, where a comma may stand for a missing value, they stay.
fn without_doubled_commas(text: String, list: &mut RepairList) -> String {
    let doubled = doubled_commas(&text);
    if doubled.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for comma in doubled {
        out.push_str(&text[copied..comma]);
        copied = comma + 1;
        list.add(RepairKind::Comma, "", "a comma too many was left out");
    }
    out.push_str(&text[copied..]);
    out
}

/// The positions of the commas in objects that follow another one.
fn doubled_commas(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let (mut brackets, mut found) = (Vec::new(), Vec::new());
    let (mut at, mut is_after_comma) = (0, false);
    // True where a value or a key can begin. Elsewhere a single quote is an apostrophe.
    let mut may_begin = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = end_of_comment(bytes, at);
                continue;
            }
            b'"' => at = end_of_string(bytes, at),
            b'\'' if may_begin => at = end_of_string(bytes, at),
            b',' if is_after_comma && brackets.last() == Some(&b'{') => {
                found.push(at);
                at += 1;
                continue;
            }
            b'{' | b'[' => {
                brackets.push(*byte);
                at += 1;
            }
            b'}' | b']' => {
                brackets.pop();
                at += 1;
            }
            _ => at += 1,
        }
        is_after_comma = *byte == b',';
        may_begin = matches!(byte, b'{' | b'[' | b',' | b':');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> String {
        with_valid_strings(text, &mut RepairList::default())
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

    fn with_single_commas(text: &str) -> String {
        without_doubled_commas(text.to_owned(), &mut RepairList::default())
    }

    #[test]
    fn one_comma_is_left_between_entries() {
        assert_eq!(
            with_single_commas(r#"{"a": 1,, "b": ",,", , /* , */ ,'c,,': 2}"#),
            r#"{"a": 1, "b": ",,",  /* , */ 'c,,': 2}"#
        );
    }

    #[test]
    fn lists_are_left_alone() {
        assert_eq!(with_single_commas(r#"{"a": [1,,2]}"#), r#"{"a": [1,,2]}"#);
    }
}
