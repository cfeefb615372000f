//! Many clients over streamable HTTP: sessions up to 2025-11-25, single requests since 2026-07-28.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_TYPE, HeaderValue, ORIGIN, RETRY_AFTER, VARY,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::body::{BodyBudget, BodyError, HttpBody, KeepingBody, LARGEST_BODY};
use super::connections::{Connections, ImpatientStream, OpenConnection};
use super::frames::{Malformed, weigh};
use super::guard::{Guard, Refused};
use super::handler::{Handler, ServerState};
use super::host::ToolHost;
use super::sessions::Sessions;
use crate::{Error, Result};

/// Time for the headers of a request, and between two requests of a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest headers of a request, in bytes. They are read before the token is checked.
const LARGEST_HEADERS: usize = 16 * 1024;
/// Time for which the end of the server waits for its connections.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(2);
/// The wait after the system refused a connection, which it does while it has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The seconds after which a client may try again while the server is full: requests end at any time.
const RETRY_SECONDS: &str = "5";

const NO_ROOM: &str = "Service Unavailable: too many large requests";
const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";

/// The options of a server over HTTP.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address to listen on: a name or an IP address.
    pub host: String,
    /// The port; zero for any that is free.
    pub port: u16,
    /// The path of the server.
    pub path: String,
    /// The bearer token that requests need.
    pub token: Option<String>,
    /// The allowed values of the header `Host`, with a port if only one is allowed; those of this machine if it is empty.
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that may call the server, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// The most sessions at a time.
    pub max_sessions: usize,
    /// The most connections at a time.
    pub max_connections: usize,
    /// The time after which a session without an open request ends.
    pub session_timeout: Duration,
}

impl Default for HttpOptions {
    /// A server for programs on this machine, without a token.
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            path: "/mcp".to_owned(),
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_sessions: 1000,
            max_connections: 2000,
            session_timeout: Duration::from_secs(30 * 60),
        }
    }
}

/// A server over HTTP that listens, and does not answer yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

impl HttpServer {
    /// Listens on the address of the options.
    ///
    /// # Errors
    ///
    /// [`Error::ExposedServer`] if other machines can reach the address and the options lack a token or allowed hosts,
    /// [`Error::InvalidServerOption`], and [`Error::CannotListen`] if the system refuses.
    pub async fn bind(options: HttpOptions) -> Result<Self> {
        if !options.path.starts_with('/') {
            let reason = format!("expected a path that begins with `/`, got `{}`", options.path);
            return Err(Error::InvalidServerOption { option: "path", reason });
        }
        if options
            .token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let reason = "expected visible ASCII characters without spaces".to_owned();
            return Err(Error::InvalidServerOption { option: "token", reason });
        }
        if options.max_connections == 0 {
            let reason = "expected a positive number".to_owned();
            return Err(Error::InvalidServerOption { option: "max_connections", reason });
        }
        let address = format!("{}:{}", options.host, options.port);
        let failed = |error: io::Error| Error::CannotListen {
            address: address.clone(),
            code: error.raw_os_error(),
            reason: error.to_string(),
        };
        let resolved: Vec<SocketAddr> =
            tokio::net::lookup_host((options.host.as_str(), options.port)).await.map_err(failed)?.collect();
        let is_local = resolved.iter().all(|address| address.ip().is_loopback());
        if !is_local && (options.token.is_none() || options.allowed_hosts.is_empty()) {
            return Err(Error::ExposedServer { host: options.host });
        }
        let listener = TcpListener::bind(&*resolved).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, options })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the token is cancelled. Then all calls are cancelled, and connections have a moment to end.
    pub async fn serve(self, host: impl ToolHost, stop: CancellationToken) {
        let Self { listener, address, options } = self;
        let server = Arc::new(Server::new(Arc::new(host), &options, address.port()));
        let connections = Connections::new(options.max_connections);
        let mut open = JoinSet::new();
        let sessions = server.sessions.clone();
        let mut idle = JoinSet::new();
        idle.spawn(async move { sessions.end_idle().await });
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            while open.try_join_next().is_some() {}
            let Ok((stream, _)) = accepted else {
                // The system has no more file descriptors, for example.
                connections.close_idle();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let admitted = tokio::select! {
                () = stop.cancelled() => break,
                admitted = connections.admit() => admitted,
            };
            open.spawn(server.clone().connection(stream, admitted, stop.clone()));
        }
        drop(listener);
        drop(idle);
        server.shut_down();
        let all = async { while open.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LONGEST_SHUTDOWN, all).await;
    }
}

/// A server that answers.
struct Server {
    state: Arc<ServerState>,
    guard: Guard,
    path: String,
    service: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
    bodies: BodyBudget,
}

impl Server {
    fn new(host: Arc<dyn ToolHost>, options: &HttpOptions, port: u16) -> Self {
        let state = ServerState::start(host);
        let sessions = Sessions::new(options.max_sessions, options.session_timeout, state.client_token());
        // The guard has checked both by then.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(LARGEST_BODY)
            .with_json_response(true);
        let shared = state.clone();
        Self {
            guard: Guard::new(&options.allowed_hosts, &options.allowed_origins, options.token.as_deref(), port),
            path: options.path.clone(),
            service: StreamableHttpService::new(move || Ok(Handler::new(shared.clone())), sessions.clone(), config),
            state,
            sessions,
            bodies: BodyBudget::new(),
        }
    }

    /// Answers the requests of a connection.
    async fn connection(self: Arc<Self>, stream: TcpStream, admitted: OpenConnection, stop: CancellationToken) {
        // Responses are small and complete, and must not wait for more of them.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let (server, admitted) = (&self, &admitted);
            async move { Ok::<_, Infallible>(server.answer(request, admitted).await) }
        });
        let mut connection = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_buf_size(LARGEST_HEADERS)
                .serve_connection(TokioIo::new(ImpatientStream::new(stream)), service)
        );
        // An error concerns this connection only: the client is gone, slow, or speaks no HTTP.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = admitted.closed() => {}
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }

    /// Answers a request: the checks in order, and then the protocol.
    async fn answer(&self, request: Request<Incoming>, connection: &OpenConnection) -> Response<HttpBody> {
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = match self.guard.check_source(request.uri(), request.headers()) {
            Err(refused) => return refuse(refused),
            Ok(()) if origin.is_some() && request.method() == Method::OPTIONS => preflight(),
            Ok(()) => match self.guard.check_token(request.headers()) {
                Err(refused) => refuse(refused),
                Ok(()) if request.uri().path() != self.path => plain(StatusCode::NOT_FOUND, "Not Found"),
                Ok(()) => self.answer_allowed(request, connection).await,
            },
        };
        if let Some(origin) = origin {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SESSION_ID));
            headers.insert(VARY, HeaderValue::from_static("origin"));
        }
        response
    }

    async fn answer_allowed(&self, request: Request<Incoming>, connection: &OpenConnection) -> Response<HttpBody> {
        let (mut parts, body) = request.into_parts();
        let (mut body, share) = match tokio::time::timeout(BODY_TIMEOUT, self.bodies.read(body)).await {
            Ok(Ok(read)) => read,
            Ok(Err(BodyError::Incomplete)) => {
                return plain(StatusCode::BAD_REQUEST, "Bad Request: the body is incomplete");
            }
            Ok(Err(BodyError::TooLarge)) => {
                return plain(StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large: at most 4 MiB");
            }
            Ok(Err(BodyError::NoRoom)) => return full(NO_ROOM),
            Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "Request Timeout"),
        };
        let answering = connection.answer();
        let is_post = parts.method == Method::POST;
        if is_post {
            if !is_json(&parts.headers) {
                return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type: expected application/json");
            }
            // In the spelling that the protocol's own check expects.
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            match weigh(&body).map(|weight| self.bodies.take_values(weight)) {
                Ok(Ok(values)) => drop(parts.extensions.insert([share, values])),
                Ok(Err(_)) => return full(NO_ROOM),
                Err(Malformed::Answer(refused)) => body = serde_json::to_vec(&refused).unwrap_or_default().into(),
                Err(mistake) => return refuse_body(mistake),
            }
        }
        let session = parts.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let open = session.and_then(|id| self.sessions.enter(id));
        let is_delete = parts.method == Method::DELETE;
        if is_delete && session.is_some() && open.is_none() {
            return plain(StatusCode::NOT_FOUND, "Not Found: unknown session");
        }
        let may_open = is_post && session.is_none();
        let mut response = self.service.handle(Request::from_parts(parts, Full::new(body.clone()))).await;
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // The body is what is wrong, not its type.
            return refuse_body(Malformed::of(&body));
        }
        if may_open && response.status() == StatusCode::INTERNAL_SERVER_ERROR && self.sessions.is_full() {
            return full("Service Unavailable: all sessions have open requests");
        }
        if is_delete && response.status() == StatusCode::ACCEPTED {
            // The session is over, and clients report any other answer as a failure.
            *response.status_mut() = StatusCode::OK;
        }
        response.map(|body| KeepingBody::boxed(body, (open, answering)))
    }

    /// Cancels all calls and ends all sessions.
    fn shut_down(&self) {
        self.state.shut_down();
        self.service.config.cancellation_token.cancel();
        self.sessions.end_all();
    }
}

/// True if the only type of a body is that of JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else { return false };
    let essence = only.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(JSON)
}

/// The answer of a server that has no room at present.
fn full(text: &'static str) -> Response<HttpBody> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<HttpBody> {
    respond(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<HttpBody> {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn refuse(refused: Refused) -> Response<HttpBody> {
    let mut response = plain(refused.status(), refused.text());
    if refused == Refused::Token {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The answer to the question of a browser whether a page may send a request.
fn preflight() -> Response<HttpBody> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
        ),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// The answer to a body that is not a message.
fn refuse_body(mistake: Malformed) -> Response<HttpBody> {
    match mistake {
        Malformed::Ignored | Malformed::Answer(_) => plain(StatusCode::ACCEPTED, ""),
        Malformed::Reply(reply) => respond(StatusCode::BAD_REQUEST, JSON, reply.to_string().into()),
    }
}
