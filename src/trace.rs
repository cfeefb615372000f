//! Traces of tool calls in the terms of OpenTelemetry's conventions for generative AI: the name and
//! the attributes of a span, and the outcome of the call.

use std::borrow::Cow;

use serde_json::{Map, Value};
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Span, info, info_span};

use crate::call::Code;

/// The names of attributes. The conventions are still in development and their constants move from package to package, so
/// they are spelt out here.
pub mod key {
    /// The operation; always `execute_tool`.
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// The tool's name.
    pub const TOOL: &str = "gen_ai.tool.name";
    /// The id that the model gave the call.
    pub const CALL_ID: &str = "gen_ai.tool.call.id";
    /// The description of the tool.
    pub const DESCRIPTION: &str = "gen_ai.tool.description";
    /// The kind of tool; always `function`.
    pub const TYPE: &str = "gen_ai.tool.type";
    /// The arguments; recorded on request.
    pub const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    /// The last result; recorded on request.
    pub const RESULT: &str = "gen_ai.tool.call.result";
    /// The reason of a failure: the class of an exception, or one of our codes.
    pub const ERROR_TYPE: &str = "error.type";
    /// The caller.
    pub const CALLER: &str = "toolcrib.caller";
    /// The id of the session.
    pub const SESSION: &str = "toolcrib.session.id";
    /// True if the call was cancelled.
    pub const CANCELLED: &str = "toolcrib.cancelled";
}

/// The operation of every span here.
const OPERATION: &str = "execute_tool";

/// The kind of every tool here.
const TYPE: &str = "function";

/// The longest recorded name or id, in characters. Both come from a model, which may send anything.
const NAME_LIMIT: usize = 256;

/// The name and the initial attributes of the span of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpan<'a> {
    tool: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
    caller: Option<Cow<'a, str>>,
    session: Option<Cow<'a, str>>,
}

impl<'a> ToolSpan<'a> {
    /// Makes the span of a call. An empty id counts as none.
    #[must_use]
    pub fn new(tool: Option<&'a str>, call_id: Option<&'a str>, description: Option<Cow<'a, str>>) -> Self {
        Self {
            tool: tool.map(|tool| truncated(tool, NAME_LIMIT)),
            call_id: call_id.filter(|id| !id.is_empty()).map(|id| truncated(id, NAME_LIMIT)),
            description,
            caller: None,
            session: None,
        }
    }

    /// The same with the caller and the id of the session.
    #[must_use]
    pub fn called_by(self, caller: Option<Cow<'a, str>>, session: Option<Cow<'a, str>>) -> Self {
        Self { caller, session, ..self }
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
        let known = [
            (key::TOOL, &self.tool),
            (key::CALL_ID, &self.call_id),
            (key::DESCRIPTION, &self.description),
            (key::CALLER, &self.caller),
            (key::SESSION, &self.session),
        ];
        [(key::OPERATION, OPERATION), (key::TYPE, TYPE)]
            .into_iter()
            .chain(known.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))))
    }
}

/// A span of a distributed trace, as W3C Trace Context writes it: the parent of spans in another program.
///
/// ```
/// use toolcrib::trace::TraceContext;
///
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
/// assert_eq!(TraceContext::new(parent, Some("vendor=1")).map(|trace| trace.traceparent().to_owned()).as_deref(), Some(parent));
/// assert_eq!(TraceContext::new("00-0-0-0", None), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: Box<str>,
    tracestate: Option<Box<str>>,
}

/// The longest `tracestate` that is passed on, in bytes: the least that the recommendation asks for.
const STATE_LIMIT: usize = 512;

impl TraceContext {
    /// The entry of a carrier for the span.
    pub const TRACEPARENT: &'static str = "traceparent";
    /// The entry of a carrier for the data of vendors.
    pub const TRACESTATE: &'static str = "tracestate";

    /// Makes the context of a span; none if the `traceparent` is invalid. A `tracestate` that is invalid, or longer than 512
    /// bytes, is left out.
    #[must_use]
    pub fn new(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let is_state = |state: &&str| {
            !state.is_empty() && state.len() <= STATE_LIMIT && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        is_traceparent(traceparent)
            .then(|| Self { traceparent: traceparent.into(), tracestate: tracestate.filter(is_state).map(Box::from) })
    }

    /// Reads the context from the `_meta` of a request of MCP.
    #[must_use]
    pub fn read(meta: &Map<String, Value>) -> Option<Self> {
        let text = |name| meta.get(name).and_then(Value::as_str);
        Self::new(text(Self::TRACEPARENT)?, text(Self::TRACESTATE))
    }

    /// Writes the context into the `_meta` of a request of MCP.
    pub fn write(&self, meta: &mut Map<String, Value>) {
        meta.insert(Self::TRACEPARENT.to_owned(), (&*self.traceparent).into());
        if let Some(state) = &self.tracestate {
            meta.insert(Self::TRACESTATE.to_owned(), (&**state).into());
        }
    }

    /// The version, the ids of trace and span, and the flags.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The data of vendors.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }
}

/// True for `version-trace-span-flags` in lower-case hexadecimal digits; later versions may append more.
fn is_traceparent(text: &str) -> bool {
    const LENGTH: usize = 55;
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let Some((known, rest)) = text.split_at_checked(LENGTH) else { return false };
    let parts: Vec<&str> = known.split('-').collect();
    let [version, trace, span, flags] = parts[..] else { return false };
    let is_whole = if version == "00" { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
    (version.len(), trace.len(), span.len(), flags.len()) == (2, 32, 16, 2)
        && [version, trace, span, flags].into_iter().all(is_hex)
        && !is_zero(trace)
        && !is_zero(span)
        && version != "ff"
        && is_whole
        && text.len() <= STATE_LIMIT
        && text.is_ascii()
}

/// Truncates a text; a truncated one ends with an ellipsis.
fn truncated(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => text.into(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect::<String>().into(),
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The call succeeded; a stream that the consumer leaves early did, too.
    Completed,
    /// A response with an error code replaced the result.
    Answered {
        /// The code.
        code: String,
    },
    /// The tool raised an exception, which the consumer saw, or a response in its place.
    Raised {
        /// The class of the exception.
        class: String,
        /// The message.
        message: String,
    },
    /// The call was cancelled.
    Cancelled,
}

impl Outcome {
    /// The outcome of a response by its code, if it has one.
    #[must_use]
    pub fn of_code(code: Option<&str>) -> Self {
        match code {
            None => Self::Completed,
            Some(code) if code == Code::Interrupted.as_str() => Self::Cancelled,
            Some(code) => Self::Answered { code: code.to_owned() },
        }
    }

    /// The value of `error.type`; `None` for success.
    #[must_use]
    pub fn error_type(&self) -> Option<&str> {
        match self {
            Self::Completed => None,
            Self::Answered { code } => Some(code),
            Self::Raised { class, .. } => Some(class),
            Self::Cancelled => Some("CancelledError"),
        }
    }

    /// The description of the status. A response is not repeated, because it may quote the arguments.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        match self {
            Self::Raised { class, message } if message.is_empty() => Some(class.clone()),
            Self::Raised { class, message } => Some(format!("{class}: {message}")),
            Self::Cancelled => Some("the call was cancelled".to_owned()),
            Self::Completed | Self::Answered { .. } => None,
        }
    }

    /// True if the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self == Self::Cancelled
    }
}

/// True if a `tracing` subscriber may record calls. Without one this reads a static variable.
#[inline]
#[must_use]
pub fn is_watched() -> bool {
    LevelFilter::current() >= LevelFilter::INFO
}

/// A running call as a span of the crate `tracing`, for Rust programs. The span ends when this is dropped.
#[derive(Debug)]
pub struct RustSpan(Span);

impl RustSpan {
    /// Opens the span below the current one. The fields that begin with `otel.` are for `tracing-opentelemetry`.
    #[must_use]
    pub fn open(call: &ToolSpan<'_>) -> Self {
        let span = info_span!(
            target: "toolcrib",
            "execute_tool",
            otel.name = &*call.name(),
            otel.kind = "internal",
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.operation.name = OPERATION,
            gen_ai.tool.type = TYPE,
            gen_ai.tool.name = Empty,
            gen_ai.tool.call.id = Empty,
            gen_ai.tool.description = Empty,
            toolcrib.caller = Empty,
            toolcrib.session.id = Empty,
            error.type = Empty,
            toolcrib.cancelled = Empty,
        );
        let known = call.attributes().filter(|(name, _)| *name != key::OPERATION && *name != key::TYPE);
        for (name, value) in known {
            span.record(name, value);
        }
        Self(span)
    }

    /// Makes the span the current one until the guard is dropped, which must be before the call suspends.
    pub fn enter(&self) -> EnteredSpan {
        self.0.clone().entered()
    }

    /// Records the outcome of the call, in the span and as an event in it.
    pub fn end(&self, outcome: &Outcome) {
        let Some(error) = outcome.error_type() else {
            info!(target: "toolcrib", parent: &self.0, "the tool call ended");
            return;
        };
        self.0.record("otel.status_code", "ERROR");
        self.0.record(key::ERROR_TYPE, error);
        if let Some(description) = outcome.description() {
            self.0.record("otel.status_description", &*description);
        }
        if outcome.is_cancelled() {
            self.0.record(key::CANCELLED, true);
        }
        info!(target: "toolcrib", parent: &self.0, { error.type = error }, "the tool call failed");
    }
}
