//! One connection: its opening, the requests, and the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientConfig, ClientRequest, ErrorData, RequestId, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, serve_directly_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{RoleClient, ServiceError};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::Answerer;
use super::greeting::{DISCOVER_ID, Discovery, Greeting, Ungreeted, client_config, discover, initialize, server_info};
use super::http::{HttpEndpoint, HttpError, text_of};
use super::message::text_of_result;
use super::process::Process;
use super::routes::{Routes, Tap};
use super::stdio::{FrameRules, ROOM, Room, StdioTransport};
use super::strays::Strays;
use super::target::CommandTarget;
use super::{ClientOptions, ServerInfo};

/// The longest wait for an answer of a process to `server/discover`, after which it is taken for an older server.
const PROBE: Duration = Duration::from_secs(3);
/// The longest wait for the end of a connection.
const CLOSE: Duration = Duration::from_secs(10);

/// The reason of a loss that the server did not explain.
pub(super) const CLOSED: &str = "the server closed the connection";

/// The place of a server.
pub(super) enum Endpoint {
    Command(CommandTarget),
    Http(HttpEndpoint),
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
    /// The bytes of calls that may wait to be written to the process.
    room: Arc<Semaphore>,
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

impl Connection {
    /// Connects to a server, in the current tokio runtime. `known` is the greeting that worked before.
    pub(super) async fn open(
        endpoint: &Endpoint,
        options: &ClientOptions,
        known: Option<Greeting>,
        strays: &Arc<Strays>,
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
                    let mut tap = Tap::new(endpoint.transport(routes.clone()), routes.clone());
                    // A server that speaks HTTP answers, if only with a refusal.
                    let wait = options.connect_timeout / 2;
                    if let Discovery::Modern(info) = discover(&mut tap, &config, wait).await {
                        return Ok(Self::serve(tap, routes, *info, Greeting::Discover, options, config, None));
                    }
                }
                let routes = Routes::new(strays.clone());
                let mut tap = Tap::new(endpoint.transport(routes.clone()), routes.clone());
                match initialize(&mut tap, &config).await {
                    Ok((info, greeting)) => Ok(Self::serve(tap, routes, info, greeting, options, config, None)),
                    Err(Ungreeted::Lost) => Err(routes.fault().unwrap_or_else(|| CLOSED.to_owned())),
                    Err(Ungreeted::Because(reason)) => Err(routes.fault().unwrap_or(reason)),
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
        strays: &Arc<Strays>,
    ) -> Result<Self, (bool, String)> {
        let rules = FrameRules { max_frame: options.max_frame, encoding_errors: options.encoding_errors };
        let routes = Routes::new(strays.clone());
        let (process, transport) =
            StdioTransport::start(target, rules, routes.clone()).map_err(|reason| (false, reason))?;
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
            room: Arc::new(Semaphore::new(ROOM)),
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
            None => self.routes.fault().unwrap_or_else(|| "the connection ended".to_owned()),
        }
    }

    /// Waits until a call of a size in bytes may be sent: a server that does not read its input gets no more. None if the
    /// transport does not need it.
    pub(super) async fn room(&self, size: usize) -> Result<Option<Room>, Failure> {
        if self.process.is_none() {
            return Ok(None);
        }
        let size = u32::try_from(size.min(ROOM)).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            () = self.routes.lost.cancelled() => Err(Failure::Unsent),
            room = self.room.clone().acquire_many_owned(size) => Ok(room.ok().map(Arc::new)),
        }
    }

    /// Sends a request.
    pub(super) async fn send(self: &Arc<Self>, request: ClientRequest) -> Result<PendingAnswer, Failure> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        match sent {
            Ok(handle) => Ok(PendingAnswer { connection: self.clone(), id: Some(handle.id), answer: handle.rx }),
            Err(ServiceError::TransportClosed) => Err(Failure::Unsent),
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
                    Some(StreamableHttpError::Client(error)) if error.is_lost => Failure::Lost(error.to_string()),
                    Some(StreamableHttpError::TransportChannelClosed) => Failure::Lost(self.describe_end().await),
                    None if is_broken_pipe(&*error.error) => Failure::Unsent,
                    None => Failure::Lost(error.error.to_string()),
                    Some(error) => Failure::Refused(text_of(error)),
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
    /// Waits for the result, as JSON text. It can be called again after its future was dropped.
    pub(super) async fn result(&mut self) -> Result<String, Failure> {
        let routes = &self.connection.routes;
        let doubt = async {
            match &self.id {
                Some(id) => routes.doubt(id).await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = &mut self.answer => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            // rmcp first waits for its tasks.
            () = routes.lost.cancelled() => Err(ServiceError::TransportClosed),
            reason = doubt => return Err(Failure::Refused(format!("its answer cannot be read: {reason}"))),
        };
        self.id = None;
        match answer {
            Ok(result) => Ok(text_of_result(result)),
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
