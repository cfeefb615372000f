//! What a tool gave, as providers want to have it back. One file for each of them.

mod anthropic;
mod block;
mod gemini;
mod mcp;
mod openai;
mod responses;

use serde_json::Value;

pub use anthropic::to_anthropic;
pub use gemini::to_gemini;
pub use mcp::to_mcp;
pub use openai::to_openai;
pub use responses::to_openai_responses;

/// A result on its way back.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// The blocks, or plain text.
    pub content: &'a Value,
    /// The value that the text stands for, if there is one.
    pub value: Option<&'a Value>,
    /// Whether the call did not go well.
    pub is_error: bool,
    /// The id of the call that it answers.
    pub id: Option<&'a str>,
    /// Whether that was a call with free text, which OpenAI's responses answer by an item of another type.
    pub is_custom: bool,
    /// The tool's name.
    pub name: Option<&'a str>,
}
