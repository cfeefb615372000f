//! The meta tool: a method that lets the model itself choose the groups it works with.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use super::PyToolkit;
use crate::bindings::json::entries_of;
use crate::bindings::meta::is_method_of;
use crate::bindings::response;
use crate::bindings::tool::PyTool;
use crate::call::Answer;
use crate::registry::Switch;

impl PyToolkit {
    /// Whether a callable is this toolkit's own `reset_equipped_tools`.
    pub(super) fn is_own_reset(&self, function: &Bound<'_, PyAny>) -> PyResult<bool> {
        is_method_of(self, function)
    }

    /// The schema of a meta tool as it is at this moment, for a caller to keep.
    pub(crate) fn meta_schema_copy<'py>(&self, py: Python<'py>, tool: &PyTool) -> PyResult<Bound<'py, PyDict>> {
        let Some(meta) = &tool.meta else { return tool.schema_copy(py) };
        // The revision before the switches: what changes in between is seen as a change later.
        let revision = self.registry().revision();
        if let Some(copy) = meta.copy(py, revision)? {
            return Ok(copy);
        }
        let switches = self.registry().switches();
        meta.make(py, revision, &tool.schema, &switches)
    }
}

/// What a model wants of each group that it names.
pub(crate) fn wanted(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Switch)>> {
    let mut wanted = Vec::new();
    for (name, value) in kwargs.into_iter().flat_map(entries_of) {
        let name = name.cast::<PyString>()?.to_string_lossy().into_owned();
        let switch = match value.cast::<PyBool>() {
            Ok(flag) if flag.is_true() => Switch::On,
            Ok(_) => Switch::Off,
            Err(_) => Switch::Wrong(value.get_type().str()?.to_string_lossy().into_owned()),
        };
        wanted.push((name, switch));
    }
    Ok(wanted)
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
        let wanted = wanted(kwargs)?;
        let outcome = self.registry().equip(&wanted);
        match outcome {
            Ok(text) => response::text(py, PyString::new(py, &text), None),
            Err(text) => response::answer(py, &Answer::InvalidArguments { text }),
        }
    }
}
