//! Gemini's function declarations: the subset of `OpenAPI` 3.0 that Google calls `Schema`.

use serde_json::{Map, Value};

use super::Capabilities;

/// As Google documents for `Schema`; depth and size are not documented, and large schemas are refused.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    has_references: false,
    requires_all: false,
    has_null: false,
    lists_strings_only: true,
    isolates_unions: true,
    has_empty_objects: false,
    depth: 12,
    properties: 2_000,
    listed: 1_000,
    characters: 120_000,
    is_name,
    keeps,
};

/// A name of a parameter begins with a letter or an underscore.
fn is_name(name: &str) -> bool {
    is_tool_name(name) && !name.contains('-')
}

/// Whether a tool may have this name.
pub(super) fn is_tool_name(name: &str) -> bool {
    super::openai::is_name(name) && !name.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}

fn keeps(kind: &str, keyword: &str, value: &Value) -> bool {
    match (kind, keyword) {
        ("string", "format") => value == "date-time",
        ("number", "format") => value == "float" || value == "double",
        ("integer", "format") => value == "int32" || value == "int64",
        ("string", "minLength" | "maxLength")
        | ("integer" | "number", "minimum" | "maximum")
        | ("array", "minItems" | "maxItems") => value.is_number(),
        ("string", "pattern") => true,
        _ => false,
    }
}

/// A declaration as the provider reads it.
pub(super) fn declaration(mut function: Map<String, Value>, parameters: Value) -> Value {
    function.insert("parameters".to_owned(), parameters);
    Value::Object(function)
}
