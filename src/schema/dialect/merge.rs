//! A schema together with what it refers to and what else must hold, as one.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::encoder::Encoder;
use super::words;
use crate::schema::check::pointer;

/// How many schemas may be merged into one, one inside of the other.
const LEVELS: usize = 50;

/// A schema without references and `allOf` at its top.
pub(super) struct Merged<'m> {
    pub(super) map: Cow<'m, Map<String, Value>>,
    /// The references that were followed.
    pub(super) used: Vec<String>,
    /// What could not be merged.
    pub(super) words: Vec<String>,
}

/// The same while it is put together.
#[derive(Default)]
struct Whole {
    map: Map<String, Value>,
    used: Vec<String>,
    words: Vec<String>,
}

impl Encoder<'_> {
    /// Merges a schema; what it says itself comes before what it refers to.
    pub(super) fn merge<'m>(&mut self, map: &'m Map<String, Value>, at: &str) -> Merged<'m> {
        if !map.contains_key("$ref") && !map.contains_key("allOf") {
            self.spend(cost(map));
            return Merged { map: Cow::Borrowed(map), used: Vec::new(), words: Vec::new() };
        }
        let mut merged = Whole::default();
        self.absorb(&mut merged, map, at, 0);
        Merged { map: Cow::Owned(merged.map), used: merged.used, words: merged.words }
    }

    fn absorb(&mut self, merged: &mut Whole, map: &Map<String, Value>, at: &str, level: usize) {
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
                    None => self.lose(at, "$ref", "nothing: it refers to nothing"),
                }
            }
        } else if map.contains_key("$ref") {
            self.lose(at, "$ref", "nothing: it refers to another document");
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(part) = part {
                self.absorb(merged, part, at, level + 1);
            }
        }
    }

    fn absorb_keyword(&mut self, merged: &mut Whole, keyword: &str, value: &Value, at: &str) {
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
                let sentence = words::sentence(keyword, value);
                self.lose(at, "allOf", format!("in the description: {sentence}"));
                merged.words.push(sentence);
            }
        }
    }
}

/// What it costs to look at a schema.
fn cost(map: &Map<String, Value>) -> usize {
    let properties = map.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    let texts: usize = map.values().filter_map(Value::as_str).map(str::len).sum();
    map.len() + properties + texts / 64
}

fn absorb_properties(merged: &mut Whole, value: &Value) {
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

fn absorb_required(merged: &mut Whole, value: &Value) {
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
