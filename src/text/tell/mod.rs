//! Tells a model in words which tools there are, and how to write a call of one.

mod call;
mod document;
mod example;
mod frame;
mod json;
mod kind;
mod safe;
mod words;

pub use call::write_call;
pub use frame::frame;

pub(in crate::text) use json::spaced;
pub(in crate::text) use safe::word;

use crate::schema::Document;

/// The element that all of it stands in.
const TAG: &str = "tool_instructions";

/// The ways to write a call in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `<tool_call>` with the elements `name` and `params`, and every value in CDATA.
    Xml,
    /// `<tool_call>` around a JSON object, as Hermes and Qwen models are trained on.
    Hermes,
    /// `<function=name>` around the arguments as JSON, as Llama models are trained on.
    Function,
    /// `<invoke name="…">` with one `<parameter name="…">` for each argument.
    Invoke,
    /// A JSON object in a code fence.
    Fenced,
    /// `Action:` and `Action Input:`, one to a line.
    React,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Xml, Self::Hermes, Self::Function, Self::Invoke, Self::Fenced, Self::React];

    /// The word for it.
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

    /// The form that a word stands for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == word)
    }
}

/// What a model is to know about one tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts<'a> {
    /// The name that it is called by.
    pub name: &'a str,
    /// What it does; may be empty.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub parameters: &'a Document,
}

/// Writes what a model needs to know to call these tools: the same text, byte for byte, for the same tools.
///
/// What a tool says of itself cannot break the structure: markup in it is escaped, and only headings of ours begin a line.
#[must_use]
pub fn instructions(form: Form, tools: &[ToolFacts<'_>]) -> String {
    let (documents, nested): (Vec<String>, Vec<bool>) = tools.iter().map(|tool| document::document(form, tool)).unzip();
    frame(form, &documents, nested.contains(&true))
}
