//! The documentation of one tool: its name, what it does, its parameters, and a call of it.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::call::{has_nested, write_call};
use super::example::{self, LONGEST_DEFAULT};
use super::json::spaced;
use super::kind::{branches, kind, members, reference, required, resolved};
use super::{Form, ToolFacts, safe};

/// How deep parameters are told about.
const DEPTH: usize = 12;
/// How many values of an enumeration are told.
const MEMBERS: usize = 100;

/// The limits that are told, with the words for them.
const LIMITS: [(&str, &str); 13] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("multipleOf", "multiple of"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("pattern", "matches"),
    ("format", "format"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("minProperties", "entries at least"),
    ("maxProperties", "entries at most"),
];

/// Writes the documentation of a tool, with a newline at the end, and says whether it asks for more than plain values and
/// lists of them.
pub(super) fn document(form: Form, tool: &ToolFacts<'_>) -> (String, bool) {
    let root = tool.parameters.value();
    let name = safe::word(tool.name);
    let mut telling = Telling { root, told: HashSet::new(), text: format!("### {name}\n") };
    let description = safe::lines(tool.description, "  ");
    telling.line(0, format_args!("Description: {}", if description.is_empty() { "-" } else { &description }));
    let parameters = resolved(root, root);
    match parameters.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) {
        None => telling.line(0, format_args!("Parameters: None")),
        Some(properties) => {
            telling.line(0, format_args!("Parameters:"));
            telling.properties(properties, parameters, 1);
        }
    }
    telling.line(0, format_args!("Example:"));
    let example = example::arguments(root);
    telling.text.push_str(&write_call(form, tool.name, &example));
    telling.text.push('\n');
    (telling.text, has_nested(&example))
}

struct Telling<'a> {
    root: &'a Value,
    /// The references that were followed: each is told about once.
    told: HashSet<&'a str>,
    text: String,
}

impl<'a> Telling<'a> {
    fn line(&mut self, depth: usize, line: std::fmt::Arguments<'_>) {
        // A string takes all that is written to it.
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * depth);
    }

    fn properties(&mut self, properties: &'a Map<String, Value>, object: &'a Value, depth: usize) {
        let required = required(object);
        for (name, schema) in properties {
            let need = if required.contains(name.as_str()) { "required" } else { "optional" };
            let meant = resolved(self.root, schema);
            let description = schema.get("description").or_else(|| meant.get("description"));
            let description = safe::line(description.and_then(Value::as_str).unwrap_or_default());
            let dash = if description.is_empty() { "" } else { " - " };
            let (name, kind) = (safe::word(name), kind(self.root, schema));
            self.line(depth, format_args!("- {name}: {kind} ({need}){dash}{description}"));
            self.details(schema, depth + 1);
            if let Some(default) = schema.get("default").or_else(|| meant.get("default")) {
                let default = shown(default);
                self.line(depth + 1, format_args!("Default: {default}"));
            }
        }
    }

    /// What there is to say about a value besides its kind: what it may be, and what is in it.
    fn details(&mut self, schema: &'a Value, depth: usize) {
        if depth > DEPTH {
            return;
        }
        let meant = resolved(self.root, schema);
        if let Some(pointer) = reference(schema)
            && is_worth_telling(meant)
            && !self.told.insert(pointer)
        {
            let name = safe::word(pointer.rsplit('/').next().unwrap_or_default());
            self.line(depth, format_args!("As told above: {name}"));
            return;
        }
        if let Some(members) = members(meant) {
            let shown: Vec<String> = members.iter().take(MEMBERS).map(spaced).collect();
            let more = if members.len() > MEMBERS { ", ..." } else { "" };
            self.line(depth, format_args!("One of: {}{more}", shown.join(", ")));
        }
        self.limits(meant, depth);
        if let Some(branches) = branches(meant) {
            self.branches(branches, depth);
        }
        if let Some(Value::Object(properties)) = meant.get("properties") {
            self.properties(properties, meant, depth);
        }
        for (keyword, word) in [("items", "item"), ("additionalProperties", "value")] {
            if let Some(part @ Value::Object(_)) = meant.get(keyword) {
                self.part(part, word, depth);
            }
        }
        if let Some(Value::Array(parts)) = meant.get("prefixItems") {
            for part in parts {
                self.part(part, "item", depth);
            }
        }
    }

    /// What each item of a list, or each value of a map, may be.
    fn part(&mut self, part: &'a Value, word: &str, depth: usize) {
        let before = self.text.len();
        let kind = kind(self.root, part);
        self.line(depth, format_args!("Each {word}: {kind}"));
        let heading = self.text.len();
        self.details(part, depth + 1);
        if self.text.len() == heading && word == "item" {
            // The kind of the list has said it.
            self.text.truncate(before);
        }
    }

    /// The forms that a value may take, without the one of being absent.
    fn branches(&mut self, branches: &'a [Value], depth: usize) {
        let root = self.root;
        let mut present = branches.iter().filter(|branch| kind(root, branch) != "null");
        match (present.next(), present.next()) {
            (Some(only), None) => self.details(only, depth),
            (Some(first), Some(second)) => {
                for branch in [first, second].into_iter().chain(present) {
                    let before = self.text.len();
                    self.line(depth, format_args!("If {}:", kind(root, branch)));
                    let heading = self.text.len();
                    self.details(branch, depth + 1);
                    if self.text.len() == heading {
                        self.text.truncate(before);
                    }
                }
            }
            (None, _) => {}
        }
    }

    fn limits(&mut self, schema: &Value, depth: usize) {
        let limits: Vec<String> = LIMITS
            .iter()
            .filter_map(|(keyword, words)| match schema.get(*keyword)? {
                Value::String(text) => Some(format!("{words} {}", safe::word(text))),
                Value::Number(number) => Some(format!("{words} {number}")),
                _ => None,
            })
            .collect();
        if !limits.is_empty() {
            self.line(depth, format_args!("Limits: {}", limits.join(", ")));
        }
    }
}

/// Whether there is more to a schema than its kind.
fn is_worth_telling(schema: &Value) -> bool {
    ["properties", "enum", "anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties"]
        .iter()
        .any(|keyword| schema.get(*keyword).is_some())
}

/// A default as people write it: text bare where that is clear, everything else as JSON.
fn shown(default: &Value) -> String {
    let text = match default {
        Value::String(text) => safe::word(text).into_owned(),
        _ => spaced(default),
    };
    if text.len() <= LONGEST_DEFAULT {
        return text;
    }
    let cut: String = text.chars().take(LONGEST_DEFAULT).collect();
    cut + "..."
}
