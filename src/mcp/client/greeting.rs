//! The greeting of a server, which decides the version of the protocol.
//!
//! The newest version has no handshake: `server/discover` asks for the server's facts. Older servers know only `initialize`.
//! rmcp could decide by itself, but waits ten seconds for a silent server, gives up at an unexpected answer, and takes a late
//! answer to the first question for one to the second. So the greeting is here, and rmcp begins after it.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientNotification, ClientRequest, DiscoverRequest, DiscoverRequestParams,
    DiscoverResult, ErrorData, Implementation, InitializeRequest, InitializeResult, InitializedNotification,
    JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject, ServerPeerInfo,
};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::time::timeout;

use super::http::text_of;
use super::message::{self, text_of_result};
use super::routes::Tap;
use super::{ClientOptions, ServerInfo};
use crate::mcp::outline::MAX_TREE;

/// The ids of the greeting. rmcp counts from 0.
pub(super) const DISCOVER_ID: RequestId = RequestId::Number(2_000_000_001);
const INITIALIZE_ID: RequestId = RequestId::Number(2_000_000_002);
/// The way in which a server is greeted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    Discover,
    Initialize,
}

/// The reason why a greeting failed.
pub(super) enum Ungreeted {
    Lost,
    Because(String),
}

/// The facts that the client states about itself.
pub(super) fn client_config(options: &ClientOptions) -> ClientConfig {
    let mut capabilities = json!({"elicitation": {"form": {}}});
    if options.sampler.is_some() {
        capabilities["sampling"] = json!({});
    }
    let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
    let client = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
}

pub(super) fn server_info(info: &ServerPeerInfo) -> ServerInfo {
    let server = info.server_info.as_ref();
    ServerInfo {
        name: server.map(|server| server.name.clone()).unwrap_or_default(),
        version: server.map(|server| server.version.clone()).unwrap_or_default(),
        title: server.and_then(|server| server.title.clone()),
        instructions: info.instructions.clone(),
        protocol_version: info.protocol_version.as_str().to_owned(),
        capabilities: serde_json::to_value(&info.capabilities).unwrap_or_default(),
    }
}

pub(super) enum Discovery {
    Modern(Box<ServerPeerInfo>),
    Older,
    Lost,
}

/// Asks a server for its facts, as the newest version does.
pub(super) async fn discover<T: Transport<RoleClient>>(
    tap: &mut Tap<T>,
    config: &ClientConfig,
    wait: Duration,
) -> Discovery {
    let (client, capabilities) = (config.client_info.clone(), config.capabilities.clone());
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    let meta = RequestMetaObject::with_client_context(ProtocolVersion::V_2026_07_28, client, capabilities);
    request.extensions.insert(meta);
    let probe = async {
        if tap.send(ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(request), DISCOVER_ID)).await.is_err()
        {
            return Discovery::Lost;
        }
        loop {
            match next_answer(tap, &DISCOVER_ID).await {
                Err(Ungreeted::Lost) => return Discovery::Lost,
                Err(Ungreeted::Because(_)) => return Discovery::Older,
                Ok((id, answer)) if id == DISCOVER_ID => {
                    return modern(answer).map_or(Discovery::Older, |info| Discovery::Modern(Box::new(info)));
                }
                Ok(_) => {}
            }
        }
    };
    timeout(wait, probe).await.unwrap_or(Discovery::Older)
}

/// Reads the answer to `server/discover`; none if the server does not speak the newest version.
fn modern(answer: Result<String, ErrorData>) -> Option<ServerPeerInfo> {
    let result: DiscoverResult = message::parse(&answer.ok()?, MAX_TREE).ok()?;
    let version = ProtocolVersion::V_2026_07_28;
    result.supported_versions.contains(&version).then(|| ServerPeerInfo::from_discover_result(version, result))
}

/// Greets a server as the versions before the newest do.
pub(super) async fn initialize<T: Transport<RoleClient>>(
    tap: &mut Tap<T>,
    config: &ClientConfig,
) -> Result<(ServerPeerInfo, Greeting), Ungreeted> {
    let unsent = |error: T::Error| Ungreeted::Because(text_of(&error));
    let request = ClientRequest::InitializeRequest(InitializeRequest::new(config.clone()));
    tap.send(ClientJsonRpcMessage::request(request, INITIALIZE_ID)).await.map_err(unsent)?;
    let mut late = None;
    let answer = loop {
        match next_answer(tap, &INITIALIZE_ID).await? {
            (INITIALIZE_ID, answer) => break answer,
            // A server that starts slowly.
            (DISCOVER_ID, answer) => late = modern(answer),
            _ => {}
        }
    };
    let result = match (answer, late) {
        (Ok(result), _) => result,
        (Err(_), Some(info)) => return Ok((info, Greeting::Discover)),
        (Err(error), None) => {
            return Err(Ungreeted::Because(format!(
                "the server answered with error {}: {}",
                error.code.0, error.message
            )));
        }
    };
    let result: InitializeResult = message::parse(&result, MAX_TREE).map_err(|error| {
        Ungreeted::Because(format!("the server answered `initialize` with an invalid result: {error}"))
    })?;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&result.protocol_version) {
        let version = result.protocol_version.as_str();
        return Err(Ungreeted::Because(format!("the server speaks an unknown version of the protocol: `{version}`")));
    }
    let initialized = ClientNotification::InitializedNotification(InitializedNotification::default());
    tap.send(ClientJsonRpcMessage::notification(initialized)).await.map_err(unsent)?;
    Ok((result.into(), Greeting::Initialize))
}

/// Waits for the next answer of the server, and drops other messages. A result is JSON text. It is an error if the answer to
/// `expected` cannot be read.
async fn next_answer<T: Transport<RoleClient>>(
    tap: &mut Tap<T>,
    expected: &RequestId,
) -> Result<(RequestId, Result<String, ErrorData>), Ungreeted> {
    let routes = tap.routes().clone();
    let next = async {
        loop {
            match tap.receive().await? {
                JsonRpcMessage::Response(response) => return Some((response.id, Ok(text_of_result(response.result)))),
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = error.id {
                        return Some((id, Err(error.error)));
                    }
                }
                JsonRpcMessage::Request(request) => routes.forget_inbound(&request.id),
                JsonRpcMessage::Notification(_) => {}
            }
        }
    };
    tokio::select! {
        biased;
        answer = next => answer.ok_or(Ungreeted::Lost),
        reason = routes.doubt(expected) => {
            Err(Ungreeted::Because(format!("the server's answer cannot be read: {reason}")))
        }
    }
}
