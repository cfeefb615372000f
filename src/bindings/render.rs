//! The methods of `ToolResponse` that give it back to a model's provider.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::response::PyToolResponse;
use super::tool_call::{PyToolCall, read_object};
use super::{foreign, json, value};
use crate::provider::{self, ToolResult};

/// A response as JSON, with the call that it answers.
struct Answered {
    content: Value,
    value: Option<Value>,
    is_error: bool,
    id: Option<String>,
    is_custom: bool,
    name: Option<String>,
}

impl Answered {
    fn new(response: &Bound<'_, PyToolResponse>, call: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let py = response.py();
        let content = content(&response.getattr(intern!(py, "content"))?)?;
        let metadata = response.getattr(intern!(py, "metadata"))?;
        let value = match metadata.cast::<PyDict>() {
            // What JSON has no word for is told by the text alone.
            Ok(metadata) => metadata.get_item(intern!(py, "value"))?.and_then(|value| foreign::to_value(&value).ok()),
            Err(_) => None,
        };
        let is_error = !response.getattr(intern!(py, "ok"))?.is_truthy()?;
        let mut answered = Self { content, value, is_error, id: None, is_custom: false, name: None };
        if let Some(call) = call {
            answered.to(call)?;
        }
        Ok(answered)
    }

    /// Takes the id and the name of a call: of the call itself in any form, or just its id.
    fn to(&mut self, call: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(id) = call.cast::<PyString>() {
            self.id = Some(id.to_string());
            return Ok(());
        }
        let read;
        let call = if let Ok(call) = call.cast::<PyToolCall>() {
            &call.get().call
        } else if foreign::is_readable(call) {
            read = read_object(call, None)?;
            &read
        } else {
            let class = call.get_type().name()?;
            return Err(PyTypeError::new_err(format!("call must be a tool call or its id, not {class}")));
        };
        self.id.clone_from(&call.id);
        self.is_custom = call.format.ends_with("_custom");
        self.name = Some(call.name.clone()).filter(|name| !name.is_empty());
        Ok(())
    }

    /// The same, if it is known which call is answered: a provider refuses a message that does not say so.
    fn with_id(self, method: &str, is_call_given: bool) -> PyResult<Self> {
        if self.id.is_some() {
            return Ok(self);
        }
        if is_call_given {
            return Err(PyValueError::new_err(format!(
                "{method} needs the id of the call that the response answers, and `call` has none; give the id itself"
            )));
        }
        Err(PyTypeError::new_err(format!("{method} needs `call`: the call that the response answers, or its id")))
    }

    fn write<'py>(&self, py: Python<'py>, write: fn(ToolResult<'_>) -> Value) -> PyResult<Bound<'py, PyAny>> {
        let written = write(ToolResult {
            content: &self.content,
            value: self.value.as_ref(),
            is_error: self.is_error,
            id: self.id.as_deref(),
            is_custom: self.is_custom,
            name: self.name.as_deref(),
        });
        json::to_python(py, &written)
    }
}

/// The content as JSON; a block that is none is shown as Python shows it.
fn content(content: &Bound<'_, PyAny>) -> PyResult<Value> {
    if content.is_instance_of::<PyString>() {
        return foreign::to_value(content);
    }
    let mut blocks = Vec::new();
    for block in content.try_iter()? {
        let block = block?;
        blocks.push(foreign::to_value(&block).unwrap_or_else(|_| Value::from(value::shown(&block))));
    }
    Ok(Value::Array(blocks))
}

#[pymethods]
impl PyToolResponse {
    /// Give the message with the role `tool` of OpenAI's chat completions, which holds text only.
    ///
    /// Args:
    ///     call: The call that this answers, in any form, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing, or can be no call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        Answered::new(slf, call)?.with_id("to_openai", call.is_some())?.write(slf.py(), provider::to_openai)
    }

    /// Give the item that answers a call of OpenAI's responses.
    ///
    /// Args:
    ///     call: The call that this answers, in any form, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing, or can be no call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai_responses<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answered = Answered::new(slf, call)?.with_id("to_openai_responses", call.is_some())?;
        answered.write(slf.py(), provider::to_openai_responses)
    }

    /// Give Anthropic's `tool_result` block.
    ///
    /// Args:
    ///     call: The call that this answers, in any form, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing, or can be no call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_anthropic<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        Answered::new(slf, call)?.with_id("to_anthropic", call.is_some())?.write(slf.py(), provider::to_anthropic)
    }

    /// Give Gemini's `functionResponse` part.
    ///
    /// Args:
    ///     call: The call that this answers, in any form, or its id.
    ///     name: The tool's name, where `call` does not say it.
    ///
    /// Raises:
    ///     TypeError: If neither says which tool it was, or `call` can be no call.
    #[pyo3(signature = (call=None, *, name=None))]
    fn to_gemini<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut answered = Answered::new(slf, call)?;
        answered.name = name.or(answered.name);
        if answered.name.is_none() {
            return Err(PyTypeError::new_err(
                "to_gemini needs `name`, or `call`, which says the name: the tool that the response is of",
            ));
        }
        answered.write(slf.py(), provider::to_gemini)
    }

    /// Give MCP's `CallToolResult`.
    fn to_mcp<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Answered::new(slf, None)?.write(slf.py(), provider::to_mcp)
    }
}
