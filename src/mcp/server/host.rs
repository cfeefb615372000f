//! The tools behind a server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};

use crate::call::ToolResponse;
use crate::json::invisible::is_invisible;
use crate::mcp::Definition;
use crate::native::{Asker, Logger};
use crate::trace::TraceContext;

/// The name and the description of a server, as its clients are shown them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name.
    pub name: String,
    /// The version of the server, not of the protocol.
    pub version: String,
    /// The name for people.
    pub title: Option<String>,
    /// The instructions for the model, on how to use the tools together.
    pub instructions: Option<String>,
}

impl ServerIdentity {
    /// Makes an identity without title and instructions.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), title: None, instructions: None }
    }
}

/// A client, as it introduces itself. Nothing of it is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// The name of the program.
    pub name: Option<String>,
    /// The version of the program.
    pub version: Option<String>,
}

/// The longest name of a client that becomes part of a caller, in characters.
const LONGEST_NAME: usize = 64;

impl Client {
    /// The caller of its calls, for rules and audits: `mcp:` and the name of the program.
    ///
    /// The prefix keeps a client from taking the name of a caller of the program itself.
    #[must_use]
    pub fn caller(&self) -> String {
        let shown = |letter: &char| !is_invisible(*letter) && !letter.is_whitespace();
        let name: String = self.name.iter().flat_map(|name| name.chars()).filter(shown).take(LONGEST_NAME).collect();
        if name.is_empty() { "mcp".to_owned() } else { format!("mcp:{name}") }
    }
}

/// A call of a client.
#[derive(Debug)]
pub struct ServedCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments, unchecked.
    pub arguments: Map<String, Value>,
    /// The id of the request, unique among the open requests of its client.
    pub id: String,
    /// The `_meta` of the request.
    pub meta: Map<String, Value>,
    /// The span of the client's trace that the call belongs to.
    pub trace: Option<TraceContext>,
    /// The inputs that the client can give.
    pub abilities: ClientAbilities,
    /// The asker for questions of the tool, if the client can answer any.
    pub asker: Option<Asker>,
    /// The logger for messages to the client, if it takes any.
    pub logger: Option<Logger>,
}

/// The inputs that a client can give in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientAbilities {
    /// True if it shows forms to its user, which is called elicitation.
    pub forms: bool,
    /// True if it has a model that answers requests, which is called sampling.
    pub model: bool,
    /// True if these requests may have tools.
    pub model_with_tools: bool,
}

impl ClientAbilities {
    /// True if there are any.
    #[must_use]
    pub fn any(self) -> bool {
        self.forms || self.model
    }
}

/// The tools behind a server. Its methods must not block.
pub trait ToolHost: Send + Sync + 'static {
    /// The name and the description of the server.
    fn identity(&self) -> ServerIdentity;

    /// A number that changes whenever the list of tools may have changed for all clients. It is read several times a second
    /// instead of being sent, so that a change costs the host nothing.
    fn revision(&self) -> u64;

    /// Begins the session of a client, which ends when the result is dropped.
    fn open(&self, client: &Client) -> Arc<dyn ClientTools>;

    /// Reports a mistake of the developer that only the client would see.
    fn warn(&self, text: &str) {
        tracing::warn!(target: "toolcrib", "{text}");
    }
}

/// The tools of a server in the session of one client.
pub trait ClientTools: Send + Sync + 'static {
    /// A number that changes whenever the list of tools may have changed for this client only; zero before the first change.
    fn switches(&self) -> u64;

    /// The tools that the client may call.
    fn list(&self) -> BoxFuture<'static, Vec<Definition>>;

    /// Calls a tool. The last response is the result. Dropping the stream cancels the tool.
    fn call(&self, call: ServedCall) -> BoxStream<'static, ToolResponse>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_take_the_name_of_another_caller() {
        let client = |name: &str| Client { name: Some(name.to_owned()), version: None };

        assert_eq!(client("admin").caller(), "mcp:admin");
        assert_eq!(client("a\nd\u{0} m\u{202e}i\u{200b}n").caller(), "mcp:admin");
        assert_eq!(client("\u{7}").caller(), "mcp");
        assert_eq!(client(&"x".repeat(1000)).caller().len(), 4 + 64);
    }
}
