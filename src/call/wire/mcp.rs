//! MCP's requests `tools/call`.

use serde_json::Value;

use super::{Entries, WireFormat, arguments};
use crate::call::ToolCall;

/// Reads a request of JSON-RPC; `None` if it is none, or another than a call.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    if entries.get("method")? != "tools/call" {
        return None;
    }
    let params = entries.get("params").and_then(Value::as_object);
    let entry = |key| params.and_then(|params| params.get(key));
    Some(arguments::call(WireFormat::Mcp, entries.get("id"), entry("name"), entry("arguments")))
}
