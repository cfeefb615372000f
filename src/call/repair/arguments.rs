//! Repairs that need the tool's schema: names that are almost those of parameters, JSON text in place of a list or an object,
//! and the list of coerced values.
//!
//! A name is only ever changed to one that the model was shown. Any other name stays as it is, and is refused.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ParsedArguments;
use crate::call::{Change, Repair, RepairKind};
use crate::schema::check::{At, Found, JsonLike, ValueKind};

/// The maximum depth of values that are visited.
const MAX_DEPTH: usize = 128;
/// The maximum number of repairs of one call. Arguments that need more are not repaired.
const MAX_REPAIRS: usize = 200;
/// The maximum number of coercions that are listed.
const MAX_COERCIONS: usize = 50;

/// The names of a tool's parameters beside those in its schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParameterNames<'a> {
    /// Aliases, each with the name of the parameter.
    pub aliases: &'a [(Box<str>, Box<str>)],
    /// Names that are hidden from the model.
    pub hidden: &'a [Box<str>],
}

/// Repairs arguments that do not fit a tool's parameters; `None` if there is nothing to repair.
#[must_use]
pub fn repair_names(arguments: &Value, parameters: &Value, names: ParameterNames<'_>) -> Option<(Value, Vec<Repair>)> {
    let mut repair = NameRepair { root: parameters, repairs: Vec::new() };
    let mut value = arguments.clone();
    if let Value::Object(entries) = &mut value {
        repair.rename(entries, parameters, &At::Root, names);
    }
    repair.walk(&mut value, parameters, &At::Root, MAX_DEPTH);
    let count = repair.repairs.len();
    (count > 0 && count <= MAX_REPAIRS).then_some((value, repair.repairs))
}

struct NameRepair<'a> {
    root: &'a Value,
    repairs: Vec<Repair>,
}

impl<'a> NameRepair<'a> {
    /// Visits a value with its schema. The names of the root are repaired before.
    fn walk(&mut self, value: &mut Value, schema: &'a Value, at: &At<'_>, depth: usize) {
        if depth == 0 || self.repairs.len() > MAX_REPAIRS {
            return;
        }
        let schema = self.resolved(schema);
        self.decode(value, schema, at);
        match value {
            Value::Object(entries) => {
                if !at.is_root() {
                    self.rename(entries, schema, at, ParameterNames::default());
                }
                let Some(properties) = schema.get("properties") else { return };
                for (key, entry) in entries {
                    if let Some(schema) = properties.get(key) {
                        self.walk(entry, schema, &at.key(key), depth - 1);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.get("items").filter(|items| items.is_object()) else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.walk(item, schema, &at.index(index), depth - 1);
                }
            }
            _ => {}
        }
    }

    /// The schema at the end of references, and of unions with `null`.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..16 {
            if let Some(pointer) =
                schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'))
            {
                match self.root.pointer(pointer) {
                    Some(target) => schema = target,
                    None => return schema,
                }
                continue;
            }
            let branches = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            let mut something = branches.into_iter().flatten().filter(|branch| branch["type"] != "null");
            match (something.next(), something.next()) {
                (Some(only), None) => schema = only,
                _ => return schema,
            }
        }
        schema
    }

    /// Renames entries to the properties of the schema.
    fn rename(&mut self, entries: &mut Map<String, Value>, schema: &Value, at: &At<'_>, names: ParameterNames<'_>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let is_open = schema.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false))
            || schema.get("patternProperties").is_some();
        if is_open || entries.keys().all(|key| properties.contains_key(key)) {
            return;
        }
        let is_hidden = |name: &str| names.hidden.iter().any(|hidden| **hidden == *name);
        let folded: Vec<(Cow<'_, str>, &str)> = properties
            .keys()
            .map(String::as_str)
            .chain(names.hidden.iter().map(AsRef::as_ref))
            .map(|name| (fold(name), name))
            .collect();
        let target = |key: &str| -> Option<(&str, RepairKind)> {
            if properties.contains_key(key) || is_hidden(key) {
                return None;
            }
            if let Some((_, name)) = names.aliases.iter().find(|(alias, _)| **alias == *key) {
                return Some((name, RepairKind::Alias));
            }
            let key = fold(key);
            let mut alike = folded.iter().filter(|(name, _)| !key.is_empty() && *name == key).map(|(_, name)| *name);
            match (alike.next(), alike.next()) {
                (Some(only), None) => Some((only, RepairKind::Name)),
                _ => None,
            }
        };
        let wanted: Vec<Option<(&str, RepairKind)>> = entries
            .keys()
            .map(|key| target(key).filter(|(name, _)| properties.contains_key(*name) && !is_hidden(name)))
            .collect();
        // If two entries would get the same name, or the name is taken, it is not clear which is meant.
        let is_free = |name: &str| {
            !entries.contains_key(name) && wanted.iter().flatten().filter(|(other, _)| *other == name).count() == 1
        };
        let renames: Vec<Option<(String, RepairKind)>> = wanted
            .iter()
            .map(|want| want.filter(|(name, _)| is_free(name)).map(|(name, what)| (name.to_owned(), what)))
            .collect();
        if renames.iter().all(Option::is_none) {
            return;
        }
        let old = std::mem::take(entries);
        for ((key, value), rename) in old.into_iter().zip(renames) {
            let Some((name, what)) = rename else {
                entries.insert(key, value);
                continue;
            };
            let text = format!("the argument `{}` was read as `{name}`", shown(&key));
            self.repairs.push(Repair::new(what, text).at(at.key(&name)));
            entries.insert(name, value);
        }
    }

    /// Parses invalid JSON text in place of a list or an object. Valid JSON text is coerced later.
    fn decode(&mut self, value: &mut Value, schema: &Value, at: &At<'_>) {
        let Value::String(text) = &*value else { return };
        let text = text.trim();
        // It may be in a code fence.
        let is_container = matches!(
            (schema.get("type").and_then(Value::as_str), text.as_bytes().first()),
            (Some("array"), Some(b'[' | b'`')) | (Some("object"), Some(b'{' | b'`'))
        );
        if !is_container || at.is_root() || crate::json::parse::parse(text).is_ok() {
            return;
        }
        let is_array = schema["type"] == "array";
        let parsed = if is_array {
            let inside = text.find('[').map(|start| text[start..].trim_end_matches('`')).unwrap_or_default();
            super::read(&format!("{{\"value\": {inside}}}"))
        } else {
            super::read(text)
        };
        let Ok(ParsedArguments { mut arguments, repairs, is_truncated: false, has_duplicate_keys: false }) = parsed
        else {
            return;
        };
        let repaired = if is_array {
            match arguments.remove("value").filter(|_| arguments.is_empty()) {
                Some(items @ Value::Array(_)) => items,
                _ => return,
            }
        } else {
            Value::Object(arguments)
        };
        *value = repaired;
        let text = "JSON text in a string was read as what it says";
        self.repairs.push(Repair::new(RepairKind::Encoding, text).at(at));
        self.repairs.extend(repairs.into_iter().map(|repair| repair.at(at)));
    }
}

/// A name without case and separators.
fn fold(name: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ' | '.'));
    Cow::Owned(letters.flat_map(char::to_lowercase).collect())
}

fn shown(key: &str) -> String {
    let short: String = key.chars().take(64).collect();
    if short.len() < key.len() { format!("{short}…") } else { short }
}

/// Lists the differences between arguments before and after coercion.
#[must_use]
pub fn coercions<S: JsonLike + Clone>(before: &S, after: &S) -> Vec<Repair> {
    let mut repairs = Vec::new();
    list_coercions(&At::Root, before, after, MAX_DEPTH, &mut repairs);
    repairs
}

fn list_coercions<S: JsonLike + Clone>(at: &At<'_>, before: &S, after: &S, depth: usize, repairs: &mut Vec<Repair>) {
    if repairs.len() >= MAX_COERCIONS || depth == 0 {
        return;
    }
    match (before.kind(), after.kind()) {
        (ValueKind::Object, ValueKind::Object) => {
            before.every_entry(|key, entry| {
                if let Some(key) = key {
                    after.at_key(key, |other| list_coercions(&at.key(key), entry, other, depth - 1, repairs));
                }
                repairs.len() < MAX_COERCIONS
            });
        }
        (ValueKind::Array, ValueKind::Array) => {
            let mut items = Vec::with_capacity(after.length());
            after.every_item(|item| {
                items.push(item.clone());
                true
            });
            let mut index = 0;
            before.every_item(|item| {
                if let Some(other) = items.get(index) {
                    list_coercions(&at.index(index), item, other, depth - 1, repairs);
                }
                index += 1;
                repairs.len() < MAX_COERCIONS
            });
        }
        (one, other) if one == other => {}
        _ => repairs.push(coercion_at(at, before, after)),
    }
}

/// The repair of one argument whose value was coerced.
#[must_use]
pub fn coercion<S: JsonLike>(name: &str, before: &S, after: &S) -> Repair {
    coercion_at(&At::Root.key(name), before, after)
}

fn coercion_at<S: JsonLike>(at: &At<'_>, before: &S, after: &S) -> Repair {
    let (before, after) = (Found::of(before).to_string(), Found::of(after).to_string());
    Repair::of(RepairKind::Coerced, Change::ReadAs { before, after }).at(at)
}
