//! Budgets of results in a program without Python.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use toolcrib::artifact::{Artifacts, tools};
use toolcrib::call::{ChunkMode, Code, ResultBudget, ToolCall, ToolResponse};
use toolcrib::native::{NativeTool, ToolContext, ToolError, Toolkit};
use toolcrib::registry::{Session, SessionLimits};
use toolcrib::store::Store;

use super::Count;

/// A tool that returns a list of numbers.
fn numbers() -> NativeTool {
    NativeTool::new("numbers", "Lists numbers.", |_: ToolContext, count: Count| async move {
        Ok(json!((0..count.to).collect::<Vec<u32>>()))
    })
}

/// A tool that streams lines.
fn lines() -> NativeTool {
    NativeTool::streaming("lines", "Streams lines.", |_: ToolContext, count: Count| {
        stream::iter((0..count.to).map(|line| Ok::<_, ToolError>(format!("Line {line} of a text.\n"))))
    })
}

fn call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall::new(name, arguments.as_object().cloned().unwrap())
}

async fn all(toolkit: &Toolkit, name: &str, arguments: Value) -> Vec<ToolResponse> {
    toolkit.call(call(name, &arguments)).collect().await
}

async fn last(toolkit: &Toolkit, name: &str, arguments: Value) -> ToolResponse {
    all(toolkit, name, arguments).await.pop().unwrap()
}

fn size(response: &ToolResponse) -> usize {
    response.text().chars().count()
}

#[tokio::test]
async fn the_smallest_budget_that_applies_holds() {
    let toolkit = Toolkit::new().with_result_budget(ResultBudget::characters(900));
    toolkit.create_group("small", "", true).unwrap();
    toolkit.set_group_budget("small", ResultBudget::characters(500)).unwrap();
    toolkit.register(numbers()).unwrap();
    toolkit.register_in("small", lines().with_result_budget(ResultBudget::characters(400))).unwrap();
    let session = Arc::new(Session::new("one", SessionLimits::default()));
    let session = toolkit.session(session, None).with_result_budget(ResultBudget::characters(200));

    let whole = size(&last(&toolkit, "numbers", json!({"to": 9000})).await);
    let tool = size(&last(&toolkit, "lines", json!({"to": 900})).await);
    let in_session = size(&last(&session, "numbers", json!({"to": 9000})).await);

    assert!((800..=900).contains(&whole), "{whole}");
    assert!((300..=400).contains(&tool), "{tool}");
    assert!(in_session <= 200, "{in_session}");
    assert!(toolkit.set_group_budget("none", ResultBudget::characters(9)).is_err());
}

#[tokio::test]
async fn a_cut_result_keeps_its_value_and_says_what_is_left() {
    let toolkit = Toolkit::new();
    toolkit.register(numbers().with_result_budget(ResultBudget::characters(200))).unwrap();

    let response = last(&toolkit, "numbers", json!({"to": 480})).await;

    let left: Vec<Value> = serde_json::from_str(&response.text()).unwrap();
    let metadata = response.metadata.unwrap();
    assert_eq!(metadata["value"].as_array().unwrap().len(), 480);
    assert_eq!(metadata["budget"]["kind"], "json");
    assert_eq!((&metadata["budget"]["shown"], &metadata["budget"]["total"]), (&json!(left.len() - 1), &json!(480)));
}

#[tokio::test]
async fn additions_and_the_last_response_are_within_the_budget() {
    let toolkit = Toolkit::new().with_result_budget(ResultBudget::characters(300));
    toolkit.register(lines()).unwrap();

    let responses = all(&toolkit, "lines", json!({"to": 200})).await;

    let additions: Vec<String> =
        responses.iter().filter(|response| response.mode == ChunkMode::Addition).map(ToolResponse::text).collect();
    assert_eq!(additions.len(), 200);
    assert!((200..=300).contains(&additions.concat().chars().count()));
    assert!(responses.last().unwrap().text().ends_with("Line 199 of a text.\n"));
    assert!(size(responses.last().unwrap()) <= 300);
}

#[tokio::test]
async fn errors_are_within_the_budget() {
    let toolkit = Toolkit::new().with_result_budget(ResultBudget::characters(150));
    let fail = NativeTool::new("fail", "", |_: ToolContext, _: Count| async move {
        Err::<String, _>(ToolError::new("A long message. ".repeat(100)))
    });
    toolkit.register(fail).unwrap();

    let failed = last(&toolkit, "fail", json!({"to": 1})).await;
    let invalid = last(&toolkit, "fail", json!({"to": "x".repeat(1000)})).await;
    let unknown = last(&toolkit, &"unknown".repeat(100), json!({})).await;

    assert_eq!(failed.code, Some(Code::Failed));
    assert_eq!(invalid.code, Some(Code::InvalidArguments));
    assert_eq!(unknown.code, Some(Code::UnknownTool));
    assert!([failed, invalid, unknown].iter().all(|response| size(response) <= 150));
}

#[tokio::test]
async fn the_whole_result_is_an_artifact_of_the_session() {
    let artifacts = Artifacts::new(Store::open("sqlite::memory:").unwrap());
    let toolkit =
        Toolkit::new().with_result_budget(ResultBudget::characters(300)).with_whole_results(artifacts.clone());
    toolkit.register(lines()).unwrap();
    for tool in tools(&artifacts) {
        toolkit.register(tool).unwrap();
    }
    let session = toolkit.session(Arc::new(Session::new("one", SessionLimits::default())), None);

    let response = last(&session, "lines", json!({"to": 200})).await;
    let whole = response.metadata.as_ref().unwrap()["budget"]["whole"].as_str().unwrap();
    let id = whole.strip_prefix("read_artifact(id=\"").unwrap().strip_suffix("\")").unwrap();
    let part = last(&session, "read_artifact", json!({"id": id, "pattern": "Line 19[89] "})).await;
    let all = last(&session, "read_artifact", json!({"id": id})).await;

    assert!(response.text().contains(&format!("read the rest with {whole}]")));
    assert_eq!(part.metadata.unwrap()["value"]["content"], "199: Line 198 of a text.\n200: Line 199 of a text.\n");
    assert!(size(&all) <= 300);
    assert_eq!(all.metadata.unwrap()["budget"].get("whole"), None);
    assert_eq!(artifacts.list(Some("one")).await.unwrap().len(), 1);
    assert_eq!(artifacts.list(None).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_result_that_cannot_be_kept_is_delivered() {
    let store = Store::open("sqlite::memory:").unwrap();
    store.close();
    let toolkit =
        Toolkit::new().with_result_budget(ResultBudget::characters(300)).with_whole_results(Artifacts::new(store));
    toolkit.register(numbers()).unwrap();

    let response = last(&toolkit, "numbers", json!({"to": 480})).await;

    assert!(response.text().contains(" of 480 items; narrow the request to see more"));
}
