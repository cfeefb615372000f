//! A step of a stream: from the moment the event loop resumes it to what its consumer gets. The first one takes the call through
//! its [`stages`](super::stages).

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyNone;

use super::cold::Cold;
use super::context::report_first;
use super::observe::gate;
use super::python::{attached, stack};
use super::run::Given;
use super::state::{Early, Phase, Resumed, State, Step};
use super::task;
use crate::bindings::response;

impl State {
    /// Asks for the next response: `__anext__`. Errors, also the end of the stream, are raised when the step is awaited;
    /// false while another step is under way.
    #[inline]
    pub(crate) fn request_step(&self) -> bool {
        if self.single || self.requested.replace(true) {
            return false;
        }
        if self.phase.get() == Phase::Fresh {
            self.phase.set(Phase::Ready);
        }
        true
    }

    /// True for the first `await` of a stream, which gives the stream itself and runs nothing.
    #[inline]
    pub(crate) fn awaited_first(&self) -> bool {
        let is_fresh = self.phase.get() == Phase::Fresh;
        if is_fresh {
            self.phase.set(Phase::Ready);
            self.awaiting.set(false);
        }
        is_fresh
    }

    /// True for a step after the last response, which ends the iteration.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        let is_over = self.phase.get() == Phase::Done && !self.single && self.cold.get().is_none();
        let is_stopped = is_over && !self.running.get() && self.requested.replace(false);
        if is_stopped {
            self.awaiting.set(false);
        }
        is_stopped
    }

    /// Resumes the call until it yields a response or suspends.
    #[inline(always)]
    pub(crate) fn send<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Resumed<'py> {
        if self.running.get() {
            return Resumed::Raise(PyValueError::new_err("the tool call is already executing").into());
        }
        if !self.requested.get() {
            self.awaiting.set(false);
            return Resumed::Raise(PyRuntimeError::new_err("cannot reuse already awaited tool call").into());
        }
        let step = if stack::has_room() { self.guarded_step(py, value) } else { self.end_too_deep(py) };
        self.conclude(py, step)
    }

    /// Ends a call that is nested too deeply in others, which get the exception.
    #[cold]
    fn end_too_deep<'py>(&self, py: Python<'py>) -> Step<'py> {
        attached(py, |py| {
            self.finish(py);
            Step::raise(stack::too_deep())
        })
    }

    #[inline(always)]
    fn guarded_step<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Step<'py> {
        let _running = self.enter();
        let step = self.step(py, value);
        self.completed(py, step)
    }

    /// Resumes the call until it has a response or has to wait.
    #[inline]
    pub(super) fn step<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Step<'py> {
        if let Some(cold) = self.cold.get()
            && let Some(step) = self.step_cold(py, cold, value)
        {
            return step;
        }
        match self.phase.get() {
            Phase::Ready => {
                if !gate::is_quiet(py)
                    && let Some(step) = self.start_in_span(py)
                {
                    return step;
                }
                self.first_step(py).unwrap_or_else(|early| self.end_early(py, early))
            }
            Phase::Admitted => {
                let given = self.run_admitted(py);
                self.advance(py, given)
            }
            Phase::Approval => self.after_approval(py, value).unwrap_or_else(|early| self.end_early(py, early)),
            Phase::Coroutine | Phase::AsyncGenerator | Phase::Generator | Phase::Job => {
                let given = self.resume_tool(py, value);
                self.advance(py, given)
            }
            Phase::Postprocess => self.step_postprocess(py, value),
            Phase::Closing => self.step_closing(py, value),
            Phase::Cancelled => self.raise_cancellation(py),
            Phase::Fresh | Phase::Done => Step::End,
        }
    }

    /// A step whose approver or store may have answered.
    #[cold]
    fn after_approval<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Result<Step<'py>, Early<'py>> {
        let permitted = self.await_answer(py, value)?;
        self.proceed(py, permitted)
    }

    /// A step as few calls take it: inside a span, or asked for by `asend` or `athrow`. `None` if this one is like the
    /// others.
    #[cold]
    fn step_cold<'py>(&self, py: Python<'py>, cold: &Cold, value: &Bound<'py, PyAny>) -> Option<Step<'py>> {
        if !cold.keeping.is_empty() {
            return Some(attached(py, |py| self.step_keeping(py, cold, value)));
        }
        if self.phase.get() == Phase::Ready
            && let Some(dialect) = cold.dialect.take()
            && let Err(early) = attached(py, |py| self.translate(py, dialect))
        {
            return Some(self.end_early(py, early));
        }
        if let Some(span) = self.span().filter(|span| span.get(py).is_to_enter()) {
            return Some(attached(py, |py| self.step_inside(py, span.get(py), || self.step(py, value))));
        }
        if !cold.held.is_empty()
            && let Some(step) = self.step_held(py, cold)
        {
            return Some(step);
        }
        if let Some(thrown) = cold.thrown.take(py) {
            return Some(attached(py, |py| self.throw_into(py, PyErr::from_value(thrown))));
        }
        let sent = cold.sent.take(py)?;
        Some(self.step(py, &sent))
    }

    /// A step as the consumer gets it: counted, within its budget, with the repairs, in the class that the toolkit delivers.
    #[inline(always)]
    pub(super) fn completed<'py>(&self, py: Python<'py>, step: Step<'py>) -> Step<'py> {
        match self.cold.get() {
            Some(cold) => {
                let is_counted = cold.attempt.borrow().is_some();
                let step = if is_counted { self.count_result(py, cold, step) } else { step };
                let step = if cold.budgets.is_empty() { step } else { self.within_budget(py, cold, step) };
                self.step_in_class(py, self.with_repairs(py, cold, step))
            }
            None => step,
        }
    }

    /// Turns the outcome of a step into the result of the stream's coroutine.
    #[inline(always)]
    pub(super) fn conclude<'py>(&self, py: Python<'py>, mut step: Step<'py>) -> Resumed<'py> {
        loop {
            match step {
                Step::Suspend(future) => {
                    if !self.suspended.get() {
                        self.note_suspension(py);
                    }
                    return Resumed::Yield(future);
                }
                Step::Chunk(response)
                    if self.single && (self.phase.get() != Phase::Done || self.cold.get().is_some()) =>
                {
                    self.last.set(response);
                    step = self.guarded_step(py, PyNone::get(py).as_any());
                }
                Step::Chunk(response) => {
                    self.step_done(py);
                    return if self.bare { self.value_of(py, &response) } else { Resumed::Return(response) };
                }
                Step::Value(value) => {
                    self.step_done(py);
                    return Resumed::Return(value);
                }
                Step::End => {
                    self.step_done(py);
                    return match self.last.take(py) {
                        Some(response) if self.bare => self.value_of(py, &response),
                        Some(response) if self.single => Resumed::Return(response),
                        _ => Resumed::Stop,
                    };
                }
                Step::Raise(error) => {
                    self.step_done(py);
                    return Resumed::Raise(error);
                }
            }
        }
    }

    #[inline(always)]
    fn step_done(&self, py: Python<'_>) {
        self.requested.set(false);
        self.awaiting.set(false);
        if self.suspended.replace(false)
            && let Some(cold) = self.cold.get()
        {
            cold.deadline.pause(py);
        }
    }

    /// The call gives way to the event loop for the first time in this step.
    fn note_suspension(&self, py: Python<'_>) {
        // The time that a person takes to answer is not the tool's, nor that of the store that keeps the whole text. The time that
        // a decision takes to be stored is: it must not keep the call from ending.
        let is_tool = match self.phase.get() {
            Phase::Approval => self.is_writing(),
            phase => phase != Phase::Done,
        };
        let timeout = self.tool.get(py).filter(|_| is_tool).and_then(|tool| tool.get().timeout);
        if timeout.is_none() && self.phase.get() == Phase::Job {
            return; // only a request can end this wait, so that requests need not be counted beforehand
        }
        self.suspended.set(true);
        if self.cancelling.get().is_some() && timeout.is_none() {
            return;
        }
        attached(py, |py| {
            if self.cancelling.get().is_none() {
                self.cancelling.set(task::cancelled_before(py));
            }
            if let Some(seconds) = timeout
                && let Err(error) = self.cold().deadline.resume(py, seconds)
            {
                // Without asyncio's timers the call goes on without a deadline, and reports it.
                error.write_unraisable(py, None);
            }
        });
    }

    /// Turns what the tool gave into the step that the consumer sees. A result that has to be run first is run.
    #[inline]
    pub(super) fn advance<'py>(&self, py: Python<'py>, mut given: Given<'py>) -> Step<'py> {
        loop {
            if let Some(cold) = self.cold.get()
                && !cold.port.is_empty()
            {
                // What the tool reported before is delivered first.
                given = match report_first(py, cold, given) {
                    Ok(report) => return report,
                    Err(given) => given,
                };
            }
            given = match given {
                Given::Wait(future) => return Step::Suspend(future),
                Given::Result(result) => match self.respond(py, result) {
                    Ok(step) => return step,
                    Err(runnable) => self.run_result(py, runnable),
                },
                Given::Item(item) => match self.respond_item(py, item) {
                    Some(step) => return step,
                    None => self.resume_tool(py, PyNone::get(py).as_any()),
                },
                Given::End => return self.end_of_stream(py),
                Given::Error(error) => return self.fail(py, *error),
            };
        }
    }

    /// Ends the call before its tool has given anything.
    #[cold]
    pub(super) fn end_early<'py>(&self, py: Python<'py>, early: Early<'py>) -> Step<'py> {
        attached(py, |py| {
            let response = match early {
                Early::Step(step) => return step,
                Early::Wait => return self.step(py, PyNone::get(py).as_any()),
                Early::Reply(answer) => {
                    self.open_budget_without_tool(py);
                    response::answer(py, &answer).and_then(|response| self.in_class(py, response))
                }
                Early::Raise(error) => Err(*error),
            };
            self.finish(py);
            response.map_or_else(Step::raise, Step::Chunk)
        })
    }

    /// Ends the call: drops everything but the response that `single` waits for.
    #[inline]
    pub(super) fn finish(&self, py: Python<'_>) {
        self.phase.set(Phase::Done);
        self.awaited.clear(py);
        self.inner.clear(py);
        self.request.clear(py);
        self.arguments.clear(py);
        self.whole.clear(py);
        if !self.single {
            self.last.clear(py);
        }
        if self.is_layer.get() {
            self.release_opened(py);
        }
        if let Some(cold) = self.cold.get() {
            release(py, cold);
        }
    }
}

/// Gives up the work under way. Not part of `finish`, which is inlined into the path of calls that have no such state.
#[cold]
fn release(py: Python<'_>, cold: &Cold) {
    if let Some(job) = cold.job.get() {
        job.abandon(); // nothing, if its outcome was read
    }
    cold.release(py);
}
