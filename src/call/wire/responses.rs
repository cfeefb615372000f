//! The items of OpenAI's responses.

use super::message::is_incomplete;
use super::{Entries, WireFormat, arguments};
use crate::call::ToolCall;

/// Reads an item; `None` if it is none, or another than a call.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let kind = entries.get("type")?.as_str()?;
    // The item has an id of its own; the answer is matched by the call's.
    let id = entries.get("call_id").or_else(|| entries.get("id"));
    let name = entries.get("name");
    let mut call = match kind {
        "function_call" => arguments::call(WireFormat::OpenAiResponses, id, name, entries.get("arguments")),
        "custom_tool_call" => arguments::with_text(WireFormat::OpenAiResponses, id, name, entries.get("input")),
        _ => return None,
    };
    call.is_truncated |= is_incomplete(entries);
    Some(call)
}
