//! `_McpServer`: the server of a toolkit, view or session, as the calls that arrive at the event loop.
//!
//! The server runs in threads of the native runtime, which never attach to Python. Its requests reach the event loop through
//! one completion queue, as [`Message`]s: a burst of requests wakes the loop once. Lists of tools are made here, between
//! two calls; calls are handed to the package, which runs each in a task of its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::served_call::{PyServedCall, ReceivedCall};
use crate::bindings::log_warning;
use crate::bindings::native::runtime::{self, Lane};
use crate::bindings::session::PySession;
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::view::PyToolkitView;
use crate::bindings::worker::{Completer, Completions, Polled, await_itself, completions};
use crate::bytes::{hex, random_bytes};
use crate::call::ToolResponse;
use crate::mcp::Definition;
use crate::mcp::server::{
    Client, ClientTools, HttpOptions, HttpServer, ServedCall, ServerIdentity, StdioServer, ToolHost,
};
use crate::native::Task;
use crate::registry::{Registry, Session, SessionLimits, View};
use crate::sync::lock;

/// The number of responses that a tool may be ahead of its client.
const BUFFERED_RESPONSES: usize = 32;

/// A message of the server to its event loop.
pub(super) enum Message {
    /// The address that it listens on, or the reason why it does not.
    Listening(crate::Result<SocketAddr>),
    /// A request for the tools of a client.
    List(ServedClient, oneshot::Sender<Vec<Definition>>),
    /// A call.
    Call(Box<ReceivedCall>),
    /// The end of a call that the client does not wait for any more.
    Cancelled(u64),
    /// The end of a client.
    Gone(u64),
    /// A mistake of the developer, for the log.
    Warning(String),
    /// The end of the server.
    Ended,
}

/// A client, as the event loop knows it.
#[derive(Clone)]
pub(super) struct ServedClient {
    number: u64,
    caller: Arc<str>,
    /// The session of its own, unless all clients share one.
    session: Option<Arc<Session>>,
}

/// The served object as a host of the core: it passes all requests on.
struct QueuedHost {
    queue: Arc<Completer<Message>>,
    identity: ServerIdentity,
    revision: Arc<AtomicU64>,
    view: View,
    numbers: AtomicU64,
}

impl ToolHost for QueuedHost {
    fn identity(&self) -> ServerIdentity {
        self.identity.clone()
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed) + self.view.revision()
    }

    fn open(&self, client: &Client) -> Arc<dyn ClientTools> {
        let session = self.view.session().is_none().then(|| {
            // Without random numbers the id is empty, which only makes the audit less useful.
            let id = random_bytes::<16>().map(|bytes| hex(&bytes)).unwrap_or_default();
            Arc::new(Session::new(&id, SessionLimits::default()))
        });
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let client = ServedClient { number, caller: client.caller().into(), session };
        Arc::new(QueuedClient { client, queue: self.queue.clone(), calls: AtomicU64::new(0) })
    }

    fn warn(&self, text: &str) {
        self.queue.complete(Message::Warning(text.to_owned()));
    }
}

/// The tools of a client: it passes all requests on.
struct QueuedClient {
    client: ServedClient,
    queue: Arc<Completer<Message>>,
    calls: AtomicU64,
}

impl Drop for QueuedClient {
    fn drop(&mut self) {
        if self.calls.load(Ordering::Relaxed) > 0 {
            self.queue.complete(Message::Gone(self.client.number));
        }
    }
}

impl ClientTools for QueuedClient {
    fn switches(&self) -> u64 {
        self.client.session.as_ref().map_or(0, |session| session.revision())
    }

    fn list(&self) -> BoxFuture<'static, Vec<Definition>> {
        let (reply, listed) = oneshot::channel();
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.queue.complete(Message::List(self.client.clone(), reply));
        // Without a reply the event loop is gone, and the server with it.
        async move { listed.await.unwrap_or_default() }.boxed()
    }

    fn call(&self, call: ServedCall) -> BoxStream<'static, ToolResponse> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (sender, responses) = mpsc::channel(BUFFERED_RESPONSES);
        self.calls.fetch_add(1, Ordering::Relaxed);
        let received = ReceivedCall { number, client: self.client.clone(), call, responses: sender };
        self.queue.complete(Message::Call(Box::new(received)));
        let open = OpenCall { number, responses, queue: self.queue.clone(), is_over: false };
        stream::unfold(open, OpenCall::next).boxed()
    }
}

/// A call whose responses are awaited.
struct OpenCall {
    number: u64,
    responses: mpsc::Receiver<ToolResponse>,
    queue: Arc<Completer<Message>>,
    is_over: bool,
}

impl OpenCall {
    async fn next(mut self) -> Option<(ToolResponse, Self)> {
        let response = self.responses.recv().await;
        self.is_over = response.is_none();
        response.map(|response| (response, self))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.complete(Message::Cancelled(self.number));
        }
    }
}

/// A server, and the async iterator of its calls. Dropping it ends the server.
#[pyclass(name = "_McpServer", module = "toolcrib._core", frozen)]
pub(super) struct PyMcpServer {
    /// The toolkit, view or session.
    tools: Py<PyAny>,
    deps: Option<Py<PyAny>>,
    /// The sessions of the clients that have one of their own, by the numbers of the clients.
    sessions: Mutex<HashMap<u64, Py<PySession>>>,
    /// Taken when the server starts.
    host: Mutex<Option<QueuedHost>>,
    /// Taken when the server is over.
    running: Mutex<Option<(Option<Task>, Completions<Message>)>>,
    stop: CancellationToken,
    generation: u64,
}

impl PyMcpServer {
    /// Starts the future of the server; its end is the last message.
    fn start<F>(&self, serve: impl FnOnce(QueuedHost, Arc<Completer<Message>>, CancellationToken) -> F) -> PyResult<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(host) = lock(&self.host).take() else {
            return Err(PyRuntimeError::new_err("the server was started before"));
        };
        let queue = host.queue.clone();
        let serving = serve(host, queue.clone(), self.stop.clone());
        let task = runtime::running(Lane::Tools)?.spawn_future(async move {
            serving.await;
            queue.complete(Message::Ended);
        });
        let task = task.map_err(|_| runtime::shutting_down())?;
        if let Some((running, _)) = &mut *lock(&self.running) {
            *running = Some(task);
        }
        Ok(())
    }

    /// The next message for the package: a call, the number of a call that was cancelled, or the address.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            // An event loop may run Python code while it makes a future, and that code may poll this server.
            let polled = match self.running.try_lock().as_deref() {
                Ok(None) => return Err(PyStopAsyncIteration::new_err(())),
                Ok(Some((_, messages))) => messages.poll(py)?,
                Err(_) => return Err(PyRuntimeError::new_err("the server is already awaited")),
            };
            let result = match polled {
                Polled::Wait(waiter) => return Ok(waiter),
                Polled::Value(Message::List(client, reply)) => {
                    // The request may have been cancelled meanwhile.
                    let _ = reply.send(self.list(py, &client)?);
                    continue;
                }
                Polled::Value(Message::Gone(client)) => {
                    let gone = lock(&self.sessions).remove(&client);
                    drop(gone);
                    continue;
                }
                Polled::Value(Message::Call(call)) => {
                    let tools = self.tools_of(py, &call.client)?;
                    match PyServedCall::new(py, *call, tools)? {
                        Some(call) => call.into_py_any(py)?,
                        None => continue,
                    }
                }
                Polled::Value(Message::Warning(text)) => {
                    log_warning(py, &text)?;
                    continue;
                }
                Polled::Value(Message::Cancelled(number)) => number.into_py_any(py)?,
                Polled::Value(Message::Listening(address)) => address?.to_string().into_py_any(py)?,
                Polled::Value(Message::Ended) | Polled::Ended => {
                    self.abandon();
                    return Err(PyStopAsyncIteration::new_err(()));
                }
            };
            return Err(PyStopIteration::new_err((result,)));
        }
    }

    /// The toolkit, view or session that a client calls.
    fn tools_of<'py>(&self, py: Python<'py>, client: &ServedClient) -> PyResult<Bound<'py, PyAny>> {
        let Some(core) = &client.session else { return Ok(self.tools.bind(py).clone()) };
        if let Some(known) = lock(&self.sessions).get(&client.number) {
            return Ok(known.bind(py).clone().into_any());
        }
        let deps = self.deps.as_ref().map(|deps| deps.clone_ref(py));
        let session = PySession::of_client(self.tools.bind(py), core.clone(), client.caller.clone(), deps)?;
        lock(&self.sessions).insert(client.number, session.clone().unbind());
        Ok(session.into_any())
    }

    fn list(&self, py: Python<'_>, client: &ServedClient) -> PyResult<Vec<Definition>> {
        match self.tools_of(py, client)?.cast::<PyToolkitView>() {
            Ok(view) => view.get().definitions(py),
            Err(_) => Ok(Vec::new()),
        }
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

#[pymethods]
impl PyMcpServer {
    #[new]
    fn new(
        py: Python<'_>,
        tools: Bound<'_, PyAny>,
        name: String,
        version: Option<String>,
        title: Option<String>,
        instructions: Option<String>,
        deps: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (toolkit, view) = if let Ok(toolkit) = tools.cast::<PyToolkit>() {
            (toolkit.clone(), View::default())
        } else if let Ok(view) = tools.cast::<PyToolkitView>() {
            (view.get().toolkit(py).clone(), view.get().selection().clone())
        } else {
            let class = tools.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("expected a Toolkit, ToolkitView or Session, got {class}")));
        };
        let (queue, messages) = completions(py)?;
        let version = version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        let host = QueuedHost {
            queue: Arc::new(queue),
            identity: ServerIdentity { name, version, title, instructions },
            revision: toolkit.get().with_registry(Registry::shared_revision),
            view,
            numbers: AtomicU64::new(0),
        };
        Ok(Self {
            tools: tools.unbind(),
            deps,
            sessions: Mutex::default(),
            host: Mutex::new(Some(host)),
            running: Mutex::new(Some((None, messages))),
            stop: CancellationToken::new(),
            generation: runtime::generation(),
        })
    }

    /// Serve one client on standard input and output, as they are now.
    fn serve_stdio(&self) -> PyResult<()> {
        let server = StdioServer::open()?;
        self.start(move |host, _, stop| async move {
            // A thread that cannot be started is the end, too.
            let _ = server.serve(host, stop).await;
        })
    }

    /// Serve clients over HTTP. The first item of the iterator is the address.
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn serve_http(
        &self,
        host: String,
        port: u16,
        path: String,
        token: Option<String>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
        max_sessions: usize,
        max_connections: usize,
        session_timeout: f64,
    ) -> PyResult<()> {
        let session_timeout = Duration::try_from_secs_f64(session_timeout)
            .ok()
            .filter(|timeout| !timeout.is_zero())
            .ok_or_else(|| crate::Error::InvalidServerOption {
                option: "session_timeout",
                reason: "expected a positive number of seconds".to_owned(),
            })?;
        let options = HttpOptions {
            host,
            port,
            path,
            token,
            allowed_hosts,
            allowed_origins,
            max_sessions,
            max_connections,
            session_timeout,
        };
        self.start(move |host, queue, stop| async move {
            match HttpServer::bind(options).await {
                Err(error) => queue.complete(Message::Listening(Err(error))),
                Ok(server) => {
                    queue.complete(Message::Listening(Ok(server.address())));
                    server.serve(host, stop).await;
                }
            }
        })
    }

    /// End the server: the iterator ends when all calls are cancelled and all connections are closed.
    fn stop(&self) {
        if self.generation == runtime::generation() {
            self.stop.cancel();
        }
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Wait for the next message.
    fn __anext__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tools)?;
        visit.call(&self.deps)?;
        let Ok(sessions) = self.sessions.try_lock() else { return Ok(()) };
        sessions.values().try_for_each(|session| visit.call(session))
    }

    fn __clear__(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        drop(sessions);
    }
}

await_itself!(PyMcpServer);

impl Drop for PyMcpServer {
    fn drop(&mut self) {
        self.abandon();
    }
}
