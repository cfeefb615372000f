//! Conversion of a response to the message formats of providers.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::imported::import_module;
use super::into_response::display_text;
use super::json;
use super::response::{PyToolResponse, shown_value};
use super::tool_call::{PyToolCall, read_object};
use crate::bindings::once::intern;
use crate::provider::{self, ToolResult};

/// A response as JSON, with the id and the name of its call.
struct CallResult {
    content: Value,
    value: Option<Value>,
    is_error: bool,
    id: Option<String>,
    is_custom: bool,
    name: Option<String>,
}

impl CallResult {
    fn new(response: &Bound<'_, PyToolResponse>, call: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let py = response.py();
        let content = content_to_json(&response.getattr(intern!(py, "content"))?)?;
        let metadata = response.getattr(intern!(py, "metadata"))?;
        let value = match metadata.cast::<PyDict>() {
            // A value without a JSON form is represented by the text alone.
            Ok(metadata) => shown_value(metadata)?.and_then(|value| json::from_result(&value).ok()),
            Err(_) => None,
        };
        let is_error = !response.getattr(intern!(py, "ok"))?.is_truthy()?;
        let mut result = Self { content, value, is_error, id: None, is_custom: false, name: None };
        if let Some(call) = call {
            result.set_call(call)?;
        }
        Ok(result)
    }

    /// Sets the id and the name from a call in any format, or from its id.
    fn set_call(&mut self, call: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(id) = call.cast::<PyString>() {
            self.id = Some(id.to_string());
            return Ok(());
        }
        let read;
        let call = if let Ok(call) = call.cast::<PyToolCall>() {
            &call.get().call
        } else if json::may_be_call(call) {
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

    /// Checks that there is an id, without which a provider refuses the message.
    fn with_id(self, method: &str, is_call_given: bool) -> PyResult<Self> {
        if self.id.is_some() {
            return Ok(self);
        }
        if is_call_given {
            return Err(PyValueError::new_err(format!(
                "missing id: {method} needs the id of the call, and `call` has none; pass the id itself"
            )));
        }
        Err(PyTypeError::new_err(format!(
            "missing argument: {method} needs `call`, the call of this response or its id"
        )))
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

/// The content as JSON; a block without a JSON form is written as by `str`.
pub(super) fn content_to_json(content: &Bound<'_, PyAny>) -> PyResult<Value> {
    if content.is_instance_of::<PyString>() {
        return json::from_result(content);
    }
    let mut blocks = Vec::new();
    for block in content.try_iter()? {
        let block = block?;
        blocks.push(json::from_result(&block).unwrap_or_else(|_| Value::from(display_text(&block))));
    }
    Ok(Value::Array(blocks))
}

#[pymethods]
impl PyToolResponse {
    /// Return the message with the role `tool` of OpenAI's chat completions, which holds text only.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, call)?.with_id("to_openai", call.is_some())?.write(slf.py(), provider::to_openai)
    }

    /// Return the item that answers a call in OpenAI's responses API.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai_responses<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = CallResult::new(slf, call)?.with_id("to_openai_responses", call.is_some())?;
        result.write(slf.py(), provider::to_openai_responses)
    }

    /// Return Anthropic's `tool_result` block.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_anthropic<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, call)?.with_id("to_anthropic", call.is_some())?.write(slf.py(), provider::to_anthropic)
    }

    /// Return Gemini's `functionResponse` part.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///     name: The tool's name, if `call` does not have it.
    ///
    /// Raises:
    ///     TypeError: If neither has the name of the tool, or `call` is not a call.
    #[pyo3(signature = (call=None, *, name=None))]
    fn to_gemini<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut result = CallResult::new(slf, call)?;
        result.name = name.or(result.name);
        if result.name.is_none() {
            return Err(PyTypeError::new_err(
                "missing argument: to_gemini needs `name`, the name of the tool, or a `call` that has it",
            ));
        }
        result.write(slf.py(), provider::to_gemini)
    }

    /// Return the `toolResult` block of Amazon Bedrock's Converse, with images as bytes.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_bedrock<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let block =
            CallResult::new(slf, call)?.with_id("to_bedrock", call.is_some())?.write(py, provider::to_bedrock)?;
        // The SDK encodes the bytes itself.
        for part in block.get_item("toolResult")?.get_item("content")?.try_iter()? {
            if let Ok(image) = part?.get_item("image") {
                let source = image.get_item("source")?;
                let decode = import_module(py, "base64")?.getattr("b64decode")?;
                source.set_item("bytes", decode.call1((source.get_item("bytes")?,))?)?;
            }
        }
        Ok(block)
    }

    /// Return MCP's `CallToolResult`.
    fn to_mcp<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, None)?.write(slf.py(), provider::to_mcp)
    }
}
