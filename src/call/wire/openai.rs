//! OpenAI's chat completions: `tool_calls`, and the `function_call` that came before.

use serde_json::Value;

use super::{Entries, WireFormat, arguments};
use crate::call::ToolCall;

/// Reads a call; `None` if it is none.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let id = entries.get("id");
    if let Some(Value::Object(function)) = entries.get("function") {
        return Some(arguments::call(WireFormat::OpenAi, id, function.get("name"), function.get("arguments")));
    }
    if let Some(Value::Object(custom)) = entries.get("custom")
        && entries.get("type").is_some_and(|kind| kind == "custom")
    {
        return Some(arguments::with_text(WireFormat::OpenAi, id, custom.get("name"), custom.get("input")));
    }
    match entries.get("function_call") {
        Some(Value::Object(function)) if !has_calls(entries) => {
            Some(arguments::call(WireFormat::OpenAi, None, function.get("name"), function.get("arguments")))
        }
        _ => None,
    }
}

/// A message may have both, where the newer one counts.
fn has_calls(entries: &Entries) -> bool {
    entries.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}
