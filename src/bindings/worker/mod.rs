//! Worker threads for blocking Python code, and the delivery of results to an event loop in batches.
//!
//! Read it in this order:
//!
//! 1. [`job`]: one call, as the loop starts and reads it and as a worker runs it;
//! 2. [`awaitable`]: the objects by which Python code awaits a job;
//! 3. [`pool`]: the state that all of these files share, and the threads; [`limits`]: the decisions about them;
//! 4. [`nesting`]: calls that wait for other calls in synchronous code;
//! 5. [`wakeup`]: the inbox that wakes an event loop when results have arrived;
//! 6. [`waiter`]: the future that a task waits on until then;
//! 7. [`completion`]: the queue for results of threads that never attach to Python, those of native tools.
//!
//! The interpreter calls that need `unsafe` are in `call::python::interpreter`.
#![allow(clippy::needless_pass_by_value, reason = "pyo3 prescribes the signatures of special methods")]

mod awaitable;
mod completion;
mod job;
mod limits;
mod nesting;
mod pool;
mod waiter;
mod wakeup;

pub(crate) use awaitable::{AwaitableJob, await_by_steps, await_itself};
pub(crate) use completion::{Completer, Completions, Polled, completions};
pub(crate) use job::{Job, JobStep};
pub(crate) use pool::install;
