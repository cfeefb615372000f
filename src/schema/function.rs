//! The schema of one tool as models see it: its name, its description and its parameters.

use std::sync::Arc;

use serde_json::Value;

use crate::json::text::{push, push_string, read};
use crate::json::{Document, Entries, Node};
use crate::{Error, Result};

const PARAMETERS: &str = "parameters";

/// Refuses an invalid tool name: an empty one, or one with a control character or a line break, which would break
/// the lines of logs and prompts. What else a provider does not accept is changed for that provider alone.
///
/// # Errors
///
/// [`Error::InvalidToolName`].
pub fn check_name(name: &str) -> Result<()> {
    let is_control = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.contains(is_control) {
        "it has a control character or a line break"
    } else {
        return Ok(());
    };
    Err(Error::InvalidToolName { name: name.to_owned(), reason })
}

/// A function in the form that model providers read: `{"type": "function", "function": {"name", "parameters", …}}`.
///
/// It is one text. The part with the parameters is shared with the checker of arguments.
#[derive(Debug)]
pub struct FunctionSchema(Arc<Document>);

impl FunctionSchema {
    /// Writes the `function` part of a schema under a new name.
    #[must_use]
    pub fn new(function: &Entries, name: &str) -> Self {
        let mut text = String::with_capacity(1280);
        text.push_str(r#"{"type":"function","function":{"#);
        let mut parameters = 0..0;
        if !function.contains_key("name") {
            push_key(&mut text, "name");
            push_string(&mut text, name);
        }
        for (key, value) in function.iter() {
            push_key(&mut text, key);
            match key {
                "name" => push_string(&mut text, name),
                PARAMETERS => {
                    let start = text.len();
                    push(&mut text, value);
                    parameters = start..text.len();
                }
                _ => push(&mut text, value),
            }
        }
        text.push_str("}}");
        Self(Arc::new(Document::within(&text, parameters)))
    }

    /// The same function with other parameters.
    #[must_use]
    pub fn with_parameters(&self, parameters: &Node) -> Self {
        let [before, _, after] = self.text();
        let mut text = before.to_owned();
        push(&mut text, parameters);
        let own = before.len()..text.len();
        text.push_str(after);
        Self(Arc::new(Document::within(&text, own)))
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Document> {
        &self.0
    }

    /// The whole as JSON text, in three parts: the second is the parameters.
    #[must_use]
    pub fn text(&self) -> [&str; 3] {
        self.0.parts()
    }

    /// The description of the tool.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let [before, parameters, after] = self.text();
        let parameters = if parameters.is_empty() { "" } else { "null" };
        let mut function = read(&[before, parameters, after].concat());
        match function["function"]["description"].take() {
            Value::String(description) => Some(description),
            _ => None,
        }
    }

    /// The whole as a JSON value.
    #[must_use]
    pub fn value(&self) -> Value {
        read(&self.text().concat())
    }
}

/// Begins an entry, with a comma unless it is the first.
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
    fn other_parameters_take_the_place_of_the_first() {
        let Node::Object(entries) = Node::from(json!({"parameters": {"a": 1}, "description": "d"})) else {
            panic!("an object was written");
        };
        let schema = FunctionSchema::new(&entries, "tool");

        let other = schema.with_parameters(&Node::from(json!({"b": [2]})));

        assert_eq!(
            other.text().concat(),
            r#"{"type":"function","function":{"name":"tool","parameters":{"b":[2]},"description":"d"}}"#
        );
        assert_eq!((other.parameters().text(), other.parameters().value()), (r#"{"b":[2]}"#, &json!({"b": [2]})));
        assert_eq!(other.description().as_deref(), Some("d"));
    }

    #[test]
    fn a_function_without_parameters_has_a_description() {
        let mut entries = Entries::new();
        entries.insert("description", Node::from("d"));

        let schema = FunctionSchema::new(&entries, "tool");

        assert_eq!(schema.description().as_deref(), Some("d"));
        assert_eq!(schema.parameters().text(), "");
    }

    #[test]
    fn parameters_are_not_invented() {
        let text = text(json!({"description": "{"}), "tool");

        assert_eq!(text, r#"{"type":"function","function":{"name":"tool","description":"{"}}"#);
    }
}
