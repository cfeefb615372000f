//! A call under way: the stream that drives a tool's Python code on the caller's event loop.
//!
//! Read it in this order. [`path`] is the path of a call on one screen, and the stages that it names follow:
//! [`request`] reads the request, [`arguments`] binds and checks, [`permission`] decides whether it may
//! run, [`run`] runs it, [`respond`] makes responses of what it gives.
//! [`state`] is one call and its step, [`end`] and [`close`] are for calls that end otherwise, [`middleware`] puts layers
//! around a call, [`observe`] reports it to tracers and listeners. `Toolkit.call_tool_function` itself is in
//! [`python::methods`]; [`python`] is the one place where the crate talks to CPython directly.

mod arguments;
mod close;
mod deadline;
mod end;
mod middleware;
mod observe;
mod path;
mod permission;
mod python;
mod request;
mod respond;
mod run;
mod state;
mod task;

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(crate) use arguments::{Handling, Plan};
pub(crate) use middleware::{stream_of, stream_through};
pub(crate) use observe::gate::{LISTENERS, ask_who_traces};
pub(crate) use permission::{check, explained_arguments, resumed};

/// Makes the types, adds the public one to the module, and gives `Toolkit` the methods that begin a call.
pub(crate) fn init(module: &Bound<'_, PyModule>, toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let py = module.py();
    refuse_second_interpreter(py)?;
    observe::gate::init(py)?;
    python::stop::init(py)?;
    python::drive::init(py)?;
    python::methods::init(toolkit)?;
    module.add("ToolStream", python::object::init(py)?)
}

/// Types, free lists and worker threads belong to the process, so only one of its interpreters may have them. pyo3 checks
/// this for modules inside of modules only, and CPython asks for no such promise before 3.12.
fn refuse_second_interpreter(py: Python<'_>) -> PyResult<()> {
    static FIRST: AtomicI64 = AtomicI64::new(-1);
    let id = python::interpreter_id(py);
    match FIRST.compare_exchange(-1, id, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != id => {
            Err(PyImportError::new_err("toolcrib runs in one interpreter of a process, and another one has it already"))
        }
        _ => Ok(()),
    }
}
