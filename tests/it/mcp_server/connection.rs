//! Lines of a connection that are no messages, and the end of a connection.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use toolcrib::mcp::server::serve_connection;

use super::{DEADLINE, call, host, initialize, toolkit};

/// A client that writes any bytes.
struct RawClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<()>,
}

impl RawClient {
    fn new() -> Self {
        let (toolkit, _) = toolkit();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let serving = tokio::spawn(serve_connection(host(&toolkit), reader, writer));
        let (reader, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(reader).lines(), writer, serving }
    }

    async fn initialized() -> Self {
        let mut client = Self::new();
        client.send(&initialize()).await;
        assert_eq!(client.next().await["id"], 0);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn adds(&mut self, id: u64) {
        self.send(&call(id, "add", &json!({"a": 1, "b": 2}))).await;
        let result = self.next().await;
        assert_eq!((&result["id"], &result["result"]["structuredContent"]), (&json!(id), &json!({"total": 3})));
    }
}

#[tokio::test]
async fn every_protocol_version_is_negotiated() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = RawClient::new();
        let mut request = initialize();
        request["params"]["protocolVersion"] = json!(version);

        client.send(&request).await;

        assert_eq!(client.next().await["result"]["protocolVersion"], version);
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_a_known_one() {
    let mut client = RawClient::new();
    let mut request = initialize();
    request["params"]["protocolVersion"] = json!("2099-01-01");

    client.send(&request).await;

    assert_eq!(client.next().await["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_malformed_line_is_answered_and_does_not_affect_the_next() {
    let mut client = RawClient::initialized().await;
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let lines: [(&[u8], i64, Value); 10] = [
        (b"{", -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xff\"}", -32700, Value::Null),
        (b"hello", -32700, Value::Null),
        (&deep, -32700, Value::Null),
        (b"[]", -32600, Value::Null),
        (b"17", -32600, Value::Null),
        (b"{\"id\": 9}", -32600, json!(9)),
        (br#"{"id": 9, "method": "ping"}"#, -32600, json!(9)),
        (br#"{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": 3}}"#, -32602, json!(8)),
    ];
    for (number, (line, code, id)) in lines.into_iter().enumerate() {
        client.write(line).await;
        client.write(b"\n").await;

        let reply = client.next().await;

        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &id), "line {number}");
        client.adds(100 + number as u64).await;
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped() {
    let mut client = RawClient::initialized().await;
    let part = vec![b'x'; 1 << 20];
    for _ in 0..17 {
        client.write(&part).await;
    }
    client.write(b"\n").await;

    let reply = client.next().await;

    assert_eq!(reply["error"]["code"], -32600);
    client.adds(1).await;
}

/// An array whose values weigh too much for a message.
fn heavy() -> String {
    format!("[{}[]]", "[],".repeat(100_000))
}

#[tokio::test]
async fn a_request_with_too_many_values_is_refused() {
    let mut client = RawClient::initialized().await;
    let request = call(9, "add", &json!({"a": 1, "b": "heavy"})).to_string().replace("\"heavy\"", &heavy());

    client.write(format!("{request}\n").as_bytes()).await;

    let reply = client.next().await;
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32600), &json!(9)));
    assert!(reply["error"]["message"].as_str().unwrap().contains("too many values"), "{reply}");
    client.adds(1).await;
}

#[tokio::test]
async fn an_answer_with_too_many_values_ends_its_question() {
    let mut client = RawClient::new();
    let mut introduction = initialize();
    introduction["params"]["capabilities"] = json!({"elicitation": {}});
    client.send(&introduction).await;
    client.next().await;
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(&call(9, "ask", &json!({}))).await;
    let question = client.next().await;
    assert_eq!(question["method"], "elicitation/create");

    let answer = format!(r#"{{"jsonrpc": "2.0", "id": {}, "result": {}}}"#, question["id"], heavy());
    client.write(format!("{answer}\n").as_bytes()).await;

    let result = client.next().await;
    assert_eq!(result["id"], 9);
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("no answer") && text.contains("too many values"), "{text}");
    client.adds(1).await;
}

#[tokio::test]
async fn empty_lines_and_unknown_notifications_are_ignored() {
    let mut client = RawClient::initialized().await;

    client.write(b"\n  \r\n").await;
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/whatever"})).await;

    client.adds(1).await;
}

#[tokio::test]
async fn a_notification_before_the_introduction_does_not_end_the_connection() {
    let mut client = RawClient::new();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}})).await;

    client.send(&initialize()).await;

    assert_eq!(client.next().await["result"]["serverInfo"]["name"], "sums");
}

#[tokio::test]
async fn an_unknown_method_is_an_error_of_the_protocol() {
    let mut client = RawClient::initialized().await;

    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/destroy"})).await;

    assert_eq!(client.next().await["error"]["code"], -32601);
    client.adds(4).await;
}

#[tokio::test]
async fn the_server_ends_with_the_input() {
    let mut client = RawClient::initialized().await;
    client.adds(1).await;

    client.writer.shutdown().await.unwrap();
    drop(client.lines);

    tokio::time::timeout(DEADLINE, client.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_without_a_session_sends_what_it_can_do_with_each_request() {
    let mut client = RawClient::new();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let request = |id: u64, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    client.send(&request(1, json!({"name": "ask", "arguments": {}}))).await;
    let asked = client.next().await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["question"]["params"]["message"], "How many?");
    let input = json!({"question": {"action": "accept", "content": {"answer": 4}}});
    let again = json!({
        "name": "ask", "arguments": {}, "requestState": asked["requestState"], "inputResponses": input,
    });

    let mut of_another = again.clone();
    of_another["arguments"] = json!({"x": 1});
    client.send(&request(2, of_another)).await;
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.send(&request(3, again.clone())).await;

    let result = client.next().await;
    assert_eq!(result["result"]["content"][0]["text"], "got 4", "{result}");
    assert_eq!(result["result"]["resultType"], "complete");
    client.send(&request(4, again)).await;
    assert_eq!(client.next().await["error"]["code"], -32602);
}
