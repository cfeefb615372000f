//! The server that a client connects to: a command to start, or a URL; and the configuration files that name them.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

/// The server that a client connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program that is started, and speaks over its standard input and output.
    Command(CommandTarget),
    /// A server that speaks streamable HTTP.
    Http(HttpTarget),
}

/// A program that is a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTarget {
    /// The program, found through `PATH` if it has no slash. It is never run by a shell.
    pub program: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Variables that are added to the few that the program inherits, such as `PATH` and `HOME`.
    pub env: Vec<(String, String)>,
    /// The working folder; by default that of this process.
    pub cwd: Option<PathBuf>,
}

/// A server with a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// The URL: `https`, or `http` for a host of this machine.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The token of the `Authorization` header.
    pub bearer: Option<String>,
    /// The longest time to make a TCP and TLS connection.
    pub connect_timeout: Duration,
    /// The longest silence while a response is read.
    pub read_timeout: Duration,
    /// True if the host may have an address of a private network, and may be spoken to without TLS.
    pub allow_private_addresses: bool,
}

/// The reason why a target or a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// The text is neither a URL nor a command.
    #[error("invalid target: {reason}")]
    Text {
        /// The mistake.
        reason: String,
    },
    /// An entry of a configuration is invalid.
    #[error("invalid configuration of MCP server `{server}`: `{key}` {reason}")]
    Entry {
        /// The name of the server.
        server: String,
        /// The key.
        key: String,
        /// The mistake.
        reason: String,
    },
    /// The configuration is invalid as a whole.
    #[error("invalid configuration of MCP servers: {reason}")]
    Config {
        /// The mistake.
        reason: String,
    },
}

impl CommandTarget {
    /// Makes a target of a program without arguments.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None }
    }
}

impl HttpTarget {
    /// Makes a target of a URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            bearer: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(300),
            allow_private_addresses: false,
        }
    }
}

impl Target {
    /// Reads a URL, or a command line that is split into words as a POSIX shell does. No shell runs it: variables, globs and
    /// operators have no meaning.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget::Text`] for an empty text or an open quotation mark.
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        todo!("{text}")
    }
}

/// Reads the `mcpServers` of a configuration, by name.
///
/// # Errors
///
/// [`InvalidTarget`] names the server and the key.
pub fn read_config(config: &Value) -> Result<IndexMap<String, Target>, InvalidTarget> {
    todo!("{config}")
}
