//! What the listeners of a toolkit hear of a call: that it starts, each response, and how it ends.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::case::Case;
use super::python::slot::Slot;
use super::state::State;
use crate::bindings::desk::PyDesk;
use crate::call::{Code, EventKind};
use crate::trace::Outcome;

/// The listeners of one call.
pub(super) struct Ear {
    /// A `PyDesk`.
    desk: Slot,
    case: Arc<Case>,
    began: Instant,
    chunks: Cell<usize>,
    /// The code of the response delivered last.
    code: RefCell<Option<String>>,
}

impl Ear {
    /// Tells of a call that is about to start; none if nobody listens to its toolkit.
    pub(super) fn open(py: Python<'_>, state: &State) -> Option<Self> {
        let desk = state.desk(py).filter(|desk| desk.get().is_heard())?;
        let case = state.case(py);
        let ear = Self {
            desk: Slot::owning(desk.clone().into_ptr()),
            case,
            began: Instant::now(),
            chunks: Cell::new(0),
            code: RefCell::new(None),
        };
        ear.tell(py, EventKind::CallStart, || {
            let data = PyDict::new(py);
            data.set_item(intern!(py, "arguments"), state.shown_request(py))?;
            data.set_item(intern!(py, "resumed"), state.rare.get().is_some_and(|rare| rare.is_resumed()))?;
            Ok(data)
        });
        Some(ear)
    }

    /// Tells of a response.
    pub(super) fn chunk(&self, py: Python<'_>, response: &Bound<'_, PyAny>) {
        self.chunks.set(self.chunks.get() + 1);
        let code = response.getattr(intern!(py, "code")).and_then(|code| code.extract::<Option<String>>());
        self.code.replace(code.unwrap_or_default());
        self.tell(py, EventKind::Chunk, || {
            let data = PyDict::new(py);
            let is_pending = self.code.borrow().as_deref() == Some(Code::Pending.as_str());
            let response = if is_pending { without_arguments(response)? } else { response.clone() };
            data.set_item(intern!(py, "response"), response)?;
            Ok(data)
        });
    }

    /// Tells how the call ended.
    pub(super) fn end(&self, py: Python<'_>, outcome: &Outcome) {
        let is_about_permission =
            |code: &str| [Code::Denied, Code::Pending, Code::Cancelled].iter().any(|known| known.as_str() == code);
        let error = match outcome {
            Outcome::Raised { class, message } => Some((class.as_str(), message.as_str())),
            Outcome::Answered { code } if !is_about_permission(code) => Some((code.as_str(), "")),
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
        if let Some(desk) = self.desk.bound(py)
            && let Ok(desk) = desk.cast::<PyDesk>()
        {
            desk.get().tell(py, kind, &self.case, data);
        }
    }

    pub(super) fn object(&self) -> *mut PyObject {
        self.desk.get()
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
    let copy = py.import(intern!(py, "copy"))?.call_method1(intern!(py, "copy"), (response,))?;
    copy.setattr(intern!(py, "metadata"), metadata)?;
    Ok(copy)
}
