//! What stands behind the live mappings `tools` and `groups`.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString};

use super::PyToolkit;
use crate::bindings::group::PyToolGroup;
use crate::bindings::tool::PyTool;
use crate::registry::{BASIC, Group};

#[pymethods]
impl PyToolkit {
    fn _find_tool(&self, name: &Bound<'_, PyString>) -> Option<Py<PyTool>> {
        // Text that is not valid Unicode names nothing.
        let text = name.to_str().ok()?;
        self.registry().find(text).map(|tool| tool.body.clone_ref(name.py()))
    }

    fn _find_group(&self, name: &Bound<'_, PyString>) -> Option<PyToolGroup> {
        let text = name.to_str().ok().filter(|text| *text != BASIC)?;
        self.registry().group(text).ok().map(Into::into)
    }

    fn _all_tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tools: Vec<Py<PyTool>> = self.registry().tools().map(|tool| tool.body.clone_ref(py)).collect();
        tools.iter().map(|tool| (&*tool.get().name, tool)).into_py_dict(py)
    }

    fn _all_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups: Vec<Arc<Group>> = self.registry().groups().cloned().collect();
        let all = PyDict::new(py);
        for group in groups {
            all.set_item(group.name().to_owned(), Py::new(py, PyToolGroup::from(group))?)?;
        }
        Ok(all)
    }
}
