//! The calls in whole messages and answers.

use serde_json::Value;

use super::{UNDERSTOOD, detect};
use crate::call::{CallError, ToolCall};

/// Where messages and answers keep what may be calls.
const HOLDERS: [&str; 9] =
    ["tool_calls", "content", "output", "parts", "choices", "message", "candidates", "delta", "function_calls"];

/// How deep calls are looked for: an answer holds choices, a choice a message, a message a list of calls.
const DEPTH: usize = 8;

/// The most calls that one message may have.
const MOST: usize = 1000;

/// Adds all calls in a value, in the order that they are written in.
pub(super) fn collect(value: &Value, calls: &mut Vec<ToolCall>, depth: usize) -> Result<(), CallError> {
    if depth > DEPTH {
        return Ok(());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, calls, depth + 1)),
        Value::Object(entries) => {
            if let Some(call) = detect(entries) {
                if calls.len() == MOST {
                    return Err(CallError::new(format!("there are more than {MOST} calls in it"), UNDERSTOOD));
                }
                calls.push(call?);
                return Ok(());
            }
            HOLDERS.iter().filter_map(|key| entries.get(*key)).try_for_each(|held| match held {
                Value::Array(_) | Value::Object(_) => collect(held, calls, depth + 1),
                _ => Ok(()),
            })
        }
        _ => Ok(()),
    }
}
