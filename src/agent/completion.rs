//! `complete_task`: the tool by which an agent ends its run, and the rules for its calls.

use serde_json::{Map, Value, json};

use crate::Result;
use crate::schema::check::{Checker, Mode, Problem};

/// The name of the tool. It is reserved: an agent has no other tool of this name.
pub const COMPLETE_TASK: &str = "complete_task";

/// The answer to a call after the first valid one of a turn.
pub const DUPLICATE_COMPLETION: &str = "Task already marked complete in this turn. Ignoring duplicate call.";

/// The most problems of an output that are listed.
const LISTED: usize = 10;

/// The keywords that hold shared parts of a schema, which references name from the root.
const SHARED: [&str; 2] = ["$defs", "definitions"];

/// The rules for calls of `complete_task`, for an agent with a declared output or without one.
///
/// ```
/// use serde_json::json;
/// use toolcrib::agent::Completion;
///
/// let completion = Completion::with_output("report", "The findings.", &json!({"type": "string"}))?;
/// let arguments = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
///
/// assert_eq!(completion.check(&arguments(json!({"report": "two birds"}))), Ok(Some(json!("two birds"))));
/// let problem = completion.check(&arguments(json!({}))).expect_err("the output is missing");
/// assert_eq!(problem.to_string(), "Missing required argument 'report' for completion.");
/// # Ok::<(), toolcrib::Error>(())
/// ```
#[derive(Debug)]
pub struct Completion {
    output: Option<Output>,
}

#[derive(Debug)]
struct Output {
    name: String,
    description: String,
    schema: Value,
    checker: Checker,
}

/// The reason why a call does not complete the task. Its text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompletionProblem {
    /// The output is missing.
    #[error("Missing required argument '{0}' for completion.")]
    Missing(String),
    /// The output does not fit its schema; with every problem.
    #[error("Output validation failed: {0}")]
    Invalid(String),
}

impl Completion {
    /// The rules for an agent without a declared output, which may send its result as text.
    #[must_use]
    pub const fn without_output() -> Self {
        Self { output: None }
    }

    /// The rules for an agent with a declared output.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`](crate::Error::InvalidSchema) if the schema is invalid.
    pub fn with_output(name: &str, description: &str, schema: &Value) -> Result<Self> {
        let parameters = parameters_of(name, description, schema);
        let checker = Checker::compile(&parameters)?;
        let output = Output { name: name.to_owned(), description: description.to_owned(), schema: parameters, checker };
        Ok(Self { output: Some(output) })
    }

    /// The description of the tool for the agent's model.
    #[must_use]
    pub fn description(&self) -> String {
        match &self.output {
            Some(output) => format!(
                "Call this tool to submit your final answer and complete the task. This is the only way to finish. \
                 Send the answer as `{}`: {}",
                output.name, output.description
            ),
            None => "Call this tool to tell that you have completed the task. This is the only way to finish. \
                     Send your final answer as `result`."
                .to_owned(),
        }
    }

    /// The schema of the tool's parameters.
    #[must_use]
    pub fn parameters(&self) -> Value {
        match &self.output {
            Some(output) => output.schema.clone(),
            None => json!({
                "type": "object",
                "properties": {"result": {"type": "string", "description": "The final answer."}},
                "required": [],
            }),
        }
    }

    /// Decides about a call: the output, or `None` if the agent has sent none.
    ///
    /// # Errors
    ///
    /// The reason why the call does not complete the task.
    pub fn check(&self, arguments: &Map<String, Value>) -> std::result::Result<Option<Value>, CompletionProblem> {
        let Some(output) = &self.output else {
            return Ok(arguments.get("result").filter(|result| !is_blank(result)).cloned());
        };
        let Some(value) = arguments.get(&output.name) else {
            return Err(CompletionProblem::Missing(output.name.clone()));
        };
        // Other arguments have no meaning here, and no reason to lose a result.
        let sent = json!({ output.name.as_str(): value });
        match output.checker.check(&sent, Mode::Coerce, &[]) {
            Ok(None) => Ok(Some(value.clone())),
            Ok(Some(coerced)) => Ok(coerced.get(&output.name).cloned()),
            Err(problems) => Err(CompletionProblem::Invalid(listed(&problems))),
        }
    }
}

/// The result of a run as text: text as it is, and other values as JSON with an indent of two blanks.
#[must_use]
pub fn completion_text(output: Option<&Value>) -> String {
    match output {
        None => "Task completed successfully.".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

/// The schema of one required argument. Shared parts move to the root, where references look for them.
fn parameters_of(name: &str, description: &str, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    if let Some(entries) = schema.as_object_mut() {
        for key in SHARED {
            if let Some(shared) = entries.shift_remove(key) {
                root.insert(key.to_owned(), shared);
            }
        }
        if !entries.contains_key("description") && !description.is_empty() {
            entries.insert("description".to_owned(), description.into());
        }
    }
    root.insert("properties".to_owned(), json!({ name: schema }));
    root.insert("required".to_owned(), json!([name]));
    Value::Object(root)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty()) || value.is_null()
}

fn listed(problems: &[Problem]) -> String {
    let mut lines: Vec<String> = problems.iter().take(LISTED).map(ToString::to_string).collect();
    if problems.len() > LISTED {
        lines.push(format!("and {} more", problems.len() - LISTED));
    }
    lines.join("; ")
}
