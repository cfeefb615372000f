//! The items that answer calls of OpenAI's responses.

use serde_json::{Map, Value, json};

use super::Outcome;
use super::block::{self, Block, Kind};

/// Writes the item that answers a call: text alone as text, with pictures as a list.
#[must_use]
pub fn to_openai_responses(outcome: Outcome<'_>) -> Value {
    let blocks = block::blocks(outcome.content);
    let has_pictures = blocks.iter().any(|block| picture(block).is_some());
    let output = if has_pictures {
        let parts = blocks.iter().map(|block| match picture(block) {
            Some(url) => json!({"type": "input_image", "image_url": url}),
            None => json!({"type": "input_text", "text": block.in_words()}),
        });
        parts.collect()
    } else {
        Value::from(block::in_words(&blocks))
    };
    let mut item = Map::new();
    let kind = if outcome.is_custom { "custom_tool_call_output" } else { "function_call_output" };
    item.insert("type".to_owned(), Value::from(kind));
    if let Some(id) = outcome.id {
        item.insert("call_id".to_owned(), Value::from(id));
    }
    item.insert("output".to_owned(), output);
    Value::Object(item)
}

/// The address of a picture, which may hold all of it.
fn picture(block: &Block<'_>) -> Option<String> {
    match block {
        Block::Data { kind: Kind::Image, media_type, data } => Some(format!("data:{media_type};base64,{data}")),
        Block::Link { kind: Kind::Image, url } => Some((*url).to_owned()),
        _ => None,
    }
}
