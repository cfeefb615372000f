//! The message with the role `tool` of OpenAI's chat completions, which can only hold text.

use serde_json::{Map, Value};

use super::{Outcome, block};

/// Writes the message that answers a call.
#[must_use]
pub fn to_openai(outcome: Outcome<'_>) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), Value::from("tool"));
    if let Some(id) = outcome.id {
        message.insert("tool_call_id".to_owned(), Value::from(id));
    }
    message.insert("content".to_owned(), Value::from(block::in_words(&block::blocks(outcome.content))));
    Value::Object(message)
}
