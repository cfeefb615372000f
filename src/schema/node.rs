//! The pieces that schemas are put together from.

use serde_json::{Map, Value};

use super::order::{is_whole, without_repetition};

pub(super) fn literal(values: &[Value]) -> Value {
    let mut schema = match values {
        [only] => object([("const", only.clone())]),
        several => object([("enum", Value::Array(several.to_vec()))]),
    };
    if let Some(kind) = common_kind(values) {
        schema.insert("type".to_owned(), Value::from(kind));
    }
    Value::Object(schema)
}

pub(super) fn enumeration(values: &[Value], description: Option<&str>) -> Value {
    let mut schema = Map::new();
    if let Some(description) = description {
        schema.insert("description".to_owned(), Value::from(description));
    }
    schema.insert("enum".to_owned(), Value::Array(values.to_vec()));
    if let Some(kind) = common_kind(values).filter(|kind| *kind != "null") {
        schema.insert("type".to_owned(), Value::from(kind));
    }
    Value::Object(schema)
}

/// The type that all of `values` have, if they have one in common.
pub(super) fn common_kind(values: &[Value]) -> Option<&'static str> {
    let mut kinds = values.iter().map(|value| match value {
        Value::Null => Some("null"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if is_whole(number) => Some("integer"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => None,
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

pub(super) fn any_of(schemas: Vec<Value>) -> Value {
    let mut members = Vec::with_capacity(schemas.len());
    for schema in schemas {
        match schema {
            Value::Object(mut node) if node.len() == 1 && node.contains_key("anyOf") => {
                match node.shift_remove("anyOf") {
                    Some(Value::Array(inner)) => members.extend(inner),
                    other => members.extend(other),
                }
            }
            other => members.push(other),
        }
    }
    let mut members = without_repetition(members);
    if members.len() == 1 { members.swap_remove(0) } else { one("anyOf", Value::Array(members)) }
}

pub(super) fn typed(kind: &str) -> Value {
    one("type", Value::from(kind))
}

pub(super) fn formatted(format: &str) -> Value {
    Value::Object(object([("format", Value::from(format)), ("type", Value::from("string"))]))
}

pub(super) fn one(key: &str, value: Value) -> Value {
    Value::Object(object([(key, value)]))
}

pub(super) fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    // Room for what most parameters get besides their type: a default and a description.
    let mut object = Map::with_capacity(N + 2);
    for (key, value) in entries {
        object.insert(key.to_owned(), value);
    }
    object
}

pub(super) fn into_object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(node) => node,
        _ => Map::new(),
    }
}

pub(super) fn insert(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(node) = schema {
        node.insert(key.to_owned(), value);
    }
}

pub(super) fn overwrite(schema: &mut Value, keys: &Map<String, Value>) {
    if let Value::Object(node) = schema {
        for (key, value) in keys {
            node.insert(key.clone(), value.clone());
        }
    }
}
