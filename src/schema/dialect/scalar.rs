//! Which kind of value a schema is of, and the kinds that have no parts.

use serde_json::{Map, Value, json};

use super::codec::{Op, Pick};
use super::encoder::Encoder;
use super::form::{BOOLEAN, Form, NULL, NUMBER, STRING};
use super::piece::Piece;
use super::union::{Choice, is_annotation};
use crate::schema::check::Kinds;

/// The keywords that limit values of each kind. `items` and the like are structure, not limits.
fn limits(kind: &str) -> &'static [&'static str] {
    match kind {
        "string" => &["minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"],
        "integer" | "number" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"],
        "array" => {
            &["minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"]
        }
        "object" => &[
            "minProperties",
            "maxProperties",
            "propertyNames",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        ],
        _ => &[],
    }
}

/// The kind that the keywords of a schema are about, for one that does not say.
fn implied(map: &Map<String, Value>) -> Option<&'static str> {
    const SIGNS: [(&str, &[&str]); 4] = [
        (
            "object",
            &["properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"],
        ),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]),
        ("string", &["minLength", "maxLength", "pattern", "format"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    SIGNS.into_iter().find(|(_, keys)| keys.iter().any(|key| map.contains_key(*key))).map(|(kind, _)| kind)
}

impl Encoder<'_> {
    /// Encodes a merged schema by the kind of its values.
    pub(super) fn kind(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Piece {
        if map.contains_key("enum") || map.contains_key("const") {
            return self.enumeration(map, at);
        }
        if let Some(union) = self.union_of(map, at, depth) {
            return union;
        }
        match map.get("type") {
            Some(Value::String(kind)) => self.typed(map, kind, at, depth),
            Some(Value::Array(kinds)) if !kinds.is_empty() => {
                let choices = kinds.iter().filter_map(Value::as_str).filter_map(|kind| {
                    let mut single = map.clone();
                    single.insert("type".to_owned(), Value::from(kind));
                    single.retain(|keyword, _| !is_annotation(keyword));
                    let pick = Pick::Kinds(Kinds::named(kind)?);
                    Some(Choice { schema: Value::Object(single), pick, label: Some(kind.to_owned()) })
                });
                let choices: Vec<Choice> = choices.collect();
                self.union(choices, at, depth)
            }
            _ => match implied(map) {
                Some(kind) => self.typed(map, kind, at, depth),
                None => Piece::any(),
            },
        }
    }

    fn typed(&mut self, map: &Map<String, Value>, kind: &str, at: &str, depth: usize) -> Piece {
        match kind {
            "object" => self.record(map, at, depth),
            "array" => self.array(map, at, depth),
            "null" => self.null(),
            "string" | "integer" | "number" | "boolean" => {
                let form = match kind {
                    "string" => STRING,
                    "boolean" => BOOLEAN,
                    _ => NUMBER,
                };
                let mut piece = Piece::new(json!({"type": kind}), Op::Same, Form::of(form));
                self.limit(&mut piece, map, kind, &[], at);
                piece
            }
            _ => Piece::any(),
        }
    }

    fn null(&self) -> Piece {
        let piece = if self.rules.has_null {
            Piece::new(json!({"type": "null"}), Op::Same, Form::of(NULL))
        } else {
            let op = Op::Listed(Box::new([("null".into(), Value::Null)]));
            Piece::new(json!({"type": "string", "enum": ["null"]}), op, Form::of(STRING))
        };
        Piece { is_null: true, ..piece }
    }

    /// Adds the limits of a kind, as keywords where the dialect has them.
    pub(super) fn limit(
        &mut self,
        piece: &mut Piece,
        map: &Map<String, Value>,
        kind: &str,
        settled: &[&str],
        at: &str,
    ) {
        for keyword in limits(kind).iter().filter(|keyword| !settled.contains(keyword)) {
            let Some(value) = map.get(*keyword) else { continue };
            if matches!(value, Value::Bool(false)) {
                continue;
            }
            if (self.rules.keeps)(kind, keyword, value) {
                piece.schema.insert((*keyword).to_owned(), value.clone());
                continue;
            }
            let closed = closed_bound(kind, keyword, value)
                .filter(|(closed, value)| !map.contains_key(*closed) && (self.rules.keeps)(kind, closed, value));
            match closed {
                Some((keyword, value)) => drop(piece.schema.insert(keyword.to_owned(), value)),
                None => self.say(piece, keyword, value, at),
            }
        }
    }
}

/// Of whole numbers, those greater than 3 are those from 4 on.
fn closed_bound(kind: &str, keyword: &str, value: &Value) -> Option<(&'static str, Value)> {
    let bound = value.as_i64().filter(|_| kind == "integer")?;
    match keyword {
        "exclusiveMinimum" => Some(("minimum", Value::from(bound.checked_add(1)?))),
        "exclusiveMaximum" => Some(("maximum", Value::from(bound.checked_sub(1)?))),
        _ => None,
    }
}
