//! Servers that misbehave: every call is answered in time, memory stays bounded, and other servers are not affected.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;
use toolcrib::call::{Code, ToolCall};
use toolcrib::mcp::client::{CallOptions, ClientOptions, EncodingErrors};
use toolcrib::native::{ToolContext, Toolkit};

use super::{
    HttpServer, alone, arguments, call, client_with, connected, definition, eventually, options, resident, run, target,
};

#[tokio::test]
async fn messages_that_do_not_belong_are_dropped_and_counted() {
    let modes = [
        ("garbage", 4),
        ("bad-utf8", 2),
        ("deep", 1),
        ("wrong-id", 1),
        ("duplicate-id", 1),
        ("reply-twice", 1),
        ("byte-drip", 0),
        ("text-id", 0),
        ("batch", 0),
        ("unsolicited", 2),
    ];
    for (mode, strays) in modes {
        let client = connected(&[mode]).await;

        let first = call(&client, "echo", json!({"text": "right"})).await;
        let second = call(&client, "echo", json!({"text": "again"})).await;

        assert_eq!((first.text().as_str(), second.text().as_str()), ("right", "again"), "{mode}");
        assert!(eventually(|| client.stray_messages() >= strays).await, "{mode}: {}", client.stray_messages());
    }
}

#[tokio::test]
async fn bytes_that_are_not_text_are_replaced_or_left_out() {
    let text = async |encoding_errors| {
        let tolerant = ClientOptions { encoding_errors, ..options(Duration::from_secs(30)) };
        let client = client_with(target(&["bad-utf8-reply"]), tolerant);
        client.connect().await.unwrap();
        call(&client, "echo", json!({})).await.text()
    };

    assert_eq!(text(EncodingErrors::default()).await, "a\u{fffd}b");
    assert_eq!(text(EncodingErrors::Ignore).await, "ab");
}

#[tokio::test]
async fn an_answer_that_is_neither_a_result_nor_an_error_is_the_end_of_its_call() {
    for (mode, reason) in [("empty-reply", "invalid answer"), ("text-error", "the tool is on strike")] {
        let client = connected(&[mode]).await;

        let response = call(&client, "echo", json!({})).await;

        assert_eq!(response.code, Some(Code::Failed), "{mode}");
        assert!(response.text().contains(reason), "{mode}: {}", response.text());
    }
}

#[tokio::test]
async fn half_of_a_character_does_not_hide_the_rest_of_a_text() {
    let servers = [HttpServer::start(&["half-character"]), HttpServer::start(&["half-character", "--json"])];
    let mut clients = vec![connected(&["half-character"]).await];
    for server in &servers {
        clients.push(server.client().await);
    }

    for client in clients {
        let response = call(&client, "echo", json!({})).await;

        assert_eq!(response.text(), "a\u{fffd}b \u{1f600} \\ud83d");
    }
}

#[tokio::test]
async fn a_timeout_names_the_time_of_the_whole_call() {
    let client = connected(&["well"]).await;
    let context = ToolContext { deadline: Some(Instant::now() + Duration::from_secs(1)), ..ToolContext::of("wait") };

    let waiting = client.call("wait", context, arguments(json!({"n": 7})), CallOptions::default());
    let last = waiting.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();

    let text = last.text();
    let seconds: f64 = text.split(' ').rev().nth(1).unwrap().parse().unwrap();
    assert!(seconds > 0.9, "{text}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_at_the_deadline() {
    for mode in ["hang", "half-line", "no-read"] {
        let client = client_with(target(&[mode]), options(Duration::from_millis(700)));
        client.connect().await.unwrap();
        let began = Instant::now();

        let response = call(&client, "echo", json!({})).await;

        assert_eq!(response.code, Some(Code::Timeout), "{mode}: {}", response.text());
        assert!(began.elapsed() < Duration::from_secs(10), "{mode}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_costs_limited_memory() {
    let Some(_memory) = alone().await else { return };
    let client = client_with(target(&["no-read"]), options(Duration::from_millis(200)));
    client.connect().await.unwrap();
    let text = "x".repeat(4 << 20);
    let before = resident();

    let mut last = None;
    for _ in 0..30 {
        last = Some(call(&client, "echo", json!({"text": text})).await);
    }

    assert!(last.unwrap().code.is_some());
    assert!(resident() < before + (200 << 20), "{} MiB", (resident() - before) >> 20);
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection() {
    let Some(_memory) = alone().await else { return };
    for mode in ["frame-17m", "frame-1g"] {
        let client = connected(&[mode]).await;
        let other = connected(&["well"]).await;
        let before = resident();

        let response = call(&client, "echo", json!({})).await;
        let unaffected = call(&other, "echo", json!({"text": "fine"})).await;

        assert_eq!(response.code, Some(Code::Failed));
        assert!(response.text().contains("more than 16777216 bytes"), "{mode}: {}", response.text());
        assert!(response.text().contains("`scripted`"));
        assert_eq!(unaffected.text(), "fine");
        assert!(resident() < before + (64 << 20), "{mode}: {} MiB", (resident() - before) >> 20);
        // The next call has a new server.
        assert!(structured_pid(&call(&client, "pids", json!({})).await) > 0);
    }
}

fn structured_pid(response: &toolcrib::call::ToolResponse) -> i64 {
    super::structured(response)["server"].as_i64().unwrap()
}

#[tokio::test]
async fn a_large_message_below_the_limit_arrives() {
    let Some(_memory) = alone().await else { return };
    let large = ClientOptions { max_frame: 40 << 20, ..options(Duration::from_secs(60)) };
    let client = client_with(target(&["frame-17m"]), large);
    client.connect().await.unwrap();

    let response = call(&client, "echo", json!({})).await;

    assert_eq!(response.text().len(), 17 << 20);
}

#[tokio::test]
async fn a_flood_on_standard_error_is_drained() {
    let Some(_memory) = alone().await else { return };
    let client = connected(&["stderr-flood"]).await;
    let before = resident();

    let response = call(&client, "echo", json!({"text": "dry"})).await;

    assert_eq!(response.text(), "dry");
    assert!(resident() < before + (64 << 20));
}

#[tokio::test]
async fn a_result_that_is_marked_as_an_error_is_one() {
    let client = connected(&["is-error"]).await;

    let response = call(&client, "echo", json!({"text": "no"})).await;

    assert_eq!((response.text().as_str(), response.code), ("no", Some(Code::Failed)));
}

#[tokio::test]
async fn a_structured_result_has_to_fit_its_schema() {
    for (mode, expected) in
        [("bad-structured", "structuredContent/sum"), ("missing-structured", "no structured content")]
    {
        let client = connected(&[mode]).await;
        let tool = client.tool("add", definition(&client, "add").await, CallOptions::default());

        let pinned = run(&tool, json!({"a": 1})).await;
        let plain = call(&client, "add", json!({"a": 1})).await;

        for response in [pinned, plain] {
            assert_eq!(response.code, Some(Code::Failed), "{mode}");
            assert!(
                response.text().contains("output schema") && response.text().contains(expected),
                "{}",
                response.text()
            );
        }
    }
}

#[tokio::test]
async fn an_unusable_output_schema_is_ignored_and_nothing_is_fetched() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    for mode in ["schema-loop", "schema-remote", "schema-redos", "schema-invalid"] {
        let mut command = target(&[mode]);
        command.env = vec![("TRAP_PORT".to_owned(), trap.local_addr().unwrap().port().to_string())];
        let client = client_with(command, options(Duration::from_secs(30)));
        client.connect().await.unwrap();
        let tool = client.tool("add", definition(&client, "add").await, CallOptions::default());
        let began = Instant::now();

        let response = run(&tool, json!({"a": 1, "b": 2})).await;

        assert!(began.elapsed() < Duration::from_secs(10), "{mode}");
        match mode {
            "schema-redos" => assert_eq!(response.code, Some(Code::Failed), "{}", response.text()),
            "schema-loop" => {}
            _ => assert_eq!(response.text(), "3", "{mode}"),
        }
        assert!(trap.accept().is_err(), "{mode}");
    }
}

#[tokio::test]
async fn errors_and_invalid_results_are_responses() {
    for (mode, expected) in [("rpc-error", "on strike"), ("invalid-result", "invalid result")] {
        let client = connected(&[mode]).await;

        let response = call(&client, "echo", json!({})).await;

        assert_eq!(response.code, Some(Code::Failed));
        assert!(response.text().contains(expected), "{}", response.text());
    }
}

#[tokio::test]
async fn an_unusable_input_schema_neither_hangs_nor_fetches() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    for mode in ["schema-loop", "schema-remote", "schema-redos", "schema-invalid"] {
        let mut command = target(&[mode]);
        command.env = vec![("TRAP_PORT".to_owned(), trap.local_addr().unwrap().port().to_string())];
        let client = client_with(command, options(Duration::from_secs(30)));
        client.connect().await.unwrap();
        let toolkit = Toolkit::new();
        toolkit.register(client.tool("echo", definition(&client, "echo").await, CallOptions::default())).unwrap();
        let began = Instant::now();

        let text = format!("{}!", "a".repeat(50_000));
        let call = ToolCall::new("echo", super::arguments(json!({"text": text})));
        let responses: Vec<_> = toolkit.call(call).collect().await;

        assert!(responses.last().is_some_and(|last| last.is_last), "{mode}");
        assert!(began.elapsed() < Duration::from_secs(10), "{mode}");
        assert!(trap.accept().is_err(), "{mode}");
    }
}
