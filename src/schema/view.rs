//! The keywords of a JSON Schema that several readers need: references, listed values, types and required names.

use std::slice;

use serde_json::{Map, Value};

/// The JSON pointer of the definition that a schema refers to, if it is in the same document.
pub(crate) fn pointer(schema: &Map<String, Value>) -> Option<String> {
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

/// The definition that a schema refers to.
pub(crate) fn target<'s>(root: &'s Value, schema: &Map<String, Value>) -> Option<&'s Value> {
    root.pointer(&pointer(schema)?)
}

/// The values that a `const` or an `enum` lists.
pub(crate) fn members(schema: &Map<String, Value>) -> Option<&[Value]> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(member), _) => Some(slice::from_ref(member)),
        (None, Some(Value::Array(members))) => Some(members),
        _ => None,
    }
}

/// The names in `type`, which is one name or a list of them; none if the keyword is missing.
pub(crate) fn type_names(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = match schema.get("type") {
        Some(Value::Array(names)) => names.as_slice(),
        Some(name) => slice::from_ref(name),
        None => &[],
    };
    names.iter().filter_map(Value::as_str)
}

/// The properties of an object.
pub(crate) fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The names that an object must have.
pub(crate) fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The keywords of the schemas for the first items of an array and for the rest of them. Before the draft of 2020
/// `items` could be the list that `prefixItems` is now.
pub(crate) fn item_keywords(schema: &Map<String, Value>) -> (&'static str, &'static str) {
    match schema.get("items") {
        Some(Value::Array(_)) => ("items", "additionalItems"),
        _ => ("prefixItems", "items"),
    }
}

/// A name as a step of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
