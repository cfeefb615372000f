//! A tool as an MCP server defines it.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::bytes::hex;
use crate::json::hash;

/// A tool as an MCP server, or a toolkit, defines it: everything that a model or a policy reads of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name, as the server spells it.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description that the model reads.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, an object, as the server sent it.
    pub input_schema: Map<String, Value>,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<Map<String, Value>>,
    /// Hints about the behaviour of the tool. They are claims of the server and never loosen a policy.
    pub annotations: Option<Map<String, Value>>,
    /// Other data of the server, which is not part of the [`digest`](Self::digest).
    pub meta: Option<Map<String, Value>>,
}

/// The reason why a definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDefinition {
    /// It is not an object.
    #[error("a tool must be an object")]
    NotAnObject,
    /// A field is missing or has the wrong type.
    #[error("`{field}` must be {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
}

impl Definition {
    /// Reads a definition from the `tools/list` result of a server. Unknown fields are ignored.
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] names the field that is missing or has the wrong type.
    pub fn read(tool: &Value) -> Result<Self, InvalidDefinition> {
        let tool = tool.as_object().ok_or(InvalidDefinition::NotAnObject)?;
        let present = |field: &str| tool.get(field).filter(|value| !value.is_null());
        let text = |field: &'static str| match present(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(InvalidDefinition::Field { field, expected: "text" }),
        };
        let object = |field: &'static str| match present(field) {
            None => Ok(None),
            Some(Value::Object(entries)) => Ok(Some(entries.clone())),
            Some(_) => Err(InvalidDefinition::Field { field, expected: "an object" }),
        };
        Ok(Self {
            name: text("name")?.ok_or(InvalidDefinition::Field { field: "name", expected: "text" })?,
            title: text("title")?,
            description: text("description")?,
            input_schema: object("inputSchema")?.unwrap_or_default(),
            output_schema: object("outputSchema")?,
            annotations: object("annotations")?,
            meta: object("_meta")?,
        })
    }

    /// Writes the definition as `tools/list` has it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut tool = Map::new();
        tool.insert("name".to_owned(), json!(self.name));
        let mut insert = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                tool.insert(field.to_owned(), value);
            }
        };
        insert("title", self.title.clone().map(Value::from));
        insert("description", self.description.clone().map(Value::from));
        insert("inputSchema", Some(Value::Object(self.input_schema.clone())));
        insert("outputSchema", self.output_schema.clone().map(Value::from));
        insert("annotations", self.annotations.clone().map(Value::from));
        insert("_meta", self.meta.clone().map(Value::from));
        Value::Object(tool)
    }

    /// The digest of name, title, description, schemas and annotations. Two definitions with the same digest are the same
    /// tool to a model and to a policy, in whatever order their keys were sent.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let pinned = Self { meta: None, ..self.clone() };
        Digest(hash(&pinned.to_value()))
    }
}

/// The SHA-256 digest of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(tool: &Value) -> Definition {
        Definition::read(tool).unwrap()
    }

    #[test]
    fn the_digest_ignores_the_order_of_keys_and_other_data() {
        let one = definition(&json!({"name": "a", "inputSchema": {"type": "object", "title": "A"}, "_meta": {"x": 1}}));
        let other = definition(&json!({"inputSchema": {"title": "A", "type": "object"}, "name": "a"}));

        assert_eq!(one.digest(), other.digest());
    }

    #[test]
    fn every_part_that_a_model_or_a_policy_reads_changes_the_digest() {
        let base = json!({"name": "a", "inputSchema": {"type": "object"}});
        let changes = [
            ("name", json!("b")),
            ("title", json!("A")),
            ("description", json!("Does it.")),
            ("inputSchema", json!({"type": "object", "properties": {}})),
            ("outputSchema", json!({"type": "object"})),
            ("annotations", json!({"readOnlyHint": true})),
        ];

        for (field, value) in changes {
            let mut other = base.clone();
            other[field] = value;

            assert_ne!(definition(&other).digest(), definition(&base).digest(), "{field}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        let error = Definition::read(&json!({"name": "a", "inputSchema": []})).unwrap_err();

        assert_eq!(error.to_string(), "`inputSchema` must be an object");
    }

    #[test]
    fn a_definition_is_written_as_it_was_read() {
        let tool = json!({
            "name": "a", "title": "A", "description": "Does it.", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "_meta": {"x": 1},
        });

        assert_eq!(definition(&tool).to_value(), tool);
    }
}
