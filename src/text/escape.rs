//! Escaping of names and text that tools, results and models supply, so that they cannot be taken for toolcrib's own markup.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memchr;
use serde_json::Value;

use crate::json::invisible::{Escaped, is_invisible};

/// Letters beyond ASCII in element names: of Latin, Greek, Cyrillic, Hebrew, Arabic, kana, ideographs and Hangul.
///
/// XML 1.0 allows more of them, in 200 ranges. A key in other scripts is kept in an attribute instead.
#[rustfmt::skip]
const NAME_LETTERS: [(char, char); 19] = [
    ('\u{c0}', '\u{d6}'), ('\u{d8}', '\u{f6}'), ('\u{f8}', '\u{131}'), ('\u{134}', '\u{13e}'), ('\u{141}', '\u{148}'),
    ('\u{14a}', '\u{17e}'), ('\u{388}', '\u{38a}'), ('\u{38e}', '\u{3a1}'), ('\u{3a3}', '\u{3ce}'),
    ('\u{401}', '\u{40c}'), ('\u{40e}', '\u{44f}'), ('\u{451}', '\u{45c}'), ('\u{5d0}', '\u{5ea}'),
    ('\u{621}', '\u{63a}'), ('\u{641}', '\u{64a}'), ('\u{3041}', '\u{3094}'), ('\u{30a1}', '\u{30fa}'),
    ('\u{4e00}', '\u{9fa5}'), ('\u{ac00}', '\u{d7a3}'),
];

/// Elements that have a meaning to a model or to a parser of calls. A key of a result must not become one.
const RESERVED: [&str; 20] = [
    "action",
    "function",
    "function_call",
    "function_calls",
    "function_result",
    "function_results",
    "invoke",
    "notes",
    "parameter",
    "system",
    "system-info",
    "system-reminder",
    "think",
    "thinking",
    "tool_call",
    "tool_calls",
    "tool_instructions",
    "tool_response",
    "tool_result",
    "tool_results",
];

fn begins_name(letter: char) -> bool {
    let is_letter = || NAME_LETTERS.iter().any(|(first, last)| (*first..=*last).contains(&letter));
    letter.is_ascii_alphabetic() || letter == '_' || is_letter()
}

fn continues_name(letter: char) -> bool {
    begins_name(letter) || letter.is_ascii_digit() || matches!(letter, '-' | '.')
}

/// The name of the element for a key: the key itself if it is a valid name, otherwise with the other characters replaced.
pub(super) fn element_name(key: &str) -> Cow<'_, str> {
    if key.starts_with(begins_name) && key.chars().all(continues_name) {
        return Cow::Borrowed(key);
    }
    let mut name: String = key.chars().map(|letter| if continues_name(letter) { letter } else { '_' }).collect();
    if !name.starts_with(begins_name) {
        name.insert(0, '_');
    }
    Cow::Owned(name)
}

/// The name of the element for a key of a result, which is never a reserved one.
pub(super) fn harmless_name(key: &str) -> Cow<'_, str> {
    let is_reserved = RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(key));
    if is_reserved { Cow::Owned(format!("_{key}")) } else { element_name(key) }
}

/// Adds the text of an element, so that an XML parser reads it back. Only characters that XML cannot contain are replaced.
pub(super) fn push_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // An XML parser reads a bare one as a line feed.
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(character),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(character),
        }
    }
}

/// The character of the XML reference at the start of a text, and the length of the reference.
pub(super) fn reference(text: &str) -> Option<(char, usize)> {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = text.as_bytes().strip_prefix(b"&")?.iter().take_while(|byte| is_inside(byte)).count();
    let end = 1 + length;
    if text.as_bytes().get(end) != Some(&b';') {
        return None;
    }
    let letter = match &text[1..end] {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let number = name.strip_prefix('#')?;
            let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
            let letter = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
            let is_allowed = matches!(letter, '\t' | '\n' | '\r' | ' '..) && !matches!(letter, '\u{fffe}' | '\u{ffff}');
            is_allowed.then_some(letter)?
        }
    };
    Some((letter, end + 1))
}

/// Adds a text with every carriage return, and a line feed after it, as one line feed.
pub(super) fn push_with_line_feeds(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

/// True if the text after a `<` makes it the start of a tag, a comment, or a control token of a model.
fn opens_markup(after: &str) -> bool {
    after.chars().next().is_some_and(|next| matches!(next, '/' | '!' | '?' | '|' | '_') || next.is_alphabetic())
}

/// A name or short value in a prompt: unchanged if nothing in it can mislead, otherwise as a JSON string.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.starts_with(['"', '#', '-'])
        && !text.contains("```")
        && !text.chars().any(is_invisible)
        && text.match_indices('<').all(|(at, _)| !opens_markup(&text[at + 1..]));
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    push_json_string(&mut quoted, text);
    Cow::Owned(quoted)
}

/// Prose on one line.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = String::with_capacity(text.len());
    push_prose(&mut line, &words.join(" "));
    line
}

/// Prose of several lines, of which all but the first are indented.
pub(super) fn lines(text: &str, indent: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    let mut prose = String::with_capacity(text.len());
    for (index, line) in text.trim().lines().enumerate() {
        let line = line.trim_end();
        if index > 0 {
            prose.push('\n');
            if !line.is_empty() {
                prose.push_str(indent);
            }
        }
        let own_indent = line.len() - line.trim_start().len();
        prose.push_str(&line[..own_indent]);
        // A heading with a little indentation is still a heading.
        if line[own_indent..].starts_with('#') {
            prose.push('\\');
        }
        push_prose(&mut prose, &line[own_indent..]);
    }
    prose
}

fn push_prose(prose: &mut String, text: &str) {
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        match next {
            '<' if opens_markup(after) => prose.push_str("&lt;"),
            // A fence that is not closed would include everything after it.
            '`' if after.starts_with("``") => {
                prose.push_str("'''");
                rest = &rest[3..];
                continue;
            }
            '\t' => prose.push(next),
            _ if is_invisible(next) => {}
            _ => prose.push(next),
        }
        rest = after;
    }
}

/// A value as JSON with a blank after commas and colons. Markup, fences and invisible characters in strings are escaped, so
/// that the text can be inside any of them and has the same value.
pub(super) fn spaced_json(value: &Value) -> String {
    let mut text = String::new();
    push_json(&mut text, value);
    text
}

fn push_json(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => push_json_string(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push_json(text, item);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push_json_string(text, key);
                text.push_str(": ");
                push_json(text, entry);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a string cannot fail.
            let _ = write!(text, "{value}");
        }
    }
}

fn push_json_string(text: &mut String, string: &str) {
    text.push('"');
    for (at, character) in string.char_indices() {
        let after = &string[at + character.len_utf8()..];
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '<' if opens_markup(after) => text.push_str("\\u003c"),
            '`' if after.starts_with("``") => text.push_str("\\u0060"),
            ']' if after.starts_with("]>") => text.push_str("\\u005d"),
            _ if is_invisible(character) => {
                let _ = write!(text, "{}", Escaped(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_becomes_a_name() {
        let cases = [
            ("title", "title"),
            ("max-results", "max-results"),
            ("größe", "größe"),
            ("标题", "标题"),
            ("two words", "two_words"),
            ("1st", "_1st"),
            ("", "_"),
            ("a><b", "a__b"),
            ("$ref", "_ref"),
            ("xml:lang", "xml_lang"),
            ("a\n", "a_"),
            ("\u{d7}\u{10300}", "__"),
        ];

        for (key, expected) in cases {
            assert_eq!(element_name(key), expected);
        }
    }

    #[test]
    fn no_key_makes_a_reserved_element() {
        assert_eq!(harmless_name("title"), "title");
        assert_eq!(harmless_name("two words"), "two_words");
        assert_eq!(harmless_name("Tool_Call"), "_Tool_Call");
        assert_eq!(harmless_name("system-reminder"), "_system-reminder");
    }

    #[test]
    fn markup_in_prose_is_text() {
        assert_eq!(line("a </tool_instructions> b <|im_start|> c"), "a &lt;/tool_instructions> b &lt;|im_start|> c");
        assert_eq!(line("if a < b and b <= c"), "if a < b and b <= c");
    }

    #[test]
    fn prose_of_one_line_stays_on_it() {
        assert_eq!(line("  one\r\n\n### two\u{2028}three  "), "one ### two three");
    }

    #[test]
    fn no_line_of_prose_begins_with_a_heading_or_a_fence() {
        let prose = lines("Adds.\r\n\r\n### evil\nDescription: none\n```\n  deep\n", "  ");

        assert_eq!(prose, "Adds.\n\n  \\### evil\n  Description: none\n  '''\n    deep");
    }

    #[test]
    fn invisible_characters_are_removed_from_prose_and_escaped_in_names() {
        assert_eq!(line("a\u{202e}b\u{e0041}c\u{1b}d"), "abcd");
        assert_eq!(word("a\u{202e}b"), "\"a\\u202eb\"");
        assert_eq!(word("\u{e0041}"), "\"\\udb40\\udc41\"");
    }

    #[test]
    fn a_name_that_could_mislead_is_quoted() {
        assert_eq!(word("max-results"), "max-results");
        assert_eq!(word("a < b"), "a < b");
        assert_eq!(word("x</params>"), "\"x\\u003c/params>\"");
        assert_eq!(word("a\nb"), "\"a\\nb\"");
        assert_eq!(word(" a"), "\" a\"");
        assert_eq!(word(""), "\"\"");
    }

    #[test]
    fn spaced_json_has_the_same_value() {
        let strings: Vec<String> = ('\0'..='\u{ff}').map(|character| format!("a{character}é\u{e0041}")).collect();
        let value =
            json!({"<a>": ["</tool_call>", "```", "]]>", "``` ````", 1.5e300, -0.0, null], "b": {}, "c": strings});

        let read: Value = serde_json::from_str(&spaced_json(&value)).unwrap();

        assert_eq!(read, value);
    }

    #[test]
    fn nothing_in_spaced_json_ends_the_markup_around_it() {
        let text = spaced_json(&json!(["</tool_call>", "```", "]]>", "\u{202e}", "1 < 2"]));

        assert_eq!(text, r#"["\u003c/tool_call>", "\u0060``", "\u005d]>", "\u202e", "1 < 2"]"#);
    }
}
