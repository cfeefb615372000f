//! The span of a call: opened by its first step, the current one while the tool's code runs and at no other time, ended
//! whatever becomes of the call. Listeners of the toolkit get an event for the same moments.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyGeneratorExit;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyNone;
use tracing::span::EnteredSpan;

use super::events::Events;
use super::gate;
use crate::bindings::call::python::attached;
use crate::bindings::call::python::interpreter::Pending;
use crate::bindings::call::python::slot::{GilGuarded, Slot};
use crate::bindings::call::request::Peeked;
use crate::bindings::call::state::{Phase, State, Step};
use crate::bindings::call::task;
use crate::bindings::foreign_response::code_of;
use crate::bindings::into_response;
use crate::bindings::once::intern;
use crate::bindings::trace::Tracer;
use crate::trace::{Outcome, RustSpan, is_watched};

/// The span of one call, for every tracer: OpenTelemetry in Python, `tracing` in Rust, listeners of the toolkit.
pub(in crate::bindings::call) struct Span {
    events: Option<Events>,
    tracer: Option<Arc<Tracer>>,
    watch: RefCell<Option<RustSpan>>,
    /// OpenTelemetry's span; none if only Rust listens.
    otel: Slot,
    /// The context that the next step runs in: the span, and those that the tool has entered below it.
    context: Slot,
    /// The response delivered last.
    last: Slot,
    /// The object that writes the span, if its toolkit has one.
    conventions: Slot,
    is_recording: bool,
    /// True if the call ended with an exception.
    is_raised: Cell<bool>,
    /// The ending, as far as it is known.
    outcome: RefCell<Option<Outcome>>,
    is_inside: Cell<bool>,
    is_over: Cell<bool>,
}

/// A span that a stream and the awaitable of its `aclose` share.
pub(in crate::bindings::call) type SharedSpan = Arc<GilGuarded<Span>>;

/// The span is the current one until this is dropped.
struct Inside<'a> {
    py: Python<'a>,
    span: &'a Span,
    token: Slot,
    _watch: Option<EnteredSpan>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.span.is_inside.set(false);
        attached(self.py, |py| {
            let (Some(tracer), Some(token)) = (&self.span.tracer, self.token.get(py)) else { return };
            match tracer.detach(&token) {
                Ok(context) => self.span.context.set(context),
                Err(error) => error.write_unraisable(py, None),
            }
        });
    }
}

impl Span {
    /// Opens the span of a call that is about to start; none if there are no listeners.
    fn open(py: Python<'_>, state: &State) -> Option<SharedSpan> {
        let conventions = state.toolkit.get(py).and_then(|toolkit| toolkit.get().conventions(py));
        let mut tracer = gate::tracer(py);
        let mut written = None;
        if let (Some(conventions), Some(_)) = (&conventions, &tracer) {
            let toolkit = state.toolkit.get(py).map(Borrowed::to_owned);
            let request = (toolkit, state.request.get(py), state.shown_request(py));
            let started = conventions.call_method1(intern!(py, "start"), request);
            written = unless_failed(py, started).filter(|span| !span.is_none());
            // Without a span of that kind there is none.
            tracer = tracer.filter(|_| written.is_some());
        }
        let events = Events::open(py, state);
        if tracer.is_none() && events.is_none() && !is_watched() {
            return None;
        }
        let request = Peeked::of(py, state);
        let call = request.described(py, state);
        let start = |tracer: &Arc<Tracer>| unless_failed(py, tracer.start(py, &call));
        let span = written.or_else(|| tracer.as_ref().and_then(start));
        let context =
            tracer.as_ref().zip(span.as_ref()).and_then(|(tracer, span)| unless_failed(py, tracer.context(span)));
        let is_recording = span.as_ref().is_some_and(|span| {
            let is_recording = span.call_method0(intern!(py, "is_recording"));
            unless_failed(py, is_recording).is_some_and(|is_recording| is_recording.is_truthy().unwrap_or(false))
        });
        if let (true, Some(tracer), Some(span)) = (is_recording, &tracer, &span)
            && tracer.records_arguments()
            && let Some(arguments) = state.shown_request(py)
        {
            unless_failed(py, tracer.record_arguments(span, &arguments));
        }
        Some(Arc::new(GilGuarded::new(Self {
            events,
            tracer,
            watch: RefCell::new(is_watched().then(|| RustSpan::open(&call))),
            otel: slot(span),
            context: slot(context),
            last: Slot::empty(),
            conventions: slot(conventions.filter(|_| is_recording)),
            is_recording,
            is_raised: Cell::new(false),
            outcome: RefCell::new(None),
            is_inside: Cell::new(false),
            is_over: Cell::new(false),
        })))
    }

    /// Runs a part of the call inside the span. An exception that the part leaves set is still set afterwards.
    pub(in crate::bindings::call) fn run<T>(&self, py: Python<'_>, part: impl FnOnce() -> T) -> T {
        self.is_inside.set(true);
        let token = match (&self.tracer, self.context.get(py)) {
            (Some(tracer), Some(context)) => unless_failed(py, tracer.attach(&context)),
            _ => None,
        };
        let inside =
            Inside { py, span: self, token: slot(token), _watch: self.watch.borrow().as_ref().map(RustSpan::enter) };
        let result = part();
        let pending = Pending::set_aside(py);
        drop(inside);
        pending.restore();
        result
    }

    /// True if a step has to enter the span first.
    pub(in crate::bindings::call) fn is_to_enter(&self) -> bool {
        !self.is_inside.get() && !self.is_over.get()
    }

    /// Takes note of an exception that came out of the tool; the first one decides how the call ended. Being closed is not
    /// going wrong.
    pub(in crate::bindings::call) fn note(&self, py: Python<'_>, error: &PyErr) {
        if self.is_over.get() || self.outcome.borrow().is_some() || error.is_instance_of::<PyGeneratorExit>(py) {
            return;
        }
        let outcome = if task::is_cancellation(py, error).unwrap_or(false) {
            Outcome::Cancelled
        } else {
            let class = into_response::error_class(py, error).to_string();
            Outcome::Raised { class, message: into_response::error_text(py, error) }
        };
        self.outcome.replace(Some(outcome));
        if self.is_recording
            && let Some(span) = self.otel.get(py)
        {
            // Recording formats the exception, and one that cannot be formatted is not an error of tracing.
            let _ = span.call_method1(intern!(py, "record_exception"), (error.value(py),));
        }
    }

    /// Writes down what the last response says, which is then let go.
    pub(in crate::bindings::call) fn settle(&self, py: Python<'_>) {
        let Some(last) = self.last.get(py) else { return };
        self.last.clear(py);
        if self.outcome.borrow().is_none() {
            let outcome = Outcome::of_code(code_of(&last).as_deref());
            self.outcome.replace(Some(outcome).filter(|outcome| *outcome != Outcome::Completed));
        }
        if let (true, Some(tracer), Some(span)) = (self.is_recording, &self.tracer, self.otel.get(py)) {
            unless_failed(py, tracer.record_result(&span, &last));
        }
        if let (Some(conventions), Some(span)) = (self.conventions.get(py), self.otel.get(py)) {
            let response = Some(last).filter(|_| !self.is_raised.get());
            unless_failed(py, conventions.call_method1(intern!(py, "record"), (span, response)));
        }
    }

    /// Ends the span, if that is not done yet.
    pub(in crate::bindings::call) fn end(&self, py: Python<'_>) {
        if self.is_over.replace(true) {
            return;
        }
        // This may be part of a destructor, with another exception on its way.
        let pending = Pending::set_aside(py);
        self.settle(py);
        let outcome = self.outcome.take().unwrap_or(Outcome::Completed);
        if let Some(watch) = self.watch.take() {
            watch.end(&outcome);
        }
        if let Some(events) = &self.events {
            events.end(py, &outcome);
        }
        if let (Some(tracer), Some(span)) = (&self.tracer, self.otel.get(py)) {
            if self.is_recording {
                unless_failed(py, tracer.conclude(&span, &outcome));
            }
            if let Some(conventions) = self.conventions.get(py) {
                let is_good = outcome.error_type().is_none();
                unless_failed(py, conventions.call_method1(intern!(py, "conclude"), (&span, is_good)));
            }
            unless_failed(py, span.call_method0(intern!(py, "end")));
        }
        self.otel.clear(py);
        self.context.clear(py);
        self.conventions.clear(py);
        pending.restore();
    }

    /// Closes what the tool left open, inside the span, and ends it.
    pub(in crate::bindings::call) fn close<T>(
        &self,
        py: Python<'_>,
        close: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let closed = self.run(py, close);
        if let Err(error) = &closed {
            self.note(py, error);
        }
        self.end(py);
        closed
    }

    /// The objects held, for the collector.
    pub(in crate::bindings::call) fn objects(&self) -> [*mut PyObject; 5] {
        let desk = self.events.as_ref().map_or(ptr::null_mut(), Events::object);
        [self.otel.visited(), self.context.visited(), self.last.visited(), self.conventions.visited(), desk]
    }
}

/// A place for an object, if there is one.
fn slot(object: Option<Bound<'_, PyAny>>) -> Slot {
    object.map_or_else(Slot::empty, Slot::holding)
}

/// The result of a tracer's function, unless it fails: errors of tracing are unraisable, and never reach the call.
fn unless_failed<T>(py: Python<'_>, result: PyResult<T>) -> Option<T> {
    result.map_err(|error| error.write_unraisable(py, None)).ok()
}

impl State {
    /// The span of this call, if there is one that is not handed on.
    pub(in crate::bindings::call) fn span(&self) -> Option<SharedSpan> {
        self.cold.get().and_then(|cold| cold.span.borrow().clone())
    }

    /// Notes an exception that is about to become a response.
    pub(in crate::bindings::call) fn note(&self, py: Python<'_>, error: &PyErr) {
        if let Some(span) = self.span() {
            span.get(py).note(py, error);
        }
    }

    /// The first step of a call that may be observed; `None` if it is not, or if its span is open.
    #[cold]
    pub(in crate::bindings::call) fn start_in_span<'py>(&self, py: Python<'py>) -> Option<Step<'py>> {
        if self.span().is_some() || gate::is_idle(py) {
            return None;
        }
        attached(py, |py| {
            if !self.is_outermost(py) {
                return None;
            }
            let span = Span::open(py, self)?;
            self.cold().span.replace(Some(span.clone()));
            Some(self.step_inside(py, span.get(py), || self.step(py, PyNone::get(py).as_any())))
        })
    }

    /// A step of the call inside its span, which ends with the call.
    pub(in crate::bindings::call) fn step_inside<'py>(
        &self,
        py: Python<'py>,
        span: &Span,
        step: impl FnOnce() -> Step<'py>,
    ) -> Step<'py> {
        if span.is_over.get() {
            return step();
        }
        let step = span.run(py, step);
        match &step {
            Step::Suspend(_) => return step,
            // A layer that was closed gives `None`.
            Step::Chunk(response) if !response.is_none() => {
                span.last.set(response.clone());
                if let Some(events) = &span.events {
                    events.chunk(py, response);
                }
            }
            Step::Chunk(_) | Step::Value(_) | Step::End => {}
            Step::Raise(error) => {
                span.is_raised.set(true);
                span.note(py, error);
            }
        }
        if matches!(step, Step::End | Step::Raise(_)) || matches!(self.phase.get(), Phase::Done | Phase::Cancelled) {
            span.end(py);
        }
        step
    }

    /// The stream was dropped or is garbage: ends its span, and drops the tool inside it, so that what finalises the
    /// tool's generator still belongs to it.
    pub(crate) fn abandon(&self, py: Python<'_>) {
        let Some(span) = self.span().filter(|span| !span.get(py).is_over.get()) else { return };
        attached(py, |py| {
            let pending = Pending::set_aside(py);
            span.get(py).run(py, || self.finish(py));
            span.get(py).end(py);
            pending.restore();
        });
    }
}
