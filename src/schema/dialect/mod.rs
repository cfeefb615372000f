//! What a provider accepts of JSON Schema, and the way back: how the arguments of a tool are told in its dialect, and how what a
//! model sends in that dialect becomes what the tool expects.
//!
//! Two families. A *light* dialect takes JSON Schema nearly as it is (`light`). A *narrow* one has no word for much of it, so
//! that maps, tuples, unions and what may be left out are encoded in what it has (`encoder`). Both give a [`Codec`], by which
//! arguments come back to their original shape.

mod anthropic;
mod array;
pub mod codec;
mod definition;
mod encoder;
mod form;
mod gemini;
mod light;
mod listed;
mod mcp;
mod measure;
mod merge;
mod names;
mod openai;
mod piece;
mod record;
mod rules;
mod scalar;
mod standalone;
mod strict;
mod union;
mod walk;
mod words;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use codec::Codec;

use super::{Document, FunctionSchema};

/// What a provider reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions, and whoever imitates them.
    OpenAi,
    /// The same in strict mode: the provider lets the model write nothing else.
    OpenAiStrict,
    /// OpenAI's responses.
    OpenAiResponses,
    /// The same in strict mode.
    OpenAiResponsesStrict,
    /// Anthropic's messages.
    Anthropic,
    /// Google's function declarations, a subset of `OpenAPI` 3.0.
    Gemini,
    /// What an MCP server lists.
    Mcp,
}

/// The parameters of a tool in a dialect.
#[derive(Debug)]
pub struct Encoded {
    /// What the model is shown.
    pub schema: Value,
    /// How arguments come back.
    pub codec: Codec,
    /// What the dialect has no word for.
    pub report: Vec<Loss>,
}

/// A tool in a dialect.
#[derive(Debug)]
pub struct Declaration {
    /// The name that the provider accepts.
    pub name: String,
    /// The whole, as it is sent.
    pub value: Value,
    /// How arguments come back.
    pub codec: Codec,
    /// What the dialect has no word for.
    pub report: Vec<Loss>,
}

/// Something that a schema says and the provider cannot hold a model to. Arguments are checked against the original schema all the
/// same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Where, for example `items[].price`; empty for the arguments as a whole.
    pub path: String,
    /// What is lost: a keyword, or a word such as `recursion`.
    pub what: String,
    /// How the model is told of it instead.
    pub instead: String,
}

impl Dialect {
    /// All there are.
    pub const ALL: [Dialect; 7] = [
        Dialect::OpenAi,
        Dialect::OpenAiStrict,
        Dialect::OpenAiResponses,
        Dialect::OpenAiResponsesStrict,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Mcp,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiStrict => "openai_strict",
            Self::OpenAiResponses => "openai_responses",
            Self::OpenAiResponsesStrict => "openai_responses_strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    /// The dialect of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Where it is in [`Dialect::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Tells the parameters of a tool.
    #[must_use]
    pub fn encode(self, parameters: &Arc<Document>) -> Encoded {
        match self {
            Self::OpenAi | Self::OpenAiResponses => light::encode(parameters, &openai::PARAMETERS),
            Self::OpenAiStrict | Self::OpenAiResponsesStrict => encoder::encode(parameters, &strict::RULES),
            Self::Anthropic => light::encode(parameters, &anthropic::PARAMETERS),
            Self::Gemini => encoder::encode(parameters, &gemini::RULES),
            Self::Mcp => light::encode(parameters, &mcp::PARAMETERS),
        }
    }

    /// The name of a tool as the provider accepts it: the same, or one made of it that no other tool's name gives.
    #[must_use]
    pub fn tool_name(self, name: &str) -> String {
        let is_name = match self {
            Self::OpenAi | Self::OpenAiStrict | Self::OpenAiResponses | Self::OpenAiResponsesStrict => openai::is_name,
            Self::Anthropic => anthropic::is_name,
            Self::Gemini => gemini::is_tool_name,
            Self::Mcp => mcp::is_name,
        };
        names::safe(name, is_name).into_owned()
    }

    /// Tells of a tool.
    #[must_use]
    pub fn declare(self, tool: &str, schema: &FunctionSchema) -> Declaration {
        let Encoded { schema: parameters, codec, mut report } = self.encode(schema.parameters());
        let name = self.tool_name(tool);
        let mut function = Map::new();
        function.insert("name".to_owned(), Value::from(name.as_str()));
        let mut description = schema.description();
        if name != tool {
            report.insert(0, names::renamed(tool, &name));
            description = Some(words::joined([description.unwrap_or_default(), names::in_full(tool)]));
        }
        if let Some(description) = description {
            function.insert("description".to_owned(), Value::from(description));
        }
        let value = match self {
            Self::OpenAi => openai::chat(function, parameters, false),
            Self::OpenAiStrict => openai::chat(function, parameters, true),
            Self::OpenAiResponses => openai::responses(function, parameters, false),
            Self::OpenAiResponsesStrict => openai::responses(function, parameters, true),
            Self::Anthropic => anthropic::tool(function, parameters),
            Self::Gemini => gemini::declaration(function, parameters),
            Self::Mcp => mcp::tool(function, parameters),
        };
        Declaration { name, value, codec, report }
    }
}
