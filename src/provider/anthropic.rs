//! Anthropic's messages: tools, `tool_use` blocks (AgentScope's, too) and `tool_result` blocks.

use serde_json::{Map, Value, json};

use super::result::{ContentBlock, MediaKind, ToolResult};
use super::{Entries, WireFormat, openai, tool_call};
use crate::call::ToolCall;
use crate::schema::dialect::LightRules;

/// JSON Schema whose root is an object without composition, and whose properties have restricted names.
pub(super) const PARAMETERS: LightRules =
    LightRules { plain_root: true, fills_arrays: false, is_name: Some(is_parameter_name), names_draft: false };

/// True for a valid name of a tool.
pub(super) fn is_name(name: &str) -> bool {
    openai::is_name(name)
}

fn is_parameter_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Declares a tool.
pub(super) fn tool(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("input_schema".to_owned(), parameters);
    Value::Object(function)
}

/// Reads a `tool_use` block; `None` for another object.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    if entries.get("type")? != "tool_use" {
        return None;
    }
    // AgentScope keeps the text that `input` was parsed from, which has more in it if that failed.
    let input = entries.get("input");
    let is_empty = input.is_none_or(|input| input.as_object().is_some_and(Map::is_empty));
    let raw = entries.get("raw_input").filter(|raw| raw.as_str().is_some_and(|raw| !raw.trim().is_empty()));
    let input = if is_empty { raw.or(input) } else { input };
    Some(tool_call(WireFormat::Anthropic, entries.get("id"), entries.get("name"), input))
}

/// Writes the `tool_result` block for a call.
#[must_use]
pub fn to_anthropic(result: ToolResult<'_>) -> Value {
    let content = result.blocks();
    let content = content.iter().map(|block| match block {
        ContentBlock::Data { kind: MediaKind::Image, media_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        ContentBlock::Link { kind: MediaKind::Image, url } => {
            json!({"type": "image", "source": {"type": "url", "url": url}})
        }
        other => json!({"type": "text", "text": other.as_text()}),
    });
    let mut block = Map::new();
    block.insert("type".to_owned(), Value::from("tool_result"));
    if let Some(id) = result.id {
        block.insert("tool_use_id".to_owned(), Value::from(id));
    }
    block.insert("content".to_owned(), content.collect());
    block.insert("is_error".to_owned(), Value::from(result.is_error));
    Value::Object(block)
}
