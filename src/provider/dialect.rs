//! Declarations of tools for each provider, with the schema of the parameters restricted to what it accepts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{anthropic, bedrock, gemini, mcp, openai};
use crate::schema::dialect::{self, Codec, Encoded, Loss};
use crate::schema::{Document, FunctionSchema};

/// A provider's form of tool declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions, and compatible services.
    OpenAi,
    /// The same in strict mode, in which the model can only write arguments that fit.
    OpenAiStrict,
    /// OpenAI's responses.
    OpenAiResponses,
    /// The same in strict mode.
    OpenAiResponsesStrict,
    /// Anthropic's messages.
    Anthropic,
    /// Google's function declarations, a subset of `OpenAPI` 3.0.
    Gemini,
    /// Amazon Bedrock's Converse.
    Bedrock,
    /// The list of an MCP server.
    Mcp,
}

/// A tool in a dialect.
#[derive(Debug)]
pub struct Declaration {
    /// The name that the provider accepts.
    pub name: String,
    /// The declaration to send.
    pub value: Value,
    /// The conversion of arguments back to the original schema.
    pub codec: Codec,
    /// The parts of the schema that the dialect cannot express.
    pub report: Vec<Loss>,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 8] = [
        Dialect::OpenAi,
        Dialect::OpenAiStrict,
        Dialect::OpenAiResponses,
        Dialect::OpenAiResponsesStrict,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Bedrock,
        Dialect::Mcp,
    ];

    /// The name of the dialect.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiStrict => "openai_strict",
            Self::OpenAiResponses => "openai_responses",
            Self::OpenAiResponsesStrict => "openai_responses_strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Mcp => "mcp",
        }
    }

    /// The dialect of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The position in [`Dialect::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Encodes the parameters of a tool.
    #[must_use]
    pub fn encode(self, parameters: &Arc<Document>) -> Encoded {
        match self {
            Self::OpenAi | Self::OpenAiResponses => dialect::encode_light(parameters, &openai::PARAMETERS),
            Self::OpenAiStrict | Self::OpenAiResponsesStrict => {
                dialect::encode(parameters, &openai::STRICT_CAPABILITIES)
            }
            Self::Anthropic => dialect::encode_light(parameters, &anthropic::PARAMETERS),
            Self::Gemini => dialect::encode(parameters, &gemini::CAPABILITIES),
            Self::Bedrock => dialect::encode_light(parameters, &bedrock::PARAMETERS),
            Self::Mcp => dialect::encode_light(parameters, &mcp::PARAMETERS),
        }
    }

    /// The name of a tool as the provider accepts it: the same, or one made of it that no other tool's name gives.
    #[must_use]
    pub fn tool_name(self, name: &str) -> String {
        let is_name = match self {
            Self::OpenAi | Self::OpenAiStrict | Self::OpenAiResponses | Self::OpenAiResponsesStrict => openai::is_name,
            Self::Anthropic => anthropic::is_name,
            Self::Gemini => gemini::is_name,
            Self::Bedrock => bedrock::is_name,
            Self::Mcp => mcp::is_name,
        };
        dialect::safe_name(name, is_name).into_owned()
    }

    /// Declares a tool.
    #[must_use]
    pub fn declare(self, tool: &str, schema: &FunctionSchema) -> Declaration {
        let Encoded { schema: parameters, codec, mut report } = self.encode(schema.parameters());
        let name = self.tool_name(tool);
        let mut function = Map::new();
        function.insert("name".to_owned(), Value::from(name.as_str()));
        let mut description = schema.description();
        if name != tool {
            report.insert(0, dialect::renamed(tool, &name));
            description = Some(dialect::joined([description.unwrap_or_default(), dialect::full_name(tool)]));
        }
        if let Some(description) = description {
            function.insert("description".to_owned(), Value::from(description));
        }
        let value = match self {
            Self::OpenAi => openai::chat_tool(function, parameters, false),
            Self::OpenAiStrict => openai::chat_tool(function, parameters, true),
            Self::OpenAiResponses => openai::responses_tool(function, parameters, false),
            Self::OpenAiResponsesStrict => openai::responses_tool(function, parameters, true),
            Self::Anthropic => anthropic::tool(function, parameters),
            Self::Gemini => gemini::declaration(function, parameters),
            Self::Bedrock => bedrock::tool(function, &parameters),
            Self::Mcp => mcp::tool(function, parameters),
        };
        Declaration { name, value, codec, report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_name_stays_and_an_invalid_one_becomes_valid() {
        for name in ["", "a.b", "größe", "1 2", "-", &"x".repeat(65), "\u{1f600}".repeat(100).as_str()] {
            let (for_openai, for_gemini) = (Dialect::OpenAi.tool_name(name), Dialect::Gemini.tool_name(name));

            assert!(openai::is_name(&for_openai), "{for_openai}");
            assert!(gemini::is_name(&for_gemini), "{for_gemini}");
        }
        assert_eq!(Dialect::OpenAi.tool_name("a-b_1"), "a-b_1");
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        assert_ne!(Dialect::OpenAi.tool_name("a.b"), Dialect::OpenAi.tool_name("a b"));
    }
}
