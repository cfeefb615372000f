//! Native tools: their schemas, options, runs, runtime and toolkit.

mod budget;
mod example;
mod runs;
mod runtime;
mod toolkit;
mod wait;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::native::{NativeTool, ToolContext};
use toolcrib::policy::{Permission, ToolKind};

/// The arguments of the tools here.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Count {
    /// How far to count.
    pub(crate) to: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Nested {
    inner: Inner,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Inner {
    /// How long.
    length: f64,
}

#[test]
fn the_schema_of_a_tool_comes_from_its_parameter_type() {
    let tool =
        NativeTool::new("count", "Counts.", |_: ToolContext, count: Count| async move { Ok(count.to.to_string()) });

    assert_eq!(
        tool.schema().value(),
        json!({
            "type": "function",
            "function": {
                "name": "count",
                "parameters": {
                    "type": "object",
                    "properties": {"to": {"description": "How far to count.", "type": "integer", "minimum": 0}},
                    "required": ["to"],
                },
                "description": "Counts.",
            },
        })
    );
    assert!(!tool.is_streaming());
}

#[test]
fn a_type_inside_of_another_is_kept_as_a_definition() {
    let tool = NativeTool::new("nested", "", |_: ToolContext, nested: Nested| async move {
        Ok(format!("{} {:?}", nested.inner.length, nested.note))
    });

    let function = &tool.schema().value()["function"];

    assert_eq!(function.get("description"), None);
    assert_eq!(
        function["parameters"],
        json!({
            "type": "object",
            "properties": {"inner": {"$ref": "#/$defs/Inner"}, "note": {"type": ["string", "null"], "default": null}},
            "required": ["inner"],
            "$defs": {
                "Inner": {
                    "type": "object",
                    "properties": {"length": {"description": "How long.", "type": "number"}},
                    "required": ["length"],
                },
            },
        })
    );
}

#[test]
fn what_a_developer_says_about_a_tool_is_kept() {
    let tool = NativeTool::new("remove", "Removes.", |_: ToolContext, _: Value| async move { Ok("gone") })
        .with_kind(ToolKind::Delete)
        .with_permission(Permission::Confirm)
        .with_timeout(std::time::Duration::from_secs(3))
        .with_tags(["disk"]);

    assert_eq!((tool.kind(), tool.permission()), (ToolKind::Delete, Permission::Confirm));
    assert_eq!(tool.timeout(), Some(std::time::Duration::from_secs(3)));
    assert_eq!(tool.tags().iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["disk"]);
}
