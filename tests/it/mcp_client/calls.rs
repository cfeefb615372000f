//! Calls of servers that behave well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;
use toolcrib::call::Code;
use toolcrib::mcp::client::{CallOptions, Client};
use toolcrib::native::ToolContext;
use toolcrib::trace::TraceContext;

use super::{arguments, call, client_with, connected, eventually, options, responses, structured, target};

#[tokio::test]
async fn content_of_every_type_arrives() {
    let client = connected(&["well"]).await;

    let response = call(&client, "content", json!({})).await;

    let kinds: Vec<&str> = response.content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image", "audio", "text", "video", "text", "text"]);
    assert_eq!(response.content[4]["source"]["data"], "dmlk");
    assert_eq!(response.metadata.unwrap()["resource_links"][0]["uri"], "file:///l");
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let client = connected(&["well"]).await;
    let sent = serde_json::from_str(r#"{"n": 123456789012345678901234567890, "f": 0.1, "i": -5}"#).unwrap();

    let response = call(&client, "echo", sent).await;

    let value = structured(&response)["arguments"].to_string();
    assert_eq!(value, r#"{"n":123456789012345678901234567890,"f":0.1,"i":-5}"#);
}

#[tokio::test]
async fn a_raw_call_gives_the_whole_result() {
    let client = connected(&["well"]).await;
    let raw = CallOptions { raw: true, ..CallOptions::default() };

    let mut call = Box::pin(client.call("add", ToolContext::of("add"), arguments(json!({"a": 1, "b": 2})), raw));
    let response = call.next().await.unwrap().unwrap();

    let metadata = response.metadata.unwrap();
    assert_eq!(metadata["value"]["content"][0]["text"], "3");
    assert_eq!((&metadata["_meta"]["trace"], &metadata["structured_content"]), (&json!("t1"), &json!({"sum": 3})));
}

#[tokio::test]
async fn an_error_of_the_server_is_a_response() {
    let client = connected(&["well"]).await;

    let unknown = call(&client, "no_such", json!({})).await;

    assert_eq!(unknown.code, Some(Code::Failed));
    assert!(unknown.text().contains("unknown tool no_such"), "{}", unknown.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_concurrent_calls_are_not_mixed() {
    let client = connected(&["well"]).await;

    let calls = (0..200).map(|n| {
        let client = client.clone();
        tokio::spawn(async move { (n, call(&client, "echo", json!({"text": format!("text {n}")})).await.text()) })
    });

    for task in futures_util::future::join_all(calls).await {
        let (n, text) = task.unwrap();
        assert_eq!(text, format!("text {n}"));
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_on_the_server() {
    for version in ["2025-11-25", "2026-07-28"] {
        let client = connected(&["well", "--protocol", version]).await;

        let mut waiting =
            Box::pin(client.call("wait", ToolContext::of("wait"), arguments(json!({})), CallOptions::default()));
        assert!(tokio::time::timeout(Duration::from_millis(300), waiting.next()).await.is_err());
        drop(waiting);

        let mut events = String::new();
        for _ in 0..200 {
            events = call(&client, "events", json!({})).await.text();
            if events.contains("wait cancelled") {
                break;
            }
        }
        assert!(events.contains("notifications/cancelled") && events.contains("wait cancelled"), "{version}: {events}");
    }
}

#[tokio::test]
async fn a_call_ends_at_its_deadline() {
    let client = connected(&["well"]).await;
    let short = CallOptions { timeout: Some(Duration::from_millis(300)), ..CallOptions::default() };
    let soon = || Some(Instant::now() + Duration::from_millis(300));
    let by_option =
        |client: &Client| client.call("wait", ToolContext::of("waiter"), arguments(json!({})), short).boxed();
    let by_context = |client: &Client| {
        let context = ToolContext { deadline: soon(), ..ToolContext::of("waiter") };
        client.call("wait", context, arguments(json!({})), CallOptions::default()).boxed()
    };

    for waiting in [&by_option as &dyn Fn(&Client) -> _, &by_context] {
        let all: Vec<_> = waiting(&client).collect().await;
        let response = all[0].as_ref().unwrap();
        assert_eq!((all.len(), response.code), (1, Some(Code::Timeout)));
        assert!(response.text().contains("'waiter'"), "{}", response.text());
    }
    let mut events = String::new();
    for _ in 0..200 {
        events = call(&client, "events", json!({})).await.text();
        if events.matches("notifications/cancelled").count() == 2 {
            break;
        }
    }
    assert_eq!(events.matches("notifications/cancelled").count(), 2, "{events}");
}

#[tokio::test]
async fn a_cancelled_context_ends_the_call() {
    let client = connected(&["well"]).await;
    let context = ToolContext::of("wait");
    let token = context.cancellation.clone();

    let waiting = client.call("wait", context, arguments(json!({})), CallOptions::default());
    let (all, ()) = futures_util::join!(waiting.collect::<Vec<_>>(), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        token.cancel();
    });

    assert_eq!(all[0].as_ref().unwrap().code, Some(Code::Interrupted));
}

#[tokio::test]
async fn a_stateless_client_has_a_server_for_each_call() {
    let stateless = toolcrib::mcp::client::ClientOptions { stateless: true, ..options(Duration::from_secs(30)) };
    let client = client_with(target(&["well"]), stateless);

    let first = call(&client, "pids", json!({})).await;
    let second = call(&client, "pids", json!({})).await;
    let listed = client.list_tools().await.unwrap();

    let pid = |response| structured(response)["server"].as_i64().unwrap();
    assert_ne!(pid(&first), pid(&second));
    assert!(listed.tools.iter().any(|tool| tool.name == "echo"));
    assert!(eventually(|| !super::is_running(pid(&first)) && !super::is_running(pid(&second))).await);
    let info = client.connect().await.unwrap();
    assert!(info.name == "scripted" && client.is_connected());
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_call_before_connect_says_that_the_client_is_not_connected() {
    let client = client_with(target(&["well"]), options(Duration::from_secs(5)));

    let all = responses(&client, "echo", json!({})).await;

    assert_eq!((all.len(), all[0].code), (1, Some(Code::Failed)));
    assert!(all[0].text().contains("not connected"), "{}", all[0].text());
}

#[tokio::test]
async fn a_call_carries_the_span_of_its_context() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let trace = TraceContext::new(PARENT, Some("vendor=1")).map(Arc::new);

    for version in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let client = connected(&["well", "--protocol", version]).await;
        let context = ToolContext { trace: trace.clone(), ..ToolContext::of("events") };
        let call = client.call("events", context, arguments(json!({})), CallOptions::default());

        let traced = call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();
        let untraced = super::call(&client, "events", json!({})).await;

        let meta = &structured(&traced)["meta"];
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(PARENT), &json!("vendor=1")), "{version}");
        assert!(!meta["progressToken"].is_null(), "{version}");
        assert_eq!(structured(&untraced)["meta"].get("traceparent"), None, "{version}");
    }
}
