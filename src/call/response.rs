//! One chunk of what a tool gives back, as plain data.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{ChunkMode, Code, Reply};
use crate::json::text;

/// One chunk of what a tool call gives.
///
/// ```
/// use serde_json::json;
/// use toolcrib::call::ToolResponse;
///
/// let response = ToolResponse::from(json!({"degrees": 21}));
///
/// assert_eq!(response.text(), r#"{"degrees":21}"#);
/// assert_eq!(response.metadata, Some(json!({"value": {"degrees": 21}})));
/// assert!(response.is_ok() && response.is_last);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    /// Blocks such as `{"type": "text", "text": …}`, in the order in which the model is shown them.
    pub content: Vec<Value>,
    /// Anything for the program; the model does not see it.
    pub metadata: Option<Value>,
    /// More metadata, which stays text until it is asked for. Only the client of an MCP server gives it, if it is told to.
    pub late: LateMetadata,
    /// True if the response is part of a stream.
    pub stream: bool,
    /// True for the last response of its call.
    pub is_last: bool,
    /// True if the call was cancelled.
    pub is_interrupted: bool,
    /// The reason why the call did not go well; none if it did.
    pub code: Option<Code>,
    /// The relation to the result of the call.
    pub mode: ChunkMode,
    /// The id of the response; none until it is given one.
    pub id: Option<String>,
}

impl Default for ToolResponse {
    /// A response without content, the last of its call.
    fn default() -> Self {
        Self {
            content: Vec::new(),
            metadata: None,
            late: LateMetadata::default(),
            stream: false,
            is_last: true,
            is_interrupted: false,
            code: None,
            mode: ChunkMode::Result,
            id: None,
        }
    }
}

impl ToolResponse {
    /// A response of one text block.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { content: vec![text_block(text)], ..Self::default() }
    }

    /// The response that gives one of toolcrib's own replies.
    #[must_use]
    pub fn replying(reply: &Reply) -> Self {
        Self { code: Some(reply.code()), ..Self::of_text(reply.text()) }
    }

    /// The response to a cancelled call: the result so far, with a note.
    #[must_use]
    pub fn interrupted(result: Option<Self>) -> Self {
        let is_stream = result.as_ref().is_none_or(|result| result.stream);
        let mut response = Self { stream: is_stream, ..Self::replying(&Reply::Interrupted) };
        if let Some(result) = result {
            response.content.splice(..0, result.content);
            response.metadata = result.metadata;
            response.late = result.late;
        }
        response.is_interrupted = true;
        response
    }

    /// The same as the result with which a tool that streams ends. It is delivered as the last response, and nothing else of
    /// the tool's stream is read; without it, the last response repeats what was collected.
    #[must_use]
    pub fn ending_stream(self) -> Self {
        Self { stream: true, is_last: true, mode: ChunkMode::Result, ..self }
    }

    /// True for the result with which a tool that streams ends.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        self.stream && self.is_last && self.mode == ChunkMode::Result
    }

    /// The same with an entry in its metadata; other metadata than an object is kept under `value`.
    #[must_use]
    pub fn with_metadata(mut self, name: &str, value: Value) -> Self {
        let mut entries = match self.metadata.take() {
            Some(Value::Object(entries)) => entries,
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("value".to_owned(), other)]),
        };
        entries.insert(name.to_owned(), value);
        self.metadata = Some(Value::Object(entries));
        self
    }

    /// The same with the metadata that was text as values.
    #[must_use]
    pub fn with_late_metadata(mut self) -> Self {
        let late = std::mem::take(&mut self.late);
        late.entries().fold(self, |response, (name, text)| response.with_metadata(name, text::read(text)))
    }

    /// The same with another text block at the end.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(text_block(text));
        self
    }

    /// All text blocks, one to a line.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// True if the call went well: the response has no code and was not interrupted.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.code.is_none() && !self.is_interrupted
    }
}

/// Entries of metadata as JSON texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LateMetadata(Vec<(&'static str, Arc<str>)>);

impl LateMetadata {
    pub(crate) fn insert(&mut self, name: &'static str, json: Arc<str>) {
        self.0.push((name, json));
    }

    /// The entries in their order. Some may share a text.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
        self.0.iter().map(|(name, text)| (*name, text))
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A block of text.
pub(super) fn text_block(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

impl From<&str> for ToolResponse {
    fn from(text: &str) -> Self {
        Self::of_text(text)
    }
}

impl From<String> for ToolResponse {
    fn from(text: String) -> Self {
        Self::of_text(text)
    }
}

impl From<()> for ToolResponse {
    /// Nothing is `null`, as for a Python function without `return`.
    fn from((): ()) -> Self {
        Self::from(Value::Null)
    }
}

impl From<Value> for ToolResponse {
    /// Text stays text; any other value becomes JSON text and is kept in the metadata.
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::of_text(text),
            value => Self::of_text(value.to_string()).with_metadata("value", value),
        }
    }
}

impl From<&Reply> for ToolResponse {
    fn from(reply: &Reply) -> Self {
        Self::replying(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_other_values_are_kept() {
        assert_eq!(ToolResponse::from(json!("x")), ToolResponse::from("x"));
        assert_eq!(ToolResponse::from(()).metadata, Some(json!({"value": null})));
        assert_eq!(ToolResponse::from(()).text(), "null");
    }

    #[test]
    fn an_interrupted_call_keeps_its_result_so_far() {
        let half = ToolResponse { stream: true, ..ToolResponse::from("half") };

        let response = ToolResponse::interrupted(Some(half));

        assert!(response.text().starts_with("half\n<system-info>"));
        assert!(response.is_interrupted && response.stream && !response.is_ok());
        assert_eq!(response.code, Some(Code::Interrupted));
    }

    #[test]
    fn metadata_that_is_no_object_is_kept_under_value() {
        let response = ToolResponse { metadata: Some(json!([1])), ..ToolResponse::default() };

        assert_eq!(response.with_metadata("pending", json!(2)).metadata, Some(json!({"value": [1], "pending": 2})));
    }
}
