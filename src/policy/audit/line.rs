//! JSON on one line that is one line to every reader.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::json::invisible::{Escaped, is_invisible};

/// Compact JSON, in which letters are escaped that do something else than stand there.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_invisible) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut letters = from.chars();
            if let Some(letter) = letters.next() {
                write!(writer, "{}", Escaped(letter))?;
            }
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
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

            prop_assert!(!line.contains(is_invisible));
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
