//! The chunks of a stream: their modes, and the whole result that is collected from them.

use serde_json::{Map, Value};

use super::response::text_block;
use super::{Code, ToolResponse};

string_enum! {
    /// The relation of a response to the result of its call.
    #[derive(Default)]
    pub enum ChunkMode {
        /// A notice for people, which is not part of the result.
        Progress = "progress",
        /// A part of the result, to be appended to the parts before it.
        Addition = "addition",
        /// The result so far, which replaces everything before it.
        #[default]
        Result = "result",
    }
}

/// Treatment of the chunks of a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChunkRule {
    /// Each plain value is an addition, and the last response is the whole result.
    #[default]
    Add,
    /// Each plain value is the result so far, and the last response is the whole result.
    Replace,
    /// Chunks are delivered as the tool gives them, without a response for the whole result, as in AgentScope.
    AsGiven,
}

impl ChunkRule {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "add" => Self::Add,
            "replace" => Self::Replace,
            _ => return None,
        })
    }

    /// The mode of a chunk that is a plain value.
    #[must_use]
    pub const fn plain_mode(self) -> ChunkMode {
        match self {
            Self::Add => ChunkMode::Addition,
            Self::Replace | Self::AsGiven => ChunkMode::Result,
        }
    }
}

/// The result of a call, collected from its chunks in linear time.
///
/// Additions are appended: adjacent texts become one, values that are not text become a list of them, and metadata is
/// merged. If there is any other content beside the values, they are part of the text only.
///
/// ```
/// use toolcrib::call::{ChunkMode, ToolResponse, WholeResult};
///
/// let mut whole = WholeResult::default();
/// for text in ["to", "ol"] {
///     whole.add(&ToolResponse { mode: ChunkMode::Addition, ..ToolResponse::from(text) });
/// }
///
/// assert_eq!(whole.into_response().text(), "tool");
/// ```
#[derive(Debug, Default)]
pub struct WholeResult {
    /// The last chunk that replaced everything before it; the parts come after it.
    base: Option<ToolResponse>,
    parts: Vec<Part>,
    metadata: Map<String, Value>,
    code: Option<Code>,
}

/// A part of the result that was added.
#[derive(Debug)]
enum Part {
    Text(String),
    Block(Value),
    /// A value that is not text, with its JSON text.
    Value(String, Value),
}

impl WholeResult {
    /// Adds a chunk, as its mode says.
    pub fn add(&mut self, chunk: &ToolResponse) {
        match chunk.mode {
            ChunkMode::Progress => {}
            ChunkMode::Result => *self = Self { base: Some(chunk.clone()), ..Self::default() },
            ChunkMode::Addition => self.append(chunk),
        }
    }

    fn append(&mut self, chunk: &ToolResponse) {
        self.code = chunk.code.or(self.code);
        if let Some((text, value)) = plain_value(chunk) {
            return self.parts.push(Part::Value(text.to_owned(), value.clone()));
        }
        self.parts.extend(chunk.content.iter().map(Part::of));
        match &chunk.metadata {
            Some(Value::Object(entries)) => self.metadata.extend(entries.clone()),
            Some(Value::Null) | None => {}
            Some(other) => drop(self.metadata.insert("value".to_owned(), other.clone())),
        }
    }

    /// The last response of the stream.
    #[must_use]
    pub fn into_response(self) -> ToolResponse {
        let Self { base, parts, mut metadata, code } = self;
        if base.is_none() && !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Value(..))) {
            let values = parts.into_iter().filter_map(|part| match part {
                Part::Value(_, value) => Some(value),
                Part::Text(_) | Part::Block(_) => None,
            });
            let response = ToolResponse::from(Value::Array(values.collect()));
            return ToolResponse { stream: true, code, ..response };
        }
        let mut response = base.unwrap_or_default();
        if !parts.is_empty() || !metadata.is_empty() {
            let before = std::mem::take(&mut response.content);
            response.content = joined(before.iter().map(Part::of).chain(parts));
            // A value stands for a whole response, which this one is not.
            metadata.remove("value");
            let mut merged = match response.metadata.take() {
                Some(Value::Object(entries)) => entries,
                _ => Map::new(),
            };
            merged.remove("value");
            merged.extend(metadata);
            response.metadata = (!merged.is_empty()).then_some(Value::Object(merged));
        }
        ToolResponse {
            stream: true,
            is_last: true,
            mode: ChunkMode::Result,
            code: code.or(response.code),
            id: None,
            ..response
        }
    }
}

impl Part {
    fn of(block: &Value) -> Self {
        match plain_text(block) {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Block(block.clone()),
        }
    }
}

/// The text of a block that has nothing else.
fn plain_text(block: &Value) -> Option<&str> {
    let is_plain = block.as_object()?.len() == 2 && block.get("type")? == "text";
    block.get("text")?.as_str().filter(|_| is_plain)
}

/// The text and the value of a response that was made from a value.
fn plain_value(chunk: &ToolResponse) -> Option<(&str, &Value)> {
    let [block] = chunk.content.as_slice() else { return None };
    let metadata = chunk.metadata.as_ref()?.as_object().filter(|metadata| metadata.len() == 1)?;
    Some((plain_text(block)?, metadata.get("value")?))
}

/// The blocks for parts, with adjacent texts joined.
fn joined(parts: impl Iterator<Item = Part>) -> Vec<Value> {
    let (mut blocks, mut text) = (Vec::new(), None::<String>);
    for part in parts {
        match part {
            Part::Text(more) | Part::Value(more, _) => match &mut text {
                Some(text) => text.push_str(&more),
                None => text = Some(more),
            },
            Part::Block(block) => {
                blocks.extend(text.take().map(text_block));
                blocks.push(block);
            }
        }
    }
    blocks.extend(text.map(text_block));
    blocks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn addition(chunk: impl Into<ToolResponse>) -> ToolResponse {
        ToolResponse { mode: ChunkMode::Addition, ..chunk.into() }
    }

    fn whole(chunks: impl IntoIterator<Item = ToolResponse>) -> ToolResponse {
        let mut whole = WholeResult::default();
        chunks.into_iter().for_each(|chunk| whole.add(&chunk));
        whole.into_response()
    }

    #[test]
    fn texts_are_joined_as_they_are() {
        let response = whole(["a", "", " b\n", "c"].map(addition));

        assert_eq!(response.content, [json!({"type": "text", "text": "a b\nc"})]);
        assert_eq!(response.metadata, None);
        assert!(response.is_last && response.stream && response.is_ok());
    }

    #[test]
    fn values_become_a_list() {
        let response = whole([json!({"row": 1}), json!(2), json!(null)].map(addition));

        assert_eq!(response.metadata, Some(json!({"value": [{"row": 1}, 2, null]})));
        assert_eq!(response.text(), r#"[{"row":1},2,null]"#);
    }

    #[test]
    fn values_among_texts_are_text() {
        let response = whole([addition("sum: "), addition(json!(3))]);

        assert_eq!(response.text(), "sum: 3");
        assert_eq!(response.metadata, None);
    }

    #[test]
    fn blocks_keep_their_order_and_metadata_is_merged() {
        let image = json!({"type": "image", "source": {}});
        let chart = ToolResponse {
            content: vec![image.clone()],
            metadata: Some(json!({"pages": 1, "done": false})),
            ..ToolResponse::default()
        };
        let note = ToolResponse { metadata: Some(json!({"done": true})), ..ToolResponse::from("c") };

        let response = whole([addition("a"), addition("b"), addition(chart), addition(note)]);

        assert_eq!(
            response.content,
            [json!({"type": "text", "text": "ab"}), image, json!({"type": "text", "text": "c"})]
        );
        assert_eq!(response.metadata, Some(json!({"pages": 1, "done": true})));
    }

    #[test]
    fn a_result_replaces_what_came_before_and_is_added_to() {
        let result = ToolResponse::from(json!({"rows": 2}));

        assert_eq!(whole([addition("draft"), result.clone()]).metadata, Some(json!({"value": {"rows": 2}})));
        let response = whole([addition("draft"), result, addition(" more")]);
        assert_eq!(response.text(), r#"{"rows":2} more"#);
        assert_eq!(response.metadata, None);
    }

    #[test]
    fn progress_is_no_part_of_the_result() {
        let progress = ToolResponse { mode: ChunkMode::Progress, ..ToolResponse::from("50 %") };

        assert_eq!(whole([addition("a"), progress.clone(), addition("b")]).text(), "ab");
        assert_eq!(whole([progress]).content, Vec::<Value>::new());
    }

    #[test]
    fn the_code_of_a_failure_stays() {
        let failed = ToolResponse { code: Some(Code::Failed), ..ToolResponse::from("no") };

        assert_eq!(whole([addition("a"), addition(failed.clone()), addition("b")]).code, Some(Code::Failed));
        assert_eq!(whole([failed, ToolResponse::from("yes")]).code, None);
    }
}
