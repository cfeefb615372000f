//! Extends the parameters of a tool by the fields of a model.

use serde_json::{Map, Value};

use super::definitions::PREFIX;
use super::normalize::remove_titles;
use crate::json::Node;
use crate::{Error, Result};

const DEFINITIONS: &str = "$defs";

/// Adds the fields of a model to the parameters of `tool`: its properties, its `required` names, and the definitions
/// they refer to. Titles and the other keywords of the model as a whole are dropped.
///
/// A recursive model is a reference to one of its definitions, which is followed.
///
/// # Errors
///
/// [`Error::FieldConflict`] if the tool has a parameter of a field's name, [`Error::DefinitionConflict`] if one name has
/// two definitions, [`Error::UnusableModel`] if the schema is not that of an object.
pub fn extend(parameters: &Value, tool: &str, model: Value) -> Result<Value> {
    let mut model = untitled(model);
    let definitions = model.as_object_mut().map(|model| taken(model, DEFINITIONS)).unwrap_or_default();
    let (fields, needed) = fields_of(model, &definitions).ok_or_else(|| Error::UnusableModel {
        tool: tool.to_owned(),
        reason: "its schema is not that of an object".to_owned(),
    })?;
    let mut merged = match parameters {
        Value::Object(parameters) => parameters.clone(),
        _ => Map::new(),
    };
    let mut properties = taken(&mut merged, "properties");
    for (name, field) in fields {
        if properties.contains_key(&name) {
            return Err(Error::FieldConflict { tool: tool.to_owned(), field: name });
        }
        properties.insert(name, field);
    }
    merged.insert("properties".to_owned(), Value::Object(properties));
    if !needed.is_empty() {
        match merged.get_mut("required") {
            Some(Value::Array(required)) => required.extend(needed),
            _ => drop(merged.insert("required".to_owned(), Value::Array(needed))),
        }
    }
    if !definitions.is_empty() {
        let mut known = taken(&mut merged, DEFINITIONS);
        for (key, definition) in definitions {
            match known.get(&key) {
                Some(other) if !is_same(other, &definition) => {
                    return Err(Error::DefinitionConflict { tool: tool.to_owned(), key });
                }
                Some(_) => {}
                None => drop(known.insert(key, definition)),
            }
        }
        merged.insert(DEFINITIONS.to_owned(), Value::Object(known));
    }
    Ok(Value::Object(merged))
}

/// The extended parameters without schemas for the added fields, for when the model itself validates those.
#[must_use]
pub fn loosen(extended: &Value, original: &Value) -> Value {
    let own = original.get("properties").and_then(Value::as_object);
    let is_own = |name: &str| own.is_some_and(|own| own.contains_key(name));
    let mut loose = extended.clone();
    if let Some(Value::Object(properties)) = loose.get_mut("properties") {
        for (_, field) in properties.iter_mut().filter(|(name, _)| !is_own(name)) {
            *field = Value::Object(Map::new());
        }
    }
    if let Some(Value::Array(required)) = loose.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(is_own));
    }
    loose
}

/// The names of the fields that `extended` has and `original` does not.
pub fn added<'a>(extended: &'a Value, original: &'a Value) -> impl Iterator<Item = &'a str> {
    let own = original.get("properties").and_then(Value::as_object);
    let all = extended.get("properties").and_then(Value::as_object);
    let added = all.into_iter().flatten().filter(move |(name, _)| own.is_none_or(|own| !own.contains_key(*name)));
    added.map(|(name, _)| name.as_str())
}

/// The properties of a model and its `required` names; `None` if it is not an object.
fn fields_of(model: Value, definitions: &Map<String, Value>) -> Option<(Map<String, Value>, Vec<Value>)> {
    let Value::Object(mut model) = model else { return None };
    if let Some(reference) = model.get("$ref").and_then(Value::as_str) {
        let Value::Object(referred) = definitions.get(reference.strip_prefix(PREFIX)?)? else { return None };
        model = referred.clone();
    }
    let properties = match model.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        // A model without fields is an object too.
        None if model.get("type").is_some_and(|kind| kind == "object") => Map::new(),
        _ => return None,
    };
    let required = match model.shift_remove("required") {
        Some(Value::Array(required)) => required,
        _ => Vec::new(),
    };
    Some((properties, required))
}

/// Takes the object under a key and keeps its place.
fn taken(parameters: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    parameters.get_mut(key).and_then(Value::as_object_mut).map(std::mem::take).unwrap_or_default()
}

/// True if two definitions are equal apart from titles.
fn is_same(one: &Value, other: &Value) -> bool {
    untitled(one.clone()) == *other
}

fn untitled(schema: Value) -> Value {
    let mut schema = Node::from(schema);
    remove_titles(&mut schema);
    schema.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own() -> Value {
        json!({"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"})
    }

    #[test]
    fn a_recursive_model_gives_the_fields_of_its_definition() {
        let node = json!({"properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"], "type": "object"});
        let model = json!({"$defs": {"Node": node}, "$ref": "#/$defs/Node"});

        let merged = extend(&own(), "f", model).expect("no conflict");

        assert_eq!(merged["properties"]["next"], json!({"$ref": "#/$defs/Node"}));
        assert_eq!(merged["required"], json!(["a", "next"]));
        assert_eq!(merged["$defs"]["Node"], node);
    }

    #[test]
    fn a_model_that_is_not_an_object_is_refused() {
        for model in [json!({"type": "array", "items": {}}), json!({"$ref": "#/$defs/Gone"}), json!([])] {
            assert!(matches!(extend(&own(), "f", model), Err(Error::UnusableModel { .. })));
        }
    }

    #[test]
    fn parameters_without_properties_get_some() {
        let merged = extend(&json!({"type": "object"}), "f", json!({"properties": {"b": {}}, "required": ["b"]}));

        assert_eq!(merged, Ok(json!({"type": "object", "properties": {"b": {}}, "required": ["b"]})));
    }

    #[test]
    fn loose_parameters_do_not_limit_the_added_fields() {
        let merged = extend(&own(), "f", json!({"properties": {"b": {"type": "string"}}, "required": ["b"]}));
        let merged = merged.expect("no conflict");

        let loose = loosen(&merged, &own());

        assert_eq!(loose["properties"], json!({"a": {"type": "integer"}, "b": {}}));
        assert_eq!(loose["required"], json!(["a"]));
        assert_eq!(added(&merged, &own()).collect::<Vec<_>>(), ["b"]);
    }
}
