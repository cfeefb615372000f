//! The stream: drives a tool's Python code on the caller's event loop, one call an object.
//!
//! Read it in this order: [`object`] is what Python sees; [`state`] is one call and its steps; [`start`] begins it,
//! [`bind`] calls the function, [`drive`] resumes it, [`settle`] makes responses of what it gives, [`ending`] and
//! [`throw`] are for everything that does not go as planned. [`layer`] and [`handler`] put middlewares around a call;
//! [`gate`] sees whether anybody traces, and [`span`] is what they see.
//!
//! This is the one place where the crate talks to CPython directly.
#![allow(unsafe_code, reason = "CPython's slots are reached through raw pointers; each block says why it is sound")]

mod approval;
mod background;
mod bind;
mod case;
mod check;
mod closing;
mod counter;
mod deadline;
mod dialect;
mod drive;
mod ear;
mod ending;
mod failure;
mod freeze;
mod gate;
mod handler;
mod hush;
mod input;
mod judge;
mod layer;
mod mended;
pub(super) mod python;
mod rare;
mod reading;
mod request;
mod resume;
mod settle;
mod span;
mod spread;
mod start;
mod state;
mod task;
mod telling;
mod throw;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::view::PyToolkitView;

use python::{construct, generator, methods, object, stop};

pub(crate) use bind::{Handling, Plan};
pub(crate) use case::Case;
pub(crate) use check::check;
pub(crate) use gate::{LISTENERS, ask_who_traces};
pub(crate) use handler::{stream_of, stream_through};
pub(crate) use resume::resumed;

/// Makes the types, adds the public one to the module, and gives `Toolkit` the methods that begin a call.
pub(crate) fn init(module: &Bound<'_, PyModule>, toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let py = module.py();
    gate::init(py);
    stop::init(py)?;
    generator::init(py)?;
    counter::init(py);
    methods::init(toolkit)?;
    methods::init(&py.get_type::<PyToolkitView>())?;
    construct::init(py);
    module.add("ToolStream", object::init(py)?)
}

/// Refuses to be imported by any but the main interpreter: types, free lists and worker threads belong to the process, and a
/// lock of the main interpreter is what they rely on. pyo3 checks this for modules inside of modules only, and CPython asks
/// for no such promise before 3.12.
pub(crate) fn refuse_second_interpreter() -> PyResult<()> {
    // SAFETY: the thread is attached, so that it has an interpreter; both only return a pointer, which is not followed.
    let is_main = unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() };
    if is_main {
        return Ok(());
    }
    Err(PyImportError::new_err("toolcrib can be imported in the main interpreter only, not in a subinterpreter"))
}
