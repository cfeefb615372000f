//! A call under way: the stream that drives a tool's Python code on the caller's event loop.
//!
//! The order of the stages is the core's ([`crate::call::path`]); [`stages`] carries them out, and [`step`] is a step of the stream.
//! Each stage is a file beside them, in this order:
//!
//! - [`middleware`]: layers around a call;
//! - [`request`]: any wire format to a name and arguments, and the identity of the call;
//! - [`arguments`]: presets, coercion, checks, and the call of the function;
//! - [`permission`]: policy, approver, audit; [`session`]: limits and counts of a session;
//! - [`run`]: event loop, worker, background; [`agent`]: the loop of a sub-agent; [`context`]: the reports of a running tool;
//! - [`respond`]: responses of results, [`chunk`] of generators; [`budget`]: results that are too long;
//! - [`end`], [`failure`], [`close`]: errors, cancellation, closing; [`task`]: the asyncio task and the deadline.
//!
//! [`state`] is the data of one call, [`cold`] the part of it that few calls use. [`observe`] reports a call to tracers and
//! listeners, [`model_stream`] gives it in the models of another library, [`misuse`] names mistakes in the use of a stream.
//! [`python`] is the one place that talks to CPython directly: `Toolkit.call_tool_function` itself is in [`python::methods`].

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
mod permission;
pub(super) mod python;
mod request;
mod respond;
mod run;
mod session;
mod stages;
mod state;
mod step;
mod task;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(crate) use arguments::{Handling, Plan};
pub(crate) use chunk::Completion;
pub(crate) use context::CallPort;
pub(crate) use middleware::{make_stub, stream_of, stream_through, stub_tool};
pub(crate) use model_stream::{PyModelCalls, PyModelStream, PyResponseModels};
pub(crate) use observe::gate::{LISTENERS, active_tracer, ask_who_traces};
pub(crate) use permission::{ToolView, check, explained_arguments, resumed};
pub(crate) use request::made_up_id;

/// Makes the types, adds the public one to the module, and gives `Toolkit` the methods that begin a call.
pub(crate) fn init(module: &Bound<'_, PyModule>, toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let py = module.py();
    observe::gate::init(py)?;
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
