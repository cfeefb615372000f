//! The repairs that come before the crate `jsonrepair_rs`, which would get them wrong: the text around the object, invalid
//! escapes, triple-quoted strings and doubled commas.

use super::RepairList;
use crate::call::RepairKind;

/// The object in a text, and the kinds of text around it.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(super) struct Extraction<'a> {
    /// The text from the first brace to the one that closes it, or to the end.
    pub(super) object: &'a str,
    pub(super) had_fence: bool,
    pub(super) had_prose: bool,
    /// The object is in quotes, as JSON text in a JSON string is.
    pub(super) was_quoted: bool,
    /// There is another object after it.
    pub(super) has_another: bool,
}

/// Finds the object in a text; `None` if there is none.
pub(super) fn extract(text: &str) -> Option<Extraction<'_>> {
    let start = text.find('{')?;
    let end = start + end_of_object(&text[start..]);
    let (before, object, after) = (&text[..start], &text[start..end], &text[end..]);
    let had_fence = before.contains("```");
    let before = without_fence(before.trim_start_matches('\u{feff}'));
    let after = after.trim().trim_start_matches(['}', ']', ';', ',']).trim();
    let after = if had_fence { after.replacen("```", "", 1) } else { after.to_owned() };
    let is_quote = |text: &str| matches!(text, "\"" | "'" | "`");
    let was_quoted = is_quote(before.trim());
    let had_prose = !was_quoted && !before.trim().is_empty() || !after.trim().is_empty() && !is_quote(after.trim());
    // Surplus brackets are repaired with the object, if nothing else follows it.
    let object = if after.trim().is_empty() && !was_quoted && !had_fence { &text[start..] } else { object };
    Some(Extraction { object, had_fence, had_prose, was_quoted, has_another: after.contains('{') })
}

/// The text before an object, without the opening of a code fence.
fn without_fence(before: &str) -> String {
    let Some(fence) = before.rfind("```") else { return before.to_owned() };
    let rest = before[fence..].trim_start_matches('`');
    let word = rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    format!("{}{word}", &before[..fence])
}

/// The end of the object at the start of a text: after the brace that closes it, or the end of the text.
fn end_of_object(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    // True where a value or a key can begin. Elsewhere a single quote is an apostrophe.
    let mut may_begin = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                may_begin = false;
                continue;
            }
            b'\'' if may_begin => {
                at = end_of_string(bytes, at);
                may_begin = false;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = end_of_comment(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        may_begin = matches!(byte, b'{' | b'[' | b',' | b':') || may_begin && byte.is_ascii_whitespace();
        at += 1;
    }
    text.len()
}

/// The end of a string: after its closing quote, or the end of the text.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a comment that begins with two characters.
pub(super) fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[(start + 2).min(bytes.len())..];
    let is_line = bytes.get(start + 1) != Some(&b'*');
    let length = if is_line {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

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

    fn object(text: &str) -> Option<&str> {
        extract(text).map(|found| found.object)
    }

    #[test]
    fn words_and_fences_are_cut_off() {
        assert_eq!(object("Sure, here it is:\n{\"a\": \"}\"} Done."), Some("{\"a\": \"}\"}"));
        assert_eq!(object("```json\n{\"a\": 1}\n```"), Some("{\"a\": 1}"));
        assert_eq!(object("{'a': 'it\\'s }', 'b': 1} that's it"), Some("{'a': 'it\\'s }', 'b': 1}"));
        assert_eq!(object("nothing"), None);
    }

    #[test]
    fn what_was_cut_off_is_known() {
        let fenced = extract("```json\n{\"a\": 1}\n```");
        let introduced = extract("Here: {\"a\": 1}");
        let quoted = extract("\"{\\\"a\\\": 1}");

        assert!(fenced.is_some_and(|found| found.had_fence && !found.had_prose));
        assert!(introduced.is_some_and(|found| found.had_prose && !found.had_fence));
        assert!(quoted.is_some_and(|found| found.was_quoted && !found.had_prose));
        assert!(extract("{\"a\": 1} {\"a\": 2}").is_some_and(|found| found.has_another));
    }

    #[test]
    fn an_object_without_an_end_goes_to_the_end() {
        assert_eq!(object("x {\"a\": [1, 2"), Some("{\"a\": [1, 2"));
    }
}
