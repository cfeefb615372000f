//! Gemini: function declarations in the subset of `OpenAPI` 3.0 that Google calls `Schema`, function calls, and
//! `functionResponse` parts.

use serde_json::{Map, Value, json};

use super::result::{ContentBlock, ToolResult, as_text};
use super::{Entries, WireFormat, openai, tool_call};
use crate::call::ToolCall;
use crate::schema::dialect::Capabilities;

/// The rules that Google documents for `Schema`. Depth and size are not documented, and large schemas are refused.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    has_references: false,
    requires_all: false,
    has_null: false,
    lists_strings_only: true,
    isolates_unions: true,
    has_empty_objects: false,
    depth: 12,
    properties: 2_000,
    listed: 1_000,
    characters: 120_000,
    is_name: is_parameter_name,
    keeps,
};

fn is_parameter_name(name: &str) -> bool {
    is_name(name) && !name.contains('-')
}

/// True for a valid name of a tool.
pub(super) fn is_name(name: &str) -> bool {
    openai::is_name(name) && !name.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}

fn keeps(kind: &str, keyword: &str, value: &Value) -> bool {
    match (kind, keyword) {
        ("string", "format") => value == "date-time",
        ("number", "format") => value == "float" || value == "double",
        ("integer", "format") => value == "int32" || value == "int64",
        ("string", "minLength" | "maxLength")
        | ("integer" | "number", "minimum" | "maximum")
        | ("array", "minItems" | "maxItems") => value.is_number(),
        ("string", "pattern") => true,
        _ => false,
    }
}

/// Declares a tool.
pub(super) fn declaration(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("parameters".to_owned(), parameters);
    Value::Object(function)
}

/// Reads a function call in both spellings, with and without the part around it; `None` for another object.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let call = match (entries.get("functionCall"), entries.get("function_call")) {
        (Some(Value::Object(call)), _) => call,
        // OpenAI used the same key, with arguments under another name.
        (_, Some(Value::Object(call))) if !call.contains_key("arguments") => call,
        _ => return None,
    };
    Some(tool_call(WireFormat::Gemini, call.get("id"), call.get("name"), call.get("args")))
}

/// Writes the `functionResponse` part for a call: a result under `output`, a failure under `error`, and media in parts of
/// their own.
#[must_use]
pub fn to_gemini(result: ToolResult<'_>) -> Value {
    let (media, texts): (Vec<ContentBlock<'_>>, Vec<ContentBlock<'_>>) =
        result.blocks().into_iter().partition(|block| matches!(block, ContentBlock::Data { .. }));
    let content = match result.value {
        Some(value) if !result.is_error => value.clone(),
        _ => Value::from(as_text(&texts)),
    };
    let key = if result.is_error { "error" } else { "output" };
    let mut response = Map::new();
    if let Some(id) = result.id {
        response.insert("id".to_owned(), Value::from(id));
    }
    if let Some(name) = result.name {
        response.insert("name".to_owned(), Value::from(name));
    }
    response.insert("response".to_owned(), json!({key: content}));
    if !media.is_empty() {
        let parts = media.iter().map(|block| match block {
            ContentBlock::Data { media_type, data, .. } => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
            other => json!({"text": other.as_text()}),
        });
        response.insert("parts".to_owned(), parts.collect());
    }
    json!({"functionResponse": response})
}
