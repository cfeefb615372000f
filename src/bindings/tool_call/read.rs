//! Calls out of Python objects: of dictionaries, of text, of what the libraries of providers give.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::bindings::text::finding;
use crate::bindings::{into_response, json};
use crate::call::{CallError, ToolCall, wire};
use crate::text::{Find, Format};

/// The call that an object is, which is no text; a call with an error if it cannot be read. Values in the text of a message
/// are read as the tools declare them.
pub(crate) fn read_object(object: &Bound<'_, PyAny>, tools: Option<&Bound<'_, PyAny>>) -> PyResult<ToolCall> {
    let value = json::from_object(object).map_err(unreadable(object.py()));
    finding(tools, |find| {
        let read = value.and_then(|value| wire::read_with(&value, None, &read_texts(find)));
        read.unwrap_or_else(|error| ToolCall::unreadable("", error))
    })
}

/// The call that a text has; a call with an error if it cannot be read. Values are read as the tools declare them.
pub(crate) fn read_text(text: &str, tools: Option<&Bound<'_, PyAny>>) -> PyResult<ToolCall> {
    finding(tools, |find| {
        let read = wire::read_text(text, None, &read_texts(find));
        read.unwrap_or_else(|error| ToolCall::unreadable("", error))
    })
}

/// What reads the calls in a text that is no JSON.
pub(super) fn read_texts(find: Option<&Find<'_>>) -> impl Fn(&str, Option<&str>) -> Option<Vec<ToolCall>> {
    move |text, format| Some(crate::text::parse(text, format.map_or(Some(Format::Auto), Format::parse)?, find))
}

pub(super) fn check_format(format: Option<&str>) -> PyResult<()> {
    match format {
        Some(word) if wire::WireFormat::parse(word).is_none() && Format::parse(word).is_none() => {
            let known = wire::WireFormat::ALL.iter().map(|format| format.as_str());
            let known: Vec<&str> = known.chain(Format::WORDS).collect();
            Err(PyValueError::new_err(format!("format must be one of {}, not '{word}'", known.join(", "))))
        }
        _ => Ok(()),
    }
}

/// The JSON of an object that may be a call. Of another one the developer is told, and of what cannot be read the model.
pub(super) fn read_foreign(x: &Bound<'_, PyAny>) -> PyResult<Result<Value, CallError>> {
    if !json::may_be_call(x) {
        let class = x.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a tool call is a mapping, a text or a library's object, not {class}"
        )));
    }
    Ok(json::from_object(x).map_err(unreadable(x.py())))
}

pub(super) fn unreadable(py: Python<'_>) -> impl Fn(PyErr) -> CallError {
    move |error| CallError::new(format!("the call cannot be read: {}", into_response::error_text(py, &error)), "")
}
