//! A server that speaks streamable HTTP: rmcp's transport over a client that we build.
//!
//! The client speaks TLS by rustls and ring, stays at the origin of its URL, connects only to addresses that are allowed (see
//! `address`), and limits what it reads.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper::body::Bytes;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client as HttpClient, RequestBuilder, Response, Url};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcVersion2_0,
    RequestId, ServerJsonRpcMessage, ServerResult,
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
use serde::Deserialize;
use serde_json::{Map, Value};
use sse_stream::{Sse, SseStream};

use super::address::{Resolver, check_url, is_loopback_host};
use super::target::{HttpTarget, InvalidTarget};
use crate::json::text::without_lone_surrogates;

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
/// Number of bytes of an unusable body that an error repeats.
const PREVIEW: usize = 300;
/// The longest time of a message that is not a request. A request has the deadline of its caller.
const NOTICE: Duration = Duration::from_secs(30);

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
        Ok(Self { client: LimitedClient { client, url, max_body: max_frame }, config })
    }

    /// Makes a transport, in the current tokio runtime.
    pub(super) fn transport(&self) -> HttpTransport {
        StreamableHttpClientTransport::with_client(self.client.clone(), self.config.clone())
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

/// A client that limits the size of bodies and events.
#[derive(Clone)]
pub(super) struct LimitedClient {
    client: HttpClient,
    /// The URL of the server, parsed once.
    url: Url,
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

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let events = SseStream::from_bytes_stream(LimitedEvents::new(response.bytes_stream(), self.max_body));
        events.map_ok(|event| Sse { data: event.data.map(whole), ..event }).boxed()
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
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?;
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, JSON).body(body);
        if !matches!(message, JsonRpcMessage::Request(_)) {
            request = request.timeout(NOTICE);
        }
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
        let answer = read_answer(&message, &body).or_else(|error| {
            let whole = std::str::from_utf8(&body).ok().and_then(without_lone_surrogates);
            whole.map_or(Err(error), |body| read_answer(&message, body.as_bytes()))
        });
        match answer {
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
        let mut request = self.client.get(self.url.clone());
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

/// The answer to a call of a tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallAnswer {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    result: Map<String, Value>,
}

/// Reads the answer to a message. The result of a call stays JSON, which is what the client converts: rmcp would try a dozen types
/// before the right one, drop the fields that it does not know, and the result would be made JSON again.
fn read_answer(message: &ClientJsonRpcMessage, body: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(_) = &request.request
        && let Ok(CallAnswer { id, result, .. }) = serde_json::from_slice(body)
    {
        let result = ServerResult::CustomResult(CustomResult(Value::Object(result)));
        return Ok(JsonRpcMessage::response(result, id));
    }
    // An error, or a message that is not an answer.
    serde_json::from_slice(body)
}

/// A text without halves of characters.
fn whole(text: String) -> String {
    without_lone_surrogates(&text).unwrap_or(text)
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

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, PingRequest};
    use serde_json::json;

    use super::super::greeting::as_json;
    use super::*;

    fn request(request: ClientRequest) -> ClientJsonRpcMessage {
        JsonRpcMessage::request(request, RequestId::Number(7))
    }

    fn call() -> ClientJsonRpcMessage {
        request(ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("add"))))
    }

    #[test]
    fn the_result_of_a_call_keeps_every_field_in_its_order() -> serde_json::Result<()> {
        let result = json!({"later": [1.0, {"z": null}], "content": [{"type": "text", "text": "5", "colour": "red"}], "isError": null});
        let body = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();

        let JsonRpcMessage::Response(answer) = read_answer(&call(), body.as_bytes())? else { panic!("not an answer") };

        assert_eq!((answer.id, as_json(answer.result).to_string()), (RequestId::Number(7), result.to_string()));
        Ok(())
    }

    #[test]
    fn a_message_that_is_no_result_of_a_call_is_read_by_its_type() -> serde_json::Result<()> {
        let error =
            json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no such tool"}}).to_string();
        let empty = json!({"jsonrpc": "2.0", "id": 7, "result": {}}).to_string();
        let other = request(ClientRequest::PingRequest(PingRequest::default()));

        assert!(matches!(read_answer(&call(), error.as_bytes())?, JsonRpcMessage::Error(_)));
        let JsonRpcMessage::Response(answer) = read_answer(&other, empty.as_bytes())? else { panic!("not an answer") };
        assert!(matches!(answer.result, ServerResult::EmptyResult(_)));
        assert!(read_answer(&call(), br#"{"id": 7, "result": {"content": []}}"#).is_err());
        Ok(())
    }
}
