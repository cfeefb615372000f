//! JSON as people write it, which nothing around it can misread.

use std::fmt::Write as _;

use serde_json::Value;

use super::safe::opens_markup;
use crate::json::invisible::{Escaped, is_invisible};

/// A value as JSON with a blank after commas and colons. Markup, fences and hidden characters in strings are escaped, so that
/// the text may stand in any of them and still says the same.
pub(in crate::text) fn spaced(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

/// A string in the same way.
pub(super) fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    push_string(&mut text, string);
    text
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => push_string(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push_string(text, key);
                text.push_str(": ");
                push(text, entry);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // A string takes all that is written to it.
            let _ = write!(text, "{value}");
        }
    }
}

fn push_string(text: &mut String, string: &str) {
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
    fn it_says_the_same_as_any_other_json() {
        let strings: Vec<String> = ('\0'..='\u{ff}').map(|character| format!("a{character}é\u{e0041}")).collect();
        let value =
            json!({"<a>": ["</tool_call>", "```", "]]>", "``` ````", 1.5e300, -0.0, null], "b": {}, "c": strings});

        let read: Value = serde_json::from_str(&spaced(&value)).unwrap();

        assert_eq!(read, value);
    }

    #[test]
    fn nothing_in_it_ends_what_is_around_it() {
        let text = spaced(&json!(["</tool_call>", "```", "]]>", "\u{202e}", "1 < 2"]));

        assert_eq!(text, r#"["\u003c/tool_call>", "\u0060``", "\u005d]>", "\u202e", "1 < 2"]"#);
    }
}
