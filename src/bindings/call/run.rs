//! Running the tool: its function called, or handed to a worker, and its coroutine or generator resumed.

use std::cell::Cell;

use pyo3::exceptions::{PyRecursionError, PyRuntimeError, PyStopAsyncIteration};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyNone, PyTuple};

use super::agent::AgentStart;
use super::arguments::BoundArguments;
use super::python::drive::{self, Sent, await_iter, send};
use super::python::{attached, object};
use super::state::{Early, Phase, State, Step};
use crate::bindings::background;
use crate::bindings::native::PyNativeResponses;
use crate::bindings::once::intern;
use crate::bindings::registration::CallKind;
use crate::bindings::tool::{PyTool, ToolBody};
use crate::bindings::worker::{self, Job};
use crate::call::{ErrorMode, RunIn};

/// The number of chunks that a generator in a worker thread may run ahead of its consumer.
const CHUNKS_AHEAD: usize = 32;

/// The outcome of running the tool for a while.
pub(super) enum Given<'py> {
    /// The event loop has to wait for this.
    Wait(Bound<'py, PyAny>),
    /// The one result of a function or coroutine, which may have to be run itself.
    Result(Bound<'py, PyAny>),
    /// One item of a generator.
    Item(Bound<'py, PyAny>),
    /// A generator has come to its end.
    End,
    /// The tool raised this.
    Error(Box<PyErr>),
}

impl Given<'_> {
    /// An exception, in a box: what every step returns should fit into two registers.
    #[cold]
    pub(super) fn error(error: PyErr) -> Self {
        Self::Error(Box::new(error))
    }
}

impl State {
    /// Runs the tool with arguments that are permitted.
    #[inline(always)]
    pub(super) fn run<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: BoundArguments<'py>,
    ) -> Result<Given<'py>, Early<'py>> {
        if tool.async_execution {
            return attached(py, |py| self.start_background(py, tool, arguments));
        }
        if tool.run_in != RunIn::Inline {
            return Ok(attached(py, |py| self.start_job(py, tool, arguments)));
        }
        Ok(match tool.plan.call(&tool.function.bind_borrowed(py), arguments) {
            Ok(result) => self.begin(py, tool.kind, result),
            Err(error) => Given::error(error),
        })
    }

    /// The function was called: runs what it returned.
    #[inline(always)]
    fn begin<'py>(&self, py: Python<'py>, kind: CallKind, mut result: Bound<'py, PyAny>) -> Given<'py> {
        match self.tool(py).get().body {
            ToolBody::Python => {}
            ToolBody::Native => attached(py, |py| self.identify_native(py, &result)),
            ToolBody::Agent => match attached(py, |py| self.start_agent(py, &result)) {
                Ok(AgentStart::Running(running)) => result = running,
                Ok(AgentStart::Refused(response)) => return Given::Result(response),
                Err(error) => return Given::error(error),
            },
        }
        let (phase, inner) = match kind {
            CallKind::Function => return Given::Result(result),
            CallKind::Coroutine => match await_iter(result) {
                Ok(coroutine) => {
                    self.inner.set(coroutine.clone());
                    self.phase.set(Phase::Coroutine);
                    return resume_coroutine(&coroutine, PyNone::get(py).as_any());
                }
                Err(error) => return Given::error(error),
            },
            CallKind::AsyncGenerator => (Phase::AsyncGenerator, result),
            CallKind::Generator => (Phase::Generator, result),
        };
        self.inner.set(inner);
        self.phase.set(phase);
        self.resume_tool(py, PyNone::get(py).as_any())
    }

    /// Runs a result that is itself something to run; see [`runnable`].
    #[cold]
    pub(super) fn run_result<'py>(&self, py: Python<'py>, result: Runnable<'py>) -> Given<'py> {
        match result {
            Runnable::Stream(stream) => {
                self.inner.set(stream);
                self.phase.set(Phase::AsyncGenerator);
                // Streams that are nested deeper than the first step can go, no later step can reach.
                let Some(_deeper) = Nested::enter() else {
                    let message = "too many tool calls that give the stream of another";
                    return Given::error(PyRecursionError::new_err(message));
                };
                self.resume_tool(py, PyNone::get(py).as_any())
            }
            Runnable::Awaitable(result) => self.begin(py, CallKind::Coroutine, result),
            Runnable::AsyncIterator(result) => self.begin(py, CallKind::AsyncGenerator, result),
            Runnable::Generator(result) => self.begin(py, CallKind::Generator, result),
        }
    }

    /// Resumes the tool until it gives something or has to wait.
    #[inline]
    pub(super) fn resume_tool<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Given<'py> {
        let phase = self.phase.get();
        if phase == Phase::Job {
            // When there is no news from the worker thread, the event loop waits for the future that brings it.
            return attached(py, |py| self.job().map_or(Given::End, |job| polled(py, job.poll(py))));
        }
        let Some(inner) = self.inner.get(py) else { return Given::End };
        match phase {
            Phase::Coroutine => resume_coroutine(&inner, value),
            Phase::Generator => match send(&inner, value) {
                Sent::Yielded(item) => Given::Item(item),
                Sent::Returned(_) => Given::End,
                Sent::Raised(error) => Given::Error(error),
            },
            _ if self.hooked.get() && self.awaited.is_empty() => match send(&inner, value) {
                Sent::Yielded(object) => match drive::unwrap(object) {
                    Ok(item) => Given::Item(item),
                    Err(future) => Given::Wait(future),
                },
                Sent::Returned(_) => Given::End,
                Sent::Raised(error) => end_or_error(py, *error),
            },
            _ => match inner.cast_exact::<PyNativeResponses>() {
                Ok(native) if self.awaited.is_empty() => attached(py, |py| polled(py, native.get().poll(py))),
                _ => self.resume_public(&inner, value),
            },
        }
    }

    /// The public way through an async iterator: the awaitable that `__anext__` gives. The first step goes this way in any
    /// case, because it introduces the generator to the event loop, which finalises it if it is abandoned.
    fn resume_public<'py>(&self, inner: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> Given<'py> {
        let py = inner.py();
        let sent = if let Some(awaited) = self.awaited.get(py) {
            send(&awaited, value)
        } else {
            let awaitable =
                if value.is_none() { drive::anext(inner) } else { inner.call_method1(intern!(py, "asend"), (value,)) };
            match awaitable.and_then(await_iter) {
                Ok(iterator) => {
                    self.awaited.set(iterator.clone());
                    send(&iterator, PyNone::get(py).as_any())
                }
                Err(error) => return end_or_error(py, error),
            }
        };
        match sent {
            Sent::Yielded(future) => Given::Wait(future),
            Sent::Returned(item) => {
                self.awaited.clear(py);
                self.hooked.set(drive::has_short_way(inner));
                Given::Item(item)
            }
            Sent::Raised(error) => {
                self.awaited.clear(py);
                end_or_error(py, *error)
            }
        }
    }

    /// Runs the body in a worker thread or a child process.
    #[cold]
    fn start_job<'py>(&self, py: Python<'py>, tool: &PyTool, arguments: BoundArguments<'py>) -> Given<'py> {
        match tool.plan.parts(py, arguments) {
            Ok((arguments, keywords)) => self.submit(py, tool, arguments, keywords),
            Err(error) => Given::error(error),
        }
    }

    /// Gives the work to a worker thread, which waits for the child process if the tool runs in one.
    fn submit<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: Bound<'py, PyTuple>,
        keywords: Option<Bound<'py, PyDict>>,
    ) -> Given<'py> {
        let callable = match tool.run_in {
            RunIn::Process => tool.process_call(py).map(|(call, end)| (call, Some(end.unbind()))),
            RunIn::Thread | RunIn::Inline => Ok((tool.function.bind(py).clone(), None)),
        };
        let started = callable.and_then(|(callable, end)| {
            Job::start(py, tool.name.clone(), callable, arguments, keywords, CHUNKS_AHEAD, end)
        });
        match started {
            Ok(job) => {
                if self.cold().job.set(job).is_err() {
                    return Given::error(PyRuntimeError::new_err("a tool call runs one job"));
                }
                self.phase.set(Phase::Job);
                self.resume_tool(py, PyNone::get(py).as_any())
            }
            Err(error) => Given::error(error),
        }
    }

    /// Answers the call at once; a second stream does the work in a task.
    #[cold]
    fn start_background<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: BoundArguments<'py>,
    ) -> Result<Given<'py>, Early<'py>> {
        let (arguments, keywords) = match tool.plan.parts(py, arguments) {
            Ok(parts) => parts,
            Err(error) => return Ok(Given::error(error)),
        };
        let Some(toolkit) = self.toolkit.get(py) else {
            return Err(PyRuntimeError::new_err("a background call needs a toolkit").into());
        };
        let stream = object::new(py, || self.in_background(py, arguments, keywords))?;
        let board = toolkit.get().tasks(py)?;
        let response = background::begin(board, &tool.name, &stream)?;
        if tool.errors == ErrorMode::Compat {
            board.get().keep_cancelled();
            response.setattr(intern!(py, "metadata"), py.None())?; // as in AgentScope: the text names the task
        }
        let response = self.in_class(py, response)?;
        self.finish(py);
        Err(Early::Step(Step::Chunk(response)))
    }

    /// The first step of the call that does the work in the background.
    #[cold]
    pub(super) fn run_admitted<'py>(&self, py: Python<'py>) -> Given<'py> {
        attached(py, |py| {
            let Some((arguments, keywords)) = self.cold().bound.take() else { return Given::End };
            let (arguments, keywords) = (arguments.into_bound(py), keywords.map(|keywords| keywords.into_bound(py)));
            let tool = self.tool(py);
            let tool = tool.get();
            if tool.run_in != RunIn::Inline {
                return self.submit(py, tool, arguments, keywords);
            }
            match tool.function.bind(py).call(arguments, keywords.as_ref()) {
                Ok(result) => self.begin(py, tool.kind, result),
                Err(error) => Given::error(error),
            }
        })
    }
}

/// Resumes a coroutine, or the iterator of another awaitable, that gives the one result.
#[inline(always)]
fn resume_coroutine<'py>(coroutine: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> Given<'py> {
    match send(coroutine, value) {
        Sent::Yielded(future) => Given::Wait(future),
        Sent::Returned(result) => Given::Result(result),
        Sent::Raised(error) => Given::Error(error),
    }
}

/// The news from work that runs in another thread.
fn polled(py: Python<'_>, step: PyResult<worker::JobStep>) -> Given<'_> {
    match step {
        Ok(worker::JobStep::Chunk(chunk)) => Given::Item(chunk.into_bound(py)),
        Ok(worker::JobStep::Done(Some(result))) => Given::Result(result.into_bound(py)),
        Ok(worker::JobStep::Done(None)) => Given::End,
        Ok(worker::JobStep::Wait(waiter)) => Given::Wait(waiter.into_bound(py)),
        Ok(worker::JobStep::Raised(error)) | Err(error) => Given::error(error),
    }
}

/// A result that is something to run.
pub(super) enum Runnable<'py> {
    /// The stream of another call, which awaiting would only give once more.
    Stream(Bound<'py, PyAny>),
    Awaitable(Bound<'py, PyAny>),
    AsyncIterator(Bound<'py, PyAny>),
    Generator(Bound<'py, PyAny>),
}

/// Classifies a result: something to run, or a plain value.
pub(super) fn runnable(result: Bound<'_, PyAny>) -> Result<Runnable<'_>, Bound<'_, PyAny>> {
    if object::is_stream(&result) {
        Ok(Runnable::Stream(result))
    } else if drive::is_awaitable(&result) {
        Ok(Runnable::Awaitable(result))
    } else if drive::is_async_iterator(&result) {
        Ok(Runnable::AsyncIterator(result))
    } else if drive::is_generator(&result) {
        Ok(Runnable::Generator(result))
    } else {
        Err(result)
    }
}

/// An exception out of an async generator, among which one is its end.
pub(super) fn end_or_error(py: Python<'_>, error: PyErr) -> Given<'_> {
    if error.is_instance_of::<PyStopAsyncIteration>(py) { Given::End } else { Given::error(error) }
}

/// Counts the streams inside of streams that this thread is in. There is no Python code between them, so that the
/// interpreter's own limit would come too late for the stack.
struct Nested;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// More than any use needs, and far from what a stack can hold.
const DEEPEST: usize = 250;

impl Nested {
    fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            (depth.get() < DEEPEST).then(|| {
                depth.set(depth.get() + 1);
                Self
            })
        })
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}
