//! The names of the formats.

use std::fmt;

/// A format that providers write calls in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// `tool_use` blocks, as Anthropic and AgentScope have them.
    Anthropic,
    /// OpenAI's chat completions, and whoever speaks them.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Gemini's function calls.
    Gemini,
    /// MCP's `tools/call`.
    Mcp,
    /// A name with arguments.
    Bare,
}

impl WireFormat {
    /// All of them, in the order that they are tried.
    pub const ALL: [Self; 6] =
        [Self::Anthropic, Self::OpenAiResponses, Self::Gemini, Self::OpenAi, Self::Mcp, Self::Bare];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::Bare => "bare",
        }
    }

    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if word == "agentscope" {
            return Some(Self::Anthropic);
        }
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
