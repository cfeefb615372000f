//! A schema in a dialect that takes JSON Schema nearly as it is: only the root is looked at closely.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::codec::{ARGUMENTS, Absence, Codec, Field, Fields, Op};
use super::{Encoded, Loss, names, walk, words};
use crate::schema::Document;
use crate::schema::check::pointer;

/// What a light dialect asks for.
pub(crate) struct Light {
    /// The root has nothing that composes schemas.
    pub(crate) plain_root: bool,
    /// Every array says what is in it.
    pub(crate) fills_arrays: bool,
    /// What a parameter may be called.
    pub(crate) is_name: Option<fn(&str) -> bool>,
}

/// What must not stand at a plain root.
const COMPOSITION: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// Encodes the parameters of a tool.
pub(crate) fn encode(parameters: &Arc<Document>, light: &Light) -> Encoded {
    let mut report = Vec::new();
    let mut root = match parameters.value() {
        Value::Object(root) => root.clone(),
        _ => Map::new(),
    };
    follow(&mut root);
    let mut op = Op::Same;
    if can_be_root(&root, light) {
        root.shift_remove("type");
        let rest = std::mem::take(&mut root);
        root.insert("type".to_owned(), Value::from("object"));
        root.extend(rest);
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if light.plain_root {
            say_conditions(&mut root, &mut report);
        }
        if let Some(is_name) = light.is_name {
            op = rename(&mut root, is_name, &mut report);
        }
    } else {
        root = inside(root);
        op = Op::Inside(ARGUMENTS, Box::new(op));
    }
    let mut schema = Value::Object(root);
    if light.fills_arrays {
        walk::every_schema(&mut schema, &mut |map| {
            let is_array = match map.get("type") {
                Some(Value::String(kind)) => kind == "array",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
                _ => false,
            };
            if is_array {
                map.entry("items").or_insert_with(|| json!({}));
            }
        });
    }
    Encoded { schema, codec: Codec::new(op, Vec::new(), parameters.clone()), report }
}

/// A root that only refers to a definition becomes that definition.
fn follow(root: &mut Map<String, Value>) {
    for _ in 0..32 {
        let document = Value::Object(std::mem::take(root));
        let target = document.as_object().and_then(pointer).filter(|target| !target.is_empty());
        let referred = target.and_then(|target| document.pointer(&target).cloned());
        let Value::Object(own) = document else { return };
        *root = own;
        let Some(Value::Object(referred)) = referred else { return };
        root.shift_remove("$ref");
        for (key, value) in referred {
            root.entry(key).or_insert(value);
        }
    }
}

fn can_be_root(root: &Map<String, Value>, light: &Light) -> bool {
    let is_object = match root.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    let is_plain = |keyword: &&str| root.get(*keyword).is_none_or(|value| is_condition(keyword, value));
    is_object
        && !root.contains_key("$ref")
        && if light.plain_root {
            let has_properties = root.contains_key("properties");
            COMPOSITION.iter().all(|keyword| !root.contains_key(*keyword))
                || has_properties && COMPOSITION.iter().all(is_plain)
        } else {
            root.contains_key("type") || root.contains_key("properties") || root.is_empty()
        }
}

/// Whether a composition says nothing about what the arguments are made of.
fn is_condition(keyword: &str, value: &Value) -> bool {
    let plain = |schema: &Value| {
        schema.as_object().is_some_and(|map| map.keys().all(|key| matches!(&**key, "required" | "not" | "description")))
    };
    match value {
        Value::Array(schemas) if keyword != "enum" => schemas.iter().all(plain),
        _ => keyword == "not",
    }
}

/// Tells conditions at the root in words.
fn say_conditions(root: &mut Map<String, Value>, report: &mut Vec<Loss>) {
    for keyword in COMPOSITION {
        let Some(value) = root.shift_remove(keyword) else { continue };
        let sentence = words::sentence(keyword, &value);
        let description = root.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        root.insert("description".to_owned(), Value::from(words::joined([description, sentence.clone()])));
        report.push(Loss {
            path: String::new(),
            what: keyword.to_owned(),
            instead: format!("in the description: {sentence}"),
        });
    }
}

/// Gives parameters names that are accepted.
fn rename(root: &mut Map<String, Value>, is_name: fn(&str) -> bool, report: &mut Vec<Loss>) -> Op {
    let Some(Value::Object(properties)) = root.get_mut("properties") else { return Op::Same };
    if properties.keys().all(|name| is_name(name)) {
        return Op::Same;
    }
    let mut fields = Fields::default();
    for (name, mut property) in std::mem::take(properties) {
        let outer = names::safe(&name, is_name).into_owned();
        if outer != name {
            if let Value::Object(property) = &mut property {
                let description = property.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
                let description = words::joined([description, names::in_full(&name)]);
                property.insert("description".to_owned(), Value::from(description));
            }
            let renamed = names::renamed(&name, &outer);
            report.push(Loss { path: name.clone(), ..renamed });
            fields.named.push(Field {
                outer: outer.as_str().into(),
                inner: name.into(),
                op: Op::Same,
                absence: Absence::Missing,
            });
        }
        properties.insert(outer, property);
    }
    let outer_of = |name: &str| fields.named.iter().find(|field| *field.inner == *name).map(|field| &*field.outer);
    if let Some(Value::Array(required)) = root.get_mut("required") {
        for name in required {
            if let Some(outer) = name.as_str().and_then(outer_of) {
                *name = Value::from(outer);
            }
        }
    }
    let mut schema = Value::Object(std::mem::take(root));
    walk::rename_references(&mut schema, &|reference| {
        let rest = reference.strip_prefix("#/properties/")?;
        let (name, below) =
            rest.split_once('/').map_or((rest, String::new()), |(name, rest)| (name, format!("/{rest}")));
        let outer = outer_of(&name.replace("~1", "/").replace("~0", "~"))?;
        Some(format!("#/properties/{outer}{below}"))
    });
    if let Value::Object(schema) = schema {
        *root = schema;
    }
    Op::Fields(Box::new(fields))
}

/// What cannot be the root is the one property of it.
fn inside(root: Map<String, Value>) -> Map<String, Value> {
    let mut schema = Value::Object(root);
    walk::rename_references(&mut schema, &|reference| {
        let pointer = reference.strip_prefix('#').filter(|it| it.is_empty() || it.starts_with('/'))?;
        Some(format!("#/properties/{ARGUMENTS}{pointer}"))
    });
    let root = json!({"type": "object", "properties": {ARGUMENTS: schema}, "required": [ARGUMENTS]});
    if let Value::Object(root) = root { root } else { Map::new() }
}
