//! Writes to a store that a decision waits for. The call gives way to the event loop until they are durable, so that a database
//! that does not answer stops only the calls that need it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

use super::Permitted;
use crate::bindings::call::python::attached;
use crate::bindings::call::state::{Early, Phase, State, Step};
use crate::bindings::tool::PyTool;
use crate::bindings::worker::{Completer, Completions, Polled, completions};
use crate::call::{Deferred, Next};
use crate::store::Write;
use crate::sync::lock;
use crate::{Error, Result};

/// The longest time for which the event loop waits for a store that answers quickly and has nothing else to do: less than it
/// takes to come back to the call.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// A write under way, and the decision that waits for it.
pub(in crate::bindings::call) struct Writing {
    results: Completions<Result<bool>>,
    deferred: Option<Box<Deferred>>,
}

/// The way of a result from the thread of a store to a call: by a short wait, or by the queue of the event loop.
#[derive(Default)]
struct Handoff {
    state: Mutex<HandoffState>,
    arrived: Condvar,
}

#[derive(Default)]
enum HandoffState {
    #[default]
    Awaited,
    Arrived(Result<bool>),
    /// The call has given way to the event loop, or has taken the result.
    Queued(Option<Completer<Result<bool>>>),
}

impl Handoff {
    fn send(&self, result: Result<bool>) {
        let mut state = lock(&self.state);
        match &mut *state {
            HandoffState::Queued(completer) => {
                let completer = completer.take();
                drop(state);
                if let Some(completer) = completer {
                    completer.complete(result);
                }
            }
            HandoffState::Awaited | HandoffState::Arrived(_) => {
                *state = HandoffState::Arrived(result);
                drop(state);
                self.arrived.notify_one();
            }
        }
    }

    /// Waits for the result, for a limited time if there is a limit.
    fn wait(&self, limit: Option<Duration>) {
        let is_awaited = |state: &mut HandoffState| matches!(state, HandoffState::Awaited);
        let state = lock(&self.state);
        match limit {
            Some(limit) => {
                let waited = self.arrived.wait_timeout_while(state, limit, is_awaited);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
            None => drop(self.arrived.wait_while(state, is_awaited).unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Takes the result, or has it sent to the queue from now on.
    fn take_or_queue(&self, completer: Option<Completer<Result<bool>>>) -> Option<Result<bool>> {
        match std::mem::replace(&mut *lock(&self.state), HandoffState::Queued(completer)) {
            HandoffState::Arrived(result) => Some(result),
            HandoffState::Awaited | HandoffState::Queued(_) => None,
        }
    }

    fn has_arrived(&self) -> bool {
        matches!(&*lock(&self.state), HandoffState::Arrived(_))
    }
}

impl State {
    /// Begins a write. None if the call has to wait for it on the event loop.
    pub(super) fn begin_write(&self, py: Python<'_>, write: Write) -> Option<Result<bool>> {
        let handoff = Arc::new(Handoff::default());
        let sender = handoff.clone();
        py.detach(|| {
            if write.begin(move |result| sender.send(result)) {
                handoff.wait(Some(SHORT_WAIT));
            }
        });
        if handoff.has_arrived() {
            return handoff.take_or_queue(None);
        }
        let Ok((completer, results)) = completions(py) else {
            // There is no event loop to go on meanwhile.
            py.detach(|| handoff.wait(None));
            return handoff.take_or_queue(None);
        };
        let arrived = handoff.take_or_queue(Some(completer));
        if arrived.is_none() {
            self.cold().writing.replace(Some(Writing { results, deferred: None }));
        }
        arrived
    }

    /// Makes a decision wait for the write that was begun.
    pub(super) fn wait_for_write(&self, tool: &Bound<'_, PyTool>, deferred: Box<Deferred>) {
        let cold = self.cold();
        if let Some(writing) = &mut *cold.writing.borrow_mut() {
            writing.deferred = Some(deferred);
        }
        // Before it is admitted, a call has no tool of its own.
        cold.writing_tool.set(tool.clone().into_any());
        self.phase.set(Phase::Approval);
    }

    /// True while a decision waits for a write.
    pub(in crate::bindings::call) fn is_writing(&self) -> bool {
        self.cold.get().is_some_and(|cold| cold.writing.borrow().is_some())
    }

    /// Goes on waiting for a write, and then with the decision: the arguments that may run.
    pub(super) fn await_write<'py>(&self, py: Python<'py>) -> Permitted<'py> {
        attached(py, |py| {
            let cold = self.cold();
            // Taken out, because polling may run code of the event loop.
            let Some(Writing { results, deferred: Some(deferred) }) = cold.writing.take() else {
                return Err(Early::Step(self.end_of_stream(py)));
            };
            let result = match results.poll(py)? {
                Polled::Wait(waiter) => {
                    cold.writing.replace(Some(Writing { results, deferred: Some(deferred) }));
                    return Err(Early::Step(Step::Suspend(waiter.into_bound(py))));
                }
                Polled::Value(result) => result,
                Polled::Ended => Err(Error::StoreFailed { store: String::new(), reason: "it is closed".to_owned() }),
            };
            let Some(tool) = cold.writing_tool.take(py) else { return Err(Early::Step(self.end_of_stream(py))) };
            let tool = tool.cast_into::<PyTool>().map_err(PyErr::from)?;
            // From here on it is the tool that is waited for.
            cold.deadline.pause(py);
            self.suspended.set(false);
            let next = self.in_stage(py, &tool, &self.info(py), |stage| stage.written(*deferred, result))?;
            let Some(next) = next else {
                // The pending value of a resumed call is used up: the call begins.
                self.phase.set(Phase::Ready);
                return Err(Early::Wait);
            };
            self.follow(py, &tool, next)
        })
    }

    /// Ends a call by what the core says, perhaps after a write.
    pub(super) fn end_by<'py>(&self, py: Python<'py>, tool: &Bound<'py, PyTool>, next: Next) -> Early<'py> {
        self.follow(py, tool, next).err().unwrap_or(Early::Wait)
    }

    /// Gives up a call that waits for a write, which goes on by itself.
    pub(in crate::bindings::call) fn give_up_writing<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        let cold = self.cold();
        drop(cold.writing.take());
        cold.writing_tool.clear(py);
        if self.tool.get(py).is_some() {
            return self.fail(py, error);
        }
        self.finish(py);
        Step::Raise(error.into())
    }
}
