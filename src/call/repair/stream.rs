//! Arguments that arrive in pieces. Each piece is scanned once, so that all of them together take linear time.

use serde_json::{Map, Value};

use super::{MAX_BYTES, ParsedArguments, read};
use crate::call::CallError;
use crate::json::parse;

/// A parser for arguments that arrive in pieces.
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
    /// The number of bytes beyond the limit, which are not kept.
    excess: usize,
    scanned: usize,
    state: JsonState,
    /// The closing brackets of everything that is open.
    open: Vec<u8>,
    /// The end of the text that is JSON once everything open is closed.
    shown: Option<usize>,
    start: usize,
}

/// The state of the scanner: the syntax that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum JsonState {
    /// Before the first brace, where everything is skipped.
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
        /// The number of bytes that an escape still needs; `u8::MAX` right after the backslash.
        escape: u8,
    },
    /// Inside a number or a word.
    Scalar,
    /// The object is complete.
    End,
    /// Invalid JSON, which has to be repaired.
    Broken,
}

impl ArgumentStream {
    /// Adds the next piece.
    pub fn feed(&mut self, delta: &str) {
        let mut room = MAX_BYTES.saturating_sub(self.text.len()).min(delta.len());
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

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The arguments so far: complete values, and strings as far as they have arrived. Takes time in proportion to the text.
    #[must_use]
    pub fn partial(&self) -> Map<String, Value> {
        if self.state == JsonState::Broken {
            return read(&self.text).map(|parsed| parsed.arguments).unwrap_or_default();
        }
        let Some(shown) = self.shown else { return Map::new() };
        let mut text = self.text[self.start..shown].to_owned();
        if matches!(self.state, JsonState::String { is_key: false, .. }) {
            text.push('"');
        }
        text.extend(self.open.iter().rev().map(|bracket| char::from(*bracket)));
        match parse::parse(&text) {
            Ok((Value::Object(arguments), _)) => arguments,
            _ => Map::new(),
        }
    }

    /// True if the text is one complete object. Text behind it may be more of the arguments.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == JsonState::End
    }

    /// Parses the whole text, with repairs if needed.
    ///
    /// # Errors
    /// If the text cannot be repaired.
    pub fn finish(&self) -> Result<ParsedArguments, CallError> {
        if self.excess > 0 {
            return Err(super::too_large(self.text.len() + self.excess));
        }
        read(&self.text)
    }

    fn step(&mut self, byte: u8) {
        let at = self.scanned;
        if self.state == JsonState::Scalar {
            if !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                return;
            }
            self.shown = Some(at);
            self.state = JsonState::CommaOrEnd;
        }
        match (self.state, byte) {
            (JsonState::Start, b'{') => {
                self.start = at;
                self.open(b'}', JsonState::KeyOrEnd);
            }
            (JsonState::String { is_key, escape }, byte) => self.in_string(is_key, escape, byte),
            (JsonState::Start | JsonState::Broken | JsonState::Scalar, _) | (_, b' ' | b'\n' | b'\r' | b'\t') => {}
            (JsonState::Value | JsonState::ValueOrEnd, b'{') => self.open(b'}', JsonState::KeyOrEnd),
            (JsonState::Value | JsonState::ValueOrEnd, b'[') => self.open(b']', JsonState::ValueOrEnd),
            (JsonState::Value | JsonState::ValueOrEnd, b'"') => {
                self.state = JsonState::String { is_key: false, escape: 0 };
                self.shown = Some(at + 1);
            }
            (JsonState::Value | JsonState::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.state = JsonState::Scalar;
            }
            (JsonState::Key | JsonState::KeyOrEnd, b'"') => {
                self.state = JsonState::String { is_key: true, escape: 0 };
            }
            (JsonState::Colon, b':') => self.state = JsonState::Value,
            (JsonState::CommaOrEnd, b',') => {
                self.state = if self.open.last() == Some(&b'}') { JsonState::Key } else { JsonState::Value };
            }
            (JsonState::CommaOrEnd | JsonState::KeyOrEnd | JsonState::ValueOrEnd, b'}' | b']')
                if self.open.last() == Some(&byte) =>
            {
                self.open.pop();
                self.shown = Some(at + 1);
                self.state = if self.open.is_empty() { JsonState::End } else { JsonState::CommaOrEnd };
            }
            // Also text behind the object, which may be more of the arguments.
            _ => self.state = JsonState::Broken,
        }
    }

    fn open(&mut self, closing: u8, state: JsonState) {
        self.open.push(closing);
        self.shown = Some(self.scanned + 1);
        self.state = state;
        // Deeper than `read` accepts.
        if self.open.len() > 128 {
            self.state = JsonState::Broken;
        }
    }

    fn in_string(&mut self, is_key: bool, escape: u8, byte: u8) {
        let next = match (escape, byte) {
            (0, b'"') => {
                if is_key {
                    self.state = JsonState::Colon;
                } else {
                    self.shown = Some(self.scanned + 1);
                    self.state = JsonState::CommaOrEnd;
                }
                return;
            }
            (0, b'\\') => u8::MAX,
            (0, 0..=0x1F) => {
                self.state = JsonState::Broken;
                return;
            }
            (0, _) => 0,
            // Two of them may be a surrogate pair, of which the first alone is not shown.
            (u8::MAX, b'u') => 4,
            (u8::MAX, _) => 0,
            (left, _) => left - 1,
        };
        self.state = JsonState::String { is_key, escape: next };
        // Only up to the end of a character, and not inside a surrogate pair.
        if next == 0 && !is_key && self.text.is_char_boundary(self.scanned + 1) && !self.ends_in_high_surrogate() {
            self.shown = Some(self.scanned + 1);
        }
    }

    /// True if the scanned text ends with the first half of a surrogate pair.
    fn ends_in_high_surrogate(&self) -> bool {
        let bytes = &self.text.as_bytes()[..=self.scanned];
        let Some(last) = bytes.len().checked_sub(6).map(|start| &bytes[start..]) else { return false };
        last.starts_with(b"\\u")
            && matches!(last[2], b'd' | b'D')
            && matches!(last[3], b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B')
    }
}
