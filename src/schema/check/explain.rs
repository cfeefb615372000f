//! The problems of a value that does not fit, each placed as deep in the value as possible.

use serde_json::{Map, Value};

use super::fast::KindSet;
use super::format;
use super::path::At;
use super::problem::{Expected, Found, Problem, UnknownName, clean, quoted};
use super::validator::{Budget, SchemaValidator};
use super::value::{JsonLike, ValueKind};
use crate::near::is_near;
use crate::schema::view;

/// The most problems that are collected. Far more than are listed, and few enough to keep.
const COUNTED: usize = 10_000;

/// Collects problems; the validator decides what fits.
pub(super) struct Explainer<'s, S: JsonLike> {
    pub(super) root: &'s Value,
    pub(super) validator: &'s SchemaValidator<S::Form>,
    pub(super) problems: Vec<Problem>,
    pub(super) budget: Budget,
}

impl<S: JsonLike> Explainer<'_, S> {
    /// Adds the problems of a value with the schema at a JSON pointer.
    pub(super) fn explain(&mut self, at: &str, path: &At<'_>, value: &S, depth: usize) {
        if !self.has_room() || self.fits(at, value) {
            return;
        }
        // Names that are refused at the top have been reported before.
        let before = if at.is_empty() { 0 } else { self.problems.len() };
        let root = self.root;
        if let (Some(Value::Object(schema)), true) = (root.pointer(at), depth < 128) {
            self.explain_parts(at, schema, path, value, depth);
        }
        if self.problems.len() == before {
            let expected =
                root.pointer(at).map_or_else(|| "a value that fits the schema".into(), |at| phrase(root, at));
            self.add(path, expected, Found::of(value));
        }
    }

    /// True if more problems are collected.
    pub(super) fn has_room(&self) -> bool {
        self.problems.len() < COUNTED && self.budget.is_left()
    }

    /// True if the value fits, or if the budget is used up: then a problem is reported further outside.
    fn fits(&self, at: &str, value: &S) -> bool {
        !self.budget.take(1, value) || self.validator.is_valid_at(at, value)
    }

    /// Adds a problem.
    pub(super) fn add(&mut self, path: &At<'_>, expected: Expected, found: Found) {
        self.problems.push(Problem { path: path.into(), expected, found });
    }

    /// Adds the problems further inside. Adds nothing if the value as a whole is the problem.
    fn explain_parts(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        if let Some(target) = view::pointer(schema) {
            self.explain(&target, path, value, depth + 1);
        }
        let kind = value.kind();
        let declared = schema.get("type").map_or(KindSet::ALL, declared_kinds);
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
            ValueKind::Array => self.items(at, schema, path, value, depth),
            ValueKind::Object => self.entries(at, schema, path, value, depth),
            _ => {}
        }
    }

    /// The only branch of a union that a container may have been meant for, by its kind and by its constant entries.
    fn likely_branch(&self, branches: &[Value], at: &str, value: &S) -> Option<String> {
        let kind = value.kind();
        if !matches!(kind, ValueKind::Array | ValueKind::Object) {
            return None;
        }
        let places: Vec<String> = (0..branches.len()).map(|index| format!("{at}/{index}")).collect();
        if places.iter().any(|place| self.fits(place, value)) {
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

    /// The kinds that a schema may accept, as far as its `type` says.
    fn kinds(&self, at: &str, depth: usize) -> KindSet {
        match self.root.pointer(at) {
            Some(Value::Object(schema)) => match (schema.get("type"), view::pointer(schema)) {
                (Some(declared), _) => declared_kinds(declared),
                (None, Some(target)) if depth < 8 => self.kinds(&target, depth + 1),
                _ => KindSet::ALL,
            },
            Some(Value::Bool(false)) => KindSet::NONE,
            _ => KindSet::ALL,
        }
    }

    /// True if there are entries that the schema fixes to one value, and all of them have that value.
    fn carries_constants(&self, at: &str, value: &S) -> bool {
        let Some(Value::Object(schema)) = self.root.pointer(at) else {
            return false;
        };
        if let Some(target) = view::pointer(schema) {
            return target != at && self.carries_constants_of(&target, value);
        }
        self.carries_constants_of(at, value)
    }

    fn carries_constants_of(&self, at: &str, value: &S) -> bool {
        let properties = self.root.pointer(at).and_then(Value::as_object).and_then(view::properties);
        let mut carries = false;
        for (name, property) in properties.into_iter().flatten() {
            if property.get("const").is_none() {
                continue;
            }
            let place = format!("{at}/properties/{}", view::escaped(name));
            match value.at_key(name, |entry| self.fits(&place, entry)) {
                Some(true) => carries = true,
                _ => return false,
            }
        }
        carries
    }

    fn items(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        let (first, rest) = view::item_keywords(schema);
        let places = schema.get(first).and_then(Value::as_array).map_or(0, Vec::len);
        let rest = schema.contains_key(rest).then(|| format!("{at}/{rest}"));
        let mut index = 0;
        value.every_item(|item| {
            let place = if index < places { Some(format!("{at}/{first}/{index}")) } else { rest.clone() };
            if let Some(place) = place {
                // Validated first: building a path for each of many valid items would be wasted.
                if !self.fits(&place, item) {
                    self.explain(&place, &path.index(index), item, depth + 1);
                }
            }
            index += 1;
            self.has_room()
        });
    }

    fn entries(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S, depth: usize) {
        let properties = view::properties(schema);
        self.missing(at, schema, path, value);
        let patterns = schema.contains_key("patternProperties");
        let rest = if patterns { None } else { schema.get("additionalProperties") };
        value.every_entry(|key, entry| {
            let Some(key) = key else {
                self.add(path, "keys that are plain strings".into(), Found::Fixed("another key"));
                return self.has_room();
            };
            if properties.is_some_and(|properties| properties.contains_key(key)) {
                self.explain(&format!("{at}/properties/{}", view::escaped(key)), &path.key(key), entry, depth + 1);
            } else if rest == Some(&Value::Bool(false)) {
                if at.is_empty() {
                    return true;
                }
                let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                self.add(&path.key(key), unknown_name("key", key, &known), Found::of(entry));
            } else if rest.is_some() {
                self.explain(&format!("{at}/additionalProperties"), &path.key(key), entry, depth + 1);
            }
            self.has_room()
        });
    }

    /// Adds the entries that are required and missing.
    fn missing(&mut self, at: &str, schema: &Map<String, Value>, path: &At<'_>, value: &S) {
        for name in view::required(schema) {
            if self.has_room() && value.at_key(name, |_| ()).is_none() {
                let place = format!("{at}/properties/{}", view::escaped(name));
                let expected = self.root.pointer(&place).map(|property| phrase(self.root, property));
                let expected = expected.unwrap_or_else(|| "a value".into());
                self.add(&path.key(name), expected, Found::NOTHING);
            }
        }
    }
}

/// The kinds of a `type`; those of an unknown name are all.
fn declared_kinds(declared: &Value) -> KindSet {
    let kinds = |name: &Value| name.as_str().and_then(KindSet::named).unwrap_or(KindSet::ALL);
    match declared {
        Value::Array(names) => names.iter().map(kinds).fold(KindSet::NONE, KindSet::or),
        declared => kinds(declared),
    }
}

/// The most members of an enumeration that are listed.
const LISTED_MEMBERS: usize = 20;
/// The most branches of a union that are listed, and the depth to which unions and references are followed: together they bound the work.
const BRANCHES: usize = 6;
const PHRASE_DEPTH: usize = 5;
/// The most required keys of an object that are listed.
const KEYS: usize = 8;
/// The longest phrase, in characters.
const LENGTH: usize = 400;

/// Describes the values that a schema of the document accepts: `an integer >= 1`, `a string or null`.
fn phrase(root: &Value, schema: &Value) -> Expected {
    clean(&describe(root, schema, 0), LENGTH).into_owned().into()
}

fn describe(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = match schema {
        Value::Bool(false) => return "nothing".to_owned(),
        Value::Object(schema) if depth < PHRASE_DEPTH => schema,
        _ => return "any value".to_owned(),
    };
    if let Some(member) = schema.get("const") {
        return scalar(member);
    }
    if let Some(Value::Array(members)) = schema.get("enum") {
        return one_of(members);
    }
    if let Some(target) = view::target(root, schema) {
        return describe(root, target, depth + 1);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(union) {
            return joined(branches.iter().map(|branch| describe(root, branch, depth + 1)), " or ");
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => typed(root, schema, name, depth),
        Some(Value::Array(names)) => {
            joined(names.iter().filter_map(Value::as_str).map(|name| typed(root, schema, name, depth)), " or ")
        }
        _ => match schema.get("allOf") {
            Some(Value::Array(parts)) => joined(parts.iter().map(|part| describe(root, part, depth + 1)), " and "),
            _ if schema.contains_key("not") => "a value that the schema does not rule out".to_owned(),
            _ => untyped(root, schema, depth),
        },
    }
}

/// Describes a schema without `type` by the first keyword that applies to one type only.
fn untyped(root: &Value, schema: &Map<String, Value>, depth: usize) -> String {
    let has_any = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if has_any(&["properties", "required", "additionalProperties", "patternProperties"]) {
        typed(root, schema, "object", depth)
    } else if has_any(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
        typed(root, schema, "array", depth)
    } else if has_any(&["pattern", "minLength", "maxLength", "format"]) {
        typed(root, schema, "string", depth)
    } else if has_any(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        typed(root, schema, "number", depth)
    } else if schema.keys().any(|key| !matches!(key.as_str(), "title" | "description" | "default")) {
        "a value that fits the schema".to_owned()
    } else {
        "any value".to_owned()
    }
}

fn typed(root: &Value, schema: &Map<String, Value>, name: &str, depth: usize) -> String {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_number).map(ToString::to_string);
    match name {
        "null" => "null".to_owned(),
        "boolean" => "a boolean".to_owned(),
        "object" => {
            let object = sized(schema, "an object", "minProperties", "maxProperties", "entries", "entry");
            let names: Vec<_> = view::required(schema).take(KEYS).map(|name| clean(name, 40)).collect();
            if names.is_empty() { object } else { format!("{object} with {}", names.join(", ")) }
        }
        "array" => {
            let items = schema.get("items").map(|items| plural(root, items, depth));
            let array = items.flatten().map_or_else(|| "an array".to_owned(), |items| format!("an array of {items}"));
            let array = sized(schema, &array, "minItems", "maxItems", "items", "item");
            if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
                format!("{array}, all different")
            } else {
                array
            }
        }
        "string" => {
            let format = schema.get("format").and_then(Value::as_str).and_then(format::phrase);
            let noun = format.unwrap_or("a string");
            let text = match (schema.get("minLength").and_then(Value::as_u64), schema.get("maxLength")) {
                (Some(1), None) => format.unwrap_or("a non-empty string").to_owned(),
                _ => sized(schema, noun, "minLength", "maxLength", "characters", "character"),
            };
            match schema.get("pattern").and_then(Value::as_str) {
                Some(pattern) => format!("{text} matching {}", quoted(pattern, 80)),
                None => text,
            }
        }
        _ => {
            let noun = if name == "integer" { "an integer" } else { "a number" };
            let bounds = [("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")];
            let bounds = bounds.iter().filter_map(|(keyword, sign)| Some(format!("{sign} {}", number(keyword)?)));
            let bounds: Vec<String> = bounds.collect();
            let mut text = noun.to_owned();
            if !bounds.is_empty() {
                text = format!("{text} {}", bounds.join(" and "));
            }
            match number("multipleOf") {
                Some(step) => format!("{text} that is a multiple of {step}"),
                None => text,
            }
        }
    }
}

fn sized(schema: &Map<String, Value>, noun: &str, least: &str, most: &str, many: &str, one: &str) -> String {
    let unit = |count: u64| if count == 1 { one } else { many };
    let read = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    match (read(least), read(most)) {
        (None | Some(0), None) => noun.to_owned(),
        (Some(least), None) => format!("{noun} of at least {least} {}", unit(least)),
        (None | Some(0), Some(most)) => format!("{noun} of at most {most} {}", unit(most)),
        (Some(least), Some(most)) if least == most => format!("{noun} of {least} {}", unit(least)),
        (Some(least), Some(most)) => format!("{noun} of {least} to {most} {many}"),
    }
}

fn plural(root: &Value, items: &Value, depth: usize) -> Option<String> {
    let schema = items.as_object()?;
    if let Some(target) = view::target(root, schema) {
        return if depth < PHRASE_DEPTH { plural(root, target, depth + 1) } else { None };
    }
    let name = match schema.get("type")?.as_str()? {
        "string" => "strings",
        "integer" => "integers",
        "number" => "numbers",
        "boolean" => "booleans",
        "array" => "arrays",
        "object" => "objects",
        _ => return None,
    };
    Some(name.to_owned())
}

fn one_of(members: &[Value]) -> String {
    if let [member] = members {
        return scalar(member);
    }
    let mut named: Vec<String> = members.iter().take(LISTED_MEMBERS).map(scalar).collect();
    if members.len() > LISTED_MEMBERS {
        named.push(format!("… ({} more)", members.len() - LISTED_MEMBERS));
    }
    format!("one of {}", named.join(", "))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text, 40),
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => clean(number.as_str(), 40).into_owned(),
        Value::Array(_) => "a certain array".to_owned(),
        Value::Object(_) => "a certain object".to_owned(),
    }
}

fn joined(phrases: impl Iterator<Item = String>, word: &str) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for phrase in phrases.take(BRANCHES) {
        if !distinct.contains(&phrase) {
            distinct.push(phrase);
        }
    }
    if distinct.is_empty() { "any value".to_owned() } else { distinct.join(word) }
}

/// The most known names that are listed.
const KNOWN: usize = 10;

/// The known names that are expected in place of an unknown one.
pub(in crate::schema) fn unknown_name(noun: &'static str, key: &str, known: &[&str]) -> Expected {
    let shown = |name: &&str| clean(name, 64).into_owned();
    let near = known.iter().find(|name| is_near(key, name)).map(shown);
    let names = known.iter().take(KNOWN).map(shown).collect();
    let more = known.len().saturating_sub(KNOWN);
    Expected::Name(Box::new(UnknownName { noun, near, known: names, more }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_read_as_short_phrases() {
        let cases = [
            (json!({"type": "integer"}), "an integer"),
            (json!({"type": "integer", "minimum": 1}), "an integer >= 1"),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "a number > 0 and <= 1.5"),
            (json!({"enum": ["a", "b", 3, null]}), "one of \"a\", \"b\", 3, null"),
            (json!({"const": "only", "type": "string"}), "\"only\""),
            (json!({"type": "array", "items": {"type": "string"}}), "an array of strings"),
            (json!({"type": "array", "minItems": 2, "maxItems": 2}), "an array of 2 items"),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "a string or null"),
            (json!({"type": ["string", "null"]}), "a string or null"),
            (json!({"type": "string", "pattern": "^a+$"}), "a string matching \"^a+$\""),
            (json!({"type": "string", "minLength": 1}), "a non-empty string"),
            (json!({"type": "string", "maxLength": 1}), "a string of at most 1 character"),
            (json!({"type": "object", "required": ["a", "b"]}), "an object with a, b"),
            (json!({}), "any value"),
            (json!(false), "nothing"),
        ];
        for (schema, text) in cases {
            assert_eq!(phrase(&json!({}), &schema).to_string(), text);
        }
    }

    #[test]
    fn references_are_followed_and_end() {
        let root = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}, "c": {"$ref": "#/$defs/c"}}});

        assert_eq!(phrase(&root, &json!({"$ref": "#/$defs/a"})).to_string(), "a string");
        assert_eq!(phrase(&root, &json!({"$ref": "#/$defs/c"})).to_string(), "any value");
    }

    #[test]
    fn phrases_are_bounded() {
        let members: Vec<String> = (0..1000).map(|index| format!("{index}{}", "x".repeat(1000))).collect();

        assert!(phrase(&json!({}), &json!({"enum": members})).to_string().chars().count() <= LENGTH + 1);
    }

    #[test]
    fn a_typing_error_is_recognised() {
        assert_eq!(
            unknown_name("argument", "querry", &["limit", "query"]).to_string(),
            "unknown argument (did you mean query? expected one of: limit, query)"
        );
        assert_eq!(
            unknown_name("argument", "maxResults", &["max_results"]).to_string(),
            "unknown argument (did you mean max_results? expected one of: max_results)"
        );
        assert_eq!(unknown_name("key", "foo", &["a", "b"]).to_string(), "unknown key (expected one of: a, b)");
        assert_eq!(unknown_name("key", "foo", &[]).to_string(), "unknown key (no keys are expected)");
    }

    #[test]
    fn only_ten_names_are_listed() {
        let names: Vec<String> = (0..200).map(|index| format!("parameter{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        let text = unknown_name("argument", "x", &names).to_string();

        assert!(text.ends_with("parameter9, … (190 more))"), "{text}");
    }
}
