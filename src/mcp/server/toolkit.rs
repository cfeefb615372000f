//! The host for a native toolkit.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, future};
use serde_json::{Map, Value};

use super::host::{Client, ClientTools, ServedCall, ServerIdentity, ToolHost};
use crate::bytes::{hex, random_bytes};
use crate::call::{ToolCall, ToolResponse};
use crate::mcp::Definition;
use crate::native::{NativeTool, Toolkit};
use crate::provider::{Dialect, mcp_definition};
use crate::registry::{Session, SessionLimits};

/// A native toolkit behind a server.
///
/// Every client has a session of its own: groups that one client switches stay as they are for the others. If the toolkit is
/// one of a session already, all clients share that session.
#[derive(Debug, Clone)]
pub struct ServedToolkit {
    toolkit: Toolkit,
    identity: ServerIdentity,
}

impl ServedToolkit {
    /// Makes the host of a toolkit or of one of its views.
    #[must_use]
    pub fn new(toolkit: Toolkit, identity: ServerIdentity) -> Self {
        Self { toolkit, identity }
    }
}

impl ToolHost for ServedToolkit {
    fn identity(&self) -> ServerIdentity {
        self.identity.clone()
    }

    fn revision(&self) -> u64 {
        self.toolkit.revision()
    }

    fn open(&self, client: &Client) -> Arc<dyn ClientTools> {
        if self.toolkit.current_session().is_some() {
            return Arc::new(ToolkitOfClient { toolkit: self.toolkit.clone(), session: None });
        }
        // Without random numbers the id is empty, which only makes the audit less useful.
        let id = random_bytes::<16>().map(|bytes| hex(&bytes)).unwrap_or_default();
        let session = Arc::new(Session::new(&id, SessionLimits::default()));
        let caller = self.toolkit.caller().is_none().then(|| client.caller());
        let toolkit = self.toolkit.session(session.clone(), caller.as_deref());
        Arc::new(ToolkitOfClient { toolkit, session: Some(session) })
    }
}

struct ToolkitOfClient {
    toolkit: Toolkit,
    /// The session, if no other client shares it.
    session: Option<Arc<Session>>,
}

impl ClientTools for ToolkitOfClient {
    fn switches(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.revision())
    }

    fn list(&self) -> BoxFuture<'static, Vec<Definition>> {
        let definitions = self.toolkit.tools().iter().filter_map(definition).collect();
        future::ready(definitions).boxed()
    }

    fn call(&self, call: ServedCall) -> BoxStream<'static, ToolResponse> {
        let ServedCall { name, arguments, id, asker, logger, trace, .. } = call;
        let (name, arguments) = self.translated(name, arguments);
        let call = ToolCall { id: Some(id), ..ToolCall::new(name, arguments) };
        let mut toolkit = self.toolkit.clone();
        if let Some(asker) = asker {
            toolkit = toolkit.asking(asker);
        }
        if let Some(logger) = logger {
            toolkit = toolkit.logging(logger);
        }
        if let Some(trace) = trace {
            toolkit = toolkit.traced(trace);
        }
        toolkit.call(call).boxed()
    }
}

impl ToolkitOfClient {
    /// The name and the arguments as the toolkit has them: a client is shown both as the protocol allows them.
    fn translated(&self, name: String, arguments: Map<String, Value>) -> (String, Map<String, Value>) {
        let tool = self.toolkit.find(&name).or_else(|| {
            let is_shown_as = |tool: &NativeTool| Dialect::Mcp.tool_name(tool.name()) == name;
            self.toolkit.tools().into_iter().find(is_shown_as)
        });
        let Some(tool) = tool else { return (name, arguments) };
        let name = tool.name().to_owned();
        if tool.schema().parameters().value().get("type") == Some(&Value::from("object")) {
            return (name, arguments);
        }
        match Dialect::Mcp.encode(tool.schema().parameters()).codec.decode(Value::Object(arguments.clone())) {
            Ok(Value::Object(decoded)) => (name, decoded),
            // The check of the arguments reports what is wrong with them.
            _ => (name, arguments),
        }
    }
}

/// A tool as the protocol describes it.
fn definition(tool: &NativeTool) -> Option<Definition> {
    let declared = mcp_definition(tool.name(), tool.schema(), tool.output_schema(), tool.kind());
    Definition::read(&declared.value).ok()
}
