//! What a schema asks for, as a short phrase.

use serde_json::{Map, Value};

use super::problem::{Expected, clean, quoted};

/// How many members of an enumeration are named.
const NAMED: usize = 20;
/// How many branches of a union are named, and how deep unions and references are followed: together they bound the work.
const BRANCHES: usize = 6;
const DEPTH: usize = 5;
/// How many required keys of an object are named.
const KEYS: usize = 8;
/// The longest phrase, in characters.
const LENGTH: usize = 400;

/// Says what a schema of the document asks for: `an integer >= 1`, `a string or null`.
pub(super) fn phrase(root: &Value, schema: &Value) -> Expected {
    clean(&describe(root, schema, 0), LENGTH).into_owned().into()
}

fn describe(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = match schema {
        Value::Bool(false) => return "nothing".to_owned(),
        Value::Object(schema) if depth < DEPTH => schema,
        _ => return "any value".to_owned(),
    };
    if let Some(member) = schema.get("const") {
        return scalar(member);
    }
    if let Some(Value::Array(members)) = schema.get("enum") {
        return one_of(members);
    }
    if let Some(target) = target(root, schema) {
        return describe(root, target, depth + 1);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(union) {
            return joined(branches.iter().map(|branch| describe(root, branch, depth + 1)), " or ");
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => typed(root, schema, name, depth),
        Some(Value::Array(names)) => {
            joined(names.iter().filter_map(Value::as_str).map(|name| typed(root, schema, name, depth)), " or ")
        }
        _ => match schema.get("allOf") {
            Some(Value::Array(parts)) => joined(parts.iter().map(|part| describe(root, part, depth + 1)), " and "),
            _ if schema.contains_key("not") => "a value that the schema does not rule out".to_owned(),
            _ => untyped(root, schema, depth),
        },
    }
}

/// A schema without a type: the first keyword that only one kind knows tells what it is about.
fn untyped(root: &Value, schema: &Map<String, Value>, depth: usize) -> String {
    let about = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if about(&["properties", "required", "additionalProperties", "patternProperties"]) {
        typed(root, schema, "object", depth)
    } else if about(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
        typed(root, schema, "array", depth)
    } else if about(&["pattern", "minLength", "maxLength"]) {
        typed(root, schema, "string", depth)
    } else if about(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        typed(root, schema, "number", depth)
    } else if schema.keys().any(|key| !matches!(key.as_str(), "title" | "description" | "default")) {
        "a value that fits the schema".to_owned()
    } else {
        "any value".to_owned()
    }
}

fn typed(root: &Value, schema: &Map<String, Value>, name: &str, depth: usize) -> String {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_number).map(ToString::to_string);
    match name {
        "null" => "null".to_owned(),
        "boolean" => "a boolean".to_owned(),
        "object" => {
            let object = sized(schema, "an object", "minProperties", "maxProperties", "entries", "entry");
            let names =
                schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let names: Vec<_> = names.take(KEYS).map(|name| clean(name, 40)).collect();
            if names.is_empty() { object } else { format!("{object} with {}", names.join(", ")) }
        }
        "array" => {
            let items = schema.get("items").map(|items| plural(root, items, depth));
            let array = items.flatten().map_or_else(|| "an array".to_owned(), |items| format!("an array of {items}"));
            let array = sized(schema, &array, "minItems", "maxItems", "items", "item");
            if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
                format!("{array}, all different")
            } else {
                array
            }
        }
        "string" => {
            let text = match (schema.get("minLength").and_then(Value::as_u64), schema.get("maxLength")) {
                (Some(1), None) => "a non-empty string".to_owned(),
                _ => sized(schema, "a string", "minLength", "maxLength", "characters", "character"),
            };
            match schema.get("pattern").and_then(Value::as_str) {
                Some(pattern) => format!("{text} matching {}", quoted(pattern, 80)),
                None => text,
            }
        }
        _ => {
            let noun = if name == "integer" { "an integer" } else { "a number" };
            let bounds = [("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")];
            let bounds = bounds.iter().filter_map(|(keyword, sign)| Some(format!("{sign} {}", number(keyword)?)));
            let bounds: Vec<String> = bounds.collect();
            let mut text = noun.to_owned();
            if !bounds.is_empty() {
                text = format!("{text} {}", bounds.join(" and "));
            }
            match number("multipleOf") {
                Some(step) => format!("{text} that is a multiple of {step}"),
                None => text,
            }
        }
    }
}

fn sized(schema: &Map<String, Value>, noun: &str, least: &str, most: &str, many: &str, one: &str) -> String {
    let unit = |count: u64| if count == 1 { one } else { many };
    let read = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    match (read(least), read(most)) {
        (None | Some(0), None) => noun.to_owned(),
        (Some(least), None) => format!("{noun} of at least {least} {}", unit(least)),
        (None | Some(0), Some(most)) => format!("{noun} of at most {most} {}", unit(most)),
        (Some(least), Some(most)) if least == most => format!("{noun} of {least} {}", unit(least)),
        (Some(least), Some(most)) => format!("{noun} of {least} to {most} {many}"),
    }
}

fn plural(root: &Value, items: &Value, depth: usize) -> Option<String> {
    let schema = items.as_object()?;
    if let Some(target) = target(root, schema) {
        return if depth < DEPTH { plural(root, target, depth + 1) } else { None };
    }
    let name = match schema.get("type")?.as_str()? {
        "string" => "strings",
        "integer" => "integers",
        "number" => "numbers",
        "boolean" => "booleans",
        "array" => "arrays",
        "object" => "objects",
        _ => return None,
    };
    Some(name.to_owned())
}

/// The definition that a schema refers to.
pub(super) fn target<'s>(root: &'s Value, schema: &Map<String, Value>) -> Option<&'s Value> {
    root.pointer(&pointer(schema)?)
}

/// Where in the document the definition is that a schema refers to.
pub(in crate::schema) fn pointer(schema: &Map<String, Value>) -> Option<String> {
    let fragment = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(if byte == b'%' { digit(rest.next())? * 16 + digit(rest.next())? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

fn one_of(members: &[Value]) -> String {
    if let [member] = members {
        return scalar(member);
    }
    let mut named: Vec<String> = members.iter().take(NAMED).map(scalar).collect();
    if members.len() > NAMED {
        named.push(format!("… ({} more)", members.len() - NAMED));
    }
    format!("one of {}", named.join(", "))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text, 40),
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => clean(number.as_str(), 40).into_owned(),
        Value::Array(_) => "a certain array".to_owned(),
        Value::Object(_) => "a certain object".to_owned(),
    }
}

fn joined(phrases: impl Iterator<Item = String>, word: &str) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for phrase in phrases.take(BRANCHES) {
        if !distinct.contains(&phrase) {
            distinct.push(phrase);
        }
    }
    if distinct.is_empty() { "any value".to_owned() } else { distinct.join(word) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_read_as_short_phrases() {
        let cases = [
            (json!({"type": "integer"}), "an integer"),
            (json!({"type": "integer", "minimum": 1}), "an integer >= 1"),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "a number > 0 and <= 1.5"),
            (json!({"enum": ["a", "b", 3, null]}), "one of \"a\", \"b\", 3, null"),
            (json!({"const": "only", "type": "string"}), "\"only\""),
            (json!({"type": "array", "items": {"type": "string"}}), "an array of strings"),
            (json!({"type": "array", "minItems": 2, "maxItems": 2}), "an array of 2 items"),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "a string or null"),
            (json!({"type": ["string", "null"]}), "a string or null"),
            (json!({"type": "string", "pattern": "^a+$"}), "a string matching \"^a+$\""),
            (json!({"type": "string", "minLength": 1}), "a non-empty string"),
            (json!({"type": "string", "maxLength": 1}), "a string of at most 1 character"),
            (json!({"type": "object", "required": ["a", "b"]}), "an object with a, b"),
            (json!({}), "any value"),
            (json!(false), "nothing"),
        ];
        for (schema, text) in cases {
            assert_eq!(phrase(&json!({}), &schema).to_string(), text);
        }
    }

    #[test]
    fn references_are_followed_and_end() {
        let root = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}, "c": {"$ref": "#/$defs/c"}}});

        assert_eq!(phrase(&root, &json!({"$ref": "#/$defs/a"})).to_string(), "a string");
        assert_eq!(phrase(&root, &json!({"$ref": "#/$defs/c"})).to_string(), "any value");
    }

    #[test]
    fn phrases_are_bounded() {
        let members: Vec<String> = (0..1000).map(|index| format!("{index}{}", "x".repeat(1000))).collect();

        assert!(phrase(&json!({}), &json!({"enum": members})).to_string().chars().count() <= LENGTH + 1);
    }
}
