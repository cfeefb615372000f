//! The result of a call as a response: content of every type as blocks, and the rest as metadata.

use serde_json::{Map, Value};

use super::tools::Entry;
use crate::call::{Code, Reply, STRUCTURED_CONTENT, ToolResponse};

/// Converts a `CallToolResult`.
///
/// The structured content is checked against the output schema of the tool, if `entry` has one. With `raw` the whole result is
/// the value in the metadata.
pub(super) fn response(server: &str, result: Value, entry: Option<&Entry>, raw: bool) -> ToolResponse {
    let whole = raw.then(|| result.clone());
    let Some((items, mut result)) = content_of(result) else {
        return failed(format!("MCP server `{server}` sent an invalid result"));
    };
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let structured = result.remove("structuredContent").filter(|value| !value.is_null());
    if let Some(problem) = entry.filter(|_| !is_error).and_then(|entry| entry.problem_of(structured.as_ref())) {
        return failed(format!(
            "the result of MCP server `{server}` does not fit the output schema of the tool: {problem}"
        ));
    }
    let links: Vec<Value> = items.iter().filter(|item| item["type"] == "resource_link").cloned().collect();
    let mut content: Vec<Value> = items.into_iter().map(block).collect();
    if content.is_empty() {
        match &structured {
            Some(structured) => content.push(text(structured.to_string())),
            None if is_error => return failed(format!("MCP server `{server}`: the tool failed without a message")),
            None => {}
        }
    }
    let mut metadata = Map::new();
    if !links.is_empty() {
        metadata.insert("resource_links".to_owned(), Value::Array(links));
    }
    if let Some(meta) = result.remove("_meta").filter(|meta| !meta.is_null()) {
        metadata.insert("_meta".to_owned(), meta);
    }
    if let Some(structured) = &structured {
        metadata.insert(STRUCTURED_CONTENT.to_owned(), structured.clone());
    }
    if let Some(value) = whole.or(structured) {
        metadata.insert("value".to_owned(), value);
    }
    ToolResponse {
        content,
        metadata: (!metadata.is_empty()).then_some(Value::Object(metadata)),
        code: is_error.then_some(Code::Failed),
        ..ToolResponse::default()
    }
}

/// The response to a failure of the server.
pub(super) fn failed(message: String) -> ToolResponse {
    ToolResponse::replying(&Reply::McpFailed { message })
}

/// The content items of a result, and the rest. A result of another form is invalid, but structured content alone is enough.
fn content_of(result: Value) -> Option<(Vec<Value>, Map<String, Value>)> {
    let Value::Object(mut result) = result else { return None };
    match result.remove("content") {
        Some(Value::Array(items)) => Some((items, result)),
        None if result.get("structuredContent").is_some_and(Value::is_object) => Some((Vec::new(), result)),
        _ => None,
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

    fn converted(result: Value) -> ToolResponse {
        response("s", result, None, false)
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

        let response = converted(result);

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
        let response = converted(json!({"content": [], "structuredContent": {"n": 1}, "_meta": {"k": 2}}));

        assert_eq!(response.text(), r#"{"n":1}"#);
        let metadata = response.metadata.unwrap();
        assert_eq!(metadata, json!({"_meta": {"k": 2}, "structured_content": {"n": 1}, "value": {"n": 1}}));
    }

    #[test]
    fn an_error_of_the_tool_keeps_its_content() {
        let response = converted(json!({"content": [{"type": "text", "text": "no"}], "isError": true}));

        assert_eq!((response.text().as_str(), response.code), ("no", Some(Code::Failed)));
        assert!(converted(json!({"content": [], "isError": true})).text().contains("without a message"));
    }

    #[test]
    fn a_raw_result_is_whole() {
        let result = json!({"content": [{"type": "text", "text": "a", "annotations": {"x": 1}}], "other": 2});

        let response = response("s", result.clone(), None, true);

        assert_eq!(response.metadata.unwrap()["value"], result);
    }

    #[test]
    fn a_result_of_another_form_is_an_error() {
        for result in [json!(null), json!([]), json!({}), json!({"content": "text"})] {
            assert_eq!(converted(result).code, Some(Code::Failed));
        }
    }
}
