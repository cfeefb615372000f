//! The calls in whole messages and responses.

use serde_json::Value;

use super::{Entries, SUPPORTED, recognise};
use crate::call::{CallError, ToolCall};

/// A parser of the calls in the text of a message. It is an argument, because the parser of text uses this module for JSON.
pub(crate) type ReadText<'a> = &'a dyn Fn(&str) -> Vec<ToolCall>;

/// The keys of messages and responses under which calls are searched.
const CONTAINERS: [&str; 9] =
    ["tool_calls", "content", "output", "parts", "choices", "message", "candidates", "delta", "function_calls"];

/// The maximum depth of the search: a response holds choices, a choice a message, a message a list of calls.
const MAX_DEPTH: usize = 8;

/// The maximum number of calls in one message.
const MAX_CALLS: usize = 1000;

/// The keys under which providers give the reason for the end of a response.
const REASON_KEYS: [&str; 4] = ["stop_reason", "finish_reason", "finishReason", "stopReason"];

/// The reasons that mean that the response is not complete.
const CUT_OFF: [&str; 3] = ["max_tokens", "length", "model_context_window_exceeded"];

/// Adds all calls in a value, in the order in which they are written.
pub(super) fn collect(
    value: &Value,
    calls: &mut Vec<ToolCall>,
    depth: usize,
    read_text: ReadText<'_>,
) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, calls, depth + 1, read_text)),
        Value::Object(entries) => {
            if let Some(call) = recognise(entries) {
                if calls.len() == MAX_CALLS {
                    return Err(CallError::new(format!("there are more than {MAX_CALLS} calls in it"), SUPPORTED));
                }
                calls.push(call?);
                return Ok(());
            }
            let before = calls.len();
            CONTAINERS.iter().filter_map(|key| entries.get(*key)).try_for_each(|held| match held {
                Value::Array(_) | Value::Object(_) => collect(held, calls, depth + 1, read_text),
                _ => Ok(()),
            })?;
            if calls.len() == before
                && let Some(text) = text_of_model(entries)
            {
                calls.extend(read_text(text).into_iter().take(MAX_CALLS - before));
            }
            // The end is missing from the last call, even if the JSON of it happens to be complete.
            if let Some(last) = calls[before..].last_mut().filter(|_| is_cut_off(entries)) {
                last.is_truncated = true;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The text of a message that a model wrote. Calls in the messages of others are only quoted.
fn text_of_model(entries: &Entries) -> Option<&str> {
    let role = entries.get("role")?.as_str()?;
    matches!(role, "assistant" | "model").then(|| entries.get("content")?.as_str())?
}

/// True if the provider reports that the response was cut off.
fn is_cut_off(entries: &Entries) -> bool {
    let is_reason = |reason: &str| CUT_OFF.iter().any(|cut_off| cut_off.eq_ignore_ascii_case(reason));
    if REASON_KEYS.iter().filter_map(|key| entries.get(*key)?.as_str()).any(is_reason) {
        return true;
    }
    // The items of OpenAI's responses have a status of their own, which is more precise.
    let last = entries.get("output").and_then(Value::as_array).and_then(|items| items.last());
    is_incomplete(entries) && last.is_some_and(|item| item.get("status").is_none())
}

/// True if an item or a whole response of OpenAI's responses is incomplete.
pub(super) fn is_incomplete(entries: &Entries) -> bool {
    entries.get("status").is_some_and(|status| status == "incomplete")
}
