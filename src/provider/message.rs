//! The calls in whole messages and responses.

use serde_json::Value;

use super::refusal::Refusal;
use super::{Entries, Recognised, SUPPORTED, recognise};
use crate::call::{CallError, ToolCall};

/// A parser of the calls in the text of a message. It is an argument, because the parser of text uses this module for JSON.
pub(crate) type ReadText<'a> = &'a dyn Fn(&str) -> Vec<ToolCall>;

/// The keys of messages and responses under which calls are searched; with a dot, a key in the object under another one.
const CONTAINERS: [&str; 22] = [
    "tool_calls",
    "content",
    "output",
    "outputs",
    STEPS,
    "parts",
    "choices",
    "message",
    "candidates",
    "function_calls",
    "functionCalls",
    // In messages of Gemini's live API. Other programs have a single call under these keys, which may not be for this one.
    "tool_call.function_calls",
    "toolCall.functionCalls",
    // In the runs of OpenAI's assistants.
    "required_action",
    "submit_tool_outputs",
    // In events of a stream that hold something whole.
    "content_block",
    "item",
    "response",
    // In the pieces of a stream.
    PIECE,
    "contentBlockDelta",
    "contentBlockStart",
    "start",
];

/// The key of a piece in chunks and events.
const PIECE: &str = "delta";

/// The key of the items of Gemini's interactions. Other objects with such a key, which have no status, are plans.
const STEPS: &str = "steps";

/// The maximum depth of the search: a response holds choices, a choice a message, a message a list of calls.
const MAX_DEPTH: usize = 8;

/// The maximum number of calls in one message.
const MAX_CALLS: usize = 1000;

/// The keys under which providers give the reason for the end of a response.
const REASON_KEYS: [&str; 4] = ["stop_reason", "finish_reason", "finishReason", "stopReason"];

/// The reasons that mean that the response is not complete.
const CUT_OFF: [&str; 3] = ["max_tokens", "length", "model_context_window_exceeded"];

/// Adds all calls in a value, in the order in which they are written.
///
/// The pieces of a stream are calls with an error. Calls that the provider runs are left out.
pub(super) fn collect(value: &Value, calls: &mut Vec<ToolCall>, read_text: ReadText<'_>) -> Result<(), CallError> {
    Search { calls, read_text, refusal: None }.visit(value, 0)
}

/// A search for the calls in a value.
struct Search<'a> {
    calls: &'a mut Vec<ToolCall>,
    read_text: ReadText<'a>,
    /// The reason to refuse every call in the object that is searched.
    refusal: Option<Refusal>,
}

impl Search<'_> {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), CallError> {
        match value {
            _ if depth > MAX_DEPTH => Ok(()),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Value::Object(entries) => match (recognise(entries), self.refusal) {
                (Recognised::Call(call), None) => self.push((*call)?),
                (Recognised::Refused(Refusal::RunByProvider), _) => Ok(()),
                (Recognised::Call(_), Some(refusal)) | (Recognised::Refused(refusal), _) => {
                    self.push(refusal.call(entries))
                }
                (Recognised::Other, _) => self.look_into(entries, depth),
            },
            _ => Ok(()),
        }
    }

    fn look_into(&mut self, entries: &Entries, depth: usize) -> Result<(), CallError> {
        let before = self.calls.len();
        let outer = self.refusal;
        let refusal = outer.or_else(|| Refusal::of_all_in(entries));
        for path in CONTAINERS {
            if let Some(held @ (Value::Array(_) | Value::Object(_))) = held_by(entries, path) {
                self.refusal = if path == PIECE { refusal.or(Some(Refusal::Piece)) } else { refusal };
                self.visit(held, depth + 1)?;
            }
        }
        self.refusal = outer;
        if self.calls.len() == before
            && refusal.is_none()
            && let Some(text) = text_of_model(entries)
        {
            self.calls.extend((self.read_text)(text).into_iter().take(MAX_CALLS - before));
        }
        // The end is missing from the last call, even if the JSON of it happens to be complete.
        if let Some(last) = self.calls[before..].last_mut().filter(|_| is_cut_off(entries)) {
            last.is_truncated = true;
        }
        Ok(())
    }

    fn push(&mut self, call: ToolCall) -> Result<(), CallError> {
        if self.calls.len() == MAX_CALLS {
            return Err(CallError::new(format!("there are more than {MAX_CALLS} calls in it"), SUPPORTED));
        }
        self.calls.push(call);
        Ok(())
    }
}

/// The value in one of `CONTAINERS`.
fn held_by<'v>(entries: &'v Entries, path: &str) -> Option<&'v Value> {
    if path == STEPS && !entries.get("status").is_some_and(Value::is_string) {
        return None;
    }
    let mut keys = path.split('.');
    let first = entries.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
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
