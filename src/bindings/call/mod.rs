//! A call under way: the stream that drives a tool's Python code on the caller's event loop.
//!
//! Read it in this order. [`path`] is the path of a call on one screen, and the stages that it names follow:
//! [`request`] reads the request, [`arguments`] binds and checks, [`permission`] decides whether it may
//! run, [`session`] counts it in its session, [`run`] runs it, [`respond`] makes responses of what it gives, [`chunk`] those of a
//! generator, [`budget`] cuts what is too long, [`value`] gives a result without a response; [`agent`] starts the loop of a sub-agent; [`context`] is what a tool knows of its call and reports while it runs.
//! [`state`] is one call and its step, [`cold`] the part of it that few calls use, [`end`] and [`close`] are for calls that end
//! otherwise, [`middleware`] puts layers
//! around a call, [`model_stream`] gives a call in the models of another library, [`observe`] reports it to tracers and listeners. `Toolkit.call_tool_function` itself is in
//! [`python::methods`]; [`python`] is the one place where the crate talks to CPython directly.

#![allow(
    clippy::inline_always,
    reason = "the stages of a call are each called once, and a call of a function costs as much as the work of one"
)]

mod agent;
mod arguments;
mod budget;
mod chunk;
mod close;
mod cold;
mod context;
mod end;
mod failure;
mod middleware;
mod misuse;
mod model_stream;
mod observe;
mod path;
mod permission;
pub(super) mod python;
mod request;
mod respond;
mod run;
mod session;
mod state;
mod task;
mod value;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(crate) use arguments::{Handling, Plan};
pub(crate) use chunk::Completion;
pub(crate) use context::CallPort;
pub(crate) use middleware::{make_stub, stream_of, stream_through, stub_tool};
pub(crate) use model_stream::{PyModelCalls, PyModelStream, PyResponseModels};
pub(crate) use observe::gate::{LISTENERS, active_tracer, ask_who_traces};
pub(crate) use permission::{check, explained_arguments, made_up_id, resumed};

/// Makes the types, adds the public one to the module, and gives `Toolkit` the methods that begin a call.
pub(crate) fn init(module: &Bound<'_, PyModule>, toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let py = module.py();
    observe::gate::init(py)?;
    python::stop::init(py)?;
    python::drive::init(py)?;
    python::methods::init(toolkit)?;
    module.add("ToolStream", python::object::init(py)?)
}

/// Refuses to be imported by any but the main interpreter: types, free lists and worker threads belong to the process, and a
/// lock of the main interpreter is what they rely on. pyo3 checks this for modules inside of modules only, and CPython asks
/// for no such promise before 3.12.
pub(crate) fn refuse_second_interpreter(py: Python<'_>) -> PyResult<()> {
    if python::interpreter::is_main(py) {
        return Ok(());
    }
    Err(PyImportError::new_err("toolcrib can be imported in the main interpreter only, not in a subinterpreter"))
}
