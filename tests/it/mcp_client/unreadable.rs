//! Messages that cannot be read: they are logged, and a call that one of them answers ends at once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::call::Code;
use toolcrib::mcp::client::{Client, ClientOptions, EncodingErrors};

use super::{HttpServer, call, client_with, connected, eventually, options, target};

/// A client of a server on standard input and output, and its warnings.
async fn warned(arguments: &[&str], changes: ClientOptions) -> (Client, Arc<Mutex<Vec<String>>>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let sink = warnings.clone();
    let on_warning = Some(Arc::new(move |text| sink.lock().unwrap().push(text)) as _);
    let client = client_with(target(arguments), ClientOptions { on_warning, ..changes });
    client.connect().await.unwrap();
    (client, warnings)
}

#[tokio::test]
async fn text_that_is_almost_json_is_read() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"a":[NaN,Infinity,-Infinity,"NaN"]}}}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"structuredContent\":{\"a\":[null,null,null,\"NaN\"]}}}",
    ];
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&["well", "--json"])];
    for client in [connected(&["well"]).await, servers[0].client().await, servers[1].client().await] {
        for line in lines {
            let response = call(&client, "line", json!({"text": line})).await;

            assert_eq!(response.text(), r#"{"a":[null,null,null,"NaN"]}"#, "{line}");
        }
        let bytes = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"aÿb"}]}}"#;
        assert_eq!(call(&client, "line", json!({"text": bytes, "latin": true})).await.text(), "a\u{fffd}b");
    }
}

#[tokio::test]
async fn a_call_whose_answer_cannot_be_read_ends_at_once() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
    let deep_structured = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"structuredContent":{}1{}}}}}"#,
        "{\"a\":".repeat(200),
        "}".repeat(200)
    );
    let lines = [
        (r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":nothing}}"#, "not JSON"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":["#, "not a message"),
        (r#"{"jsonrpc":"2.0","result":{"content":nothing}}"#, ""),
        (r#"{"id":$ID,"result":{"content":[]}}"#, "JSON-RPC 2.0"),
        (&deep, "levels deep"),
        (&deep_structured, "levels deep"),
    ];
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&["well", "--json"])];
    for client in [connected(&["well"]).await, servers[0].client().await, servers[1].client().await] {
        for (line, reason) in lines {
            let began = Instant::now();

            let response = call(&client, "line", json!({"text": line})).await;

            assert_eq!(response.code, Some(Code::Failed), "{line:.80}: {:.200}", response.text());
            assert!(
                response.text().contains(reason) && response.text().contains("scripted"),
                "{:.300}",
                response.text()
            );
            assert!(began.elapsed() < Duration::from_secs(10), "{line:.80}");
        }
    }
}

#[tokio::test]
async fn a_line_of_a_log_is_not_the_answer_to_a_call() {
    let client = connected(&["well"]).await;
    for line in [r#"{"level":"warn","error":"cache miss"}"#, r#"{"ts":1,"result":"ok"}"#, r#"INFO {"result": 5}"#] {
        let response = call(&client, "line", json!({"text": line, "pause": 0.6})).await;

        assert_eq!(response.text(), "done", "{line}");
    }
}

#[tokio::test]
async fn the_answers_of_a_batch_end_their_calls_at_once() {
    let answer = |values: &str, count: usize| {
        format!(
            r#"[{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"structuredContent":{{"a":[{}0]}}}}}}]"#,
            values.repeat(count)
        )
    };
    for client in [connected(&["well"]).await, HttpServer::start(&["well", "--json"]).client().await] {
        let honest = call(&client, "line", json!({"text": answer("1,", 100_000)})).await;
        let heavy = call(&client, "line", json!({"text": answer("[],", 2_000_000)})).await;

        assert_eq!(super::structured(&honest)["a"].as_array().map(Vec::len), Some(100_001));
        assert_eq!(heavy.code, Some(Code::Failed));
        assert!(heavy.text().contains("too many values"), "{:.300}", heavy.text());
    }
}

#[tokio::test]
async fn bytes_that_are_not_text_are_refused_if_asked_for() {
    let strict = ClientOptions { encoding_errors: EncodingErrors::Strict, ..options(Duration::from_secs(30)) };
    let (client, warnings) = warned(&["bad-utf8-reply"], strict).await;

    let response = call(&client, "echo", json!({})).await;

    assert_eq!(response.code, Some(Code::Failed));
    assert!(response.text().contains("not UTF-8"), "{}", response.text());
    assert!(warnings.lock().unwrap()[0].contains("`scripted`"));
}

#[tokio::test]
async fn warnings_name_the_server_and_the_reason_and_are_few() {
    let (client, warnings) = warned(&["well"], options(Duration::from_secs(30))).await;

    let unit = "INFO starting {n}";
    call(&client, "heavy", json!({"unit": unit, "count": 10_000, "where": "messages"})).await;

    assert!(eventually(|| client.stray_messages() >= 10_000).await);
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    assert!(warnings[0].contains("`scripted`") && warnings[0].contains("not a message"), "{}", warnings[0]);
}

#[tokio::test]
async fn a_timeout_says_that_a_message_could_not_be_read() {
    let client = client_with(target(&["well"]), options(Duration::from_millis(700)));
    client.connect().await.unwrap();

    let response = call(&client, "line", json!({"text": "{"})).await;

    assert_eq!(response.code, Some(Code::Timeout));
    assert!(response.text().contains("cannot be read"), "{}", response.text());
}

#[tokio::test]
async fn a_broken_answer_ends_its_own_call_and_no_other() {
    let client = connected(&["well"]).await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "wait", json!({"seconds": 1})).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;

    let broken = call(&client, "line", json!({"text": r#"{"jsonrpc":"2.0","id":$ID,"result":nothing}"#})).await;

    assert_eq!(broken.code, Some(Code::Failed));
    assert_eq!(waiting.await.unwrap().text(), "waited");
}
