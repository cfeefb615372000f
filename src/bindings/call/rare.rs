//! What few calls need, kept out of the object that every call makes.

use std::cell::{Cell, OnceCell, RefCell};
use std::ptr;
use std::sync::Arc;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;

use super::approval::Question;
use super::case::Case;
use super::deadline::Deadline;
use super::handler::NextHandler;
use super::python::slot::Slot;
use super::resume::Resumption;
use super::span::Span;
use crate::bindings::worker::Job;
use crate::call::Repair;
use crate::call::repair::doubt;
use crate::schema::dialect::Dialect;

/// How a call ends once its tool's generator is finalised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With `response`.
    Respond,
    /// With `response`, and then the cancellation in `error`.
    Interrupt,
    /// With `error`.
    Raise,
    /// Without another response.
    Over,
    /// With nothing to say: somebody asked for the end.
    Closed,
}

/// What few calls need.
pub(super) struct Rare {
    /// The work in a worker thread.
    pub(super) job: OnceCell<Job>,
    /// The exception that `athrow` was given.
    pub(super) thrown: Slot,
    /// The value that `asend` was given.
    pub(super) sent: Slot,
    /// How the call ends after `Closing`.
    pub(super) ending: Cell<Ending>,
    /// The response it ends with; before that, the one that a postprocess function works on.
    pub(super) response: Slot,
    pub(super) error: Slot,
    /// The event loop has thrown a cancellation in.
    pub(super) cancel_thrown: Cell<bool>,
    pub(super) deadline: Deadline,
    /// The call was answered before it ran, and nobody reads its stream.
    pub(super) in_background: Cell<bool>,
    /// What the middleware was given to go on with, if the call is a layer around another.
    pub(super) next: Slot,
    /// What the layers of the call share.
    pub(super) case: RefCell<Option<Arc<Case>>>,
    /// What somebody is asked about the call.
    pub(super) question: RefCell<Option<Box<Question>>>,
    /// What the request has to be translated from before it is looked at.
    pub(super) dialect: Cell<Option<Dialect>>,
    /// What is told of the call to whoever traces or listens.
    pub(super) span: RefCell<Option<Arc<Span>>>,
    /// What was mended in its arguments.
    pub(super) mended: RefCell<Mended>,
}

/// What was mended in the arguments of a call, and why they may not be what was meant.
#[derive(Default)]
pub(super) struct Mended {
    pub(super) repairs: Vec<Repair>,
    pub(super) is_truncated: bool,
    pub(super) has_duplicate_keys: bool,
}

impl Mended {
    /// Why they do not certainly say what was meant.
    pub(super) fn doubt(&self) -> Option<&'static str> {
        doubt(self.is_truncated, self.has_duplicate_keys)
    }
}

impl Default for Rare {
    fn default() -> Self {
        Self {
            job: OnceCell::new(),
            thrown: Slot::empty(),
            sent: Slot::empty(),
            ending: Cell::new(Ending::Respond),
            response: Slot::empty(),
            error: Slot::empty(),
            cancel_thrown: Cell::new(false),
            deadline: Deadline::new(),
            in_background: Cell::new(false),
            next: Slot::empty(),
            case: RefCell::new(None),
            question: RefCell::new(None),
            dialect: Cell::new(None),
            span: RefCell::new(None),
            mended: RefCell::default(),
        }
    }
}

impl Rare {
    /// Whether the call goes on with one that was pending.
    pub(super) fn is_resumed(&self) -> bool {
        self.case.borrow().as_ref().is_some_and(|case| case.resumption.is_some())
    }

    /// Whether that one is still to be used up.
    pub(super) fn is_to_claim(&self) -> bool {
        let case = self.case.borrow();
        case.as_ref().and_then(|case| case.resumption.as_ref()).is_some_and(Resumption::is_to_claim)
    }

    /// Gives up what is under way.
    pub(super) fn release(&self) {
        if let Some(job) = self.job.get() {
            job.abandon();
        }
        self.deadline.stop();
        self.sent.clear();
        self.thrown.clear();
        self.response.clear();
        if !self.next.get().is_null() {
            Python::attach(|py| self.release_next(py));
        }
    }

    /// Lets go of the layers further in.
    fn release_next(&self, py: Python<'_>) {
        if let Some(next) = self.next.bound(py)
            && let Ok(next) = next.cast::<NextHandler>()
        {
            next.get().release();
        }
        self.next.clear();
    }

    /// Drops every reference.
    pub(super) fn clear(&self) {
        self.release();
        self.error.clear();
        self.deadline.clear();
    }

    /// The objects held, for the collector, but for those of the job.
    pub(super) fn objects(&self) -> [*mut PyObject; 11] {
        let [alarm, timer] = self.deadline.objects();
        // Borrowed by nobody: the collector comes by while nothing runs here.
        let span = self.span.try_borrow().ok().and_then(|span| span.as_ref().map(|span| span.objects()));
        let [span, context, last, desk] = span.unwrap_or([ptr::null_mut(); 4]);
        let own = [self.thrown.get(), self.sent.get(), self.response.get(), self.error.get(), self.next.get()];
        let [thrown, sent, response, error, next] = own;
        [thrown, sent, response, error, next, alarm, timer, span, context, last, desk]
    }
}
