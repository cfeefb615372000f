//! A call in a worker thread: a function, or a generator whose chunks are buffered.
//!
//! The event loop's thread starts, polls, closes and abandons a [`Job`]; a worker runs its [`JobCore`]. They share
//! [`JobState`], which the GIL guards. [`Backpressure`] makes a generator wait until its reader has caught up.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::awaitable::{AbandonedEnd, JobEnd};
use super::limits::{MAX_THREADS, RunningJob};
use super::nesting;
use super::pool::{Hold, SubmitError, Work, Workers};
use super::waiter::Waiter;
use super::wakeup::LoopInbox;
use crate::bindings::call::python::interpreter::{self, Context, GilCell, Pending, Sent};
use crate::bindings::errors;
use crate::bindings::once::intern;
use crate::native::run::panic_message;
use crate::sync::lock;

/// The reader's handle of a call in a worker thread. Dropping it abandons the call.
pub(crate) struct Job(pub(super) Arc<JobCore>);

/// The result of polling a job.
pub(crate) enum JobStep {
    /// One item of a sync generator.
    Chunk(Py<PyAny>),
    /// A function's result, or `None`: a generator has ended, or there is nothing more to read.
    Done(Option<Py<PyAny>>),
    /// An exception of the call, of any class, `SystemExit` and `StopIteration` included. A coroutine must not raise a
    /// `StopIteration` as it is, because that counts as its return value.
    Raised(PyErr),
    /// A waiter of the running loop, marked as awaited, so that it can be yielded to the loop as it is.
    /// Poll again when it is done, however that came.
    Wait(Py<PyAny>),
}

/// A job as its reader and its worker share it.
pub(super) struct JobCore {
    workers: &'static Workers,
    /// The name of the tool.
    name: Arc<str>,
    /// The number of jobs whose threads wait for this one.
    depth: usize,
    inbox: Arc<LoopInbox>,
    /// Number of chunks that a generator may be ahead of its reader.
    limit: usize,
    state: GilCell<JobState>,
    backpressure: Backpressure,
    /// True when the reader has the outcome, so that nothing is left to abandon.
    is_read: AtomicBool,
}

#[derive(Default)]
struct JobState {
    /// Present until a worker starts it.
    call: Option<JobCall>,
    /// Present until the call has ended.
    on_abandon: Option<Py<PyAny>>,
    chunks: VecDeque<Py<PyAny>>,
    outcome: Option<JobOutcome>,
    /// The reader's waiter, until the loop is asked to wake it.
    waiter: Option<Py<Waiter>>,
    /// True while a worker iterates a generator.
    is_iterating: bool,
    /// True while that worker waits for its reader.
    is_held_up: bool,
    reader: ReaderState,
    /// Present while a worker runs it.
    running: Option<RunningJob>,
    /// Present until the call has ended, if a worker waits for it.
    hold: Option<Hold>,
}

/// The progress of the reader.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReaderState {
    #[default]
    Reading,
    /// It has the outcome.
    Finished,
    /// It needs no more chunks, and waits until the generator is closed.
    Closing,
    /// It has abandoned the job.
    Gone,
}

/// The call that a job makes.
struct JobCall {
    callable: Py<PyAny>,
    args: Py<PyTuple>,
    kwargs: Option<Py<PyDict>>,
    context: Context,
}

/// The end of a call.
enum JobOutcome {
    Value(Py<PyAny>),
    Ended,
    Raised(Py<PyAny>),
    Panicked(String),
    /// No thread could run it.
    Refused,
}

impl Job {
    /// Starts `callable(*args, **kwargs)` in a worker thread, in a copy of the caller's context. `name` is the name for reports.
    ///
    /// If the result is a generator, the same thread iterates it, at most `limit` chunks ahead of its reader.
    /// `on_abandon(False)` is called when the job is abandoned before it has ended, and `on_abandon(True)` when a generator
    /// is to be closed.
    pub(crate) fn start(
        py: Python<'_>,
        name: Arc<str>,
        callable: Bound<'_, PyAny>,
        args: Bound<'_, PyTuple>,
        kwargs: Option<Bound<'_, PyDict>>,
        limit: usize,
        on_abandon: Option<Py<PyAny>>,
    ) -> PyResult<Job> {
        let workers = Workers::current(py)?;
        let inbox = workers.inboxes.running(py, workers)?;
        let depth = nesting::depth()?;
        let call = JobCall {
            callable: callable.unbind(),
            args: args.unbind(),
            kwargs: kwargs.map(Bound::unbind),
            context: Context::copy(py)?,
        };
        // Before the job is in the queue, so that the next worker is looked for once.
        let hold = if depth > 0 { Hold::of_this_thread() } else { None };
        let core = Arc::new(JobCore {
            workers,
            name,
            depth,
            inbox,
            limit: limit.max(1),
            state: GilCell::new(JobState { call: Some(call), on_abandon, hold, ..JobState::default() }),
            backpressure: Backpressure::default(),
            is_read: AtomicBool::new(false),
        });
        match workers.pool.submit(workers, core.clone()) {
            Ok(()) => Ok(Job(core)),
            Err(SubmitError::Closed) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: the interpreter is shutting down"))
            }
            Err(SubmitError::NoThread) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: no thread could be started"))
            }
        }
    }

    /// Takes the next chunk or the outcome, or hands out a waiter.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<JobStep> {
        self.0.poll(py)
    }

    /// Closes a generator, and returns an awaitable that is done when its `finally` blocks have run in their thread. It
    /// raises the exceptions of closing, as `generator.close()` does. Dropping it abandons the job, and so does cancelling
    /// the task that awaits it; the generator is closed all the same.
    ///
    /// `None` if there is nothing to wait for: the job has ended, has not started (and never will), or is a function, which
    /// cannot be interrupted. In each of these cases it is abandoned.
    pub(crate) fn close<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.0.workers.is_current() && self.0.leave(py, ReaderState::Closing) == ReaderState::Closing {
            return Ok(Some(Bound::new(py, JobEnd(self.0.clone()))?.into_any()));
        }
        Ok(None)
    }

    /// Returns an awaitable that is done when the generator of an abandoned job has been closed in its thread; `None` if it
    /// is closed, or if there is no generator.
    pub(crate) fn closed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_iterating(py) {
            return Ok(Some(Bound::new(py, AbandonedEnd(self.0.clone()))?.into_any()));
        }
        Ok(None)
    }

    /// True if there is a generator that its thread has not closed.
    pub(crate) fn is_iterating(&self, py: Python<'_>) -> bool {
        self.0.workers.is_current() && self.0.is_iterating(py)
    }

    /// Abandons the call: its results are dropped.
    ///
    /// A generator is closed in its own thread, when it next yields, or at once if it waits for its reader or has not
    /// started. A call that has not started never starts. A job that is being [closed](Self::close) is left to the awaitable
    /// of that.
    pub(crate) fn abandon(&self) {
        if !self.0.is_read.load(Ordering::Relaxed) && self.0.workers.is_current() {
            Python::try_attach(|py| {
                if !self.0.is_closing(py) {
                    self.0.leave(py, ReaderState::Gone);
                }
            });
        }
    }

    /// Visits the Python objects that are kept for the reader, or for a call that has not started, until a visit returns
    /// a number that is not zero.
    ///
    /// A handle that only such objects refer to is never read again. Objects that a running worker holds are reachable, and
    /// so they are not visited.
    pub(crate) fn visit(&self, py: Python<'_>, visit: &mut dyn FnMut(*mut ffi::PyObject) -> c_int) -> c_int {
        if !self.0.workers.is_current() {
            return 0;
        }
        let visited = self.0.state.with(py, |state| {
            state.visit(&mut |object| match visit(object.as_ptr()) {
                0 => Ok(()),
                stop => Err(stop),
            })
        });
        visited.err().unwrap_or(0)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl JobState {
    /// Visits the objects that only the reader can reach, until a visit fails.
    fn visit<E>(&self, visit: &mut dyn FnMut(&Py<PyAny>) -> Result<(), E>) -> Result<(), E> {
        if let Some(call) = &self.call {
            visit(&call.callable)?;
            visit(call.args.as_any())?;
            visit(call.context.object())?;
            call.kwargs.iter().try_for_each(|kwargs| visit(kwargs.as_any()))?;
        }
        if let Some(JobOutcome::Value(object) | JobOutcome::Raised(object)) = &self.outcome {
            visit(object)?;
        }
        self.waiter.iter().try_for_each(|waiter| visit(waiter.as_any()))?;
        self.chunks.iter().chain(&self.on_abandon).try_for_each(visit)
    }
}

/// The reader's side.
impl JobCore {
    pub(super) fn poll(&self, py: Python<'_>) -> PyResult<JobStep> {
        if !self.workers.is_current() {
            return Ok(JobStep::Raised(PyRuntimeError::new_err(
                "the process was forked while a tool was running in a thread",
            )));
        }
        if let Some(step) = self.next(py) {
            return Ok(step);
        }
        let waiter = self.pending_waiter(py)?;
        let old = self.state.with(py, |state| state.waiter.replace(waiter.clone().unbind()));
        drop(old);
        // A worker that ran while the waiter was made had none to wake.
        if let Some(step) = self.next(py) {
            return Ok(step);
        }
        waiter.get().mark_awaited();
        Ok(JobStep::Wait(waiter.into_any().unbind()))
    }

    /// The next thing for the reader, if there is one.
    fn next(&self, py: Python<'_>) -> Option<JobStep> {
        let outcome =
            self.state.with(py, |state| {
                if let Some(chunk) = state.chunks.pop_front() {
                    if state.is_held_up && state.chunks.len() <= self.limit / 2 {
                        state.is_held_up = false;
                        self.backpressure.release();
                    }
                    return Err(Some(JobStep::Chunk(chunk)));
                }
                match state.outcome.take() {
                    None => Err(matches!(state.reader, ReaderState::Finished | ReaderState::Gone)
                        .then_some(JobStep::Done(None))),
                    Some(outcome) => {
                        state.reader = ReaderState::Finished;
                        self.is_read.store(true, Ordering::Relaxed);
                        Ok(outcome)
                    }
                }
            });
        match outcome {
            Ok(outcome) => Some(outcome.into_step(py)),
            Err(step) => step,
        }
    }

    /// A waiter until the worker has closed the generator of an abandoned job; `None` if it has.
    pub(super) fn poll_closed(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if !self.workers.is_current() || !self.is_iterating(py) {
            return Ok(None);
        }
        let waiter = self.pending_waiter(py)?;
        // A worker that ran while the waiter was made had none to wake.
        let (old, is_iterating) =
            self.state.with(py, |state| (state.waiter.replace(waiter.clone().unbind()), state.is_iterating));
        drop(old);
        if !is_iterating {
            return Ok(None);
        }
        waiter.get().mark_awaited();
        Ok(Some(waiter.into_any().unbind()))
    }

    /// The waiter that is handed out already, or a new one.
    fn pending_waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Waiter>> {
        if let Some(waiter) = self.state.with(py, |state| state.waiter.as_ref().map(|waiter| waiter.clone_ref(py)))
            && waiter.get().is_pending(py)
        {
            return Ok(waiter.into_bound(py));
        }
        self.inbox.waiter(py)
    }

    /// Stops reading, and drops the unread results. `ReaderState::Closing` is granted only while a generator runs.
    fn leave(&self, py: Python<'_>, wanted: ReaderState) -> ReaderState {
        let leftovers = self.state.with(py, |state| {
            if !matches!(state.reader, ReaderState::Reading | ReaderState::Closing) {
                return None; // a reader that has the outcome leaves nothing behind
            }
            state.reader = if state.is_iterating { wanted } else { ReaderState::Gone };
            if std::mem::take(&mut state.is_held_up) {
                self.backpressure.release();
            }
            if state.reader == ReaderState::Gone
                && let Some(running) = state.running
            {
                self.workers.pool.abandon(self.workers, running);
            }
            let results =
                (std::mem::take(&mut state.chunks), state.outcome.take(), state.waiter.take(), state.hold.take());
            let on_abandon = if state.reader == ReaderState::Closing {
                state.on_abandon.as_ref().map(|it| it.clone_ref(py)) // the reader may give up waiting for the end
            } else {
                state.on_abandon.take()
            };
            Some((state.reader, (state.call.take(), results), on_abandon))
        });
        let Some((reader, leftovers, on_abandon)) = leftovers else { return ReaderState::Gone };
        // This may run in a destructor, while an exception of other code is set.
        let pending = Pending::set_aside(py);
        drop(leftovers);
        if let Some(on_abandon) = on_abandon
            && let Err(error) = on_abandon.call1(py, (reader == ReaderState::Closing,))
        {
            error.write_unraisable(py, Some(on_abandon.bind(py)));
        }
        pending.restore();
        reader
    }

    /// Abandons the job, unless its outcome was read.
    pub(super) fn abandon_unread(&self, py: Python<'_>) {
        if !self.is_read.load(Ordering::Relaxed) && self.workers.is_current() {
            self.leave(py, ReaderState::Gone);
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.workers.is_current() {
            return Ok(());
        }
        self.state.visit(visit, |state| state.visit(&mut |object| visit.call(object))).unwrap_or(Ok(()))
    }

    fn is_iterating(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.is_iterating)
    }

    fn is_closing(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.reader == ReaderState::Closing)
    }
}

/// The worker's side.
impl Work for JobCore {
    fn run(self: Arc<Self>, py: Python<'_>, running: RunningJob) {
        let call = self.state.with(py, |state| {
            state.running = state.call.as_ref().map(|_| running);
            state.call.take()
        });
        let Some(call) = call else { return };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.produce(py, call)))
            .unwrap_or_else(|panic| JobOutcome::Panicked(panic_message(&*panic)));
        if self.workers.is_current() {
            self.finish(py, outcome);
        }
    }

    fn refuse(self: Arc<Self>, py: Python<'_>) {
        let call = self.state.with(py, |state| state.call.take());
        if call.is_some() {
            self.finish(py, JobOutcome::Refused);
        }
    }

    fn abandon(&self, py: Python<'_>) {
        self.leave(py, ReaderState::Gone);
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl JobCore {
    /// Makes the call, and iterates the generator that it may return.
    fn produce(&self, py: Python<'_>, call: JobCall) -> JobOutcome {
        let JobCall { callable, args, kwargs, context } = call;
        let entered = match context.enter(py) {
            Ok(entered) => entered,
            Err(error) => return JobOutcome::Raised(error.into_value(py).into_any()),
        };
        let result = interpreter::call(py, &callable, &args, kwargs.as_ref());
        interpreter::release(py, callable);
        interpreter::release(py, args);
        if let Some(kwargs) = kwargs {
            interpreter::release(py, kwargs);
        }
        let outcome = match result {
            Err(exception) => JobOutcome::Raised(exception),
            Ok(value) if value.bind(py).get_type().is(&self.workers.python.generator) => {
                self.state.with(py, |state| state.is_iterating = true);
                let outcome = self.iterate(py, &value);
                interpreter::release(py, value);
                outcome
            }
            Ok(value) => JobOutcome::Value(value),
        };
        drop(entered);
        interpreter::release(py, context.into_object());
        outcome
    }

    fn iterate(&self, py: Python<'_>, generator: &Py<PyAny>) -> JobOutcome {
        loop {
            if self.state.with(py, |state| state.reader != ReaderState::Reading) {
                return self.close_generator(py, generator);
            }
            match interpreter::send(py, generator) {
                Sent::Yielded(chunk) => self.offer(py, chunk),
                Sent::Returned => return JobOutcome::Ended,
                Sent::Raised(exception) => return self.failed(py, exception),
            }
        }
    }

    /// The outcome of a generator that raised. If it was being closed, it has ended, which is all that was asked for.
    fn failed(&self, py: Python<'_>, exception: Py<PyAny>) -> JobOutcome {
        if self.is_closing(py) {
            interpreter::release(py, exception);
            return JobOutcome::Ended;
        }
        JobOutcome::Raised(exception)
    }

    /// Closes a generator that is read no further. Its exception goes to the awaitable of [`Job::close`], if there is one.
    fn close_generator(&self, py: Python<'_>, generator: &Py<PyAny>) -> JobOutcome {
        match interpreter::call_method(py, generator, intern!(py, "close"), None) {
            Ok(nothing) => interpreter::release(py, nothing),
            Err(exception) if self.is_closing(py) => return JobOutcome::Raised(exception),
            Err(exception) => interpreter::report(py, exception, generator),
        }
        JobOutcome::Ended
    }

    /// Puts a chunk into the buffer, and waits for the reader if that filled it.
    fn offer(&self, py: Python<'_>, chunk: Py<PyAny>) {
        let mut chunk = Some(chunk);
        let (waiter, is_full) = self.state.with(py, |state| {
            if state.reader != ReaderState::Reading {
                return (None, false);
            }
            state.chunks.extend(chunk.take());
            state.is_held_up = state.chunks.len() >= self.limit;
            (state.waiter.take(), state.is_held_up)
        });
        if let Some(unwanted) = chunk {
            interpreter::release(py, unwanted);
        }
        if let Some(waiter) = waiter {
            self.inbox.post(py, waiter);
        }
        if is_full {
            py.detach(|| {
                let _held = Hold::of_this_thread();
                self.backpressure.wait();
            });
        }
    }

    fn finish(&self, py: Python<'_>, outcome: JobOutcome) {
        let mut outcome = Some(outcome);
        let (waiter, on_abandon, _released) = self.state.with(py, |state| {
            state.is_iterating = false;
            state.running = None;
            if state.reader != ReaderState::Gone {
                state.outcome = outcome.take();
            }
            (state.waiter.take(), state.on_abandon.take(), state.hold.take())
        });
        if let Some(waiter) = waiter {
            self.inbox.post(py, waiter);
        }
        if let Some(JobOutcome::Value(object) | JobOutcome::Raised(object)) = outcome {
            interpreter::release(py, object);
        }
        if let Some(object) = on_abandon {
            interpreter::release(py, object);
        }
    }
}

impl JobOutcome {
    fn into_step(self, py: Python<'_>) -> JobStep {
        match self {
            JobOutcome::Value(value) => JobStep::Done(Some(value)),
            JobOutcome::Ended => JobStep::Done(None),
            JobOutcome::Raised(exception) => JobStep::Raised(PyErr::from_value(exception.into_bound(py))),
            JobOutcome::Panicked(message) => {
                JobStep::Raised(errors::internal_error(&format!("a worker thread panicked: {message}")))
            }
            JobOutcome::Refused => JobStep::Raised(errors::busy(MAX_THREADS)),
        }
    }
}

/// Makes the thread of a generator wait until half of the buffer is free, so that it is not woken for every single chunk.
/// Released once for each wait, before it or during it.
#[derive(Default)]
struct Backpressure {
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Backpressure {
    fn release(&self) {
        *lock(&self.is_released) = true;
        self.released.notify_one();
    }

    /// Waits for the release; the thread does not hold the GIL.
    fn wait(&self) {
        let mut is_released = lock(&self.is_released);
        while !std::mem::take(&mut *is_released) {
            is_released = self.released.wait(is_released).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
