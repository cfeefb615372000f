//! A tool that is a Rust function, and the context in which it is called.

use std::any::TypeId;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::log::{LogLevel, Logger};
use super::question::{Asker, Question, Unanswered};
use super::run::{Begin, Failure, Responses, Run, ToolError};
use super::schema;
use crate::call::{ChunkMode, ChunkRule, Reply, ResultBudget, ToolResponse};
use crate::policy::{Permission, ToolKind};
use crate::provider::mcp_output_schema;
use crate::schema::check::{Checker, FormatRules};
use crate::schema::{Entries, FunctionSchema, Node};
use crate::trace::TraceContext;

/// A tool that is a Rust function: its code, its schema, and its options.
///
/// The parameters are a type with `serde::Deserialize` and `schemars::JsonSchema`; the model reads its documentation
/// comments as their descriptions. Cloning is cheap.
///
/// ```
/// use toolcrib::prelude::*;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greeting {
///     /// The person to greet.
///     name: String,
/// }
///
/// let greet = NativeTool::new("greet", "Greets a person.", |_: ToolContext, greeting: Greeting| async move {
///     Ok(format!("Hello, {}!", greeting.name))
/// });
///
/// assert_eq!(greet.name(), "greet");
/// assert_eq!(greet.schema().value()["function"]["parameters"]["required"][0], "name");
/// ```
#[derive(Clone)]
pub struct NativeTool {
    name: Arc<str>,
    schema: Arc<FunctionSchema>,
    /// The `function` part of the schema, as it was written.
    function: Arc<Entries>,
    checker: Arc<Checker>,
    body: Arc<dyn Fn(ToolContext, Value) -> Begin + Send + Sync>,
    /// True if the items of its stream are not responses themselves.
    has_plain_items: bool,
    is_streaming: bool,
    place: Place,
    chunks: ChunkRule,
    kind: ToolKind,
    permission: Permission,
    timeout: Option<Duration>,
    tags: Arc<[Box<str>]>,
    output: Option<Arc<Map<String, Value>>>,
    result_budget: Option<ResultBudget>,
}

/// The place where a runtime runs the code of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A task.
    Task,
    /// The thread of the caller up to the first wait, and then a task.
    Caller,
    /// A thread that it may block.
    Blocked,
}

impl NativeTool {
    /// Makes a tool with one response.
    ///
    /// The result becomes a response as it does in a Python tool: text stays text, other values become JSON text and keep
    /// their value in the metadata; [`Json`] wraps results of other types. An error becomes a response with the code
    /// `failed`, and so does a panic.
    pub fn new<P, R, F, Fut>(name: &str, description: &str, function: F) -> Self
    where
        P: JsonSchema + DeserializeOwned,
        R: Into<ToolResponse>,
        F: Fn(ToolContext, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let body = lazy(move |context, arguments| {
            let result = function(context, read(arguments)?);
            Ok(Box::pin(stream::once(result.map(|result| result.map(Into::into)))))
        });
        Self::with::<P>(name, description, false, body)
    }

    /// Makes a tool with one response, which also gets a value that `prepare` makes at each call, in the thread that calls
    /// [`run`](Self::run).
    ///
    /// Variables of the environment are such values: they must not be read in a thread of tokio while the host changes them
    /// in another.
    pub fn prepared<T, P, R, F, Fut>(
        name: &str,
        description: &str,
        prepare: impl Fn() -> T + Send + Sync + 'static,
        function: F,
    ) -> Self
    where
        T: Send + 'static,
        P: JsonSchema + DeserializeOwned,
        R: Into<ToolResponse>,
        F: Fn(ToolContext, T, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let function = Arc::new(function);
        Self::with::<P>(name, description, false, move |context, arguments| {
            let (function, prepared) = (function.clone(), prepare());
            Box::new(move || {
                let result = function(context, prepared, read(arguments)?);
                Ok(Box::pin(stream::once(result.map(|result| result.map(Into::into)))))
            })
        })
    }

    /// Makes a tool with a stream of responses, which also gets a value that `prepare` makes at each call; see
    /// [`prepared`](Self::prepared). Each response says by its [`mode`](ToolResponse::mode) what it is.
    pub fn prepared_streaming<T, P, F, S>(
        name: &str,
        description: &str,
        prepare: impl Fn() -> T + Send + Sync + 'static,
        function: F,
    ) -> Self
    where
        T: Send + 'static,
        P: JsonSchema + DeserializeOwned,
        F: Fn(ToolContext, T, P) -> S + Send + Sync + 'static,
        S: Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static,
    {
        let function = Arc::new(function);
        Self::with::<P>(name, description, true, move |context, arguments| {
            let (function, prepared) = (function.clone(), prepare());
            Box::new(move || Ok(Box::pin(function(context, prepared, read(arguments)?))))
        })
    }

    /// Makes a tool with a response for each item of a stream. It ends with the stream or with the first error.
    ///
    /// Each item is appended to the result; see [`with_chunks`](Self::with_chunks). An item that is a [`ToolResponse`] says
    /// by its [`mode`](ToolResponse::mode) what it is. The last response is the whole result: the one that is made by
    /// [`ending_stream`](ToolResponse::ending_stream), or else what was collected.
    pub fn streaming<P, R, F, S>(name: &str, description: &str, function: F) -> Self
    where
        P: JsonSchema + DeserializeOwned,
        R: Into<ToolResponse> + 'static,
        F: Fn(ToolContext, P) -> S + Send + Sync + 'static,
        S: Stream<Item = Result<R, ToolError>> + Send + 'static,
    {
        let body = lazy(move |context, arguments| {
            let results = function(context, read(arguments)?);
            Ok(Box::pin(results.map(|result| result.map(Into::into))))
        });
        let tool = Self::with::<P>(name, description, true, body);
        Self { has_plain_items: TypeId::of::<R>() != TypeId::of::<ToolResponse>(), ..tool }
    }

    /// Makes a tool whose schema is known only when the program runs, such as a tool of an MCP server.
    ///
    /// `parameters` is the JSON Schema of the arguments, an object; the model is shown it as it is. Each response says by its
    /// [`mode`](ToolResponse::mode) what it is.
    pub fn described<F, S>(name: &str, description: &str, parameters: Value, function: F) -> Self
    where
        F: Fn(ToolContext, Map<String, Value>) -> S + Send + Sync + 'static,
        S: Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static,
    {
        let body = lazy(move |context, arguments| {
            let Value::Object(arguments) = arguments else {
                return Err(Failure::Arguments("the arguments must be an object".to_owned()));
            };
            Ok(Box::pin(function(context, arguments)))
        });
        Self::with_parameters(name, description, &Node::from(parameters), true, body)
    }

    fn with<P: JsonSchema>(
        name: &str,
        description: &str,
        is_streaming: bool,
        body: impl Fn(ToolContext, Value) -> Begin + Send + Sync + 'static,
    ) -> Self {
        Self::with_parameters(name, description, &schema::parameters::<P>(), is_streaming, body)
    }

    fn with_parameters(
        name: &str,
        description: &str,
        parameters: &Node,
        is_streaming: bool,
        body: impl Fn(ToolContext, Value) -> Begin + Send + Sync + 'static,
    ) -> Self {
        let mut function = Entries::with_capacity(3);
        function.insert("name", name.to_owned().into());
        function.insert("parameters", parameters.clone());
        if !description.is_empty() {
            function.insert("description", Node::from(description.to_owned()));
        }
        let schema = Arc::new(FunctionSchema::new(&function, name));
        let checker = Arc::new(Checker::with_document(schema.parameters().clone(), FormatRules::Standard));
        Self {
            name: name.into(),
            schema,
            function: Arc::new(function),
            checker,
            body: Arc::new(body),
            has_plain_items: false,
            is_streaming,
            place: Place::Task,
            chunks: ChunkRule::default(),
            kind: ToolKind::default(),
            permission: Permission::default(),
            timeout: None,
            tags: Arc::default(),
            output: None,
            result_budget: None,
        }
    }

    /// Sets the kind of tool, which rules can match.
    #[must_use]
    pub fn with_kind(self, kind: ToolKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets the permission that a call needs if no rule matches.
    #[must_use]
    pub fn with_permission(self, permission: Permission) -> Self {
        Self { permission, ..self }
    }

    /// Sets the time after which a call ends.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Declares that the code up to its first wait neither blocks nor computes for long. A host with an event loop then runs
    /// that part in the loop's own thread: a tool that has its result by then needs no other thread at all.
    #[must_use]
    pub fn with_quick_start(self) -> Self {
        Self { place: Place::Caller, ..self }
    }

    /// Declares that all it waits for is [`blocking`](super::run::blocking): a [`Runtime`](super::Runtime) then runs all of it in
    /// one thread, which it may block, instead of in a task that waits for such a thread.
    #[must_use]
    pub(crate) fn with_blocking(self) -> Self {
        Self { place: Place::Blocked, ..self }
    }

    /// Sets the meaning of the items of its stream that are not responses themselves: with [`ChunkRule::Add`], the default,
    /// each is appended to the result, otherwise each is the result so far.
    #[must_use]
    pub fn with_chunks(self, chunks: ChunkRule) -> Self {
        Self { chunks, ..self }
    }

    /// Sets the tags, which views can select and rules can match.
    #[must_use]
    pub fn with_tags<T: Into<Box<str>>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        Self { tags: tags.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the type of its results, which MCP clients are shown as the schema of the structured content. A type that is not an
    /// object is under `result` there.
    #[must_use]
    pub fn with_output<T: JsonSchema>(self) -> Self {
        let output = mcp_output_schema(schema::of_type::<T>()).map(Arc::new);
        Self { output, ..self }
    }

    /// Sets the largest size of its results; longer ones are cut by a toolkit.
    #[must_use]
    pub fn with_result_budget(self, budget: ResultBudget) -> Self {
        Self { result_budget: Some(budget), ..self }
    }

    /// The largest size of its results.
    #[must_use]
    pub fn result_budget(&self) -> Option<&ResultBudget> {
        self.result_budget.as_ref()
    }

    /// The schema of its structured results.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Map<String, Value>> {
        self.output.as_deref()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema that a model reads.
    #[must_use]
    pub fn schema(&self) -> &Arc<FunctionSchema> {
        &self.schema
    }

    /// The `function` part of the schema, before it is written as text.
    #[must_use]
    pub fn function(&self) -> &Arc<Entries> {
        &self.function
    }

    /// True if the tool has a stream of responses, false if it has one.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// True if its code up to its first wait may run in the thread of an event loop.
    #[must_use]
    pub fn starts_quickly(&self) -> bool {
        self.place == Place::Caller
    }

    /// The validator of its arguments.
    #[must_use]
    pub fn checker(&self) -> &Arc<Checker> {
        &self.checker
    }

    /// The kind of tool.
    #[must_use]
    pub fn kind(&self) -> ToolKind {
        self.kind
    }

    /// The permission that a call needs if no rule matches.
    #[must_use]
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// The time after which a call ends.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The tags.
    #[must_use]
    pub fn tags(&self) -> &Arc<[Box<str>]> {
        &self.tags
    }

    /// Runs the tool with valid arguments.
    ///
    /// This is only the last stage of a call: arguments are not validated, and no permission is needed. The run has to be
    /// polled inside a tokio runtime if the tool needs one; the tool does not start before.
    pub fn run(&self, context: ToolContext, arguments: Value) -> Run {
        let token = context.cancellation.clone();
        let begin = (self.body)(context, arguments);
        if self.place == Place::Blocked {
            return Run::new(token, begin).blocking();
        }
        if !self.has_plain_items || self.chunks.plain_mode() == ChunkMode::Result {
            return Run::new(token, begin);
        }
        let mode = self.chunks.plain_mode();
        let marked = move |response: ToolResponse| match response.mode {
            ChunkMode::Result => ToolResponse { mode, ..response },
            // Its conversion has decided.
            ChunkMode::Progress | ChunkMode::Addition => response,
        };
        let begin =
            move || -> Result<Responses, Failure> { Ok(Box::pin(begin()?.map(move |response| response.map(marked)))) };
        Run::new(token, Box::new(begin))
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NativeTool")
            .field("name", &self.name)
            .field("is_streaming", &self.is_streaming)
            .field("kind", &self.kind)
            .field("permission", &self.permission)
            .field("timeout", &self.timeout)
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

/// The call that a native tool runs for.
///
/// Cloning is cheap, and a clone may outlive the call, whose end it sees by its [`cancellation`](Self::cancellation).
#[derive(Debug, Clone, Default)]
pub struct ToolContext {
    /// The name by which the tool was called.
    pub tool: Arc<str>,
    /// The id of the call, as the model or its provider wrote it.
    pub call_id: Option<Arc<str>>,
    /// The caller, if one is named.
    pub caller: Option<Arc<str>>,
    /// The id of the session that the call is part of.
    pub session: Option<Arc<str>>,
    /// The moment at which the call times out.
    pub deadline: Option<Instant>,
    /// Cancelled with the call: the consumer is gone or has cancelled it, or the deadline has passed.
    ///
    /// The tool's own future is dropped at that moment. The token is for work that the tool has started in another task or
    /// thread.
    pub cancellation: CancellationToken,
    /// The function that answers the tool's questions, if the host has one.
    pub asker: Option<Asker>,
    /// The function that logs the tool's messages, if the host has one.
    pub logger: Option<Logger>,
    /// The span of the call in the host's trace, for requests to other programs; none if it is not traced.
    pub trace: Option<Arc<TraceContext>>,
}

impl ToolContext {
    /// Makes the context of a call of which only the tool's name is known.
    #[must_use]
    pub fn of(tool: impl Into<Arc<str>>) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }

    /// Asks a question in the middle of the call.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer: [`Unanswered::NotSupported`] if the host has no asker.
    pub async fn ask(&self, question: Question) -> Result<Value, Unanswered> {
        match &self.asker {
            Some(asker) => asker.ask(question).await,
            None => Err(Unanswered::NotSupported),
        }
    }

    /// Logs a warning; see [`log`](Self::log).
    pub fn warn(&self, text: impl Into<String>) {
        self.log(LogLevel::Warning, text);
    }

    /// Logs a message by the host's logger, or else by `tracing`.
    pub fn log(&self, level: LogLevel, text: impl Into<String>) {
        let tool = &*self.tool;
        match (&self.logger, level) {
            (Some(logger), _) => logger.log(level, text),
            (None, LogLevel::Debug) => tracing::debug!(target: "toolcrib", tool, "{}", text.into()),
            (None, LogLevel::Info | LogLevel::Notice) => tracing::info!(target: "toolcrib", tool, "{}", text.into()),
            (None, LogLevel::Warning) => tracing::warn!(target: "toolcrib", tool, "{}", text.into()),
            (None, _) => tracing::error!(target: "toolcrib", tool, "{}", text.into()),
        }
    }
}

/// The body of a tool that does nothing before its first poll.
fn lazy(
    body: impl Fn(ToolContext, Value) -> Result<Responses, Failure> + Send + Sync + 'static,
) -> impl Fn(ToolContext, Value) -> Begin + Send + Sync + 'static {
    let body = Arc::new(body);
    move |context, arguments| {
        let body = body.clone();
        Box::new(move || body(context, arguments))
    }
}

/// Reads arguments into the type of the parameters.
fn read<P: DeserializeOwned>(arguments: Value) -> Result<P, Failure> {
    // serde reads `()` from null, but a call without arguments has an empty object.
    let is_unit = size_of::<P>() == 0 && arguments.as_object().is_some_and(serde_json::Map::is_empty);
    match serde_json::from_value(arguments) {
        Ok(parameters) => Ok(parameters),
        Err(_) if is_unit => serde_json::from_value(Value::Null).map_err(|error| Failure::Arguments(error.to_string())),
        Err(error) => Err(Failure::Arguments(error.to_string())),
    }
}

/// A result of any type with `serde::Serialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolResponse {
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => Self::from(value),
            // A map with keys that are not text, or an implementation of `Serialize` that fails.
            Err(error) => {
                Self::replying(&Reply::Failed { message: format!("the result cannot be written as JSON: {error}") })
            }
        }
    }
}
