//! Where a call comes from: a toolkit, or a view of one. A view has the calling interface of its toolkit and its speed, and
//! lets nothing through that it does not show.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::PyTypeInfo;
use pyo3::ffi::{self, PyTypeObject};
use pyo3::prelude::*;

use super::state::State;
use crate::bindings::tool::PyTool;
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::view::PyToolkitView;
use crate::call::Answer;

/// The class of views, which nobody can derive from.
static VIEW: AtomicPtr<PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Remembers the class of views.
pub(super) fn init(py: Python<'_>) {
    VIEW.store(PyToolkitView::type_object_raw(py), Ordering::Relaxed);
}

impl State {
    /// Whether the call comes through a view.
    #[inline]
    pub(super) fn is_view(&self) -> bool {
        let counter = self.toolkit.get();
        // SAFETY: the slot is empty or holds a live object.
        !counter.is_null() && unsafe { ffi::Py_TYPE(counter) } == VIEW.load(Ordering::Relaxed)
    }

    /// The view that the call comes through.
    fn view<'a, 'py>(&'a self, py: Python<'py>) -> Option<Borrowed<'a, 'py, PyToolkitView>> {
        // SAFETY: the type was looked at, and the slot keeps the object alive.
        self.is_view().then(|| unsafe { Borrowed::from_ptr(py, self.toolkit.get()).cast_unchecked() })
    }

    /// The toolkit, whether the call comes through a view of it or not.
    ///
    /// # Safety
    /// The slot is filled.
    #[inline]
    pub(super) unsafe fn toolkit<'a, 'py>(&'a self, py: Python<'py>) -> Borrowed<'a, 'py, PyToolkit> {
        // SAFETY: `toolkit` is filled with instances of two classes only, and keeps them alive; a view keeps its toolkit.
        unsafe {
            match self.view(py) {
                None => Borrowed::from_ptr(py, self.toolkit.get()).cast_unchecked(),
                Some(view) => Borrowed::from_ptr(py, view.get().toolkit(py).as_ptr()).cast_unchecked(),
            }
        }
    }

    /// Finds the tool of a name and sees whether it may be called.
    ///
    /// # Safety
    /// The slot is filled.
    #[inline]
    pub(super) unsafe fn admitted_tool<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Answer> {
        match self.view(py) {
            // SAFETY: as for the caller.
            None => unsafe { self.toolkit(py) }.get().admit(py, name),
            Some(view) => PyToolkitView::admit(&view, name),
        }
    }

    /// Who calls.
    pub(super) fn caller(&self, py: Python<'_>) -> Option<Arc<str>> {
        if self.toolkit.get().is_null() {
            return self.caller_of_handler(py);
        }
        self.view(py)?.get().caller().map(Arc::from)
    }
}
