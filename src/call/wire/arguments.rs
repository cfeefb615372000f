//! What all formats share: a name, an id, and arguments as an object or as its JSON text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::WireFormat;
use crate::call::{CallError, ToolCall, repair};

/// Puts a call together.
pub(super) fn call(
    format: WireFormat,
    id: Option<&Value>,
    name: Option<&Value>,
    arguments: Option<&Value>,
) -> ToolCall {
    let id = id.and_then(id_text);
    let format = Cow::Borrowed(format.as_str());
    let name = match name {
        Some(Value::String(name)) => name.clone(),
        other => {
            let seen = other.map_or("nothing", shape);
            let error = CallError::new(format!("its `name` must be a string, not {seen}"), "Name the tool to call.");
            return ToolCall { id, format, ..ToolCall::unreadable("", error) };
        }
    };
    match arguments {
        None | Some(Value::Null) => ToolCall { id, format, ..ToolCall::new(name, Map::new()) },
        Some(Value::Object(entries)) => ToolCall { id, format, ..ToolCall::new(name, entries.clone()) },
        Some(Value::String(text)) => from_text(id, format, name, text),
        Some(other) => {
            let what = format!("the arguments of '{name}' must be an object, not {}", shape(other));
            let error = CallError::new(what, "Send a JSON object.");
            ToolCall { id, format, ..ToolCall::unreadable(name, error) }
        }
    }
}

fn from_text(id: Option<String>, format: Cow<'static, str>, name: String, text: &str) -> ToolCall {
    ToolCall { id, raw: Some(text.to_owned()), format, ..ToolCall::with_arguments(name, repair::read(text)) }
}

/// A call whose argument is free text, which the provider does not promise to be JSON.
pub(super) fn with_text(
    format: WireFormat,
    id: Option<&Value>,
    name: Option<&Value>,
    text: Option<&Value>,
) -> ToolCall {
    let mut arguments = Map::new();
    if let Some(text) = text {
        arguments.insert("input".to_owned(), text.clone());
    }
    let mut call = call(format, id, name, Some(&Value::Object(arguments)));
    call.format = Cow::Owned(format!("{format}_custom"));
    call
}

/// An id as text; JSON-RPC's may be numbers.
fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// What a value is, in words.
pub(super) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
