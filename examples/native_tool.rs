//! A program without Python: it registers a native tool, is asked for approval, approves, streams, and cancels.
//!
//! Run it with `cargo run --example native_tool`. It asserts what it shows, and the tests run it.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib::prelude::*;
use toolcrib::provider;

/// The parameters of the tool. A model reads the comments of the fields as their descriptions.
#[derive(Deserialize, JsonSchema)]
struct Backup {
    /// The folder to save.
    folder: String,
    /// The number of files in it.
    files: u32,
}

/// A tool that reports each file it has saved.
fn backup() -> NativeTool {
    NativeTool::streaming("backup", "Saves the files of a folder.", |_: ToolContext, backup: Backup| {
        let Backup { folder, files } = backup;
        stream::iter(1..=files).then(move |file| {
            let folder = folder.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok::<_, ToolError>(format!("{file} of {files} files of {folder} are safe"))
            }
        })
    })
    .with_chunks(ChunkRule::Replace) // each report is the result so far
    .with_kind(ToolKind::Edit)
    .with_permission(Permission::Confirm)
    .with_timeout(Duration::from_secs(60))
}

/// The approver; a terminal program would ask its user here.
async fn approve(request: ApprovalRequest) -> Choice {
    println!("may `{}` run with {}? ({})", request.tool, request.arguments, request.reason);
    if request.arguments["folder"] == "/" { Choice::No } else { Choice::Once }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolkit = Toolkit::new().with_approver(approve);
    toolkit.register(backup())?;
    println!("schema: {}", toolkit.schemas()[0]);

    // A call in any wire format; this is OpenAI's.
    let asked = provider::read(
        &json!({
            "id": "call_1",
            "type": "function",
            "function": {"name": "backup", "arguments": r#"{"folder": "notes", "files": 3}"#},
        }),
        None,
    )
    .map_err(|error| error.to_string())?;

    let mut responses = toolkit.call(asked.clone());
    let mut texts = Vec::new();
    while let Some(response) = responses.next().await {
        println!("response: {}", response.text());
        texts.push(response.text());
    }
    // The last response is the whole result.
    assert_eq!(texts.len(), 4);
    assert_eq!(texts[3], "3 of 3 files of notes are safe");

    // The approver denies this call, and the tool does not run.
    let mut refused = asked.clone();
    refused.arguments = json!({"folder": "/", "files": 3});
    let denied: Vec<_> = toolkit.call(refused).collect().await;
    println!("response: {}", denied[0].text());
    assert_eq!((denied.len(), denied[0].code), (1, Some(Code::Denied)));

    // Invalid arguments are answered with a response, and the approver is not asked.
    let mut wrong = asked.clone();
    wrong.arguments = json!({"folder": "notes"});
    let invalid: Vec<_> = toolkit.call(wrong).collect().await;
    println!("response: {}", invalid[0].text());
    assert_eq!(invalid[0].code, Some(Code::InvalidArguments));

    // Cancelled after the first response: the tool's future is dropped, and the last response has the code `interrupted`.
    let mut long = asked;
    long.arguments = json!({"folder": "archive", "files": 1_000_000});
    let mut responses = toolkit.call(long);
    let first = responses.next().await.ok_or("a first response")?;
    responses.cancellation().cancel();
    let rest: Vec<_> = responses.collect().await;
    println!("response: {}", rest[0].text());
    assert!(first.is_ok());
    assert_eq!((rest.len(), rest[0].is_interrupted, rest[0].code), (1, true, Some(Code::Interrupted)));
    Ok(())
}
