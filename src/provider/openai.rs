//! OpenAI's chat completions and responses, with and without strict mode: tools, calls and results.

use serde_json::{Map, Value, json};

use super::message::is_incomplete;
use super::result::{ContentBlock, MediaKind, ToolResult, as_text};
use super::{CallType, Entries, WireFormat, custom_tool_call, tool_call};
use crate::call::ToolCall;
use crate::schema::dialect::{Capabilities, LightRules};

/// The rules without strict mode: the root is an object without composition, and every array declares its items.
pub(super) const PARAMETERS: LightRules =
    LightRules { plain_root: true, fills_arrays: true, is_name: None, names_draft: false };

/// The rules of strict mode, in which the model can only write what fits, as OpenAI documents for structured outputs.
pub(super) const STRICT_CAPABILITIES: Capabilities = Capabilities {
    has_references: true,
    requires_all: true,
    has_null: true,
    lists_strings_only: false,
    isolates_unions: false,
    has_empty_objects: true,
    depth: 10,
    properties: 5_000,
    listed: 1_000,
    characters: 120_000,
    is_name,
    keeps,
};

/// The formats that strict mode supports.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

fn keeps(kind: &str, keyword: &str, value: &Value) -> bool {
    match (kind, keyword) {
        ("string", "format") => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        // The grammar of strict mode has no look-around.
        ("string", "pattern") => value.as_str().is_some_and(|pattern| !pattern.contains("(?")),
        ("integer" | "number", "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
        | ("array", "minItems" | "maxItems") => true,
        _ => false,
    }
}

/// True for a valid name of a tool or a parameter.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Declares a tool for chat completions.
pub(super) fn chat_tool(mut function: Map<String, Value>, parameters: Value, is_strict: bool) -> Value {
    function.insert("parameters".to_owned(), parameters);
    if is_strict {
        function.insert("strict".to_owned(), Value::Bool(true));
    }
    json!({"type": "function", "function": function})
}

/// Declares a tool for responses, in which strict mode is the default.
pub(super) fn responses_tool(function: Map<String, Value>, parameters: Value, is_strict: bool) -> Value {
    let mut tool = Map::new();
    tool.insert("type".to_owned(), Value::from("function"));
    tool.extend(function);
    tool.insert("parameters".to_owned(), parameters);
    tool.insert("strict".to_owned(), Value::Bool(is_strict));
    Value::Object(tool)
}

/// Reads a call of chat completions, or the older `function_call` of a message; `None` for another object.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let id = entries.get("id");
    if let Some(Value::Object(function)) = entries.get("function")
        && CallType::of_object(entries).is_call()
    {
        return Some(tool_call(WireFormat::OpenAi, id, function.get("name"), function.get("arguments")));
    }
    if let Some(Value::Object(custom)) = entries.get("custom")
        && entries.get("type").is_some_and(|kind| kind == "custom")
    {
        return Some(custom_tool_call(WireFormat::OpenAi, id, custom.get("name"), custom.get("input")));
    }
    match entries.get("function_call") {
        Some(Value::Object(function)) if !has_tool_calls(entries) => {
            Some(tool_call(WireFormat::OpenAi, None, function.get("name"), function.get("arguments")))
        }
        _ => None,
    }
}

/// True if a message has `tool_calls`, which then replace its `function_call`.
fn has_tool_calls(entries: &Entries) -> bool {
    entries.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// Reads a call item of responses; `None` for another object.
pub(super) fn read_item(entries: &Entries) -> Option<ToolCall> {
    let kind = entries.get("type")?.as_str()?;
    // The item has an id of its own; the result is matched by the id of the call.
    let id = entries.get("call_id").or_else(|| entries.get("id"));
    let name = entries.get("name");
    let has = |key| entries.contains_key(key);
    let mut call = match kind {
        // A name with an input is a plain call.
        "function_call" if has("arguments") || !has("input") => {
            tool_call(WireFormat::OpenAiResponses, id, name, entries.get("arguments"))
        }
        "custom_tool_call" => custom_tool_call(WireFormat::OpenAiResponses, id, name, entries.get("input")),
        _ => return None,
    };
    call.is_truncated |= is_incomplete(entries);
    Some(call)
}

/// Writes the message with the role `tool` for a call of chat completions, which has only text.
#[must_use]
pub fn to_openai(result: ToolResult<'_>) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), Value::from("tool"));
    if let Some(id) = result.id {
        message.insert("tool_call_id".to_owned(), Value::from(id));
    }
    message.insert("content".to_owned(), Value::from(as_text(&result.blocks())));
    Value::Object(message)
}

/// Writes the item for a call of responses: a text, or a list if there are images.
#[must_use]
pub fn to_openai_responses(result: ToolResult<'_>) -> Value {
    let blocks = result.blocks();
    let has_images = blocks.iter().any(|block| image_url(block).is_some());
    let output = if has_images {
        let parts = blocks.iter().map(|block| match image_url(block) {
            Some(url) => json!({"type": "input_image", "image_url": url}),
            None => json!({"type": "input_text", "text": block.as_text()}),
        });
        parts.collect()
    } else {
        Value::from(as_text(&blocks))
    };
    let mut item = Map::new();
    let kind = if result.is_custom { "custom_tool_call_output" } else { "function_call_output" };
    item.insert("type".to_owned(), Value::from(kind));
    if let Some(id) = result.id {
        item.insert("call_id".to_owned(), Value::from(id));
    }
    item.insert("output".to_owned(), output);
    Value::Object(item)
}

/// The URL of an image; for one in base64, a `data:` URL.
fn image_url(block: &ContentBlock<'_>) -> Option<String> {
    match block {
        ContentBlock::Data { kind: MediaKind::Image, media_type, data } => {
            Some(format!("data:{media_type};base64,{data}"))
        }
        ContentBlock::Link { kind: MediaKind::Image, url } => Some((*url).to_owned()),
        _ => None,
    }
}
