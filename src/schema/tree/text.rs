//! Schemas as text: written once, read again only by what needs more than to send it.

use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;

use serde::de::Deserialize;
use serde_json::Value;

use super::Node;

/// A schema that is kept as text, the smallest form there is, and as a value once somebody asks for one.
#[derive(Debug, Default)]
pub struct Document {
    /// The schema with what stands around it.
    whole: Box<str>,
    own: Range<usize>,
    value: OnceLock<Box<Value>>,
}

impl Document {
    /// Writes a schema.
    #[must_use]
    pub fn new(schema: &Node) -> Self {
        let mut text = String::with_capacity(1024);
        push(&mut text, schema);
        Self::within(&text, 0..text.len())
    }

    /// The schema that is a part of a text, which is copied.
    pub(in crate::schema) fn within(whole: &str, own: Range<usize>) -> Self {
        Self { whole: whole.into(), own, value: OnceLock::new() }
    }

    /// The schema as compact JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.whole[self.own.clone()]
    }

    /// The text before the schema, the schema, and the text after it.
    pub(in crate::schema) fn parts(&self) -> [&str; 3] {
        [&self.whole[..self.own.start], self.text(), &self.whole[self.own.end..]]
    }

    /// The schema as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| Box::new(read(self.text())))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(formatter, self)
    }
}

/// Adds a value to a text, as compact JSON.
pub(in crate::schema) fn push(text: &mut String, value: &Node) {
    // A string takes all that is written to it.
    let _ = write(text, value);
}

/// Adds a string to a text, as JSON.
pub(in crate::schema) fn push_string(text: &mut String, string: &str) {
    let _ = write_quoted(text, "\"", string, "\"");
}

fn write<W: Write>(out: &mut W, value: &Node) -> fmt::Result {
    match value {
        Node::Null => out.write_str("null"),
        Node::Bool(flag) => out.write_str(if *flag { "true" } else { "false" }),
        Node::Number(number) => out.write_str(number.as_str()),
        Node::String(string) => write_quoted(out, "\"", string, "\""),
        Node::Array(items) => {
            let mut before = "[";
            for item in items {
                out.write_str(before)?;
                write(out, item)?;
                before = ",";
            }
            out.write_str(if items.is_empty() { "[]" } else { "]" })
        }
        Node::Object(entries) => {
            out.write_char('{')?;
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.write_char(',')?;
                }
                write_quoted(out, "\"", key, "\":")?;
                write(out, value)?;
            }
            out.write_char('}')
        }
    }
}

/// Writes a string between what opens and what closes it; where it is inlined, those two are known.
#[inline]
fn write_quoted<W: Write>(out: &mut W, open: &str, string: &str, close: &str) -> fmt::Result {
    out.write_str(open)?;
    match special(string.as_bytes()) {
        None => out.write_str(string)?,
        Some(_) => write_escaped(out, string)?,
    }
    out.write_str(close)
}

fn write_escaped<W: Write>(out: &mut W, string: &str) -> fmt::Result {
    let mut rest = string;
    while let Some(at) = special(rest.as_bytes()) {
        out.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            0x08 => out.write_str("\\b")?,
            0x0c => out.write_str("\\f")?,
            control => write!(out, "\\u{control:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    out.write_str(rest)
}

/// Finds the first byte that JSON has to escape, eight bytes at a time.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // A byte less than what is taken away borrows from its high bit; above the first such byte the answer may be wrong.
        let less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word & HIGHS;
        let is = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
        let found = less(word, 0x20) | is(b'"') | is(b'\\');
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')?;
    Some(words.len() * 8 + at)
}

/// Reads what was written here.
pub(in crate::schema) fn read(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    // How deep it may be was decided where it came from.
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let strings: Vec<String> = ('\0'..='\u{ff}').map(|character| format!("a{character}é\u{1f600}")).collect();
        let schema = json!({"b": [1, 1.5e300, -0.0, [], {}], "a": {"z": null, "y": true}, "\"": strings});
        let document = Document::new(&Node::from(schema.clone()));

        let read = document.value();

        assert_eq!(*read, schema);
        assert_eq!(document.text(), schema.to_string());
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_is() {
        for at in 0..20 {
            for byte in 0..=u8::MAX {
                let mut bytes = [b'!'; 20];
                bytes[at] = byte;

                let found = special(&bytes);

                assert_eq!(found, (byte < 0x20 || byte == b'"' || byte == b'\\').then_some(at), "{byte} at {at}");
            }
        }
    }

    #[test]
    fn depth_is_no_matter() {
        let deep = (0..300).fold(Node::Null, |inner, _| Node::Array(vec![inner]));

        let document = Document::new(&deep);

        assert_eq!(document.value().to_string(), document.text());
    }
}
