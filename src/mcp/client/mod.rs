//! The client: a connection to an MCP server, and its tools as native tools.
//!
//! Read it in this order:
//!
//! 1. `target`: [`Target`], the command or URL of a server, and configuration files;
//! 2. this file: [`Client`], its options and errors; `shared`: its state, which connects, connects again, and lists;
//! 3. `connection`: one connection; `greeting` decides the version of the protocol; `stdio`, with `process`, and `http`, with `address`,
//!    are the transports;
//! 4. `message`: from bytes to messages; `routes`: the calls in flight, and the messages that belong to them; `strays`: the messages
//!    that are dropped; `answer`: the requests of the server;
//! 5. `tools`: the list of tools and its changes;
//! 6. `call`: one call; `content`: its result as a response.

mod address;
mod answer;
mod call;
mod connection;
mod content;
mod greeting;
mod http;
mod message;
mod process;
mod routes;
mod shared;
mod stdio;
mod strays;
mod target;
mod tools;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub use target::{CommandTarget, HttpTarget, InvalidTarget, Target, read_config};

use self::call::Call;
use super::{Definition, Digest};
use crate::call::ToolResponse;
use crate::native::{NativeTool, ToolContext, ToolError};
use crate::sync::{lock, read};
use connection::Endpoint;
use http::HttpEndpoint;
use shared::{Shared, State};
use tools::Entry;

/// The function that answers the `sampling/createMessage` requests of a server. It gets the context of the call that the
/// request belongs to and the request's parameters, and returns a `CreateMessageResult` or the reason of a refusal.
pub type Sampler = Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The function that is called with a warning, for example that a message of the server cannot be read. It must not block.
pub type WarningHandler = Arc<dyn Fn(String) + Send + Sync>;

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
    /// Maximum number of questions to the user and requests for a model that the server may send in one call.
    pub max_requests: usize,
    /// The function that is called with warnings, a few in a minute. They are also events of `tracing`.
    pub on_warning: Option<WarningHandler>,
}

/// The treatment of bytes that are not UTF-8 in a message of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingErrors {
    /// The message cannot be read, and a call that it answers fails.
    Strict,
    /// The bytes are left out.
    Ignore,
    /// The bytes are replaced by U+FFFD.
    #[default]
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
            max_requests: 64,
            on_warning: None,
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
            .field("max_requests", &self.max_requests)
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
    /// True if structured content stays text in [`ToolResponse::late`], which takes much less memory than values.
    pub late: bool,
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
    /// The position in the server's list, from 1.
    pub position: usize,
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
        Ok(Self { shared: Arc::new(Shared::new(name, endpoint, options)) })
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
        let connection = self.shared.connection_in_time().await?;
        match self.shared.list_on(&connection).await {
            // The connection was dead; a list can be asked for twice.
            Err(_) if !connection.is_alive() && !self.shared.options.stateless => {
                self.shared.list_on(&self.shared.connection_in_time().await?).await
            }
            listed => listed,
        }
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

    /// The digest of a tool in the last list.
    #[must_use]
    pub fn digest(&self, tool: &str) -> Option<Digest> {
        self.shared.entry(tool).map(|entry| entry.digest)
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
        self.shared.strays.count()
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
        // A digest takes longer than the rest of a tool.
        let listed = shared.entry(&definition.name).filter(|entry| Arc::ptr_eq(&entry.definition, &definition));
        let pin = listed.unwrap_or_else(|| Arc::new(Entry::new(definition)));
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
pub fn response_of(client: &str, result: &Value, definition: Definition) -> ToolResponse {
    content::response(client, &result.to_string(), Some(&Entry::new(Arc::new(definition))), false)
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_connected = self.is_connected();
        formatter.debug_struct("Client").field("name", &self.shared.name).field("is_connected", &is_connected).finish()
    }
}
