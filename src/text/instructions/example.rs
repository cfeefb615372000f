//! Example arguments that a schema accepts.

use std::borrow::Cow;

use serde_json::{Map, Number, Value, json};

use super::document::{branches, members, required, resolved};
use crate::text::escape::{element_name, word};

/// The maximum number of values in one example: references can multiply.
const MAX_VALUES: usize = 200;
/// The maximum depth of an example.
const MAX_DEPTH: usize = 5;
/// The maximum length of a default, as JSON, that an example uses.
pub(super) const MAX_DEFAULT_LENGTH: usize = 300;

/// Makes an argument for each parameter of a tool.
pub(super) fn arguments(parameters: &Value) -> Map<String, Value> {
    let mut builder = ExampleBuilder { root: parameters, left: MAX_VALUES };
    match resolved(parameters, parameters).get("properties") {
        Some(Value::Object(properties)) => {
            properties.iter().map(|(name, schema)| (name.clone(), builder.value(schema, name, MAX_DEPTH))).collect()
        }
        _ => Map::new(),
    }
}

struct ExampleBuilder<'a> {
    root: &'a Value,
    left: usize,
}

impl ExampleBuilder<'_> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if let Some(value) = offered(schema) {
            return value.clone();
        }
        let schema = resolved(self.root, schema);
        if let Some(value) = offered(schema) {
            return value.clone();
        }
        if depth == 0 || self.left == 0 {
            return shortest(schema);
        }
        if let Some(branches) = branches(schema) {
            let is_null = |branch: &&Value| resolved(self.root, branch).get("type").is_some_and(|kind| kind == "null");
            return match branches.iter().find(|branch| !is_null(branch)) {
                Some(branch) => self.value(branch, name, depth - 1),
                None => Value::Null,
            };
        }
        match type_of(schema) {
            "string" => Value::String(string(schema, name)),
            "integer" => integer(schema),
            "number" => number(schema),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            "array" => self.array(schema, name, depth),
            "object" => self.object(schema, name, depth),
            _ => json!("..."),
        }
    }

    fn array(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let most = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if let Some(Value::Array(items)) = schema.get("prefixItems") {
            return items.iter().take(most).map(|item| self.value(item, name, depth - 1)).collect();
        }
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return ["value1", "value2"].into_iter().take(most).collect();
        };
        let item = resolved(self.root, items);
        let choices: Vec<Value> = match members(item) {
            Some(members) => members.iter().filter(|member| is_plain(member)).take(2).cloned().collect(),
            None if is_plain_string(item) => vec![json!("value1"), json!("value2")],
            None => vec![self.value(items, name, depth - 1)],
        };
        Value::Array(choices.into_iter().take(most).collect())
    }

    fn object(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let required = required(schema);
            let mut entries = Map::new();
            for (key, property) in properties {
                // Optional entries are left out where the example gets deep or long.
                if required.contains(key.as_str()) || (depth + 2 > MAX_DEPTH && self.left > MAX_VALUES / 2) {
                    entries.insert(key.clone(), self.value(property, key, depth - 1));
                }
            }
            return Value::Object(entries);
        }
        match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => json!({"key": self.value(values, name, depth - 1)}),
            _ => json!({"key": "value"}),
        }
    }
}

/// The default, the first example or the first listed value of a schema.
fn offered(schema: &Value) -> Option<&Value> {
    let is_fit = |value: &&Value| value.to_string().len() <= MAX_DEFAULT_LENGTH && is_plain(value);
    let is_useful = |value: &&Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
    let default = schema.get("default").filter(is_useful);
    let example = || schema.get("examples").and_then(Value::as_array)?.first();
    let values = [default, example(), members(schema).and_then(|members| members.first())];
    values.into_iter().flatten().find(is_fit)
}

/// True if no text in a value needs quotes in an example.
fn is_plain(value: &Value) -> bool {
    let is_plain_text = |text: &str| text.is_empty() || matches!(word(text), Cow::Borrowed(_));
    match value {
        Value::String(text) => is_plain_text(text),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(entries) => entries.iter().all(|(key, entry)| is_plain_text(key) && is_plain(entry)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "",
    }
}

/// The shortest value of the type, where the example stops.
fn shortest(schema: &Value) -> Value {
    match type_of(schema) {
        "object" => json!({}),
        "array" => json!([]),
        "integer" => integer(schema),
        "number" => number(schema),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => json!("..."),
    }
}

fn is_plain_string(schema: &Value) -> bool {
    type_of(schema) == "string"
        && ["format", "pattern", "maxLength"].iter().all(|keyword| schema.get(*keyword).is_none())
}

fn string(schema: &Value, name: &str) -> String {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2025-01-31",
        Some("date-time") => "2025-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT5M",
        Some("email") => "name@example.com",
        Some("uri") => "https://example.com",
        Some("uuid") => "123e4567-e89b-42d3-a456-426614174000",
        Some("ipv4") => "192.0.2.1",
        _ => {
            let length = |keyword: &str| schema.get(keyword).and_then(Value::as_u64)?.try_into().ok();
            let wanted = format!("your_{}_here", element_name(name));
            let cut: String = wanted.chars().take(length("maxLength").unwrap_or(usize::MAX)).collect();
            let missing =
                length("minLength").unwrap_or(0usize).min(MAX_DEFAULT_LENGTH).saturating_sub(cut.chars().count());
            return cut + &"_".repeat(missing);
        }
    };
    known.to_owned()
}

fn integer(schema: &Value) -> Value {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_i64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum")?.checked_add(1)).unwrap_or(i64::MIN);
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum")?.checked_sub(1)).unwrap_or(i64::MAX);
    let near = 123.min(high).max(low);
    let fitting = match bound("multipleOf") {
        Some(step) if step > 0 => {
            let below = near.div_euclid(step).saturating_mul(step);
            if below < low { below.saturating_add(step) } else { below }
        }
        _ => near,
    };
    Value::from(fitting)
}

fn number(schema: &Value) -> Value {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let low = bound("minimum").into_iter().chain(bound("exclusiveMinimum")).fold(f64::NEG_INFINITY, f64::max);
    let high = bound("maximum").into_iter().chain(bound("exclusiveMaximum")).fold(f64::INFINITY, f64::min);
    let fitting = match (low.is_finite(), high.is_finite()) {
        _ if low < 1.5 && 1.5 < high => 1.5,
        (true, true) => f64::midpoint(low, high),
        (true, false) => low + 1.0,
        _ => high - 1.0,
    };
    Number::from_f64(fitting).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(schema: &Value) -> Value {
        arguments(&json!({"properties": {"x": schema}}))["x"].clone()
    }

    #[test]
    fn each_type_has_its_example() {
        let cases = [
            (json!({"type": "string"}), json!("your_x_here")),
            (json!({"type": "string", "default": ""}), json!("")),
            (json!({"type": "string", "maxLength": 3}), json!("you")),
            (json!({"type": "string", "minLength": 14}), json!("your_x_here___")),
            (json!({"type": "string", "format": "date"}), json!("2025-01-31")),
            (json!({"type": "integer"}), json!(123)),
            (json!({"type": "integer", "default": 0}), json!(0)),
            (json!({"type": "integer", "maximum": 50, "multipleOf": 20}), json!(40)),
            (json!({"type": "integer", "exclusiveMinimum": 200}), json!(201)),
            (json!({"type": "number"}), json!(1.5)),
            (json!({"type": "number", "minimum": 0, "maximum": 1}), json!(0.5)),
            (json!({"type": "boolean"}), json!(true)),
            (json!({"type": "boolean", "default": false}), json!(false)),
            (json!({"type": "array"}), json!(["value1", "value2"])),
            (json!({"type": "array", "default": []}), json!(["value1", "value2"])),
            (json!({"type": "array", "items": {"enum": ["a", "b", "c"]}}), json!(["a", "b"])),
            (json!({"type": "array", "items": {"type": "integer"}}), json!([123])),
            (json!({"enum": ["a", "b"]}), json!("a")),
            (json!({"anyOf": [{"type": "null"}, {"type": "integer"}], "default": null}), json!(123)),
            (json!({"type": ["null", "string"]}), json!("your_x_here")),
            (json!({"type": "object"}), json!({"key": "value"})),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), json!({"key": 123})),
            (json!({"type": "object", "properties": {"a": {"type": "boolean"}}}), json!({"a": true})),
            (json!({}), json!("...")),
        ];

        for (schema, expected) in cases {
            assert_eq!(example(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn what_contains_itself_ends() {
        let node = json!({"type": "object", "required": ["value"], "properties": {
            "value": {"type": "integer"}, "left": {"$ref": "#/$defs/Node"}, "right": {"$ref": "#/$defs/Node"}}});
        let schema = json!({"properties": {"tree": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});

        let tree = &arguments(&schema)["tree"];

        assert_eq!(tree["value"], 123);
        assert_eq!(tree["left"]["value"], 123);
        assert!(tree.to_string().len() < 200, "{tree}");
    }

    #[test]
    fn references_that_multiply_are_cut_short() {
        let wide = |next: &str| {
            let names: Vec<String> = (0..50).map(|index| format!("p{index}")).collect();
            let properties: Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({"$ref": next}))).collect();
            json!({"type": "object", "properties": properties, "required": names})
        };
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {
            "a": wide("#/$defs/b"), "b": wide("#/$defs/c"), "c": wide("#/$defs/d"), "d": wide("#/$defs/a")}});

        let text = Value::Object(arguments(&schema)).to_string();

        assert!(text.len() < 20_000, "{}", text.len());
    }
}
