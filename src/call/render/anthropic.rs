//! Anthropic's `tool_result` blocks.

use serde_json::{Map, Value, json};

use super::Outcome;
use super::block::{self, Block, Kind};

/// Writes the block that answers a call.
#[must_use]
pub fn to_anthropic(outcome: Outcome<'_>) -> Value {
    let content = block::blocks(outcome.content);
    let content = content.iter().map(|block| match block {
        Block::Data { kind: Kind::Image, media_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        Block::Link { kind: Kind::Image, url } => json!({"type": "image", "source": {"type": "url", "url": url}}),
        other => json!({"type": "text", "text": other.in_words()}),
    });
    let mut result = Map::new();
    result.insert("type".to_owned(), Value::from("tool_result"));
    if let Some(id) = outcome.id {
        result.insert("tool_use_id".to_owned(), Value::from(id));
    }
    result.insert("content".to_owned(), content.collect());
    result.insert("is_error".to_owned(), Value::from(outcome.is_error));
    Value::Object(result)
}
