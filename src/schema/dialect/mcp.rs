//! MCP: any JSON Schema whose root is an object.

use serde_json::{Map, Value};

use super::light::LightRules;

/// Nothing but the type of the root is asked for.
pub(super) const PARAMETERS: LightRules = LightRules { plain_root: false, fills_arrays: false, is_name: None };

/// Whether a tool should have this name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
}

/// A tool as a server lists it.
pub(super) fn tool(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("inputSchema".to_owned(), parameters);
    Value::Object(function)
}
