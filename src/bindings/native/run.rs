//! A run of a native tool on the event loop: the job that polls its responses, and the awaitables that Python drives.
//!
//! [`NativeCall`] starts a [`NativeJob`] when it is first polled. [`PyNativeResponses`] is the async iterator of a tool that
//! streams, [`PyNativeStep`] the awaitable of one response.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde_json::Value;

use super::question::{AnswerSender, AnswerTask, Answerers, asker};
use super::runtime::{self, Lane};
use crate::bindings::host::HostFunctions;
use crate::bindings::worker::{Completions, JobStep, Polled, await_by_steps, completions};
use crate::bindings::{errors, response, trace};
use crate::call::ToolResponse;
use crate::native::{Delivery, Failure, LogLevel, Logger, NativeTool, Question, Task, ToolContext};
use crate::sync::lock;

/// The number of responses that a tool may be ahead of its consumer.
const BUFFERED_RESPONSES: usize = 32;

/// A call of a native tool before it starts.
struct FreshCall {
    tool: Arc<NativeTool>,
    context: ToolContext,
    /// The arguments, or the reason why they are not JSON.
    arguments: Result<Value, String>,
    answerers: Answerers,
    /// The runtime for it.
    lane: Lane,
}

/// A response of a tool, or the failure that ends it.
type Item = Result<ToolResponse, Failure>;

/// A message of a running tool to its event loop.
enum Message {
    Delivery(Delivery),
    Question(Question, AnswerSender),
    Log(LogLevel, String),
}

/// A native tool that runs. Dropping it abandons the run.
struct NativeJob {
    tool: Arc<NativeTool>,
    /// The name by which the tool was called, the id of the call and its caller, for its questions.
    name: Arc<str>,
    call_id: Option<Arc<str>>,
    caller: Option<Arc<str>>,
    answerers: Answerers,
    questions: Vec<AnswerTask>,
    /// The response of a tool that had one before it waited for anything.
    first: Option<Item>,
    /// Taken when the run has ended or is abandoned.
    running: Option<(Task, Completions<Message>)>,
    /// True if there was a response.
    has_chunks: bool,
    generation: u64,
}

impl NativeJob {
    /// Starts a tool for the event loop that runs in this thread.
    ///
    /// # Errors
    /// If no event loop is running, or the interpreter is shutting down.
    fn start(py: Python<'_>, call: FreshCall) -> PyResult<Self> {
        let FreshCall { tool, context, arguments, answerers, lane } = call;
        let (completer, results) = completions(py)?;
        // The queue ends with the tool, and a question of another task does not keep it open.
        let (questions, messages) = (completer.downgrade(), completer.downgrade());
        let asker = asker(move |question, sender| questions.complete(Message::Question(question, sender)));
        let logger = Logger::new(move |level, text| messages.complete(Message::Log(level, text)));
        // The server of an MCP client continues the trace.
        let trace = if let Lane::Clients(_) = lane { trace::current(py).map(Arc::new) } else { None };
        let (name, call_id, caller) = (context.tool.clone(), context.call_id.clone(), context.caller.clone());
        let context = ToolContext { asker: Some(asker), logger: Some(logger), trace, ..context };
        let mut job = Self {
            tool,
            name,
            call_id,
            caller,
            answerers,
            questions: Vec::new(),
            first: None,
            running: None,
            has_chunks: false,
            generation: runtime::generation(),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(reason) => {
                job.first = Some(Err(Failure::Arguments(reason)));
                return Ok(job);
            }
        };
        let (runtime, mut run) = (runtime::running(lane)?, job.tool.run(context, arguments));
        job.generation = runtime::generation();
        let first = if job.tool.starts_quickly() {
            runtime.poll_here(&mut run).map_err(|_| runtime::shutting_down())?
        } else {
            Poll::Pending
        };
        if let Poll::Ready(item) = first {
            let is_over = item.as_ref().is_none_or(|item| {
                item.as_ref().is_ok_and(|response| response.ends_stream() || !job.tool.is_streaming()) || item.is_err()
            });
            job.first = item;
            if is_over {
                drop(run);
                job.log_messages(py, &results)?;
                // Before the completer, which would wake its reader.
                drop(results);
                return Ok(job);
            }
        }
        let task = runtime
            .spawn(run, BUFFERED_RESPONSES, move |delivery| completer.complete(Message::Delivery(delivery)))
            .map_err(|_| runtime::shutting_down())?;
        job.running = Some((task, results));
        Ok(job)
    }

    /// Logs the messages of a tool that has ended.
    fn log_messages(&self, py: Python<'_>, results: &Completions<Message>) -> PyResult<()> {
        while let Some(message) = results.take() {
            if let Message::Log(level, text) = message {
                self.answerers.host.log(py, level, &text)?;
            }
        }
        Ok(())
    }

    /// Takes the next response, or returns a waiter for the event loop.
    ///
    /// # Errors
    /// If the process was forked since the start, or the event loop is gone.
    fn poll(&mut self, py: Python<'_>) -> PyResult<JobStep> {
        let item = loop {
            if let Some(item) = self.first.take() {
                break item;
            }
            let Some((_, results)) = &self.running else { return Ok(JobStep::Done(None)) };
            match results.poll(py)? {
                Polled::Wait(waiter) => return Ok(JobStep::Wait(waiter)),
                Polled::Value(Message::Delivery(Delivery::Item(item, _slot))) => break item,
                Polled::Value(Message::Delivery(Delivery::End)) => {
                    self.abandon();
                    return Ok(JobStep::Done(None));
                }
                Polled::Value(Message::Question(question, sender)) => self.answer(py, question, sender)?,
                Polled::Value(Message::Log(level, text)) => self.answerers.host.log(py, level, &text)?,
                Polled::Ended => {
                    self.abandon();
                    return Ok(JobStep::Raised(runtime::shutting_down()));
                }
            }
        };
        match item {
            Ok(response) if response.ends_stream() => {
                self.abandon();
                let stream = std::mem::replace(&mut self.has_chunks, false);
                let response = ToolResponse { stream, ..response };
                Ok(JobStep::Done(Some(response::from_core(py, response)?.unbind())))
            }
            Ok(response) => {
                self.has_chunks = true;
                Ok(JobStep::Chunk(response::from_core(py, response)?.unbind()))
            }
            // The model's mistake, so the reply is a response in every error mode.
            Err(failure @ Failure::Arguments(_)) => {
                self.abandon();
                let reply = failure.reply(self.tool.name());
                Ok(JobStep::Done(Some(response::answer(py, &reply)?.unbind())))
            }
            Err(failure) => {
                self.abandon();
                Ok(JobStep::Raised(errors::native(py, self.tool.name(), &failure)))
            }
        }
    }

    /// Starts a task that answers a question of the tool.
    #[cold]
    fn answer(&mut self, py: Python<'_>, question: Question, sender: AnswerSender) -> PyResult<()> {
        let call = (&*self.name, self.call_id.as_deref().unwrap_or_default(), self.caller.as_deref());
        self.questions.push(self.answerers.answer(py, call, question, sender)?);
        Ok(())
    }

    /// Aborts the tool; returns a waiter until its future is dropped, or `None` if it is.
    fn close(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.generation == runtime::generation()
            && let Some((task, results)) = &self.running
        {
            task.abort();
            loop {
                match results.poll(py)? {
                    Polled::Wait(waiter) => return Ok(Some(waiter)),
                    Polled::Value(unread) => drop(unread),
                    Polled::Ended => break,
                }
            }
        }
        self.abandon();
        Ok(None)
    }

    /// Abandons the run: the tool's future is dropped in its thread, and its responses are dropped here.
    fn abandon(&mut self) {
        self.questions.clear();
        let running = self.running.take();
        if self.generation == runtime::generation() {
            drop(running);
        } else {
            // The task belongs to threads that do not exist in a forked child, and any of their locks may be held.
            std::mem::forget(running);
        }
    }
}

impl Drop for NativeJob {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// A call of a native tool, which starts when it is first polled.
#[derive(Clone)]
pub(super) struct NativeCall(Arc<Mutex<NativeCallState>>);

enum NativeCallState {
    Fresh(Box<FreshCall>),
    Running(Box<NativeJob>),
    Over,
}

impl NativeCall {
    pub(super) fn new(
        tool: Arc<NativeTool>,
        arguments: Result<Value, String>,
        answerers: Answerers,
        lane: Lane,
    ) -> Self {
        let context = ToolContext::of(tool.name());
        let fresh = FreshCall { tool, context, arguments, answerers, lane };
        Self(Arc::new(Mutex::new(NativeCallState::Fresh(Box::new(fresh)))))
    }

    fn poll(&self, py: Python<'_>) -> PyResult<JobStep> {
        // An event loop may run Python code while it makes a future, and that code may poll this call.
        let Ok(mut state) = self.0.try_lock() else {
            return Err(PyRuntimeError::new_err("the native tool is already awaited"));
        };
        if let NativeCallState::Fresh(_) = &*state
            && let NativeCallState::Fresh(call) = std::mem::replace(&mut *state, NativeCallState::Over)
        {
            *state = NativeCallState::Running(Box::new(NativeJob::start(py, *call)?));
        }
        match &mut *state {
            NativeCallState::Running(job) => job.poll(py),
            NativeCallState::Fresh(_) | NativeCallState::Over => Ok(JobStep::Done(None)),
        }
    }

    /// Ends the tool; returns a waiter until it has ended.
    fn close(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Ok(mut state) = self.0.try_lock() else {
            return Err(PyRuntimeError::new_err("the native tool is already awaited"));
        };
        if let NativeCallState::Running(job) = &mut *state
            && let Some(waiter) = job.close(py)?
        {
            return Ok(Some(waiter));
        }
        *state = NativeCallState::Over;
        Ok(None)
    }

    fn abandon(&self) {
        if let Ok(mut state) = self.0.try_lock() {
            *state = NativeCallState::Over;
        }
    }

    /// Sets the facts of the toolkit's call that this call is part of, before it starts.
    fn identify(&self, context: ToolContext, host: HostFunctions, session: Option<Py<PyAny>>) {
        if let Ok(mut state) = self.0.try_lock()
            && let NativeCallState::Fresh(call) = &mut *state
        {
            call.context = context;
            // The sampler of a tool's own MCP client comes first.
            call.answerers.host = std::mem::take(&mut call.answerers.host).or(host);
            call.answerers.session = session;
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(state) = self.0.try_lock() else { return Ok(()) };
        match &*state {
            NativeCallState::Fresh(call) => call.answerers.traverse(visit),
            NativeCallState::Running(job) => {
                job.answerers.traverse(visit)?;
                job.questions.iter().try_for_each(|question| question.traverse(visit))
            }
            NativeCallState::Over => Ok(()),
        }
    }
}

/// Sets the facts of a toolkit's call on the result of calling a native tool.
pub(crate) fn identify(
    result: &Bound<'_, PyAny>,
    context: ToolContext,
    host: HostFunctions,
    session: Option<Py<PyAny>>,
) {
    if let Ok(step) = result.cast_exact::<PyNativeStep>() {
        step.get().call.identify(context, host, session);
    } else if let Ok(responses) = result.cast_exact::<PyNativeResponses>() {
        responses.get().0.identify(context, host, session);
    }
}

/// The responses of a native tool that streams.
#[pyclass(name = "_NativeResponses", module = "toolcrib._core", frozen)]
pub(crate) struct PyNativeResponses(NativeCall);

impl PyNativeResponses {
    pub(super) fn new(call: NativeCall) -> Self {
        Self(call)
    }

    /// The next response, without the awaitable that [`__anext__`](Self::__anext__) makes and the exception that carries
    /// its result.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<JobStep> {
        self.0.poll(py)
    }
}

#[pymethods]
impl PyNativeResponses {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self) -> PyNativeStep {
        PyNativeStep::new(self.0.clone(), Awaited::Chunk)
    }

    /// Wait for the last response.
    fn __await__(&self) -> PyNativeStep {
        PyNativeStep::new(self.0.clone(), Awaited::Last)
    }

    /// End the tool, and wait until its code is dropped.
    fn aclose(&self) -> PyNativeStep {
        PyNativeStep::new(self.0.clone(), Awaited::End)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }

    fn __clear__(&self) {
        self.0.abandon();
    }
}

/// An awaitable of one response, or of the end.
#[pyclass(name = "_NativeStep", module = "toolcrib._core", frozen)]
pub(super) struct PyNativeStep {
    call: NativeCall,
    awaited: Awaited,
    /// The response before the next one, for an awaitable of the last.
    last: Mutex<Option<Py<PyAny>>>,
}

/// The result that an awaitable stands for.
#[derive(Clone, Copy)]
enum Awaited {
    /// The next response of several.
    Chunk,
    /// The only response.
    Result,
    /// The last response of several.
    Last,
    /// The end of the tool.
    End,
}

impl PyNativeStep {
    fn new(call: NativeCall, awaited: Awaited) -> Self {
        Self { call, awaited, last: Mutex::default() }
    }

    pub(super) fn of_result(call: NativeCall) -> Self {
        Self::new(call, Awaited::Result)
    }

    fn abandon(&self) {
        self.call.abandon();
    }

    /// A waiter for the event loop, or the outcome as an exception, by which an iterator returns.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.awaited {
            Awaited::Chunk | Awaited::Result => {}
            Awaited::Last => return self.step_to_last(py),
            Awaited::End => {
                return Err(match self.call.close(py)? {
                    Some(waiter) => return Ok(waiter),
                    None => PyStopIteration::new_err(()),
                });
            }
        }
        match (self.call.poll(py)?, self.awaited) {
            (JobStep::Wait(waiter), _) => Ok(waiter),
            (JobStep::Chunk(response), awaited) => {
                if let Awaited::Result = awaited {
                    self.call.abandon();
                }
                Err(PyStopIteration::new_err((response,)))
            }
            (JobStep::Raised(error), _) => Err(error),
            // The result that ends a stream, or the answer to invalid arguments.
            (JobStep::Done(Some(response)), _) => Err(PyStopIteration::new_err((response,))),
            (JobStep::Done(None), Awaited::Result) => Err(awaited_already()),
            (JobStep::Done(None), Awaited::Chunk | Awaited::Last | Awaited::End) => {
                Err(PyStopAsyncIteration::new_err(()))
            }
        }
    }

    /// A waiter, or the last response as an exception when all others have come.
    fn step_to_last(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            match self.call.poll(py)? {
                JobStep::Wait(waiter) => return Ok(waiter),
                JobStep::Chunk(response) => {
                    let earlier = lock(&self.last).replace(response);
                    drop(earlier);
                }
                JobStep::Raised(error) => return Err(error),
                JobStep::Done(response) => {
                    let last = response.or_else(|| lock(&self.last).take());
                    return Err(last.map_or_else(awaited_already, |last| PyStopIteration::new_err((last,))));
                }
            }
        }
    }
}

fn awaited_already() -> PyErr {
    PyRuntimeError::new_err("cannot reuse the call of a native tool that was awaited already")
}

await_by_steps!(PyNativeStep);

#[pymethods]
impl PyNativeStep {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(last) = self.last.try_lock() {
            visit.call(&*last)?;
        }
        self.call.traverse(&visit)
    }

    fn __clear__(&self) {
        self.abandon();
    }
}
