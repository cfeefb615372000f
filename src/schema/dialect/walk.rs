//! Through all schemas inside of a schema, and past the values that only look like one.

use serde_json::{Map, Value};

/// Calls `change` for the schema and every schema inside of it.
pub(super) fn every_schema(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    change(map);
    for (keyword, value) in map.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                if let Value::Object(schemas) = value {
                    schemas.values_mut().for_each(|schema| every_schema(schema, change));
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                if let Value::Array(schemas) = value {
                    for schema in schemas {
                        every_schema(schema, change);
                    }
                }
            }
            "items" | "additionalItems" => match value {
                // Before the draft of 2020 `items` could be the list that `prefixItems` is now.
                Value::Array(schemas) => schemas.iter_mut().for_each(|schema| every_schema(schema, change)),
                schema => every_schema(schema, change),
            },
            "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else" => every_schema(value, change),
            _ => {}
        }
    }
}

/// Changes references to where `rename` says.
pub(super) fn rename_references(schema: &mut Value, rename: &dyn Fn(&str) -> Option<String>) {
    every_schema(schema, &mut |map| {
        if let Some(Value::String(reference)) = map.get_mut("$ref")
            && let Some(renamed) = rename(reference)
        {
            *reference = renamed;
        }
    });
}
