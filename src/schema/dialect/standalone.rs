//! A part of a schema together with the definitions that it refers to, for where it is shown alone.

use serde_json::{Map, Value};

use crate::schema::check::pointer;

/// Where the definitions are.
const DEFINITIONS: &str = "$defs";

/// The part with everything that it refers to. No more than so many values are looked at; the rest is left out.
pub(super) fn standalone(schema: &Value, document: &Value, most: usize) -> Value {
    let mut copy = Copy { document, names: Vec::new(), room: most };
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

struct Copy<'d> {
    document: &'d Value,
    /// What is referred to, and the name that it has among the definitions.
    names: Vec<(String, String)>,
    room: usize,
}

impl Copy<'_> {
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

    /// The name of what a pointer leads to.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
