//! The declared shape of a value: what a JSON Schema says about the parts of a value, with references and alternatives resolved.

use serde_json::{Map, Value};

use super::view::{item_keywords, properties, target, type_names};

/// The most alternatives of one value that are looked at; a value with more may have any shape.
const LIMIT: usize = 64;

/// The schemas of one value, of which it fulfils one or several.
pub(crate) struct Shape<'s> {
    root: &'s Value,
    members: Vec<&'s Map<String, Value>>,
    /// True if the value may be anything.
    is_any: bool,
}

/// The shape of an entry of an object.
pub(crate) enum Entry<'s> {
    Declared(Shape<'s>),
    /// No alternative has it, or any other names.
    Undeclared,
    /// Nothing is said about it.
    Unknown,
}

impl<'s> Shape<'s> {
    /// The shape of a whole document.
    pub(crate) fn of(root: &'s Value) -> Self {
        Self::gather(root, [root])
    }

    fn gather(root: &'s Value, schemas: impl IntoIterator<Item = &'s Value>) -> Self {
        let mut shape = Self { root, members: Vec::new(), is_any: false };
        let mut open: Vec<&Value> = schemas.into_iter().collect();
        while let Some(schema) = open.pop() {
            let Some(schema) = schema.as_object().filter(|_| shape.members.len() < LIMIT) else {
                shape.is_any = true;
                continue;
            };
            if shape.members.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            let alternatives =
                ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
            let before = open.len();
            open.extend(alternatives.flatten());
            open.extend(target(root, schema));
            let says = ["type", "properties", "items", "prefixItems", "enum", "const"];
            shape.is_any |= open.len() == before && !says.iter().any(|keyword| schema.contains_key(*keyword));
            shape.members.push(schema);
        }
        shape
    }

    /// True if the value may be of a type of JSON.
    pub(crate) fn allows(&self, wanted: &str) -> bool {
        let keywords: &[&str] = match wanted {
            "object" => &["properties", "additionalProperties"],
            "array" => &["items", "prefixItems"],
            _ => &[],
        };
        let is_allowed = |schema: &&Map<String, Value>| {
            let has_choice = |choice: &Value| match wanted {
                "object" => choice.is_object(),
                "array" => choice.is_array(),
                _ => false,
            };
            type_names(schema).any(|name| name == wanted)
                || keywords.iter().any(|keyword| schema.contains_key(*keyword))
                || schema.get("const").is_some_and(has_choice)
                || schema.get("enum").and_then(Value::as_array).is_some_and(|choices| choices.iter().any(has_choice))
        };
        self.is_any || self.members.iter().any(is_allowed)
    }

    /// The shape of the entry of a name.
    pub(crate) fn entry(&self, name: &str) -> Entry<'s> {
        let (mut found, mut is_open) = (Vec::new(), self.is_any);
        for schema in &self.members {
            let named = properties(schema);
            match (named.and_then(|named| named.get(name)), schema.get("additionalProperties")) {
                (Some(entry), _) => found.push(entry),
                (None, Some(rest @ Value::Object(_))) => found.push(rest),
                (None, Some(Value::Bool(false))) => {}
                (None, Some(_)) => is_open = true,
                (None, None) => {
                    let is_object = type_names(schema).any(|name| name == "object");
                    is_open |= schema.contains_key("patternProperties") || (is_object && named.is_none());
                }
            }
        }
        match found.is_empty() {
            false => Entry::Declared(Self::gather(self.root, found)),
            true if is_open => Entry::Unknown,
            true => Entry::Undeclared,
        }
    }

    /// The shape of the items of an array; `None` if nothing is said about them.
    pub(crate) fn items(&self) -> Option<Self> {
        let mut found = Vec::new();
        for schema in &self.members {
            let (first, rest) = item_keywords(schema);
            found.extend(schema.get(first).and_then(Value::as_array).into_iter().flatten());
            found.extend(schema.get(rest));
        }
        (!found.is_empty()).then(|| Self::gather(self.root, found))
    }

    /// The names of the entries that are declared.
    pub(crate) fn names(&self) -> Vec<&'s str> {
        let names = self.members.iter().filter_map(|schema| properties(schema)).flat_map(Map::keys);
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_is_found_through_references_and_alternatives() {
        let schema = json!({
            "type": "object",
            "properties": {
                "login": {"anyOf": [{"$ref": "#/$defs/Login"}, {"type": "null"}]},
                "hosts": {"type": "array", "items": {"$ref": "#/$defs/Login"}},
                "tree": {"$ref": "#/$defs/Tree"},
                "any": {},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "dict": {"type": "object"},
                "choice": {"enum": [{"a": 1}, "b"]},
            },
            "$defs": {
                "Login": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false},
                "Tree": {"properties": {"next": {"$ref": "#/$defs/Tree"}}},
            },
        });
        let shape = Shape::of(&schema);
        let entry = |name: &str| match shape.entry(name) {
            Entry::Declared(shape) => Some(shape),
            Entry::Undeclared | Entry::Unknown => None,
        };

        let login = entry("login").unwrap();
        assert!(login.allows("object") && login.allows("null") && !login.allows("array") && !login.allows("string"));
        assert_eq!(login.names(), ["name"]);
        assert!(matches!(login.entry("nam"), Entry::Undeclared));
        let hosts = entry("hosts").unwrap();
        assert!(hosts.allows("array") && !hosts.allows("object"));
        assert_eq!(hosts.items().unwrap().names(), ["name"]);
        assert_eq!(entry("tree").unwrap().names(), ["next"]);
        assert!(entry("any").unwrap().allows("string"));
        assert!(matches!(entry("any").unwrap().entry("x"), Entry::Unknown));
        assert!(matches!(entry("map").unwrap().entry("x"), Entry::Declared(_)));
        assert!(matches!(entry("dict").unwrap().entry("x"), Entry::Unknown));
        assert!(entry("choice").unwrap().allows("object") && !entry("choice").unwrap().allows("array"));
        assert!(matches!(shape.entry("lgin"), Entry::Undeclared));
    }
}
