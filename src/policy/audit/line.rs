//! JSON on one line that is one line to every reader.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Compact JSON, in which letters are escaped that do something else than stand there.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_disguised) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut letters = from.chars();
            let mut units = [0; 2];
            for unit in letters.next().map_or(&mut [][..], |letter| letter.encode_utf16(&mut units)) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Control characters, and those that break lines, turn the direction of writing, or take no room.
fn is_disguised(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

pub(super) fn one_line(value: &Value) -> String {
    let mut bytes = Vec::with_capacity(256);
    // Writing a value to memory does not fail, and what is written is UTF-8.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, OneLine));
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn letters_that_are_more_than_letters_are_escaped() {
        let line = one_line(&json!({"a\u{202e}b": "x\ny\u{85}\u{2028}\u{e0041}é😀"}));

        assert_eq!(line, r#"{"a\u202eb":"x\ny\u0085\u2028\udb40\udc41é😀"}"#);
    }

    proptest! {
        #[test]
        fn a_line_is_json_of_the_same_value(key: String, text in "\\PC*|[\u{0}-\u{2100}]*", number: f64) {
            let value = json!({ key: [text, number, null, true, {}] });

            let line = one_line(&value);

            prop_assert!(!line.contains(is_disguised));
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
