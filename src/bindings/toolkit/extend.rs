//! Extensions of a toolkit: pydantic models that extend tools, the meta tool, and middlewares.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

use super::PyToolkit;
use crate::Error;
use crate::bindings::json::entries_of;
use crate::bindings::parameters::{Omittable, text};
use crate::bindings::registration::{ModelUse, check_model};
use crate::bindings::response;
use crate::bindings::tool::PyTool;
use crate::call::Reply;
use crate::registry::Switch;

impl PyToolkit {
    /// The use of the fields of an extended model.
    pub(super) fn model_use(&self) -> ModelUse {
        if self.defers_conflicts.load(Ordering::Relaxed) { ModelUse::DescribeLater } else { ModelUse::Describe }
    }

    /// Replaces a tool by itself with another model, or without one.
    fn extend(&self, py: Python<'_>, name: &str, model: &Bound<'_, PyAny>, how: ModelUse) -> PyResult<()> {
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
                let mut registry = self.registry_to_change(py);
                // Python code has run since the lookup, and perhaps other threads.
                let is_there = registry.find(name).is_some_and(|tool| tool.body.is(&found));
                is_there.then(|| registry.exchange(name, |_| PyTool::entry(body)))
            };
            if replaced.is_some() {
                return Ok(());
            }
        }
    }
}

/// The argument that was given under one of two names.
fn either<'py>(first: Omittable<'py>, second: Omittable<'py>, names: (&str, &str)) -> PyResult<Bound<'py, PyAny>> {
    match (first.0, second.0) {
        (Some(argument), None) | (None, Some(argument)) => Ok(argument),
        (None, None) => {
            Err(PyTypeError::new_err(format!("set_extended_model() is missing the argument '{}'", names.0)))
        }
        (Some(_), Some(_)) => Err(PyTypeError::new_err(format!(
            "set_extended_model() takes either '{}' or '{}', which are the same, not both",
            names.0, names.1
        ))),
    }
}

/// An argument that has two names.
type TwoNames<'py> = (Omittable<'py>, Omittable<'py>);

/// Reads the arguments of `set_extended_model`, each of which has two names.
fn extended_model_arguments<'py>(names: TwoNames<'py>, models: TwoNames<'py>) -> PyResult<(String, Bound<'py, PyAny>)> {
    let name = either(names.0, names.1, ("func_name", "finish_function_name"))?;
    let model = either(models.0, models.1, ("model", "structured_model"))?;
    Ok((text("func_name", &name)?, model))
}

#[pymethods]
impl PyToolkit {
    /// Add the fields of a pydantic model to the parameters of a tool.
    ///
    /// They are passed to the function if it takes them, by name or by `**kwargs`. They are not validated; see
    /// `set_finish_function` for that.
    ///
    /// Args:
    ///     func_name: The tool's name.
    ///     model: A class, or None to remove its fields.
    ///     finish_function_name: Another name of `func_name`.
    ///     structured_model: Another name of `model`.
    ///
    /// Raises:
    ///     TypeError: If `model` is not a child class of `pydantic.BaseModel`.
    ///     UnknownToolError: If the tool is unknown.
    ///     ExtendedModelError: If the model does not fit the tool. Then nothing has changed.
    #[pyo3(
        signature = (
            func_name=Omittable(None), model=Omittable(None), *, finish_function_name=Omittable(None),
            structured_model=Omittable(None)
        ),
        text_signature = "($self, func_name=..., model=..., *, finish_function_name=..., structured_model=...)"
    )]
    fn set_extended_model<'py>(
        &self,
        py: Python<'py>,
        func_name: Omittable<'py>,
        model: Omittable<'py>,
        finish_function_name: Omittable<'py>,
        structured_model: Omittable<'py>,
    ) -> PyResult<()> {
        let (name, model) = extended_model_arguments((func_name, finish_function_name), (model, structured_model))?;
        self.extend(py, &name, &model, self.model_use())
    }

    /// From now on, raise for an extended model that does not fit only where the schema is read.
    fn _defer_conflicts(&self) {
        self.defers_conflicts.store(true, Ordering::Relaxed);
    }

    /// Let a tool end a conversation with data that a pydantic model validates.
    ///
    /// The fields of the model are added to the parameters of the tool, and validated at each call. For invalid data the
    /// stream contains an error, and the function does not run. Otherwise it runs, and its last response has the validated
    /// data in its `metadata`.
    ///
    /// Args:
    ///     name: The tool's name.
    ///     model: A class, or None to make it an ordinary tool again.
    ///
    /// Raises:
    ///     TypeError: If `model` is not a child class of `pydantic.BaseModel`.
    ///     UnknownToolError: If the tool is unknown.
    ///     ExtendedModelError: If the model does not fit the tool. Then nothing has changed.
    fn set_finish_function(&self, py: Python<'_>, name: &Bound<'_, PyAny>, model: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = &*text("name", name)?;
        self.extend(py, name, model, ModelUse::Finish)
    }
}

impl PyToolkit {
    /// A copy of the current schema of a meta tool.
    pub(crate) fn meta_schema_copy<'py>(&self, py: Python<'py>, tool: &PyTool) -> PyResult<Bound<'py, PyDict>> {
        let Some(meta) = &tool.meta else { return tool.schema_copy(py) };
        // The revision is read before the switches, so that a change in between is noticed later.
        let revision = self.registry().revision();
        if let Some(copy) = meta.copy(py, revision)? {
            return Ok(copy);
        }
        let switches = self.registry().switches();
        meta.make(py, revision, &tool.schema, &switches)
    }
}

/// The groups that a model names, each with the requested state.
pub(crate) fn group_switches(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Switch)>> {
    let mut switches = Vec::new();
    for (name, value) in kwargs.into_iter().flat_map(entries_of) {
        let name = name.cast::<PyString>()?.to_string_lossy().into_owned();
        let switch = match value.cast::<PyBool>() {
            Ok(flag) if flag.is_true() => Switch::On,
            Ok(_) => Switch::Off,
            Err(_) => Switch::Wrong(value.get_type().str()?.to_string_lossy().into_owned()),
        };
        switches.push((name, switch));
    }
    Ok(switches)
}

#[pymethods]
impl PyToolkit {
    /// Choose the tool groups to work with from now on.
    ///
    /// Name every group that you need next and set it to true. The choice is complete: a group that you leave out or set
    /// to false is put away with all of its tools, also if it was active until now. The tools of the chosen groups can be
    /// called right after this, and notes on how to use them come with the answer.
    #[pyo3(signature = (**kwargs))]
    fn reset_equipped_tools<'py>(
        &self,
        py: Python<'py>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let switches = group_switches(kwargs)?;
        let outcome = self.registry().equip(&switches);
        match outcome {
            Ok(text) => response::text(py, PyString::new(py, &text)),
            Err(text) => response::answer(py, &Reply::InvalidArguments { text }),
        }
    }
}

impl PyToolkit {
    /// True if there are middlewares.
    #[inline]
    pub(crate) fn has_middlewares(&self, py: Python<'_>) -> bool {
        self.middlewares.get().is_some_and(|list| !list.bind(py).is_empty())
    }

    /// The middlewares, outermost first.
    pub(crate) fn middlewares<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyList> {
        if let Some(list) = self.middlewares.get() {
            return list.bind(py);
        }
        let list = PyList::empty(py).unbind();
        self.middlewares.get_or_init(|| list).bind(py)
    }

    pub(super) fn traverse_middlewares(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.middlewares.get().map_or(Ok(()), |list| visit.call(list))
    }
}

#[pymethods]
impl PyToolkit {
    /// Wrap every call in a middleware, inside of those registered before.
    ///
    /// It is called with `{"tool_call": block}` and with a handler, `next_handler(**kwargs)`, that returns the stream of
    /// the inner layers. It may be an async generator function, or anything that returns a stream or a response,
    /// directly or when awaited.
    ///
    /// Args:
    ///     middleware: The callable.
    ///
    /// Raises:
    ///     TypeError: If it is not callable.
    fn register_middleware(&self, middleware: &Bound<'_, PyAny>) -> PyResult<()> {
        if !middleware.is_callable() {
            let kind = middleware.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("a middleware must be callable, not {kind}")));
        }
        self.middlewares(middleware.py()).append(middleware)
    }

    /// The middlewares, outermost first. It is the list of the toolkit itself: changes apply to calls that start later.
    #[getter]
    fn _middlewares<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.middlewares(py).clone()
    }
}
