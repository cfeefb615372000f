//! References and `allOf`: a schema merged with what it refers to, a part with its definitions, and visits of all schemas inside.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::encoder::Encoder;
use super::sentence;
use crate::schema::view::pointer;

/// The most schemas that are merged into one, one inside of the other.
const LEVELS: usize = 50;

/// A schema without references and `allOf` at its top level.
pub(super) struct Merged<'m> {
    pub(super) map: Cow<'m, Map<String, Value>>,
    /// The references that were followed.
    pub(super) used: Vec<String>,
    /// Sentences about what could not be merged.
    pub(super) sentences: Vec<String>,
}

/// The result of a merge so far.
#[derive(Default)]
struct PartialMerge {
    map: Map<String, Value>,
    used: Vec<String>,
    sentences: Vec<String>,
}

impl Encoder<'_> {
    /// Merges a schema with what it refers to; its own keywords come first.
    pub(super) fn merge<'m>(&mut self, map: &'m Map<String, Value>, at: &str) -> Merged<'m> {
        if !map.contains_key("$ref") && !map.contains_key("allOf") {
            self.spend(cost(map));
            return Merged { map: Cow::Borrowed(map), used: Vec::new(), sentences: Vec::new() };
        }
        let mut merged = PartialMerge::default();
        self.absorb(&mut merged, map, at, 0);
        Merged { map: Cow::Owned(merged.map), used: merged.used, sentences: merged.sentences }
    }

    fn absorb(&mut self, merged: &mut PartialMerge, map: &Map<String, Value>, at: &str, level: usize) {
        if !self.spend(cost(map)) || level > LEVELS {
            return;
        }
        for (keyword, value) in map {
            match keyword.as_str() {
                "$ref" | "allOf" | "$defs" | "definitions" | "$schema" | "$id" | "$comment" | "$anchor" | "title" => {}
                "properties" => absorb_properties(merged, value),
                "required" => absorb_required(merged, value),
                _ => self.absorb_keyword(merged, keyword, value, at),
            }
        }
        if let Some(target) = pointer(map) {
            if !merged.used.contains(&target) {
                merged.used.push(target.clone());
                let document = self.document;
                match document.pointer(&target) {
                    Some(Value::Object(referred)) => self.absorb(merged, referred, at, level + 1),
                    Some(_) => {}
                    None => self.report_loss(at, "$ref", "nothing: it refers to nothing"),
                }
            }
        } else if map.contains_key("$ref") {
            self.report_loss(at, "$ref", "nothing: it refers to another document");
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(part) = part {
                self.absorb(merged, part, at, level + 1);
            }
        }
    }

    fn absorb_keyword(&mut self, merged: &mut PartialMerge, keyword: &str, value: &Value, at: &str) {
        match merged.map.get_mut(keyword) {
            None => drop(merged.map.insert(keyword.to_owned(), value.clone())),
            Some(old) if old == value => {}
            Some(old) if keyword == "type" => {
                if let Some(both) = both_types(old, value) {
                    *old = both;
                }
            }
            Some(Value::Array(old)) if keyword == "enum" => {
                if let Value::Array(new) = value {
                    old.retain(|member| new.contains(member));
                }
            }
            Some(_) if matches!(keyword, "description" | "default" | "examples" | "deprecated" | "format") => {}
            Some(_) => {
                let sentence = sentence(keyword, value);
                self.report_loss(at, "allOf", format!("in the description: {sentence}"));
                merged.sentences.push(sentence);
            }
        }
    }
}

/// The cost of visiting a schema.
fn cost(map: &Map<String, Value>) -> usize {
    let properties = map.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    let texts: usize = map.values().filter_map(Value::as_str).map(str::len).sum();
    map.len() + properties + texts / 64
}

fn absorb_properties(merged: &mut PartialMerge, value: &Value) {
    let Value::Object(new) = value else { return };
    let own = merged.map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(own) = own else { return };
    for (name, property) in new {
        match own.get_mut(name) {
            Some(old) if old == property => {}
            Some(old) => *old = json!({"allOf": [old.take(), property]}),
            None => drop(own.insert(name.clone(), property.clone())),
        }
    }
}

fn absorb_required(merged: &mut PartialMerge, value: &Value) {
    let Value::Array(new) = value else { return };
    match merged.map.get_mut("required") {
        Some(Value::Array(own)) => {
            let more: Vec<Value> = new.iter().filter(|name| !own.contains(name)).cloned().collect();
            own.extend(more);
        }
        _ => drop(merged.map.insert("required".to_owned(), value.clone())),
    }
}

/// The types that both schemas allow.
fn both_types(one: &Value, other: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let (one, other) = (list(one), list(other));
    let mut both: Vec<Value> = Vec::new();
    for kind in &one {
        if other.contains(kind) || kind == "integer" && other.contains(&json!("number")) {
            both.push(kind.clone());
        } else if kind == "number" && other.contains(&json!("integer")) {
            both.push(json!("integer"));
        }
    }
    match both.len() {
        0 => None,
        1 => both.pop(),
        _ => Some(Value::Array(both)),
    }
}

/// The keyword of the definitions.
const DEFINITIONS: &str = "$defs";

/// A part of a schema with everything that it refers to, for where it is shown alone. At most so many values are visited; the rest is left out.
pub(super) fn standalone(schema: &Value, document: &Value, most: usize) -> Value {
    let mut copy = StandaloneCopy { document, names: Vec::new(), room: most };
    let mut whole = copy.of(schema);
    let mut definitions = Map::new();
    while let Some((target, name)) = copy.names.get(definitions.len()).cloned() {
        let definition = match document.pointer(&target) {
            Some(definition) => copy.of(definition),
            None => Value::Bool(true),
        };
        definitions.insert(name, definition);
    }
    if let Value::Object(whole) = &mut whole
        && !definitions.is_empty()
    {
        whole.insert(DEFINITIONS.to_owned(), Value::Object(definitions));
    }
    whole
}

struct StandaloneCopy<'d> {
    document: &'d Value,
    /// The pointers of the definitions and their names.
    names: Vec<(String, String)>,
    room: usize,
}

impl StandaloneCopy<'_> {
    fn of(&mut self, value: &Value) -> Value {
        self.room = self.room.saturating_sub(1);
        match value {
            Value::Array(items) => items.iter().map_while(|item| (self.room > 0).then(|| self.of(item))).collect(),
            Value::Object(entries) => {
                let target = pointer(entries).filter(|target| self.document.pointer(target).is_some());
                let mut copy = Map::new();
                for (key, value) in entries {
                    if self.room == 0 {
                        break;
                    }
                    match (key.as_str(), &target) {
                        (DEFINITIONS | "definitions", _) => {}
                        ("$ref", Some(target)) => {
                            copy.insert(key.clone(), Value::from(format!("#/{DEFINITIONS}/{}", self.name(target))));
                        }
                        _ => {
                            copy.insert(key.clone(), self.of(value));
                        }
                    }
                }
                Value::Object(copy)
            }
            scalar => scalar.clone(),
        }
    }

    /// The name of the definition at a pointer.
    fn name(&mut self, target: &str) -> String {
        if let Some((_, name)) = self.names.iter().find(|(known, _)| known == target) {
            return name.clone();
        }
        let last = target.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("Arguments");
        let is_taken = self.names.iter().any(|(_, name)| name == last);
        let name = if is_taken { format!("{last}{}", self.names.len() + 1) } else { last.to_owned() };
        self.names.push((target.to_owned(), name.clone()));
        name
    }
}

/// Calls `change` for the schema and every schema inside of it.
pub(super) fn every_schema(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    change(map);
    for (keyword, value) in map.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                if let Value::Object(schemas) = value {
                    schemas.values_mut().for_each(|schema| every_schema(schema, change));
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                if let Value::Array(schemas) = value {
                    for schema in schemas {
                        every_schema(schema, change);
                    }
                }
            }
            "items" | "additionalItems" => match value {
                // Before the draft of 2020 `items` could be the list that `prefixItems` is now.
                Value::Array(schemas) => schemas.iter_mut().for_each(|schema| every_schema(schema, change)),
                schema => every_schema(schema, change),
            },
            "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else" => every_schema(value, change),
            _ => {}
        }
    }
}

/// Replaces references by what `rename` returns.
pub(super) fn rename_references(schema: &mut Value, rename: &dyn Fn(&str) -> Option<String>) {
    every_schema(schema, &mut |map| {
        if let Some(Value::String(reference)) = map.get_mut("$ref")
            && let Some(renamed) = rename(reference)
        {
            *reference = renamed;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_referred_to_comes_along_and_nothing_else() {
        let document = json!({
            "properties": {"x": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": {"properties": {"leaf": {"$ref": "#/$defs/Leaf"}}}, "Leaf": {"type": "null"}, "Else": {}},
        });

        assert_eq!(
            standalone(&json!({"$ref": "#/$defs/Node"}), &document, 100),
            json!({
                "$ref": "#/$defs/Node",
                "$defs": {"Node": {"properties": {"leaf": {"$ref": "#/$defs/Leaf"}}}, "Leaf": {"type": "null"}},
            })
        );
        assert_eq!(standalone(&json!({"type": "null"}), &document, 100), json!({"type": "null"}));
    }

    #[test]
    fn the_whole_is_a_definition_too() {
        let document = json!({"properties": {"next": {"$ref": "#"}}});

        assert_eq!(
            standalone(&json!({"$ref": "#"}), &document, 100),
            json!({
                "$ref": "#/$defs/Arguments",
                "$defs": {"Arguments": {"properties": {"next": {"$ref": "#/$defs/Arguments"}}}},
            })
        );
    }
}
