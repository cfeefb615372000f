//! What only ArtifactFlow's interface needs: its bare results, and texts around its own documentation.
#![allow(clippy::doc_markdown, reason = "what `help()` shows is Python's documentation")]

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::{Map, Value};

use super::json;
use super::tell::form;
use crate::text::result::{Shown, format_plain};
use crate::text::tell::{frame, write_call};

/// How deep a plain result is taken apart; what is deeper is shown as Python shows it.
const DEPTH: usize = 64;

/// Adds the functions to the module, under names that are not public.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.setattr("_format_plain_result", wrap_pyfunction!(_format_plain_result, module)?)?;
    module.setattr("_frame_instructions", wrap_pyfunction!(_frame_instructions, module)?)?;
    module.setattr("_write_call", wrap_pyfunction!(_write_call, module)?)
}

/// Write what a call gave without escaping anything, as ArtifactFlow does.
#[pyfunction]
fn _format_plain_result(name: &str, result: &Bound<'_, PyDict>) -> PyResult<String> {
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
        let entries = json::entries_of(dict)
            .into_iter()
            .map(|(key, value)| Ok((text_of(&key)?, taken_apart(&value, depth - 1)?)));
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
fn _frame_instructions(format: &str, documents: Vec<String>) -> PyResult<String> {
    Ok(frame(form(format)?, &documents, false))
}

/// Write a call as a model is to write it.
#[pyfunction]
fn _write_call(format: &str, name: &str, arguments: &Bound<'_, PyDict>) -> PyResult<String> {
    let arguments: Map<String, Value> = match json::from_python(arguments.as_any())?.into() {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    Ok(write_call(form(format)?, name, &arguments))
}
