//! Calls as providers write them, read from JSON. One file for each format; this one finds out which it is.

mod anthropic;
mod arguments;
mod bare;
mod format;
mod gemini;
mod mcp;
mod message;
mod openai;
mod responses;
mod text;

use serde_json::{Map, Value};

pub use format::WireFormat;
pub use text::{TextReader, read_all_text, read_text};

use super::{CallError, ToolCall};
use arguments::shape;

/// What an entry that should be there is missing from.
type Entries = Map<String, Value>;

/// Reads the one call that a value is, or holds.
///
/// ```
/// use serde_json::json;
/// use toolcrib::call::wire;
///
/// let call = wire::read(
///     &json!({"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bern\"}"}}),
///     None,
/// );
/// let call = call.expect("a call of OpenAI's");
/// assert_eq!((call.name.as_str(), call.format.as_ref()), ("weather", "openai"));
/// assert_eq!(call.arguments["city"], "Bern");
/// ```
///
/// A call whose arguments cannot be read is a call with an error.
///
/// # Errors
/// When it is no call, or more than one, or can be read in more than one way: what was seen, and what is understood.
pub fn read(value: &Value, format: Option<WireFormat>) -> Result<ToolCall, CallError> {
    read_with(value, format, &|_, _| None)
}

/// Reads the one call that a value is, or holds, be it in the text of a message.
///
/// # Errors
/// As for [`read`].
pub fn read_with(value: &Value, format: Option<WireFormat>, texts: TextReader<'_>) -> Result<ToolCall, CallError> {
    if let Some(format) = format {
        return match value {
            Value::Object(entries) => one(entries, format).unwrap_or_else(|| Err(unknown(value, Some(format)))),
            _ => Err(unknown(value, Some(format))),
        };
    }
    if let Value::Object(entries) = value
        && let Some(call) = detect(entries)
    {
        return call;
    }
    let mut calls = read_all_with(value, texts)?;
    match (calls.pop(), calls.len()) {
        (Some(call), 0) => Ok(call),
        (Some(_), others) => Err(CallError::new(
            format!("{} calls were found where one was expected", others + 1),
            "Read them with `ToolCall.read_all`.",
        )),
        (None, _) => Err(unknown(value, None)),
    }
}

/// Reads all calls of a message, of a list of blocks, or of a whole answer; what is no call is passed over.
///
/// # Errors
/// When a call can be read in more than one way, or the value is nothing that could hold calls.
pub fn read_all(value: &Value) -> Result<Vec<ToolCall>, CallError> {
    read_all_with(value, &|_, _| None)
}

/// The same with the calls in the text of messages that have no others.
///
/// # Errors
/// As for [`read_all`].
pub fn read_all_with(value: &Value, texts: TextReader<'_>) -> Result<Vec<ToolCall>, CallError> {
    let mut calls = Vec::new();
    match value {
        Value::Object(_) | Value::Array(_) => message::collect(value, &mut calls, 0, texts)?,
        _ => return Err(unknown(value, None)),
    }
    Ok(calls)
}

/// The call that an object is in a format; `None` if it is none.
fn one(entries: &Entries, format: WireFormat) -> Option<Result<ToolCall, CallError>> {
    match format {
        WireFormat::Anthropic => anthropic::read(entries).map(Ok),
        WireFormat::OpenAi => openai::read(entries).map(Ok),
        WireFormat::OpenAiResponses => responses::read(entries).map(Ok),
        WireFormat::Gemini => gemini::read(entries).map(Ok),
        WireFormat::Mcp => mcp::read(entries).map(Ok),
        WireFormat::Bare => bare::read(entries),
    }
}

/// The call that an object is, in whichever format. Each looks for marks that the others do not have; what has none of
/// them may still be a name with arguments.
fn detect(entries: &Entries) -> Option<Result<ToolCall, CallError>> {
    WireFormat::ALL.into_iter().find_map(|format| one(entries, format))
}

/// The error for what is no call.
fn unknown(value: &Value, format: Option<WireFormat>) -> CallError {
    let wanted = format.map_or_else(String::new, |format| format!(" of the format `{format}`"));
    let seen = match value {
        Value::Object(entries) => format!("an object with {}", keys(entries)),
        other => shape(other).to_owned(),
    };
    CallError::new(format!("this is no tool call{wanted}: {seen}"), UNDERSTOOD)
}

/// What can be read, for whoever sent something else.
const UNDERSTOOD: &str = "Understood are tool_use blocks, function calls of OpenAI (chat and responses), Gemini's \
                          functionCall, MCP's tools/call, and {\"name\": ..., \"arguments\": {...}}.";

fn keys(entries: &Entries) -> String {
    const MOST: usize = 8;
    if entries.is_empty() {
        return "no keys".to_owned();
    }
    let mut names: Vec<String> =
        entries.keys().take(MOST).map(|key| format!("`{}`", key.chars().take(40).collect::<String>())).collect();
    if entries.len() > MOST {
        names.push("…".to_owned());
    }
    names.join(", ")
}
