//! What a model is told about one tool: its name, its description and its parameters.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

const PARAMETERS: &str = "parameters";

/// A function in the form that model providers read: `{"type": "function", "function": {"name", "parameters", …}}`.
///
/// The parameters are shared with whatever checks arguments against them.
#[derive(Debug, Clone)]
pub struct FunctionSchema {
    /// The entries in order, with an empty place for the parameters.
    entries: Map<String, Value>,
    parameters: Arc<Value>,
}

impl FunctionSchema {
    /// Takes the `function` part of a schema, under a new name.
    #[must_use]
    pub fn new(mut entries: Map<String, Value>, name: &str) -> Self {
        match entries.get_mut("name") {
            Some(old) => *old = name.into(),
            None => drop(entries.shift_insert(0, "name".to_owned(), name.into())),
        }
        let parameters = entries.get_mut(PARAMETERS).map(Value::take).unwrap_or_default();
        Self { entries, parameters: Arc::new(parameters) }
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Value> {
        &self.parameters
    }

    /// The entries of the `function` part, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), if key == PARAMETERS { &*self.parameters } else { value }))
    }
}

impl Serialize for FunctionSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Function<'a>(&'a FunctionSchema);

        impl Serialize for Function<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.entries())
            }
        }

        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parameters_keep_their_place() {
        let Value::Object(entries) = json!({"description": "d", "parameters": {"type": "object"}, "strict": true})
        else {
            panic!("an object was written");
        };

        let schema = FunctionSchema::new(entries, "tool");

        assert_eq!(
            serde_json::to_string(&schema).expect("a schema is JSON"),
            r#"{"type":"function","function":{"name":"tool","description":"d","parameters":{"type":"object"},"strict":true}}"#
        );
    }
}
