//! The calls in whole messages and answers.

use serde_json::Value;

use super::{Entries, TextReader, UNDERSTOOD, detect};
use crate::call::{CallError, ToolCall};

/// Where messages and answers keep what may be calls.
const HOLDERS: [&str; 9] =
    ["tool_calls", "content", "output", "parts", "choices", "message", "candidates", "delta", "function_calls"];

/// How deep calls are looked for: an answer holds choices, a choice a message, a message a list of calls.
const DEPTH: usize = 8;

/// The most calls that one message may have.
const MOST: usize = 1000;

/// Where providers say why an answer ended.
const REASONS: [&str; 4] = ["stop_reason", "finish_reason", "finishReason", "stopReason"];

/// The reasons that mean that the model was not done.
const CUT: [&str; 3] = ["max_tokens", "length", "model_context_window_exceeded"];

/// Adds all calls in a value, in the order that they are written in.
pub(super) fn collect(
    value: &Value,
    calls: &mut Vec<ToolCall>,
    depth: usize,
    texts: TextReader<'_>,
) -> Result<(), CallError> {
    if depth > DEPTH {
        return Ok(());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, calls, depth + 1, texts)),
        Value::Object(entries) => {
            if let Some(call) = detect(entries) {
                if calls.len() == MOST {
                    return Err(CallError::new(format!("there are more than {MOST} calls in it"), UNDERSTOOD));
                }
                calls.push(call?);
                return Ok(());
            }
            let before = calls.len();
            HOLDERS.iter().filter_map(|key| entries.get(*key)).try_for_each(|held| match held {
                Value::Array(_) | Value::Object(_) => collect(held, calls, depth + 1, texts),
                _ => Ok(()),
            })?;
            if calls.len() == before
                && let Some(text) = own_text(entries)
            {
                calls.extend(texts(text, None).unwrap_or_default().into_iter().take(MOST - before));
            }
            // What a model writes last is what the end is missing of, even if what there is happens to be whole JSON.
            if let Some(last) = calls[before..].last_mut().filter(|_| is_cut(entries)) {
                last.is_truncated = true;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The text of a message, if it is one that a model wrote: calls in what others wrote are only quoted.
fn own_text(entries: &Entries) -> Option<&str> {
    let role = entries.get("role")?.as_str()?;
    matches!(role, "assistant" | "model").then(|| entries.get("content")?.as_str())?
}

/// Whether the provider says that there was no room for the rest.
fn is_cut(entries: &Entries) -> bool {
    let is_reason = |reason: &str| CUT.iter().any(|cut| cut.eq_ignore_ascii_case(reason));
    if REASONS.iter().filter_map(|key| entries.get(*key)?.as_str()).any(is_reason) {
        return true;
    }
    // The items of a response have a status of their own, which says more.
    let last = entries.get("output").and_then(Value::as_array).and_then(|items| items.last());
    is_incomplete(entries) && last.is_some_and(|item| item.get("status").is_none())
}

/// Whether an item or a whole answer of OpenAI's responses is only a part.
pub(super) fn is_incomplete(entries: &Entries) -> bool {
    entries.get("status").is_some_and(|status| status == "incomplete")
}
