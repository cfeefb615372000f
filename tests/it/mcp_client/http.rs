//! Servers that speak streamable HTTP, well and badly.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;
use toolcrib::call::{ChunkMode, Code};
use toolcrib::mcp::client::{CallOptions, Client, ClientError, ClientOptions, HttpTarget, Target};
use toolcrib::native::ToolContext;

use super::{
    HttpServer, VERSIONS, alone, arguments, call, client_with, eventually, options, resident, responses, structured,
};

#[tokio::test]
async fn every_version_works_with_events_and_with_json() {
    for version in VERSIONS {
        for form in [&[][..], &["--json"][..]] {
            let server = HttpServer::start(&[&["well", "--protocol", version], form].concat());
            let client = server.client().await;

            let sum = call(&client, "add", json!({"a": 2, "b": 40})).await;
            let sent = serde_json::from_str(r#"{"n": 123456789012345678901234567890, "f": 0.1}"#).unwrap();
            let echo = call(&client, "echo", sent).await;
            let reports = responses(&client, "progress", json!({"n": 20})).await;
            let content = call(&client, "content", json!({})).await;

            assert_eq!(client.server_info().unwrap().protocol_version, version);
            assert_eq!(structured(&sum), &json!({"sum": 42}), "{version} {form:?}");
            let value = structured(&echo)["arguments"].to_string();
            assert_eq!(value, r#"{"n":123456789012345678901234567890,"f":0.1}"#);
            assert_eq!((reports.len(), content.content.len()), (21, 7), "{version} {form:?}");
            assert!(reports[..20].iter().all(|report| report.mode == ChunkMode::Progress));
            client.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_session_is_deleted_when_the_client_closes() {
    let folder = std::env::temp_dir().join(format!("toolcrib-mcp-http-{}", std::process::id()));
    let file = folder.to_str().unwrap();
    let server = HttpServer::start(&["well", "--events", file]);
    let client = server.client().await;

    client.close().await.unwrap();

    let events = std::fs::read_to_string(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    assert!(events.contains("DELETE"), "{events}");
}

#[tokio::test]
async fn an_expired_session_is_made_again() {
    let server = HttpServer::start(&["session-expired"]);
    let client = server.client().await;
    client.list_tools().await.unwrap();

    for n in 0..6 {
        let response = call(&client, "echo", json!({"text": format!("call {n}")})).await;

        assert_eq!(response.text(), format!("call {n}"));
    }
}

#[tokio::test]
async fn failures_of_a_server_are_responses_and_the_client_goes_on() {
    let Some(_memory) = alone().await else { return };
    let modes = [
        ("http-500", "`scripted`: HTTP 500"),
        ("redirect", "redirect"),
        ("huge-body", "more than 16777216 bytes"),
        ("huge-event", ""),
        ("sse-cut", ""),
        ("accepted", "HTTP 202"),
        ("no-content", "HTTP 204"),
        ("other-answer", "no answer to the request"),
        ("die-before-reply", ""),
    ];
    for (mode, expected) in modes {
        let server = HttpServer::start(&[mode]);
        let client = server.client().await;
        let (before, began) = (resident(), Instant::now());

        let response = call(&client, "echo", json!({})).await;

        assert_eq!(response.code, Some(Code::Failed), "{mode}: {}", response.text());
        assert!(response.text().contains(expected) && response.text().contains("`scripted`"), "{}", response.text());
        assert!(began.elapsed() < Duration::from_secs(10), "{mode}: {:?}", began.elapsed());
        assert!(resident() < before + (64 << 20), "{mode}");
        if mode != "die-before-reply" {
            assert_eq!(call(&client, "add", json!({"a": 1})).await.text(), "1", "{mode}");
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_at_the_deadline() {
    let server = HttpServer::start(&["hang"]);
    let client = client_with(server.target(), options(Duration::from_millis(500)));
    client.connect().await.unwrap();

    let response = call(&client, "echo", json!({})).await;

    assert_eq!(response.code, Some(Code::Timeout));
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_on_the_server() {
    let server = HttpServer::start(&["well"]);
    let client = server.client().await;

    let mut waiting =
        client.call("wait", ToolContext::of("wait"), arguments(json!({})), CallOptions::default()).boxed();
    assert!(tokio::time::timeout(Duration::from_millis(300), waiting.next()).await.is_err());
    drop(waiting);

    let mut events = String::new();
    for _ in 0..200 {
        events = call(&client, "events", json!({})).await.text();
        if events.contains("wait cancelled") {
            break;
        }
    }
    assert!(events.contains("wait cancelled"), "{events}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let not_found = HttpServer::start(&["not-found"]);
    let gone = HttpServer::start(&["well"]);
    let target = gone.target();
    drop(gone);

    let missing = client_with(not_found.target(), options(Duration::from_secs(5))).connect().await.unwrap_err();
    let refused = client_with(target, options(Duration::from_secs(5))).connect().await.unwrap_err();

    assert!(missing.to_string().contains("404"), "{missing}");
    assert!(refused.to_string().contains("cannot connect"), "{refused}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let server = HttpServer::start(&["well"]);
    let port = server.port.to_string();
    let client = server.client().await;
    drop(server);

    let while_gone = call(&client, "echo", json!({"text": "a"})).await;
    let _back = HttpServer::start(&["well", "--http", &port]);
    let mut after = call(&client, "echo", json!({"text": "b"})).await;
    if after.code.is_some() {
        after = call(&client, "echo", json!({"text": "b"})).await;
    }

    assert_eq!(while_gone.code, Some(Code::Failed));
    assert_eq!(after.text(), "b");
}

#[tokio::test]
async fn only_tls_and_public_addresses_are_allowed_by_default() {
    let refused = |url: &str| Client::new("x", Target::Http(HttpTarget::new(url)), ClientOptions::default()).err();
    let private = |url: &str| HttpTarget { allow_private_addresses: true, ..HttpTarget::new(url) };

    for url in [
        "http://example.com/mcp",
        "http://10.0.0.1/mcp",
        "https://10.0.0.1/mcp",
        "https://169.254.169.254/",
        "https://[fd00::1]/",
    ] {
        assert!(matches!(refused(url), Some(ClientError::Target(_))), "{url}");
        assert!(Client::new("x", Target::Http(private(url)), ClientOptions::default()).is_ok(), "{url}");
    }
    for url in ["https://example.com/mcp", "http://localhost:1/mcp", "http://127.0.0.1:1/mcp", "http://[::1]:1/mcp"] {
        assert!(refused(url).is_none(), "{url}");
    }
}

#[tokio::test]
async fn headers_and_tokens_are_sent_and_reserved_headers_refused() {
    let target = |headers: &[(&str, &str)]| HttpTarget {
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        bearer: Some("secret".to_owned()),
        ..HttpTarget::new("http://127.0.0.1:1/mcp")
    };
    let made = |headers| Client::new("x", Target::Http(target(headers)), ClientOptions::default());

    assert!(made(&[("X-Key", "k")]).is_ok());
    for headers in [&[("Mcp-Session-Id", "k")][..], &[("bad name", "k")], &[("X-Key", "a\nb")]] {
        let error = made(headers).unwrap_err().to_string();
        assert!(error.contains("header") && !error.contains("a\nb"), "{error}");
    }
}

#[tokio::test]
async fn a_change_of_the_list_is_noticed() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = HttpServer::start(&["well", "--protocol", version]);
        let client = server.client().await;
        client.list_tools().await.unwrap();
        tokio::time::sleep(Duration::from_millis(800)).await;

        call(&client, "change", json!({"kind": "removed"})).await;

        assert!(eventually(|| client.known("victim").is_none()).await, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_concurrent_calls_are_not_mixed() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = HttpServer::start(&["well", "--protocol", version]);
        let client = server.client().await;

        let calls = (0..50).map(|n| {
            let client = client.clone();
            tokio::spawn(async move { (n, call(&client, "echo", json!({"text": format!("text {n}")})).await.text()) })
        });

        for task in futures_util::future::join_all(calls).await {
            let (n, text) = task.unwrap();
            assert_eq!(text, format!("text {n}"));
        }
    }
}

#[test]
fn the_client_goes_on_in_another_runtime() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = HttpServer::start(&["well"]);
    let first = runtime();
    let client = first.block_on(server.client());
    assert_eq!(first.block_on(call(&client, "echo", json!({"text": "a"}))).text(), "a");

    first.shutdown_timeout(Duration::from_secs(5));
    let response = runtime().block_on(call(&client, "echo", json!({"text": "b"})));

    assert_eq!(response.text(), "b");
}

#[tokio::test]
async fn a_server_that_refuses_the_end_of_the_greeting_is_an_error_with_the_reason() {
    let server = HttpServer::start(&["initialized-500"]);
    let client = client_with(server.target(), options(Duration::from_secs(30)));
    let began = Instant::now();

    let error = client.connect().await.unwrap_err().to_string();

    assert!(error.contains("notifications/initialized") && error.contains("500"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_stream_that_ends_again_and_again_is_opened_with_growing_pauses() {
    for mode in ["retry-zero", "broken-stream"] {
        let server = HttpServer::start(&[mode]);
        let client = server.client().await;
        tokio::time::sleep(Duration::from_secs(3)).await;

        let events = call(&client, "events", json!({})).await.text();

        let opened = events.lines().filter(|event| *event == "GET").count();
        assert!((2..10).contains(&opened), "{mode}: {opened}");
    }
}

#[tokio::test]
async fn a_stream_without_end_costs_limited_memory() {
    let Some(_memory) = alone().await else { return };
    let server = HttpServer::start(&["endless-stream"]);
    let before = resident();
    let client = server.client().await;

    let mut peak = 0;
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        peak = resident().max(peak);
    }

    assert_eq!(call(&client, "add", json!({"a": 1})).await.text(), "1");
    assert!(peak < before + (80 << 20), "{} MiB", (peak - before) >> 20);
}
