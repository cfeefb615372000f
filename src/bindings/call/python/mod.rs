//! The stream as CPython sees it, and the few interpreter calls that pyo3 has no safe form for.
//!
//! The only folder with `unsafe` code. [`object`] is the type with its slots, [`methods`] the methods that begin a call,
//! [`slot`] a place for one reference, [`drive`] calls and resumes Python code, [`stop`] is the end of an iteration.
#![allow(unsafe_code, reason = "CPython's slots are reached through raw pointers; each block says why it is sound")]

pub(super) mod drive;
pub(super) mod methods;
pub(super) mod object;
pub(super) mod slot;
pub(super) mod stop;

use pyo3::ffi;
use pyo3::prelude::*;

/// Runs code that drops `Py<T>` or `PyErr` in a thread that is attached. The interpreter enters the stream's slots
/// directly, and pyo3 puts decrements off until it is told.
pub(super) fn attached<'py, T>(py: Python<'py>, body: impl FnOnce(Python<'py>) -> T) -> T {
    Python::attach(|_| body(py))
}

/// The number of the interpreter that this thread is attached to.
pub(super) fn interpreter_id(_py: Python<'_>) -> i64 {
    // SAFETY: the token proves that the thread is attached, so that it has an interpreter.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) }
}
