//! OpenAI's strict mode, where the model can write nothing but what fits: what a grammar can be made of.

use serde_json::Value;

use super::Capabilities;
use super::openai::is_name;

/// As OpenAI documents for structured outputs.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    has_references: true,
    requires_all: true,
    has_null: true,
    lists_strings_only: false,
    isolates_unions: false,
    has_empty_objects: true,
    depth: 10,
    properties: 5_000,
    listed: 1_000,
    characters: 120_000,
    is_name,
    keeps,
};

/// The formats that are known there.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

fn keeps(kind: &str, keyword: &str, value: &Value) -> bool {
    match (kind, keyword) {
        ("string", "format") => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        // A grammar cannot look around.
        ("string", "pattern") => value.as_str().is_some_and(|pattern| !pattern.contains("(?")),
        ("integer" | "number", "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
        | ("array", "minItems" | "maxItems") => true,
        _ => false,
    }
}
