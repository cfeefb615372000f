//! `_ServedCall`: a call of a client, on the event loop that serves.

use std::sync::Mutex;

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::server::ServedClient;
use crate::bindings::host::level_of;
use crate::bindings::into_response::error_text;
use crate::bindings::native::future::{Conversion, PyNativeFuture};
use crate::bindings::once::intern;
use crate::bindings::response::PyToolResponse;
use crate::bindings::{errors, json, response, trace};
use crate::call::{Reply, ToolResponse};
use crate::mcp::server::{ClientAbilities, ServedCall};
use crate::native::{Asker, Logger, Question};
use crate::sync::lock;
use crate::trace::TraceContext;

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
    abilities: ClientAbilities,
    asker: Option<Asker>,
    logger: Option<Logger>,
    trace: Option<TraceContext>,
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
            abilities: call.abilities,
            asker: call.asker,
            logger: call.logger,
            trace: call.trace,
            responses: Mutex::new(Some(responses)),
        }))
    }

    /// Asks the client. The result is an awaitable of the answer.
    fn inquire(&self, py: Python<'_>, question: Question) -> PyResult<PyNativeFuture> {
        let Some(asker) = self.asker.clone() else {
            return Err(PyRuntimeError::new_err("the client cannot be asked"));
        };
        PyNativeFuture::spawn(py, async move {
            let answer = asker.ask(question).await;
            Box::new(move |py: Python<'_>| match answer {
                Ok(value) => Ok(json::to_python(py, &value)?.unbind()),
                Err(reason) => Err(errors::unanswered(&reason)),
            }) as Conversion
        })
    }
}

#[pymethods]
impl PyServedCall {
    /// True if the client shows forms to its user.
    #[getter]
    fn can_ask(&self) -> bool {
        self.abilities.forms
    }

    /// True if the client has a model that answers requests.
    #[getter]
    fn can_sample(&self) -> bool {
        self.abilities.model
    }

    /// True if the client may want log messages.
    #[getter]
    fn can_log(&self) -> bool {
        self.logger.is_some()
    }

    /// Make the span that the client sent the parent of the spans of the running task.
    fn enter_trace(&self, py: Python<'_>) {
        if let Some(trace) = &self.trace {
            trace::enter(py, trace);
        }
    }

    /// True if the client wants log messages of a level of Python's `logging` at present.
    fn wants_log(&self, level: i64) -> bool {
        self.logger.as_ref().is_some_and(|logger| logger.wants(level_of(level)))
    }

    /// Send a log message to the client, if it wants it.
    fn log(&self, level: i64, text: String) {
        if let Some(logger) = &self.logger {
            logger.log(level_of(level), text);
        }
    }

    /// Send a response to the client. Return an awaitable if the client is slow, and None otherwise.
    fn send(&self, py: Python<'_>, response: &Bound<'_, PyToolResponse>) -> PyResult<Option<PyNativeFuture>> {
        let response = response::to_core(response)?;
        let Some(responses) = lock(&self.responses).clone() else { return Ok(None) };
        match responses.try_send(response) {
            // Without a receiver the call was cancelled, and its task will be.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(None),
            Err(TrySendError::Full(response)) => {
                let sent = async move {
                    let _ = responses.send(response).await;
                    Box::new(|py: Python<'_>| Ok(py.None())) as Conversion
                };
                PyNativeFuture::spawn(py, sent).map(Some)
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
    fn ask(&self, py: Python<'_>, text: String, schema: &Bound<'_, PyAny>) -> PyResult<PyNativeFuture> {
        let schema = json::value_from_python(schema)?;
        self.inquire(py, Question::User { text, schema })
    }

    /// Ask the model of the client. Return an awaitable of the `CreateMessageResult`.
    ///
    /// Raises:
    ///     NoAskerError: If the client has no model; when it is awaited.
    ///     UnansweredError: If there is no answer; when it is awaited.
    fn sample(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<PyNativeFuture> {
        let request = json::value_from_python(request)?;
        self.inquire(py, Question::Model { request })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tools)?;
        visit.call(&self.request)
    }
}
