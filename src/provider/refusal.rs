//! Objects that look like calls, and that a program must not run as such: pieces of a stream, calls that the provider runs
//! itself, the built-in tools of a provider, and everything with a type that is not known as one of a call.

use serde_json::Value;

use super::Entries;
use crate::call::{CallError, ToolCall};

/// The reason why an object is not a call that a toolkit may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A piece of a streamed call, or of a response that is still being written: the arguments may not be complete.
    Piece,
    /// A part of a response that failed or was cancelled.
    Failed,
    /// A call that the provider has run, or runs itself.
    RunByProvider,
    /// A call that the provider runs itself after the program has approved it.
    NeedsApproval,
    /// A built-in tool of the provider, which the program must run by other means.
    BuiltIn,
}

/// The meaning of the `type` of an object for calls. A type that is not listed here is not one of a call: a provider may add
/// calls of its own at any time, which a program must not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallType {
    /// A name with arguments and no other keys, as libraries and models write it; often without a type.
    Plain,
    /// The block of Anthropic and `AgentScope`, with a name and an input.
    Block,
    /// An item of a provider for the program to run, which may have keys of its own beside the arguments.
    Item,
    /// It looks like a call, and never runs as one.
    Refused(Refusal),
    /// Not a call.
    Other,
}

impl CallType {
    /// The meaning of a type.
    pub(crate) fn of(kind: &str) -> Self {
        match kind {
            "" | "function" | "tool_call" => Self::Plain,
            "tool_use" => Self::Block,
            "agent.custom_tool_use" | "chatkit.client_tool_call" | "custom" | "custom_tool_call" | "function_call" => {
                Self::Item
            }
            "input_json"
            | "input_json_delta"
            | "response.custom_tool_call_input.delta"
            | "response.custom_tool_call_input.done"
            | "response.function_call_arguments.delta"
            | "response.function_call_arguments.done"
            | "tool-call-delta"
            | "tool-call-start"
            | "tool_call_chunk"
            | "tool_call_delta" => Self::Refused(Refusal::Piece),
            "agent.mcp_tool_use"
            | "agent.tool_use"
            | "code_interpreter_call"
            | "file_search_call"
            | "image_generation_call"
            | "mcp_call"
            | "mcp_server_tool_call"
            | "mcp_tool_use"
            | "server_tool_use"
            | "tool_search_call"
            | "web_search_call" => Self::Refused(Refusal::RunByProvider),
            "mcp_approval_request" => Self::Refused(Refusal::NeedsApproval),
            "apply_patch_call" | "computer_call" | "local_shell_call" | "shell_call" => Self::Refused(Refusal::BuiltIn),
            _ => Self::Other,
        }
    }

    /// The meaning of the type of an object.
    pub(super) fn of_object(entries: &Entries) -> Self {
        match entries.get("type") {
            None | Some(Value::Null) => Self::Plain,
            Some(Value::String(kind)) => Self::of(kind),
            Some(_) => Self::Other,
        }
    }

    /// True if a program may run the call.
    pub(super) const fn is_call(self) -> bool {
        matches!(self, Self::Plain | Self::Block | Self::Item)
    }
}

/// The types of events that announce an item or block before it is complete.
const ANNOUNCEMENTS: [&str; 2] = ["content_block_start", "response.output_item.added"];

/// The keys under which a call is held, with its name inside.
const WRAPPERS: [&str; 4] = ["function", "functionCall", "function_call", "toolUse"];

impl Refusal {
    /// The reason to refuse an object; `None` if it may be a call, or is something else.
    pub(super) fn of(entries: &Entries) -> Option<Self> {
        // A block of Bedrock has its type inside.
        let call = entries.get("toolUse").and_then(Value::as_object).unwrap_or(entries);
        let kind = CallType::of_object(call);
        if is_first_piece(entries) || is_start_of_block(entries) || is_unfinished_item(entries) {
            return Some(Self::Piece);
        }
        match kind {
            CallType::Refused(Self::RunByProvider) if call.get("execution").is_some_and(|by| by == "client") => {
                Some(Self::BuiltIn)
            }
            CallType::Refused(refusal) => Some(refusal),
            // The result is there already.
            CallType::Item if call.get("output").is_some_and(|output| !output.is_null()) => Some(Self::RunByProvider),
            _ => None,
        }
    }

    /// The reason to refuse everything inside of an object.
    pub(super) fn of_all_in(entries: &Entries) -> Option<Self> {
        if holds_pieces(entries) {
            return Some(Self::Piece);
        }
        if !["output", "outputs", "steps", "required_action"].iter().any(|key| entries.contains_key(*key)) {
            return None;
        }
        match entries.get("status")?.as_str()? {
            "in_progress" | "queued" => Some(Self::Piece),
            "failed" | "cancelled" | "canceled" | "cancelling" | "expired" => Some(Self::Failed),
            _ => None,
        }
    }

    /// The call in its place, which says why it never runs.
    pub(super) fn call(self, entries: &Entries) -> ToolCall {
        let inner = WRAPPERS.into_iter().find_map(|key| entries.get(key)?.as_object());
        let text = |key: &str| [Some(entries), inner].into_iter().flatten().find_map(|held| held.get(key)?.as_str());
        let kind = text("type").unwrap_or_default();
        let name = match self {
            Self::BuiltIn => kind.trim_end_matches("_call"),
            _ => text("name").unwrap_or_default(),
        };
        let id = ["call_id", "id", "toolUseId"].into_iter().find_map(text).map(ToOwned::to_owned);
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
            Self::Failed => CallError::new(
                format!("this call{named} is in a response that failed or was cancelled"),
                "Run no call of this response; ask for another one.",
            ),
            Self::RunByProvider => CallError::new(
                format!("the provider runs this call itself{named}"),
                "Its result comes from the provider; leave the call in the message and do not answer it.",
            ),
            Self::NeedsApproval => CallError::new(
                format!("the provider asks for the approval of this call{named}, which it runs itself"),
                "Send the approval from your own program; a toolkit does not run the call.",
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

/// True for the start of a block of Bedrock's stream, whose input comes in later events. A whole block has an input.
fn is_start_of_block(entries: &Entries) -> bool {
    let call = match entries.get("toolUse") {
        Some(call) => call.as_object(),
        None => entries.contains_key("toolUseId").then_some(entries),
    };
    call.is_some_and(|call| call.contains_key("name") && call.get("input").is_none_or(Value::is_null))
}

/// True for a call that is still being written: an item of OpenAI's responses, or a function call of Gemini whose arguments
/// come in parts.
fn is_unfinished_item(entries: &Entries) -> bool {
    let text = |key: &str| entries.get(key).and_then(Value::as_str);
    // The status of other items is that of their execution.
    let is_item = matches!(text("type"), Some("function_call" | "custom_tool_call"));
    if is_item && !matches!(text("status"), None | Some("completed" | "incomplete")) {
        return true;
    }
    let call = ["functionCall", "function_call"].into_iter().find_map(|key| entries.get(key)?.as_object());
    let call = call.unwrap_or(entries);
    let is_set = |flag: &Value| !flag.is_null() && flag != false && flag != "false";
    let will_continue = ["willContinue", "will_continue"].into_iter().any(|key| call.get(key).is_some_and(is_set));
    let has_parts = |key: &str| call.get(key).and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
    will_continue || has_parts("partialArgs") || has_parts("partial_args")
}

/// True if everything inside of an object is a piece of a stream: a chunk, an event that announces a call, or a message that is
/// still being written.
fn holds_pieces(entries: &Entries) -> bool {
    let text = |key: &str| entries.get(key).and_then(Value::as_str);
    text("object") == Some("chat.completion.chunk")
        || text("type").is_some_and(|kind| ANNOUNCEMENTS.contains(&kind))
        || entries.contains_key("contentBlockStart")
        || entries.get("tool_call_chunks").and_then(Value::as_array).is_some_and(|chunks| !chunks.is_empty())
        // A message of Anthropic's that is complete has the reason for its end, and one in a history has no such key.
        || text("type") == Some("message") && entries.get("stop_reason").is_some_and(Value::is_null)
}
