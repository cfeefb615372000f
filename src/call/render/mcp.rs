//! MCP's `CallToolResult`.

use serde_json::{Map, Value, json};

use super::Outcome;
use super::block::{self, Block, Kind};

/// Writes the result of a call, with the value itself where there is one: an object as it is, anything else under
/// `result`, because the protocol wants an object.
#[must_use]
pub fn to_mcp(outcome: Outcome<'_>) -> Value {
    let content = block::blocks(outcome.content);
    let content = content.iter().map(|block| match block {
        Block::Data { kind: kind @ (Kind::Image | Kind::Audio), media_type, data } => {
            json!({"type": kind.as_str(), "data": data, "mimeType": media_type})
        }
        Block::Data { kind: Kind::Video, media_type, data } => json!({
            "type": "resource",
            "resource": {"uri": format!("data:{media_type}"), "mimeType": media_type, "blob": data},
        }),
        Block::Link { kind, url } => json!({"type": "resource_link", "uri": url, "name": kind.as_str()}),
        other => json!({"type": "text", "text": other.in_words()}),
    });
    let mut result = Map::new();
    result.insert("content".to_owned(), content.collect());
    if let Some(value) = outcome.value.filter(|_| !outcome.is_error) {
        let structured = if value.is_object() { value.clone() } else { json!({"result": value}) };
        result.insert("structuredContent".to_owned(), structured);
    }
    result.insert("isError".to_owned(), Value::from(outcome.is_error));
    Value::Object(result)
}
