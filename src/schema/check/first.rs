//! The first problem of a value, in the words of ajv, which declared tools answer with: `params/n must be integer`.
//!
//! A schema is visited in the order of ajv 8 for draft 7: the keywords of any value, of numbers, of strings, of arrays, of
//! objects. The first keyword that fails ends the visit. A union that fails reports the problems of its branches, then its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::{mem, ptr};

use serde_json::{Map, Value, json};

use super::format::FormatRules;
use super::validator::{Budget, SchemaValidator, options};
use crate::schema::view;

/// The depth limit of schemas and values.
const DEPTH: usize = 128;
/// The most problems of the branches of unions.
const MOST: usize = 50;

/// The keywords for values of one type, in the order in which they are tried.
const ANY: [&str; 8] = ["$ref", "const", "enum", "not", "anyOf", "oneOf", "allOf", "if"];
const NUMBER: [&str; 6] = ["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "format"];
const STRING: [&str; 4] = ["maxLength", "minLength", "pattern", "format"];
const ARRAY: [&str; 7] = ["maxItems", "minItems", "prefixItems", "additionalItems", "items", "contains", "uniqueItems"];
const OBJECT: [&str; 10] = [
    "maxProperties",
    "minProperties",
    "required",
    "propertyNames",
    "additionalProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "properties",
    "patternProperties",
];

/// The groups of keywords, each with the type that it is for.
const GROUPS: [(Option<&str>, &[&str]); 5] = [
    (None, &ANY),
    (Some("number"), &NUMBER),
    (Some("string"), &STRING),
    (Some("array"), &ARRAY),
    (Some("object"), &OBJECT),
];

/// Describes why a value does not fit the schema; `None` if it does. `name` stands for the value in the text.
pub(super) fn first_problem(
    validator: &SchemaValidator<jsonschema::json::SerdeJson>,
    formats: FormatRules,
    value: &Value,
    name: &str,
) -> Option<String> {
    if !matches!(value, Value::Object(_) | Value::Array(_)) {
        return Some(format!("Value of {name} must be an object"));
    }
    if validator.is_valid(value) {
        return None;
    }
    let mut visit = Visit {
        root: validator.root(),
        formats,
        problems: Vec::new(),
        first: 0,
        is_composite: false,
        is_over: false,
        references: HashMap::new(),
        budget: Budget::for_value(value),
    };
    visit.fits(validator.root(), value, &Place::Root, 0);
    // A keyword that is not listed here.
    let problems = if visit.problems.is_empty() { vec![" must match its schema".to_owned()] } else { visit.problems };
    Some(problems.into_iter().map(|problem| format!("{name}{problem}")).collect::<Vec<_>>().join(", "))
}

/// A place in the value.
enum Place<'a> {
    Root,
    Inside(&'a Place<'a>, Cow<'a, str>),
}

impl<'a> Place<'a> {
    fn key(&'a self, key: &'a str) -> Place<'a> {
        Place::Inside(self, key.into())
    }

    fn index(&'a self, index: usize) -> Place<'a> {
        Place::Inside(self, index.to_string().into())
    }

    /// Writes the JSON pointer.
    fn write(&self, text: &mut String) {
        if let Place::Inside(parent, key) = self {
            parent.write(text);
            text.push('/');
            text.push_str(&key.replace('~', "~0").replace('/', "~1"));
        }
    }
}

struct Visit<'s> {
    root: &'s Value,
    formats: FormatRules,
    /// The problems, each with its place.
    problems: Vec<String>,
    /// The first problem of the function that ajv would run: the whole schema, or a reference that it does not inline.
    first: usize,
    /// True in a branch of a union and the like, where problems are collected.
    is_composite: bool,
    /// True once a problem has ended the function: outside of a composite, the first one does.
    is_over: bool,
    /// The targets of references: true for those that have references themselves.
    references: HashMap<*const Value, bool>,
    budget: Budget,
}

impl<'s> Visit<'s> {
    /// Reports a problem, outside of a composite as the only one.
    fn report(&mut self, place: &Place<'_>, message: &str) -> bool {
        if !self.is_over && !self.is_composite {
            self.problems.truncate(self.first);
        }
        self.report_with_parts(place, message)
    }

    /// Reports a problem behind those of its parts.
    fn report_with_parts(&mut self, place: &Place<'_>, message: &str) -> bool {
        if !self.is_over && self.problems.len() < MOST {
            let mut text = String::new();
            place.write(&mut text);
            text.push(' ');
            text.push_str(message);
            self.problems.push(text);
        }
        self.is_over |= !self.is_composite;
        false
    }

    /// True if a value fits a part whose problems are collected.
    fn fits_part(&mut self, schema: &'s Value, value: &Value, place: &Place<'_>, depth: usize) -> bool {
        let outer = mem::replace(&mut self.is_composite, true);
        let fits = self.fits(schema, value, place, depth + 1);
        self.is_composite = outer;
        fits
    }

    /// True if a value fits the target of a reference. Only one that has no references itself is inlined by ajv.
    fn fits_target(&mut self, target: &'s Value, value: &Value, place: &Place<'_>, depth: usize) -> bool {
        if !*self.references.entry(ptr::from_ref(target)).or_insert_with(|| has_reference(target)) {
            return self.fits(target, value, place, depth + 1);
        }
        let outer = (self.first, self.is_composite, self.is_over);
        (self.first, self.is_composite, self.is_over) = (self.problems.len(), false, false);
        let fits = self.fits(target, value, place, depth + 1);
        (self.first, self.is_composite, self.is_over) = outer;
        fits
    }

    /// True if a value fits; otherwise its first problem is reported.
    fn fits(&mut self, schema: &'s Value, value: &Value, place: &Place<'_>, depth: usize) -> bool {
        if depth > DEPTH || !self.budget.take(1, value) {
            return true;
        }
        let schema = match schema {
            Value::Bool(false) => return self.report(place, "boolean schema is false"),
            Value::Object(schema) => schema,
            _ => return true,
        };
        let types = types_of(schema);
        // A single type with keywords of its own is checked with them, any other one first.
        let late = match &*types {
            [only] => GROUPS
                .iter()
                .find(|(kind, keywords)| *kind == Some(*only) && keywords.iter().any(|word| schema.contains_key(*word)))
                .map(|_| *only),
            _ => None,
        };
        if late.is_none() && !has_type(&types, value) {
            self.wrong_type(schema, place);
            if !self.is_over {
                self.keywords(schema, &ANY, value, place, depth);
            }
            return false;
        }
        for (kind, keywords) in GROUPS {
            if kind.is_none_or(|kind| is_type(kind, value)) {
                if !self.keywords(schema, keywords, value, place, depth) {
                    return false;
                }
            } else if kind == late {
                return self.wrong_type(schema, place);
            }
        }
        true
    }

    /// True if a value fits those of the keywords that the schema has.
    fn keywords(
        &mut self,
        schema: &'s Map<String, Value>,
        keywords: &[&str],
        value: &Value,
        place: &Place<'_>,
        depth: usize,
    ) -> bool {
        let mut rules = keywords.iter().filter_map(|keyword| Some((*keyword, schema.get(*keyword)?)));
        rules.all(|(keyword, rule)| self.keyword(schema, keyword, rule, value, place, depth))
    }

    fn wrong_type(&mut self, schema: &Map<String, Value>, place: &Place<'_>) -> bool {
        self.report(place, &format!("must be {}", types_of(schema).join(",")))
    }

    fn keyword(
        &mut self,
        schema: &'s Map<String, Value>,
        keyword: &str,
        rule: &'s Value,
        value: &Value,
        place: &Place<'_>,
        depth: usize,
    ) -> bool {
        match (keyword, rule, value) {
            ("$ref", _, _) => {
                let target = view::pointer(schema).and_then(|pointer| self.root.pointer(&pointer));
                target.is_none_or(|target| self.fits_target(target, value, place, depth))
            }
            ("not", _, _) => !self.silently(rule, value, depth) || self.report(place, "must NOT be valid"),
            ("anyOf", Value::Array(branches), _) => {
                let before = self.problems.len();
                if branches.iter().any(|branch| self.fits_part(branch, value, place, depth)) {
                    self.problems.truncate(before);
                    return true;
                }
                self.report_with_parts(place, "must match a schema in anyOf")
            }
            ("oneOf", Value::Array(branches), _) => {
                let before = self.problems.len();
                let mut fitting = branches.iter().filter(|branch| self.fits_part(branch, value, place, depth));
                let count = fitting.by_ref().take(2).count();
                if count == 1 {
                    self.problems.truncate(before);
                    return true;
                }
                self.report_with_parts(place, "must match exactly one schema in oneOf")
            }
            ("allOf", Value::Array(parts), _) => parts.iter().all(|part| self.fits(part, value, place, depth + 1)),
            ("if", _, _) => {
                let branch = if self.silently(rule, value, depth) { "then" } else { "else" };
                schema.get(branch).is_none_or(|part| self.fits(part, value, place, depth + 1))
                    || self.report_with_parts(place, &format!("must match \"{branch}\" schema"))
            }
            ("prefixItems" | "items", Value::Array(rules), Value::Array(items)) => {
                let mut pairs = rules.iter().zip(items).enumerate();
                pairs.all(|(at, (rule, item))| self.fits(rule, item, &place.index(at), depth + 1))
            }
            ("items", _, Value::Array(items)) => {
                let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                self.rest_fits(rule, items, first, place, depth)
            }
            ("additionalItems", _, Value::Array(items)) => {
                let first = schema.get("items").and_then(Value::as_array).map(Vec::len);
                first.is_none_or(|first| self.rest_fits(rule, items, first, place, depth))
            }
            ("contains", _, Value::Array(items)) => self.contains(schema, rule, items, place, depth),
            ("required", Value::Array(names), Value::Object(entries)) => {
                let names = names.iter().filter_map(Value::as_str);
                match names.into_iter().find(|name| !entries.contains_key(*name)) {
                    Some(name) => self.report(place, &format!("must have required property '{name}'")),
                    None => true,
                }
            }
            ("propertyNames", _, Value::Object(entries)) => entries.keys().all(|key| {
                self.fits_part(rule, &Value::from(key.as_str()), place, depth)
                    || self.report_with_parts(place, "property name must be valid")
            }),
            ("additionalProperties", _, Value::Object(entries)) => entries.iter().all(|(key, entry)| {
                if self.is_listed(schema, key) {
                    true
                } else if *rule == Value::Bool(false) {
                    self.report(place, "must NOT have additional properties")
                } else {
                    self.fits(rule, entry, &place.key(key), depth + 1)
                }
            }),
            (
                "dependencies" | "dependentRequired" | "dependentSchemas",
                Value::Object(rules),
                Value::Object(entries),
            ) => {
                let mut rules = rules.iter().filter(|(key, _)| entries.contains_key(*key));
                rules.all(|(key, rule)| match rule {
                    Value::Array(names) => self.depends(key, names, entries, place),
                    _ => self.fits(rule, value, place, depth + 1),
                })
            }
            ("properties", Value::Object(rules), Value::Object(entries)) => {
                let mut known = rules.iter().filter_map(|(key, rule)| Some((key, rule, entries.get(key)?)));
                known.all(|(key, rule, entry)| self.fits(rule, entry, &place.key(key), depth + 1))
            }
            ("patternProperties", Value::Object(rules), Value::Object(entries)) => {
                rules.iter().all(|(pattern, rule)| {
                    let matching =
                        entries.iter().filter(|(key, _)| self.holds("pattern", &json!(pattern), &json!(key)));
                    let matching: Vec<_> = matching.collect();
                    matching.into_iter().all(|(key, entry)| self.fits(rule, entry, &place.key(key), depth + 1))
                })
            }
            ("uniqueItems", _, Value::Array(items)) if *rule == Value::Bool(true) => {
                let is_plain = schema.get("items").and_then(Value::as_object).map(types_of).is_some_and(|types| {
                    !types.is_empty() && !types.iter().any(|kind| matches!(*kind, "object" | "array"))
                });
                self.holds(keyword, rule, value) || self.duplicates(items, is_plain, place)
            }
            _ => {
                let message = message(keyword, rule);
                message.is_none_or(|message| self.holds(keyword, rule, value) || self.report(place, &message))
            }
        }
    }

    /// Checks the items behind the first ones.
    fn rest_fits(&mut self, rule: &'s Value, items: &[Value], first: usize, place: &Place<'_>, depth: usize) -> bool {
        if *rule == Value::Bool(false) && 0 < first && first < items.len() {
            return self.report(place, &format!("must NOT have more than {first} items"));
        }
        let mut rest = items.iter().enumerate().skip(first);
        rest.all(|(at, item)| self.fits(rule, item, &place.index(at), depth + 1))
    }

    /// True if a value fits, without a report.
    fn silently(&mut self, schema: &'s Value, value: &Value, depth: usize) -> bool {
        let before = self.problems.len();
        let fits = self.fits_part(schema, value, &Place::Root, depth);
        self.problems.truncate(before);
        fits
    }

    /// True if a value fits a keyword that has no parts.
    fn holds(&self, keyword: &str, rule: &Value, value: &Value) -> bool {
        let schema = json!({ keyword: rule });
        let validator = options::<jsonschema::json::SerdeJson>(self.formats).build(&schema);
        validator.is_ok_and(|validator| validator.is_valid(value))
    }

    fn is_listed(&self, schema: &Map<String, Value>, key: &str) -> bool {
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        schema.get("properties").is_some_and(|known| known.get(key).is_some())
            || patterns.into_iter().flatten().any(|(pattern, _)| self.holds("pattern", &json!(pattern), &json!(key)))
    }

    fn contains(
        &mut self,
        schema: &'s Map<String, Value>,
        rule: &'s Value,
        items: &[Value],
        place: &Place<'_>,
        depth: usize,
    ) -> bool {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let before = self.problems.len();
        let mut count = 0;
        for (at, item) in items.iter().enumerate() {
            count += u64::from(self.fits_part(rule, item, &place.index(at), depth));
        }
        if count >= least && most.is_none_or(|most| count <= most) {
            self.problems.truncate(before);
            return true;
        }
        let most = most.map_or_else(String::new, |most| format!(" and no more than {most}"));
        self.report(place, &format!("must contain at least {least}{most} valid item(s)"))
    }

    fn depends(&mut self, key: &str, names: &[Value], entries: &Map<String, Value>, place: &Place<'_>) -> bool {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        if names.iter().all(|name| entries.contains_key(*name)) {
            return true;
        }
        let noun = if names.len() == 1 { "property" } else { "properties" };
        let names = names.join(", ");
        self.report(place, &format!("must have {noun} {names} when property {key} is present"))
    }

    /// Reports the pair of equal items that ajv finds: both searches begin at the end, and one remembers what it has seen.
    fn duplicates(&mut self, items: &[Value], is_plain: bool, place: &Place<'_>) -> bool {
        let is_equal = |one: &Value, other: &Value| !self.holds("uniqueItems", &json!(true), &json!([one, other]));
        let pair = (0..items.len()).rev().find_map(|at| {
            let before = || (0..at).rev().find(|other| is_equal(&items[at], &items[*other]));
            let behind = || (at + 1..items.len()).find(|other| is_equal(&items[at], &items[*other]));
            if is_plain { behind() } else { before() }.map(|other| (other, at))
        });
        let (other, at) = pair.unwrap_or_default();
        self.report(place, &format!("must NOT have duplicate items (items ## {other} and {at} are identical)"))
    }
}

/// The message of a keyword that has no parts.
fn message(keyword: &str, rule: &Value) -> Option<String> {
    let text = rule.as_str().map_or_else(|| rule.to_string(), str::to_owned);
    Some(match keyword {
        "maximum" => format!("must be <= {text}"),
        "minimum" => format!("must be >= {text}"),
        "exclusiveMaximum" => format!("must be < {text}"),
        "exclusiveMinimum" => format!("must be > {text}"),
        "multipleOf" => format!("must be multiple of {text}"),
        "maxLength" => format!("must NOT have more than {text} characters"),
        "minLength" => format!("must NOT have fewer than {text} characters"),
        "pattern" => format!("must match pattern \"{text}\""),
        "format" => format!("must match format \"{text}\""),
        "const" => "must be equal to constant".to_owned(),
        "enum" => "must be equal to one of the allowed values".to_owned(),
        "maxItems" => format!("must NOT have more than {text} items"),
        "minItems" => format!("must NOT have fewer than {text} items"),
        "maxProperties" => format!("must NOT have more than {text} properties"),
        "minProperties" => format!("must NOT have fewer than {text} properties"),
        _ => return None,
    })
}

/// The names of the types that a schema allows; none if it allows all.
fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(only)) => vec![only],
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(entries) => entries.contains_key("$ref") || entries.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

fn has_type(types: &[&str], value: &Value) -> bool {
    types.is_empty() || types.iter().any(|kind| is_type(kind, value))
}

fn is_type(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|float| float.fract() == 0.0),
        _ => false,
    }
}
