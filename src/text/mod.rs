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

mod artifactflow;
mod aside;
mod declared;
mod ending;
mod fenced;
mod function;
mod hermes;
mod invoke;
mod json;
mod letters;
mod limits;
mod loose;
pub mod name;
mod number;
mod opening;
mod parameters;
mod prose;
mod quotation;
mod react;
mod report;
pub mod result;
mod stream;
mod strict;
pub mod tell;
mod token;
mod tree;
mod value;
mod xml;

pub use artifactflow::parse as parse_like_artifactflow;
pub use declared::Find;
pub use limits::{CALL_BYTES, CALLS, DEPTH};
pub use number::guess;
pub use report::Report;
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
    /// `<tool_call>` with a JSON object, as Hermes and Qwen write it.
    Hermes,
    /// `<function=name>` with a JSON object or with `<parameter=key>`, as Llama and Qwen3-Coder write it.
    Function,
    /// `<invoke name="…">` with `<parameter name="…">`.
    Invoke,
    /// A JSON object in a code fence.
    Fenced,
    /// `Action:` and `Action Input:`.
    React,
    /// The same as ArtifactFlow reads it: code fences do not count, values are guessed, what is wrong is dropped.
    ArtifactFlow {
        /// Whether a block that is not XML is searched for what looks like a call.
        fallback: bool,
    },
}

impl Format {
    /// The words for the formats, without ArtifactFlow's.
    pub const WORDS: [&'static str; 7] = ["auto", "xml", "hermes", "function", "invoke", "fenced", "react"];

    /// The format of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "xml" => Self::Xml,
            "hermes" => Self::Hermes,
            "function" => Self::Function,
            "invoke" => Self::Invoke,
            "fenced" => Self::Fenced,
            "react" => Self::React,
            _ => return None,
        })
    }

    /// The dialects that are looked for.
    fn dialects(self) -> &'static [&'static dyn TextFormat] {
        match self {
            // Each is asked in turn; who looks for more than the outer tag comes first.
            Self::Auto => {
                &[&hermes::Hermes, &function::Function, &invoke::Invoke, &xml::Xml, &fenced::Fenced, &react::React]
            }
            Self::Xml => &[&xml::Xml],
            Self::Hermes => &[&hermes::Hermes],
            Self::Function => &[&function::Function],
            Self::Invoke => &[&invoke::Invoke],
            Self::Fenced => &[&fenced::Fenced],
            Self::React => &[&react::React],
            Self::ArtifactFlow { fallback: true } => &[&artifactflow::ArtifactFlow { fallback: true }],
            Self::ArtifactFlow { fallback: false } => &[&artifactflow::ArtifactFlow { fallback: false }],
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

/// A place where a call could begin.
#[derive(Debug, Clone, Copy)]
pub struct At<'t> {
    /// The text from there on, as far as it has come.
    pub rest: &'t str,
    /// What kind of place it is.
    pub spot: Spot,
    /// Whether the message is in this format, because somebody said so or because of a call before.
    pub is_certain: bool,
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

    /// Where the call ends if what has come is all there is: an end that was seen where it was not expected.
    fn second_best(&self) -> Option<usize> {
        None
    }
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

    /// A call that was read from the block.
    #[must_use]
    pub fn call(&self, format: &dyn TextFormat, call: ToolCall) -> ToolCall {
        ToolCall { raw: Some(self.text.to_owned()), format: format.word().into(), ..call }
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
    shifted(from, Place::of(text, byte))
}

/// A place in a text that begins at another.
fn shifted(from: Place, within: Place) -> Place {
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
    /// No call, but text that looks like one; there may be a call in it.
    Prose,
    /// No call, and none in all that follows.
    Rest,
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

    /// Whether calls may only be so long and so many, beyond which they are errors.
    fn is_bounded(&self) -> bool {
        true
    }

    /// Whether calls begin at lines, and not only at tags.
    fn reads_lines(&self) -> bool {
        false
    }

    /// Whether a call ends where a line does.
    fn ends_lines(&self) -> bool {
        false
    }

    /// What a line begins with that only the answer to a call has.
    fn answer(&self) -> Option<&'static str> {
        None
    }

    /// What shows that a message is written in this format, where that is seen only at the end of a call.
    fn tell_tale(&self) -> &'static str {
        "a call was written in it"
    }

    /// Whether a call begins where a text does.
    fn opens(&self, at: At<'_>) -> Opening;

    /// Looks for the end of a call that has begun.
    fn ending(&self, block: &str) -> Box<dyn Ending>;

    /// Whether a block that is too long is nothing but text.
    fn is_only_text(&self, _start: &str) -> bool {
        false
    }

    /// Reads a call that has ended.
    fn read(&self, block: &Block<'_>, find: Option<&Find<'_>>) -> Reading;

    /// What becomes of a block that the text ends in.
    fn cut_off(&self, block: &Block<'_>) -> Reading {
        let what = "it was not run, because the text ends inside of the call";
        let call = block.unreadable(self.as_dyn(), self.name_in(block.text), what, 0);
        Reading::Calls(vec![ToolCall { is_truncated: true, ..call }])
    }

    /// The tool's name in a block that cannot be read, if it is there as a whole; otherwise nothing.
    fn name_in<'t>(&self, _block: &'t str) -> &'t str {
        ""
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
