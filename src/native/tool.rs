//! A tool that is a Rust function.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::run::{Failure, Responses, Run, ToolError};
use super::{ToolContext, schema};
use crate::call::{Reply, ToolResponse};
use crate::policy::{Kind, Permission};
use crate::schema::check::Checker;
use crate::schema::{Entries, FunctionSchema, Node};

/// A tool that is a Rust function: what a model is told about it, what its developer says about it, and its code.
///
/// The parameters are a type with `serde::Deserialize` and `schemars::JsonSchema`; its documentation comments are what the
/// model reads about each of them. Cloning is cheap.
///
/// ```
/// use toolcrib::native::{NativeTool, ToolContext};
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
    checker: Arc<Checker>,
    body: Arc<dyn Fn(ToolContext, Value) -> Result<Responses, Failure> + Send + Sync>,
    is_streaming: bool,
    kind: Kind,
    permission: Permission,
    timeout: Option<Duration>,
    tags: Arc<[Box<str>]>,
}

impl NativeTool {
    /// A tool that gives one response.
    ///
    /// The result becomes a response as it does in a Python tool: text stays text, other values become JSON text and keep
    /// their value in the metadata; [`Json`] is for types of your own. An error becomes a response with the code `failed`,
    /// and so does a panic.
    pub fn new<P, R, F, Fut>(name: &str, description: &str, function: F) -> Self
    where
        P: JsonSchema + DeserializeOwned,
        R: Into<ToolResponse>,
        F: Fn(ToolContext, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        Self::with::<P>(name, description, false, move |context, arguments| {
            let result = function(context, read(arguments)?);
            Ok(Box::pin(stream::once(result.map(|result| result.map(Into::into)))))
        })
    }

    /// A tool that gives a response for each item of a stream, and ends with the stream or with the first error.
    pub fn streaming<P, R, F, S>(name: &str, description: &str, function: F) -> Self
    where
        P: JsonSchema + DeserializeOwned,
        R: Into<ToolResponse>,
        F: Fn(ToolContext, P) -> S + Send + Sync + 'static,
        S: Stream<Item = Result<R, ToolError>> + Send + 'static,
    {
        Self::with::<P>(name, description, true, move |context, arguments| {
            let results = function(context, read(arguments)?);
            Ok(Box::pin(results.map(|result| result.map(Into::into))))
        })
    }

    fn with<P: JsonSchema>(
        name: &str,
        description: &str,
        is_streaming: bool,
        body: impl Fn(ToolContext, Value) -> Result<Responses, Failure> + Send + Sync + 'static,
    ) -> Self {
        let parameters = schema::parameters::<P>();
        let mut function = Entries::with_capacity(3);
        function.insert("name", name.to_owned().into());
        function.insert("parameters", parameters.clone());
        if !description.is_empty() {
            function.insert("description", Node::from(description.to_owned()));
        }
        let schema = Arc::new(FunctionSchema::new(&function, name));
        let checker = Arc::new(Checker::with_document(&parameters, schema.parameters().clone()));
        Self {
            name: name.into(),
            schema,
            checker,
            body: Arc::new(body),
            is_streaming,
            kind: Kind::default(),
            permission: Permission::default(),
            timeout: None,
            tags: Arc::default(),
        }
    }

    /// The same tool of a kind, which rules can be about.
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same tool that has to be confirmed, or not, where no rule says otherwise.
    #[must_use]
    pub fn with_permission(self, permission: Permission) -> Self {
        Self { permission, ..self }
    }

    /// The same tool whose calls end after this time.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same tool with tags, which views can choose it by and rules can be about.
    #[must_use]
    pub fn with_tags<T: Into<Box<str>>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        Self { tags: tags.into_iter().map(Into::into).collect(), ..self }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema that a model is told.
    #[must_use]
    pub fn schema(&self) -> &Arc<FunctionSchema> {
        &self.schema
    }

    /// True if the tool gives a stream of responses, false if it gives one.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// The check of its arguments.
    #[must_use]
    pub fn checker(&self) -> &Arc<Checker> {
        &self.checker
    }

    /// Its effect on the world.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The permission it needs where no rule says otherwise.
    #[must_use]
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// The time after which its calls end.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The tags that views and rules can choose it by.
    #[must_use]
    pub fn tags(&self) -> &Arc<[Box<str>]> {
        &self.tags
    }

    /// Runs the tool with arguments that fit its schema.
    ///
    /// This is the end of the path of a call, without what comes before: nothing is checked against the schema, and nobody
    /// is asked. The run has to be polled inside a tokio runtime if the tool needs one; nothing of the tool runs before.
    pub fn run(&self, context: ToolContext, arguments: Value) -> Run {
        let (token, body) = (context.cancellation.clone(), self.body.clone());
        Run::new(token, move || body(context, arguments))
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

/// Reads arguments into the type of the parameters.
fn read<P: DeserializeOwned>(arguments: Value) -> Result<P, Failure> {
    // serde reads `()` from null, where a call without arguments has an object.
    let is_unit = size_of::<P>() == 0 && arguments.as_object().is_some_and(serde_json::Map::is_empty);
    match serde_json::from_value(arguments) {
        Ok(parameters) => Ok(parameters),
        Err(_) if is_unit => serde_json::from_value(Value::Null).map_err(|error| Failure::Arguments(error.to_string())),
        Err(error) => Err(Failure::Arguments(error.to_string())),
    }
}

/// A result of any type that serde can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolResponse {
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => Self::from(value),
            // A map whose keys are no text, or a `Serialize` that fails.
            Err(error) => {
                Self::replying(&Reply::Failed { message: format!("the result cannot be written as JSON: {error}") })
            }
        }
    }
}
