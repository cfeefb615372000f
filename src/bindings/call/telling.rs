//! Who is to be told of a call, and what they may see of its arguments.

use pyo3::prelude::*;

use super::freeze::Frozen;
use super::request::Request;
use super::state::State;
use crate::bindings::desk::PyDesk;
use crate::bindings::json;
use crate::bindings::tool::PyTool;

impl State {
    /// Where it is decided about this call and who hears of it.
    pub(super) fn desk<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDesk>> {
        if !self.toolkit.get().is_null() {
            // SAFETY: the slot is filled.
            return Some(unsafe { self.toolkit(py) }.get().desk(py).clone());
        }
        if !self.tool.get().is_null() {
            // SAFETY: the slot is filled.
            return Some(unsafe { self.tool() }.desk.bind(py).clone());
        }
        self.tool_called_by_itself(py).map(|tool| tool.get().desk.bind(py).clone())
    }

    /// What the model sent, as it may be shown before the tool is found in earnest; none if that cannot be said.
    pub(super) fn shown_request<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let sent = Request::arguments(py, self)?;
        let Some(tool) = self.tool_asked_for(py) else { return Some(sent) };
        if tool.get().traits.secrets.is_empty() {
            return Some(sent);
        }
        json::to_python(py, &Frozen::glimpse(py, tool.get(), &sent)).ok()
    }

    /// The tool that the request names, whether it may be called or not.
    fn tool_asked_for<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTool>> {
        if self.toolkit.get().is_null() {
            return self.tool_called_by_itself(py);
        }
        let (name, _) = Request::of(py, self).into_parts();
        // SAFETY: the slot is filled.
        unsafe { self.toolkit(py) }.get().find(py, &name?)
    }
}
