//! What models are told in text: about tools, and about what tools gave.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::into_response::as_json;
use super::json;
use super::response::PyToolResponse;
use super::tool_call::{PyToolCall, read_object};
use crate::schema::FunctionSchema;
use crate::text::result::{self, Outcome};
use crate::text::tell::{Form, ToolFacts, instructions};

/// Adds the functions to the module.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(format_tool_result, module)?)
}

/// The form that a word stands for.
pub(crate) fn form(word: &str) -> PyResult<Form> {
    Form::parse(word).ok_or_else(|| {
        let words = Form::ALL.map(|form| format!("'{}'", form.as_str())).join(", ");
        PyValueError::new_err(format!("format must be one of {words}, not '{word}'"))
    })
}

/// Writes the instructions for tools with these names and schemas.
pub(crate) fn tell(form: Form, tools: &[(Arc<str>, Arc<FunctionSchema>)]) -> String {
    let descriptions: Vec<String> = tools.iter().map(|(_, schema)| schema.description().unwrap_or_default()).collect();
    let facts: Vec<ToolFacts<'_>> = tools
        .iter()
        .zip(&descriptions)
        .map(|((name, schema), description)| ToolFacts { name, description, parameters: schema.parameters() })
        .collect();
    instructions(form, &facts)
}

/// Write what a call gave, for a model to read.
///
/// Args:
///     name: The tool's name.
///     result: A `ToolResponse`, or a dictionary with `success`, `data` and `error`, of which each may be missing.
///     format: How the model writes calls; the result is written in the form that belongs to it.
///
/// Raises:
///     TypeError: If `result` is neither.
///     ValueError: If there is no such format.
#[pyfunction]
#[pyo3(signature = (name, result, *, format="xml"))]
fn format_tool_result(name: &str, result: &Bound<'_, PyAny>, format: &str) -> PyResult<String> {
    let form = form(format)?;
    let (success, data, error) = outcome(result)?;
    Ok(result::format_tool_result(form, name, &Outcome { success, data: data.as_ref(), error: error.as_deref() }))
}

#[pymethods]
impl PyToolResponse {
    /// Give the element `tool_result` for a model that writes its calls in XML; see `format_tool_result`.
    ///
    /// Args:
    ///     call: The call that this answers, in any form.
    ///     name: The tool's name, where `call` does not say it.
    ///
    /// Raises:
    ///     TypeError: If neither says which tool it was.
    #[pyo3(signature = (call=None, *, name=None))]
    fn to_xml(slf: &Bound<'_, Self>, call: Option<&Bound<'_, PyAny>>, name: Option<String>) -> PyResult<String> {
        let called = match (&name, call) {
            (None, Some(call)) => match call.cast::<PyToolCall>() {
                Ok(call) => Some(call.get().call.name.clone()),
                Err(_) if json::may_be_call(call) => Some(read_object(call, None)?.name),
                Err(_) => None,
            },
            _ => None,
        };
        let Some(name) = name.or(called).filter(|name| !name.is_empty()) else {
            return Err(PyTypeError::new_err("to_xml needs the call that the response answers, or the tool's name"));
        };
        format_tool_result(&name, slf.as_any(), Form::Xml.as_str())
    }
}

fn outcome(result: &Bound<'_, PyAny>) -> PyResult<(bool, Option<Value>, Option<String>)> {
    let py = result.py();
    if result.is_instance_of::<PyToolResponse>() {
        let text = shown_text(result)?;
        if !result.getattr(intern!(py, "ok"))?.is_truthy()? {
            return Ok((false, None, Some(text)));
        }
        let metadata = result.getattr(intern!(py, "metadata"))?;
        let value = match metadata.cast::<PyDict>() {
            Ok(metadata) => metadata.get_item(intern!(py, "value"))?,
            Err(_) => None,
        };
        return Ok((true, Some(value.map_or(Value::String(text), |value| as_json(&value))), None));
    }
    let Ok(result) = result.cast::<PyDict>() else {
        let class = result.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!(
            "a result must be a ToolResponse, or a dictionary with success, data and error, not {class}"
        )));
    };
    let truth = |value: Option<Bound<'_, PyAny>>| value.map_or(Ok(false), |value| value.is_truthy());
    let error = result.get_item(intern!(py, "error"))?;
    let has_error = truth(error.clone())?;
    let error = error.filter(|_| has_error).map(|error| error.str().map(|text| text.to_string_lossy().into_owned()));
    let data = result.get_item(intern!(py, "data"))?.filter(|data| !data.is_none());
    Ok((truth(result.get_item(intern!(py, "success"))?)?, data.map(|data| as_json(&data)), error.transpose()?))
}

/// The text of a response; a block that is none is named by its type.
fn shown_text(response: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = response.py();
    let content = response.getattr(intern!(py, "content"))?;
    if let Ok(text) = content.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    let mut lines = Vec::new();
    for block in content.try_iter()? {
        let block = block?;
        let Ok(block) = block.cast::<PyDict>() else { continue };
        if let Some(text) = block.get_item(intern!(py, "text"))? {
            lines.push(text.str()?.to_string_lossy().into_owned());
        } else if let Some(kind) = block.get_item(intern!(py, "type"))? {
            lines.push(format!("[{}]", kind.str()?.to_string_lossy()));
        }
    }
    Ok(lines.join("\n"))
}
