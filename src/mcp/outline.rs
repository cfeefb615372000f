//! The outline of a JSON text: its weight, its depth and its parts, found in one pass before anything is built of it.
//!
//! The weight is the memory that the values would take. The text need not be valid.

use std::ops::Range;

use memchr::memchr2;
use serde_json::{Map, Value};

use crate::json::text::push_string;

/// The largest weight of values that a tree is made of, which takes up to four times as much.
pub(super) const MAX_TREE: usize = 8 << 20;
/// The number of levels up to which a value can be parsed.
pub(super) const MAX_DEPTH: usize = 127;
/// The number of digits up to which Python reads a number.
const MAX_DIGITS: usize = 4300;
/// The reason for which a text is refused that weighs too much.
pub(super) const TOO_MANY_VALUES: &str = "it has too many values";

/// The weights of values: approximate sizes of Python objects.
const SCALAR: usize = 32;
const KEY: usize = 48;
const ARRAY: usize = 96;
const OBJECT: usize = 224;

/// The approximate size of a value, by the same weights as that of a text, with its strings.
pub(super) fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => SCALAR,
        Value::Number(number) => weight_of_scalar(number.as_str().len()),
        Value::String(text) => SCALAR + text.len(),
        Value::Array(items) => ARRAY + items.iter().map(weight_of).sum::<usize>(),
        Value::Object(entries) => weight_of_object(entries),
    }
}

/// The same of an object.
pub(super) fn weight_of_object(entries: &Map<String, Value>) -> usize {
    let entries = entries.iter().map(|(name, value)| KEY + name.len() + weight_of(value));
    OBJECT + entries.sum::<usize>()
}

/// The weight of a number or a word. Python needs time with the square of the digits to read one.
fn weight_of_scalar(length: usize) -> usize {
    let length = length.min(MAX_DIGITS);
    SCALAR + ((length * length) >> 8)
}

/// The result of a scan of JSON text, which need not be valid.
pub(super) struct Outline<'a, const N: usize> {
    /// The texts of members of the outermost object, in the order of the names that were asked for.
    pub(super) members: [Option<&'a str>; N],
    pub(super) weight: usize,
    pub(super) depth: usize,
    /// True if a number has more digits than Python reads.
    has_long_number: bool,
    /// True if the text is one object, closed at its end.
    pub(super) is_whole: bool,
}

impl<const N: usize> Outline<'_, N> {
    /// The reason why no value can be made of the text, apart from its weight.
    pub(super) fn problem(&self) -> Option<String> {
        if self.depth > MAX_DEPTH {
            Some(format!("it is nested more than {MAX_DEPTH} levels deep"))
        } else if self.has_long_number {
            Some(format!("it has a number of more than {MAX_DIGITS} digits"))
        } else {
            None
        }
    }
}

/// Scans a text for the members of its outermost object.
pub(super) fn outline<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Outline<'a, N> {
    let mut members = [None; N];
    let (mut weight, mut depth, mut deepest) = (0, 0_usize, 0);
    let (mut is_whole, mut has_long_number) = (false, false);
    // The member that is being scanned: its place among the names, and the start of its value.
    let mut open: Option<(usize, usize)> = None;
    let mut last_text: Option<Range<usize>> = None;
    for (token, place) in tokens(text) {
        if depth == 1
            && matches!(token, Token::Comma | Token::Close(_))
            && let Some((member, start)) = open.take()
        {
            members[member] = Some(text[start..place.start].trim());
        }
        is_whole = depth == 1 && token == Token::Close(b'}');
        match token {
            Token::Open(bracket) => {
                weight += if bracket == b'[' { ARRAY } else { OBJECT };
                depth += 1;
                deepest = deepest.max(depth);
            }
            Token::Close(_) => depth = depth.saturating_sub(1),
            Token::Colon => {
                // The text before it was a name.
                weight += KEY - SCALAR;
                if depth == 1
                    && open.is_none()
                    && let Some(name) = last_text.clone()
                    && let Some(member) = names.iter().position(|known| *known == &text[name.start + 1..name.end - 1])
                {
                    open = Some((member, place.end));
                }
            }
            Token::Text => weight += SCALAR,
            Token::Scalar => {
                weight += weight_of_scalar(place.len());
                has_long_number |= text[place.clone()].trim_start_matches('-').len() > MAX_DIGITS;
            }
            Token::Comma => {}
        }
        last_text = (token == Token::Text && place.len() > 1).then_some(place);
    }
    // The rest of a text that was cut off.
    if let Some((member, start)) = open {
        members[member] = Some(text[start..].trim());
    }
    let is_whole = is_whole && text.trim_start().starts_with('{');
    Outline { members, weight, depth: deepest, has_long_number, is_whole }
}

/// The elements of the outermost array of a text.
pub(super) fn elements(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut start) = (0_usize, None);
    tokens(text).filter_map(move |(token, place)| {
        let ends = depth == 1 && matches!(token, Token::Comma | Token::Close(_));
        let element = if ends { start.take().map(|start: usize| text[start..place.start].trim()) } else { None };
        if depth == 1 && !ends && start.is_none() {
            start = Some(place.start);
        }
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        element
    })
}

/// The number of members of the outermost object of a text.
pub(super) fn member_count(text: &str) -> usize {
    let mut depth = 0_usize;
    let is_member = |(token, _): &(Token, Range<usize>)| {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        *token == Token::Colon && depth == 1
    };
    tokens(text).filter(is_member).count()
}

/// The text without white space between its values, and without escapes that it does not need.
pub(super) fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    for (token, place) in tokens(text) {
        let part = &text[place];
        let is_escaped = token == Token::Text && part.contains('\\');
        match is_escaped.then(|| serde_json::from_str::<String>(part)) {
            Some(Ok(string)) => push_string(&mut compact, &string),
            _ => compact.push_str(part),
        }
    }
    compact
}

/// A part of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Text,
    /// A number or a word.
    Scalar,
}

/// The tokens of a text and their places. Every text has some; the last one may be cut off.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (Token, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes.get(at..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let start = at;
        let token = match bytes[at] {
            bracket @ (b'[' | b'{') => Token::Open(bracket),
            bracket @ (b']' | b'}') => Token::Close(bracket),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => Token::Text,
            _ => Token::Scalar,
        };
        at = match token {
            Token::Text => end_of_text(bytes, at + 1),
            Token::Scalar => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"[]{},:\"".contains(byte);
                bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length)
            }
            _ => at + 1,
        };
        Some((token, start..at))
    })
}

/// The end of a string that begins before `at`.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_compact_text_are_found_without_a_tree() {
        let text = r#" [ {"a": [1, 2]} , "b,c" ,[] ,-1.5 ] "#;

        assert_eq!(elements(text).collect::<Vec<_>>(), [r#"{"a": [1, 2]}"#, "\"b,c\"", "[]", "-1.5"]);
        assert_eq!(compact(text), r#"[{"a":[1,2]},"b,c",[],-1.5]"#);
        assert_eq!(elements("[]").count() + elements("7").count(), 0);
        assert_eq!(member_count(r#"{"a": {"b": 1}, "c:": [{"d": 2}]}"#), 2);
    }
}
