//! The formats of model providers: how each one declares tools, writes calls, and expects results.
//!
//! A provider is one file with all three: `openai`, `anthropic`, `gemini`, `bedrock`, `mcp`. Around them:
//!
//! - this file: calls from JSON, in the format that is recognised or asked for;
//! - `message`: the calls in whole messages and responses;
//! - `refusal`: what looks like a call and must not run as one, such as a piece of a stream;
//! - `result`: the result of a call, before a provider's file writes it;
//! - `dialect`: the declaration of a tool, with its schema restricted to what the provider accepts.

mod anthropic;
mod bedrock;
mod dialect;
mod gemini;
mod mcp;
mod message;
mod openai;
mod refusal;
mod result;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

pub use anthropic::to_anthropic;
pub use bedrock::to_bedrock;
pub use dialect::{Declaration, Dialect};
pub use gemini::to_gemini;
pub use mcp::{mcp_definition, mcp_output_schema, to_mcp};
pub use openai::{to_openai, to_openai_responses};
pub use result::ToolResult;

use self::refusal::Refusal;
use crate::call::{CallError, ToolCall, repair};

pub(crate) use message::ReadText;
pub(crate) use refusal::CallType;

type Entries = Map<String, Value>;

/// A format of calls in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// `tool_use` blocks, as Anthropic and AgentScope have them.
    Anthropic,
    /// OpenAI's chat completions, and compatible services.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Gemini's function calls.
    Gemini,
    /// `toolUse` blocks of Amazon Bedrock's Converse.
    Bedrock,
    /// MCP's `tools/call`.
    Mcp,
    /// A name with arguments.
    Bare,
}

impl WireFormat {
    /// Every format, in the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Anthropic, Self::OpenAiResponses, Self::Gemini, Self::OpenAi, Self::Bedrock, Self::Mcp, Self::Bare];

    /// The name of the format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Mcp => "mcp",
            Self::Bare => "bare",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "agentscope" {
            return Some(Self::Anthropic);
        }
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Reads an object as a call; `None` if it is not one of this format.
    fn read(self, entries: &Entries) -> Option<Result<ToolCall, CallError>> {
        match self {
            Self::Anthropic => anthropic::read(entries).map(Ok),
            Self::OpenAi => openai::read(entries).map(Ok),
            Self::OpenAiResponses => openai::read_item(entries).map(Ok),
            Self::Gemini => gemini::read(entries).map(Ok),
            Self::Bedrock => bedrock::read(entries).map(Ok),
            Self::Mcp => mcp::read(entries).map(Ok),
            Self::Bare => read_bare(entries),
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Reads the only call in a value: a call, or a message or response that contains one.
///
/// ```
/// use serde_json::json;
/// use toolcrib::provider;
///
/// let call = provider::read(
///     &json!({"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bern\"}"}}),
///     None,
/// );
/// let call = call.expect("a call of OpenAI's");
/// assert_eq!((call.name.as_str(), call.format.as_ref()), ("weather", "openai"));
/// assert_eq!(call.arguments["city"], "Bern");
/// ```
///
/// A call whose arguments cannot be parsed is a call with an error.
///
/// # Errors
/// If there is no call, more than one, or one that can be read in two ways.
pub fn read(value: &Value, format: Option<WireFormat>) -> Result<ToolCall, CallError> {
    read_with(value, format, &|_| Vec::new())
}

/// Reads all calls of a message, of a list of blocks, or of a whole response. Everything else in it is ignored.
///
/// # Errors
/// If a call can be read in two ways, or the value is neither an object nor a list.
pub fn read_all(value: &Value) -> Result<Vec<ToolCall>, CallError> {
    read_all_with(value, &|_| Vec::new())
}

/// The same as [`read`], including a call in the text of a message.
pub(crate) fn read_with(
    value: &Value,
    format: Option<WireFormat>,
    read_text: ReadText<'_>,
) -> Result<ToolCall, CallError> {
    if let Value::Object(entries) = value {
        match recognise_in(entries, format) {
            Recognised::Call(call) => return *call,
            Recognised::Refused(refusal) => return Ok(refusal.call(entries)),
            Recognised::Other => {}
        }
    }
    if format.is_some() {
        return Err(not_a_call(value, format));
    }
    only_call(read_all_with(value, read_text)?)?.ok_or_else(|| not_a_call(value, None))
}

/// The same as [`read_all`], including the calls in the text of messages that have no others.
pub(crate) fn read_all_with(value: &Value, read_text: ReadText<'_>) -> Result<Vec<ToolCall>, CallError> {
    let mut calls = Vec::new();
    match value {
        Value::Object(_) | Value::Array(_) => message::collect(value, &mut calls, read_text)?,
        _ => return Err(not_a_call(value, None)),
    }
    Ok(calls)
}

/// The only call of a list; an error if there are more.
pub(crate) fn only_call(mut calls: Vec<ToolCall>) -> Result<Option<ToolCall>, CallError> {
    if calls.len() > 1 {
        let what = format!("{} calls were found where one was expected", calls.len());
        return Err(CallError::new(what, "Read them with `ToolCall.read_all`."));
    }
    Ok(calls.pop())
}

/// An object, as far as it is a call.
enum Recognised {
    Call(Box<Result<ToolCall, CallError>>),
    /// It looks like a call, and must not run as one.
    Refused(Refusal),
    Other,
}

/// Reads an object in the first format that recognises it. Each one but the last looks for keys that the others do not have.
fn recognise(entries: &Entries) -> Recognised {
    recognise_in(entries, None)
}

/// The same in one format, if it is known.
fn recognise_in(entries: &Entries, format: Option<WireFormat>) -> Recognised {
    if let Some(refusal) = Refusal::of(entries) {
        return Recognised::Refused(refusal);
    }
    let call = match format {
        Some(format) => format.read(entries),
        None => WireFormat::ALL.into_iter().find_map(|format| format.read(entries)),
    };
    call.map_or(Recognised::Other, |call| Recognised::Call(Box::new(call)))
}

/// The formats that are supported, for error messages.
pub(crate) const SUPPORTED: &str = "Supported are tool_use blocks, function calls of OpenAI (chat and responses), Gemini's \
                                    functionCall, Bedrock's toolUse, MCP's tools/call, and {\"name\": ..., \"arguments\": {...}}.";

fn not_a_call(value: &Value, format: Option<WireFormat>) -> CallError {
    let wanted = format.map_or_else(String::new, |format| format!(" of the format `{format}`"));
    let seen = match value {
        Value::Object(entries) => {
            let kind = entries.get("type").and_then(Value::as_str).filter(|kind| !CallType::of(kind).is_call());
            let kind = kind.map_or_else(String::new, |kind| format!(" of the type `{}`", shorten(kind)));
            format!("an object{kind} with {}", list_keys(entries))
        }
        other => type_name(other).to_owned(),
    };
    CallError::new(format!("not a tool call{wanted}: {seen}"), SUPPORTED)
}

fn list_keys(entries: &Entries) -> String {
    const MAX_KEYS: usize = 8;
    if entries.is_empty() {
        return "no keys".to_owned();
    }
    let mut names: Vec<String> = entries.keys().take(MAX_KEYS).map(|key| format!("`{}`", shorten(key))).collect();
    if entries.len() > MAX_KEYS {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Makes a call from its parts. The arguments are an object or its JSON text.
fn tool_call(format: WireFormat, id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) -> ToolCall {
    let id = id.and_then(id_text);
    let format = Cow::Borrowed(format.as_str());
    let name = match name {
        Some(Value::String(name)) => name.clone(),
        other => {
            let seen = other.map_or("nothing", type_name);
            let error = CallError::new(format!("its `name` must be a string, not {seen}"), "Name the tool to call.");
            return ToolCall { id, format, ..ToolCall::unreadable("", error) };
        }
    };
    match arguments {
        None | Some(Value::Null) => ToolCall { id, format, ..ToolCall::new(name, Map::new()) },
        Some(Value::Object(entries)) => ToolCall { id, format, ..ToolCall::new(name, entries.clone()) },
        Some(Value::String(text)) => {
            ToolCall { id, raw: Some(text.to_owned()), format, ..ToolCall::with_arguments(name, repair::read(text)) }
        }
        Some(other) => {
            let what = format!("the arguments of '{name}' must be an object, not {}", type_name(other));
            let error = CallError::new(what, "Send a JSON object.");
            ToolCall { id, format, ..ToolCall::unreadable(name, error) }
        }
    }
}

/// Makes a call whose argument is free text, which the provider does not promise to be JSON.
fn custom_tool_call(format: WireFormat, id: Option<&Value>, name: Option<&Value>, text: Option<&Value>) -> ToolCall {
    let mut arguments = Map::new();
    if let Some(text) = text {
        arguments.insert("input".to_owned(), text.clone());
    }
    let mut call = tool_call(format, id, name, Some(&Value::Object(arguments)));
    call.format = Cow::Owned(format!("{format}_custom"));
    call
}

/// An id as text; those of JSON-RPC may be numbers.
fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads a name with arguments, under any of the keys that models and libraries use.
fn read_bare(entries: &Entries) -> Option<Result<ToolCall, CallError>> {
    const ARGUMENT_KEYS: [&str; 5] = ["arguments", "input", "args", "params", "parameters"];
    let name = entries.get("name")?;
    // A message may have the name of its author, and the declaration of a tool has parameters.
    if !CallType::of_object(entries).is_call() || entries.contains_key("role") || entries.contains_key("description") {
        return None;
    }
    let given: Vec<&str> = ARGUMENT_KEYS.into_iter().filter(|key| entries.contains_key(*key)).collect();
    if let [one, other, ..] = given[..] {
        return Some(Err(CallError::new(
            format!("the call has `{one}` and `{other}`, and only one of them can be the arguments"),
            format!("It has {}; leave one of them out.", list_keys(entries)),
        )));
    }
    let id = ["id", "call_id", "tool_call_id"].into_iter().find_map(|key| entries.get(key));
    let given = given.first().and_then(|key| entries.get(*key));
    Some(Ok(tool_call(WireFormat::Bare, id, Some(name), given)))
}
