//! Parts that are referred to, each encoded once: only where a dialect has references.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::codec::Op;
use super::encoder::Encoder;
use super::form::{Form, NULL};
use super::piece::Piece;
use crate::schema::check::{Kinds, pointer};

/// How many schemas are looked through for a `null`.
const LEVELS: usize = 100;

/// The definitions of a schema, in the order in which they were first referred to.
#[derive(Default)]
pub(super) struct Definitions {
    all: Vec<Definition>,
    by_pointer: HashMap<String, usize>,
}

/// A part that is referred to.
struct Definition {
    name: String,
    /// Nothing while it is being encoded.
    done: Option<(Value, Op, Form)>,
}

impl Definitions {
    /// What the schema defines, and how values of it come back.
    pub(super) fn finish(self) -> (Map<String, Value>, Vec<Op>) {
        let mut definitions = Map::new();
        let mut shared = Vec::with_capacity(self.all.len());
        for Definition { name, done } in self.all {
            let (schema, op) = done.map_or((json!({}), Op::Same), |(schema, op, _)| (schema, op));
            definitions.insert(name, schema);
            shared.push(op);
        }
        (definitions, shared)
    }

    /// A name that no other definition has.
    fn name(&self, target: &str) -> String {
        let last = target.rsplit('/').next().unwrap_or_default();
        let word = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = last.chars().map(word).take(40).collect();
        if name.is_empty() {
            name.push_str("Root");
        }
        while self.all.iter().any(|definition| definition.name == name) {
            name = format!("{name}_{}", self.all.len());
        }
        name
    }
}

impl Encoder<'_> {
    /// A reference to a definition, which is encoded when it is first referred to.
    pub(super) fn reference(&mut self, target: &str, depth: usize) -> Piece {
        if self.direct.iter().any(|direct| direct == target) {
            return Piece::nothing();
        }
        let index = match self.definitions.by_pointer.get(target) {
            Some(index) => *index,
            None => self.define(target, depth),
        };
        let definition = &self.definitions.all[index];
        let schema = json!({"$ref": format!("#/$defs/{}", definition.name)});
        let (op, form) = match &definition.done {
            Some((_, Op::Same, form)) => (Op::Same, form.clone()),
            Some((_, _, form)) => (Op::Shared(index), form.clone()),
            None => (Op::Shared(index), self.outline(target)),
        };
        Piece::new(schema, op, form)
    }

    fn define(&mut self, target: &str, depth: usize) -> usize {
        let index = self.definitions.all.len();
        let name = self.definitions.name(target);
        self.definitions.by_pointer.insert(target.to_owned(), index);
        self.definitions.all.push(Definition { name: name.clone(), done: None });
        let document = self.document;
        let schema = document.pointer(target).unwrap_or(&Value::Null);
        let (open, direct) = (self.open.len(), self.direct.len());
        self.open.push(target.to_owned());
        self.direct.push(target.to_owned());
        // Where nothing is in between, a definition is as deep as what refers to it.
        let depth = if direct > 0 { depth } else { 0 };
        let piece = self.piece(schema, &name, depth);
        self.open.truncate(open);
        self.direct.truncate(direct);
        let piece = if piece.adds_nothing { Piece::any() } else { piece };
        self.definitions.all[index].done = Some(piece.finish(self.rules));
        index
    }

    /// What is known about a definition that is still being encoded: whether it can be `null`.
    fn outline(&self, target: &str) -> Form {
        let schema = self.document.pointer(target).unwrap_or(&Value::Null);
        if let Some(form) = self.record_form(schema) {
            return form;
        }
        let kinds = if self.admits_null(schema, 0) { Kinds::ALL } else { Kinds::ALL.without(NULL) };
        Form::of(kinds)
    }

    fn admits_null(&self, schema: &Value, level: usize) -> bool {
        let Value::Object(map) = schema else { return false };
        let lists = |key: &str, null: &dyn Fn(&Value) -> bool| {
            map.get(key).and_then(Value::as_array).is_some_and(|values| values.iter().any(null))
        };
        map.get("type").is_some_and(|kind| kind == "null")
            || map.get("const").is_some_and(Value::is_null)
            || lists("type", &|kind| kind == "null")
            || lists("enum", &Value::is_null)
            || level < LEVELS
                && (["anyOf", "oneOf", "allOf"].iter().any(|key| lists(key, &|it| self.admits_null(it, level + 1)))
                    || pointer(map)
                        .and_then(|target| self.document.pointer(&target))
                        .is_some_and(|target| self.admits_null(target, level + 10)))
    }
}
