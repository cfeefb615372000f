//! A schema in a narrow dialect: each part is encoded in what the dialect has, within its limits.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::codec::{ARGUMENTS, Codec, Op};
use super::definition::Definitions;
use super::measure::fits;
use super::piece::Piece;
use super::rules::Rules;
use super::standalone::standalone;
use super::{Encoded, Loss, words};
use crate::schema::Document;
use crate::schema::check::pointer;

/// How many parts of a schema are looked at. A schema that has more is told as text.
const WORK: usize = 60_000;
/// How many schemas may stand inside of one another.
const LEVELS: usize = 100;
/// How often a definition is written out inside of itself where nothing can refer to it.
const UNROLLED: usize = 2;
/// How many losses are reported one by one.
const REPORTED: usize = 1_000;
/// How long a schema may be where it is told in words.
const SHOWN: usize = 1_000;

/// Encodes the parameters of a tool.
pub(crate) fn encode(parameters: &Arc<Document>, rules: &'static Rules) -> Encoded {
    let mut root = match parameters.value() {
        root @ Value::Object(_) => root.clone(),
        _ => json!({"properties": {}}),
    };
    if let Value::Object(root) = &mut root
        && !["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"].iter().any(|key| root.contains_key(*key))
    {
        root.insert("type".to_owned(), Value::from("object"));
    }
    // What is too large is told with less and less structure, and in the end as one text.
    let width = root.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    for depth in [rules.depth, 5, 3, 2, 1].into_iter().filter(|_| width <= rules.properties) {
        let mut encoder = Encoder::new(&root, rules, depth);
        let (schema, op) = encoder.root();
        if !encoder.is_exhausted() && fits(&schema, rules) {
            return encoder.finish(schema, op, parameters);
        }
    }
    let mut encoder = Encoder::new(&root, rules, 1);
    encoder.lose("", "structure", "all arguments are JSON text in one parameter");
    let mut piece = Piece::text(vec!["All arguments, as the JSON text of one object.".to_owned()], false);
    piece.words.push(format!("They fit this JSON Schema: {}", words::short(parameters.text(), SHOWN)));
    let (schema, op) = encoder.inside(piece);
    encoder.finish(schema, op, parameters)
}

/// What is known while a schema is encoded.
pub(super) struct Encoder<'s> {
    pub(super) document: &'s Value,
    pub(super) rules: &'static Rules,
    /// How deep objects and arrays are told as such.
    pub(super) depth: usize,
    /// How many values enumerations have so far.
    pub(super) listed: usize,
    /// How many properties objects have so far.
    properties: usize,
    losses: Vec<Loss>,
    work: usize,
    level: usize,
    pub(super) definitions: Definitions,
    /// The references that are being written out.
    pub(super) open: Vec<String>,
    /// Those of them that led here without an object or an array between.
    pub(super) direct: Vec<String>,
}

impl<'s> Encoder<'s> {
    fn new(document: &'s Value, rules: &'static Rules, depth: usize) -> Self {
        Self {
            document,
            rules,
            depth,
            listed: 0,
            properties: 0,
            losses: Vec::new(),
            work: WORK,
            level: 0,
            definitions: Definitions::default(),
            open: Vec::new(),
            direct: Vec::new(),
        }
    }

    /// Takes what it costs to look at so many parts.
    pub(super) fn spend(&mut self, parts: usize) -> bool {
        self.work = self.work.saturating_sub(parts);
        self.work > 0
    }

    /// Counts a property; more of them than the dialect takes are not looked at.
    pub(super) fn count_property(&mut self) {
        self.properties += 1;
        if self.properties > self.rules.properties {
            self.work = 0;
        }
    }

    fn is_exhausted(&self) -> bool {
        self.work == 0
    }

    /// Reports something that the dialect has no word for.
    pub(super) fn lose(&mut self, at: &str, what: &str, instead: impl Into<String>) {
        if self.losses.len() < REPORTED {
            self.losses.push(Loss { path: at.to_owned(), what: what.to_owned(), instead: instead.into() });
        }
    }

    fn root(&mut self) -> (Value, Op) {
        let piece = self.plain(self.document, "", 0);
        let is_object = piece.schema.get("type").is_some_and(|kind| kind == "object");
        if is_object && piece.schema.contains_key("properties") {
            let (schema, op, _) = piece.finish(self.rules);
            return (schema, op);
        }
        self.inside(piece)
    }

    /// What cannot be the root is the one property of it.
    fn inside(&mut self, piece: Piece) -> (Value, Op) {
        let (schema, op, _) = piece.finish(self.rules);
        let schema = self.object(Map::from_iter([(ARGUMENTS.to_owned(), schema)]), vec![Value::from(ARGUMENTS)]);
        (Value::Object(schema), Op::Inside(ARGUMENTS, Box::new(op)))
    }

    /// An object with these properties.
    pub(super) fn object(&self, properties: Map<String, Value>, required: Vec<Value>) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if self.rules.requires_all || !required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        if self.rules.requires_all {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        schema
    }

    fn finish(self, mut schema: Value, op: Op, document: &Arc<Document>) -> Encoded {
        let (definitions, shared) = self.definitions.finish();
        if let Value::Object(schema) = &mut schema
            && !definitions.is_empty()
        {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Encoded { schema, codec: Codec::new(op, shared, document.clone()), report: self.losses }
    }

    /// Encodes a schema that stands inside of an object or an array.
    pub(super) fn child(&mut self, schema: &Value, at: &str, depth: usize) -> Piece {
        let direct = std::mem::take(&mut self.direct);
        let piece = self.piece(schema, at, depth + 1);
        self.direct = direct;
        if piece.adds_nothing { Piece::any() } else { piece }
    }

    /// Encodes a schema that stands for the same value as the one around it.
    pub(super) fn piece(&mut self, schema: &Value, at: &str, depth: usize) -> Piece {
        if let Value::Object(map) = schema
            && self.rules.has_references
            && let Some(target) = pointer(map)
            && (self.open.contains(&target) || map.keys().all(|keyword| is_beside_reference(keyword)))
        {
            let mut piece = self.reference(&target, depth);
            self.annotate(map, &mut piece, at);
            for (keyword, value) in map.iter().filter(|(keyword, _)| !is_beside_reference(keyword)) {
                self.say(&mut piece, keyword, value, at);
            }
            return piece;
        }
        self.plain(schema, at, depth)
    }

    /// Encodes a schema in place, whatever it refers to.
    fn plain(&mut self, schema: &Value, at: &str, depth: usize) -> Piece {
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => {
                self.lose(at, "false", "in the description: no value fits");
                let words = "No value fits here.".to_owned();
                return Piece { words: vec![words], ..Piece::any() };
            }
            _ => return Piece::any(),
        };
        if !self.spend(1) || self.level >= LEVELS {
            return self.as_text(schema, at, "nesting");
        }
        let merged = self.merge(map, at);
        if merged.used.iter().any(|used| self.direct.contains(used)) {
            return Piece::nothing();
        }
        let unrolled = |used: &String| self.open.iter().filter(|open| *open == used).count() >= UNROLLED;
        if merged.used.iter().any(unrolled) {
            return self.as_text(schema, at, "recursion");
        }
        let (open, direct) = (self.open.len(), self.direct.len());
        self.open.extend(merged.used.iter().cloned());
        self.direct.extend(merged.used);
        self.level += 1;
        let piece = self.kind(&merged.map, at, depth);
        self.level -= 1;
        self.open.truncate(open);
        self.direct.truncate(direct);
        let mut piece = piece;
        piece.words.splice(0..0, merged.words);
        self.annotate(&merged.map, &mut piece, at);
        piece
    }

    /// A part that is told as text.
    pub(super) fn as_text(&mut self, schema: &Value, at: &str, what: &str) -> Piece {
        self.lose(at, what, "JSON text, whose schema is in the description");
        let schema = words::beginning(&standalone(schema, self.document, SHOWN), SHOWN);
        self.spend(schema.len() / 64);
        Piece::text(vec![format!("Written as JSON text that fits this JSON Schema: {schema}")], false)
    }

    /// Adds what a schema says about itself without limiting anything.
    fn annotate(&mut self, map: &Map<String, Value>, piece: &mut Piece, at: &str) {
        if let Some(description) = map.get("description").and_then(Value::as_str) {
            piece.words.insert(0, description.to_owned());
        }
        if let Some(examples) =
            map.get("examples").filter(|examples| examples.as_array().is_some_and(|it| !it.is_empty()))
        {
            piece.words.push(words::sentence("examples", examples));
        }
        if map.get("deprecated").is_some_and(|deprecated| *deprecated == Value::Bool(true)) {
            piece.words.push("Deprecated.".to_owned());
        }
        for keyword in ["not", "if"] {
            if let Some(value) = map.get(keyword) {
                let value = if keyword == "if" {
                    let parts = ["if", "then", "else"].into_iter();
                    parts.filter_map(|part| Some((part.to_owned(), map.get(part)?.clone()))).collect()
                } else {
                    value.clone()
                };
                self.say(piece, keyword, &value, at);
            }
        }
    }

    /// Tells a keyword in words and reports it.
    pub(super) fn say(&mut self, piece: &mut Piece, keyword: &str, value: &Value, at: &str) {
        let sentence = words::sentence(keyword, value);
        self.lose(at, keyword, format!("in the description: {sentence}"));
        piece.words.push(sentence);
    }
}

/// Whether a keyword limits nothing where it stands beside a reference.
fn is_beside_reference(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "description" | "title" | "default" | "examples" | "deprecated" | "not" | "if")
}
