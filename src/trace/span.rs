//! The span of one call: what it is named and what is known when it begins.

use std::borrow::Cow;

/// The names of attributes. The conventions are still in development and their constants move from package to package, so
/// they are spelt out here.
pub mod key {
    /// What is done; always `execute_tool`.
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// The tool's name.
    pub const TOOL: &str = "gen_ai.tool.name";
    /// The id that the model gave the call.
    pub const CALL_ID: &str = "gen_ai.tool.call.id";
    /// What the model was told about the tool.
    pub const DESCRIPTION: &str = "gen_ai.tool.description";
    /// The kind of tool; always `function`.
    pub const TYPE: &str = "gen_ai.tool.type";
    /// What the model sent; recorded when asked for.
    pub const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    /// What the tool gave last; recorded when asked for.
    pub const RESULT: &str = "gen_ai.tool.call.result";
    /// Why the call did not go well: the class of an exception, or one of our codes.
    pub const ERROR_TYPE: &str = "error.type";
    /// Whether the call was cancelled.
    pub const CANCELLED: &str = "toolcrib.cancelled";
}

/// The operation of every span here.
pub(super) const OPERATION: &str = "execute_tool";

/// The kind of every tool here.
pub(super) const TYPE: &str = "function";

/// How much is told of a name or an id, in characters. Both come from a model, which may send anything.
const NAME_LIMIT: usize = 256;

/// What is known of a call when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpan<'a> {
    tool: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
}

impl<'a> ToolSpan<'a> {
    /// The span of a call for `tool`, if the request names one. An empty id is none.
    #[must_use]
    pub fn new(tool: Option<&'a str>, call_id: Option<&'a str>, description: Option<Cow<'a, str>>) -> Self {
        Self {
            tool: tool.map(|tool| cut(tool, NAME_LIMIT)),
            call_id: call_id.filter(|id| !id.is_empty()).map(|id| cut(id, NAME_LIMIT)),
            description,
        }
    }

    /// The span's name: `execute_tool` and the tool's name.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        match &self.tool {
            Some(tool) => format!("{OPERATION} {tool}").into(),
            None => OPERATION.into(),
        }
    }

    /// The attributes that are known when the call begins.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let known = [(key::TOOL, &self.tool), (key::CALL_ID, &self.call_id), (key::DESCRIPTION, &self.description)];
        [(key::OPERATION, OPERATION), (key::TYPE, TYPE)]
            .into_iter()
            .chain(known.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))))
    }
}

/// A text of at most so many characters; one that was cut ends with an ellipsis.
pub(super) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => text.into(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect::<String>().into(),
    }
}
