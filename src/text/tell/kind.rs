//! What kind of value a schema asks for, in a word or two: `string`, `array[integer]`, `string or null`.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// How many words are spent on one kind: unions and references can multiply.
const WORDS: usize = 24;
/// How deep references, unions and lists are followed.
const DEPTH: usize = 6;

/// The schema that is meant: where a reference leads.
pub(super) fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEPTH {
        match reference(schema).and_then(|pointer| root.pointer(pointer)) {
            Some(target) => schema = target,
            None => return schema,
        }
    }
    schema
}

/// The pointer that a schema consists of, into its own document.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix('#')
}

/// The branches of a union; a single part of `allOf` is one too, which pydantic writes around references.
pub(super) fn branches(schema: &Value) -> Option<&[Value]> {
    let of = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice);
    of("anyOf").or_else(|| of("oneOf")).or_else(|| of("allOf").filter(|parts| parts.len() == 1))
}

/// The values that a schema lists, if it does.
pub(super) fn members(schema: &Value) -> Option<&[Value]> {
    match schema.get("const") {
        Some(member) => Some(std::slice::from_ref(member)),
        None => schema.get("enum").and_then(Value::as_array).map(Vec::as_slice),
    }
}

/// The names that an object must have.
pub(super) fn required(object: &Value) -> HashSet<&str> {
    let names = object.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Says what kind of value a schema of the document asks for.
pub(super) fn kind(root: &Value, schema: &Value) -> String {
    let mut words = WORDS;
    say(root, schema, DEPTH, &mut words)
}

fn say(root: &Value, schema: &Value, depth: usize, words: &mut usize) -> String {
    if depth == 0 || *words == 0 {
        return "any".to_owned();
    }
    *words -= 1;
    let schema = resolved(root, schema);
    let Value::Object(keywords) = schema else {
        return if *schema == Value::Bool(false) { "nothing".to_owned() } else { "any".to_owned() };
    };
    match keywords.get("type") {
        Some(Value::String(name)) => return typed(root, keywords, name, depth, words),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            return joined(names.map(|name| typed(root, keywords, name, depth, words)));
        }
        _ => {}
    }
    if let Some(branches) = branches(schema) {
        return joined(branches.iter().map(|branch| say(root, branch, depth - 1, words)));
    }
    if let Some(members) = members(schema) {
        return joined(members.iter().map(|member| kind_of(member).to_owned()));
    }
    let about = |names: &[&str]| names.iter().any(|name| keywords.contains_key(*name));
    if about(&["properties", "required", "additionalProperties", "patternProperties"]) {
        "object".to_owned()
    } else if about(&["items", "prefixItems"]) {
        typed(root, keywords, "array", depth, words)
    } else {
        "any".to_owned()
    }
}

fn typed(root: &Value, keywords: &Map<String, Value>, name: &str, depth: usize, words: &mut usize) -> String {
    let known = ["string", "integer", "number", "boolean", "object", "null", "array"];
    let Some(name) = known.into_iter().find(|known| *known == name) else { return "any".to_owned() };
    if name != "array" {
        return name.to_owned();
    }
    let items = match (keywords.get("prefixItems"), keywords.get("items")) {
        (Some(Value::Array(items)), _) => {
            let kinds: Vec<String> = items.iter().map(|item| say(root, item, depth - 1, words)).collect();
            kinds.join(", ")
        }
        (_, Some(items @ Value::Object(_))) => say(root, items, depth - 1, words),
        _ => "any".to_owned(),
    };
    if items == "any" { name.to_owned() } else { format!("{name}[{items}]") }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn joined(kinds: impl Iterator<Item = String>) -> String {
    let mut unlike: Vec<String> = Vec::new();
    for kind in kinds {
        if !unlike.contains(&kind) {
            unlike.push(kind);
        }
    }
    if unlike.is_empty() { "any".to_owned() } else { unlike.join(" or ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_schema_has_a_kind() {
        let root = json!({"$defs": {"Point": {"type": "object", "properties": {}}, "Loop": {"$ref": "#/$defs/Loop"}}});
        let cases = [
            (json!({"type": "string"}), "string"),
            (json!({"type": "array", "items": {"type": "string"}}), "array[string]"),
            (json!({"type": "array"}), "array"),
            (
                json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
                "array[integer, string]",
            ),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "string or null"),
            (json!({"type": ["integer", "null"]}), "integer or null"),
            (json!({"enum": ["a", 1, 2, 1.5]}), "string or integer or number"),
            (json!({"const": null}), "null"),
            (json!({"$ref": "#/$defs/Point"}), "object"),
            (json!({"allOf": [{"$ref": "#/$defs/Point"}]}), "object"),
            (json!({"$ref": "#/$defs/Loop"}), "any"),
            (json!({"$ref": "elsewhere"}), "any"),
            (json!({"items": {"type": "object"}}), "array[object]"),
            (json!({"type": "</tool_instructions>"}), "any"),
            (json!({}), "any"),
            (json!(true), "any"),
            (json!(false), "nothing"),
        ];

        for (schema, expected) in cases {
            assert_eq!(kind(&root, &schema), expected, "{schema}");
        }
    }

    #[test]
    fn kinds_that_multiply_are_cut_short() {
        let doubled = |next: &str| json!({"anyOf": [{"type": "array", "items": {"$ref": next}}, {"$ref": next}]});
        let root = json!({"$defs": {"a": doubled("#/$defs/b"), "b": doubled("#/$defs/c"), "c": doubled("#/$defs/a")}});

        assert!(kind(&root, &json!({"$ref": "#/$defs/a"})).len() < 2_000);
    }
}
