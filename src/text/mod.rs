//! Tool calls that models write into their text: found as the text comes, read, and mended where that is safe.
//!
//! A [`Parser`] cuts text into prose and calls. How a call is written is a [`TextFormat`]; there is one for each dialect. What
//! cannot be read is a call as well, with an error for the model, and never runs.
//!
//! ```
//! use toolcrib::text::{Format, parse};
//!
//! let text = "I look it up. <tool_call><name>weather</name><params><city><![CDATA[Oslo]]></city></params></tool_call>";
//! let calls = parse(text, Format::Auto, None);
//!
//! assert_eq!(calls[0].name, "weather");
//! assert_eq!(calls[0].arguments["city"], "Oslo");
//! ```

mod declared;
mod ending;
mod letters;
mod limits;
mod loose;
mod number;
mod opening;
mod prose;
mod report;
mod seed;
mod stream;
mod strict;
mod token;
mod tree;
mod value;
mod xml;

pub use declared::Find;
pub use limits::{CALL_BYTES, CALLS, DEPTH};
pub use number::guess;
pub use report::Report;
pub use seed::parse as parse_like_seed;
pub use stream::{Parser, Piece};

use std::fmt;

use crate::call::{CallError, Place, ToolCall};

/// How a model writes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Whichever the first call that is certain to be one is written in.
    Auto,
    /// `<tool_call>` with `<name>` and `<params>`.
    Xml,
    /// The same as the seed reads it: code fences do not count, values are guessed, what is wrong is dropped.
    Seed {
        /// Whether a block that is not XML is searched for what looks like a call.
        fallback: bool,
    },
}

impl Format {
    /// The words for the formats, without the seed's.
    pub const WORDS: [&'static str; 2] = ["auto", "xml"];

    /// The format of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "xml" => Self::Xml,
            _ => return None,
        })
    }

    /// The dialects that are looked for.
    fn dialects(self) -> &'static [&'static dyn TextFormat] {
        match self {
            Self::Auto | Self::Xml => &[&xml::Xml],
            Self::Seed { fallback: true } => &[&seed::Seed { fallback: true }],
            Self::Seed { fallback: false } => &[&seed::Seed { fallback: false }],
        }
    }
}

/// Where in the text a call could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// At a `<`.
    Tag,
    /// At the first letter of a line that is no blank.
    Line,
}

/// Whether a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// No.
    No,
    /// More text will tell; only as long as there are less than 512 bytes of it.
    Unsure,
    /// Yes, because of this.
    Yes(&'static str),
    /// So many bytes are only a wrapper around calls: neither prose nor a call.
    Wrapper(usize),
}

/// Where a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Not yet.
    More,
    /// After so many bytes.
    End {
        /// The bytes.
        length: usize,
        /// Whether it was closed as it should be.
        is_closed: bool,
    },
    /// It was no call: so many bytes are prose.
    Prose {
        /// The bytes.
        length: usize,
    },
}

/// Looks for the end of a call in text that comes piece by piece. It goes on where it was, so that no byte is read twice.
pub trait Ending: fmt::Debug + Send {
    /// Looks on in a block that has grown.
    fn advance(&mut self, block: &str, is_last: bool) -> Found;

    /// How many bytes from the start are not needed any more.
    fn done(&self) -> usize;

    /// Takes that many bytes to be gone.
    fn forget(&mut self, bytes: usize);
}

/// The text of one call.
#[derive(Debug, Clone, Copy)]
pub struct Block<'t> {
    /// From its first to its last byte.
    pub text: &'t str,
    /// Where it begins in the message.
    pub place: Place,
    /// Whether it was closed as it should be.
    pub is_closed: bool,
    /// Whether the format was not asked for, but found.
    pub is_guess: bool,
}

impl Block<'_> {
    /// Where in the message a byte of the block is.
    #[must_use]
    pub fn place_of(&self, byte: usize) -> Place {
        moved(self.place, self.text, byte)
    }

    /// A call that never runs, because of something at a byte of the block.
    #[must_use]
    pub fn unreadable(&self, format: &dyn TextFormat, name: &str, what: impl Into<String>, byte: usize) -> ToolCall {
        let error = CallError::new(what, format.how()).at(self.place_of(byte));
        ToolCall { raw: Some(self.text.to_owned()), format: format.word().into(), ..ToolCall::unreadable(name, error) }
    }
}

/// The place after so many bytes of a text that begins at another.
fn moved(from: Place, text: &str, byte: usize) -> Place {
    let within = Place::of(text, byte);
    let column = if within.line == 1 { from.column + within.column - 1 } else { within.column };
    Place { line: from.line + within.line - 1, column }
}

/// The last boundary of a character that is not behind a byte.
fn boundary(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What a block turned out to be.
#[derive(Debug)]
pub enum Reading {
    /// Calls, in their order.
    Calls(Vec<ToolCall>),
    /// No call, but text that looks like one.
    Prose,
}

/// A way to write calls into text.
pub trait TextFormat: fmt::Debug + Sync {
    /// The word for it.
    fn word(&self) -> &'static str;

    /// How a call is written, told to a model that wrote one wrong.
    fn how(&self) -> &'static str;

    /// Whether text in code and quotes counts as well.
    fn reads_code(&self) -> bool {
        false
    }

    /// Whether calls begin at lines, and not only at tags.
    fn reads_lines(&self) -> bool {
        false
    }

    /// Whether a call ends where a line does.
    fn ends_lines(&self) -> bool {
        false
    }

    /// What shows that a message is written in this format, where that is seen only at the end of a call.
    fn tell_tale(&self) -> &'static str {
        "a call was written in it"
    }

    /// Whether a call begins where a text does.
    fn opens(&self, rest: &str, spot: Spot, is_last: bool) -> Opening;

    /// Looks for the end of a call that has begun.
    fn ending(&self, block: &str) -> Box<dyn Ending>;

    /// Reads a call that has ended.
    fn read(&self, block: &Block<'_>, find: Option<&Find<'_>>) -> Reading;

    /// What becomes of a block that the text ends in.
    fn cut_off(&self, block: &Block<'_>) -> Reading {
        let what = "the text ends before the call does, so that it was not run";
        let call = block.unreadable(self.as_dyn(), "", what, 0);
        Reading::Calls(vec![ToolCall { is_truncated: true, ..call }])
    }

    /// The same as an object.
    fn as_dyn(&self) -> &dyn TextFormat;
}

/// Finds the calls in a whole text.
#[must_use]
pub fn parse(text: &str, format: Format, find: Option<&Find<'_>>) -> Vec<ToolCall> {
    let mut parser = Parser::new(format);
    let mut pieces = parser.feed(text, find);
    pieces.extend(parser.finish(find));
    let calls = pieces.into_iter().filter_map(|piece| if let Piece::Call(call) = piece { Some(call) } else { None });
    calls.collect()
}
