//! The inputs of an agent: a few types by name, or any JSON Schema of an object.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::schema::check::Checker;
use crate::{Error, Result};

string_enum! {
    /// The type of an input.
    pub enum InputType {
        /// A string.
        String = "string",
        /// A number.
        Number = "number",
        /// An integer.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// A list of strings.
        Strings = "string[]",
        /// A list of numbers.
        Numbers = "number[]",
    }
}

/// One input of an agent, with the name of its type as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInput {
    /// The name of an [`InputType`].
    pub kind: String,
    /// The description for the calling model.
    pub description: String,
    /// True if the agent cannot be called without it.
    pub required: bool,
}

/// The inputs of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Inputs with a type each.
    Declared(IndexMap<String, AgentInput>),
    /// A JSON Schema of an object.
    Schema(Value),
}

impl Default for Inputs {
    /// No inputs.
    fn default() -> Self {
        Self::Declared(IndexMap::new())
    }
}

impl Inputs {
    /// The JSON Schema that the calling model is shown; its `required` is always a list.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedInput`] for an unknown type, unless `lenient`, where it means a string; [`Error::InvalidSchema`].
    pub fn parameters(self, lenient: bool) -> Result<Value> {
        match self {
            Self::Declared(inputs) => schema_of_inputs(&inputs, lenient),
            Self::Schema(schema) => completed(schema),
        }
    }
}

/// The JSON Schema of declared inputs.
///
/// # Errors
///
/// [`Error::UnsupportedInput`] for an unknown type, unless `lenient`, where it means a string.
pub fn schema_of_inputs(inputs: &IndexMap<String, AgentInput>, lenient: bool) -> Result<Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, input) in inputs {
        let known = InputType::parse(&input.kind).or(lenient.then_some(InputType::String));
        let kind =
            known.ok_or_else(|| Error::UnsupportedInput { kind: input.kind.clone(), parameter: name.clone() })?;
        let (word, items) = match kind {
            InputType::Strings => ("array", Some("string")),
            InputType::Numbers => ("array", Some("number")),
            InputType::String | InputType::Number | InputType::Integer | InputType::Boolean => (kind.as_str(), None),
        };
        let mut property = Map::new();
        property.insert("description".to_owned(), input.description.clone().into());
        property.insert("type".to_owned(), word.into());
        property.extend(items.map(|items| ("items".to_owned(), json!({"type": items}))));
        properties.insert(name.clone(), property.into());
        if input.required {
            required.push(Value::from(name.as_str()));
        }
    }
    Ok(json!({"type": "object", "properties": properties, "required": required}))
}

/// Checks the JSON Schema of an object, and adds `properties` and `required` where they are missing.
fn completed(mut schema: Value) -> Result<Value> {
    let refused = |reason: &str| Error::InvalidSchema { reason: reason.to_owned() };
    Checker::compile(&schema)?;
    let entries = schema.as_object_mut().ok_or_else(|| refused("Expected an object."))?;
    if entries.get("type").and_then(Value::as_str) != Some("object") {
        return Err(refused("Expected `\"type\": \"object\"` for the inputs of an agent."));
    }
    entries.entry("properties").or_insert_with(|| json!({}));
    entries.entry("required").or_insert_with(|| json!([]));
    Ok(schema)
}
