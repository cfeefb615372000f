//! What a model is told about one tool: its name, its description and its parameters.

use std::sync::Arc;

use serde_json::Value;

use super::tree::text::{push, push_string, read};
use super::tree::{Document, Entries, Node};

const PARAMETERS: &str = "parameters";

/// A function in the form that model providers read: `{"type": "function", "function": {"name", "parameters", …}}`.
///
/// It is kept as text. The parameters are shared with whatever checks arguments against them.
#[derive(Debug)]
pub struct FunctionSchema {
    /// The text up to the parameters.
    before: Box<str>,
    parameters: Arc<Document>,
    /// The text from there on.
    after: Box<str>,
}

impl FunctionSchema {
    /// Writes the `function` part of a schema, under a new name.
    #[must_use]
    pub fn new(function: &Entries, name: &str) -> Self {
        let mut text = String::with_capacity(256);
        text.push_str(r#"{"type":"function","function":{"#);
        let mut before = None;
        let mut parameters = Document::default();
        if !function.contains_key("name") {
            push_key(&mut text, "name");
            push_string(&mut text, name);
        }
        for (key, value) in function.iter() {
            push_key(&mut text, key);
            match key {
                "name" => push_string(&mut text, name),
                PARAMETERS => {
                    before = Some(text.as_str().into());
                    text.clear();
                    parameters = Document::new(value);
                }
                _ => push(&mut text, value),
            }
        }
        text.push_str("}}");
        Self { before: before.unwrap_or_default(), parameters: Arc::new(parameters), after: text.into() }
    }

    /// The same function with other parameters.
    #[must_use]
    pub fn with_parameters(&self, parameters: &Node) -> Self {
        let parameters = Arc::new(Document::new(parameters));
        Self { before: self.before.clone(), parameters, after: self.after.clone() }
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Document> {
        &self.parameters
    }

    /// The pieces that make up the whole as JSON text.
    #[must_use]
    pub fn text(&self) -> [&str; 3] {
        [&self.before, self.parameters.text(), &self.after]
    }

    /// What the tool does, in words.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let mut function = read(&[&self.before, "null", &self.after].concat());
        match function["function"]["description"].take() {
            Value::String(description) => Some(description),
            _ => None,
        }
    }

    /// The whole as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        read(&self.text().concat())
    }
}

/// Begins an entry: after all but the opening brace there is a comma.
fn push_key(text: &mut String, key: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    push_string(text, key);
    text.push(':');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(entries: Value, name: &str) -> String {
        let Node::Object(entries) = Node::from(entries) else {
            panic!("an object was written");
        };
        FunctionSchema::new(&entries, name).text().concat()
    }

    #[test]
    fn the_parameters_keep_their_place() {
        let text = text(json!({"description": "d", "parameters": {"type": "object"}, "strict": true}), "tool");

        assert_eq!(
            text,
            r#"{"type":"function","function":{"name":"tool","description":"d","parameters":{"type":"object"},"strict":true}}"#
        );
    }

    #[test]
    fn the_new_name_takes_the_place_of_the_old() {
        let text = text(json!({"parameters": {}, "name": "old"}), "new");

        assert_eq!(text, r#"{"type":"function","function":{"parameters":{},"name":"new"}}"#);
    }

    #[test]
    fn parameters_are_not_made_up() {
        let text = text(json!({"description": "{"}), "tool");

        assert_eq!(text, r#"{"type":"function","function":{"name":"tool","description":"{"}}"#);
    }
}
