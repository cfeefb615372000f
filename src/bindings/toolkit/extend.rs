//! Models that add their fields to a tool, and those that check what is sent for them.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::PyToolkit;
use crate::Error;
use crate::bindings::extension::{Use, check_model};
use crate::bindings::tool::PyTool;

impl PyToolkit {
    /// Puts a tool with or without a model in the place of the one that has the name.
    fn extend(&self, py: Python<'_>, name: &str, model: &Bound<'_, PyAny>, how: Use) -> PyResult<()> {
        if !model.is_none() {
            check_model(model)?;
        }
        let missing = || Error::ToolNotFound { name: name.to_owned() };
        loop {
            let found = self.registry().find(name).map(|tool| tool.body.clone_ref(py)).ok_or_else(missing)?;
            let old = found.get();
            let new = if model.is_none() { old.unextended(py)? } else { old.extended(py, model, how)? };
            let body = Py::new(py, new)?;
            let replaced = {
                let mut registry = self.registry();
                // Python code has run since the tool was found, and in its pauses other threads.
                let is_there = registry.find(name).is_some_and(|tool| tool.body.is(&found));
                is_there.then(|| registry.exchange(name, |_| PyTool::entry(body)))
            };
            if replaced.is_some() {
                return Ok(());
            }
        }
    }
}

/// An argument that may be left out, where `None` is one that was given.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = std::convert::Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// The one argument that was given under either of two names.
fn either<'py>(first: Given<'py>, second: Given<'py>, names: (&str, &str)) -> PyResult<Bound<'py, PyAny>> {
    match (first.0, second.0) {
        (Some(given), None) | (None, Some(given)) => Ok(given),
        (None, None) => {
            Err(PyTypeError::new_err(format!("set_extended_model() is missing the argument '{}'", names.0)))
        }
        (Some(_), Some(_)) => Err(PyTypeError::new_err(format!(
            "set_extended_model() takes either '{}' or '{}', which are the same, not both",
            names.0, names.1
        ))),
    }
}

/// What a method takes that accepts both spellings.
type Spelt<'py> = (Given<'py>, Given<'py>);

fn spelt<'py>(names: Spelt<'py>, models: Spelt<'py>) -> PyResult<(String, Bound<'py, PyAny>)> {
    let name = either(names.0, names.1, ("func_name", "finish_function_name"))?;
    let model = either(models.0, models.1, ("model", "structured_model"))?;
    Ok((name.cast::<PyString>()?.to_str()?.to_owned(), model))
}

#[pymethods]
impl PyToolkit {
    /// Add the fields of a pydantic model to what a tool asks the model for.
    ///
    /// They are sent to the function if it takes them, by name or by `**kwargs`; the model itself validates nothing, see
    /// `set_finish_function` for that.
    ///
    /// Args:
    ///     func_name: The tool's name.
    ///     model: A class, or None to take its fields away again.
    ///     finish_function_name: Another spelling of `func_name`.
    ///     structured_model: Another spelling of `model`.
    ///
    /// Raises:
    ///     TypeError: If `model` is not a child class of `pydantic.BaseModel`.
    ///     UnknownToolError: If there is no such tool.
    ///     ExtendedModelError: If the model does not fit the tool; then nothing has changed.
    #[pyo3(
        signature = (
            func_name=Given(None), model=Given(None), *, finish_function_name=Given(None), structured_model=Given(None)
        ),
        text_signature = "($self, func_name=..., model=..., *, finish_function_name=..., structured_model=...)"
    )]
    fn set_extended_model<'py>(
        &self,
        py: Python<'py>,
        func_name: Given<'py>,
        model: Given<'py>,
        finish_function_name: Given<'py>,
        structured_model: Given<'py>,
    ) -> PyResult<()> {
        let (name, model) = spelt((func_name, finish_function_name), (model, structured_model))?;
        let is_late = self.tells_conflicts_late.load(Ordering::Relaxed);
        self.extend(py, &name, &model, if is_late { Use::DescribeLater } else { Use::Describe })
    }

    /// Raise for an extended model that does not fit only where the schema is read, from now on.
    fn _tell_conflicts_late(&self) {
        self.tells_conflicts_late.store(true, Ordering::Relaxed);
    }

    /// Let a tool end a conversation with the data that a pydantic model describes.
    ///
    /// The fields of the model are added to what the tool asks for, and validated at each call. Data that does not fit is
    /// answered in the stream, and the function does not run. Otherwise it does, and its last response has in its
    /// `metadata` what was validated.
    ///
    /// Args:
    ///     name: The tool's name.
    ///     model: A class, or None to make it a tool like any other again.
    ///
    /// Raises:
    ///     TypeError: If `model` is not a child class of `pydantic.BaseModel`.
    ///     UnknownToolError: If there is no such tool.
    ///     ExtendedModelError: If the model does not fit the tool; then nothing has changed.
    fn set_finish_function(&self, py: Python<'_>, name: &str, model: &Bound<'_, PyAny>) -> PyResult<()> {
        self.extend(py, name, model, Use::Finish)
    }
}
