//! One connection: the greeting that decides the version of the protocol, the requests, and the end.
//!
//! The newest version has no handshake: `server/discover` asks for the server's facts. Older servers know only `initialize`.
//! rmcp could decide by itself, but waits ten seconds for a silent server, gives up at an unexpected answer, and takes a late
//! answer to the first question for one to the second. So the greeting is here, and rmcp begins after it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientConfig, ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult,
    DiscoverRequest, DiscoverRequestParams, DiscoverResult, ErrorData, Implementation, InitializeRequest,
    InitializeResult, InitializedNotification, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject,
    ServerPeerInfo, ServerRequest, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, serve_directly_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::Answerer;
use super::http::{HttpEndpoint, HttpError};
use super::routes::{Routes, Tap};
use super::stdio::{FrameRules, Process};
use super::target::CommandTarget;
use super::{ClientOptions, ServerInfo};

/// The ids of the greeting. rmcp counts from 0.
const DISCOVER_ID: RequestId = RequestId::Number(2_000_000_001);
const INITIALIZE_ID: RequestId = RequestId::Number(2_000_000_002);
/// The longest wait for an answer to `server/discover`, after which the server is taken for an older one.
const PROBE: Duration = Duration::from_secs(3);
/// The longest wait for the end of a connection.
const CLOSE: Duration = Duration::from_secs(10);

/// The place of a server.
pub(super) enum Endpoint {
    Command(CommandTarget),
    Http(HttpEndpoint),
}

/// The way in which a server is greeted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    Discover,
    Initialize,
}

/// A connection to a server. Dropping it closes it.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    pub(super) routes: Arc<Routes>,
    pub(super) info: ServerInfo,
    pub(super) greeting: Greeting,
    /// The runtime in which the connection runs.
    runtime: Handle,
    process: Option<Arc<Process>>,
    /// Cancelled to end the connection; rmcp cancels it at the end too.
    stop: CancellationToken,
    /// True if the client has closed the connection.
    is_closed: AtomicBool,
    /// Cancelled when the task of the connection has ended.
    ended: CancellationToken,
    /// True if the connection must not be used for new requests.
    failed: AtomicBool,
    /// Held while the tools are listed, so that a list never replaces a newer one.
    pub(super) listing: tokio::sync::Mutex<()>,
    /// The last list of this connection.
    pub(super) list_state: watch::Sender<ListState>,
}

/// The state of the last list of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct ListState {
    /// Number of reported changes that the list includes.
    pub(super) changes: u64,
    /// True if the tools were listed at least once.
    pub(super) is_listed: bool,
    /// The reason why the last list failed.
    pub(super) problem: Option<String>,
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server answered with an error.
    Answered(ErrorData),
    /// The connection broke, or the server is gone.
    Lost(String),
    /// The server has not received the request: its session has expired, or its process is gone.
    Unsent,
    /// The request failed, and the connection is good.
    Refused(String),
}

/// The reason why a greeting failed.
enum Ungreeted {
    Lost,
    Because(String),
}

impl Connection {
    /// Connects to a server, in the current tokio runtime. `known` is the greeting that worked before.
    pub(super) async fn open(
        endpoint: &Endpoint,
        options: &ClientOptions,
        known: Option<Greeting>,
        strays: &Arc<AtomicU64>,
    ) -> Result<Self, String> {
        let config = client_config(options);
        match endpoint {
            Endpoint::Command(target) => {
                let opened = Self::start(target, options, config.clone(), known, strays).await;
                match opened {
                    // Some servers end at an unknown request.
                    Err((true, _)) if known.is_none() => {
                        let again = Some(Greeting::Initialize);
                        Self::start(target, options, config, again, strays).await.map_err(|(_, reason)| reason)
                    }
                    opened => opened.map_err(|(_, reason)| reason),
                }
            }
            Endpoint::Http(endpoint) => {
                if known != Some(Greeting::Initialize) {
                    let routes = Routes::new(strays.clone());
                    let mut tap = Tap::new(endpoint.transport(), routes.clone());
                    if let Discovery::Modern(info) = discover(&mut tap, &config, PROBE).await {
                        return Ok(Self::serve(tap, routes, *info, Greeting::Discover, options, config, None));
                    }
                }
                let routes = Routes::new(strays.clone());
                let mut tap = Tap::new(endpoint.transport(), routes.clone());
                match initialize(&mut tap, &config).await {
                    Ok((info, greeting)) => Ok(Self::serve(tap, routes, info, greeting, options, config, None)),
                    Err(Ungreeted::Lost) => Err("the server closed the connection".to_owned()),
                    Err(Ungreeted::Because(reason)) => Err(reason),
                }
            }
        }
    }

    /// Starts the program of a server and greets it. The error says if the server ended at the first question.
    async fn start(
        target: &CommandTarget,
        options: &ClientOptions,
        config: ClientConfig,
        known: Option<Greeting>,
        strays: &Arc<AtomicU64>,
    ) -> Result<Self, (bool, String)> {
        let rules = FrameRules { max_frame: options.max_frame, encoding_errors: options.encoding_errors };
        let (process, transport) = Process::start(target, rules, strays.clone()).map_err(|reason| (false, reason))?;
        let routes = Routes::new(strays.clone());
        let mut tap = Tap::new(transport, routes.clone());
        if known != Some(Greeting::Initialize) {
            let probe = PROBE.min(options.connect_timeout / 3);
            match discover(&mut tap, &config, probe).await {
                Discovery::Modern(info) => {
                    let process = Some(process);
                    return Ok(Self::serve(tap, routes, *info, Greeting::Discover, options, config, process));
                }
                Discovery::Lost => return Err((true, process.describe_end().await)),
                Discovery::Older => {}
            }
        }
        match initialize(&mut tap, &config).await {
            Ok((info, greeting)) => {
                routes.forget(&DISCOVER_ID);
                Ok(Self::serve(tap, routes, info, greeting, options, config, Some(process)))
            }
            Err(Ungreeted::Lost) => Err((false, process.describe_end().await)),
            Err(Ungreeted::Because(reason)) => Err((false, reason)),
        }
    }

    fn serve<T: Transport<RoleClient> + 'static>(
        transport: Tap<T>,
        routes: Arc<Routes>,
        info: ServerPeerInfo,
        greeting: Greeting,
        options: &ClientOptions,
        config: ClientConfig,
        process: Option<Arc<Process>>,
    ) -> Self {
        let answerer = Answerer::new(routes.clone(), options.sampler.clone(), config);
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let own_info = server_info(&info);
        let running = serve_directly_with_ct(answerer, transport, Some(info), stop.clone());
        let peer = running.peer().clone();
        let guard = ended.clone().drop_guard();
        let runtime = Handle::current();
        runtime.spawn(async move {
            let _ = running.waiting().await;
            drop(guard);
        });
        Self {
            peer,
            routes,
            info: own_info,
            greeting,
            runtime,
            process,
            stop,
            is_closed: AtomicBool::new(false),
            ended,
            failed: AtomicBool::new(false),
            listing: tokio::sync::Mutex::default(),
            list_state: watch::Sender::default(),
        }
    }

    /// True if the connection can be used for new requests.
    pub(super) fn is_alive(&self) -> bool {
        !self.failed.load(Ordering::Acquire) && !self.routes.lost.is_cancelled()
    }

    /// Takes the connection out of use. Requests in flight are not touched.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Closes the connection, and waits until the server's process and its descendants are gone.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.shut();
        let end = async {
            if let Some(process) = &self.process {
                process.gone().await;
            }
            self.ended.cancelled().await;
        };
        let _ = timeout(CLOSE, end).await;
    }

    fn shut(&self) {
        self.fail();
        self.stop.cancel();
        if let Some(process) = &self.process {
            process.stop();
        }
    }

    /// Describes the end of a connection that is lost.
    pub(super) async fn describe_end(&self) -> String {
        match &self.process {
            _ if self.is_closed.load(Ordering::Acquire) => "the client was closed".to_owned(),
            Some(process) => process.describe_end().await,
            None => "the connection ended".to_owned(),
        }
    }

    /// Sends a request.
    pub(super) async fn send(self: &Arc<Self>, request: ClientRequest) -> Result<PendingAnswer, Failure> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        match sent {
            Ok(handle) => Ok(PendingAnswer { connection: self.clone(), id: Some(handle.id), answer: handle.rx }),
            Err(error) => Err(self.failure(error).await),
        }
    }

    async fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => Failure::Answered(error),
            ServiceError::TransportSend(error) => {
                let http = error.error.downcast_ref::<StreamableHttpError<HttpError>>();
                match http {
                    Some(StreamableHttpError::SessionExpired) => Failure::Unsent,
                    Some(StreamableHttpError::AuthRequired(challenge)) => Failure::Refused(challenge.to_string()),
                    Some(StreamableHttpError::Client(error)) if error.is_lost => Failure::Lost(error.to_string()),
                    Some(StreamableHttpError::TransportChannelClosed) => Failure::Lost(self.describe_end().await),
                    None if is_broken_pipe(&*error.error) => Failure::Unsent,
                    None => Failure::Lost(error.error.to_string()),
                    Some(error) => Failure::Refused(error.to_string()),
                }
            }
            ServiceError::TransportClosed if self.routes.lost.is_cancelled() => {
                Failure::Lost(self.describe_end().await)
            }
            ServiceError::TransportClosed => Failure::Lost("the response ended before the result".to_owned()),
            error => Failure::Refused(error.to_string()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shut();
    }
}

/// A request whose answer has not arrived. Dropping it cancels the request on the server.
pub(super) struct PendingAnswer {
    connection: Arc<Connection>,
    /// Taken when the request is over.
    id: Option<RequestId>,
    answer: oneshot::Receiver<Result<ServerResult, ServiceError>>,
}

impl PendingAnswer {
    /// Waits for the result, as JSON. It can be called again after its future was dropped.
    pub(super) async fn result(&mut self) -> Result<Value, Failure> {
        let lost = &self.connection.routes.lost;
        let answer = tokio::select! {
            biased;
            answer = &mut self.answer => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            // rmcp first waits for its tasks.
            () = lost.cancelled() => Err(ServiceError::TransportClosed),
        };
        self.id = None;
        match answer {
            Ok(result) => Ok(as_json(result)),
            Err(error) => Err(self.connection.failure(error).await),
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.connection.routes.forget(&id);
            let peer = self.connection.peer.clone();
            // Without the reference the connection may close before the notification is sent.
            let connection = self.connection.clone();
            self.connection.runtime.spawn(async move {
                let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), None)).await;
                drop(connection);
            });
        }
    }
}

/// True if a message could not be written because the server has closed its input, or has ended.
fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A result as JSON.
fn as_json(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(result) => result.0,
        result => serde_json::to_value(result).unwrap_or_default(),
    }
}

/// The facts that the client states about itself.
fn client_config(options: &ClientOptions) -> ClientConfig {
    let mut capabilities = json!({"elicitation": {"form": {}}});
    if options.sampler.is_some() {
        capabilities["sampling"] = json!({});
    }
    let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
    let client = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
}

fn server_info(info: &ServerPeerInfo) -> ServerInfo {
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

enum Discovery {
    Modern(Box<ServerPeerInfo>),
    Older,
    Lost,
}

/// Asks a server for its facts, as the newest version does.
async fn discover<T: Transport<RoleClient>>(tap: &mut T, config: &ClientConfig, wait: Duration) -> Discovery {
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
            match next_answer(tap).await {
                None => return Discovery::Lost,
                Some((id, answer)) if id == DISCOVER_ID => {
                    return modern(answer).map_or(Discovery::Older, |info| Discovery::Modern(Box::new(info)));
                }
                Some(_) => {}
            }
        }
    };
    timeout(wait, probe).await.unwrap_or(Discovery::Older)
}

/// Reads the answer to `server/discover`; none if the server does not speak the newest version.
fn modern(answer: Result<Value, ErrorData>) -> Option<ServerPeerInfo> {
    let result: DiscoverResult = serde_json::from_value(answer.ok()?).ok()?;
    let version = ProtocolVersion::V_2026_07_28;
    result.supported_versions.contains(&version).then(|| ServerPeerInfo::from_discover_result(version, result))
}

/// Greets a server as the versions before the newest do.
async fn initialize<T: Transport<RoleClient>>(
    tap: &mut T,
    config: &ClientConfig,
) -> Result<(ServerPeerInfo, Greeting), Ungreeted> {
    let unsent = |error: T::Error| Ungreeted::Because(error.to_string());
    let request = ClientRequest::InitializeRequest(InitializeRequest::new(config.clone()));
    tap.send(ClientJsonRpcMessage::request(request, INITIALIZE_ID)).await.map_err(unsent)?;
    let mut late = None;
    let answer = loop {
        match next_answer(tap).await.ok_or(Ungreeted::Lost)? {
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
    let result: InitializeResult = serde_json::from_value(result).map_err(|error| {
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

/// Waits for the next answer of the server. Its pings are answered, and other messages dropped.
async fn next_answer<T: Transport<RoleClient>>(tap: &mut T) -> Option<(RequestId, Result<Value, ErrorData>)> {
    loop {
        match tap.receive().await? {
            JsonRpcMessage::Response(response) => return Some((response.id, Ok(as_json(response.result)))),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = error.id {
                    return Some((id, Err(error.error)));
                }
            }
            JsonRpcMessage::Request(request) if matches!(request.request, ServerRequest::PingRequest(_)) => {
                tap.send(ClientJsonRpcMessage::response(ClientResult::empty(()), request.id)).await.ok()?;
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }
}
