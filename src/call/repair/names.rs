//! Arguments under names that are almost those of the parameters, and JSON text where a list or an object belongs.
//!
//! Only what the model was shown is ever written: a name that it may not use stays as it is, and is refused.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::call::{Repair, RepairKind};
use crate::schema::check::At;

/// How deep values are followed.
const DEPTH: usize = 128;
/// How many repairs are listed; what would need more is not mended.
const MOST: usize = 200;

/// What is known about the names of a tool's parameters beside its schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a> {
    /// Other names of parameters, each with the one that it stands for.
    pub aliases: &'a [(Box<str>, Box<str>)],
    /// Names that do not exist for the model.
    pub hidden: &'a [Box<str>],
}

/// Mends arguments that do not fit a tool's parameters; `None` if there is nothing to mend.
#[must_use]
pub fn mend_names(arguments: &Value, parameters: &Value, names: Names<'_>) -> Option<(Value, Vec<Repair>)> {
    let mut mending = Mending { root: parameters, repairs: Vec::new() };
    let mut value = arguments.clone();
    if let Value::Object(entries) = &mut value {
        mending.rename(entries, parameters, &At::Root, names);
    }
    mending.walk(&mut value, parameters, &At::Root, DEPTH);
    let count = mending.repairs.len();
    (count > 0 && count <= MOST).then_some((value, mending.repairs))
}

struct Mending<'a> {
    root: &'a Value,
    repairs: Vec<Repair>,
}

impl<'a> Mending<'a> {
    /// Follows a value and its schema; the names of the top are mended already.
    fn walk(&mut self, value: &mut Value, schema: &'a Value, at: &At<'_>, depth: usize) {
        if depth == 0 || self.repairs.len() > MOST {
            return;
        }
        let schema = self.resolved(schema);
        self.decode(value, schema, at);
        match value {
            Value::Object(entries) => {
                if !at.is_root() {
                    self.rename(entries, schema, at, Names::default());
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

    /// The schema behind references, and behind a choice between nothing and something.
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

    /// Gives entries the names that the schema has for them.
    fn rename(&mut self, entries: &mut Map<String, Value>, schema: &Value, at: &At<'_>, names: Names<'_>) {
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
        // Two that want the same name, or one whose place is taken: nobody knows which is meant.
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

    /// Reads JSON text where only a list or an object may be, if it has to be mended: what is strict is coerced later.
    fn decode(&mut self, value: &mut Value, schema: &Value, at: &At<'_>) {
        let Value::String(text) = &*value else { return };
        let text = text.trim();
        // A fence around it hides what it begins with.
        let is_container = matches!(
            (schema.get("type").and_then(Value::as_str), text.as_bytes().first()),
            (Some("array"), Some(b'[' | b'`')) | (Some("object"), Some(b'{' | b'`'))
        );
        if !is_container || at.is_root() || crate::json::parse::parse(text).is_ok() {
            return;
        }
        let is_array = schema["type"] == "array";
        let reading = if is_array {
            let inside = text.find('[').map(|start| text[start..].trim_end_matches('`')).unwrap_or_default();
            super::read(&format!("{{\"value\": {inside}}}"))
        } else {
            super::read(text)
        };
        let Ok(reading) = reading else { return };
        if reading.is_truncated || reading.has_duplicate_keys {
            return;
        }
        let mut arguments = reading.arguments;
        let mended = if is_array {
            match arguments.remove("value").filter(|_| arguments.is_empty()) {
                Some(items @ Value::Array(_)) => items,
                _ => return,
            }
        } else {
            Value::Object(arguments)
        };
        *value = mended;
        let text = "JSON text in a string was read as what it says";
        self.repairs.push(Repair::new(RepairKind::Encoding, text).at(at));
        self.repairs.extend(reading.repairs.into_iter().map(|repair| repair.at(at)));
    }
}

/// A name without what people write differently: case and separators.
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
