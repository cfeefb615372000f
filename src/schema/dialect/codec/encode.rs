//! From the shape that a tool expects to the one of a dialect: what a model would send.

use serde_json::{Map, Value, json};

use super::{Absence, Branch, CHOICE, Codec, Field, Fields, KEY, Op, VALUE};

impl Codec {
    /// What a model would send for these arguments. A value that does not fit its schema is left as it is.
    #[must_use]
    pub fn encode_value(&self, arguments: &Value) -> Value {
        self.encoded(&self.op, arguments)
    }

    fn encoded(&self, op: &Op, value: &Value) -> Value {
        match (op, value) {
            (Op::Shared(index), value) => self.encoded(&self.shared[*index], value),
            (Op::Nullable(op), value) if !value.is_null() => self.encoded(op, value),
            (Op::Fields(fields), Value::Object(entries)) => Value::Object(self.encoded_fields(fields, entries)),
            (Op::List(op), Value::Array(items)) => items.iter().map(|item| self.encoded(op, item)).collect(),
            (Op::Pairs(op), Value::Object(entries)) => {
                entries.iter().map(|(key, value)| json!({KEY: key, VALUE: self.encoded(op, value)})).collect()
            }
            (Op::Places(places), Value::Array(items)) => {
                let mut entries = Map::new();
                let mut items = items.iter();
                for field in &places.fixed {
                    self.encode_field(field, items.next(), places.explicit, &mut entries);
                }
                if let Some((outer, op)) = &places.rest {
                    let rest: Vec<Value> = items.cloned().collect();
                    if places.explicit || !rest.is_empty() {
                        entries.insert(outer.to_string(), self.encoded(op, &Value::Array(rest)));
                    }
                }
                Value::Object(entries)
            }
            (Op::Text { .. }, value) => Value::String(value.to_string()),
            (Op::Listed(listed), value) => {
                let text = listed.iter().find(|(_, own)| own == value).map(|(text, _)| Value::from(&**text));
                text.unwrap_or_else(|| value.clone())
            }
            (Op::Choice(branches), value) => match self.branch(branches, value) {
                Some(branch) => self.encoded(&branch.op, value),
                None => value.clone(),
            },
            (Op::Tagged(branches), value) => match self.branch(branches, value) {
                Some(branch) => json!({CHOICE: branch.label, VALUE: self.encoded(&branch.op, value)}),
                None => value.clone(),
            },
            (Op::Inside(key, op), value) => json!({*key: self.encoded(op, value)}),
            (_, value) => value.clone(),
        }
    }

    fn branch<'a>(&self, branches: &'a [Branch], value: &Value) -> Option<&'a Branch> {
        let find = |closed| branches.iter().find(|branch| branch.pick.admits(value, self.document.value(), closed));
        find(true).or_else(|| find(false))
    }

    fn encoded_fields(&self, fields: &Fields, entries: &Map<String, Value>) -> Map<String, Value> {
        let mut encoded = Map::new();
        for field in &fields.named {
            self.encode_field(field, entries.get(&*field.inner), fields.explicit, &mut encoded);
        }
        let others = || entries.iter().filter(|(key, _)| !fields.named.iter().any(|field| *field.inner == ***key));
        match &fields.rest {
            Some((outer, op)) => {
                let others: Map<String, Value> = others().map(|(key, value)| (key.clone(), value.clone())).collect();
                if fields.explicit || !others.is_empty() {
                    encoded.insert(outer.to_string(), self.encoded(op, &Value::Object(others)));
                }
            }
            None => encoded.extend(others().map(|(key, value)| (key.clone(), value.clone()))),
        }
        encoded
    }

    fn encode_field(&self, field: &Field, value: Option<&Value>, explicit: bool, into: &mut Map<String, Value>) {
        let encoded = match (value, field.absence) {
            (Some(value), Absence::Boxed) => json!({VALUE: self.encoded(&field.op, value)}),
            (Some(value), _) => self.encoded(&field.op, value),
            (None, Absence::Null | Absence::Boxed) if explicit => Value::Null,
            (None, _) => return,
        };
        into.insert(field.outer.to_string(), encoded);
    }
}
