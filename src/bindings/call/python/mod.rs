//! The stream as CPython sees it, and the few interpreter calls that pyo3 has no safe form for.
//!
//! The only folder with `unsafe` code. [`object`] is the type with its slots, [`methods`] the methods that begin a call,
//! [`construct`] the vectorcall of `ToolResponse`, [`slot`] a place for one reference, [`generator`] the short way through
//! async generators, [`stop`] the end of an iteration,
//! [`interpreter`] the calls that worker threads need.

pub(super) mod construct;
pub(super) mod generator;
pub(crate) mod interpreter;
pub(super) mod methods;
pub(super) mod object;
pub(super) mod slot;
pub(super) mod stop;
