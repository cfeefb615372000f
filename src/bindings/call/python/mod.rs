//! The stream as CPython sees it, and the few interpreter calls that pyo3 has no safe form for.
//!
//! The only folder with `unsafe` code. [`object`] is the type with its slots, [`methods`] the methods that begin a call,
//! [`slot`] a place for one reference, [`drive`] calls and resumes Python code, [`stop`] is the end of an iteration,
//! [`interpreter`] holds the calls that worker threads need.
#![allow(unsafe_code, reason = "CPython's slots are reached through raw pointers; each block says why it is sound")]

pub(super) mod drive;
pub(crate) mod interpreter;
pub(super) mod methods;
pub(super) mod object;
pub(super) mod slot;
pub(super) mod stop;

use pyo3::prelude::*;

/// Runs code that drops `Py<T>` or `PyErr` in a thread that is attached. The interpreter enters the stream's slots
/// directly, and pyo3 puts decrements off until it is told.
pub(super) fn attached<'py, T>(py: Python<'py>, body: impl FnOnce(Python<'py>) -> T) -> T {
    Python::attach(|_| body(py))
}
