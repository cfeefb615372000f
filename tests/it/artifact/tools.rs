//! The artifact tools in a program without Python.

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib::artifact::{Artifacts, Refusal, tools};
use toolcrib::prelude::*;
use toolcrib::store::Store;

#[tokio::test]
async fn artifacts_are_tools_of_a_rust_program() -> Result<()> {
    let artifacts = Artifacts::new(Store::open("sqlite::memory:")?);
    let toolkit = Toolkit::new();
    for tool in tools(&artifacts) {
        toolkit.register(tool)?;
    }
    let call = |name: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        toolkit.call(ToolCall::new(name, arguments.into_iter().collect()))
    };
    let last = |stream: ToolStream| async { stream.collect::<Vec<_>>().await.pop().unwrap() };

    let created = last(call("create_artifact", json!({"id": "a", "title": "t", "content": "alpha beta gamma"}))).await;
    let updated = last(call("update_artifact", json!({"id": "a", "old_str": "alpha betta", "new_str": "x"}))).await;
    let refused = artifacts.update(None, "b", "x", "y").await;

    assert_eq!(created.text(), r#"{"message":"Created artifact 'a'"}"#);
    assert_eq!(updated.metadata.unwrap()["matched_text"], "alpha beta");
    assert_eq!(artifacts.read(None, "a", None).await.unwrap().content, "x gamma");
    assert_eq!(refused, Err(Refusal::NotFound { id: "b".to_owned() }));
    Ok(())
}
