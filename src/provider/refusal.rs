//! Objects that look like calls, and that a program must not run as such: pieces of a stream, calls that the provider runs
//! itself, and the built-in tools of a provider.

use serde_json::Value;

use super::Entries;
use crate::call::{CallError, ToolCall};

/// The reason why an object is not a call that a toolkit may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A piece of a streamed call, whose arguments are not complete.
    Piece,
    /// A call that the provider has run, or runs itself.
    RunByProvider,
    /// A built-in tool of the provider, which the program must run by other means.
    BuiltIn,
}

/// The types of objects that are pieces of a streamed call.
const PIECES: [&str; 10] = [
    "input_json",
    "input_json_delta",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "tool-call-delta",
    "tool-call-start",
    "tool_call_chunk",
    "tool_call_delta",
];

/// The types of events that announce an item or block before it is complete.
const ANNOUNCEMENTS: [&str; 2] = ["content_block_start", "response.output_item.added"];

/// The types of calls that the provider runs.
const RUN_BY_PROVIDER: [&str; 8] = [
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "mcp_tool_use",
    "server_tool_use",
    "tool_search_call",
    "web_search_call",
];

/// The types of calls of built-in tools that the program runs.
const BUILT_IN: [&str; 4] = ["apply_patch_call", "computer_call", "local_shell_call", "shell_call"];

/// True for the type of an object that is not a plain call although it may have a name and an input.
pub(crate) fn is_special_type(kind: &str) -> bool {
    kind == "custom_tool_call" || Refusal::of_type(kind).is_some()
}

impl Refusal {
    /// The reason to refuse an object; `None` if it may be a call, or is something else.
    pub(super) fn of(entries: &Entries) -> Option<Self> {
        let kind = entries.get("type").and_then(Value::as_str).unwrap_or_default();
        if is_first_piece(entries) || is_unfinished_item(entries, kind) {
            return Some(Self::Piece);
        }
        // A block of Bedrock has its type inside.
        let inner = entries.get("toolUse").and_then(|call| call.get("type")?.as_str());
        Self::of_type(inner.unwrap_or(kind))
    }

    fn of_type(kind: &str) -> Option<Self> {
        match kind {
            _ if PIECES.contains(&kind) => Some(Self::Piece),
            _ if RUN_BY_PROVIDER.contains(&kind) => Some(Self::RunByProvider),
            _ if BUILT_IN.contains(&kind) => Some(Self::BuiltIn),
            _ => None,
        }
    }

    /// The call in its place, which says why it never runs.
    pub(super) fn call(self, entries: &Entries) -> ToolCall {
        let text = |key: &str| entries.get(key).and_then(Value::as_str);
        let kind = text("type").unwrap_or_default();
        let name = match self {
            Self::BuiltIn => kind.trim_end_matches("_call"),
            Self::Piece | Self::RunByProvider => {
                let function = entries.get("function").and_then(|function| function.get("name")?.as_str());
                text("name").or(function).unwrap_or_default()
            }
        };
        let id = ["call_id", "id"].into_iter().find_map(text).map(ToOwned::to_owned);
        ToolCall { id, ..ToolCall::unreadable(name, self.error(kind)) }
    }

    /// The reason as text.
    fn error(self, kind: &str) -> CallError {
        let named = if kind.is_empty() { String::new() } else { format!(" (`{kind}`)") };
        match self {
            Self::Piece => CallError::new(
                format!("this is a piece of a streamed call{named}, not a whole one"),
                "Collect the pieces of the stream first, and run the call when it is complete.",
            ),
            Self::RunByProvider => CallError::new(
                format!("the provider runs this call itself{named}"),
                "Its result comes from the provider; leave the call in the message and do not answer it.",
            ),
            Self::BuiltIn => CallError::new(
                format!("this calls a built-in tool of the provider{named}, which a toolkit does not have"),
                "Run it in your own program, or do not offer this tool to the model.",
            ),
        }
    }
}

/// True for the first piece of a call of chat completions: it has its place in the stream, and no arguments yet. Some services
/// give whole calls a place, too, but these have arguments.
fn is_first_piece(entries: &Entries) -> bool {
    let has_no_arguments = |function: &Value| match function.get("arguments") {
        None | Some(Value::Null) => true,
        Some(arguments) => arguments == "",
    };
    entries.contains_key("index")
        && entries.get("function").is_some_and(|call| call.is_object() && has_no_arguments(call))
}

/// True for a call that is still being written: an item of OpenAI's responses, or a function call of Gemini whose arguments
/// come in parts.
fn is_unfinished_item(entries: &Entries, kind: &str) -> bool {
    let is_item = matches!(kind, "function_call" | "custom_tool_call");
    let status = entries.get("status").and_then(Value::as_str);
    if is_item && !matches!(status, None | Some("completed" | "incomplete")) {
        return true;
    }
    let call = ["functionCall", "function_call"].into_iter().find_map(|key| entries.get(key)?.as_object());
    let call = call.unwrap_or(entries);
    let will_continue =
        ["willContinue", "will_continue"].into_iter().any(|key| call.get(key) == Some(&Value::Bool(true)));
    let has_parts = |key: &str| call.get(key).and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
    will_continue || has_parts("partialArgs") || has_parts("partial_args")
}

/// True if everything inside of an object is a piece of a stream: a chunk, or an event that announces a call.
pub(super) fn holds_pieces(entries: &Entries) -> bool {
    let text = |key: &str| entries.get(key).and_then(Value::as_str);
    text("object") == Some("chat.completion.chunk")
        || text("type").is_some_and(|kind| ANNOUNCEMENTS.contains(&kind))
        || entries.contains_key("contentBlockStart")
}
