//! A name with arguments, under any of the words that models and libraries have for them.

use super::{Entries, WireFormat, arguments, keys};
use crate::call::{CallError, ToolCall};

/// The words for arguments.
const WORDS: [&str; 5] = ["arguments", "input", "args", "params", "parameters"];

/// The kinds of objects that have a name, but are no calls.
const OTHERS: [&str; 4] = ["tool_result", "function_call_output", "mcp_call", "mcp_list_tools"];

/// Reads an object; `None` if it has no name, or that of something else than a call.
pub(super) fn read(entries: &Entries) -> Option<Result<ToolCall, CallError>> {
    let name = entries.get("name")?;
    let is_other = entries.get("type").and_then(|kind| kind.as_str()).is_some_and(|kind| OTHERS.contains(&kind));
    // A message has the name of its author, and a tool's description has parameters.
    if is_other || entries.contains_key("role") || entries.contains_key("description") {
        return None;
    }
    let given: Vec<&str> = WORDS.into_iter().filter(|word| entries.contains_key(*word)).collect();
    if let [one, other, ..] = given[..] {
        return Some(Err(CallError::new(
            format!("the call has `{one}` and `{other}`, and only one of them can be the arguments"),
            format!("It has {}; leave one of them out.", keys(entries)),
        )));
    }
    let id = ["id", "call_id", "tool_call_id"].into_iter().find_map(|word| entries.get(word));
    let given = given.first().and_then(|word| entries.get(*word));
    Some(Ok(arguments::call(WireFormat::Bare, id, Some(name), given)))
}
