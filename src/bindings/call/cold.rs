//! The state that most calls never use: of jobs, deadlines, approvals, contexts and closing.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::context::Held;
use super::observe::span::SharedSpan;
use super::permission::Writing;
use super::python::slot::Slot;
use super::session::Attempt;
use super::state::Ending;
use super::task::Deadline;
use crate::bindings::worker::Job;
use crate::call::{CallInfo, CheckedArguments, ReadRepairs, Resumption, Spending, Waiting};
use crate::provider::Dialect;

/// Arguments that are bound to the parameters of a function: by position and by keyword.
type BoundArguments = (Py<PyTuple>, Option<Py<PyDict>>);

/// State that most calls never use, allocated on first use.
pub(super) struct Cold {
    /// The bound arguments of a call that was admitted before it began.
    pub(super) bound: RefCell<Option<BoundArguments>>,
    /// The work in a worker thread.
    pub(super) job: OnceCell<Job>,
    /// The exception that `athrow` was given.
    pub(super) thrown: Slot,
    /// The value that `asend` was given.
    pub(super) sent: Slot,
    /// The ending after `Closing`.
    pub(super) ending: Cell<Ending>,
    /// The response that the call ends with; before that, the one that a postprocess function works on.
    pub(super) response: Slot,
    pub(super) error: Slot,
    /// The call is closed because the one around it was cancelled, which does not wait for threads.
    pub(super) leaves_threads: Cell<bool>,
    /// The event loop has thrown a cancellation in.
    pub(super) cancel_thrown: Cell<bool>,
    pub(super) deadline: Deadline,
    /// The call was answered before it ran, and its stream has no reader.
    pub(super) in_background: Cell<bool>,
    /// The identity that the layers of the call share.
    pub(super) info: RefCell<Option<Arc<CallInfo>>>,
    /// The arguments of a call whose tool is asked whether they need approval.
    pub(super) confirming: RefCell<Option<Box<CheckedArguments>>>,
    /// The description of the call by its tool, for the approver and for the run, with the arguments that it is about.
    pub(super) confirmation: Slot,
    pub(super) confirmed: RefCell<Option<serde_json::Value>>,
    /// The question that the approver is asked about the call.
    pub(super) waiting: RefCell<Option<Box<Waiting>>>,
    /// The write that a decision waits for, and the tool that it is about.
    pub(super) writing: RefCell<Option<Writing>>,
    pub(super) writing_tool: Slot,
    /// The defaults that were made for the call, by name: a dict.
    pub(super) made_defaults: Slot,
    /// The typed arguments that were built for a decision, with the JSON values that they were built from.
    pub(super) built: Slot,
    pub(super) built_from: RefCell<Option<serde_json::Value>>,
    /// The `ToolContext` of the call, once it is needed, and the port that leads from it to this stream.
    pub(super) context: Slot,
    pub(super) port: Slot,
    /// The step of the tool that waits until the reports before it are read.
    pub(super) held: Held,
    /// The dialect that the request has to be translated from first.
    pub(super) dialect: Cell<Option<Dialect>>,
    /// The span and events of the call.
    pub(super) span: RefCell<Option<SharedSpan>>,
    /// The repairs of its arguments, and the reasons why they may not be what was meant.
    pub(super) repaired: RefCell<ReadRepairs>,
    /// The attempt to call a tool, in a session that limits retries.
    pub(super) attempt: RefCell<Option<Attempt>>,
    /// The budgets of the result: a tuple. With the part that is used up.
    pub(super) budgets: Slot,
    pub(super) spending: RefCell<Spending>,
    /// The iterator of the awaitable that keeps the whole text, and the response that waits for it.
    pub(super) keeping: Slot,
    pub(super) uncut: Slot,
    /// The bare value of a call that gives it, while a response is made for its other stages.
    pub(super) value: Slot,
}

impl Default for Cold {
    fn default() -> Self {
        Self {
            bound: RefCell::new(None),
            job: OnceCell::new(),
            thrown: Slot::empty(),
            sent: Slot::empty(),
            ending: Cell::new(Ending::Respond),
            response: Slot::empty(),
            error: Slot::empty(),
            leaves_threads: Cell::new(false),
            cancel_thrown: Cell::new(false),
            deadline: Deadline::new(),
            in_background: Cell::new(false),
            info: RefCell::new(None),
            confirming: RefCell::new(None),
            confirmation: Slot::empty(),
            confirmed: RefCell::default(),
            waiting: RefCell::new(None),
            writing: RefCell::new(None),
            writing_tool: Slot::empty(),
            made_defaults: Slot::empty(),
            built: Slot::empty(),
            built_from: RefCell::default(),
            context: Slot::empty(),
            port: Slot::empty(),
            held: Held::nothing(),
            dialect: Cell::new(None),
            span: RefCell::new(None),
            repaired: RefCell::default(),
            attempt: RefCell::new(None),
            budgets: Slot::empty(),
            spending: RefCell::default(),
            keeping: Slot::empty(),
            uncut: Slot::empty(),
            value: Slot::empty(),
        }
    }
}

impl Cold {
    /// True if the call goes on with one that was pending.
    pub(super) fn is_resumed(&self) -> bool {
        self.info.borrow().as_ref().is_some_and(|info| info.resumption.is_some())
    }

    /// True if a result is reported to listeners and tracers, or counted in its session.
    pub(super) fn needs_response(&self) -> bool {
        self.span.borrow().is_some() || self.attempt.borrow().is_some()
    }

    /// True if the pending call is still to be used up.
    pub(super) fn is_to_claim(&self) -> bool {
        let info = self.info.borrow();
        info.as_ref().and_then(|info| info.resumption.as_ref()).is_some_and(Resumption::is_fresh)
    }

    /// Drops what a call does not need after its end.
    pub(super) fn release(&self, py: Python<'_>) {
        self.deadline.stop(py);
        self.sent.clear(py);
        self.thrown.clear(py);
        self.response.clear(py);
        self.made_defaults.clear(py);
        self.built.clear(py);
        self.confirmation.clear(py);
        self.close_port(py);
        self.context.clear(py);
        self.port.clear(py);
        self.keeping.clear(py);
        self.uncut.clear(py);
        self.writing_tool.clear(py);
        drop(self.writing.take());
        drop(self.bound.take());
    }

    /// Drops every reference.
    pub(super) fn clear(&self, py: Python<'_>) {
        self.release(py);
        self.error.clear(py);
        self.budgets.clear(py);
        self.value.clear(py);
        self.deadline.clear(py);
    }

    pub(super) fn objects(&self, py: Python<'_>) -> impl Iterator<Item = *mut PyObject> + use<> {
        let slots = [
            &self.thrown,
            &self.sent,
            &self.response,
            &self.error,
            &self.made_defaults,
            &self.built,
            &self.confirmation,
            &self.context,
            &self.port,
            &self.budgets,
            &self.keeping,
            &self.uncut,
            &self.writing_tool,
            &self.value,
        ];
        let own = slots.map(Slot::visited);
        // The collector comes by while nothing runs here, so that nothing is borrowed.
        let bound = self.bound.try_borrow().ok();
        let bound = bound.as_ref().and_then(|bound| {
            bound.as_ref().map(|(arguments, keywords)| {
                [arguments.as_ptr(), keywords.as_ref().map_or(std::ptr::null_mut(), Py::as_ptr)]
            })
        });
        let span = self.span.try_borrow().ok().and_then(|span| span.as_ref().map(|span| span.get(py).objects()));
        own.into_iter()
            .chain(self.deadline.objects())
            .chain(self.held.objects())
            .chain(bound.into_iter().flatten())
            .chain(span.into_iter().flatten())
    }
}
