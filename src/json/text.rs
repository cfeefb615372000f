//! JSON text: the compact writer, and documents that are kept as text and parsed on demand.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;
use std::sync::OnceLock;

use serde::de::Deserialize;
use serde_json::Value;

use super::node::Node;

/// A schema that is kept as text, the smallest form, and parsed on first use of its value.
#[derive(Debug, Default)]
pub struct Document {
    /// The schema and the text around it.
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

    /// The schema that is a part of a longer text.
    pub(crate) fn within(whole: &str, own: Range<usize>) -> Self {
        Self { whole: whole.into(), own, value: OnceLock::new() }
    }

    /// The schema as compact JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.whole[self.own.clone()]
    }

    /// The text before the schema, the schema, and the text after it.
    pub(crate) fn parts(&self) -> [&str; 3] {
        [&self.whole[..self.own.start], self.text(), &self.whole[self.own.end..]]
    }

    /// The schema as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| Box::new(read(self.text())))
    }
}

/// JSON text with the escapes of lone surrogates replaced by that of U+FFFD; none if it has none.
///
/// Programs that cut a text in the middle of a character write such halves, and no parser of UTF-8 reads them.
pub(crate) fn without_lone_surrogates(text: &str) -> Option<String> {
    let surrogate = |text: &str| {
        let unit = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(unit, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let mut whole = None;
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        let rest = &text[at..];
        let is_pair = |high| high < 0xdc00 && surrogate(&rest[6..]).is_some_and(|low| low >= 0xdc00);
        match surrogate(rest) {
            Some(high) if is_pair(high) => at += 12,
            Some(_) => {
                let whole = whole.get_or_insert_with(|| String::with_capacity(text.len()));
                whole.push_str(&text[kept..at]);
                whole.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            // Two backslashes are an escape, too. What follows the last one may have several bytes.
            None => at += if rest.starts_with("\\\\") { 2 } else { 1 },
        }
    }
    whole.map(|mut whole| {
        whole.push_str(&text[kept..]);
        whole
    })
}

/// Appends a value as compact JSON.
pub(crate) fn push(text: &mut String, value: &Node) {
    match value {
        Node::Null => text.push_str("null"),
        Node::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Node::Number(number) => text.push_str(number.as_str()),
        Node::String(string) => push_string(text, string),
        Node::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push(text, item);
            }
            text.push(']');
        }
        Node::Object(entries) => {
            text.push('{');
            for (index, (key, value)) in entries.as_slice().iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                match key {
                    // A keyword of ours, which needs no escapes.
                    Cow::Borrowed(word) => push_word(text, word),
                    Cow::Owned(key) => {
                        push_string(text, key);
                        text.push(':');
                    }
                }
                push(text, value);
            }
            text.push('}');
        }
    }
}

/// Appends a string as JSON.
pub(crate) fn push_string(text: &mut String, string: &str) {
    text.reserve(string.len() + 3);
    text.push('"');
    match special(string.as_bytes()) {
        None => text.push_str(string),
        Some(at) => push_escaped(text, string, at),
    }
    text.push('"');
}

/// Appends a key that needs no escapes.
#[inline]
fn push_word(text: &mut String, word: &str) {
    debug_assert!(special(word.as_bytes()).is_none(), "{word} is not a keyword");
    text.reserve(word.len() + 3);
    text.push('"');
    text.push_str(word);
    text.push('"');
    text.push(':');
}

#[cold]
fn push_escaped(text: &mut String, string: &str, first: usize) {
    let (mut rest, mut found) = (string, Some(first));
    while let Some(at) = found {
        text.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x08 => text.push_str("\\b"),
            0x0c => text.push_str("\\f"),
            control => _ = write!(text, "\\u{control:04x}"),
        }
        rest = &rest[at + 1..];
        found = special(rest.as_bytes());
    }
    text.push_str(rest);
}

/// Finds the first byte that JSON has to escape.
///
/// Blocks are tested at once, which the compiler vectorizes, and the last one overlaps the one before it, so that bytes are searched
/// one by one only behind a block with a hit.
fn special(bytes: &[u8]) -> Option<usize> {
    let blocks = bytes.as_chunks::<16>().0;
    let plain = 16 * blocks.iter().take_while(|block| is_plain(block)).count();
    let is_rest_plain = match bytes.len() {
        _ if plain < 16 * blocks.len() => false,
        16.. => bytes.last_chunk::<16>().is_some_and(is_plain),
        8.. => bytes.first_chunk::<8>().is_some_and(is_plain) && bytes.last_chunk::<8>().is_some_and(is_plain),
        4.. => bytes.first_chunk::<4>().is_some_and(is_plain) && bytes.last_chunk::<4>().is_some_and(is_plain),
        _ => false,
    };
    if is_rest_plain {
        return None;
    }
    bytes[plain..].iter().position(|byte| is_special(*byte)).map(|at| plain + at)
}

/// True if no byte of a block has to be escaped.
#[inline]
fn is_plain<const SIZE: usize>(block: &[u8; SIZE]) -> bool {
    !block.iter().fold(false, |any, byte| any | is_special(*byte))
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Parses text that was written here.
pub(crate) fn read(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    // The depth was limited where the value came from.
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_halves_of_characters_are_replaced() {
        let cases = [
            (r#""a\ud83db""#, Some(r#""a\ufffdb""#)),
            (r#""\uDE00\ud83d\ud83D\ude00""#, Some(r#""\ufffd\ufffd\ud83D\ude00""#)),
            (r#""\\\ud83d""#, Some(r#""\\\ufffd""#)),
            (r#""\\ud83d""#, None),
            (r#""\ud83d\ude00 \u00e9 \n é""#, None),
            (r"\ud83", None),
            (r"\u+d83\é", None),
            ("\\", None),
        ];
        for (text, whole) in cases {
            assert_eq!(without_lone_surrogates(text).as_deref(), whole, "{text}");
        }
    }

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
    fn a_special_byte_is_found_at_any_place() {
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
    fn depth_is_not_limited() {
        let deep = (0..300).fold(Node::Null, |inner, _| Node::Array(vec![inner]));

        let document = Document::new(&deep);

        assert_eq!(document.value().to_string(), document.text());
    }
}
