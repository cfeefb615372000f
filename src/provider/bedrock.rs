//! Amazon Bedrock's Converse: tool specifications, `toolUse` blocks and `toolResult` blocks.

use serde_json::{Map, Value, json};

use super::result::{ContentBlock, MediaKind, ToolResult};
use super::{CallType, Entries, WireFormat, anthropic, tool_call};
use crate::call::ToolCall;
use crate::schema::dialect::LightRules;

/// JSON Schema, as for Anthropic's models, which most programs call through Bedrock.
pub(super) const PARAMETERS: LightRules = anthropic::PARAMETERS;

/// True for a valid name of a tool.
pub(super) fn is_name(name: &str) -> bool {
    anthropic::is_name(name)
}

/// Declares a tool.
pub(super) fn tool(mut function: Map<String, Value>, parameters: &Value) -> Value {
    function.insert("inputSchema".to_owned(), json!({"json": parameters}));
    json!({"toolSpec": function})
}

/// Reads a `toolUse` block, with and without the object around it; `None` for another object.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let call = match entries.get("toolUse") {
        Some(call) => call.as_object()?,
        None => {
            Some(entries).filter(|call| ["toolUseId", "name", "input"].iter().all(|key| call.contains_key(*key)))?
        }
    };
    if !CallType::of_object(call).is_call() {
        return None;
    }
    Some(tool_call(WireFormat::Bedrock, call.get("toolUseId"), call.get("name"), call.get("input")))
}

/// Writes the `toolResult` block for a call. The bytes of an image are base64, as on the wire.
#[must_use]
pub fn to_bedrock(result: ToolResult<'_>) -> Value {
    let content = result.blocks();
    let content = content.iter().map(|block| match block {
        ContentBlock::Data { kind: MediaKind::Image, media_type, data } => {
            let format = media_type.rsplit('/').next().unwrap_or_default();
            json!({"image": {"format": format, "source": {"bytes": data}}})
        }
        other => json!({"text": other.as_text()}),
    });
    let mut block = Map::new();
    if let Some(id) = result.id {
        block.insert("toolUseId".to_owned(), Value::from(id));
    }
    block.insert("content".to_owned(), content.collect());
    block.insert("status".to_owned(), Value::from(if result.is_error { "error" } else { "success" }));
    json!({"toolResult": block})
}
