//! Every problem of a value that does not fit, each as deep in it as it can be placed.

use serde_json::{Map, Value};

use super::{
    coerce::escaped,
    judge::Judge,
    kinds::Kinds,
    names::no_such,
    phrase::{phrase, pointer},
    problem::{At, Expected, Found, Problem},
    subject::{Kind, Subject},
    work::Work,
};

/// How many problems are counted. Far more than are listed, and few enough to keep.
const COUNTED: usize = 10_000;

/// Collects problems; what fits and what does not is the judge's word.
pub(super) struct Explainer<'s, S: Subject> {
    pub(super) root: &'s Value,
    pub(super) judge: &'s Judge<S::Form>,
    pub(super) problems: Vec<Problem>,
    pub(super) work: Work,
}

impl<S: Subject> Explainer<'_, S> {
    /// Adds the problems of a value that is held to the schema at a JSON pointer.
    pub(super) fn explain(&mut self, at: &str, path: &At<'_>, value: &S, depth: usize) {
        if !self.has_room() || self.admits(at, value) {
            return;
        }
        // Names that are refused at the top have been told before.
        let before = if at.is_empty() { 0 } else { self.problems.len() };
        let root = self.root;
        if let (Some(Value::Object(schema)), true) = (root.pointer(at), depth < 128) {
            self.look_inside(at, schema, path, value, depth);
        }
        if self.problems.len() == before {
            let expected =
                root.pointer(at).map_or_else(|| "a value that fits the schema".into(), |at| phrase(root, at));
            self.add(path, expected, Found::of(value));
        }
    }

    /// Whether more problems are counted.
    pub(super) fn has_room(&self) -> bool {
        self.problems.len() < COUNTED && self.work.is_left()
    }

    /// The judge's word, or a yes when no more work may be done: then a problem is told further outside.
    fn admits(&self, at: &str, value: &S) -> bool {
        !self.work.take(1, value) || self.judge.admits(at, value)
    }

    /// Adds a problem.
    pub(super) fn add(&mut self, path: &At<'_>, expected: Expected, found: Found) {
        self.problems.push(Problem { path: path.into(), expected, found });
    }

    /// Adds what is wrong further inside. Adds nothing where the value as a whole is the problem.
    fn look_inside(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        if let Some(target) = pointer(schema) {
            self.explain(&target, path, value, depth + 1);
        }
        let kind = value.kind();
        let declared = schema.get("type").map_or(Kinds::ALL, declared_kinds);
        if !declared.has(kind) {
            return;
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for index in 0..parts.len() {
                self.explain(&format!("{at}/allOf/{index}"), path, value, depth + 1);
            }
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(union)
                && let Some(branch) = self.likely_branch(branches, &format!("{at}/{union}"), value)
            {
                self.explain(&branch, path, value, depth + 1);
            }
        }
        match kind {
            Kind::Array => self.items(at, schema, path, value, depth),
            Kind::Object => self.entries(at, schema, path, value, depth),
            _ => {}
        }
    }

    /// The only branch of a union that a container may have been meant for, by its kind and by its constant entries.
    fn likely_branch(&self, branches: &[Value], at: &str, value: &S) -> Option<String> {
        let kind = value.kind();
        if !matches!(kind, Kind::Array | Kind::Object) {
            return None;
        }
        let places: Vec<String> = (0..branches.len()).map(|index| format!("{at}/{index}")).collect();
        if places.iter().any(|place| self.admits(place, value)) {
            return None;
        }
        let of_kind = |place: &&String| self.kinds(place, 0).has(kind);
        let places: Vec<&String> = places.iter().filter(of_kind).collect();
        if let [place] = places[..] {
            return Some(place.clone());
        }
        let mut meant = places.into_iter().filter(|place| self.carries_constants(place, value));
        let place = meant.next()?;
        meant.next().is_none().then(|| place.clone())
    }

    /// The kinds that a schema may admit, as far as its type tells.
    fn kinds(&self, at: &str, depth: usize) -> Kinds {
        match self.root.pointer(at) {
            Some(Value::Object(schema)) => match (schema.get("type"), pointer(schema)) {
                (Some(declared), _) => declared_kinds(declared),
                (None, Some(target)) if depth < 8 => self.kinds(&target, depth + 1),
                _ => Kinds::ALL,
            },
            Some(Value::Bool(false)) => Kinds::NONE,
            _ => Kinds::ALL,
        }
    }

    /// Whether the entries that a schema fixes to one value have that value, and there is such an entry.
    fn carries_constants(&self, at: &str, value: &S) -> bool {
        let Some(Value::Object(schema)) = self.root.pointer(at) else {
            return false;
        };
        if let Some(target) = pointer(schema) {
            return target != at && self.carries_constants_of(&target, value);
        }
        self.carries_constants_of(at, value)
    }

    fn carries_constants_of(&self, at: &str, value: &S) -> bool {
        let properties = self.root.pointer(at).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let mut carries = false;
        for (name, property) in properties.into_iter().flatten() {
            if property.get("const").is_none() {
                continue;
            }
            let place = format!("{at}/properties/{}", escaped(name));
            match value.at_key(name, |entry| self.admits(&place, entry)) {
                Some(true) => carries = true,
                _ => return false,
            }
        }
        carries
    }

    fn items(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        let old = schema.get("items").is_some_and(Value::is_array);
        let (first, rest) = if old { ("items", "additionalItems") } else { ("prefixItems", "items") };
        let places = schema.get(first).and_then(Value::as_array).map_or(0, Vec::len);
        let rest = schema.contains_key(rest).then(|| format!("{at}/{rest}"));
        let mut index = 0;
        value.every_item(|item| {
            let place = if index < places { Some(format!("{at}/{first}/{index}")) } else { rest.clone() };
            if let Some(place) = place {
                // The judge's word first: a path for each of many good items would be for nothing.
                if !self.admits(&place, item) {
                    self.explain(&place, &path.index(index), item, depth + 1);
                }
            }
            index += 1;
            self.has_room()
        });
    }

    fn entries(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        self.missing(at, schema, path, value);
        let patterns = schema.contains_key("patternProperties");
        let rest = if patterns { None } else { schema.get("additionalProperties") };
        value.every_entry(|key, entry| {
            let Some(key) = key else {
                self.add(path, "keys that are plain strings".into(), Found::Fixed("another key"));
                return self.has_room();
            };
            if properties.is_some_and(|properties| properties.contains_key(key)) {
                self.explain(&format!("{at}/properties/{}", escaped(key)), &path.key(key), entry, depth + 1);
            } else if rest == Some(&Value::Bool(false)) {
                if at.is_empty() {
                    return true;
                }
                let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                self.add(&path.key(key), no_such("key", key, &known), Found::of(entry));
            } else if rest.is_some() {
                self.explain(&format!("{at}/additionalProperties"), &path.key(key), entry, depth + 1);
            }
            self.has_room()
        });
    }

    /// Adds the entries that are required and not there.
    pub(super) fn missing(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if self.has_room() && value.at_key(name, |_| ()).is_none() {
                let place = format!("{at}/properties/{}", escaped(name));
                let expected = self.root.pointer(&place).map(|property| phrase(self.root, property));
                let expected = expected.unwrap_or_else(|| "a value".into());
                self.add(&path.key(name), expected, Found::NOTHING);
            }
        }
    }
}

fn declared_kinds(declared: &Value) -> Kinds {
    let kinds = |name: &Value| name.as_str().and_then(Kinds::named).unwrap_or(Kinds::ALL);
    match declared {
        Value::Array(names) => names.iter().map(kinds).fold(Kinds::NONE, Kinds::or),
        declared => kinds(declared),
    }
}
