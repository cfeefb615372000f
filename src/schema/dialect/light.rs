//! The encoder of light dialects, which take JSON Schema almost as it is: only the root and names are changed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::codec::{ARGUMENTS, Absence, Codec, FieldCodec, ObjectCodec, Op};
use super::resolve::{every_schema, rename_references};
use super::{Encoded, Loss, joined, sentence, short};
use crate::json::Document;
use crate::schema::view::pointer;

/// The rules of a light dialect.
pub(crate) struct LightRules {
    /// True if the root must not compose schemas.
    pub(crate) plain_root: bool,
    /// True if every array must have `items`.
    pub(crate) fills_arrays: bool,
    /// The test for parameter names, if there is one.
    pub(crate) is_name: Option<fn(&str) -> bool>,
    /// True if the root may say that it is of the current draft.
    pub(crate) names_draft: bool,
}

/// The name of the draft that schemas are converted to.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The keywords that a plain root must not have.
const COMPOSITION: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// Encodes the parameters of a tool.
pub(crate) fn encode(parameters: &Arc<Document>, light: &LightRules) -> Encoded {
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
    let is_current = root.get("$schema").and_then(Value::as_str) == Some(DRAFT);
    let mut schema = Value::Object(root);
    every_schema(&mut schema, &mut modernize);
    if light.names_draft && is_current {
        schema["$schema"] = Value::from(DRAFT);
    }
    if light.fills_arrays {
        every_schema(&mut schema, &mut |map| {
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

/// Rewrites the keywords of older drafts in those of 2020-12, by which providers read a schema: tuples and dependencies. The declaration of
/// the draft goes.
fn modernize(map: &mut Map<String, Value>) {
    map.shift_remove("$schema");
    if map.get("items").is_some_and(Value::is_array) {
        let places = map.shift_remove("items").unwrap_or_default();
        let count = places.as_array().map(|places| places.len() as u64);
        let is_full = map.get("maxItems").and_then(Value::as_u64).is_some_and(|most| Some(most) <= count);
        let rest = map.shift_remove("additionalItems").or_else(|| is_full.then_some(Value::Bool(false)));
        map.insert("prefixItems".to_owned(), places);
        map.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
    if let Some(Value::Object(dependencies)) = map.shift_remove("dependencies") {
        for (name, dependency) in dependencies {
            let keyword = if dependency.is_array() { "dependentRequired" } else { "dependentSchemas" };
            let known = map.entry(keyword).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(known) = known {
                known.insert(name, dependency);
            }
        }
    }
}

/// Replaces a root that only refers to a definition by that definition.
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

fn can_be_root(root: &Map<String, Value>, light: &LightRules) -> bool {
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

/// True if a composition does not define the structure of the arguments.
fn is_condition(keyword: &str, value: &Value) -> bool {
    let plain = |schema: &Value| {
        schema.as_object().is_some_and(|map| map.keys().all(|key| matches!(&**key, "required" | "not" | "description")))
    };
    match value {
        Value::Array(schemas) if keyword != "enum" => schemas.iter().all(plain),
        _ => keyword == "not",
    }
}

/// Describes conditions at the root in sentences.
fn say_conditions(root: &mut Map<String, Value>, report: &mut Vec<Loss>) {
    for keyword in COMPOSITION {
        let Some(value) = root.shift_remove(keyword) else { continue };
        let sentence = sentence(keyword, &value);
        let description = root.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        root.insert("description".to_owned(), Value::from(joined([description, sentence.clone()])));
        report.push(Loss {
            path: String::new(),
            what: keyword.to_owned(),
            instead: format!("in the description: {sentence}"),
        });
    }
}

/// Renames parameters whose names are not accepted.
fn rename(root: &mut Map<String, Value>, is_name: fn(&str) -> bool, report: &mut Vec<Loss>) -> Op {
    let Some(Value::Object(properties)) = root.get_mut("properties") else { return Op::Same };
    if properties.keys().all(|name| is_name(name)) {
        return Op::Same;
    }
    let mut fields = ObjectCodec::default();
    for (name, mut property) in std::mem::take(properties) {
        let outer = safe_name(&name, is_name).into_owned();
        if outer != name {
            if let Value::Object(property) = &mut property {
                let description = property.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
                let description = joined([description, full_name(&name)]);
                property.insert("description".to_owned(), Value::from(description));
            }
            let renamed = renamed(&name, &outer);
            report.push(Loss { path: name.clone(), ..renamed });
            fields.named.push(FieldCodec {
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
    rename_references(&mut schema, &|reference| {
        let rest = reference.strip_prefix("#/properties/")?;
        let (name, below) =
            rest.split_once('/').map_or((rest, String::new()), |(name, rest)| (name, format!("/{rest}")));
        let outer = outer_of(&name.replace("~1", "/").replace("~0", "~"))?;
        Some(format!("#/properties/{outer}{below}"))
    });
    if let Value::Object(schema) = schema {
        *root = schema;
    }
    Op::Object(Box::new(fields))
}

/// Wraps a schema that cannot be the root in an object with one property.
fn inside(root: Map<String, Value>) -> Map<String, Value> {
    let mut schema = Value::Object(root);
    rename_references(&mut schema, &|reference| {
        let pointer = reference.strip_prefix('#').filter(|it| it.is_empty() || it.starts_with('/'))?;
        Some(format!("#/properties/{ARGUMENTS}{pointer}"))
    });
    let root = json!({"type": "object", "properties": {ARGUMENTS: schema}, "required": [ARGUMENTS]});
    if let Value::Object(root) = root { root } else { Map::new() }
}

/// The number of characters of a name that are kept in front of the hash.
const KEPT: usize = 50;

/// The name if it is accepted, else one that is: characters that are not accepted become underscores, and eight digits of the name's hash
/// keep similar names apart. It depends on nothing else, so that it stays the same whatever is registered.
pub(crate) fn safe_name(name: &str, is_name: fn(&str) -> bool) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let mut safe = String::with_capacity(KEPT + 10);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        safe.push('_');
    }
    safe.extend(name.chars().take(KEPT).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }));
    safe.push('_');
    for byte in &Sha256::digest(name.as_bytes())[..4] {
        let _ = write!(safe, "{byte:02x}");
    }
    Cow::Owned(safe)
}

/// The sentence for the model about a name that was changed.
pub(crate) fn full_name(name: &str) -> String {
    format!("Its full name is `{}`.", short(name, 200))
}

/// The loss for a name that was changed.
pub(crate) fn renamed(name: &str, safe: &str) -> Loss {
    Loss {
        path: String::new(),
        what: format!("name `{}`", short(name, 200)),
        instead: format!("it is called `{safe}`, and its full name is in the description"),
    }
}
