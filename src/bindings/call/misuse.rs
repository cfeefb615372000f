//! Mistakes in the use of a stream: a plain `for` loop, a forgotten `await`, the attributes of a response.

use std::ffi::CString;

use pyo3::exceptions::{PyAttributeError, PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::python::interpreter::Pending;
use super::state::{Phase, State};
use crate::bindings::response::PyToolResponse;

impl State {
    /// The exception for a plain `for` loop over the stream, and for `next`.
    #[cold]
    pub(super) fn not_iterable(&self) -> PyErr {
        PyTypeError::new_err(if self.bare {
            "a tool call is not iterable: use `await toolkit.value(...)`"
        } else if self.single {
            "a tool call is not iterable: use `await toolkit.call(...)`"
        } else {
            "a tool stream is not iterable by `for` or `next`: use `async for`"
        })
    }

    /// The exception for a missing attribute, with the way to a response if responses have the attribute.
    #[cold]
    pub(super) fn missing_attribute(&self, name: &Bound<'_, PyAny>, missing: PyErr) -> PyErr {
        let py = name.py();
        let Ok(name) = name.cast::<PyString>() else { return missing };
        let text = name.to_string_lossy();
        if text.starts_with('_') || !py.get_type::<PyToolResponse>().hasattr(name).unwrap_or(false) {
            return missing;
        }
        PyAttributeError::new_err(if self.bare {
            format!("a call by `toolkit.value` gives no response with '{text}': use `(await toolkit.call(...)).{text}`")
        } else if self.single {
            format!("a call that was not awaited has no attribute '{text}': use `(await toolkit.call(...)).{text}`")
        } else {
            format!(
                "a tool stream has no attribute '{text}', its responses have: iterate it with `async for`, \
                 or use `await toolkit.call(...)`"
            )
        })
    }

    /// Warns about a call that is dropped before it ran, as Python does for a coroutine. A stream is like an async generator,
    /// which may be dropped, unless it resumes a call that was approved.
    #[cold]
    pub(super) fn warn_if_dropped(&self, py: Python<'_>) {
        let name = if self.is_unawaited() {
            let name = self.request.get(py).and_then(|name| name.cast_into::<PyString>().ok());
            name.map(|name| format!("call of tool '{}' was never awaited", name.to_string_lossy()))
        } else if matches!(self.phase.get(), Phase::Fresh | Phase::Ready) {
            let info = self.known_info();
            let resumption = info.as_ref().and_then(|info| info.resumption.as_ref());
            resumption.filter(|resumption| resumption.is_fresh()).map(|resumption| {
                let tool = &resumption.pending().tool;
                format!("resumed call of tool '{tool}' was never iterated: use `async for`")
            })
        } else {
            None
        };
        let Some(text) = name.and_then(|text| CString::new(text).ok()) else { return };
        // The collector may call this before the stream is deallocated.
        self.awaiting.set(true);
        self.phase.set(Phase::Done);
        // This is part of a destructor, perhaps with an exception on its way.
        let pending = Pending::set_aside(py);
        if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
            error.write_unraisable(py, None);
        }
        pending.restore();
    }
}
