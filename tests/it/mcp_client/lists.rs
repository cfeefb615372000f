//! Lists of tools, their changes, and tools that are pinned to their definitions.

use std::time::Duration;

use serde_json::json;
use toolcrib::call::Code;
use toolcrib::mcp::client::{CallOptions, ClientError};

use super::{HttpServer, VERSIONS, call, client_with, connected, definition, eventually, options, run, target};

#[tokio::test]
async fn all_pages_are_listed() {
    let client = connected(&["many-tools"]).await;

    let listed = client.list_tools().await.unwrap();

    assert_eq!((listed.tools.len(), listed.problems.len()), (10_011, 0));
    assert_eq!(client.known("tool_9999").unwrap().description.as_deref(), Some("Tool 9999."));
    assert!(client.known("no_such").is_none());
}

#[tokio::test]
async fn a_list_without_end_is_an_error() {
    for mode in ["too-many-tools", "endless-cursor"] {
        let client = connected(&[mode]).await;

        let error = client.list_tools().await.unwrap_err();

        assert!(matches!(error, ClientError::InvalidList { .. }), "{mode}: {error}");
    }
}

#[tokio::test]
async fn an_error_instead_of_a_list_is_reported() {
    let client = connected(&["no-list"]).await;

    let error = client.list_tools().await.unwrap_err();

    assert!(matches!(&error, ClientError::Answered { code: -32603, .. }), "{error}");
}

#[tokio::test]
async fn invalid_and_duplicate_definitions_are_skipped_and_reported() {
    let duplicate = connected(&["duplicate-names"]).await.list_tools().await.unwrap();
    let invalid = connected(&["invalid-tools"]).await.list_tools().await.unwrap();

    assert_eq!((duplicate.tools.len(), duplicate.problems.len()), (11, 1));
    assert_eq!(duplicate.problems[0].tool.as_deref(), Some("echo"));
    let first = duplicate.tools.iter().find(|tool| tool.name == "echo").unwrap();
    assert_eq!(first.description.as_deref(), Some("Echoes its arguments."));
    assert_eq!((invalid.tools.len(), invalid.problems.len()), (11, 4));
}

#[tokio::test]
async fn strange_names_are_listed_as_they_are() {
    let client = connected(&["strange-names"]).await;

    let listed = client.list_tools().await.unwrap();

    assert_eq!(listed.tools.len(), 16);
    assert!(client.known("line\nbreak").is_some() && client.known("a\u{200b}dd").is_some());
}

#[tokio::test]
async fn a_redefined_tool_is_not_called() {
    let server = HttpServer::start(&["well"]);
    let modern = HttpServer::start(&["well", "--protocol", "2026-07-28"]);
    let mut clients = vec![server.client().await, modern.client().await];
    for version in VERSIONS {
        clients.push(connected(&["well", "--protocol", version]).await);
    }

    for client in clients {
        let version = client.server_info().unwrap().protocol_version;
        let tool = client.tool("my_victim", definition(&client, "victim").await, CallOptions::default());
        let mut changes = client.changes();
        assert_eq!(run(&tool, json!({})).await.text(), "ran");
        // Over HTTP the streams of notifications are opened after the handshake.
        tokio::time::sleep(Duration::from_millis(800)).await;
        changes.borrow_and_update();

        call(&client, "change", json!({"kind": "redefined"})).await;
        let noticed = tokio::time::timeout(Duration::from_secs(20), changes.changed()).await;
        let response = run(&tool, json!({})).await;

        assert!(noticed.is_ok(), "{version}");
        assert_eq!(response.code, Some(Code::Denied), "{version}: {}", response.text());
        assert!(response.text().contains("the MCP server of 'scripted' has changed its definition"));
        let accepted = client.tool("my_victim", client.known("victim").unwrap(), CallOptions::default());
        assert_eq!(run(&accepted, json!({})).await.text(), "ran");
    }
}

#[tokio::test]
async fn a_tool_that_is_called_right_after_its_redefinition_does_not_run() {
    let client = connected(&["well"]).await;
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    for _ in 0..20 {
        call(&client, "change", json!({"kind": "redefined"})).await;
        let redefined = run(&tool, json!({})).await;
        call(&client, "change", json!({"kind": "added"})).await;
        let restored = run(&tool, json!({})).await;

        assert_eq!((redefined.code, restored.text().as_str()), (Some(Code::Denied), "ran"));
    }
}

#[tokio::test]
async fn a_removed_tool_is_unknown() {
    let client = connected(&["well"]).await;
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    call(&client, "change", json!({"kind": "removed"})).await;
    let response = run(&tool, json!({})).await;

    assert_eq!(response.code, Some(Code::UnknownTool));
    assert!(client.known("victim").is_none());
}

#[tokio::test]
async fn a_report_without_a_change_changes_nothing() {
    let client = connected(&["well"]).await;
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    call(&client, "change", json!({"kind": "same"})).await;

    assert_eq!(run(&tool, json!({})).await.text(), "ran");
    assert!(!client.changes().has_changed().unwrap());
    assert_eq!(*client.changes().borrow(), 0);
}

#[tokio::test]
async fn a_storm_of_reports_costs_few_lists() {
    let client = connected(&["storm"]).await;
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    call(&client, "echo", json!({})).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let ran = run(&tool, json!({})).await;
    let events = call(&client, "events", json!({})).await.text();

    assert_eq!(ran.text(), "ran");
    let lists = events.matches("tools/list").count();
    assert!((2..40).contains(&lists), "{lists}");
}

#[tokio::test]
async fn a_pinned_tool_lists_before_its_first_call() {
    let first = connected(&["well"]).await;
    let pinned = definition(&first, "victim").await;
    let client = connected(&["well"]).await;
    let mut changed = (*pinned).clone();
    changed.description = Some("Another.".to_owned());

    let same = run(&client.tool("victim", pinned, CallOptions::default()), json!({})).await;
    let other = run(&client.tool("victim", changed.into(), CallOptions::default()), json!({})).await;

    assert_eq!((same.text().as_str(), other.code), ("ran", Some(Code::Denied)));
}

#[tokio::test]
async fn a_stateless_client_detects_a_redefinition() {
    let server = HttpServer::start(&["well"]);
    let stateless = toolcrib::mcp::client::ClientOptions { stateless: true, ..options(Duration::from_secs(30)) };
    let client = client_with(server.target(), stateless);
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    let before = run(&tool, json!({})).await;
    call(&client, "change", json!({"kind": "redefined"})).await;
    let after = run(&tool, json!({})).await;

    assert_eq!((before.text().as_str(), after.code), ("ran", Some(Code::Denied)));
}

#[tokio::test]
async fn the_tools_are_compared_after_a_new_connection() {
    // The mode decides the list, so another script stands for a server that was replaced.
    let folder = std::env::temp_dir().join(format!("toolcrib-mcp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("server.py");
    let source = std::fs::read_to_string(&target(&[]).args[0]).unwrap();
    std::fs::write(&script, &source).unwrap();
    let mut command = target(&["die-after-reply"]);
    command.args[0] = script.to_str().unwrap().to_owned();
    let client = client_with(command, options(Duration::from_secs(30)));
    client.connect().await.unwrap();
    let tool = client.tool("victim", definition(&client, "victim").await, CallOptions::default());

    std::fs::write(&script, source.replace("The victim.", "Another victim.")).unwrap();
    let pid = super::structured(&call(&client, "pids", json!({})).await)["server"].as_i64().unwrap();
    call(&client, "echo", json!({})).await;
    assert!(eventually(|| !super::is_running(pid)).await);
    let response = run(&tool, json!({})).await;

    assert_eq!(response.code, Some(Code::Denied), "{}", response.text());
    assert!(eventually(|| *client.changes().borrow() == 1).await);
    std::fs::remove_dir_all(&folder).unwrap();
}
