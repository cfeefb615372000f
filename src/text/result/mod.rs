//! What a tool gave, written for the model that asked for it.
//!
//! A result is content of others: nothing in it can end the element it stands in, or pass for a call or a word of ours.

mod element;
mod escape;
mod plain;

pub use plain::{Shown, format_plain};

use serde_json::{Value, json};

use super::tell::{Form, spaced, word};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome<'a> {
    /// Whether it went well.
    pub success: bool,
    /// What it gave, if it gave anything.
    pub data: Option<&'a Value>,
    /// What went wrong.
    pub error: Option<&'a str>,
}

/// Writes the result of a call in the form that belongs to the way calls are written.
#[must_use]
pub fn format_tool_result(form: Form, name: &str, outcome: &Outcome<'_>) -> String {
    match form {
        Form::Xml => element::tool_result(name, outcome),
        Form::Hermes | Form::Function => {
            let content = json!({"name": name, "content": content(outcome)});
            format!("<tool_response>\n{}\n</tool_response>", spaced(&content))
        }
        Form::Invoke => element::function_results(name, outcome),
        Form::Fenced => {
            let mut result = json!({"name": name, "success": outcome.success});
            if let Some(data) = outcome.data {
                result["data"] = data.clone();
            }
            if let Some(error) = outcome.error {
                result["error"] = error.into();
            }
            format!("```tool_result\n{}\n```", spaced(&result))
        }
        Form::React => match content(outcome) {
            Value::String(text) => format!("Observation: {}", word(&text)),
            content => format!("Observation: {}", spaced(&content)),
        },
    }
}

/// What there is to say in one value.
fn content(outcome: &Outcome<'_>) -> Value {
    match (outcome.error, outcome.data) {
        (Some(error), None) => json!({"error": error}),
        (Some(error), Some(data)) => json!({"error": error, "data": data}),
        (None, None) => Value::Null,
        (None, Some(data)) => data.clone(),
    }
}
