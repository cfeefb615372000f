//! One of a few values.

use serde_json::{Map, Value, json};

use super::codec::Op;
use super::encoder::Encoder;
use super::form::{BOOLEAN, Form, NULL, NUMBER, STRING};
use super::piece::Piece;
use super::rules::{LONGEST_LISTED, MANY_LISTED};
use crate::schema::check::{Kinds, Subject};

impl Encoder<'_> {
    /// Encodes an `enum` or a `const`.
    pub(super) fn enumeration(&mut self, map: &Map<String, Value>, at: &str) -> Piece {
        let mut values: Vec<Value> = match (map.get("const"), map.get("enum")) {
            (Some(only), _) => vec![only.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => return Piece::any(),
        };
        if let Some(kinds) = declared(map.get("type")) {
            values.retain(|value| kinds.has(value.kind()));
        }
        let has_null = values.iter().any(Value::is_null);
        values.retain(|value| !value.is_null());
        if values.is_empty() {
            return self.kind(&Map::from_iter([("type".to_owned(), Value::from("null"))]), at, 0);
        }
        if !self.spend((values.len() + lengths(&values)) / 64 + 1) {
            return Piece::any();
        }
        let piece = if self.is_too_long(&values) { self.unlisted(&values, at) } else { self.listed(values) };
        if has_null { piece.or_null(self.rules) } else { piece }
    }

    fn is_too_long(&self, values: &[Value]) -> bool {
        self.listed + values.len() > self.rules.listed || values.len() > MANY_LISTED && lengths(values) > LONGEST_LISTED
    }

    /// More values than a dialect takes are told in words.
    fn unlisted(&mut self, values: &[Value], at: &str) -> Piece {
        let kind = common_kind(values);
        let mut piece = match kind {
            Some((kind, form)) => Piece::new(json!({"type": kind}), Op::Same, Form::of(form)),
            None => Piece::any(),
        };
        self.say(&mut piece, "enum", &Value::Array(values.to_vec()), at);
        piece
    }

    fn listed(&mut self, values: Vec<Value>) -> Piece {
        self.listed += values.len();
        let is_scalar = values.iter().all(|value| !value.is_array() && !value.is_object());
        if self.rules.lists_texts_only || !is_scalar {
            return listed_as_texts(values);
        }
        if let Some((kind, form)) = common_kind(&values) {
            return Piece::new(json!({"type": kind, "enum": values}), Op::Same, Form::of(form));
        }
        // Values of several kinds: an enumeration for each.
        let mut groups: Vec<(&str, Kinds, Vec<Value>)> = Vec::new();
        for value in values {
            let Some((kind, form)) = common_kind(std::slice::from_ref(&value)) else { continue };
            match groups.iter_mut().find(|(own, ..)| *own == kind) {
                Some((.., group)) => group.push(value),
                None => groups.push((kind, form, vec![value])),
            }
        }
        let form = groups.iter().fold(Kinds::NONE, |all, (_, form, _)| all.or(*form));
        let choices: Vec<Value> =
            groups.into_iter().map(|(kind, _, values)| json!({"type": kind, "enum": values})).collect();
        Piece::new(json!({"anyOf": choices}), Op::Same, Form::of(form.without(NULL)))
    }
}

/// Every value as a text: its own if that is clear, else its JSON.
fn listed_as_texts(values: Vec<Value>) -> Piece {
    let json_of_others: Vec<String> = values.iter().filter(|value| !value.is_string()).map(Value::to_string).collect();
    let mut listed: Vec<(Box<str>, Value)> = Vec::with_capacity(values.len());
    for value in values {
        let text = match &value {
            Value::String(text) if !text.is_empty() && !json_of_others.contains(text) => text.clone(),
            other => other.to_string(),
        };
        let mut text = text;
        while listed.iter().any(|(own, _)| **own == *text) {
            text.push(' ');
        }
        listed.push((text.into(), value));
    }
    let texts: Vec<&str> = listed.iter().map(|(text, _)| &**text).collect();
    let schema = json!({"type": "string", "enum": texts});
    let is_same = listed.iter().all(|(text, value)| value == &**text);
    let op = if is_same { Op::Same } else { Op::Listed(listed.into()) };
    Piece::new(schema, op, Form::of(STRING))
}

fn lengths(values: &[Value]) -> usize {
    values.iter().filter_map(Value::as_str).map(str::len).sum()
}

/// The kinds that a `type` names.
fn declared(kind: Option<&Value>) -> Option<Kinds> {
    match kind? {
        Value::String(kind) => Kinds::named(kind).map(or_whole),
        Value::Array(kinds) => {
            Some(or_whole(kinds.iter().filter_map(Value::as_str).filter_map(Kinds::named).fold(Kinds::NONE, Kinds::or)))
        }
        _ => None,
    }
}

/// A number such as 1.0 is whole too.
fn or_whole(kinds: Kinds) -> Kinds {
    if kinds.meets(NUMBER) { kinds.or(NUMBER) } else { kinds }
}

fn common_kind(values: &[Value]) -> Option<(&'static str, Kinds)> {
    let kind = |value: &Value| match value {
        Value::String(_) => Some(("string", STRING)),
        Value::Bool(_) => Some(("boolean", BOOLEAN)),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(("integer", NUMBER)),
        Value::Number(_) => Some(("number", NUMBER)),
        _ => None,
    };
    let first = kind(values.first()?)?;
    values.iter().all(|value| kind(value).is_some_and(|other| other == first)).then_some(first)
}
