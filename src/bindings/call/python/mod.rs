//! The stream as CPython sees it, and the few interpreter calls that pyo3 has no safe form for.
//!
//! The only folder with `unsafe` code. [`object`] is the type with its slots and the exceptions that end an iteration,
//! [`methods`] the methods that begin a call, [`slot`] a place for one reference, [`drive`] calls and resumes Python code,
//! [`interpreter`] holds the calls that worker threads need, [`stack`] measures the stack of the thread.
#![allow(unsafe_code, reason = "CPython's slots are reached through raw pointers; each block says why it is sound")]

pub(super) mod drive;
pub(crate) mod interpreter;
pub(super) mod methods;
pub(super) mod object;
pub(super) mod slot;
pub(super) mod stack;

pub(super) use interpreter::attached;
