//! The life of connections and of the processes behind them.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::call::Code;
use toolcrib::mcp::client::{CallOptions, ClientError, ClientOptions, CommandTarget};
use toolcrib::native::ToolContext;

use futures_util::StreamExt;

use super::{arguments, call, client_with, connected, eventually, is_running, options, structured, target};

#[tokio::test]
async fn a_client_connects_and_closes_again_and_again() {
    let client = client_with(target(&["well"]), options(Duration::from_secs(30)));
    let closed_early = client.close().await.unwrap_err();

    for _ in 0..3 {
        client.connect().await.unwrap();
        let pid = structured(&call(&client, "pids", json!({})).await)["server"].as_i64().unwrap();
        let again = client.connect().await.unwrap_err();
        assert!(client.is_connected() && is_running(pid));

        client.close().await.unwrap();

        assert!(!client.is_connected() && !is_running(pid));
        assert!(matches!(again, ClientError::AlreadyConnected { .. }));
    }
    assert!(matches!(closed_early, ClientError::NotConnected { .. }));
    let late = call(&client, "echo", json!({})).await;
    assert!(late.text().contains("not connected"), "{}", late.text());
}

#[tokio::test]
async fn the_death_of_a_server_is_explained_at_once() {
    for mode in ["die-before-reply", "die-in-reply", "grandchild"] {
        let client = connected(&[mode]).await;
        let waiting = client.clone();
        let pending = tokio::spawn(async move { call(&waiting, "wait", json!({})).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let began = Instant::now();

        let response = call(&client, "echo", json!({})).await;
        let other = pending.await.unwrap();

        assert!(began.elapsed() < Duration::from_secs(5), "{mode}: {:?}", began.elapsed());
        for response in [response, other] {
            assert_eq!(response.code, Some(Code::Failed), "{mode}");
            let text = response.text();
            assert!(text.contains("`scripted`") && text.contains("exit status 3"), "{mode}: {text}");
            assert!(text.contains("the script ends here"), "{mode}: {text}");
        }
    }
}

#[tokio::test]
async fn a_server_that_has_died_is_started_again_and_no_call_is_repeated() {
    let client = connected(&["die-after-reply"]).await;
    let first = structured(&call(&client, "pids", json!({})).await)["server"].as_i64().unwrap();

    let answered = call(&client, "echo", json!({"text": "last words"})).await;
    assert!(eventually(|| !is_running(first)).await);
    let second = call(&client, "pids", json!({})).await;
    let events = call(&client, "events", json!({})).await.text();

    assert_eq!(answered.text(), "last words");
    assert_ne!(structured(&second)["server"].as_i64().unwrap(), first);
    assert_eq!(events.matches("tools/call").count(), 2, "{events}");
}

#[tokio::test]
async fn a_list_after_the_death_of_a_server_has_a_new_one() {
    let client = connected(&["die-after-reply"]).await;

    for _ in 0..3 {
        assert_eq!(call(&client, "echo", json!({"text": "last words"})).await.text(), "last words");
        assert_eq!(client.list_tools().await.unwrap().tools.len(), 11);
    }
}

#[tokio::test]
async fn the_pauses_between_tries_grow_and_a_call_says_when_the_next_is() {
    let folder = std::env::temp_dir().join(format!("toolcrib-mcp-life-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("server.py");
    std::fs::copy(&target(&[]).args[0], &script).unwrap();
    let mut command = target(&["die-before-reply"]);
    command.args[0] = script.to_str().unwrap().to_owned();
    let client = client_with(command, options(Duration::from_secs(20)));
    client.connect().await.unwrap();
    call(&client, "echo", json!({})).await;
    std::fs::remove_dir_all(&folder).unwrap();

    let mut texts = Vec::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let short = CallOptions { timeout: Some(Duration::from_millis(700)), ..CallOptions::default() };
        let call = client.call("pids", ToolContext::of("pids"), arguments(json!({})), short);
        texts.push(call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap().text());
        if texts.last().unwrap().contains("the next try") {
            break;
        }
    }

    assert!(texts.last().unwrap().contains("the next try to connect is in"), "{texts:#?}");
    assert!(texts.last().unwrap().contains("can't open file"), "{texts:#?}");
    assert!(client.is_connected());
}

#[tokio::test]
async fn a_server_that_cannot_start_is_an_error_with_its_log() {
    let missing = client_with(CommandTarget::new("/no/such/program"), options(Duration::from_secs(5)));
    let dying = client_with(target(&["die-at-start"]), options(Duration::from_secs(5)));

    let not_found = missing.connect().await.unwrap_err().to_string();
    let died = dying.connect().await.unwrap_err().to_string();

    assert!(not_found.contains("cannot start `/no/such/program`"), "{not_found}");
    assert!(died.contains("exit status 3") && died.contains("the script ends here"), "{died}");
    assert!(!missing.is_connected() && !dying.is_connected());
}

#[tokio::test]
async fn servers_that_do_not_know_the_newest_greeting_are_greeted_as_before() {
    for mode in ["die-at-discover", "empty-discover", "silent-discover", "slow-start", "unsolicited"] {
        let client = connected(&[mode]).await;

        let response = call(&client, "echo", json!({"text": "hi"})).await;

        assert_eq!(response.text(), "hi", "{mode}");
        assert_eq!(client.server_info().unwrap().protocol_version, "2025-11-25");
    }
}

#[tokio::test]
async fn a_slow_start_of_a_server_of_the_newest_version_works() {
    let client = connected(&["slow-start", "--protocol", "2026-07-28"]).await;

    let response = call(&client, "echo", json!({"text": "hi"})).await;

    assert_eq!(response.text(), "hi");
}

#[tokio::test]
async fn what_was_learned_about_the_greeting_is_remembered() {
    let client = connected(&["silent-discover"]).await;
    client.close().await.unwrap();

    client.connect().await.unwrap();

    assert!(!call(&client, "events", json!({})).await.text().contains("server/discover"));
}

#[tokio::test]
async fn connecting_ends_at_its_deadline() {
    let short = ClientOptions { connect_timeout: Duration::from_millis(600), ..ClientOptions::default() };
    let client = client_with(target(&["slow-start"]), short);
    let began = Instant::now();

    let error = client.connect().await.unwrap_err();

    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_closed_server_is_gone_with_its_descendants() {
    for mode in ["grandchild", "daemon", "ignore-sigterm"] {
        let client = connected(&[mode]).await;
        let pids = call(&client, "pids", json!({})).await;
        let mut all = vec![structured(&pids)["server"].as_i64().unwrap()];
        all.extend(structured(&pids)["children"].as_array().unwrap().iter().filter_map(serde_json::Value::as_i64));

        client.close().await.unwrap();

        assert!(eventually(|| all.iter().all(|pid| !is_running(*pid))).await, "{mode}: {all:?}");
    }
}

#[tokio::test]
async fn a_dropped_client_ends_its_server() {
    let client = connected(&["grandchild"]).await;
    let pids = call(&client, "pids", json!({})).await;
    let server = structured(&pids)["server"].as_i64().unwrap();
    let child = structured(&pids)["children"][0].as_i64().unwrap();

    drop(client);

    assert!(eventually(|| !is_running(server) && !is_running(child)).await);
}

#[test]
fn a_runtime_that_ends_takes_the_server_with_it_and_the_client_goes_on_in_another() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let first = runtime();
    let (client, pids) = first.block_on(async {
        let client = connected(&["grandchild"]).await;
        let pids = call(&client, "pids", json!({})).await;
        (client, pids)
    });
    let server = structured(&pids)["server"].as_i64().unwrap();
    let child = structured(&pids)["children"][0].as_i64().unwrap();

    first.shutdown_timeout(Duration::from_secs(5));
    let second = runtime();
    let again = second.block_on(async {
        assert!(eventually(|| !is_running(server) && !is_running(child)).await);
        call(&client, "pids", json!({})).await
    });

    assert_ne!(structured(&again)["server"].as_i64().unwrap(), server);
    second.block_on(client.close()).unwrap();
}

#[tokio::test]
async fn a_server_inherits_no_secrets() {
    let code = "import json, os, sys; sys.stderr.write(json.dumps(sorted(os.environ)))";
    let mut command = CommandTarget { args: vec!["-c".to_owned(), code.to_owned()], ..target(&[]) };
    command.env = vec![("GIVEN".to_owned(), "1".to_owned())];
    let client = client_with(command, options(Duration::from_secs(10)));

    let error = client.connect().await.unwrap_err().to_string();

    assert!(error.contains("\"GIVEN\"") && error.contains("\"PATH\""), "{error}");
    // Cargo sets it for this process.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !error.contains("CARGO"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_connects_leaves_no_process() {
    let client = client_with(target(&["slow-start"]), options(Duration::from_secs(30)));

    for _ in 0..5 {
        assert!(tokio::time::timeout(Duration::from_millis(150), client.connect()).await.is_err());
    }

    assert!(!client.is_connected());
    assert!(eventually(|| children_of_this_process("slow-start") == 0).await);
}

/// Number of processes with a word in their command line, of which this process is the parent.
fn children_of_this_process(word: &str) -> usize {
    let own = std::process::id().to_string();
    let is_child = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).map(str::to_owned);
        parent.as_deref() == Some(&own) && String::from_utf8_lossy(&command).contains(word)
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(is_child).count()
}
