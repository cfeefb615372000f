//! OpenAI without strict mode: JSON Schema, of which the provider looks at the root and at arrays.

use serde_json::{Map, Value};

use super::light::LightRules;

/// The root is an object without composition, and every array says what is in it.
pub(super) const PARAMETERS: LightRules = LightRules { plain_root: true, fills_arrays: true, is_name: None };

/// Whether a tool or a parameter may have this name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A tool for chat completions.
pub(super) fn chat(mut function: Map<String, Value>, parameters: Value, strict: bool) -> Value {
    function.insert("parameters".to_owned(), parameters);
    if strict {
        function.insert("strict".to_owned(), Value::Bool(true));
    }
    let entries = [("type", Value::from("function")), ("function", Value::Object(function))];
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A tool for responses, where a tool that does not describe so is strict.
pub(super) fn responses(function: Map<String, Value>, parameters: Value, strict: bool) -> Value {
    let mut tool = Map::new();
    tool.insert("type".to_owned(), Value::from("function"));
    tool.extend(function);
    tool.insert("parameters".to_owned(), parameters);
    tool.insert("strict".to_owned(), Value::Bool(strict));
    Value::Object(tool)
}
