//! Context variables (`contextvars`) carried over to another thread.

use std::marker::PhantomData;

use pyo3::ffi;
use pyo3::prelude::*;

/// A `contextvars.Context`.
pub(super) struct Context(Py<PyAny>);

/// The context is the current one until this is dropped.
pub(super) struct Inside<'a>(&'a Context, PhantomData<*const ()>);

impl Context {
    /// A copy of the caller's context.
    pub(super) fn copy(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: the function gives a new reference or sets an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_CopyCurrent()) }.map(|it| Context(it.unbind()))
    }

    /// A context in which no variable is set.
    pub(super) fn empty(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: the function gives a new reference or sets an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_New()) }.map(|it| Context(it.unbind()))
    }

    pub(super) fn enter(&self, py: Python<'_>) -> PyResult<Inside<'_>> {
        // SAFETY: a live context, and the thread is attached.
        match unsafe { ffi::PyContext_Enter(self.0.as_ptr()) } {
            0 => Ok(Inside(self, PhantomData)),
            _ => Err(PyErr::fetch(py)),
        }
    }

    pub(super) fn object(&self) -> &Py<PyAny> {
        &self.0
    }

    pub(super) fn into_object(self) -> Py<PyAny> {
        self.0
    }
}

impl From<Py<PyAny>> for Context {
    /// Takes the object's word for being a context; entering asks it.
    fn from(context: Py<PyAny>) -> Self {
        Context(context)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread that entered is still here and attached (this type does not cross threads); an exception
        // that is set stays as it is, for leaving what was entered does not fail.
        unsafe { ffi::PyContext_Exit(self.0.0.as_ptr()) };
    }
}
