//! The ways to write a call in text.
//!
//! A format implements [`CallSyntax`]: `opens` recognises the start of a call, an [`EndFinder`] finds its end while the text
//! arrives, and `read` parses the block in between.
//!
//! - `xml`: `<tool_call>` with elements, parsed by `elements` (tags into a tree, forgotten closing tags included) and
//!   `values` (elements into JSON values);
//! - `tagged`: `<function=…>` and `<invoke name="…">` with one tag for each parameter;
//! - `json`: `<tool_call>` around JSON, and the JSON of the other formats;
//! - `fenced`, `react`: a code fence with JSON, and lines that begin with `Action:`.

mod elements;
mod fenced;
mod json;
mod react;
mod tagged;
mod values;
mod xml;

use std::fmt;

pub(super) use json::{beside_arguments, key_beside_arguments};

use super::declared_types::FindParameters;
use super::{TextFormat, boundary, place_after, place_within};
use crate::call::{CallError, Place, ToolCall};

/// The syntaxes in the order in which they are tried: one that looks at more than the outer tag comes before those that do not.
pub(super) const SYNTAXES: [&dyn CallSyntax; 6] =
    [&json::Hermes, &tagged::FUNCTION, &tagged::INVOKE, &xml::Xml, &fenced::Fenced, &react::React];

/// The syntax of a format.
pub(super) fn syntax_of(format: TextFormat) -> &'static dyn CallSyntax {
    match format {
        TextFormat::Xml => &xml::Xml,
        TextFormat::Hermes => &json::Hermes,
        TextFormat::Function => &tagged::FUNCTION,
        TextFormat::Invoke => &tagged::INVOKE,
        TextFormat::Fenced => &fenced::Fenced,
        TextFormat::React => &react::React,
    }
}

/// A position in the text where a call can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    /// A `<`.
    Tag,
    /// The first character of a line that is not blank.
    Line,
}

/// A possible start of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'t> {
    /// The text from there on, as far as it has arrived.
    pub(super) rest: &'t str,
    pub(super) kind: StartKind,
    /// True if the format of the message is known: it was asked for, or a call before was written in it.
    pub(super) is_certain: bool,
}

/// The answer of a format about a possible start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// No call begins.
    No,
    /// More text is needed. Only given for fewer than `LOOKAHEAD` bytes.
    Unsure,
    /// A call begins; the text says why.
    Yes(&'static str),
    /// This many bytes are a wrapper around calls, neither prose nor a call.
    Wrapper(usize),
}

/// The end of a call, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEnd {
    /// It has not arrived.
    Pending,
    /// The call has this many bytes.
    After {
        length: usize,
        /// True if the call was closed properly.
        is_closed: bool,
    },
    /// It is not a call: this many bytes are prose.
    Prose { length: usize },
}

/// A search for the end of a call in text that arrives in pieces. It resumes where it stopped, so that no byte is read twice.
pub(super) trait EndFinder: fmt::Debug + Send {
    /// Continues in a block that has grown.
    fn advance(&mut self, block: &str, is_last: bool) -> BlockEnd;

    /// The number of bytes from the start that are no longer needed.
    fn done(&self) -> usize;

    /// Adjusts the positions after that many bytes were removed from the start.
    fn forget(&mut self, bytes: usize);

    /// The end of the call if no more text arrives: a closing tag at an unexpected place.
    fn second_best(&self) -> Option<usize> {
        None
    }
}

/// The text of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallBlock<'t> {
    pub(super) text: &'t str,
    /// The place of the block in the message.
    pub(super) place: Place,
    /// True if the block was closed properly.
    pub(super) is_closed: bool,
    /// True if the format was detected and not asked for.
    pub(super) is_guess: bool,
}

impl CallBlock<'_> {
    /// The place of a byte of the block in the message.
    fn place_of(&self, byte: usize) -> Place {
        place_after(self.place, self.text, byte)
    }

    /// A call that was parsed from the block.
    fn call(&self, syntax: &dyn CallSyntax, call: ToolCall) -> ToolCall {
        ToolCall { raw: Some(self.text.to_owned()), format: syntax.name().into(), ..call }
    }

    /// A call that never runs, because of a problem at a byte of the block.
    fn unreadable(&self, syntax: &dyn CallSyntax, name: &str, what: impl Into<String>, byte: usize) -> ToolCall {
        let error = CallError::new(what, syntax.usage()).at(self.place_of(byte));
        ToolCall { raw: Some(self.text.to_owned()), format: syntax.name().into(), ..ToolCall::unreadable(name, error) }
    }

    /// A call that never runs, because the text ends inside it.
    fn truncated(&self, syntax: &dyn CallSyntax) -> ToolCall {
        let what = "it was not run, because the text ends inside of the call";
        let call = self.unreadable(syntax, syntax.name_in(self.text), what, 0);
        ToolCall { is_truncated: true, ..call }
    }
}

/// The result of parsing a block.
#[derive(Debug)]
pub(super) enum BlockReading {
    /// Calls, in their order.
    Calls(Vec<ToolCall>),
    /// Text that looks like a call but is not one. There may be a call inside it.
    Prose,
}

/// The syntax of one format.
pub(super) trait CallSyntax: fmt::Debug + Sync {
    /// The name of the format.
    fn name(&self) -> &'static str;

    /// Instructions for a model that wrote an invalid call.
    fn usage(&self) -> &'static str;

    /// The start of a line that only the result of a call has. A model that writes one has made the result up.
    fn result_prefix(&self) -> Option<&'static str> {
        None
    }

    /// The reason why a message is in this format, where that is known only at the end of a call.
    fn evidence(&self) -> &'static str {
        "a call was written in it"
    }

    /// Decides whether a call begins.
    fn opens(&self, start: Start<'_>) -> Opening;

    /// Starts the search for the end of a call.
    fn end_finder(&self, block: &str) -> Box<dyn EndFinder>;

    /// True if a block that is too long to be a call is prose.
    fn is_only_text(&self, _start: &str) -> bool {
        false
    }

    /// Parses a complete call.
    fn read(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading;

    /// Decides about a block in which the text ends: a call of which only the closing tag is missing is complete.
    fn cut_off(&self, block: &CallBlock<'_>, _find: Option<&FindParameters<'_>>) -> BlockReading {
        BlockReading::Calls(vec![block.truncated(self.as_dyn())])
    }

    /// The tool's name in a block that cannot be parsed, if it is complete; otherwise empty.
    fn name_in<'t>(&self, _block: &'t str) -> &'t str {
        ""
    }

    /// `self` as a trait object.
    fn as_dyn(&self) -> &dyn CallSyntax;
}
