//! Messages within the size limit that would take much memory: they are refused, or take little.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::call::{Code, ToolResponse};
use toolcrib::mcp::client::Client;

use super::{HttpServer, alone, call, client_with, connected, options, resident, structured, target};

/// Calls the tool `heavy`, and returns its response and the growth of memory while it was called, in MiB.
async fn heavy(client: &Client, unit: &str, count: usize, place: &str) -> (ToolResponse, usize) {
    let before = resident();
    let peak = tokio::spawn(async {
        let mut peak = 0;
        loop {
            peak = resident().max(peak);
            PEAK.store(peak, std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let response = call(client, "heavy", json!({"unit": unit, "count": count, "where": place})).await;
    peak.abort();
    let peak = PEAK.swap(0, std::sync::atomic::Ordering::Relaxed).max(resident());
    (response, peak.saturating_sub(before) >> 20)
}

static PEAK: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// The places of many values in the answer to a call.
const ANSWERS: [(&str, usize, &str); 6] = [
    ("[]", 5_000_000, "structured"),
    ("{}", 4_000_000, "structured"),
    (r#""key_{n}":1"#, 900_000, "object"),
    (r#"{"type":"text","text":""}"#, 600_000, "content"),
    ("[[1]]", 2_000_000, "meta"),
    ("{}", 4_000_000, "error"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_with_millions_of_values_is_refused() {
    let Some(_memory) = alone().await else { return };
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&["well", "--json"])];
    let clients = [connected(&["well"]).await, servers[0].client().await, servers[1].client().await];
    for client in &clients {
        for (unit, count, place) in ANSWERS {
            let (response, growth) = heavy(client, unit, count, place).await;

            assert_eq!(response.code, Some(Code::Failed), "{unit} {place}");
            assert!(response.text().contains("too many values"), "{unit} {place}: {:.300}", response.text());
            assert!(growth < 80, "{unit} {place}: {growth} MiB");
        }
        assert_eq!(call(client, "add", json!({"a": 1})).await.text(), "1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_text_costs_few_copies_of_it() {
    let Some(_memory) = alone().await else { return };
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&["well", "--json"])];
    let texts = [("x", 15_000_000, "text"), (r#"\""#, 7_000_000, "text"), (r"\ud83d", 2_500_000, "text")];
    for client in [connected(&["well"]).await, servers[0].client().await, servers[1].client().await] {
        for (unit, count, place) in texts.into_iter().chain([("x", 15_000_000, "message")]) {
            let began = Instant::now();

            let (response, growth) = heavy(&client, unit, count, place).await;

            assert_eq!(response.code.is_some(), place == "message", "{:.300}", response.text());
            assert!(if place == "text" { response.text().len() >= count } else { response.text().len() < 20_000 });
            assert!(growth < 15 + 64, "{unit} {place}: {growth} MiB");
            assert!(began.elapsed() < Duration::from_secs(5), "{unit} {place}: {:?}", began.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_messages_with_many_values_are_dropped_and_the_call_goes_on() {
    let Some(_memory) = alone().await else { return };
    let server = HttpServer::start(&["well"]);
    for client in [connected(&["well"]).await, server.client().await] {
        for (unit, place) in [("[]", "log"), ("{}", "log"), (r#"{"a":[1]}"#, "question")] {
            let (response, growth) = heavy(&client, unit, 1_000_000, place).await;

            assert_eq!(response.text(), "done", "{unit} {place}");
            assert!(growth < 80, "{unit} {place}: {growth} MiB");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_messages_costs_limited_memory() {
    let Some(_memory) = alone().await else { return };
    let floods = [
        r#"{"jsonrpc":"2.0","id":"p{n}","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"r{n}","method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":"u{n}","method":"no/such","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
    ];
    let server = HttpServer::start(&["well"]);
    for (client, count) in [(connected(&["well"]).await, 100_000), (server.client().await, 20_000)] {
        for unit in floods {
            let (response, growth) = heavy(&client, unit, count, "messages").await;

            assert_eq!(response.text(), "done", "{unit}");
            assert!(growth < 64, "{unit}: {growth} MiB");
        }
        assert_eq!(call(&client, "add", json!({"a": 1})).await.text(), "1");
    }
}

#[tokio::test]
async fn large_honest_answers_arrive() {
    let Some(_memory) = alone().await else { return };
    let server = HttpServer::start(&["well", "--json"]);
    for client in [connected(&["well"]).await, server.client().await] {
        let (numbers, _) = heavy(&client, "0.25", 200_000, "structured").await;
        let (rows, _) = heavy(&client, r#"{"id":{n},"name":"row","price":1.5}"#, 10_000, "structured").await;
        let blob = format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, "aW1n".repeat(1_000_000));
        let (image, _) = heavy(&client, &blob, 3, "content").await;

        assert_eq!(structured(&numbers)["a"].as_array().map(Vec::len), Some(200_000));
        assert_eq!(structured(&rows)["a"][9_999]["id"], 9_999);
        assert_eq!(image.content.len(), 3, "{:.300}", image.text());
    }
}

#[tokio::test]
async fn structured_content_stays_text_for_a_program_that_asks_for_it_late() {
    use futures_util::StreamExt;
    use toolcrib::mcp::client::CallOptions;
    use toolcrib::native::ToolContext;

    let Some(_memory) = alone().await else { return };
    let client = connected(&["well"]).await;
    let arguments = super::arguments(json!({"unit": "0.25", "count": 1_000_000, "where": "structured"}));
    let late = CallOptions { late: true, ..CallOptions::default() };

    let response =
        client.call("heavy", ToolContext::of("heavy"), arguments, late).boxed().next().await.unwrap().unwrap();

    let names: Vec<&str> = response.late.entries().map(|(name, _)| name).collect();
    assert_eq!((names, response.metadata.is_none()), (vec!["structured_content", "value"], true));
    assert_eq!(response.with_late_metadata().metadata.unwrap()["value"]["a"].as_array().map(Vec::len), Some(1_000_000));
}

#[tokio::test]
async fn a_definition_that_is_too_deep_or_too_large_is_skipped_alone() {
    let Some(_memory) = alone().await else { return };
    let deep = HttpServer::start(&["deep-tools"]);
    let deep_json = HttpServer::start(&["deep-tools", "--json"]);
    for client in [connected(&["deep-tools"]).await, deep.client().await, deep_json.client().await] {
        let listed = client.list_tools().await.unwrap();

        let skipped: Vec<&str> = listed.problems.iter().map(|problem| problem.tool.as_deref().unwrap()).collect();
        assert_eq!(skipped, ["deep_130", "deep_5000"]);
        assert!(listed.problems.iter().all(|problem| problem.reason.contains("levels deep")));
        assert!(client.known("echo").is_some());
    }
    let heavy = HttpServer::start(&["heavy-tool"]);
    for client in [connected(&["heavy-tool"]).await, heavy.client().await] {
        let before = resident();

        let listed = client.list_tools().await.unwrap();

        assert_eq!(listed.problems[0].tool.as_deref(), Some("heavy_tool"));
        assert!(listed.problems[0].reason.contains("too many values") && client.known("echo").is_some());
        assert!(resident() < before + (64 << 20));
    }
}

#[tokio::test]
async fn a_list_of_millions_of_values_is_refused() {
    let Some(_memory) = alone().await else { return };
    let server = HttpServer::start(&["heavy-list"]);
    for client in [connected(&["heavy-list"]).await, server.client().await] {
        let (before, began) = (resident(), Instant::now());

        let error = client.list_tools().await.unwrap_err().to_string();

        assert!(error.contains("too many values"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20) && resident() < before + (80 << 20));
    }
}

#[tokio::test]
async fn calls_to_a_server_that_does_not_read_wait_for_room_and_are_withdrawn() {
    let Some(_memory) = alone().await else { return };
    let client = client_with(target(&["no-read"]), options(Duration::from_secs(2)));
    client.connect().await.unwrap();
    let text = "x".repeat(5 << 20);
    let before = resident();

    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (client, text) = (client.clone(), text.clone());
            tokio::spawn(async move { call(&client, "echo", json!({"text": text})).await })
        })
        .collect();
    let mut codes = Vec::new();
    for waiting in calls {
        codes.push(waiting.await.unwrap().code);
    }

    assert!(codes.iter().all(|code| *code == Some(Code::Timeout)));
    // One call may have been begun, and one may be in the pipe.
    let is_free = super::eventually(|| resident() < before + (24 << 20)).await;
    assert!(is_free, "{} MiB", (resident().saturating_sub(before)) >> 20);
}

#[tokio::test]
async fn nothing_of_a_value_is_lost_on_its_way_as_text() {
    let client = connected(&["well"]).await;
    let sent: Value =
        serde_json::from_str(r#"{"n": 123456789012345678901234567890, "f": 1.5, "s": "\u00e9 \"x\"", "e": [{}, []]}"#)
            .unwrap();

    let response = call(&client, "echo", sent.clone()).await;

    assert_eq!(structured(&response)["arguments"].to_string(), sent.to_string());
}
