//! What providers document of the schemas they take, as checks that know nothing of how they are made.

use serde_json::{Map, Value, json};
use toolcrib::provider::Dialect;

/// The reason why a provider would refuse a schema, if there is one.
pub(crate) fn refuses(dialect: Dialect, schema: &Value) -> Option<String> {
    match dialect {
        Dialect::OpenAiStrict | Dialect::OpenAiResponsesStrict => Strict::default().refuses(schema),
        Dialect::Gemini => gemini(schema, true, 0),
        Dialect::OpenAi | Dialect::OpenAiResponses | Dialect::Anthropic | Dialect::Bedrock => {
            plain_root(dialect, schema)
        }
        Dialect::Mcp => (schema["type"] != "object").then(|| "the root is not an object".to_owned()),
    }
}

fn plain_root(dialect: Dialect, schema: &Value) -> Option<String> {
    if schema["type"] != "object" || !schema["properties"].is_object() {
        return Some("the root is not an object".to_owned());
    }
    let composed = ["anyOf", "oneOf", "allOf", "enum", "not"].iter().find(|keyword| schema.get(**keyword).is_some());
    let is_name = |name: &String| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        (1..=64).contains(&name.len()) && name.chars().all(is_letter)
    };
    let name = schema["properties"].as_object()?.keys().find(|name| !is_name(name));
    match (composed, name) {
        (Some(keyword), _) => Some(format!("{keyword} at the root")),
        (None, Some(name)) if dialect == Dialect::Anthropic => Some(format!("a property is called {name}")),
        _ => None,
    }
}

#[derive(Default)]
struct Strict {
    properties: usize,
    listed: usize,
    characters: usize,
}

impl Strict {
    fn refuses(mut self, root: &Value) -> Option<String> {
        if root["type"] != "object" || root.get("anyOf").is_some() {
            return Some("the root is not an object".to_owned());
        }
        let refused = self.schema(root, root, true, 0);
        refused
            .or_else(|| (self.properties > 5_000).then(|| "too many properties".to_owned()))
            .or_else(|| (self.listed > 1_000).then(|| "too many enum values".to_owned()))
            .or_else(|| (self.characters > 120_000).then(|| "too many characters".to_owned()))
    }

    fn schema(&mut self, root: &Value, schema: &Value, is_root: bool, depth: usize) -> Option<String> {
        let refuse = |reason: &str| Some(format!("{reason}: {schema}"));
        let Value::Object(map) = schema else { return refuse("not a schema") };
        if depth > 10 {
            return refuse("too deep");
        }
        if let Some(reference) = map.get("$ref") {
            let target = reference.as_str()?.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return if map.len() > 1 || target.is_none() { refuse("a bad reference") } else { None };
        }
        for (keyword, value) in map {
            let inner = match keyword.as_str() {
                "description" => value.as_str().is_none().then(String::new),
                "type" => None,
                "properties" => {
                    let properties = value.as_object()?;
                    self.properties += properties.len();
                    self.characters += properties.keys().map(String::len).sum::<usize>();
                    let all: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
                    if map.get("required") != Some(&Value::Array(all)) || map["additionalProperties"] != json!(false) {
                        return refuse("an open object");
                    }
                    properties.values().find_map(|property| self.schema(root, property, false, depth + 1))
                }
                "required" | "additionalProperties" => (!map.contains_key("properties")).then(String::new),
                "items" => self.schema(root, value, false, depth + 1),
                "anyOf" => value.as_array()?.iter().find_map(|choice| self.schema(root, choice, false, depth)),
                "$defs" if is_root => {
                    value.as_object()?.values().find_map(|definition| self.schema(root, definition, false, 0))
                }
                "enum" => {
                    let values = value.as_array()?;
                    self.listed += values.len();
                    values.iter().find(|value| value.is_array() || value.is_object()).map(|_| String::new())
                }
                "pattern" => value.as_str()?.contains("(?").then(String::new),
                "format" => {
                    let known = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
                    (!known.contains(&value.as_str()?)).then(String::new)
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minItems"
                | "maxItems" => (!value.is_number()).then(String::new),
                _ => Some(String::new()),
            };
            match inner {
                Some(inner) if inner.is_empty() => return refuse(keyword),
                Some(inner) => return Some(inner),
                None => {}
            }
        }
        let is_array = map.get("type").is_some_and(|kind| kind == "array");
        let is_object = map.get("type").is_some_and(|kind| kind == "object");
        if !map.contains_key("type") && !map.contains_key("anyOf") {
            return refuse("no type");
        }
        if is_array && !map.contains_key("items") || is_object && !map.contains_key("properties") {
            return refuse("nothing inside");
        }
        None
    }
}

fn gemini(schema: &Value, is_root: bool, depth: usize) -> Option<String> {
    let refuse = |reason: &str| Some(format!("{reason}: {schema}"));
    let Value::Object(map) = schema else { return refuse("not a schema") };
    if depth > 12 {
        return refuse("too deep");
    }
    if let Some(choices) = map.get("anyOf") {
        let choices = choices.as_array().filter(|choices| map.len() == 1 && choices.len() > 1);
        let Some(choices) = choices else { return refuse("something beside anyOf") };
        return choices.iter().find_map(|choice| gemini(choice, false, depth));
    }
    let Some(kind) = map.get("type").and_then(Value::as_str) else { return refuse("no type") };
    for (keyword, value) in map {
        let is_known = match (kind, keyword.as_str()) {
            (_, "type") => true,
            (_, "description") | ("string", "pattern") => value.is_string(),
            (_, "nullable") => value.is_boolean(),
            ("string", "enum") => {
                value.as_array()?.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()))
            }
            ("string", "format") => value == "date-time",
            ("string", "minLength" | "maxLength")
            | ("integer" | "number", "minimum" | "maximum")
            | ("array", "minItems" | "maxItems") => value.is_number(),
            ("array", "items") => {
                let refused = gemini(value, false, depth + 1);
                if refused.is_some() {
                    return refused;
                }
                true
            }
            ("object", "properties") => {
                let properties = value.as_object()?;
                if let Some(refused) = properties.values().find_map(|property| gemini(property, false, depth + 1)) {
                    return Some(refused);
                }
                (is_root || !properties.is_empty()) && properties.keys().all(|name| is_gemini_name(name))
            }
            ("object", "required") => {
                let properties = map.get("properties")?;
                value.as_array()?.iter().all(|name| properties.get(name.as_str().unwrap_or_default()).is_some())
            }
            _ => false,
        };
        if !is_known {
            return refuse(keyword);
        }
    }
    if kind == "array" && !map.contains_key("items") || kind == "object" && !map.contains_key("properties") {
        return refuse("nothing inside");
    }
    None
}

fn is_gemini_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (1..=64).contains(&name.len()) && name.chars().all(is_letter) && !name.starts_with(|it: char| it.is_ascii_digit())
}

/// The same schema in JSON Schema, which has no `nullable`.
pub(crate) fn as_validated(dialect: Dialect, schema: &Value) -> Value {
    if dialect != Dialect::Gemini {
        return schema.clone();
    }
    let Value::Object(map) = schema else { return schema.clone() };
    let mut plain: Map<String, Value> = Map::new();
    for (keyword, value) in map.iter().filter(|(keyword, _)| *keyword != "nullable") {
        let value = match keyword.as_str() {
            "properties" => {
                let properties = value.as_object().unwrap().iter();
                properties.map(|(name, property)| (name.clone(), as_validated(dialect, property))).collect()
            }
            "items" => as_validated(dialect, value),
            "anyOf" => value.as_array().unwrap().iter().map(|choice| as_validated(dialect, choice)).collect(),
            _ => value.clone(),
        };
        plain.insert(keyword.clone(), value);
    }
    if map.contains_key("nullable") { json!({"anyOf": [plain, {"type": "null"}]}) } else { Value::Object(plain) }
}
