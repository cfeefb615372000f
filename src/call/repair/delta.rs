//! Arguments that arrive piece by piece. Each piece is looked at once, so that all of them together take linear time.

use serde_json::{Map, Value};

use super::{MOST_BYTES, Reading, read};
use crate::call::CallError;
use crate::json::parse;

/// Arguments that arrive piece by piece.
///
/// ```
/// use toolcrib::call::repair::ArgumentStream;
///
/// let mut stream = ArgumentStream::default();
/// for delta in ["{\"city\": \"Be", "rn\", \"da", "ys\": 3}"] {
///     stream.feed(delta);
/// }
/// assert_eq!(stream.finish().expect("JSON").arguments["days"], 3);
/// ```
#[derive(Debug, Default)]
pub struct ArgumentStream {
    text: String,
    /// How many bytes came beyond those that are kept.
    excess: usize,
    scanned: usize,
    expected: Expected,
    /// The brackets that are open, as those that close them.
    open: Vec<u8>,
    /// Up to where the text is JSON once what is open is closed.
    shown: Option<usize>,
    start: usize,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expected {
    /// Nothing has begun: all up to the first brace is passed over.
    #[default]
    Start,
    Value,
    /// A value, or the bracket that closes an empty array.
    ValueOrEnd,
    /// A key, or the brace that closes an empty object.
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    /// Inside a string.
    String {
        is_key: bool,
        /// How many bytes of an escape are still to come; one more than it has while its kind is not known.
        escape: u8,
    },
    /// Inside a number or a word.
    Scalar,
    /// The object is complete.
    End,
    /// Not what JSON is: only mending can tell more.
    Broken,
}

impl ArgumentStream {
    /// Takes the next piece.
    pub fn feed(&mut self, delta: &str) {
        let mut room = MOST_BYTES.saturating_sub(self.text.len()).min(delta.len());
        while !delta.is_char_boundary(room) {
            room -= 1;
        }
        self.text.push_str(&delta[..room]);
        self.excess += delta.len() - room;
        while self.scanned < self.text.len() {
            let byte = self.text.as_bytes()[self.scanned];
            self.step(byte);
            self.scanned += 1;
        }
    }

    /// What has arrived so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The arguments as far as they are known: values that are complete, and strings as far as they go. Takes time in
    /// proportion to what has arrived.
    #[must_use]
    pub fn partial(&self) -> Map<String, Value> {
        if self.expected == Expected::Broken {
            return read(&self.text).map(|reading| reading.arguments).unwrap_or_default();
        }
        let Some(shown) = self.shown else { return Map::new() };
        let mut text = self.text[self.start..shown].to_owned();
        if matches!(self.expected, Expected::String { is_key: false, .. }) {
            text.push('"');
        }
        text.extend(self.open.iter().rev().map(|bracket| char::from(*bracket)));
        match parse::parse(&text) {
            Ok((Value::Object(arguments), _)) => arguments,
            _ => Map::new(),
        }
    }

    /// Whether the object is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.expected == Expected::End
    }

    /// Reads all of it: strictly, or mended.
    ///
    /// # Errors
    /// What is wrong with the text, where, and how to write it.
    pub fn finish(&self) -> Result<Reading, CallError> {
        if self.excess > 0 {
            return Err(super::too_large(self.text.len() + self.excess));
        }
        read(&self.text)
    }

    fn step(&mut self, byte: u8) {
        let at = self.scanned;
        if self.expected == Expected::Scalar {
            if !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                return;
            }
            self.shown = Some(at);
            self.expected = Expected::CommaOrEnd;
        }
        match (self.expected, byte) {
            (Expected::Start, b'{') => {
                self.start = at;
                self.open(b'}', Expected::KeyOrEnd);
            }
            (Expected::String { is_key, escape }, byte) => self.in_string(is_key, escape, byte),
            (Expected::Start | Expected::End | Expected::Broken | Expected::Scalar, _)
            | (_, b' ' | b'\n' | b'\r' | b'\t') => {}
            (Expected::Value | Expected::ValueOrEnd, b'{') => self.open(b'}', Expected::KeyOrEnd),
            (Expected::Value | Expected::ValueOrEnd, b'[') => self.open(b']', Expected::ValueOrEnd),
            (Expected::Value | Expected::ValueOrEnd, b'"') => {
                self.expected = Expected::String { is_key: false, escape: 0 };
                self.shown = Some(at + 1);
            }
            (Expected::Value | Expected::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.expected = Expected::Scalar;
            }
            (Expected::Key | Expected::KeyOrEnd, b'"') => {
                self.expected = Expected::String { is_key: true, escape: 0 };
            }
            (Expected::Colon, b':') => self.expected = Expected::Value,
            (Expected::CommaOrEnd, b',') => {
                self.expected = if self.open.last() == Some(&b'}') { Expected::Key } else { Expected::Value };
            }
            (Expected::CommaOrEnd | Expected::KeyOrEnd | Expected::ValueOrEnd, b'}' | b']')
                if self.open.last() == Some(&byte) =>
            {
                self.open.pop();
                self.shown = Some(at + 1);
                self.expected = if self.open.is_empty() { Expected::End } else { Expected::CommaOrEnd };
            }
            _ => self.expected = Expected::Broken,
        }
    }

    fn open(&mut self, closing: u8, expected: Expected) {
        self.open.push(closing);
        self.shown = Some(self.scanned + 1);
        self.expected = expected;
        // Deeper than anything that is read in the end.
        if self.open.len() > 128 {
            self.expected = Expected::Broken;
        }
    }

    fn in_string(&mut self, is_key: bool, escape: u8, byte: u8) {
        let next = match (escape, byte) {
            (0, b'"') => {
                if is_key {
                    self.expected = Expected::Colon;
                } else {
                    self.shown = Some(self.scanned + 1);
                    self.expected = Expected::CommaOrEnd;
                }
                return;
            }
            (0, b'\\') => u8::MAX,
            (0, 0..=0x1F) => {
                self.expected = Expected::Broken;
                return;
            }
            (0, _) => 0,
            // A pair of them may stand for one character, so that the first alone is not shown.
            (u8::MAX, b'u') => 4,
            (u8::MAX, _) => 0,
            (left, _) => left - 1,
        };
        self.expected = Expected::String { is_key, escape: next };
        // Only up to the end of a character, and not between the two halves of a pair.
        if next == 0 && !is_key && self.text.is_char_boundary(self.scanned + 1) && !self.ends_in_half_a_pair() {
            self.shown = Some(self.scanned + 1);
        }
    }

    /// Whether what has been scanned ends with the first half of a surrogate pair.
    fn ends_in_half_a_pair(&self) -> bool {
        let bytes = &self.text.as_bytes()[..=self.scanned];
        let Some(last) = bytes.len().checked_sub(6).map(|start| &bytes[start..]) else { return false };
        last.starts_with(b"\\u")
            && matches!(last[2], b'd' | b'D')
            && matches!(last[3], b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B')
    }
}
