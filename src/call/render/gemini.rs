//! Gemini's `functionResponse` parts.

use serde_json::{Map, Value, json};

use super::Outcome;
use super::block::{self, Block};

/// Writes the part that answers a call: what went well under `output`, what did not under `error`, media that the block
/// holds in parts of their own.
#[must_use]
pub fn to_gemini(outcome: Outcome<'_>) -> Value {
    let blocks = block::blocks(outcome.content);
    let (media, words): (Vec<Block<'_>>, Vec<Block<'_>>) =
        blocks.into_iter().partition(|block| matches!(block, Block::Data { .. }));
    let said = match outcome.value {
        Some(value) if !outcome.is_error => value.clone(),
        _ => Value::from(block::in_words(&words)),
    };
    let word = if outcome.is_error { "error" } else { "output" };
    let mut response = Map::new();
    if let Some(id) = outcome.id {
        response.insert("id".to_owned(), Value::from(id));
    }
    if let Some(name) = outcome.name {
        response.insert("name".to_owned(), Value::from(name));
    }
    response.insert("response".to_owned(), json!({word: said}));
    if !media.is_empty() {
        let parts = media.iter().map(|block| match block {
            Block::Data { media_type, data, .. } => json!({"inlineData": {"mimeType": media_type, "data": data}}),
            other => json!({"text": other.in_words()}),
        });
        response.insert("parts".to_owned(), parts.collect());
    }
    json!({"functionResponse": response})
}
