//! The result of a call as a response: content of every type as blocks, and the rest as metadata.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::message;
use super::tools::Entry;
use crate::call::{Code, LateMetadata, Reply, STRUCTURED_CONTENT, ToolResponse};
use crate::json::text::push_string;
use crate::mcp::outline::{MAX_TREE, compact, outline};

/// The largest weight of structured content that is checked against a schema.
const MAX_CHECKED: usize = 2 * MAX_TREE;

/// The largest number of content blocks.
const MAX_BLOCKS: usize = 20_000;
/// The longest message of an error that a model gets, in characters.
const MAX_ERROR: usize = 4_000;

/// Converts a `CallToolResult`, which is JSON text.
///
/// The structured content is checked against the output schema of the tool, if `entry` has one. With `raw` the whole result is
/// the value in the metadata. The metadata stays text, which takes much less memory than values.
pub(super) fn response(server: &str, result: &str, entry: Option<&Entry>, raw: bool) -> ToolResponse {
    let names = ["content", "structuredContent", "isError", "_meta"];
    let found = outline(result, names);
    if let Some(reason) = found.problem() {
        return failed(format!("MCP server `{server}` sent an invalid result: {reason}"));
    }
    let [content, structured, is_error, meta] = found.members;
    let is_present = |text: &&str| *text != "null";
    let structured = structured.filter(is_present);
    let items: Vec<Value> = match (content, structured) {
        (Some(content), _) => match message::parse(content, MAX_TREE) {
            Ok(items) => items,
            Err(reason) => return failed(format!("MCP server `{server}` sent an invalid result: {reason}")),
        },
        // Structured content alone is enough.
        (None, Some(structured)) if structured.starts_with('{') => Vec::new(),
        _ => return failed(format!("MCP server `{server}` sent an invalid result")),
    };
    if items.len() > MAX_BLOCKS {
        let reason = format!("it has more than {MAX_BLOCKS} content blocks");
        return failed(format!("MCP server `{server}` sent an invalid result: {reason}"));
    }
    let is_error = is_error == Some("true");
    let schema = entry.filter(|entry| !is_error && entry.definition.output_schema.is_some());
    if let Some(problem) = schema.and_then(|entry| problem_of(structured, entry)) {
        return failed(format!(
            "the result of MCP server `{server}` does not fit the output schema of the tool: {problem}"
        ));
    }
    let links: Vec<Value> = items.iter().filter(|item| item["type"] == "resource_link").cloned().collect();
    let mut content: Vec<Value> = items.into_iter().map(block).collect();
    if content.is_empty() {
        match structured {
            Some(structured) => content.push(text(compact(structured))),
            None if is_error => return failed(format!("MCP server `{server}`: the tool failed without a message")),
            None => {}
        }
    }
    let mut metadata = Map::new();
    if !links.is_empty() {
        metadata.insert("resource_links".to_owned(), Value::Array(links));
    }
    let mut late = LateMetadata::default();
    if let Some(meta) = meta.filter(is_present) {
        late.insert("_meta", meta.into());
    }
    let structured: Option<Arc<str>> = structured.map(Into::into);
    if let Some(structured) = &structured {
        late.insert(STRUCTURED_CONTENT, structured.clone());
    }
    let whole = raw.then(|| result.into());
    if let Some(value) = whole.or(structured) {
        late.insert("value", value);
    }
    ToolResponse {
        content,
        metadata: (!metadata.is_empty()).then_some(Value::Object(metadata)),
        late,
        code: is_error.then_some(Code::Failed),
        ..ToolResponse::default()
    }
}

/// The response to a failure of the server.
pub(super) fn failed(message: String) -> ToolResponse {
    ToolResponse::replying(&Reply::McpFailed { message })
}

/// The response to an error that was the answer. The metadata has a long message whole.
pub(super) fn answered(message: String) -> ToolResponse {
    let Some((end, _)) = message.char_indices().nth(MAX_ERROR) else { return failed(message) };
    let mut response = failed(format!("{}… (cut, {} bytes in all)", &message[..end], message.len()));
    let mut whole = String::new();
    push_string(&mut whole, &message);
    response.late.insert("error", whole.into());
    response
}

/// The first problem of structured content that has to fit a schema.
fn problem_of(structured: Option<&str>, entry: &Entry) -> Option<String> {
    match structured.map(|structured| message::parse::<Value>(structured, MAX_CHECKED)).transpose() {
        Ok(structured) => entry.problem_of(structured.as_ref()),
        Err(reason) => Some(format!("it cannot be checked: {reason}")),
    }
}

/// Converts one item. An item of an unknown type becomes its JSON text, so that nothing is dropped.
fn block(mut item: Value) -> Value {
    let kind = item["type"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" if item["text"].is_string() => object([("type", kind.into()), ("text", item["text"].take())]),
        "image" | "audio" if item["mimeType"].is_string() && item["data"].is_string() => {
            media(&kind, item["mimeType"].take(), item["data"].take())
        }
        "resource" if item["resource"].is_object() => resource(&mut item["resource"]),
        _ => text(indented(&item)),
    }
}

/// Converts an embedded resource: media become blocks, and everything else is its JSON text.
fn resource(resource: &mut Value) -> Value {
    let mime_type = resource["mimeType"].as_str().unwrap_or_default();
    let kind = mime_type.split_once('/').map(|(kind, _)| kind.to_owned());
    match kind.as_deref() {
        Some(kind @ ("image" | "audio" | "video")) if resource["blob"].is_string() => {
            media(kind, resource["mimeType"].take(), resource["blob"].take())
        }
        _ => text(indented(resource)),
    }
}

fn text(text: String) -> Value {
    object([("type", "text".into()), ("text", text.into())])
}

fn media(kind: &str, mime_type: Value, data: Value) -> Value {
    let source = object([("type", "base64".into()), ("media_type", mime_type), ("data", data)]);
    object([("type", kind.into()), ("source", source)])
}

/// An object of values that are not copied: content may be large.
fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(result: &Value) -> ToolResponse {
        response("s", &result.to_string(), None, false).with_late_metadata()
    }

    #[test]
    fn content_of_every_type_becomes_blocks_and_nothing_is_dropped() {
        let result = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "mimeType": "image/png", "data": "aW1n"},
            {"type": "audio", "mimeType": "audio/wav", "data": "YXVk"},
            {"type": "resource", "resource": {"uri": "f:/a", "mimeType": "text/plain", "text": "b"}},
            {"type": "resource", "resource": {"uri": "f:/v", "mimeType": "video/mp4", "blob": "dmlk"}},
            {"type": "resource", "resource": {"uri": "f:/z", "mimeType": "application/zip", "blob": "emlw"}},
            {"type": "resource_link", "uri": "f:/l", "name": "l"},
            {"type": "hologram", "depth": 3},
            {"type": "image", "data": "no type"},
        ]});

        let response = converted(&result);

        let kinds: Vec<&str> = response.content.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image", "audio", "text", "video", "text", "text", "text", "text"]);
        assert_eq!(response.content[1]["source"], json!({"type": "base64", "media_type": "image/png", "data": "aW1n"}));
        assert_eq!(
            response.content[3]["text"],
            "{\n  \"uri\": \"f:/a\",\n  \"mimeType\": \"text/plain\",\n  \"text\": \"b\"\n}"
        );
        assert!(response.content[5]["text"].as_str().unwrap().contains("emlw"));
        assert!(response.content[7]["text"].as_str().unwrap().contains("hologram"));
        assert_eq!(response.metadata.unwrap()["resource_links"][0]["uri"], "f:/l");
    }

    #[test]
    fn structured_content_is_the_value() {
        let response = converted(&json!({"content": [], "structuredContent": {"n": 1}, "_meta": {"k": 2}}));

        assert_eq!(response.text(), r#"{"n":1}"#);
        let metadata = response.metadata.unwrap();
        assert_eq!(metadata, json!({"_meta": {"k": 2}, "structured_content": {"n": 1}, "value": {"n": 1}}));
    }

    #[test]
    fn an_error_of_the_tool_keeps_its_content() {
        let response = converted(&json!({"content": [{"type": "text", "text": "no"}], "isError": true}));

        assert_eq!((response.text().as_str(), response.code), ("no", Some(Code::Failed)));
        assert!(converted(&json!({"content": [], "isError": true})).text().contains("without a message"));
    }

    #[test]
    fn a_raw_result_is_whole() {
        let result = json!({"content": [{"type": "text", "text": "a", "annotations": {"x": 1}}], "other": 2});

        let response = response("s", &result.to_string(), None, true).with_late_metadata();

        assert_eq!(response.metadata.unwrap()["value"], result);
    }

    #[test]
    fn structured_content_that_is_shown_has_no_escapes_that_it_does_not_need() {
        let result = r#"{"content": [], "structuredContent": {"\u00e9\n": "a\/b \"\ud83d\ude00\"", "n": [1.50, -0]}}"#;

        assert_eq!(response("s", result, None, false).text(), r#"{"é\n":"a/b \"😀\"","n":[1.50,-0]}"#);
    }

    #[test]
    fn a_result_with_a_number_that_python_cannot_read_is_an_error() {
        for place in ["structuredContent", "_meta"] {
            let result = format!(r#"{{"content": [], "{place}": {{"n": {}}}}}"#, "1".repeat(5000));

            let response = response("s", &result, None, false);

            assert_eq!(response.code, Some(Code::Failed));
            assert!(response.text().contains("4300 digits") && response.late.is_empty());
        }
    }

    #[test]
    fn a_result_has_a_limited_number_of_blocks() {
        let result = |count: usize| json!({"content": vec![json!({"type": "text", "text": ""}); count]});

        assert_eq!(converted(&result(MAX_BLOCKS)).content.len(), MAX_BLOCKS);
        assert!(converted(&result(MAX_BLOCKS + 1)).text().contains("more than 20000 content blocks"));
    }

    #[test]
    fn a_long_error_is_cut_and_the_metadata_has_it_whole() {
        let message = "é\"".repeat(10_000);

        let response = answered(message.clone());

        assert!(response.text().contains("30000 bytes") && response.text().len() < 3 * MAX_ERROR);
        assert_eq!(response.with_late_metadata().metadata, Some(json!({"error": message})));
        assert!(answered("short".to_owned()).late.is_empty());
    }

    #[test]
    fn a_result_of_another_form_is_an_error() {
        for result in [json!(null), json!([]), json!({}), json!({"content": "text"})] {
            assert_eq!(converted(&result).code, Some(Code::Failed));
        }
    }
}
