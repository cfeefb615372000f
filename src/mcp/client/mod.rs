//! The client: a connection to an MCP server, and its tools as native tools.
//!
//! Read it in this order:
//!
//! 1. `target`: [`Target`], the command or URL of a server, and configuration files;
//! 2. this file: [`Client`], which connects, connects again, and lists;
//! 3. `connection`: one connection, from its greeting to its end; `stdio` and `http` are its transports;
//! 4. `routes`: the calls in flight, and the messages that belong to them; `answer`: the requests of the server;
//! 5. `tools`: the list of tools and its changes;
//! 6. `call`: one call; `content`: its result as a response.

mod answer;
mod call;
mod connection;
mod content;
mod http;
mod routes;
mod stdio;
mod target;
mod tools;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

pub use target::{CommandTarget, HttpTarget, InvalidTarget, Target, read_config};

use self::call::Call;
use super::Definition;
use crate::call::ToolResponse;
use crate::native::{NativeTool, ToolContext, ToolError};
use crate::sync::{lock, read, write};
use connection::{Connection, Endpoint, Failure, Greeting, ListState};
use http::HttpEndpoint;
use tools::{Catalogue, Entry, Unlisted};

/// The pause before a broken connection is made again: it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The function that answers the `sampling/createMessage` requests of a server. It gets the context of the call that the
/// request belongs to and the request's parameters, and returns a `CreateMessageResult` or the reason of a refusal.
pub type Sampler = Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The options of a client.
#[derive(Clone)]
pub struct ClientOptions {
    /// The longest time to start and greet the server.
    pub connect_timeout: Duration,
    /// The longest time of a call that has no other limit.
    pub call_timeout: Duration,
    /// True if each list and each call has a connection of its own.
    pub stateless: bool,
    /// The function that answers requests for a model; without one they are refused.
    pub sampler: Option<Sampler>,
    /// The longest message of the server, in bytes.
    pub max_frame: usize,
    /// The treatment of bytes that are not UTF-8 in messages.
    pub encoding_errors: EncodingErrors,
}

/// The treatment of bytes that are not UTF-8 in a message of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingErrors {
    /// The message is dropped.
    #[default]
    Strict,
    /// The bytes are replaced by U+FFFD.
    Replace,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            stateless: false,
            sampler: None,
            max_frame: 16 << 20,
            encoding_errors: EncodingErrors::default(),
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("stateless", &self.stateless)
            .field("max_frame", &self.max_frame)
            .field("encoding_errors", &self.encoding_errors)
            .finish_non_exhaustive()
    }
}

/// The options of a call, or of all calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// The longest time of the call; by default [`ClientOptions::call_timeout`].
    pub timeout: Option<Duration>,
    /// True if the whole `CallToolResult` is the value in the metadata of the response.
    pub raw: bool,
}

/// An error of a client.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The target cannot be used.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The client is already connected.
    #[error("the client of MCP server `{server}` is already connected")]
    AlreadyConnected {
        /// The name of the client.
        server: String,
    },
    /// The client is not connected.
    #[error("the client of MCP server `{server}` is not connected")]
    NotConnected {
        /// The name of the client.
        server: String,
    },
    /// The connection failed, or broke.
    #[error("MCP server `{server}`: {reason}")]
    Connection {
        /// The name of the client.
        server: String,
        /// The reason, with the exit status and the last lines of the server's log.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("MCP server `{server}` did not answer within {seconds} seconds")]
    Timeout {
        /// The name of the client.
        server: String,
        /// The time limit.
        seconds: f64,
    },
    /// The server answered with an error.
    #[error("MCP server `{server}` answered with error {code}: {message}")]
    Answered {
        /// The name of the client.
        server: String,
        /// The code of JSON-RPC.
        code: i32,
        /// The message.
        message: String,
    },
    /// The server's list of tools is invalid as a whole.
    #[error("invalid list of tools of MCP server `{server}`: {reason}")]
    InvalidList {
        /// The name of the client.
        server: String,
        /// The mistake.
        reason: String,
    },
}

/// Facts that a server states about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name for people.
    pub title: Option<String>,
    /// The instructions for models.
    pub instructions: Option<String>,
    /// The version of the protocol that both sides speak.
    pub protocol_version: String,
    /// The capabilities.
    pub capabilities: Value,
}

/// The tools of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedTools {
    /// The valid definitions, in the order of the server.
    pub tools: Vec<Arc<Definition>>,
    /// The definitions that were skipped.
    pub problems: Vec<SkippedTool>,
}

/// A definition that was skipped because it is invalid or a duplicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedTool {
    /// The name, if it has one.
    pub tool: Option<String>,
    /// The mistake.
    pub reason: String,
}

/// A client of one MCP server. Cloning is cheap, and clones share the connection.
///
/// A connection that breaks is made again for the next call, with growing pauses. A call is never sent twice.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// The state that the clones of a client share.
struct Shared {
    name: Arc<str>,
    endpoint: Endpoint,
    options: ClientOptions,
    state: Mutex<State>,
    /// Held while a connection is made.
    connecting: Arc<tokio::sync::Mutex<()>>,
    catalogue: RwLock<Option<Arc<Catalogue>>>,
    changes: watch::Sender<u64>,
    strays: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    /// True between `connect` and `close`.
    is_open: bool,
    /// Number of times that the client was closed: a connection that was begun before is not used.
    closed: u64,
    connection: Option<Arc<Connection>>,
    info: Option<ServerInfo>,
    greeting: Option<Greeting>,
    /// Number of failures since the last success.
    failures: u32,
    next_try: Option<Instant>,
    /// The reason of the last failure.
    reason: String,
}

impl State {
    /// The connection, if it can be used.
    fn alive(&self) -> Option<Arc<Connection>> {
        self.connection.clone().filter(|connection| connection.is_alive())
    }

    fn back_off(&mut self, reason: &str) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(MAX_PAUSE);
        self.failures += 1;
        self.next_try = Some(Instant::now() + pause);
        reason.clone_into(&mut self.reason);
    }
}

impl Client {
    /// Makes a client. It connects with [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// [`ClientError::Target`] if the target cannot be used.
    pub fn new(name: &str, target: Target, options: ClientOptions) -> Result<Self, ClientError> {
        let endpoint = match target {
            Target::Command(target) => Endpoint::Command(target),
            Target::Http(target) => Endpoint::Http(HttpEndpoint::new(&target, options.max_frame)?),
        };
        let shared = Shared {
            name: name.into(),
            endpoint,
            options,
            state: Mutex::default(),
            connecting: Arc::default(),
            catalogue: RwLock::default(),
            changes: watch::Sender::default(),
            strays: Arc::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The name of the client.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// True between [`connect`](Self::connect) and [`close`](Self::close), also while a broken connection is made again.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        lock(&self.shared.state).is_open
    }

    /// Connects to the server. The connection runs in the tokio runtime of this call.
    ///
    /// A stateless client needs no connection; it learns the facts of the server and closes this one.
    ///
    /// # Errors
    ///
    /// [`ClientError::AlreadyConnected`], or the reason of a failure.
    pub async fn connect(&self) -> Result<ServerInfo, ClientError> {
        let shared = &self.shared;
        let _turn = shared.connecting.lock().await;
        let is_connected = {
            let state = lock(&shared.state);
            state.is_open && (shared.options.stateless || state.alive().is_some())
        };
        if is_connected {
            return Err(ClientError::AlreadyConnected { server: shared.name.to_string() });
        }
        let connection = shared.open(true).await?;
        Ok(connection.info.clone())
    }

    /// Closes the connection and ends the server's process with its descendants. It may be called from any task, and the
    /// client can connect again.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotConnected`] if it is not connected.
    pub async fn close(&self) -> Result<(), ClientError> {
        let connection = {
            let mut state = lock(&self.shared.state);
            if !state.is_open {
                return Err(self.shared.not_connected());
            }
            let State { closed, connection, info, greeting, .. } = std::mem::take(&mut *state);
            *state = State { closed: closed + 1, info, greeting, ..State::default() };
            connection
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
        Ok(())
    }

    /// Lists the tools and remembers them.
    ///
    /// # Errors
    ///
    /// The reason why there is no list.
    pub async fn list_tools(&self) -> Result<Arc<ListedTools>, ClientError> {
        let limit = self.shared.options.connect_timeout;
        let deadline = Instant::now() + limit;
        let connecting = timeout_at(deadline, self.shared.connection(deadline)).await;
        let connection = connecting.unwrap_or_else(|_| Err(self.shared.timed_out(limit)))?;
        self.shared.list_on(&connection).await
    }

    /// The definition of a tool in the last list.
    #[must_use]
    pub fn known(&self, tool: &str) -> Option<Arc<Definition>> {
        self.shared.entry(tool).map(|entry| entry.definition.clone())
    }

    /// The last list; none before the first.
    #[must_use]
    pub fn listed(&self) -> Option<Arc<ListedTools>> {
        read(&self.shared.catalogue).as_ref().map(|catalogue| catalogue.listed.clone())
    }

    /// A counter that goes up when a list has other definitions than the list before it.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// The facts that the server stated about itself when the client last connected.
    #[must_use]
    pub fn server_info(&self) -> Option<ServerInfo> {
        lock(&self.shared.state).info.clone()
    }

    /// The number of messages of the server that were dropped: not JSON, not of the protocol, or answers to no request.
    #[must_use]
    pub fn stray_messages(&self) -> u64 {
        self.shared.strays.load(Ordering::Relaxed)
    }

    /// Calls a tool. The call starts when the stream is first polled, inside a tokio runtime; dropping the stream cancels it.
    ///
    /// The last response is the result. Every failure is a response with a code.
    pub fn call(
        &self,
        tool: &str,
        context: ToolContext,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> impl Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static + use<> {
        Call::new(self.shared.clone(), tool, context, arguments, options, None).stream()
    }

    /// Makes a native tool of a definition, under a name in the toolkit. It runs only while the server's definition is the
    /// same.
    #[must_use]
    pub fn tool(&self, name: &str, definition: Arc<Definition>, options: CallOptions) -> NativeTool {
        let shared = self.shared.clone();
        let description = definition.description.clone().unwrap_or_default();
        let parameters = Value::Object(definition.input_schema.clone());
        let pin = Arc::new(Entry::new(definition));
        NativeTool::described(name, &description, parameters, move |context, arguments| {
            let pin = pin.clone();
            Call::new(shared.clone(), &pin.definition.name.clone(), context, arguments, options, Some(pin)).stream()
        })
    }
}

/// The reason of the quarantine of a tool whose server has changed its definition.
#[must_use]
pub fn redefined(client: &str) -> String {
    format!("the MCP server of '{client}' has changed its definition")
}

/// The response for a `CallToolResult` that another client has received; `definition` is that of the tool.
#[must_use]
pub fn response_of(client: &str, result: Value, definition: Definition) -> ToolResponse {
    content::response(client, result, Some(&Entry::new(Arc::new(definition))), false)
}

impl Shared {
    fn not_connected(&self) -> ClientError {
        ClientError::NotConnected { server: self.name.to_string() }
    }

    fn failed(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Connection { server: self.name.to_string(), reason: reason.into() }
    }

    /// The tool in the last list.
    fn entry(&self, tool: &str) -> Option<Arc<Entry>> {
        read(&self.catalogue).as_ref()?.entries.get(tool).cloned()
    }

    fn timed_out(&self, limit: Duration) -> ClientError {
        ClientError::Timeout { server: self.name.to_string(), seconds: limit.as_secs_f64() }
    }

    /// The connection, made again if it broke. A stateless client has a new one for each use.
    ///
    /// The deadline is that of the caller, who gives up by dropping the future: it decides if the caller can wait for the next
    /// try.
    async fn connection(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Connection>, ClientError> {
        if self.options.stateless {
            return self.open(false).await;
        }
        if let Some(connection) = self.current()? {
            return Ok(connection);
        }
        let turn = self.connecting.clone().lock_owned().await;
        if let Some(connection) = self.current()? {
            return Ok(connection);
        }
        let (next_try, reason) = {
            let state = lock(&self.state);
            (state.next_try, state.reason.clone())
        };
        if let Some(next_try) = next_try {
            if next_try > deadline {
                let seconds = next_try.saturating_duration_since(Instant::now()).as_secs_f64();
                return Err(self.failed(format!("{reason}; the next try to connect is in {seconds:.1} seconds")));
            }
            sleep_until(next_try).await;
        }
        // A server may need more time to start than this caller has, so the connection is made for the next one too.
        let shared = self.clone();
        let opening = tokio::spawn(async move {
            let opened = shared.open(false).await;
            drop(turn);
            opened
        });
        opening.await.unwrap_or_else(|_| Err(self.failed("the runtime of the connection has ended")))
    }

    /// The connection, if it can be used.
    fn current(&self) -> Result<Option<Arc<Connection>>, ClientError> {
        let mut state = lock(&self.state);
        if !state.is_open {
            return Err(self.not_connected());
        }
        let alive = state.alive();
        if alive.is_none() && state.connection.take().is_some() {
            // Its task has not reported the loss yet.
            state.back_off("the connection was lost");
        }
        Ok(alive)
    }

    /// Makes a connection, and compares the tools with the list before. `by_user` is true for a new beginning.
    async fn open(self: &Arc<Self>, by_user: bool) -> Result<Arc<Connection>, ClientError> {
        let (closed, greeting) = {
            let state = lock(&self.state);
            (state.closed, state.greeting)
        };
        let limit = self.options.connect_timeout;
        let opening = Connection::open(&self.endpoint, &self.options, greeting, &self.strays);
        let opened = match timeout(limit, opening).await {
            Ok(opened) => opened.map_err(|reason| self.failed(reason)),
            Err(_) => Err(self.timed_out(limit)),
        };
        let opened = match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                let has_list = read(&self.catalogue).is_some();
                if has_list { self.list_on(&connection).await.map(|_| connection) } else { Ok(connection) }
            }
            Err(error) => Err(error),
        };
        let mut state = lock(&self.state);
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                // What was learned may be wrong by now.
                state.greeting = None;
                if !self.options.stateless {
                    match &error {
                        ClientError::Connection { reason, .. } => state.back_off(reason),
                        error => state.back_off(&error.to_string()),
                    }
                }
                return Err(error);
            }
        };
        state.greeting = Some(connection.greeting);
        state.info = Some(connection.info.clone());
        if by_user {
            state.is_open = true;
        }
        if self.options.stateless {
            return Ok(connection);
        }
        if state.closed != closed {
            return Err(self.not_connected());
        }
        state.next_try = None;
        state.connection = Some(connection.clone());
        drop(state);
        connection.runtime().spawn(tools::keep_current(Arc::downgrade(self), Arc::downgrade(&connection)));
        connection.runtime().spawn(tools::subscribe(Arc::downgrade(&connection)));
        Ok(connection)
    }

    /// Records that a connection was lost.
    fn lost(&self, connection: &Arc<Connection>, reason: &str) {
        connection.fail();
        let mut state = lock(&self.state);
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            state.back_off(reason);
        }
    }

    /// Records a call that went well.
    fn succeeded(&self) {
        lock(&self.state).failures = 0;
    }

    /// Lists the tools, and compares them with the list before.
    async fn list_on(&self, connection: &Arc<Connection>) -> Result<Arc<ListedTools>, ClientError> {
        let _turn = connection.listing.lock().await;
        let changes = connection.routes.changes();
        let limit = self.options.call_timeout;
        let listed = match timeout(limit, tools::list(connection)).await {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(Unlisted::Invalid(reason))) => {
                Err(ClientError::InvalidList { server: self.name.to_string(), reason })
            }
            Ok(Err(Unlisted::Failed(failure))) => Err(self.list_failed(connection, failure)),
            Err(_) => Err(self.timed_out(limit)),
        };
        let state =
            ListState { changes, is_listed: listed.is_ok(), problem: listed.as_ref().err().map(ToString::to_string) };
        let listed = listed.map(|listed| self.remember(listed));
        connection.list_state.send_replace(state);
        listed
    }

    fn list_failed(&self, connection: &Arc<Connection>, failure: Failure) -> ClientError {
        match failure {
            Failure::Answered(error) => ClientError::Answered {
                server: self.name.to_string(),
                code: error.code.0,
                message: error.message.into_owned(),
            },
            Failure::Refused(reason) => self.failed(reason),
            Failure::Unsent => {
                self.lost(connection, "the server closed the connection");
                self.failed("the server closed the connection")
            }
            Failure::Lost(reason) => {
                self.lost(connection, &reason);
                self.failed(reason)
            }
        }
    }

    fn remember(&self, listed: ListedTools) -> Arc<ListedTools> {
        let mut catalogue = write(&self.catalogue);
        let fresh = Catalogue::of(listed, catalogue.as_deref());
        let is_changed = catalogue.as_ref().is_some_and(|before| !before.equals(&fresh));
        let listed = fresh.listed.clone();
        *catalogue = Some(Arc::new(fresh));
        drop(catalogue);
        if is_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        listed
    }

    /// Waits until the list of tools includes every change that the server has reported on this connection.
    async fn bring_up_to_date(&self, connection: &Arc<Connection>) -> Result<(), String> {
        let changes = connection.routes.changes();
        if read(&self.catalogue).is_none() || self.options.stateless && !connection.list_state.borrow().is_listed {
            return self.list_on(connection).await.map(drop).map_err(|error| error.to_string());
        }
        if changes == 0 {
            return Ok(());
        }
        let mut state = connection.list_state.subscribe();
        let is_listed = async {
            let state = state.wait_for(|state| state.changes >= changes).await;
            state.map(|state| state.problem.clone()).unwrap_or_default()
        };
        let problem = tokio::select! {
            problem = is_listed => problem,
            () = connection.routes.lost.cancelled() => Some(connection.describe_end().await),
        };
        problem.map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_connected = self.is_connected();
        formatter.debug_struct("Client").field("name", &self.shared.name).field("is_connected", &is_connected).finish()
    }
}
