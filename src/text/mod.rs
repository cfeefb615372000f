//! Tool calls that models write in their text, and the prompt texts for models that write them.
//!
//! Read in this order:
//!
//! - this file: [`TextFormat`], the limits, [`parse`];
//! - `parser`: [`Parser`], which splits a message into prose and calls as it arrives;
//! - `prose`, with `quotation`, `aside` and `tag`: the places where a call can begin (not in code, quotes or thoughts);
//! - `format`: one file for each way to write a call: where it begins and ends, and how it is parsed;
//! - `declared_types`: the types that a tool's schema declares, which decide how text becomes a value;
//! - `message`: calls in any source, be it JSON of a provider, a message or text;
//! - [`instructions`], [`result`], `escape`: the texts that a model reads about tools and results.
//!
//! A call that cannot be parsed is a [`ToolCall`] with an error for the model, and never runs.
//!
//! ```
//! use toolcrib::text::{TextFormat, parse};
//!
//! let text = "I look it up. <tool_call><name>weather</name><params><city><![CDATA[Oslo]]></city></params></tool_call>";
//! let calls = parse(text, TextFormat::AUTO, None);
//!
//! assert_eq!(calls[0].name, "weather");
//! assert_eq!(calls[0].arguments["city"], "Oslo");
//! ```

mod aside;
mod declared_types;
mod escape;
mod format;
pub mod instructions;
mod message;
mod parser;
mod prose;
mod quotation;
pub mod result;
mod tag;

pub use declared_types::FindParameters;
pub use message::{CallFormat, read_all_text, read_all_value, read_text, read_value};
pub use parser::{ParseReport, Parser, TextPiece};

use crate::call::{Place, ToolCall};

/// The maximum depth of nested tags in a call.
pub const MAX_DEPTH: usize = 64;

/// The maximum size of one call, in bytes.
pub const MAX_CALL_BYTES: usize = 1 << 20;

/// The maximum number of calls in one message.
pub const MAX_CALLS: usize = 64;

/// The number of bytes that are enough to decide whether a call begins.
const LOOKAHEAD: usize = 512;

/// A way to write calls in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// `<tool_call>` with the elements `name` and `params`, and every value in CDATA.
    Xml,
    /// `<tool_call>` around a JSON object, as Hermes and Qwen models are trained on.
    Hermes,
    /// `<function=name>` around the arguments as JSON or as `<parameter=key>`, as Llama and Qwen3-Coder write it.
    Function,
    /// `<invoke name="…">` with one `<parameter name="…">` for each argument.
    Invoke,
    /// A JSON object in a code fence.
    Fenced,
    /// `Action:` and `Action Input:`, one to a line.
    React,
}

impl TextFormat {
    /// The format of the first call that is certain to be one.
    pub const AUTO: Option<Self> = None;

    /// Every format.
    pub const ALL: [Self; 6] = [Self::Xml, Self::Hermes, Self::Function, Self::Invoke, Self::Fenced, Self::React];

    /// The name of the format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Hermes => "hermes",
            Self::Function => "function",
            Self::Invoke => "invoke",
            Self::Fenced => "fenced",
            Self::React => "react",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }
}

/// Parses the calls in a whole text. `find` gives the parameters of known tools, which declare the types of values.
#[must_use]
pub fn parse(text: &str, format: impl Into<Option<TextFormat>>, find: Option<&FindParameters<'_>>) -> Vec<ToolCall> {
    let mut parser = Parser::new(format);
    let mut pieces = parser.feed(text, find);
    pieces.extend(parser.finish(find));
    let calls = pieces.into_iter().filter_map(|piece| match piece {
        TextPiece::Call(call) => Some(call),
        TextPiece::Text(_) => None,
    });
    calls.collect()
}

/// The place of a byte of a text that begins at `start`.
fn place_after(start: Place, text: &str, byte: usize) -> Place {
    place_within(start, Place::of(text, byte))
}

/// A place within a text that begins at `start`.
fn place_within(start: Place, within: Place) -> Place {
    let column = if within.line == 1 { start.column + within.column - 1 } else { within.column };
    Place { line: start.line + within.line - 1, column }
}

/// The last character boundary at or before a byte.
fn boundary(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
