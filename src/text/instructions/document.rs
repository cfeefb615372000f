//! The documentation of one tool: name, description, parameters and an example.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::call::{has_nested, write_call};
use super::example::{self, MAX_DEFAULT_LENGTH};
use super::{TextFormat, ToolDescription};
use crate::text::escape::{line as one_line, lines, spaced_json, word};

/// The maximum depth of parameters that are described.
const MAX_DEPTH: usize = 12;
/// The maximum number of values of an enumeration that are listed.
const MAX_MEMBERS: usize = 100;
/// The maximum number of names in one type: unions and references can multiply.
const MAX_TYPE_NAMES: usize = 24;
/// The maximum depth of references, unions and lists in one type.
const MAX_TYPE_DEPTH: usize = 6;

/// The limits that are listed, with their texts.
const LIMITS: [(&str, &str); 13] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("multipleOf", "multiple of"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("pattern", "matches"),
    ("format", "format"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("minProperties", "entries at least"),
    ("maxProperties", "entries at most"),
];

/// Writes the documentation of a tool, with a newline at the end. The flag is true if its example has more than plain values
/// and lists of them.
pub(super) fn document(format: TextFormat, tool: &ToolDescription<'_>) -> (String, bool) {
    let root = tool.parameters.value();
    let name = word(tool.name);
    let mut writer = DocumentWriter { root, described: HashSet::new(), text: format!("### {name}\n") };
    let description = lines(tool.description, "  ");
    writer.line(0, format_args!("Description: {}", if description.is_empty() { "-" } else { &description }));
    let parameters = resolved(root, root);
    match parameters.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) {
        None => writer.line(0, format_args!("Parameters: None")),
        Some(properties) => {
            writer.line(0, format_args!("Parameters:"));
            writer.properties(properties, parameters, 1);
        }
    }
    writer.line(0, format_args!("Example:"));
    let example = example::arguments(root);
    writer.text.push_str(&write_call(format, tool.name, &example));
    writer.text.push('\n');
    (writer.text, has_nested(&example))
}

struct DocumentWriter<'a> {
    root: &'a Value,
    /// The references that were followed: each is described once.
    described: HashSet<&'a str>,
    text: String,
}

impl<'a> DocumentWriter<'a> {
    fn line(&mut self, depth: usize, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * depth);
    }

    fn properties(&mut self, properties: &'a Map<String, Value>, object: &'a Value, depth: usize) {
        let required = required(object);
        for (name, schema) in properties {
            let need = if required.contains(name.as_str()) { "required" } else { "optional" };
            let meant = resolved(self.root, schema);
            let description = schema.get("description").or_else(|| meant.get("description"));
            let description = one_line(description.and_then(Value::as_str).unwrap_or_default());
            let dash = if description.is_empty() { "" } else { " - " };
            let (name, kind) = (word(name), type_name(self.root, schema));
            self.line(depth, format_args!("- {name}: {kind} ({need}){dash}{description}"));
            self.details(schema, depth + 1);
            if let Some(default) = schema.get("default").or_else(|| meant.get("default")) {
                let default = shown(default);
                self.line(depth + 1, format_args!("Default: {default}"));
            }
        }
    }

    /// Writes the details of a value beside its type: values, limits and parts.
    fn details(&mut self, schema: &'a Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let meant = resolved(self.root, schema);
        if let Some(pointer) = reference(schema)
            && has_details(meant)
            && !self.described.insert(pointer)
        {
            let name = word(pointer.rsplit('/').next().unwrap_or_default());
            self.line(depth, format_args!("Described above: {name}"));
            return;
        }
        if let Some(members) = members(meant) {
            let shown: Vec<String> = members.iter().take(MAX_MEMBERS).map(spaced_json).collect();
            let more = if members.len() > MAX_MEMBERS { ", ..." } else { "" };
            self.line(depth, format_args!("One of: {}{more}", shown.join(", ")));
        }
        self.limits(meant, depth);
        if let Some(branches) = branches(meant) {
            self.branches(branches, depth);
        }
        if let Some(Value::Object(properties)) = meant.get("properties") {
            self.properties(properties, meant, depth);
        }
        for (keyword, word) in [("items", "item"), ("additionalProperties", "value")] {
            if let Some(part @ Value::Object(_)) = meant.get(keyword) {
                self.part(part, word, depth);
            }
        }
        if let Some(Value::Array(parts)) = meant.get("prefixItems") {
            for part in parts {
                self.part(part, "item", depth);
            }
        }
    }

    /// Describes each item of a list, or each value of a map.
    fn part(&mut self, part: &'a Value, word: &str, depth: usize) {
        let before = self.text.len();
        let kind = type_name(self.root, part);
        self.line(depth, format_args!("Each {word}: {kind}"));
        let heading = self.text.len();
        self.details(part, depth + 1);
        if self.text.len() == heading && word == "item" {
            // The type of the list already says it.
            self.text.truncate(before);
        }
    }

    /// Describes the branches of a union, without `null`.
    fn branches(&mut self, branches: &'a [Value], depth: usize) {
        let root = self.root;
        let mut present = branches.iter().filter(|branch| type_name(root, branch) != "null");
        match (present.next(), present.next()) {
            (Some(only), None) => self.details(only, depth),
            (Some(first), Some(second)) => {
                for branch in [first, second].into_iter().chain(present) {
                    let before = self.text.len();
                    self.line(depth, format_args!("If {}:", type_name(root, branch)));
                    let heading = self.text.len();
                    self.details(branch, depth + 1);
                    if self.text.len() == heading {
                        self.text.truncate(before);
                    }
                }
            }
            (None, _) => {}
        }
    }

    fn limits(&mut self, schema: &Value, depth: usize) {
        let limits: Vec<String> = LIMITS
            .iter()
            .filter_map(|(keyword, words)| match schema.get(*keyword)? {
                Value::String(text) => Some(format!("{words} {}", word(text))),
                Value::Number(number) => Some(format!("{words} {number}")),
                _ => None,
            })
            .collect();
        if !limits.is_empty() {
            self.line(depth, format_args!("Limits: {}", limits.join(", ")));
        }
    }
}

/// True if there is more to a schema than its type.
fn has_details(schema: &Value) -> bool {
    ["properties", "enum", "anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties"]
        .iter()
        .any(|keyword| schema.get(*keyword).is_some())
}

/// A default value: text without quotes where that is clear, everything else as JSON.
fn shown(default: &Value) -> String {
    let text = match default {
        Value::String(text) => word(text).into_owned(),
        _ => spaced_json(default),
    };
    if text.len() <= MAX_DEFAULT_LENGTH {
        return text;
    }
    let cut: String = text.chars().take(MAX_DEFAULT_LENGTH).collect();
    cut + "..."
}

/// The schema at the end of a chain of references.
pub(super) fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_TYPE_DEPTH {
        match reference(schema).and_then(|pointer| root.pointer(pointer)) {
            Some(target) => schema = target,
            None => return schema,
        }
    }
    schema
}

/// The JSON pointer of a reference within the document.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix('#')
}

/// The branches of a union. A single part of `allOf`, which pydantic writes around references, counts as one.
pub(super) fn branches(schema: &Value) -> Option<&[Value]> {
    let of = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice);
    of("anyOf").or_else(|| of("oneOf")).or_else(|| of("allOf").filter(|parts| parts.len() == 1))
}

/// The values that a schema lists.
pub(super) fn members(schema: &Value) -> Option<&[Value]> {
    match schema.get("const") {
        Some(member) => Some(std::slice::from_ref(member)),
        None => schema.get("enum").and_then(Value::as_array).map(Vec::as_slice),
    }
}

/// The required names of an object.
pub(super) fn required(object: &Value) -> HashSet<&str> {
    let names = object.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The type of a schema as text: `string`, `array[integer]`, `string or null`.
fn type_name(root: &Value, schema: &Value) -> String {
    let mut names = MAX_TYPE_NAMES;
    type_within(root, schema, MAX_TYPE_DEPTH, &mut names)
}

fn type_within(root: &Value, schema: &Value, depth: usize, names: &mut usize) -> String {
    if depth == 0 || *names == 0 {
        return "any".to_owned();
    }
    *names -= 1;
    let schema = resolved(root, schema);
    let Value::Object(keywords) = schema else {
        return if *schema == Value::Bool(false) { "nothing".to_owned() } else { "any".to_owned() };
    };
    match keywords.get("type") {
        Some(Value::String(name)) => return typed(root, keywords, name, depth, names),
        Some(Value::Array(types)) => {
            let types = types.iter().filter_map(Value::as_str);
            return joined(types.map(|name| typed(root, keywords, name, depth, names)));
        }
        _ => {}
    }
    if let Some(branches) = branches(schema) {
        return joined(branches.iter().map(|branch| type_within(root, branch, depth - 1, names)));
    }
    if let Some(members) = members(schema) {
        return joined(members.iter().map(|member| type_of_value(member).to_owned()));
    }
    let about = |names: &[&str]| names.iter().any(|name| keywords.contains_key(*name));
    if about(&["properties", "required", "additionalProperties", "patternProperties"]) {
        "object".to_owned()
    } else if about(&["items", "prefixItems"]) {
        typed(root, keywords, "array", depth, names)
    } else {
        "any".to_owned()
    }
}

fn typed(root: &Value, keywords: &Map<String, Value>, name: &str, depth: usize, names: &mut usize) -> String {
    let known = ["string", "integer", "number", "boolean", "object", "null", "array"];
    let Some(name) = known.into_iter().find(|known| *known == name) else { return "any".to_owned() };
    if name != "array" {
        return name.to_owned();
    }
    let items = match (keywords.get("prefixItems"), keywords.get("items")) {
        (Some(Value::Array(items)), _) => {
            let kinds: Vec<String> = items.iter().map(|item| type_within(root, item, depth - 1, names)).collect();
            kinds.join(", ")
        }
        (_, Some(items @ Value::Object(_))) => type_within(root, items, depth - 1, names),
        _ => "any".to_owned(),
    };
    if items == "any" { name.to_owned() } else { format!("{name}[{items}]") }
}

fn type_of_value(value: &Value) -> &'static str {
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

fn joined(names: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    if different.is_empty() { "any".to_owned() } else { different.join(" or ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_schema_has_a_type() {
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
            assert_eq!(type_name(&root, &schema), expected, "{schema}");
        }
    }

    #[test]
    fn types_that_multiply_are_cut_short() {
        let doubled = |next: &str| json!({"anyOf": [{"type": "array", "items": {"$ref": next}}, {"$ref": next}]});
        let root = json!({"$defs": {"a": doubled("#/$defs/b"), "b": doubled("#/$defs/c"), "c": doubled("#/$defs/a")}});

        assert!(type_name(&root, &json!({"$ref": "#/$defs/a"})).len() < 2_000);
    }
}
