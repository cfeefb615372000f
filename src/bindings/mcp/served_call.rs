//! `_ServedCall`: a call of a client, on the event loop that serves.

use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::server::ServedClient;
use crate::bindings::into_response::error_text;
use crate::bindings::native::runtime;
use crate::bindings::response::PyToolResponse;
use crate::bindings::worker::{Completions, Polled, await_itself, completions};
use crate::bindings::{errors, json, response};
use crate::call::{Reply, ToolResponse};
use crate::mcp::server::ServedCall;
use crate::native::{Question, Task, Unanswered};
use crate::sync::lock;

/// A call, as it arrives.
pub(super) struct ReceivedCall {
    pub(super) number: u64,
    pub(super) client: ServedClient,
    pub(super) call: ServedCall,
    pub(super) responses: mpsc::Sender<ToolResponse>,
}

/// A call of a client.
#[pyclass(name = "_ServedCall", module = "toolcrib._core", frozen)]
pub(super) struct PyServedCall {
    /// The number by which it is cancelled.
    #[pyo3(get)]
    number: u64,
    /// The session that is called; the toolkit or view if all clients share one.
    #[pyo3(get)]
    tools: Py<PyAny>,
    /// The request, as a tool use block.
    #[pyo3(get)]
    request: Py<PyDict>,
    asker: Option<crate::native::Asker>,
    /// Taken when the call is over.
    responses: Mutex<Option<mpsc::Sender<ToolResponse>>>,
}

impl PyServedCall {
    /// Makes the object of a call; none if its arguments have no Python form, which is answered here.
    pub(super) fn new(py: Python<'_>, received: ReceivedCall, tools: Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let ReceivedCall { number, call, responses, .. } = received;
        let arguments = match json::to_python(py, &Value::Object(call.arguments)) {
            Ok(arguments) => arguments,
            Err(error) => {
                // A number with too many digits.
                let reply = Reply::BadCall { reason: error_text(py, &error) };
                let _ = responses.try_send(ToolResponse::replying(&reply));
                return Ok(None);
            }
        };
        let request = PyDict::new(py);
        request.set_item(intern!(py, "type"), intern!(py, "tool_use"))?;
        request.set_item(intern!(py, "id"), call.id)?;
        request.set_item(intern!(py, "name"), call.name)?;
        request.set_item(intern!(py, "input"), arguments)?;
        Ok(Some(Self {
            number,
            tools: tools.unbind(),
            request: request.unbind(),
            asker: call.asker,
            responses: Mutex::new(Some(responses)),
        }))
    }
}

#[pymethods]
impl PyServedCall {
    /// True if the client can be asked questions.
    #[getter]
    fn can_ask(&self) -> bool {
        self.asker.is_some()
    }

    /// Send a response to the client. Return an awaitable if the client is slow, and None otherwise.
    fn send(&self, py: Python<'_>, response: &Bound<'_, PyToolResponse>) -> PyResult<Option<PyServedStep>> {
        let response = response::to_core(response)?;
        let Some(responses) = lock(&self.responses).clone() else { return Ok(None) };
        match responses.try_send(response) {
            // Without a receiver the call was cancelled, and its task will be.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(None),
            Err(TrySendError::Full(response)) => {
                let sent = async move {
                    let _ = responses.send(response).await;
                    Ok(Value::Null)
                };
                PyServedStep::start(py, sent).map(Some)
            }
        }
    }

    /// End the call: the last response is its result.
    fn end(&self) {
        lock(&self.responses).take();
    }

    /// Ask the user of the client. Return an awaitable of the answer.
    ///
    /// Raises:
    ///     NoAskerError: If the client cannot ask such a question; when it is awaited.
    ///     UnansweredError: If there is no answer; when it is awaited.
    fn ask(&self, py: Python<'_>, text: String, schema: &Bound<'_, PyAny>) -> PyResult<PyServedStep> {
        let Some(asker) = self.asker.clone() else {
            return Err(PyRuntimeError::new_err("the client cannot be asked"));
        };
        let schema = Value::from(json::from_python(schema)?);
        PyServedStep::start(py, async move { asker.ask(Question::User { text, schema }).await })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tools)?;
        visit.call(&self.request)
    }
}

/// A future of the runtime, and the way of its result.
type RunningStep = (Task, Completions<Result<Value, Unanswered>>);

/// An awaitable of the result of a future of the runtime. Dropping it cancels the future.
#[pyclass(name = "_ServedStep", module = "toolcrib._core", frozen)]
pub(super) struct PyServedStep {
    /// Taken when it is over.
    running: Mutex<Option<RunningStep>>,
    generation: u64,
}

impl PyServedStep {
    fn start(
        py: Python<'_>,
        future: impl Future<Output = Result<Value, Unanswered>> + Send + 'static,
    ) -> PyResult<Self> {
        let (completer, results) = completions(py)?;
        let task = runtime::current()?
            .spawn_future(async move { completer.complete(future.await) })
            .map_err(|_| runtime::shutting_down())?;
        Ok(Self { running: Mutex::new(Some((task, results))), generation: runtime::generation() })
    }

    fn abandon(&self) {
        let running = lock(&self.running).take();
        if self.generation == runtime::generation() {
            drop(running);
        } else {
            // The task belongs to threads that do not exist in a forked child, and any of their locks may be held.
            std::mem::forget(running);
        }
    }
}

await_itself!(PyServedStep);

#[pymethods]
impl PyServedStep {
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // An event loop may run Python code while it makes a future, and that code may poll this step.
        let polled = match self.running.try_lock().as_deref() {
            Ok(Some((_, results))) => results.poll(py)?,
            _ => return Err(PyRuntimeError::new_err("cannot await the same step twice")),
        };
        let answer = match polled {
            Polled::Wait(waiter) => return Ok(waiter),
            Polled::Value(answer) => answer,
            Polled::Ended => Err(Unanswered::Failed("the server has ended".to_owned())),
        };
        self.abandon();
        match answer {
            Ok(value) => Err(PyStopIteration::new_err((json::to_python(py, &value)?.unbind(),))),
            Err(reason) => Err(errors::unanswered(&reason)),
        }
    }
}

impl Drop for PyServedStep {
    fn drop(&mut self) {
        self.abandon();
    }
}
