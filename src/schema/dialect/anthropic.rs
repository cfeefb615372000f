//! Anthropic: JSON Schema, whose root is an object without composition and with plain names.

use serde_json::{Map, Value};

use super::light::LightRules;

/// The root and the names of its properties are looked at.
pub(super) const PARAMETERS: LightRules =
    LightRules { plain_root: true, fills_arrays: false, is_name: Some(is_parameter) };

/// Whether a tool may have this name.
pub(super) fn is_name(name: &str) -> bool {
    super::openai::is_name(name)
}

fn is_parameter(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// A tool as the provider reads it.
pub(super) fn tool(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("input_schema".to_owned(), parameters);
    Value::Object(function)
}
