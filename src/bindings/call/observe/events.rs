//! The events of a call for the listeners of its toolkit: its start, each response, and its end.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bindings::call::permission::redacted;
use crate::bindings::call::python::slot::Slot;
use crate::bindings::call::request::Peeked;
use crate::bindings::call::state::State;
use crate::bindings::foreign_response::code_of;
use crate::bindings::imported::COPY;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::policy::PyPermissions;
use crate::bindings::tool::PyTool;
use crate::call::{CallInfo, Code, EventKind};
use crate::trace::Outcome;

/// The listeners of one call.
pub(super) struct Events {
    /// A `PyPermissions`.
    permissions: Slot,
    info: Arc<CallInfo>,
    began: Instant,
    chunks: Cell<usize>,
    /// The code of the response delivered last.
    code: RefCell<Option<String>>,
    /// Its text, if it has a code.
    text: RefCell<String>,
}

/// The text of a response with a code; empty for any other.
fn text_of_failure(response: &Bound<'_, PyAny>) -> String {
    if code_of(response).is_none() {
        return String::new();
    }
    let text = response.getattr_opt(intern!(response.py(), "text")).ok().flatten();
    text.and_then(|text| text.extract().ok()).unwrap_or_default()
}

impl Events {
    /// Emits the start of a call; `None` if its toolkit has no listeners.
    pub(super) fn open(py: Python<'_>, state: &State) -> Option<Self> {
        let permissions = state.permissions(py).filter(|permissions| permissions.get().listeners.is_watched())?;
        let events = Self {
            permissions: Slot::holding(permissions.into_any()),
            info: state.info(py),
            began: Instant::now(),
            chunks: Cell::new(0),
            code: RefCell::new(None),
            text: RefCell::default(),
        };
        events.tell(py, EventKind::CallStart, || {
            let data = PyDict::new(py);
            data.set_item(intern!(py, "arguments"), state.shown_request(py))?;
            data.set_item(intern!(py, "resumed"), state.cold.get().is_some_and(|cold| cold.is_resumed()))?;
            Ok(data)
        });
        Some(events)
    }

    /// Emits a response.
    pub(super) fn chunk(&self, py: Python<'_>, response: &Bound<'_, PyAny>) {
        self.chunks.set(self.chunks.get() + 1);
        self.text.replace(text_of_failure(response));
        self.code.replace(code_of(response));
        self.tell(py, EventKind::Chunk, || {
            let data = PyDict::new(py);
            let is_pending = self.code.borrow().as_deref() == Some(Code::Pending.as_str());
            let response = if is_pending { without_arguments(response)? } else { response.clone() };
            data.set_item(intern!(py, "response"), response)?;
            Ok(data)
        });
    }

    /// Emits the end of the call.
    pub(super) fn end(&self, py: Python<'_>, outcome: &Outcome) {
        let text = self.text.take();
        let error = match outcome {
            Outcome::Raised { class, message } => Some((class.as_str(), message.as_str())),
            Outcome::Answered { code } if !Code::is_about_permission(code) => Some((code.as_str(), text.as_str())),
            Outcome::Answered { .. } | Outcome::Cancelled | Outcome::Completed => None,
        };
        if let Some((kind, message)) = error {
            self.tell(py, EventKind::Error, || {
                let data = PyDict::new(py);
                data.set_item(intern!(py, "error"), kind)?;
                data.set_item(intern!(py, "message"), message)?;
                Ok(data)
            });
        }
        self.tell(py, EventKind::CallEnd, || {
            let word = match outcome {
                Outcome::Completed => "completed",
                Outcome::Cancelled => "cancelled",
                Outcome::Raised { .. } => "failed",
                Outcome::Answered { code } => code,
            };
            let data = PyDict::new(py);
            data.set_item(intern!(py, "outcome"), word)?;
            data.set_item(intern!(py, "code"), &*self.code.borrow())?;
            data.set_item(intern!(py, "chunks"), self.chunks.get())?;
            data.set_item(intern!(py, "seconds"), self.began.elapsed().as_secs_f64())?;
            Ok(data)
        });
    }

    fn tell<'py>(&self, py: Python<'py>, kind: EventKind, data: impl FnOnce() -> PyResult<Bound<'py, PyDict>>) {
        if let Some(permissions) = self.permissions.get(py)
            && let Ok(permissions) = permissions.cast::<PyPermissions>()
        {
            permissions.get().listeners.emit(py, kind, &self.info, data);
        }
    }

    pub(super) fn object(&self) -> *mut PyObject {
        self.permissions.visited()
    }
}

/// A pending response as listeners may see it: which call waits, but not what it takes to let it run.
fn without_arguments<'py>(response: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = response.py();
    let name = intern!(py, "pending");
    let metadata = response.getattr(intern!(py, "metadata"))?;
    let Some(pending) = metadata.cast::<PyDict>().ok().and_then(|metadata| metadata.get_item(name).ok().flatten())
    else {
        return Ok(response.clone());
    };
    let metadata = metadata.cast::<PyDict>()?.copy()?;
    let shown = PyDict::new(py);
    shown.set_item(intern!(py, "id"), pending.get_item(intern!(py, "id"))?)?;
    metadata.set_item(name, shown)?;
    let copy = COPY.get(py)?.call1((response,))?;
    copy.setattr(intern!(py, "metadata"), metadata)?;
    Ok(copy)
}

impl State {
    /// The permissions and listeners that this call is subject to.
    pub(in crate::bindings::call) fn permissions<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyPermissions>> {
        if let Some(toolkit) = self.toolkit.get(py) {
            return Some(toolkit.get().permissions(py).clone());
        }
        if let Some(tool) = self.tool.get(py) {
            return Some(tool.get().permissions.bind(py).clone());
        }
        self.tool_called_by_itself(py).map(|tool| tool.get().permissions.bind(py).clone())
    }

    /// The arguments that the model sent, redacted, before the tool is admitted; `None` if that is not possible.
    pub(super) fn shown_request<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let sent = Peeked::arguments(py, self)?;
        let Some(tool) = self.named_tool(py) else { return Some(sent) };
        if tool.get().traits.secrets.is_empty() {
            return Some(sent);
        }
        json::to_python(py, &redacted(tool.get(), &sent)).ok()
    }

    /// The tool that the request names, also if it may not be called.
    fn named_tool<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTool>> {
        match self.toolkit.get(py) {
            Some(toolkit) => toolkit.get().find(py, &Peeked::of(py, self).name?),
            None => self.tool_called_by_itself(py),
        }
    }
}
