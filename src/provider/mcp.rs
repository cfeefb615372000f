//! MCP: tools as a server lists them, `tools/call` requests and `CallToolResult`.

use serde_json::{Map, Value, json};

use super::result::{ContentBlock, MediaKind, ToolResult};
use super::{Declaration, Dialect, Entries, WireFormat, tool_call};
use crate::call::ToolCall;
use crate::policy::ToolKind;
use crate::schema::FunctionSchema;
use crate::schema::dialect::LightRules;

/// Any JSON Schema whose root is an object.
pub(super) const PARAMETERS: LightRules =
    LightRules { plain_root: false, fills_arrays: false, is_name: None, names_draft: true };

/// True for a recommended name of a tool.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
}

/// Declares a tool.
pub(super) fn tool(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("inputSchema".to_owned(), parameters);
    Value::Object(function)
}

/// Declares a tool as a server lists it, with the schema of its structured result and hints about its effects.
///
/// `output` is the schema of an object; see [`mcp_output_schema`].
#[must_use]
pub fn mcp_definition(
    name: &str,
    schema: &FunctionSchema,
    output: Option<&Map<String, Value>>,
    kind: ToolKind,
) -> Declaration {
    let mut declaration = Dialect::Mcp.declare(name, schema);
    if let Value::Object(entries) = &mut declaration.value {
        entries.extend(output.map(|output| ("outputSchema".to_owned(), Value::Object(output.clone()))));
        entries.extend(annotations(kind).map(|annotations| ("annotations".to_owned(), annotations)));
    }
    declaration
}

/// Hints about the effects of a tool, as far as its kind says something about them.
fn annotations(kind: ToolKind) -> Option<Value> {
    match kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Think => Some(json!({"readOnlyHint": true})),
        ToolKind::Fetch => Some(json!({"readOnlyHint": true, "openWorldHint": true})),
        ToolKind::Delete => Some(json!({"readOnlyHint": false, "destructiveHint": true})),
        ToolKind::Edit | ToolKind::Move | ToolKind::Execute => Some(json!({"readOnlyHint": false})),
        ToolKind::Other => None,
    }
}

/// The schema of a structured result, which the protocol requires to be an object: another value is under `result`.
#[must_use]
pub fn mcp_output_schema(schema: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut schema) = schema else { return None };
    let is_object = |schema: &Map<String, Value>| schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object(&schema) {
        return Some(schema);
    }
    // References of the schema begin at its root.
    let definitions = schema.shift_remove("$defs");
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    let root = named.and_then(|name| definitions.as_ref()?.get(name)?.as_object()).filter(|root| is_object(root));
    if let Some(mut root) = root.cloned() {
        let refers = Value::Object(root.clone()).to_string().contains("\"$ref\"");
        root.extend(definitions.filter(|_| refers).map(|definitions| ("$defs".to_owned(), definitions)));
        return Some(root);
    }
    let wrapped = json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
    let Value::Object(mut wrapped) = wrapped else { return None };
    wrapped.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    Some(wrapped)
}

/// Reads a `tools/call` request of JSON-RPC; `None` for another object.
pub(super) fn read(entries: &Entries) -> Option<ToolCall> {
    if entries.get("method")? != "tools/call" {
        return None;
    }
    let params = entries.get("params").and_then(Value::as_object);
    let entry = |key| params.and_then(|params| params.get(key));
    Some(tool_call(WireFormat::Mcp, entries.get("id"), entry("name"), entry("arguments")))
}

/// True for a block that has the form of the protocol already, such as a resource.
fn is_content(block: &Value) -> bool {
    let has = |value: &Value, field: &str| value.get(field).is_some_and(Value::is_string);
    match block.get("type").and_then(Value::as_str) {
        Some("resource") => block
            .get("resource")
            .is_some_and(|resource| has(resource, "uri") && (has(resource, "text") || has(resource, "blob"))),
        Some("resource_link") => has(block, "uri") && has(block, "name"),
        Some("image" | "audio") => has(block, "data") && has(block, "mimeType"),
        _ => false,
    }
}

/// Writes the `CallToolResult` of a call. The structured content is the value if that is an object, and otherwise an object
/// with the value under `result`, because the protocol requires an object.
#[must_use]
pub fn to_mcp(result: ToolResult<'_>) -> Value {
    let blocks = result.blocks();
    let given = result.content.as_array().map_or(&[][..], Vec::as_slice);
    let content = blocks.iter().enumerate().map(|(index, block)| match block {
        _ if given.get(index).is_some_and(is_content) => given[index].clone(),
        ContentBlock::Data { kind: kind @ (MediaKind::Image | MediaKind::Audio), media_type, data } => {
            json!({"type": kind.as_str(), "data": data, "mimeType": media_type})
        }
        ContentBlock::Data { kind: MediaKind::Video, media_type, data } => json!({
            "type": "resource",
            "resource": {"uri": format!("data:{media_type}"), "mimeType": media_type, "blob": data},
        }),
        ContentBlock::Link { kind, url } => json!({"type": "resource_link", "uri": url, "name": kind.as_str()}),
        other => json!({"type": "text", "text": other.as_text()}),
    });
    let mut written = Map::new();
    written.insert("content".to_owned(), content.collect());
    if let Some(value) = result.value.filter(|_| !result.is_error) {
        let structured = if value.is_object() { value.clone() } else { json!({"result": value}) };
        written.insert("structuredContent".to_owned(), structured);
    }
    written.insert("isError".to_owned(), Value::from(result.is_error));
    Value::Object(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(schema: Value) -> Value {
        Value::Object(mcp_output_schema(schema).unwrap())
    }

    #[test]
    fn the_schema_of_a_result_is_an_object() {
        let object = json!({"type": "object", "properties": {}});

        assert_eq!(output(object.clone()), object);
        assert_eq!(output(json!({"type": "string"}))["properties"], json!({"result": {"type": "string"}}));
    }

    #[test]
    fn the_schema_of_a_record_is_at_the_root() {
        let point = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});

        assert_eq!(output(json!({"$ref": "#/$defs/Point", "$defs": {"Point": point}})), point);
        let recursive = output(json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}}));
        assert_eq!(recursive["$defs"]["Node"], node);
        assert_eq!(recursive["properties"], node["properties"]);
    }

    #[test]
    fn definitions_stay_at_the_root() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {"type": "object"}}});

        let wrapped = output(list);

        assert_eq!(wrapped["$defs"], json!({"P": {"type": "object"}}));
        assert_eq!(wrapped["properties"]["result"], json!({"type": "array", "items": {"$ref": "#/$defs/P"}}));
    }

    #[test]
    fn blocks_of_the_protocol_are_kept() {
        let blocks = json!([
            {"type": "resource", "resource": {"uri": "a:b", "text": "c"}},
            {"type": "resource_link", "uri": "a:b", "name": "b"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]);
        let incomplete = json!([{"type": "resource", "resource": {"uri": "a:b"}}]);
        let written = |content: &Value| {
            to_mcp(ToolResult { content, value: None, is_error: false, id: None, is_custom: false, name: None })
        };

        assert_eq!(written(&blocks)["content"], blocks);
        assert_eq!(written(&incomplete)["content"][0]["type"], "text");
    }
}
