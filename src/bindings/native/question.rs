//! Questions of native tools: asked in a thread of the runtime, answered by Python functions on the event loop of the call.

use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::bindings::host::HostFunctions;
use crate::bindings::imported::START_ANSWER;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::native::{Asker, Question, Unanswered};
use crate::sync::lock;

/// The answer to a question, on its way to the tool.
pub(super) type AnswerSender = oneshot::Sender<Result<Value, Unanswered>>;

/// An asker that hands its questions over, together with the way for their answers.
pub(super) fn asker(hand_over: impl Fn(Question, AnswerSender) + Send + Sync + 'static) -> Asker {
    Asker::new(move |question| {
        let (sender, receiver) = oneshot::channel();
        hand_over(question, sender);
        async move { receiver.await.unwrap_or(Err(Unanswered::NotSupported)) }
    })
}

/// The Python functions that answer the questions of a call, and the call's facts that they are told.
#[derive(Default)]
pub(crate) struct Answerers {
    pub(crate) host: HostFunctions,
    /// The session that the call is part of.
    pub(crate) session: Option<Py<PyAny>>,
}

impl Answerers {
    /// Starts a task that answers a question.
    pub(super) fn answer(
        &self,
        py: Python<'_>,
        call: (&str, &str, Option<&str>),
        question: Question,
        sender: AnswerSender,
    ) -> PyResult<AnswerTask> {
        let reply = Bound::new(py, PyReply(Mutex::new(Some(sender))))?;
        let (function, text, schema) = match question {
            Question::User { text, schema } => (&self.host.asker, Some(text), schema),
            Question::Model { request } => (&self.host.sampler, None, request),
        };
        let fields = (reply, function, text, json::to_python(py, &schema)?, call, &self.session);
        Ok(AnswerTask(START_ANSWER.get(py)?.call1(fields)?.unbind()))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.host.traverse(visit)?;
        visit.call(&self.session)
    }
}

/// The task that answers a question. Dropping it cancels the task.
pub(super) struct AnswerTask(Py<PyAny>);

impl AnswerTask {
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

impl Drop for AnswerTask {
    fn drop(&mut self) {
        Python::try_attach(|py| {
            let task = self.0.bind(py);
            // A call may be dropped in another thread, and after its event loop was closed.
            let cancel = task.getattr(intern!(py, "cancel"));
            let event_loop = task.call_method0(intern!(py, "get_loop"));
            if let (Ok(cancel), Ok(event_loop)) = (cancel, event_loop) {
                let _ = event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (cancel,));
            }
        });
    }
}

/// The receiver of an answer; only the first is taken.
#[pyclass(name = "_Reply", module = "toolcrib._core", frozen)]
pub(super) struct PyReply(Mutex<Option<AnswerSender>>);

impl PyReply {
    fn send(&self, answer: Result<Value, Unanswered>) {
        if let Some(sender) = lock(&self.0).take() {
            // The tool may have ended meanwhile.
            let _ = sender.send(answer);
        }
    }
}

#[pymethods]
impl PyReply {
    /// Give the answer, a JSON value.
    fn answer(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = json::value_from_python(value)?;
        self.send(Ok(value));
        Ok(())
    }

    /// Report that the user declined to answer.
    fn decline(&self) {
        self.send(Err(Unanswered::Declined));
    }

    /// Report that there is no answer because of a failure.
    fn fail(&self, reason: String) {
        self.send(Err(Unanswered::Failed(reason)));
    }
}
