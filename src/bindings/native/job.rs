//! One run of a native tool, as the event loop sees it: started, polled, abandoned.

use pyo3::prelude::*;
use serde_json::Value;

use super::runtime;
use crate::bindings::worker::{Completions, Next, Step, completions};
use crate::bindings::{errors, response};
use crate::native::{Delivery, Failure, NativeTool, Task, ToolContext};

/// The number of responses that a tool may be ahead of its consumer.
const AHEAD: usize = 32;

/// A native tool under way. Dropping it abandons the run.
pub(crate) struct NativeJob {
    tool: NativeTool,
    /// Taken out when the run is over or abandoned.
    running: Option<(Task, Completions<Delivery>)>,
    generation: u64,
}

impl NativeJob {
    /// Starts a tool for the event loop that runs in this thread.
    ///
    /// # Errors
    /// If no event loop is running, or the interpreter is shutting down.
    pub(crate) fn start(py: Python<'_>, tool: &NativeTool, context: ToolContext, arguments: Value) -> PyResult<Self> {
        let (completer, results) = completions(py)?;
        let run = tool.run(context, arguments);
        let task = runtime::current()?
            .spawn(run, AHEAD, move |delivery| completer.complete(delivery))
            .map_err(|_| runtime::shutting_down())?;
        Ok(Self { tool: tool.clone(), running: Some((task, results)), generation: runtime::generation() })
    }

    /// Takes the next response, or hands out a future to wait on.
    ///
    /// # Errors
    /// If the process was forked since the start, or the event loop is gone.
    pub(crate) fn poll(&mut self, py: Python<'_>) -> PyResult<Step> {
        let Some((_, results)) = &self.running else { return Ok(Step::Done(None)) };
        let item = match results.poll(py)? {
            Next::Wait(waiter) => return Ok(Step::Wait(waiter)),
            Next::Value(Delivery::Item(item, _room)) => item,
            Next::Value(Delivery::End) => {
                self.abandon();
                return Ok(Step::Done(None));
            }
            Next::Ended => {
                self.abandon();
                return Ok(Step::Raised(runtime::shutting_down()));
            }
        };
        match item {
            Ok(given) => Ok(Step::Chunk(response::from_core(py, given)?.unbind())),
            // The model's mistake, so that it is answered whatever becomes of errors.
            Err(failure @ Failure::Arguments(_)) => {
                let reply = failure.reply(self.tool.name());
                Ok(Step::Chunk(response::answer(py, &reply)?.unbind()))
            }
            Err(failure) => {
                self.abandon();
                Ok(Step::Raised(errors::native(self.tool.name(), &failure)))
            }
        }
    }

    /// Gives the run up: the tool's future is dropped in its thread, and its responses are dropped here.
    pub(crate) fn abandon(&mut self) {
        let running = self.running.take();
        if self.generation == runtime::generation() {
            drop(running);
        } else {
            // The task belongs to threads that a fork left behind, with whatever they had locked.
            std::mem::forget(running);
        }
    }
}

impl Drop for NativeJob {
    fn drop(&mut self) {
        self.abandon();
    }
}
