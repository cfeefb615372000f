//! Rules, pending calls and answers, read from Python objects.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping, PyString};
use serde_json::Value;

use crate::Error;
use crate::bindings::imported::APPROVAL;
use crate::bindings::json;
use crate::policy::Answer;

/// The JSON that an object stands for: a mapping of plain values, its text, or something that gives one by `to_dict`.
pub(crate) fn value_of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return serde_json::from_str(text.to_str()?)
            .map_err(|error| PyValueError::new_err(format!("{what} is no JSON text: {error}")));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return Ok(json::from_python(dict)?.into());
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let dict = PyDict::new(py);
        dict.update(mapping)?;
        return Ok(json::from_python(&dict)?.into());
    }
    if let Some(to_dict) = object.getattr_opt(intern!(py, "to_dict"))? {
        return Ok(json::from_python(&to_dict.call0()?)?.into());
    }
    let kind = object.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("{what} is a mapping of plain values, not {kind}")))
}

/// The answer of an approver: a word, a boolean or an `Approval`.
///
/// `arguments` and `by` stand beside the answer of a resumption.
///
/// Raises `InvalidAnswerError` if it is anything else, and `TypeError` if edited arguments are no mapping or come twice, or
/// the other fields are no texts.
pub(crate) fn answer_of(
    answer: &Bound<'_, PyAny>,
    arguments: Option<&Bound<'_, PyAny>>,
    by: Option<&str>,
) -> PyResult<Answer> {
    let py = answer.py();
    let field = |name: &str| answer.getattr(name).map(|value| Some(value).filter(|value| !value.is_none()));
    let text = |name: &str| -> PyResult<Option<String>> {
        let Some(text) = field(name)? else { return Ok(None) };
        let Ok(text) = text.cast::<PyString>() else {
            let kind = text.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("an approval's `{name}` must be a string, not {kind}")));
        };
        Ok(Some(text.to_str()?.to_owned()))
    };
    // There is no instance of a class that was never imported.
    let is_approval = APPROVAL.if_imported(py).map_or(Ok(false), |class| answer.is_instance(class))?;
    let (word, own, own_by, reason) = if is_approval {
        let own = field("arguments")?;
        (answer.getattr(intern!(py, "answer"))?, own, text("by")?, text("reason")?)
    } else {
        (answer.clone(), None, None, None)
    };
    if arguments.is_some() && own.is_some() {
        return Err(PyTypeError::new_err("resume() got edited arguments twice: in the answer and beside it"));
    }
    let mut said = serde_json::Map::new();
    said.insert("answer".to_owned(), plain(&word)?);
    if let Some(arguments) = arguments.or(own.as_ref()) {
        said.insert("arguments".to_owned(), value_of(arguments, "the edited arguments")?);
    }
    let answer = Answer::from_value(&Value::Object(said))?;
    Ok(Answer { by: own_by.filter(|by| !by.is_empty()).or_else(|| by.map(str::to_owned)), reason, ..answer })
}

/// A word or a boolean; anything else is told as what it is.
fn plain(answer: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(flag) = answer.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(word) = answer.cast::<PyString>() {
        return Ok(word.to_string_lossy().into());
    }
    if answer.is_none() {
        return Err(no_answer("None".to_owned()).into());
    }
    let kind = answer.get_type().qualname()?;
    Err(no_answer(format!("an object of type {}", kind.to_string_lossy())).into())
}

/// The error for something that no answer can be read from, by what it is called.
fn no_answer(found: String) -> Error {
    Error::InvalidAnswer { expected: "`once`, `run`, `always`, `no`, `cancel`, a boolean or an `Approval`", found }
}
