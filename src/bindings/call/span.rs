//! The span of a call: opened by its first step, the current one while the tool's code runs and at no other time, ended
//! whatever becomes of the call. Whoever listens to the toolkit hears of the same moments.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyGeneratorExit;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tracing::span::EnteredSpan;

use super::ear::Ear;
use super::python::slot::Slot;
use super::request::Request;
use super::state::{Phase, State, Step};
use super::{gate, task};
use crate::bindings::trace::Tracer;
use crate::bindings::value;
use crate::bindings::worker::guard::Pending;
use crate::trace::{Outcome, Watch, is_watched};

/// The span of one call, for whoever listens: OpenTelemetry in Python, `tracing` in Rust, listeners of the toolkit.
pub(super) struct Span {
    ear: Option<Ear>,
    tracer: Option<Arc<Tracer>>,
    watch: RefCell<Option<Watch>>,
    /// OpenTelemetry's span; none if only Rust listens.
    otel: Slot,
    /// What the next step runs in: the span, and those that the tool has entered below it.
    context: Slot,
    /// The response delivered last.
    last: Slot,
    is_recording: bool,
    /// What is known of the ending so far.
    outcome: RefCell<Option<Outcome>>,
    is_inside: Cell<bool>,
    is_over: Cell<bool>,
}

// SAFETY: touched by attached threads only; the module declares that it needs the GIL, so that is one at a time.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// The span is the current one until this is dropped.
struct Inside<'a> {
    span: &'a Span,
    token: Slot,
    _watch: Option<EnteredSpan>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.span.is_inside.set(false);
        Python::attach(|py| {
            let (Some(tracer), Some(token)) = (&self.span.tracer, self.token.bound(py)) else { return };
            match tracer.detach(&token) {
                Ok(context) => self.span.context.set(context.into_ptr()),
                Err(error) => error.write_unraisable(py, None),
            }
        });
    }
}

impl Span {
    /// Opens the span of a call that is about to start; none if nobody listens.
    fn open(py: Python<'_>, state: &State) -> Option<Arc<Self>> {
        let tracer = gate::tracer(py);
        let ear = Ear::open(py, state);
        if tracer.is_none() && ear.is_none() && !is_watched() {
            return None;
        }
        let request = Request::of(py, state);
        let call = request.described(py, state);
        let span = tracer.as_ref().and_then(|tracer| told(py, tracer.start(py, &call)));
        let context = tracer.as_ref().zip(span.as_ref()).and_then(|(tracer, span)| told(py, tracer.context(span)));
        let is_recording = span.as_ref().is_some_and(|span| {
            let is_recording = span.call_method0(intern!(py, "is_recording"));
            told(py, is_recording).is_some_and(|is_recording| is_recording.is_truthy().unwrap_or(false))
        });
        if let (true, Some(tracer), Some(span)) = (is_recording, &tracer, &span)
            && tracer.records_arguments()
            && let Some(arguments) = state.shown_request(py)
        {
            told(py, tracer.record_arguments(span, &arguments));
        }
        Some(Arc::new(Self {
            ear,
            tracer,
            watch: RefCell::new(is_watched().then(|| Watch::open(&call))),
            otel: Slot::owning(span.map_or(ptr::null_mut(), Bound::into_ptr)),
            context: Slot::owning(context.map_or(ptr::null_mut(), Bound::into_ptr)),
            last: Slot::empty(),
            is_recording,
            outcome: RefCell::new(None),
            is_inside: Cell::new(false),
            is_over: Cell::new(false),
        }))
    }

    /// Runs a part of the call inside the span. An exception that the part leaves set is still set afterwards.
    pub(super) fn run<T>(&self, py: Python<'_>, part: impl FnOnce() -> T) -> T {
        self.is_inside.set(true);
        let token = match (&self.tracer, self.context.bound(py)) {
            (Some(tracer), Some(context)) => told(py, tracer.attach(&context)),
            _ => None,
        };
        let inside = Inside {
            span: self,
            token: Slot::owning(token.map_or(ptr::null_mut(), Bound::into_ptr)),
            _watch: self.watch.borrow().as_ref().map(Watch::enter),
        };
        let result = part();
        let pending = Pending::set_aside(py);
        drop(inside);
        pending.restore();
        result
    }

    /// Whether a step has to enter the span first.
    pub(super) fn is_to_enter(&self) -> bool {
        !self.is_inside.get() && !self.is_over.get()
    }

    /// Takes note of an exception that came out of the tool; the first one tells how the call ended. Being closed is not
    /// going wrong.
    pub(super) fn note(&self, py: Python<'_>, error: &PyErr) {
        if self.is_over.get() || self.outcome.borrow().is_some() || error.is_instance_of::<PyGeneratorExit>(py) {
            return;
        }
        let outcome = if task::is_cancellation(py, error).unwrap_or(false) {
            Outcome::Cancelled
        } else {
            let class = error.get_type(py).name().map_or_else(|_| "_OTHER".to_owned(), |name| name.to_string());
            Outcome::Raised { class, message: value::error_text(py, error) }
        };
        self.outcome.replace(Some(outcome));
        if self.is_recording
            && let Some(span) = self.otel.bound(py)
        {
            // Recording asks the exception what it says, and one that cannot say it is no news about tracing.
            let _ = span.call_method1(intern!(py, "record_exception"), (error.value(py),));
        }
    }

    /// Writes down what the last response says, which is then let go.
    pub(super) fn settle(&self, py: Python<'_>) {
        let Some(last) = self.last.bound(py) else { return };
        self.last.clear();
        if self.outcome.borrow().is_none() {
            let code = told(py, last.getattr(intern!(py, "code")));
            let code =
                code.and_then(|code| code.cast::<PyString>().ok().map(|code| code.to_string_lossy().into_owned()));
            let outcome = Outcome::of_code(code.as_deref());
            self.outcome.replace(Some(outcome).filter(|outcome| *outcome != Outcome::Completed));
        }
        if let (true, Some(tracer), Some(span)) = (self.is_recording, &self.tracer, self.otel.bound(py)) {
            told(py, tracer.record_result(&span, &last));
        }
    }

    /// Ends the span, if that is not done yet.
    pub(super) fn end(&self, py: Python<'_>) {
        if self.is_over.replace(true) {
            return;
        }
        // This may be part of a destructor, with somebody else's exception on its way.
        let pending = Pending::set_aside(py);
        self.settle(py);
        let outcome = self.outcome.take().unwrap_or(Outcome::Completed);
        if let Some(watch) = self.watch.take() {
            watch.end(&outcome);
        }
        if let Some(ear) = &self.ear {
            ear.end(py, &outcome);
        }
        if let (Some(tracer), Some(span)) = (&self.tracer, self.otel.bound(py)) {
            if self.is_recording {
                told(py, tracer.conclude(&span, &outcome));
            }
            told(py, span.call_method0(intern!(py, "end")));
        }
        self.otel.clear();
        self.context.clear();
        pending.restore();
    }

    /// Closes what the tool left open, inside the span, and ends it.
    pub(super) fn close<T>(&self, py: Python<'_>, close: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let closed = self.run(py, close);
        if let Err(error) = &closed {
            self.note(py, error);
        }
        self.end(py);
        closed
    }

    /// The objects held, for the collector.
    pub(super) fn objects(&self) -> [*mut PyObject; 4] {
        let desk = self.ear.as_ref().map_or(ptr::null_mut(), Ear::object);
        [self.otel.get(), self.context.get(), self.last.get(), desk]
    }
}

/// What tracing gives, unless it fails: that is nobody's concern but its own, and said where such things are said.
fn told<T>(py: Python<'_>, result: PyResult<T>) -> Option<T> {
    result.map_err(|error| error.write_unraisable(py, None)).ok()
}

impl State {
    /// The span of this call, if there is one that is not handed on.
    pub(super) fn span(&self) -> Option<Arc<Span>> {
        self.rare.get().and_then(|rare| rare.span.borrow().clone())
    }

    /// Takes note of an exception that is about to become a response.
    pub(super) fn note(&self, py: Python<'_>, error: &PyErr) {
        if let Some(span) = self.span() {
            span.note(py, error);
        }
    }

    /// The first step of a call that somebody may want to hear of; none if nobody does, or if the span is open.
    #[cold]
    pub(super) unsafe fn start_in_span(&self) -> Option<Step> {
        // SAFETY: the thread is attached.
        if self.span().is_some() || gate::is_idle(unsafe { Python::assume_attached() }) {
            return None;
        }
        Python::attach(|py| {
            if !self.speaks_for_its_call(py) {
                return None;
            }
            let span = Span::open(py, self)?;
            self.rare().span.replace(Some(span.clone()));
            // SAFETY: the thread is attached.
            Some(self.step_inside(py, &span, || unsafe { self.step(ffi::Py_None()) }))
        })
    }

    /// A step of the call inside its span, which ends with the call.
    pub(super) fn step_inside(&self, py: Python<'_>, span: &Span, step: impl FnOnce() -> Step) -> Step {
        if span.is_over.get() {
            return step();
        }
        let step = span.run(py, step);
        match step {
            Step::Suspend(_) => return step,
            // SAFETY: the response is live, and the thread is attached. A layer that was closed gives `None`.
            Step::Chunk(response) if unsafe { response != ffi::Py_None() } => {
                // SAFETY: as above.
                span.last.set(unsafe { ffi::Py_NewRef(response) });
                if let (Some(ear), Some(response)) = (&span.ear, span.last.bound(py)) {
                    ear.chunk(py, &response);
                }
            }
            Step::Chunk(_) | Step::End => {}
            Step::Raise => {
                let error = PyErr::fetch(py);
                span.note(py, &error);
                error.restore(py);
            }
        }
        if matches!(step, Step::End | Step::Raise) || matches!(self.phase.get(), Phase::Done | Phase::Cancelled) {
            span.end(py);
        }
        step
    }

    /// Nobody is left to go on with the call: ends its span, and lets go of the tool inside it, so that what finalises the
    /// tool's generator belongs to it still.
    pub(super) fn abandon(&self) {
        let Some(span) = self.span().filter(|span| !span.is_over.get()) else { return };
        Python::attach(|py| {
            let pending = Pending::set_aside(py);
            span.run(py, || self.finish());
            span.end(py);
            pending.restore();
        });
    }
}
