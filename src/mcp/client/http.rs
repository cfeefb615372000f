//! A server that speaks streamable HTTP: rmcp's transport over a client that we build.
//!
//! The client speaks TLS by rustls and ring, stays at the origin of its URL, connects only to addresses that are allowed (see
//! `address`), and limits what it reads.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, stream::BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper::body::Bytes;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client as HttpClient, RequestBuilder, Response, Url};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcRequest,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::BuilderVerifierExt;
use sse_stream::{Sse, SseStream};
use tokio::time::{Instant, sleep};

use super::EncodingErrors;
use super::address::{Resolver, check_url, is_loopback_host};
use super::message::{self, Unreadable, UnreadableKind, typed};
use super::routes::{Routes, numeric};
use super::target::{HttpTarget, InvalidTarget};
use crate::sync::lock;

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
/// Number of bytes of an unusable body that an error repeats.
const PREVIEW: usize = 300;
/// The longest time of a message that is not a request. A request has the deadline of its caller.
const NOTICE: Duration = Duration::from_secs(30);
/// The pause before a stream of events is opened again: it doubles with each one that ends soon.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The transport of a server with a URL.
pub(super) type HttpTransport = StreamableHttpClientTransport<LimitedClient>;

/// The client of one server, made once: it holds the pool of connections.
#[derive(Clone)]
pub(super) struct HttpEndpoint {
    client: HttpClient,
    url: Url,
    max_body: usize,
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
        let is_header = |token: &String| HeaderValue::try_from(format!("Bearer {token}")).is_ok();
        if !target.bearer.as_ref().is_none_or(is_header) {
            return Err(invalid("the token has characters that no header can have".to_owned()));
        }
        let client = build(target, &url).map_err(invalid)?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
        config.auth_header.clone_from(&target.bearer);
        config.max_sse_event_size = max_frame;
        config.max_concurrent_requests = 256;
        // A new session may have other tools: the client connects again and lists them.
        config.reinit_on_expired_session = false;
        Ok(Self { client, url, max_body: max_frame, config })
    }

    /// Makes a transport, in the current tokio runtime.
    pub(super) fn transport(&self, routes: Arc<Routes>) -> HttpTransport {
        let client = LimitedClient {
            client: self.client.clone(),
            url: self.url.clone(),
            max_body: self.max_body,
            routes,
            reconnects: Arc::default(),
        };
        StreamableHttpClientTransport::with_client(client, self.config.clone())
    }
}

fn build(target: &HttpTarget, url: &Url) -> Result<HttpClient, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = match (&target.ca, url.scheme()) {
        (Some(ca), "https") => {
            let roots = authorities(ca)?;
            tls.map(|tls| tls.with_root_certificates(roots))
        }
        (Some(_), _) => return Err(format!("a file of authorities does not apply to `{url}`, which has no TLS")),
        (None, "https") => tls.and_then(BuilderVerifierExt::with_platform_verifier),
        // No redirect leads to TLS.
        (None, _) => tls.map(|tls| tls.with_root_certificates(RootCertStore::empty())),
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
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(Resolver::new(target.allow_private_addresses)));
    if is_loopback_host(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| error.to_string())
}

/// The certificates of authorities in a PEM file.
fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let invalid = |reason: String| format!("invalid file of authorities `{}`: {reason}", file.display());
    let text = fs::read(file).map_err(|error| invalid(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
    }
    if roots.is_empty() { Err(invalid("it has no certificate in PEM form".to_owned())) } else { Ok(roots) }
}

/// A client that limits the size of bodies and events, and reads their messages.
#[derive(Clone)]
pub(super) struct LimitedClient {
    client: HttpClient,
    /// The URL of the server, parsed once.
    url: Url,
    max_body: usize,
    routes: Arc<Routes>,
    reconnects: Arc<Mutex<Reconnects>>,
}

/// The streams of events that were opened again.
#[derive(Default)]
struct Reconnects {
    /// The time of the last stream, and the id of its last event.
    last: Option<(Instant, Option<String>)>,
    /// Number of streams in a row that ended soon.
    count: u32,
}

impl Reconnects {
    /// The pause before the next stream. One that continues behind another event than the last one has made progress.
    fn pause(&mut self, last_event_id: Option<&str>, now: Instant) -> Duration {
        let before = self.last.replace((now, last_event_id.map(str::to_owned)));
        let Some((at, id)) = before else { return Duration::ZERO };
        let has_progress = last_event_id.is_some() && id.as_deref() != last_event_id;
        if has_progress || now.duration_since(at) > MAX_PAUSE * 2 {
            self.count = 0;
        }
        if has_progress && now.duration_since(at) >= FIRST_PAUSE {
            return Duration::ZERO; // the time that the server asked for has passed
        }
        self.count += 1;
        FIRST_PAUSE.saturating_mul(1 << (self.count - 1).min(16)).min(MAX_PAUSE)
    }
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

/// The text of an error of any transport; that of HTTP without the words that rmcp puts before it.
pub(super) fn text_of(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref::<Failed>() {
        Some(StreamableHttpError::Client(error)) => error.to_string(),
        _ => error.to_string(),
    }
}

fn failed(error: &reqwest::Error) -> Failed {
    // The URL may have a secret in its query.
    let mut text = match (error.is_connect(), error.is_timeout(), error.is_redirect()) {
        (_, true, _) => "the server did not answer in time".to_owned(),
        (true, ..) => "cannot connect".to_owned(),
        (.., true) => "redirect".to_owned(),
        _ => "the request failed".to_owned(),
    };
    let mut is_unknown = false;
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        is_unknown |= is_unknown_authority(cause);
        source = cause.source();
    }
    if is_unknown {
        text.push_str(" (no trusted authority has signed it; a file with its authority can be given as `ca`)");
    }
    let is_lost = !error.is_timeout() && !error.is_redirect();
    StreamableHttpError::Client(HttpError { text, is_lost })
}

/// True if a certificate is refused because of its authority.
fn is_unknown_authority(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut refused = error;
    // Each layer between TLS and the client wraps the error once more.
    while let Some(inner) = refused.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        refused = inner;
    }
    let refused = refused.downcast_ref::<rustls::Error>();
    matches!(refused, Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)))
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

    /// The events of a response, or of a stream that belongs to no request.
    fn events(&self, response: Response, request: Option<RequestId>) -> BoxStream<'static, Result<Sse, SseError>> {
        let events = SseStream::from_bytes_stream(LimitedEvents::new(response.bytes_stream(), self.max_body));
        let routes = self.routes.clone();
        let read = move |event: Result<Sse, SseError>| {
            let mut messages = Vec::new();
            let event = event.map(|mut event| {
                if matches!(event.event.as_deref(), None | Some("" | "message"))
                    && let Some(data) = event.data.take().filter(|data| !data.trim().is_empty())
                {
                    messages = read_event(&data, &routes, request.as_ref());
                }
                event
            });
            // A batch has several messages, and rmcp reads one from each event.
            let messages = messages.into_iter().map(|data| Ok(Sse::default().data(data)));
            futures_util::stream::iter(std::iter::once(event).chain(messages))
        };
        events.flat_map(read).boxed()
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let body = serde_json::to_vec(message)?;
        let mut post = self.client.post(self.url.clone()).header(CONTENT_TYPE, JSON).body(body);
        let request = if let JsonRpcMessage::Request(request) = message { Some(request) } else { None };
        if request.is_none() {
            post = post.timeout(NOTICE);
        }
        let response = self.send(post, session_id, auth_header, custom_headers).await?;
        match (response.status(), request) {
            (status @ (StatusCode::ACCEPTED | StatusCode::NO_CONTENT), Some(_)) => {
                return Err(HttpError::answered(format!(
                    "the server answered a request with HTTP {status} and no result"
                )));
            }
            (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, None) => return Ok(StreamableHttpPostResponse::Accepted),
            (StatusCode::NOT_FOUND, _) if has_session => return Err(StreamableHttpError::SessionExpired),
            (status, _) if !status.is_success() => return self.refusal(message, response).await,
            _ => {}
        }
        let session_id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let media_type = media_type(&response);
        if media_type == EVENT_STREAM {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(response, request.map(|request| request.id.clone())),
                session_id,
            ));
        }
        let body = self.body(response).await?;
        // Only a request needs an answer.
        let Some(request) = request else { return Ok(StreamableHttpPostResponse::Accepted) };
        if media_type != JSON {
            let preview = String::from_utf8_lossy(&body[..body.len().min(PREVIEW)]).into_owned();
            let text = format!("the server sent no message of the protocol: {media_type} {preview:?}");
            return Err(HttpError::answered(text));
        }
        let answer = read_answer(request, &body).map_err(|reason| {
            let preview = String::from_utf8_lossy(&body[..body.len().min(PREVIEW)]).into_owned();
            let text = format!("its answer cannot be read: {reason}: {preview:?}");
            self.routes.drop_unreadable(Unreadable { reason, kind: UnreadableKind::Other });
            HttpError::answered(text)
        })?;
        Ok(StreamableHttpPostResponse::Json(answer, session_id))
    }

    /// Reads the body of a refused request: its JSON-RPC error, or an error that repeats a part of it.
    async fn refusal(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let body = self.body(response).await.unwrap_or_default();
        let mut error = match message::read(&body, EncodingErrors::Replace).pop() {
            Some(Ok(JsonRpcMessage::Error(error))) => Some(error),
            _ => None,
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
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let posted = self.post(&message, session_id, auth_header, custom_headers).await;
        if let (Err(error), JsonRpcMessage::Notification(notification)) = (&posted, &message)
            && let ClientNotification::InitializedNotification(_) = &notification.notification
        {
            // rmcp ends without the reason.
            self.routes.set_fault(format!("the server refused `notifications/initialized`: {}", text_of(error)));
        }
        posted
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = self.client.delete(self.url.clone()).timeout(NOTICE);
        self.send(request, Some(session_id), auth_header, custom_headers).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let pause = lock(&self.reconnects).pause(last_event_id.as_deref(), Instant::now());
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let mut request = self.client.get(self.url.clone());
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let response = self.send(request, session_id, auth_header, custom_headers).await?;
        match response.status() {
            status if status.is_success() && media_type(&response) == EVENT_STREAM => Ok(self.events(response, None)),
            // Servers without such streams answer with 405, and some with 404, 400 or a page.
            status if status.is_success() || status.is_client_error() => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status => Err(HttpError::answered(format!("HTTP {status}"))),
        }
    }
}

/// Reads the answer to a request.
fn read_answer(request: &JsonRpcRequest<ClientRequest>, body: &[u8]) -> Result<ServerJsonRpcMessage, String> {
    let mut reason = "it has no answer to the request".to_owned();
    for read in message::read(body, EncodingErrors::Replace) {
        let message = match read {
            Ok(message) => message,
            Err(unreadable) => {
                reason = unreadable.reason;
                continue;
            }
        };
        let id = match &message {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => continue,
        };
        let is_own = |id: RequestId| id == request.id || numeric(&id).as_ref() == Some(&request.id);
        if id.is_none_or(is_own) {
            let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
            // rmcp's transport needs nothing of the answer to a call, and the type of others.
            return Ok(if is_call { message } else { typed(message) });
        }
    }
    Err(reason)
}

/// Reads the messages of an event, and writes them as rmcp reads them. The event may be of the response to a request.
fn read_event(data: &str, routes: &Routes, request: Option<&RequestId>) -> Vec<String> {
    let passed = |unreadable: Unreadable| {
        let answer = match &unreadable.kind {
            UnreadableKind::Answer(id) => id.as_ref().or(request).map(|id| (id.clone(), unreadable.reason.clone())),
            UnreadableKind::Request(..) | UnreadableKind::Other => None,
        };
        let message = routes.drop_unreadable(unreadable);
        message.or_else(|| answer.map(|(id, reason)| routes.unreadable_answer(id, &reason)))
    };
    let read = message::read(data.as_bytes(), EncodingErrors::Replace).into_iter();
    let messages = read.filter_map(|read| read.map_or_else(passed, Some));
    messages.filter_map(|message| serde_json::to_string(&typed(routes.keep_answer(message))).ok()).collect()
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A stream of bytes that fails when an event is too large. Bytes that are not UTF-8 are replaced.
struct LimitedEvents<S> {
    chunks: S,
    /// The bytes of a character whose end is in the next chunk.
    character: Vec<u8>,
    limit: usize,
    /// Number of bytes since the last empty line.
    size: usize,
    /// True if the last byte ended a line.
    at_line_end: bool,
}

impl<S> LimitedEvents<S> {
    fn new(chunks: S, limit: usize) -> Self {
        Self { chunks, character: Vec::new(), limit, size: 0, at_line_end: false }
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

impl<S> LimitedEvents<S> {
    /// The text of a chunk, with the begin of a character in the chunk before and without that of one at its end.
    fn text_of(&mut self, chunk: Bytes) -> Bytes {
        if self.character.is_empty() && std::str::from_utf8(&chunk).is_ok() {
            return chunk;
        }
        let mut bytes = std::mem::take(&mut self.character);
        bytes.extend_from_slice(&chunk);
        let mut text = String::with_capacity(bytes.len());
        let mut parts = bytes.utf8_chunks().peekable();
        while let Some(part) = parts.next() {
            text.push_str(part.valid());
            let is_last = parts.peek().is_none();
            if is_last && is_begin_of_character(part.invalid()) {
                self.character = part.invalid().to_vec();
            } else if !part.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text.into()
    }
}

/// True if bytes at the end of a text may be the begin of a character.
fn is_begin_of_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for LimitedEvents<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = std::task::ready!(self.chunks.poll_next_unpin(context));
        Poll::Ready(chunk.map(|chunk| match chunk {
            Ok(chunk) if self.is_within_limit(&chunk) => Ok(self.text_of(chunk)),
            Ok(_) => Err(io::Error::other(format!("the server sent an event of more than {} bytes", self.limit))),
            Err(error) => Err(io::Error::other(failed(&error).to_string())),
        }))
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, PingRequest, ServerResult};
    use serde_json::json;

    use super::super::message::text_of_result;
    use super::*;

    fn request(request: ClientRequest) -> JsonRpcRequest<ClientRequest> {
        match JsonRpcMessage::request(request, RequestId::Number(7)) {
            ClientJsonRpcMessage::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn call() -> JsonRpcRequest<ClientRequest> {
        request(ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("add"))))
    }

    #[test]
    fn the_result_of_a_call_keeps_every_field_in_its_order() {
        let result = json!({"later": [1.0, {"z": null}], "content": [{"type": "text", "text": "5", "colour": "red"}], "isError": null});
        let body = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();

        let Ok(JsonRpcMessage::Response(answer)) = read_answer(&call(), body.as_bytes()) else {
            panic!("not an answer")
        };

        assert_eq!((answer.id, text_of_result(answer.result)), (RequestId::Number(7), result.to_string()));
    }

    #[test]
    fn a_message_that_is_no_result_of_a_call_is_read_by_its_type() {
        let error =
            json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no such tool"}}).to_string();
        let empty = json!({"jsonrpc": "2.0", "id": 7, "result": {}}).to_string();
        let other = request(ClientRequest::PingRequest(PingRequest::default()));

        assert!(matches!(read_answer(&call(), error.as_bytes()), Ok(JsonRpcMessage::Error(_))));
        let Ok(JsonRpcMessage::Response(answer)) = read_answer(&other, empty.as_bytes()) else {
            panic!("not an answer")
        };
        assert!(matches!(answer.result, ServerResult::EmptyResult(_)));
        assert!(read_answer(&call(), br#"{"id": 7, "result": {"content": []}}"#).is_err());
    }

    #[test]
    fn a_body_that_answers_another_request_is_none() {
        for body in [r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"ping","id":7}"#, ""] {
            assert!(read_answer(&call(), body.as_bytes()).is_err(), "{body}");
        }
        assert!(read_answer(&call(), br#"{"jsonrpc":"2.0","id":"7","result":{}}"#).is_ok());
    }

    #[test]
    fn characters_that_chunks_divide_are_whole_and_other_bytes_are_replaced() {
        let text = "aé😀b".as_bytes();
        for at in 0..=text.len() {
            let mut events = LimitedEvents::new((), 100);
            let (start, end) = text.split_at(at);

            let joined = [start, end].map(|chunk| events.text_of(Bytes::copy_from_slice(chunk))).concat();

            assert_eq!(joined, text, "{at}");
        }
        assert_eq!(LimitedEvents::new((), 100).text_of(Bytes::from_static(b"a\xffb\xc3(")), "a\u{fffd}b\u{fffd}(");
    }

    #[test]
    fn the_pause_before_a_stream_is_opened_again_grows() {
        let mut reconnects = Reconnects::default();
        let start = Instant::now();

        let pauses: Vec<u128> = (0..12).map(|_| reconnects.pause(None, start).as_millis()).collect();
        let progress: Vec<u128> =
            ["a", "b", "b"].iter().map(|id| reconnects.pause(Some(id), start).as_millis()).collect();
        let later = reconnects.pause(None, start + Duration::from_secs(100));
        let slow = reconnects.pause(Some("c"), start + Duration::from_secs(101));

        assert_eq!(pauses[..5], [0, 250, 500, 1000, 2000]);
        assert_eq!(pauses[11], 30_000);
        assert_eq!(progress, [250, 250, 500]);
        assert_eq!(later.as_millis(), 250);
        assert_eq!(slow.as_millis(), 0);
    }
}
