//! Raw text I/O, with the guard as it is if no variable is set.

use std::fs;

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib::call::{Code, ToolResponse};
use toolcrib::files::raw;
use toolcrib::native::{Logger, NativeTool, ToolContext};

use super::Place;

async fn call(tool: NativeTool, arguments: Value) -> ToolResponse {
    let context = ToolContext { logger: Some(Logger::new(|_, text| drop(text))), ..ToolContext::of(tool.name()) };
    tool.run(context, arguments).next().await.expect("a response").expect("a result")
}

async fn text(tool: NativeTool, arguments: Value) -> String {
    call(tool, arguments).await.text()
}

#[tokio::test]
async fn every_response_has_the_metadata_of_the_guard_and_a_warning_is_logged() {
    let (sender, warnings) = std::sync::mpsc::channel();
    let tool = raw::insert_text_file();
    let context = ToolContext {
        logger: Some(Logger::new(move |_, text| sender.send(text).expect("a receiver"))),
        ..ToolContext::of(tool.name())
    };

    let arguments = json!({"file_path": "/nowhere/a\nb", "content": "x", "line_number": 0});
    let response = tool.run(context, arguments).next().await.expect("a response").expect("a result");

    assert_eq!(response.text(), "InvalidArgumentsError: The line number 0 is invalid. ");
    assert_eq!(response.code, Some(Code::Failed));
    assert_eq!(
        response.metadata,
        Some(json!({
            "dangerous_io": true,
            "policy": "warn",
            "tool": "insert_text_file",
            "path": "/nowhere/a\nb",
            "blocked": false,
            "reason": "bypass_filesystem",
        }))
    );
    assert_eq!(
        warnings.try_iter().collect::<Vec<_>>(),
        [r#"tool `insert_text_file` has raw access to the path "/nowhere/a\nb": TOOLCRIB_DANGEROUS_TEXT_IO is `warn`"#]
    );
}

#[tokio::test]
async fn negative_ranges_count_from_the_end() {
    let place = Place::new();
    let path = place.write("a", (1..=10).map(|number| format!("{number}\n")).collect::<String>());
    let path = path.to_str().unwrap();
    let view = async |ranges: Value| text(raw::view_text_file(), json!({"file_path": path, "ranges": ranges})).await;

    assert_eq!(
        view(json!([-3, -1])).await,
        format!("The content of {path} in [-3, -1] lines:\n```\n8: 8\n9: 9\n10: 10\n```")
    );
    assert!(view(json!([-100, -1])).await.contains("\n```\n1: 1\n2: 2\n"));
    assert!(view(json!([9, -1])).await.ends_with("\n```\n9: 9\n10: 10\n```"));
    assert_eq!(
        view(json!([-1, -3])).await,
        "InvalidArgumentError: The start line is greater than the end line in the given range [-1, -3]."
    );
    assert_eq!(
        view(json!([0, 3])).await,
        format!(
            "InvalidArgumentError: The range '[0, 3]' is out of bounds for the file '{path}', which has only 10 lines."
        )
    );
    assert_eq!(
        view(json!(["a", null, 1.5, true])).await,
        "InvalidArgumentError: Invalid range format. Expected a list of two integers, but got ['a', None, 1.5, True]."
    );
}

#[tokio::test]
async fn line_breaks_of_other_systems_stay_in_the_file() {
    let place = Place::new();
    let path = place.write("a", "1\r\n2\r\n3\r\n");
    let path = path.to_str().unwrap();

    let written = text(raw::write_text_file(), json!({"file_path": path, "content": "two", "ranges": [2, 2]})).await;
    let inserted = text(raw::insert_text_file(), json!({"file_path": path, "content": "four", "line_number": 4})).await;

    assert!(written.ends_with("The new content snippet:\n```\n1: 1\n2: two\n3: 3\n```"), "{written}");
    assert!(inserted.ends_with("1: 1\n2: two\n3: 3\n4: four```"), "{inserted}");
    assert_eq!(place.read("a"), "1\r\ntwo\r\n3\r\nfour");
}

#[tokio::test]
async fn only_regular_files_are_opened() {
    let place = Place::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();

    for path in [place.path("pipe"), place.path(""), "/dev/zero".into(), "/dev/null".into()] {
        let path = path.to_str().unwrap();
        for (tool, more) in [
            (raw::view_text_file(), json!({})),
            (raw::write_text_file(), json!({"content": "x"})),
            (raw::write_text_file(), json!({"content": "x", "ranges": [1, 1]})),
            (raw::insert_text_file(), json!({"content": "x", "line_number": 1})),
        ] {
            let mut arguments = more;
            arguments["file_path"] = path.into();

            assert_eq!(text(tool, arguments).await, format!("Error: The path {path} is not a file."));
        }
    }
}

#[tokio::test]
async fn a_long_file_is_viewed_in_part() {
    let place = Place::new();
    let path = place.write("a", "0123456789\n".repeat(100_000));
    let path = path.to_str().unwrap();

    let whole = text(raw::view_text_file(), json!({"file_path": path})).await;
    let part = text(raw::view_text_file(), json!({"file_path": path, "ranges": [99_999, 100_000]})).await;

    assert!(whole.len() < 300_000 && whole.ends_with("```\n[truncated: view the rest with `ranges`]"));
    assert!(part.ends_with("\n```\n99999: 0123456789\n100000: 0123456789\n```"), "{part}");
}

#[tokio::test]
async fn a_file_keeps_its_identity_when_it_is_overwritten() {
    let place = Place::new();
    let path = place.write("a", "one");
    fs::hard_link(&path, place.path("b")).unwrap();

    let response = text(raw::write_text_file(), json!({"file_path": path.to_str(), "content": "2"})).await;

    assert_eq!(response, format!("Overwrite {} successfully.", path.display()));
    assert_eq!(place.read("b"), "2");
}

#[tokio::test]
async fn a_file_that_the_system_refuses_is_an_answer() {
    let place = Place::new();

    let path = place.path("missing/a");
    let response = call(raw::write_text_file(), json!({"file_path": path.to_str(), "content": "x"})).await;

    assert_eq!(response.text(), format!("Error: cannot write {}: No such file or directory", path.display()));
    assert_eq!(response.code, Some(Code::Failed));
    assert_eq!(response.metadata.unwrap()["blocked"], false);
}
