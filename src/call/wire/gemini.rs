//! Gemini's function calls, in both spellings, with and without the part around them.

use serde_json::Value;

use super::{Entries, WireFormat, arguments};
use crate::call::ToolCall;

/// Reads a part; `None` if it is none with a call.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let call = match (entries.get("functionCall"), entries.get("function_call")) {
        (Some(Value::Object(call)), _) => call,
        // OpenAI once had the same key, with arguments under another name.
        (_, Some(Value::Object(call))) if !call.contains_key("arguments") => call,
        _ => return None,
    };
    Some(arguments::call(WireFormat::Gemini, call.get("id"), call.get("name"), call.get("args")))
}
