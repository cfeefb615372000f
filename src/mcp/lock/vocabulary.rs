//! The keywords of JSON Schema, as far as a comparison has to know them: what they hold, and which of them restrict values.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::effect::{keys, names};
use crate::schema::view::pointer;

/// The depth to which schemas are compared.
pub(super) const DEPTH: usize = 100;

/// The most pairs of schemas that are compared.
pub(super) const STEPS: usize = 100_000;

/// The form in which a keyword holds other schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Schema,
    List,
    Map,
    Plain,
}

pub(super) fn shape(keyword: &str, value: &Value) -> Shape {
    match keyword {
        "items" if value.is_array() => Shape::List,
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" | "properties" => {
            Shape::Map
        }
        _ => Shape::Plain,
    }
}

/// True for a keyword that describes a value without restricting it.
pub(super) fn is_text(keyword: &str) -> bool {
    matches!(keyword, "title" | "description" | "$comment" | "examples" | "deprecated" | "readOnly" | "writeOnly")
}

/// True for a keyword that does not restrict the values at its place.
pub(super) fn is_silent(keyword: &str) -> bool {
    is_text(keyword) || matches!(keyword, "default" | "$defs" | "$schema" | "definitions")
}

/// True if a schema accepts every value.
pub(super) fn accepts_all(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(entries) => entries.keys().all(|keyword| is_silent(keyword)),
        _ => false,
    }
}

/// True if a keyword is the only one that restricts values.
pub(super) fn is_only(entries: &Map<String, Value>, keyword: &str) -> bool {
    entries.contains_key(keyword) && entries.keys().all(|key| key == keyword || is_silent(key))
}

/// True for a document of a draft in which a reference replaces the keywords beside it.
pub(super) fn has_old_draft(root: &Value) -> bool {
    let dialect = root.get("$schema").and_then(Value::as_str);
    dialect.is_some_and(|dialect| !dialect.contains("2020-12") && !dialect.contains("2019-09"))
}

/// True if a schema has a keyword whose effect depends on places that are not compared with it.
pub(super) fn reaches_far(schema: &Value, is_root: bool, depth: usize) -> bool {
    const FAR: [&str; 11] = [
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "$vocabulary",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$id",
        "$schema",
        "id",
    ];
    let Value::Object(entries) = schema else { return false };
    let is_far = |keyword: &str| FAR.contains(&keyword) && !(is_root && matches!(keyword, "$id" | "$schema" | "id"));
    depth > DEPTH
        || entries.keys().any(|keyword| is_far(keyword))
        || entries.iter().any(|(keyword, value)| {
            let inside = |schema: &Value| reaches_far(schema, false, depth + 1);
            match (shape(keyword, value), value) {
                (Shape::Schema, schema) => inside(schema),
                (Shape::List, Value::Array(schemas)) => schemas.iter().any(inside),
                (Shape::Map, Value::Object(schemas)) => schemas.values().any(inside),
                _ => false,
            }
        })
}

/// True if a name must be sent that the root does not list, so that it is not clear whether it may be sent.
pub(super) fn requires_undescribed(root: &Value) -> bool {
    let Some(properties) = root.get("properties") else { return false };
    let names = names(root.get("required")).unwrap_or_default();
    names.into_iter().any(|name| properties.get(name).is_none())
}

/// The place and the schema that the value of a `$ref` leads to in its own document.
pub(super) fn resolve<'r>(root: &'r Value, reference: &Value) -> Option<(String, &'r Value)> {
    let place = pointer(&Map::from_iter([("$ref".to_owned(), reference.clone())]))?;
    let found = root.pointer(&place)?;
    Some((place, found))
}

/// The search for a difference between two schemas other than in texts.
pub(super) struct Sameness<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    /// The pairs of definitions that are compared or were: if one of them differs, the whole does.
    pub(super) assumed: HashSet<(String, String)>,
    /// The steps of the whole comparison.
    pub(super) steps: usize,
}

impl Sameness<'_> {
    /// True if two schemas differ only in texts, also in the definitions that they refer to.
    pub(super) fn schema(&mut self, old: &Value, new: &Value, depth: usize) -> bool {
        self.steps += 1;
        if depth > DEPTH || self.steps > STEPS {
            return false;
        }
        let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
        let mut keywords = keys(old, new).filter(|keyword| !is_silent(keyword));
        keywords.all(|keyword| match (old.get(keyword), new.get(keyword)) {
            (Some(old), Some(new)) => self.keyword(keyword, old, new, depth),
            _ => false,
        })
    }

    /// True if the values of a keyword differ only in texts.
    pub(super) fn keyword(&mut self, keyword: &str, old: &Value, new: &Value, depth: usize) -> bool {
        if keyword == "$ref" {
            let Some((old, new)) = resolve(self.old, old).zip(resolve(self.new, new)) else { return old == new };
            return !self.assumed.insert((old.0, new.0)) || self.schema(old.1, new.1, depth + 1);
        }
        match (shape(keyword, old), old, new) {
            (Shape::Schema, old, new) => self.schema(old, new, depth + 1),
            (Shape::List, Value::Array(old), Value::Array(new)) => {
                old.len() == new.len() && old.iter().zip(new).all(|(old, new)| self.schema(old, new, depth + 1))
            }
            (Shape::Map, Value::Object(old), Value::Object(new)) => {
                keys(old, new).all(|name| match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => self.schema(old, new, depth + 1),
                    _ => false,
                })
            }
            (_, old, new) => old == new,
        }
    }
}
