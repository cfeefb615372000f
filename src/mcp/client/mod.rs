//! The client: a connection to an MCP server, and its tools as native tools.
//!
//! Read it in this order:
//!
//! 1. `target`: [`Target`], the command or URL of a server, and configuration files.

mod target;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub use target::{CommandTarget, HttpTarget, InvalidTarget, Target, read_config};

use super::Definition;
use crate::call::ToolResponse;
use crate::native::{NativeTool, ToolContext, ToolError};

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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
        seconds: String,
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
#[derive(Clone)]
pub struct Client {
    name: Arc<str>,
}

impl Client {
    /// Makes a client. It connects with [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// [`ClientError::Target`] if the target cannot be used.
    pub fn new(name: &str, target: Target, options: ClientOptions) -> Result<Self, ClientError> {
        let _ = (target, options);
        Ok(Self { name: name.into() })
    }

    /// The name of the client.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True between [`connect`](Self::connect) and [`close`](Self::close), also while a broken connection is made again.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        todo!()
    }

    /// Connects to the server. The connection runs in the tokio runtime of this call.
    ///
    /// # Errors
    ///
    /// [`ClientError::AlreadyConnected`], or the reason of a failure.
    pub async fn connect(&self) -> Result<ServerInfo, ClientError> {
        todo!()
    }

    /// Closes the connection and ends the server's process with its descendants. It may be called from any task, and the
    /// client can connect again.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotConnected`] if it is not connected.
    pub async fn close(&self) -> Result<(), ClientError> {
        todo!()
    }

    /// Lists the tools and remembers them.
    ///
    /// # Errors
    ///
    /// The reason why there is no list.
    pub async fn list_tools(&self) -> Result<Arc<ListedTools>, ClientError> {
        todo!()
    }

    /// The definition of a tool in the last list.
    #[must_use]
    pub fn known(&self, tool: &str) -> Option<Arc<Definition>> {
        todo!("{tool}")
    }

    /// A counter that goes up when a list has other definitions than the list before it.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        todo!()
    }

    /// The facts that the server stated about itself when the client connected.
    #[must_use]
    pub fn server_info(&self) -> Option<ServerInfo> {
        todo!()
    }

    /// The number of messages of the server that were dropped: not JSON, not of the protocol, or answers to no request.
    #[must_use]
    pub fn stray_messages(&self) -> u64 {
        todo!()
    }

    /// Calls a tool. The call starts when the stream is first polled, inside a tokio runtime; dropping the stream cancels it.
    pub fn call(
        &self,
        tool: &str,
        context: ToolContext,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> impl Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static + use<> {
        let _ = (tool, context, arguments, options);
        stream::empty()
    }

    /// Makes a native tool of a definition, under a name in the toolkit. It runs only while the server's definition is the
    /// same.
    #[must_use]
    pub fn tool(&self, name: &str, definition: Arc<Definition>, options: CallOptions) -> NativeTool {
        let (client, description) = (self.clone(), definition.description.clone().unwrap_or_default());
        let parameters = Value::Object(definition.input_schema.clone());
        NativeTool::described(name, &description, parameters, move |context, arguments| {
            client.call(&definition.name, context, arguments, options)
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}
