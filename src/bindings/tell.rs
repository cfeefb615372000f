//! What models are told in text: about tools, and about what tools gave.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::{Map, Value};

use super::json;
use super::response::PyToolResponse;
use super::value::as_json;
use crate::schema::FunctionSchema;
use crate::text::result::{self, Outcome, Shown, format_plain};
use crate::text::tell::{Form, ToolFacts, frame, instructions, write_call};

/// How deep a plain result is taken apart; what is deeper is shown as Python shows it.
const DEPTH: usize = 64;

/// The form that a word stands for.
pub(crate) fn form(word: &str) -> PyResult<Form> {
    Form::parse(word).ok_or_else(|| {
        let words = Form::ALL.map(|form| format!("'{}'", form.as_str())).join(", ");
        PyValueError::new_err(format!("format must be one of {words}, not '{word}'"))
    })
}

/// Writes the instructions for tools with these names and schemas.
pub(crate) fn tell(form: Form, tools: &[(Box<str>, Arc<FunctionSchema>)]) -> String {
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
pub(crate) fn format_tool_result(name: &str, result: &Bound<'_, PyAny>, format: &str) -> PyResult<String> {
    let form = form(format)?;
    let (success, data, error) = outcome(result)?;
    Ok(result::format_tool_result(form, name, &Outcome { success, data: data.as_ref(), error: error.as_deref() }))
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

/// Write what a call gave without escaping anything, as ArtifactFlow does.
#[pyfunction]
pub(crate) fn _format_plain_result(name: &str, result: &Bound<'_, PyDict>) -> PyResult<String> {
    let py = result.py();
    let success = true_entry(result, intern!(py, "success"))?.is_some();
    let data = true_entry(result, intern!(py, "data"))?
        .map_or(Ok(Shown::Text(String::new())), |data| taken_apart(&data, DEPTH))?;
    let error = true_entry(result, intern!(py, "error"))?.map_or(Ok(String::new()), |error| text_of(&error))?;
    Ok(format_plain(name, success, &data, &error))
}

/// What a key has, if Python takes it for true.
fn true_entry<'py>(dict: &Bound<'py, PyDict>, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match dict.get_item(key)? {
        Some(value) if value.is_truthy()? => Ok(Some(value)),
        _ => Ok(None),
    }
}

fn taken_apart(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Shown> {
    if depth == 0 {
        return text_of(value).map(Shown::Text);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let entries = dict.iter().map(|(key, value)| Ok((text_of(&key)?, taken_apart(&value, depth - 1)?)));
        return entries.collect::<PyResult<_>>().map(Shown::Entries);
    }
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(|item| {
            // A list in a list is not taken apart.
            if item.is_instance_of::<PyDict>() {
                taken_apart(&item, depth - 1)
            } else {
                text_of(&item).map(Shown::Text)
            }
        });
        return items.collect::<PyResult<_>>().map(Shown::List);
    }
    text_of(value).map(Shown::Text)
}

fn text_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.str()?.to_string_lossy().into_owned())
}

/// Put texts about tools between what a model must know about calls.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
pub(crate) fn _frame_instructions(format: &str, documents: Vec<String>) -> PyResult<String> {
    Ok(frame(form(format)?, &documents, false))
}

/// Write a call as a model is to write it.
#[pyfunction]
pub(crate) fn _write_call(format: &str, name: &str, arguments: &Bound<'_, PyDict>) -> PyResult<String> {
    let arguments: Map<String, Value> = match json::from_python(arguments.as_any())?.into() {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    Ok(write_call(form(format)?, name, &arguments))
}
