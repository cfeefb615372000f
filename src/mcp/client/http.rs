//! A server that speaks streamable HTTP: rmcp's transport over a client that we build.
//!
//! The client speaks TLS by rustls and ring, stays at the origin of its URL, resolves names only to addresses that are allowed,
//! and limits what it reads.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, stream::BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper::body::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client as HttpClient, RequestBuilder, Response, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use rustls_platform_verifier::BuilderVerifierExt;
use sse_stream::{Sse, SseStream};

use super::target::{HttpTarget, InvalidTarget};

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
/// Number of bytes of an unusable body that an error repeats.
const PREVIEW: usize = 300;

/// The transport of a server with a URL.
pub(super) type HttpTransport = StreamableHttpClientTransport<LimitedClient>;

/// The client of one server, made once: it holds the pool of connections.
#[derive(Clone)]
pub(super) struct HttpEndpoint {
    client: LimitedClient,
    config: StreamableHttpClientTransportConfig,
}

impl HttpEndpoint {
    pub(super) fn new(target: &HttpTarget, max_frame: usize) -> Result<Self, InvalidTarget> {
        let invalid = |reason: String| InvalidTarget::Text { reason };
        let url = Url::parse(&target.url).map_err(|error| invalid(format!("`{}`: {error}", target.url)))?;
        check_url(&url, target.allow_private_addresses).map_err(invalid)?;
        let mut headers = HashMap::new();
        for (name, value) in &target.headers {
            let parsed = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
            // The value may be a secret.
            let (Ok(name), Ok(mut value)) = parsed else { return Err(invalid(format!("invalid header `{name}`"))) };
            if [ACCEPT.as_str(), CONTENT_TYPE.as_str(), SESSION_ID, LAST_EVENT_ID].contains(&name.as_str()) {
                return Err(invalid(format!("the header `{name}` belongs to the protocol")));
            }
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = build(target, &url).map_err(invalid)?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
        config.auth_header.clone_from(&target.bearer);
        config.max_sse_event_size = max_frame;
        config.max_concurrent_requests = 256;
        // A new session may have other tools: the client connects again and lists them.
        config.reinit_on_expired_session = false;
        Ok(Self { client: LimitedClient { client, max_body: max_frame }, config })
    }

    /// Makes a transport, in the current tokio runtime.
    pub(super) fn transport(&self) -> HttpTransport {
        StreamableHttpClientTransport::with_client(self.client.clone(), self.config.clone())
    }
}

fn build(target: &HttpTarget, url: &Url) -> Result<HttpClient, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = if url.scheme() == "https" {
        tls.and_then(BuilderVerifierExt::with_platform_verifier)
    } else {
        // No redirect leads to TLS.
        tls.map(|tls| tls.with_root_certificates(rustls::RootCertStore::empty()))
    };
    let tls = tls.map_err(|error| format!("TLS cannot be set up: {error}"))?.with_no_client_auth();
    let origin = url.origin();
    let redirects = Policy::custom(move |attempt: Attempt<'_>| {
        let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if attempt.previous().len() > 5 {
            attempt.error("too many redirects")
        } else if keeps_method && attempt.url().origin() == origin {
            attempt.follow()
        } else {
            let text = format!("refused a redirect to `{}`", attempt.url().origin().ascii_serialization());
            attempt.error(text)
        }
    });
    let mut builder = HttpClient::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirects)
        .connect_timeout(target.connect_timeout)
        .read_timeout(target.read_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(Resolver { allow_private: target.allow_private_addresses }));
    if is_loopback_host(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| error.to_string())
}

/// Checks the scheme of a URL, and its host if that is an address.
fn check_url(url: &Url, allow_private: bool) -> Result<(), String> {
    let address = match url.host() {
        Some(url::Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(url::Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(url::Host::Domain(_)) => None,
        None => return Err("the URL has no host".to_owned()),
    };
    if url.scheme() != "https" && !is_loopback_host(url) && !allow_private {
        return Err(format!("`{url}` must be an `https` URL, because its host is not this machine"));
    }
    match address {
        Some(address) if !address.is_loopback() && is_private(address) && !allow_private => {
            Err(format!("the address {address} is private; allow private addresses to use it"))
        }
        _ => Ok(()),
    }
}

fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => is_loopback_name(name),
        None => false,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// True for an address that is not a public one: loopback, private, link-local, shared, documentation or reserved.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(|| is_private_v6(address), is_private_v4),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || (first & 0xfe00) == 0xfc00
        || (first & 0xffc0) == 0xfe80
        || (first & 0xffc0) == 0xfec0
        // Addresses that contain one of IPv4.
        || address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
        || first == 0x2002
        || address.segments()[..6] == [0; 6]
}

/// Resolves names and refuses addresses that are not allowed, so that no name leads to a private network.
struct Resolver {
    allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let is_loopback = is_loopback_name(name.as_str());
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_allowed = |address: &SocketAddr| {
                allow_private || is_loopback == address.ip().is_loopback() && (is_loopback || !is_private(address.ip()))
            };
            let allowed: Vec<SocketAddr> = found.into_iter().filter(is_allowed).collect();
            if allowed.is_empty() {
                let text = format!("`{}` has no address that is allowed; private addresses are not", name.as_str());
                return Err(text.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// A client that limits the size of bodies and events.
#[derive(Clone)]
pub(super) struct LimitedClient {
    client: HttpClient,
    max_body: usize,
}

/// An error of the HTTP client, with its causes in the text.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct HttpError {
    text: String,
    /// True if the server cannot be reached, or broke off.
    pub(super) is_lost: bool,
}

impl HttpError {
    fn answered(text: String) -> Failed {
        StreamableHttpError::Client(Self { text, is_lost: false })
    }
}

type Failed = StreamableHttpError<HttpError>;

fn failed(error: &reqwest::Error) -> Failed {
    // The URL may have a secret in its query.
    let mut text = match (error.is_connect(), error.is_timeout(), error.is_redirect()) {
        (_, true, _) => "the server did not answer in time".to_owned(),
        (true, ..) => "cannot connect".to_owned(),
        (.., true) => "redirect".to_owned(),
        _ => "the request failed".to_owned(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    let is_lost = !error.is_timeout() && !error.is_redirect();
    StreamableHttpError::Client(HttpError { text, is_lost })
}

impl LimitedClient {
    async fn send(
        &self,
        request: RequestBuilder,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response, Failed> {
        let mut request = request.header(ACCEPT, "text/event-stream, application/json");
        if let Some(session_id) = session_id {
            request = request.header(SESSION_ID, session_id.as_ref());
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.headers(headers.into_iter().collect()).send().await.map_err(|error| failed(&error))
    }

    /// Reads a body of limited size.
    async fn body(&self, response: Response) -> Result<Vec<u8>, Failed> {
        let too_large = || HttpError::answered(format!("the server sent a body of more than {} bytes", self.max_body));
        let expected = response.content_length().unwrap_or(0);
        if expected > self.max_body as u64 {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            if body.len() + chunk.len() > self.max_body {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        SseStream::from_bytes_stream(LimitedEvents::new(response.bytes_stream(), self.max_body)).boxed()
    }

    /// Reads the body of a refused request: its JSON-RPC error, or an error that repeats a part of it.
    async fn refusal(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let body = self.body(response).await.unwrap_or_default();
        let mut error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            Ok(_) | Err(_) => None,
        };
        if let JsonRpcMessage::Request(request) = message {
            // A server that does not know `server/discover` may refuse it in any form; it is asked to initialize then.
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) && status.is_client_error() {
                let text = format!("HTTP {status}");
                error.get_or_insert_with(|| JsonRpcError::new(None, ErrorData::invalid_request(text, None)));
            }
            if let Some(mut error) = error {
                // Such errors often have no id, or one of their own.
                error.id = Some(request.id.clone());
                return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), None));
            }
        }
        let preview = String::from_utf8_lossy(&body[..body.len().min(PREVIEW)]).trim().to_owned();
        let mut text = if preview.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {preview}") };
        if status == StatusCode::METHOD_NOT_ALLOWED {
            text.push_str(" (does it speak SSE, the transport before streamable HTTP?)");
        }
        Err(HttpError::answered(text))
    }
}

impl StreamableHttpClient for LimitedClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?;
        let request = self.client.post(uri.as_ref()).header(CONTENT_TYPE, JSON).body(body);
        let response = self.send(request, session_id, auth_header, custom_headers).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if has_session => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => return self.refusal(&message, response).await,
            _ => {}
        }
        let session_id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let media_type = media_type(&response);
        if media_type == EVENT_STREAM {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session_id));
        }
        let body = self.body(response).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) if media_type == JSON => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
            // Only a request needs an answer.
            _ if !matches!(message, JsonRpcMessage::Request(_)) => Ok(StreamableHttpPostResponse::Accepted),
            _ => {
                let preview = String::from_utf8_lossy(&body[..body.len().min(PREVIEW)]).into_owned();
                let text = format!("the server sent no message of the protocol: {media_type} {preview:?}");
                Err(HttpError::answered(text))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = self.client.delete(uri.as_ref());
        self.send(request, Some(session_id), auth_header, custom_headers).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut request = self.client.get(uri.as_ref());
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let response = self.send(request, session_id, auth_header, custom_headers).await?;
        match response.status() {
            status if status.is_success() && media_type(&response) == EVENT_STREAM => Ok(self.events(response)),
            // Servers without such streams answer with 405, and some with 404, 400 or a page.
            status if status.is_success() || status.is_client_error() => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status => Err(HttpError::answered(format!("HTTP {status}"))),
        }
    }
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A stream of bytes that fails when an event is too large.
struct LimitedEvents<S> {
    chunks: S,
    limit: usize,
    /// Number of bytes since the last empty line.
    size: usize,
    /// True if the last byte ended a line.
    at_line_end: bool,
}

impl<S> LimitedEvents<S> {
    fn new(chunks: S, limit: usize) -> Self {
        Self { chunks, limit, size: 0, at_line_end: false }
    }

    fn is_within_limit(&mut self, chunk: &[u8]) -> bool {
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', chunk) {
            let line = chunk[start..at].strip_suffix(b"\r").unwrap_or(&chunk[start..at]);
            let is_empty = line.is_empty() && (start > 0 || self.at_line_end);
            self.size = if is_empty { 0 } else { self.size + at + 1 - start };
            self.at_line_end = true;
            if self.size > self.limit {
                return false;
            }
            start = at + 1;
        }
        let rest = &chunk[start..];
        if !rest.is_empty() {
            self.size += rest.len();
            // A carriage return may belong to an empty line whose end is in the next chunk.
            self.at_line_end = self.at_line_end && rest == b"\r";
        }
        self.size <= self.limit
    }
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for LimitedEvents<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = std::task::ready!(self.chunks.poll_next_unpin(context));
        Poll::Ready(chunk.map(|chunk| match chunk {
            Ok(chunk) if self.is_within_limit(&chunk) => Ok(chunk),
            Ok(_) => Err(io::Error::other(format!("the server sent an event of more than {} bytes", self.limit))),
            Err(error) => Err(io::Error::other(failed(&error).to_string())),
        }))
    }
}
