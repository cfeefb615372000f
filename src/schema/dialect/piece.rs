//! A part of a schema in a narrow dialect, while it is put together.

use serde_json::{Map, Value, json};

use super::codec::Op;
use super::form::{Form, STRING};
use super::rules::Rules;
use super::words;

/// A part of a schema, and how its values come back.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) schema: Map<String, Value>,
    /// Sentences of its description.
    pub(super) words: Vec<String>,
    pub(super) op: Op,
    pub(super) form: Form,
    /// It stands for `null` alone, whatever it is encoded as.
    pub(super) is_null: bool,
    /// It refers to what it is itself a choice of.
    pub(super) adds_nothing: bool,
}

impl Piece {
    pub(super) fn new(schema: Value, op: Op, form: Form) -> Self {
        let schema = if let Value::Object(schema) = schema { schema } else { Map::new() };
        Self { schema, words: Vec::new(), op, form, is_null: false, adds_nothing: false }
    }

    /// A value written as JSON in a text.
    pub(super) fn text(words: Vec<String>, plain: bool) -> Self {
        Self { words, ..Self::new(json!({"type": "string"}), Op::Text { plain }, Form::of(STRING)) }
    }

    /// Any value at all.
    pub(super) fn any() -> Self {
        let words = "Any value, written as JSON text, for example \"42\", \"[1, 2]\" or \"{\\\"a\\\": 1}\".".to_owned();
        Self::text(vec![words], true)
    }

    pub(super) fn nothing() -> Self {
        Self { adds_nothing: true, ..Self::any() }
    }

    /// The same, or `null`.
    pub(super) fn or_null(mut self, rules: &Rules) -> Self {
        if self.form.has_null() {
            return self;
        }
        if rules.has_null {
            self.schema = with_null(self.schema);
        } else {
            let place = match self.schema.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(choices) => choices.first_mut().and_then(Value::as_object_mut),
                None => Some(&mut self.schema),
            };
            if let Some(place) = place {
                place.insert("nullable".to_owned(), Value::Bool(true));
            }
        }
        self.form = self.form.or_null();
        self.op = self.op.or_null();
        self
    }

    /// The schema with its description, and how its values come back.
    pub(super) fn finish(self, rules: &Rules) -> (Value, Op, Form) {
        let Self { schema, words, op, form, .. } = self;
        (described(schema, words, rules), op, form)
    }
}

fn described(mut schema: Map<String, Value>, words: Vec<String>, rules: &Rules) -> Value {
    let description = words::joined(words);
    if description.is_empty() {
        return Value::Object(schema);
    }
    if schema.contains_key("$ref") {
        // Nothing may stand beside a reference.
        schema = Map::from_iter([("anyOf".to_owned(), json!([schema]))]);
    }
    let place = match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(choices) if rules.isolates_unions => choices.first_mut().and_then(Value::as_object_mut),
        _ => None,
    };
    match place {
        Some(first) => {
            let own = first.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            first.insert("description".to_owned(), Value::from(words::joined([description, own])));
        }
        None => drop(schema.insert("description".to_owned(), Value::from(description))),
    }
    Value::Object(schema)
}

fn with_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    let null = || json!({"type": "null"});
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.push(null());
        return schema;
    }
    let plain = matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "number" | "boolean"));
    if plain && !schema.contains_key("enum") {
        let kind = schema["type"].take();
        schema["type"] = json!([kind, "null"]);
        return schema;
    }
    Map::from_iter([("anyOf".to_owned(), Value::Array(vec![Value::Object(schema), null()]))])
}
