//! The texts of the file tools, as a model reads them.

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib::call::ToolResponse;
use toolcrib::files::{FilePolicy, FileService, FileSystem, Grant, Ops, tools};
use toolcrib::native::{Failure, NativeTool, ToolContext};
use toolcrib::policy::ToolKind;

use super::{Place, service, service_with};

fn tool(service: &FileService, name: &str) -> NativeTool {
    tools::tools(service).into_iter().find(|tool| tool.name() == name).expect("a tool of that name")
}

async fn call(service: &FileService, name: &str, arguments: Value) -> Result<ToolResponse, Failure> {
    let tool = tool(service, name);
    tool.run(ToolContext::of(name), arguments).next().await.expect("a response")
}

async fn text(service: &FileService, name: &str, arguments: Value) -> String {
    match call(service, name, arguments).await {
        Ok(response) => response.text(),
        Err(failure) => failure.reply(name).text(),
    }
}

#[tokio::test]
async fn a_text_file_is_read_with_a_header_and_line_numbers() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\nthree\n");
    let service = service(&place.0);
    let read = async |arguments| text(&service, "read_text_file", arguments).await;

    assert_eq!(
        read(json!({"path": "/workspace/a.txt"})).await,
        "line_count: 3\nformat: line{N}: <content>\nline1: one\nline2: two\nline3: three"
    );
    assert_eq!(
        read(json!({"path": "/workspace/a.txt", "start_line": 2, "read_lines": 1})).await,
        "line_count: 3\nformat: line{N}: <content>\nline2: two"
    );
    assert_eq!(
        read(json!({"path": "/workspace/a.txt", "with_line_numbers": false, "with_header": false})).await,
        "one\ntwo\nthree"
    );
    assert_eq!(
        read(json!({"path": "/workspace/a.txt", "with_line_numbers": false})).await,
        "line_count: 3\nformat: <content>\none\ntwo\nthree"
    );
    assert_eq!(read(json!({"path": "/workspace/b"})).await, "Error: No such file or directory: /workspace/b");
    assert_eq!(
        read(json!({"path": "/etc/passwd"})).await,
        "Error: Access denied for operation 'read_file' on path /etc/passwd"
    );
    assert_eq!(read(json!({"path": "/workspace/../a"})).await, "Error: Invalid path /workspace/../a: it contains `..`");
}

#[tokio::test]
async fn a_truncated_reply_says_how_to_read_on() {
    let place = Place::new();
    place.write("a", "0123456789\n".repeat(10));
    let service = service_with(&place.0, FilePolicy { max_reply_bytes: 40, ..FilePolicy::default() });

    let response = call(&service, "read_text_file", json!({"path": "/workspace/a"})).await.unwrap();

    assert_eq!(
        response.text(),
        "line_count: 10\nformat: line{N}: <content>\nline1: 0123456789\nline2: 0123456789\n\
         [truncated after lines 1-2: read on with start_line=3]"
    );
    assert_eq!(response.metadata.unwrap()["truncated"], true);
}

#[tokio::test]
async fn several_files_are_read_and_one_that_fails_does_not_hide_the_others() {
    let place = Place::new();
    place.write("a", "one\n");
    place.write("b", "two");
    let service = service(&place.0);

    let response =
        call(&service, "read_multiple_files", json!({"paths": ["/workspace/a", "/workspace/c", "/workspace/b"]}));
    let response = response.await.unwrap();

    assert_eq!(
        response.text(),
        "/workspace/a:\none\n---\n/workspace/c: Error - No such file or directory: /workspace/c\n---\n/workspace/b:\ntwo"
    );
    assert_eq!(response.metadata.unwrap()["failed"], json!(["/workspace/c"]));
}

#[tokio::test]
async fn a_folder_is_listed_by_type_and_name() {
    let place = Place::new();
    place.write("b/x", "");
    place.write("a.txt", "12345");
    place.write("c.txt", "1234567");
    std::os::unix::fs::symlink("a.txt", place.path("link")).unwrap();
    let service = service(&place.0);
    let list = async |name, arguments| text(&service, name, arguments).await;

    assert_eq!(
        list("list_directory", json!({"path": "/workspace/"})).await,
        "[FILE] a.txt\n[DIR] b/\n[FILE] c.txt\n[LINK] link"
    );
    assert_eq!(
        list("list_directory_with_sizes", json!({"path": "/workspace", "sortBy": "size"})).await,
        "[FILE] c.txt (7 bytes)\n[FILE] a.txt (5 bytes)\n[DIR] b/\n[LINK] link\nTotal: 2 files, 1 directories, 12 bytes"
    );
    std::fs::remove_file(place.path("b/x")).unwrap();
    assert_eq!(list("list_directory", json!({"path": "/workspace/b"})).await, "<empty>");
    assert_eq!(
        list("list_directory", json!({"path": "/workspace/a.txt"})).await,
        "Error: The path /workspace/a.txt is not a directory, or is beneath a file"
    );
}

#[tokio::test]
async fn files_are_written_edited_deleted_and_found() {
    let place = Place::new();
    let service = service(&place.0);
    let run = async |name, arguments| text(&service, name, arguments).await;
    let path = "/workspace/notes/a.md";

    assert_eq!(
        run("write_file", json!({"path": path, "content": "naïve\n"})).await,
        "wrote 7 bytes to /workspace/notes/a.md"
    );
    assert_eq!(
        run("edit_file", json!({"path": path, "edits": [{"oldText": "naïve", "newText": "wise"}]})).await,
        "edited /workspace/notes/a.md (size=5)"
    );
    assert_eq!(place.read("notes/a.md"), "wise\n");
    assert_eq!(
        run("edit_file", json!({"path": path, "edits": [{"oldText": "naïve", "newText": "wise"}]})).await,
        "Error: oldText of edit 1 does not occur in the file: \"naïve\""
    );
    assert_eq!(run("search_files", json!({"path": "/workspace/", "pattern": "*.md"})).await, path);
    assert_eq!(run("search_files", json!({"path": "/workspace/", "pattern": "x"})).await, "<no matches>");
    let info = run("get_file_info", json!({"path": path})).await;
    assert!(info.starts_with("path: /workspace/notes/a.md\ntype: file\nsize: 5\nmodified: 20"), "{info}");
    assert_eq!(run("delete_file", json!({"path": path})).await, "deleted /workspace/notes/a.md");
    assert!(!place.path("notes/a.md").exists());
}

#[tokio::test]
async fn permissions_are_described() {
    let place = Place::new();
    let system = FileSystem::new()
        .with_root("/userinput/", &place.0, Ops::READ)
        .and_then(|system| system.with_root("/workspace/", &place.0, Ops::ALL))
        .unwrap();
    let grants = [
        ("/userinput/", vec!["list", "read", "write"]),
        ("/workspace/", vec!["list", "file", "read", "write", "delete"]),
    ];
    let grants = grants.map(|(prefix, ops)| Grant::parse(prefix, ops).unwrap());
    let handle = std::sync::Arc::new(system).create_handle(grants).unwrap();
    let service = FileService::new(handle, FilePolicy::default());

    assert_eq!(text(&service, "list_allowed_directories", json!({})).await, "/userinput/\n/workspace/");
    assert_eq!(
        text(&service, "fs_describe_permissions_markdown", json!({})).await,
        "/userinput/: ls, stat, read\n/workspace/: ls, stat, read, write, delete"
    );
}

#[test]
fn the_tools_are_those_that_the_grants_permit_with_their_kinds() {
    let place = Place::new();
    let all = tools::tools(&service(&place.0));
    let kinds: Vec<(&str, ToolKind)> = all.iter().map(|tool| (tool.name(), tool.kind())).collect();
    assert_eq!(
        kinds,
        [
            ("read_text_file", ToolKind::Read),
            ("read_multiple_files", ToolKind::Read),
            ("list_directory", ToolKind::Read),
            ("list_directory_with_sizes", ToolKind::Read),
            ("search_files", ToolKind::Search),
            ("get_file_info", ToolKind::Read),
            ("list_allowed_directories", ToolKind::Read),
            ("fs_describe_permissions_markdown", ToolKind::Read),
            ("write_file", ToolKind::Edit),
            ("edit_file", ToolKind::Edit),
            ("delete_file", ToolKind::Delete),
        ]
    );

    let system = std::sync::Arc::new(FileSystem::new().with_root("/workspace/", &place.0, Ops::READ).unwrap());
    let handle = system.create_handle([Grant::parse("/workspace/", ["list", "write"]).unwrap()]).unwrap();
    let some = tools::tools(&FileService::new(handle, FilePolicy::default()));
    let names: Vec<&str> = some.iter().map(NativeTool::name).collect();
    assert_eq!(
        names,
        [
            "list_directory",
            "list_directory_with_sizes",
            "search_files",
            "list_allowed_directories",
            "fs_describe_permissions_markdown"
        ]
    );
}

#[test]
fn the_schema_of_a_tool_has_its_parameters() {
    let place = Place::new();
    let service = service(&place.0);

    let sizes = tool(&service, "list_directory_with_sizes").schema().value();
    let edit = tool(&service, "edit_file").schema().value();

    let sort_by = &sizes["function"]["parameters"]["properties"]["sortBy"];
    assert_eq!((&sort_by["enum"], &sort_by["default"]), (&json!(["name", "size"]), &json!("name")));
    let item = &edit["function"]["parameters"]["properties"]["edits"]["items"];
    assert_eq!(item["required"], json!(["oldText", "newText"]));
}
