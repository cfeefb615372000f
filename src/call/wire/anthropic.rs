//! `tool_use` blocks: Anthropic's messages, and AgentScope's.

use super::{Entries, WireFormat, arguments};
use crate::call::ToolCall;

/// Reads a block; `None` if it is none.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    let kind = entries.get("type")?.as_str()?;
    if !matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
        return None;
    }
    // AgentScope keeps the text that `input` was parsed from, which says more where that failed.
    let input = entries.get("input");
    let is_empty = input.is_none_or(|input| input.as_object().is_some_and(serde_json::Map::is_empty));
    let raw = entries.get("raw_input").filter(|raw| raw.as_str().is_some_and(|raw| !raw.trim().is_empty()));
    let input = if is_empty { raw.or(input) } else { input };
    Some(arguments::call(WireFormat::Anthropic, entries.get("id"), entries.get("name"), input))
}
