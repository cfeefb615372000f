//! The schema of a tool's parameters, generated from their Rust type.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::schema::{Entries, Node, remove_titles};

/// The JSON Schema of a parameter type, in the form that Python tools have: an object, without titles, `$schema` and Rust's
/// number formats.
pub(super) fn parameters<P: JsonSchema>() -> Node {
    let Value::Object(mut schema) = of_type::<P>() else { return Node::Object(Entries::with_capacity(0)) };
    // The documentation of the type: the tool has a description of its own.
    schema.remove("description");
    if schema.get("type").is_none_or(Value::is_null) || schema.get("type") == Some(&Value::from("null")) {
        // `()` takes no arguments.
        schema.insert("type".to_owned(), "object".into());
    }
    if !schema.contains_key("properties") {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    let mut schema = Node::from(Value::Object(schema));
    remove_titles(&mut schema);
    schema
}

/// The JSON Schema of a type, an object without `$schema` and Rust's number formats.
pub(super) fn of_type<T: JsonSchema>() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut schema = match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.remove("$schema");
    let mut schema = Value::Object(schema);
    remove_number_formats(&mut schema);
    schema
}

/// Removes formats of Rust numbers such as `uint32`, which models and validators do not know. Limits stay.
fn remove_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(node) => {
            let is_number = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number"));
            let of_number = match node.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().any(is_number),
                Some(kind) => is_number(kind),
                None => false,
            };
            if of_number && node.get("format").is_some_and(Value::is_string) {
                node.remove("format");
            }
            node.values_mut().for_each(remove_number_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_number_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only the schema is read")]
    struct City {
        /// The name on the map.
        name: String,
    }

    /// This is about the type.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only the schema is read")]
    struct Params {
        /// Where to look.
        place: City,
        days: Option<u8>,
        format: String,
    }

    #[test]
    fn a_type_gives_a_schema_without_titles_and_names_of_rust() {
        let schema = Value::from(parameters::<Params>());

        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "place": {"description": "Where to look.", "$ref": "#/$defs/City"},
                    "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
                    "format": {"type": "string"},
                },
                "required": ["place", "format"],
                "$defs": {
                    "City": {
                        "type": "object",
                        "properties": {"name": {"description": "The name on the map.", "type": "string"}},
                        "required": ["name"],
                    },
                },
            })
        );
    }

    #[test]
    fn nothing_is_an_object_without_properties() {
        assert_eq!(Value::from(parameters::<()>()), json!({"type": "object", "properties": {}}));
    }
}
