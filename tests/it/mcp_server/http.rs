//! Requests over HTTP: those that must be refused, and those between them that must not be affected.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcrib::Error;
use toolcrib::mcp::server::{HttpOptions, HttpServer};
use toolcrib::prelude::*;

use super::{DEADLINE, call, host, initialize, toolkit};

/// A server, and a client of it.
struct Served {
    port: u16,
    client: Client,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

async fn serve(toolkit: &Toolkit, options: HttpOptions) -> Served {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = HttpServer::bind(options).await.unwrap();
    let (port, stop) = (server.address().port(), CancellationToken::new());
    let serving = tokio::spawn(server.serve(host(toolkit), stop.clone()));
    Served { port, client: Client::builder().no_proxy().build().unwrap(), stop, serving }
}

fn with_token() -> HttpOptions {
    HttpOptions { token: Some("secret".to_owned()), ..HttpOptions::default() }
}

impl Served {
    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// A request without a token.
    fn bare(&self, message: &Value) -> RequestBuilder {
        self.client
            .post(self.url())
            .header("Accept", "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message.to_string())
            .timeout(DEADLINE)
    }

    fn post(&self, message: &Value) -> RequestBuilder {
        self.bare(message).header(AUTHORIZATION, "Bearer secret")
    }

    /// Begins a session and returns its id.
    async fn open(&self) -> String {
        let response = self.post(&initialize()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let response = self.post(&initialized).header("Mcp-Session-Id", &session).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        session
    }

    /// Adds two numbers in a session.
    async fn adds(&self, session: &str) {
        let request = self.post(&call(1, "add", &json!({"a": 1, "b": 2}))).header("Mcp-Session-Id", session);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(message(response).await["result"]["structuredContent"], json!({"total": 3}));
    }

    /// Sends bytes, and returns the first line of the answer.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = tokio::time::timeout(DEADLINE, stream.read(&mut answer)).await.unwrap().unwrap_or(0);
        String::from_utf8_lossy(&answer[..count]).lines().next().unwrap_or_default().to_owned()
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(DEADLINE, self.serving).await.unwrap().unwrap();
    }
}

/// The message of a response: its body, or the last event in it.
async fn message(response: Response) -> Value {
    let text = response.text().await.unwrap();
    let last = text.lines().rev().filter_map(|line| line.strip_prefix("data:")).find(|data| data.contains("jsonrpc"));
    serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|_| panic!("{text}"))
}

/// A request of 2026-07-28.
fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn a_session_calls_tools() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;

    served.adds(&session).await;
    let listed = served
        .post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        .header("Mcp-Session-Id", &session)
        .send()
        .await
        .unwrap();

    assert_eq!(message(listed).await["result"]["tools"].as_array().unwrap().len(), 8);
    served.end().await;
}

#[tokio::test]
async fn a_client_without_a_session_calls_tools() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let request = stateless(7, "tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));

    let response = served
        .post(&request)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "add")
        .send()
        .await
        .unwrap();

    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().get("mcp-session-id").is_none());
    let result = message(response).await;
    assert_eq!(result["result"]["structuredContent"], json!({"total": 3}), "{result}");
    served.end().await;
}

#[tokio::test]
async fn other_hosts_and_pages_are_refused() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;

    for host in ["evil.com", "evil.com:80", "127.0.0.1.evil.com"] {
        let response = served.post(&initialize()).header(HOST, host).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{host}");
    }
    for origin in ["http://evil", "null", "https://evil.com:443", "file://"] {
        let response = served.post(&initialize()).header(ORIGIN, origin).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin}");
        assert!(response.headers().get("access-control-allow-origin").is_none());
    }
    served.open().await;
    served.end().await;
}

#[tokio::test]
async fn an_allowed_page_is_told_so_and_no_other() {
    let (toolkit, _) = toolkit();
    let options = HttpOptions { allowed_origins: vec!["https://app.example.com".to_owned()], ..with_token() };
    let served = serve(&toolkit, options).await;
    let page = "https://app.example.com";

    let preflight = served
        .client
        .request(reqwest::Method::OPTIONS, served.url())
        .header(ORIGIN, page)
        .header("Access-Control-Request-Method", "POST")
        .send()
        .await
        .unwrap();
    let response = served.post(&initialize()).header(ORIGIN, page).send().await.unwrap();

    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    for answer in [&preflight, &response] {
        assert_eq!(answer.headers()["access-control-allow-origin"], page);
    }
    assert_eq!(response.status(), StatusCode::OK);
    served.end().await;
}

#[tokio::test]
async fn a_request_needs_the_token() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;

    for token in [None, Some("Bearer wrong"), Some("Bearer secre"), Some("Basic secret"), Some("secret")] {
        let request = served.bare(&initialize());
        let request = token.map_or_else(
            || request.try_clone().unwrap(),
            |token| served.bare(&initialize()).header(AUTHORIZATION, token),
        );
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{token:?}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
    }
    served.open().await;
    served.end().await;
}

#[tokio::test]
async fn a_body_has_a_largest_size() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;

    let large = call(1, "add", &json!({"a": "x".repeat(5 << 20)}));
    let response = served.post(&large).header("Mcp-Session-Id", &session).send().await.unwrap();
    let chunked = served
        .post(&json!({}))
        .body(reqwest::Body::wrap_stream(futures_util::stream::iter(
            (0..6).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20])),
        )))
        .send()
        .await
        .unwrap();

    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(chunked.status(), StatusCode::PAYLOAD_TOO_LARGE);
    served.adds(&session).await;
    served.end().await;
}

#[tokio::test]
async fn a_malformed_request_does_not_affect_the_next() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;
    let deep = "[".repeat(100_000);
    let bodies: [&[u8]; 8] =
        [b"", b"{", b"\xff", b"[]", b"17", b"null", deep.as_bytes(), br#"{"jsonrpc": "2.0", "id": 3}"#];
    let raw: [&[u8]; 6] = [
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: -1\r\n\r\n",
        b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];

    for body in bodies {
        let response =
            served.post(&Value::Null).body(body.to_vec()).header("Mcp-Session-Id", &session).send().await.unwrap();
        assert!(response.status().is_client_error(), "{:?}: {}", body.get(..10), response.status());
        served.adds(&session).await;
    }
    for bytes in raw {
        let answer = served.raw(bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
        served.adds(&session).await;
    }
    served.end().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_answered() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let get = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", served.port);
        served.client.get(url).header(AUTHORIZATION, "Bearer secret").timeout(DEADLINE).send()
    };

    assert_eq!(get("/").await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(get("/mcp/../etc/passwd").await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(get("/mcp").await.unwrap().status(), StatusCode::NOT_ACCEPTABLE);
    served.end().await;
}

#[tokio::test]
async fn slow_clients_do_not_keep_others_from_calling() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
        slow.push(stream);
    }

    served.adds(&session).await;

    drop(slow);
    served.end().await;
}

#[tokio::test]
async fn headers_that_never_end_are_not_waited_for() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let mut slow = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let mut body = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 100\r\n\r\n";
    body.write_all(head.as_bytes()).await.unwrap();

    let mut answer = Vec::new();
    let wait = Duration::from_secs(60);
    tokio::time::timeout(wait, slow.read_to_end(&mut answer)).await.expect("the server closes it").ok();
    let mut answered = [0; 64];
    let count = tokio::time::timeout(wait, body.read(&mut answered)).await.expect("the server answers").unwrap();

    assert!(String::from_utf8_lossy(&answered[..count]).starts_with("HTTP/1.1 408"));
    served.end().await;
}

#[tokio::test]
async fn the_session_that_is_idle_longest_makes_room_for_another() {
    let (toolkit, sleeper) = toolkit();
    let served = serve(&toolkit, HttpOptions { max_sessions: 2, ..with_token() }).await;
    let busy = served.open().await;
    let request = served.post(&call(1, "sleep", &json!({}))).header("Mcp-Session-Id", &busy);
    let calling = tokio::spawn(async move { request.send().await?.text().await });
    sleeper.has_started().await;

    let idle = served.open().await;
    let next = served.open().await;

    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let of = |session: &str| served.post(&listing).header("Mcp-Session-Id", session).send();
    assert_eq!(of(&idle).await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(of(&busy).await.unwrap().status(), StatusCode::OK);
    served.adds(&next).await;
    served.end().await;
    let _ = tokio::time::timeout(DEADLINE, calling).await.expect("the connection is closed");
}

#[tokio::test]
async fn sessions_with_open_requests_are_not_ended_for_another() {
    let (toolkit, sleeper) = toolkit();
    let served = serve(&toolkit, HttpOptions { max_sessions: 1, ..with_token() }).await;
    let busy = served.open().await;
    let request = served.post(&call(1, "sleep", &json!({}))).header("Mcp-Session-Id", &busy);
    let calling = tokio::spawn(async move { request.send().await?.text().await });
    sleeper.has_started().await;

    let refused = served.post(&initialize()).send().await.unwrap();

    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let ended = served.client.delete(served.url()).header(AUTHORIZATION, "Bearer secret");
    let ended = ended.header("Mcp-Session-Id", &busy).send().await.unwrap();
    assert_eq!(ended.status(), StatusCode::OK);
    sleeper.was_cancelled().await;
    let session = served.open().await;
    served.adds(&session).await;
    served.end().await;
    let _ = tokio::time::timeout(DEADLINE, calling).await.expect("the connection is closed");
}

#[tokio::test]
async fn only_an_introduction_ends_an_idle_session() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, HttpOptions { max_sessions: 1, ..with_token() }).await;
    let idle = served.open().await;

    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!("initialize"),
    ] {
        let refused = served.post(&message).send().await.unwrap();
        assert!(refused.status().is_client_error(), "{message}: {}", refused.status());
    }

    served.adds(&idle).await;
    served.end().await;
}

#[tokio::test]
async fn a_body_with_too_many_values_is_refused() {
    let (toolkit, _) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;
    let values = format!("[{}[]]", "[],".repeat(100_000));
    let body = call(9, "add", &json!({"a": 1, "b": "heavy"})).to_string().replace("\"heavy\"", &values);

    let refused = served.post(&Value::Null).body(body).header("Mcp-Session-Id", &session).send().await.unwrap();

    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let reply: Value = refused.json().await.unwrap();
    assert_eq!(reply["id"], 9);
    assert!(reply["error"]["message"].as_str().unwrap().contains("too many values"), "{reply}");
    served.adds(&session).await;
    served.end().await;
}

#[tokio::test]
async fn an_idle_session_ends() {
    let (toolkit, _) = toolkit();
    let options = HttpOptions { session_timeout: Duration::from_millis(200), ..with_token() };
    let served = serve(&toolkit, options).await;
    let session = served.open().await;

    let waiting = async {
        loop {
            tokio::time::sleep(Duration::from_millis(600)).await;
            let request = served.post(&call(1, "add", &json!({"a": 1, "b": 2}))).header("Mcp-Session-Id", &session);
            if request.send().await.unwrap().status() == StatusCode::NOT_FOUND {
                return;
            }
        }
    };

    tokio::time::timeout(DEADLINE, waiting).await.expect("the session is gone");
    served.end().await;
}

#[tokio::test]
async fn a_request_without_a_session_is_cancelled_with_its_connection() {
    let (toolkit, sleeper) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let request = stateless(7, "tools/call", json!({"name": "sleep", "arguments": {}}));
    let sent = served
        .post(&request)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "sleep")
        .send();
    let calling = tokio::spawn(sent);
    sleeper.has_started().await;

    calling.abort();

    sleeper.was_cancelled().await;
    served.end().await;
}

#[tokio::test]
async fn the_end_of_the_server_cancels_its_calls() {
    let (toolkit, sleeper) = toolkit();
    let served = serve(&toolkit, with_token()).await;
    let session = served.open().await;
    let request = served.post(&call(1, "sleep", &json!({}))).header("Mcp-Session-Id", &session);
    let calling = tokio::spawn(async move { request.send().await?.text().await });
    sleeper.has_started().await;

    served.end().await;

    sleeper.was_cancelled().await;
    let _ = tokio::time::timeout(DEADLINE, calling).await.expect("the connection is closed");
}

#[tokio::test]
async fn another_address_needs_a_token_and_hosts() {
    let exposed = |options: HttpOptions| HttpServer::bind(HttpOptions { host: "0.0.0.0".to_owned(), ..options });
    let hosts = vec!["tools.example.com".to_owned()];

    for options in
        [HttpOptions::default(), with_token(), HttpOptions { allowed_hosts: hosts.clone(), ..HttpOptions::default() }]
    {
        assert!(matches!(exposed(options).await, Err(Error::ExposedServer { .. })));
    }
    exposed(HttpOptions { allowed_hosts: hosts, ..with_token() }).await.unwrap();
}

#[tokio::test]
async fn wrong_options_are_refused() {
    let bind = |options: HttpOptions| HttpServer::bind(options);
    let taken = HttpServer::bind(HttpOptions::default()).await.unwrap();

    for options in [
        HttpOptions { path: "mcp".to_owned(), ..HttpOptions::default() },
        HttpOptions { token: Some("two words".to_owned()), ..HttpOptions::default() },
        HttpOptions { token: Some(String::new()), ..HttpOptions::default() },
        HttpOptions { max_connections: 0, ..HttpOptions::default() },
    ] {
        assert!(matches!(bind(options).await, Err(Error::InvalidServerOption { .. })));
    }
    let again = bind(HttpOptions { port: taken.address().port(), ..HttpOptions::default() }).await;
    assert!(matches!(again, Err(Error::CannotListen { code: Some(_), .. })));
}
