//! One piece of blocking work: a call in a worker thread, and what it has produced so far.
//!
//! The loop's thread starts, polls, closes and abandons a [`Job`]; a worker runs its [`Inner`]. They meet in `State`,
//! which the GIL guards. [`Backpressure`] holds a generator up until its reader has caught up; [`AwaitableJob`] and
//! [`JobEnd`] are what Python code awaits.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pyo3::exceptions::{PyGeneratorExit, PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::pool::{Refused, Work};
use super::waiter::Waiter;
use super::wakeup::LoopInbox;
use super::{Shared, lock};
use crate::bindings::call::python::interpreter::{self, Context, GilCell, Pending, Sent};

/// A piece of blocking work under way in a worker thread: one function call, or a generator's chunks.
///
/// Dropping it abandons the work.
pub(crate) struct Job(Arc<Inner>);

/// The next thing a job has for its reader.
pub(crate) enum Step {
    /// One item of a sync generator.
    Chunk(Py<PyAny>),
    /// A function's result, or `None`: a generator has ended, or there is nothing more to read.
    Done(Option<Py<PyAny>>),
    /// The exception that the work raised, of any class: `SystemExit` and `StopIteration` are among them. Raised again
    /// as it is from a step of a coroutine, a `StopIteration` would be taken for a return value.
    Raised(PyErr),
    /// A waiter of the running loop, marked as awaited, so that it can be yielded to the loop as it is.
    /// Poll again when it is done, however it got done.
    Wait(Py<PyAny>),
}

struct Inner {
    shared: &'static Shared,
    inbox: Arc<LoopInbox>,
    /// How many chunks a generator may be ahead of its reader.
    limit: usize,
    state: GilCell<State>,
    backpressure: Backpressure,
    /// True when the reader has got the outcome, so that nothing is left to abandon.
    is_read: AtomicBool,
}

#[derive(Default)]
struct State {
    /// There until a worker begins.
    call: Option<Call>,
    /// There until the work has ended.
    on_abandon: Option<Py<PyAny>>,
    chunks: VecDeque<Py<PyAny>>,
    outcome: Option<Outcome>,
    /// What the reader waits on, until the loop is asked to wake it.
    waiter: Option<Py<Waiter>>,
    /// True while a worker iterates a generator.
    is_iterating: bool,
    /// True while that worker waits for its reader.
    is_held_up: bool,
    reader: Reader,
}

/// The interest that the reader still has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reader {
    #[default]
    Reads,
    /// It has got the outcome.
    Read,
    /// It wants no more chunks, and waits until the generator is closed.
    Closes,
    /// It has given the job up.
    Gone,
}

struct Call {
    callable: Py<PyAny>,
    args: Py<PyTuple>,
    kwargs: Option<Py<PyDict>>,
    context: Context,
}

enum Outcome {
    Value(Py<PyAny>),
    Ended,
    Raised(Py<PyAny>),
    Panicked(String),
}

impl Job {
    /// Starts `callable(*args, **kwargs)` in a worker thread, in a copy of the caller's context.
    ///
    /// If the result is a generator, the same thread iterates it, at most `limit` chunks ahead of its reader.
    /// `on_abandon()` is called when the job is given up before it has ended.
    pub(crate) fn start(
        py: Python<'_>,
        callable: Bound<'_, PyAny>,
        args: Bound<'_, PyTuple>,
        kwargs: Option<Bound<'_, PyDict>>,
        limit: usize,
        on_abandon: Option<Py<PyAny>>,
    ) -> PyResult<Job> {
        let shared = Shared::current(py)?;
        let inbox = shared.inboxes.running(py, shared)?;
        let call = Call {
            callable: callable.unbind(),
            args: args.unbind(),
            kwargs: kwargs.map(Bound::unbind),
            context: Context::copy(py)?,
        };
        let inner = Arc::new(Inner {
            shared,
            inbox,
            limit: limit.max(1),
            state: GilCell::new(State { call: Some(call), on_abandon, ..State::default() }),
            backpressure: Backpressure::default(),
            is_read: AtomicBool::new(false),
        });
        match shared.pool.submit(shared, inner.clone()) {
            Ok(()) => Ok(Job(inner)),
            Err(Refused::Closed) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: the interpreter is shutting down"))
            }
            Err(Refused::NoThread) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: no thread could be started"))
            }
        }
    }

    /// Takes the next chunk or the outcome, or hands out a waiter.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<Step> {
        self.0.poll(py)
    }

    /// Closes a generator, and gives an awaitable that is done when its `finally` blocks have run in their thread. It
    /// raises what closing raised, as `generator.close()` does. Dropping it abandons the job; so does cancelling the task
    /// that awaits it, without a word to the generator, which is closed all the same.
    ///
    /// `None` if there is nothing to wait for: the job has ended, has not begun (and never will), or is a function, which
    /// cannot be interrupted. In each of these cases it is abandoned.
    pub(crate) fn close<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.0.shared.is_current() && self.0.leave(py, Reader::Closes) == Reader::Closes {
            return Ok(Some(Bound::new(py, JobEnd(self.0.clone()))?.into_any()));
        }
        Ok(None)
    }

    /// Gives the work up.
    ///
    /// What it still produces is dropped. A generator is closed in its own thread, as soon as it next yields, or at
    /// once when it waits for its reader or has not started. A job that has not begun never begins. A job that is
    /// being [closed](Self::close) is left to the one who awaits that.
    pub(crate) fn abandon(&self) {
        if !self.0.is_read.load(Ordering::Relaxed) && self.0.shared.is_current() {
            Python::try_attach(|py| {
                if !self.0.is_closing(py) {
                    self.0.leave(py, Reader::Gone);
                }
            });
        }
    }

    /// Visits the Python objects that are kept for the reader, or for a call that has not begun, until a visit returns
    /// a number that is not zero.
    ///
    /// When nothing but such objects leads to this handle, it will never be read again. What a worker holds while it
    /// runs is not visited: that is reachable.
    pub(crate) fn visit(&self, py: Python<'_>, visit: &mut dyn FnMut(*mut ffi::PyObject) -> c_int) -> c_int {
        if !self.0.shared.is_current() {
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

impl State {
    /// Visits the objects that only the reader can reach, until a visit fails.
    fn visit<E>(&self, visit: &mut dyn FnMut(&Py<PyAny>) -> Result<(), E>) -> Result<(), E> {
        if let Some(call) = &self.call {
            visit(&call.callable)?;
            visit(call.args.as_any())?;
            visit(call.context.object())?;
            call.kwargs.iter().try_for_each(|kwargs| visit(kwargs.as_any()))?;
        }
        if let Some(Outcome::Value(object) | Outcome::Raised(object)) = &self.outcome {
            visit(object)?;
        }
        self.waiter.iter().try_for_each(|waiter| visit(waiter.as_any()))?;
        self.chunks.iter().chain(&self.on_abandon).try_for_each(visit)
    }
}

/// The reader's side.
impl Inner {
    fn poll(&self, py: Python<'_>) -> PyResult<Step> {
        if !self.shared.is_current() {
            return Ok(Step::Raised(PyRuntimeError::new_err(
                "the process was forked while a tool was running in a thread",
            )));
        }
        if let Some(step) = self.next(py) {
            return Ok(step);
        }
        let waiter = self.pending_waiter(py)?;
        let old = self.state.with(py, |state| state.waiter.replace(waiter.clone().unbind()));
        drop(old);
        // Making the waiter may have let a worker in, which then found none to wake.
        if let Some(step) = self.next(py) {
            return Ok(step);
        }
        waiter.get().mark_awaited();
        Ok(Step::Wait(waiter.into_any().unbind()))
    }

    /// The next thing for the reader, if there is one.
    fn next(&self, py: Python<'_>) -> Option<Step> {
        let outcome = self.state.with(py, |state| {
            if let Some(chunk) = state.chunks.pop_front() {
                if state.is_held_up && state.chunks.len() <= self.limit / 2 {
                    state.is_held_up = false;
                    self.backpressure.release();
                }
                return Err(Some(Step::Chunk(chunk)));
            }
            match state.outcome.take() {
                None => Err(matches!(state.reader, Reader::Read | Reader::Gone).then_some(Step::Done(None))),
                Some(outcome) => {
                    state.reader = Reader::Read;
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

    /// The waiter that is handed out already, or a new one.
    fn pending_waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Waiter>> {
        if let Some(waiter) = self.state.with(py, |state| state.waiter.as_ref().map(|waiter| waiter.clone_ref(py)))
            && waiter.get().is_pending(py)
        {
            return Ok(waiter.into_bound(py));
        }
        self.inbox.waiter(py)
    }

    /// Stops reading, and drops what is left to read. `Reader::Closes` is granted only while a generator is under way.
    fn leave(&self, py: Python<'_>, wanted: Reader) -> Reader {
        let leftovers = self.state.with(py, |state| {
            if !matches!(state.reader, Reader::Reads | Reader::Closes) {
                return None; // nothing is left to a reader that has got the outcome
            }
            state.reader = if state.is_iterating { wanted } else { Reader::Gone };
            if std::mem::take(&mut state.is_held_up) {
                self.backpressure.release();
            }
            let results = (std::mem::take(&mut state.chunks), state.outcome.take(), state.waiter.take());
            Some((state.reader, (state.call.take(), results), state.on_abandon.take()))
        });
        let Some((reader, leftovers, on_abandon)) = leftovers else { return Reader::Gone };
        // This may be part of a destructor, while an exception of other code is set.
        let pending = Pending::set_aside(py);
        drop(leftovers);
        if let Some(on_abandon) = on_abandon
            && let Err(error) = on_abandon.call0(py)
        {
            error.write_unraisable(py, Some(on_abandon.bind(py)));
        }
        pending.restore();
        reader
    }

    fn is_closing(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.reader == Reader::Closes)
    }
}

/// The worker's side.
impl Work for Inner {
    fn run(self: Arc<Self>, py: Python<'_>) {
        let Some(call) = self.state.with(py, |state| state.call.take()) else {
            return;
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.produce(py, call)))
            .unwrap_or_else(|panic| Outcome::Panicked(panic_message(&*panic)));
        if self.shared.is_current() {
            self.finish(py, outcome);
        }
    }

    fn abandon(&self, py: Python<'_>) {
        self.leave(py, Reader::Gone);
    }
}

impl Inner {
    /// Makes the call, and all of a generator's steps.
    fn produce(&self, py: Python<'_>, call: Call) -> Outcome {
        let Call { callable, args, kwargs, context } = call;
        let entered = match context.enter(py) {
            Ok(entered) => entered,
            Err(error) => return Outcome::Raised(error.into_value(py).into_any()),
        };
        let result = interpreter::call(py, &callable, &args, kwargs.as_ref());
        interpreter::release(py, callable);
        interpreter::release(py, args);
        if let Some(kwargs) = kwargs {
            interpreter::release(py, kwargs);
        }
        let outcome = match result {
            Err(exception) => Outcome::Raised(exception),
            Ok(value) if value.bind(py).get_type().is(&self.shared.names.generator) => {
                self.state.with(py, |state| state.is_iterating = true);
                let outcome = self.iterate(py, &value);
                interpreter::release(py, value);
                outcome
            }
            Ok(value) => Outcome::Value(value),
        };
        drop(entered);
        interpreter::release(py, context.into_object());
        outcome
    }

    fn iterate(&self, py: Python<'_>, generator: &Py<PyAny>) -> Outcome {
        loop {
            if self.state.with(py, |state| state.reader != Reader::Reads) {
                return self.close_generator(py, generator);
            }
            match interpreter::send(py, generator) {
                Sent::Yielded(chunk) => self.offer(py, chunk),
                Sent::Returned => return Outcome::Ended,
                Sent::Raised(exception) => return self.failed(py, exception),
            }
        }
    }

    /// A generator that raised before it could be closed has ended as well; the one who closes it asked for no more.
    fn failed(&self, py: Python<'_>, exception: Py<PyAny>) -> Outcome {
        if self.is_closing(py) {
            interpreter::release(py, exception);
            return Outcome::Ended;
        }
        Outcome::Raised(exception)
    }

    /// Closes a generator that is read no further; what that raises goes to the one who waits for it, if there is one.
    fn close_generator(&self, py: Python<'_>, generator: &Py<PyAny>) -> Outcome {
        match interpreter::call_method(py, generator, intern!(py, "close"), None) {
            Ok(nothing) => interpreter::release(py, nothing),
            Err(exception) if self.is_closing(py) => return Outcome::Raised(exception),
            Err(exception) => interpreter::report(py, exception, generator),
        }
        Outcome::Ended
    }

    /// Puts a chunk into the buffer, and waits for the reader if that filled it.
    fn offer(&self, py: Python<'_>, chunk: Py<PyAny>) {
        let mut chunk = Some(chunk);
        let (waiter, is_full) = self.state.with(py, |state| {
            if state.reader != Reader::Reads {
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
                self.shared.pool.hold(self.shared, true);
                self.backpressure.wait();
                self.shared.pool.hold(self.shared, false);
            });
        }
    }

    fn finish(&self, py: Python<'_>, outcome: Outcome) {
        let mut outcome = Some(outcome);
        let (waiter, on_abandon) = self.state.with(py, |state| {
            state.is_iterating = false;
            if state.reader != Reader::Gone {
                state.outcome = outcome.take();
            }
            (state.waiter.take(), state.on_abandon.take())
        });
        if let Some(waiter) = waiter {
            self.inbox.post(py, waiter);
        }
        if let Some(Outcome::Value(object) | Outcome::Raised(object)) = outcome {
            interpreter::release(py, object);
        }
        if let Some(object) = on_abandon {
            interpreter::release(py, object);
        }
    }
}

impl Outcome {
    fn into_step(self, py: Python<'_>) -> Step {
        match self {
            Outcome::Value(value) => Step::Done(Some(value)),
            Outcome::Ended => Step::Done(None),
            Outcome::Raised(exception) => Step::Raised(PyErr::from_value(exception.into_bound(py))),
            Outcome::Panicked(message) => Step::Raised(internal_error(py, &message)),
        }
    }
}

/// The exception that stands for a defect of toolcrib itself.
fn internal_error(py: Python<'_>, message: &str) -> PyErr {
    let text = format!("a worker thread panicked: {message}");
    let class = py.import("toolcrib.errors").and_then(|errors| errors.getattr("InternalError"));
    match class.and_then(|class| class.call1((&text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyRuntimeError::new_err(text),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Holds the thread of a generator up until half of the buffer is free, so that it is not woken for every single chunk.
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

/// One call in a worker thread, to be awaited once. Dropping it abandons the work.
#[pyclass(name = "_AwaitableJob", module = "toolcrib._core", frozen)]
pub(crate) struct AwaitableJob(Job);

#[pymethods]
impl AwaitableJob {
    #[new]
    fn new(function: Bound<'_, PyAny>, argument: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = function.py();
        let arguments = PyTuple::new(py, [argument])?;
        Ok(Self(Job::start(py, function, arguments, None, 1, None)?))
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.0.poll(py)? {
            Step::Wait(waiter) => Ok(waiter),
            Step::Done(value) => Err(returned(py, value)),
            Step::Raised(error) => Err(outside_of_protocol(py, error)),
            Step::Chunk(_) => {
                self.0.abandon();
                Err(PyTypeError::new_err("the function must not return a generator"))
            }
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.0.visit_with(&visit)
    }
}

/// The end of a generator that is being closed, to be awaited once. Dropping it waits no longer.
#[pyclass(name = "_JobEnd", module = "toolcrib._core", frozen)]
struct JobEnd(Arc<Inner>);

#[pymethods]
impl JobEnd {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            match self.0.poll(py)? {
                Step::Wait(waiter) => return Ok(waiter),
                Step::Done(_) => return Err(returned(py, None)),
                Step::Raised(error) => return Err(outside_of_protocol(py, error)),
                Step::Chunk(_) => {}
            }
        }
    }

    /// Waits no longer, and raises the exception; `throw(class, value, traceback)` is accepted as generators do.
    #[pyo3(signature = (error, value=None, _traceback=None))]
    fn throw(
        &self,
        error: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(error.py());
        Err(PyErr::from_value(value.unwrap_or(error)))
    }

    /// Waits no longer; the generator is closed all the same.
    fn close(&self, py: Python<'_>) {
        if !self.0.is_read.load(Ordering::Relaxed) && self.0.shared.is_current() {
            self.0.leave(py, Reader::Gone);
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.visit_with(&visit)
    }
}

impl Drop for JobEnd {
    fn drop(&mut self) {
        Python::try_attach(|py| self.close(py));
    }
}

impl Inner {
    fn visit_with(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.shared.is_current() {
            return Ok(());
        }
        self.state.visit(visit, |state| state.visit(&mut |object| visit.call(object))).unwrap_or(Ok(()))
    }
}

/// The exception by which an iterator returns a value to `await`.
fn returned(py: Python<'_>, value: Option<Py<PyAny>>) -> PyErr {
    PyStopIteration::new_err((value.unwrap_or_else(|| py.None()),))
}

/// An exception of user code that cannot be mistaken for a step of the awaiting protocol: a `StopIteration` would count as
/// a return value, the other two as the end of the coroutine that awaits. As for generators (PEP 479), a `RuntimeError`
/// takes its place and has it as its cause.
fn outside_of_protocol(py: Python<'_>, error: PyErr) -> PyErr {
    let is_protocol = error.is_instance_of::<PyStopIteration>(py)
        || error.is_instance_of::<PyStopAsyncIteration>(py)
        || error.is_instance_of::<PyGeneratorExit>(py);
    if !is_protocol {
        return error;
    }
    let class = error.get_type(py).name().map_or_else(|_| "StopIteration".to_owned(), |name| name.to_string());
    let replacement = PyRuntimeError::new_err(format!("a function that ran in a thread raised {class}"));
    replacement.set_cause(py, Some(error));
    replacement
}
