//! One of several schemas: told apart by what the values look like, or else by a name that goes with them.

use serde_json::{Map, Value, json};

use super::codec::{Branch, CHOICE, Op, Pick, VALUE};
use super::encoder::Encoder;
use super::form::{Form, Keys};
use super::piece::Piece;
use super::words;
use crate::schema::check::{Kinds, pointer};

/// One of the schemas.
pub(super) struct Choice {
    pub(super) schema: Value,
    pub(super) pick: Pick,
    pub(super) label: Option<String>,
}

/// A choice in the dialect.
struct Encoded {
    label: Option<String>,
    pick: Pick,
    piece: Piece,
}

impl Encoder<'_> {
    /// Encodes `anyOf` or `oneOf`, if there is one that is more than a condition on what stands beside it.
    pub(super) fn union_of(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Option<Piece> {
        let keyword = ["anyOf", "oneOf"]
            .into_iter()
            .find(|keyword| map.get(*keyword).and_then(Value::as_array).is_some_and(|choices| !choices.is_empty()))?;
        let choices = map.get(keyword)?.as_array()?;
        let mut base = map.clone();
        base.shift_remove(keyword);
        let other = ["anyOf", "oneOf"].into_iter().find(|other| base.contains_key(*other));
        let other = other.and_then(|other| Some((other, base.shift_remove(other)?)));
        base.retain(|keyword, _| !is_annotation(keyword));
        let mut piece = if !base.is_empty() && choices.iter().all(is_condition) {
            let mut piece = self.kind(&base, at, depth);
            self.say(&mut piece, keyword, &map[keyword], at);
            piece
        } else {
            if !self.spend(choices.len() * (base.len() + 1)) {
                return Some(Piece::any());
            }
            let base = Value::Object(base);
            let has_base = base.as_object().is_some_and(|base| !base.is_empty());
            let choices = choices.iter().map(|choice| Choice {
                schema: if has_base { json!({"allOf": [choice, base]}) } else { choice.clone() },
                pick: Pick::by(choice),
                label: label_of(choice),
            });
            let choices: Vec<Choice> = choices.collect();
            self.union(choices, at, depth)
        };
        if let Some((other, value)) = other {
            self.say(&mut piece, other, &value, at);
        }
        Some(piece)
    }

    /// Encodes a union.
    pub(super) fn union(&mut self, choices: Vec<Choice>, at: &str, depth: usize) -> Piece {
        let mut encoded: Vec<Encoded> = Vec::with_capacity(choices.len());
        let mut has_null = false;
        for Choice { schema, pick, label } in choices {
            let piece = self.piece(&schema, at, depth);
            if piece.is_null {
                has_null = true;
            } else if !piece.adds_nothing {
                encoded.push(Encoded { label, pick, piece });
            }
        }
        let piece = match encoded.len() {
            0 if has_null => return self.kind(&Map::from_iter([("type".to_owned(), Value::from("null"))]), at, depth),
            0 => return Piece::nothing(),
            1 => encoded.swap_remove(0).piece,
            _ => self.several(encoded),
        };
        if has_null { piece.or_null(self.rules) } else { piece }
    }

    fn several(&mut self, choices: Vec<Encoded>) -> Piece {
        if choices.iter().all(|choice| choice.piece.op.is_same()) {
            return self.side_by_side(choices, |_| Op::Same);
        }
        let clashes = choices.iter().enumerate().any(|(index, one)| {
            choices[..index].iter().any(|other| {
                let is_same = one.piece.op.is_same() && other.piece.op.is_same();
                !is_same && one.piece.form.meets(&other.piece.form)
            })
        });
        if clashes { self.tagged(choices) } else { self.side_by_side(choices, |branches| Op::Choice(branches.into())) }
    }

    /// The choices as they are.
    fn side_by_side(&mut self, choices: Vec<Encoded>, op: fn(Vec<Branch>) -> Op) -> Piece {
        let form = choices.iter().skip(1).fold(choices[0].piece.form.clone(), |all, it| all.or(&it.piece.form));
        let mut schemas: Vec<Value> = Vec::with_capacity(choices.len());
        let mut branches = Vec::with_capacity(choices.len());
        for Encoded { pick, piece, .. } in choices {
            let (schema, op, form) = piece.finish(self.rules);
            branches.push(Branch { label: "".into(), form, pick, op });
            let inner = schema.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("anyOf")?.as_array());
            match inner {
                Some(inner) => schemas.extend(inner.iter().cloned()),
                None => schemas.push(schema),
            }
        }
        let mut unique: Vec<Value> = Vec::with_capacity(schemas.len());
        for schema in schemas {
            if unique.len() > 100 || !unique.contains(&schema) {
                unique.push(schema);
            }
        }
        let schema = if unique.len() == 1 { unique.swap_remove(0) } else { json!({"anyOf": unique}) };
        Piece::new(schema, op(branches), form)
    }

    /// The choices in objects that name them.
    fn tagged(&mut self, choices: Vec<Encoded>) -> Piece {
        let mut schemas = Vec::with_capacity(choices.len());
        let mut branches: Vec<Branch> = Vec::with_capacity(choices.len());
        for (index, Encoded { label, pick, mut piece }) in choices.into_iter().enumerate() {
            let label = label.filter(|label| !branches.iter().any(|branch| *branch.label == **label));
            let label = label.unwrap_or_else(|| format!("option_{}", index + 1));
            let words = std::mem::take(&mut piece.words);
            let (schema, op, form) = Piece { words, ..piece }.finish(self.rules);
            let tag = json!({"type": "string", "enum": [label]});
            let properties = Map::from_iter([(CHOICE.to_owned(), tag), (VALUE.to_owned(), schema)]);
            let object = self.object(properties, vec![Value::from(CHOICE), Value::from(VALUE)]);
            self.listed += 1;
            schemas.push(Value::Object(object));
            branches.push(Branch { label: label.into(), form, pick, op });
        }
        let keys = || vec![CHOICE.into(), VALUE.into()];
        let form = Form::object(Keys { required: keys(), all: keys(), tags: Vec::new() });
        Piece::new(json!({"anyOf": schemas}), Op::Tagged(branches.into()), form)
    }
}

/// Whether a keyword only speaks about the schema.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "$defs"
            | "definitions"
            | "$schema"
            | "$id"
            | "$comment"
            | "$anchor"
            | "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "discriminator"
            | "readOnly"
            | "writeOnly"
            | "not"
            | "if"
            | "then"
            | "else"
    )
}

/// Whether a schema says nothing about what a value is made of.
fn is_condition(schema: &Value) -> bool {
    schema.as_object().is_some_and(|map| {
        map.keys().all(|key| {
            matches!(&**key, "required" | "not" | "minProperties" | "maxProperties" | "title" | "description")
        })
    })
}

fn label_of(schema: &Value) -> Option<String> {
    let map = schema.as_object()?;
    let title = map.get("title").and_then(Value::as_str).map(str::to_owned);
    let referred = || pointer(map)?.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
    let kind = || map.get("type").and_then(Value::as_str).filter(|it| Kinds::named(it).is_some()).map(str::to_owned);
    title.or_else(referred).or_else(kind).map(|label| words::short(&label, 60))
}
