//! Text and names of others inside of elements of ours.

use std::borrow::Cow;

use crate::text::name::element_name;

/// The elements that mean something to a model or to a reader of calls: no key of a result may make one.
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

/// Adds text to an element, so that it is read back as it was: only what XML cannot hold at all is replaced.
pub(super) fn push_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader takes it for a line break unless it is spelt out.
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(character),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(character),
        }
    }
}

/// The name of the element for a key, which means nothing but the key.
pub(super) fn harmless_name(key: &str) -> Cow<'_, str> {
    let is_reserved = RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(key));
    if is_reserved { Cow::Owned(format!("_{key}")) } else { element_name(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_makes_an_element_that_means_something() {
        assert_eq!(harmless_name("title"), "title");
        assert_eq!(harmless_name("two words"), "two_words");
        assert_eq!(harmless_name("Tool_Call"), "_Tool_Call");
        assert_eq!(harmless_name("system-reminder"), "_system-reminder");
    }
}
