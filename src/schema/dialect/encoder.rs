//! The encoder of narrow dialects: each part of a schema is encoded in what the dialect has, within its limits.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::codec::{ARGUMENTS, Codec, Op};
use super::resolve::standalone;
use super::union::Shape;
use super::{Capabilities, Encoded, Loss, fits};
use super::{beginning, joined, sentence, short};
use crate::json::Document;
use crate::schema::check::KindSet;
use crate::schema::view::pointer;

/// The most parts of a schema that are visited. A schema that has more is encoded as JSON text.
const WORK: usize = 60_000;
/// The most schemas inside of one another.
const LEVELS: usize = 100;
/// The number of times that a definition is expanded inside of itself where the dialect has no references.
const UNROLLED: usize = 2;
/// The most losses that are reported.
const REPORTED: usize = 1_000;
/// The longest schema in a description, in characters.
const SHOWN: usize = 1_000;

/// Encodes the parameters of a tool.
pub(crate) fn encode(parameters: &Arc<Document>, capabilities: &'static Capabilities) -> Encoded {
    let mut root = match parameters.value() {
        root @ Value::Object(_) => root.clone(),
        _ => json!({"properties": {}}),
    };
    if let Value::Object(root) = &mut root
        && !["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"].iter().any(|key| root.contains_key(*key))
    {
        root.insert("type".to_owned(), Value::from("object"));
    }
    // A schema that is too large is encoded with less and less structure, and in the end as JSON text.
    let width = root.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    for depth in [capabilities.depth, 5, 3, 2, 1].into_iter().filter(|_| width <= capabilities.properties) {
        let mut encoder = Encoder::new(&root, capabilities, depth);
        let (schema, op) = encoder.root();
        if !encoder.is_exhausted() && fits(&schema, capabilities) {
            return encoder.finish(schema, op, parameters);
        }
    }
    let mut encoder = Encoder::new(&root, capabilities, 1);
    encoder.report_loss("", "structure", "all arguments are JSON text in one parameter");
    let mut fragment = Fragment::text(vec!["All arguments, as the JSON text of one object.".to_owned()], false);
    fragment.sentences.push(format!("They fit this JSON Schema: {}", short(parameters.text(), SHOWN)));
    let (schema, op) = encoder.inside(fragment);
    encoder.finish(schema, op, parameters)
}

/// The state of the encoder.
pub(super) struct Encoder<'s> {
    pub(super) document: &'s Value,
    pub(super) capabilities: &'static Capabilities,
    /// The depth to which objects and arrays are encoded as such.
    pub(super) depth: usize,
    /// The number of values in enumerations so far.
    pub(super) listed: usize,
    /// The number of properties so far.
    properties: usize,
    losses: Vec<Loss>,
    work: usize,
    level: usize,
    pub(super) definitions: EncodedDefinitions,
    /// The references that are being expanded.
    pub(super) open: Vec<String>,
    /// Those of them with neither an object nor an array in between.
    pub(super) direct: Vec<String>,
}

impl<'s> Encoder<'s> {
    fn new(document: &'s Value, capabilities: &'static Capabilities, depth: usize) -> Self {
        Self {
            document,
            capabilities,
            depth,
            listed: 0,
            properties: 0,
            losses: Vec::new(),
            work: WORK,
            level: 0,
            definitions: EncodedDefinitions::default(),
            open: Vec::new(),
            direct: Vec::new(),
        }
    }

    /// Spends the cost of so many parts; false once the budget is used up.
    pub(super) fn spend(&mut self, parts: usize) -> bool {
        self.work = self.work.saturating_sub(parts);
        self.work > 0
    }

    /// Counts a property. More of them than the dialect takes use up the budget.
    pub(super) fn count_property(&mut self) {
        self.properties += 1;
        if self.properties > self.capabilities.properties {
            self.work = 0;
        }
    }

    fn is_exhausted(&self) -> bool {
        self.work == 0
    }

    /// Reports a part of the schema that the dialect cannot express.
    pub(super) fn report_loss(&mut self, at: &str, what: &str, instead: impl Into<String>) {
        if self.losses.len() < REPORTED {
            self.losses.push(Loss { path: at.to_owned(), what: what.to_owned(), instead: instead.into() });
        }
    }

    fn root(&mut self) -> (Value, Op) {
        let fragment = self.plain(self.document, "", 0);
        let is_object = fragment.schema.get("type").is_some_and(|kind| kind == "object");
        if is_object && fragment.schema.contains_key("properties") {
            let (schema, op, _) = fragment.finish(self.capabilities);
            return (schema, op);
        }
        self.inside(fragment)
    }

    /// Wraps a schema that cannot be the root in an object with one property.
    fn inside(&mut self, fragment: Fragment) -> (Value, Op) {
        let (schema, op, _) = fragment.finish(self.capabilities);
        let schema = self.object(Map::from_iter([(ARGUMENTS.to_owned(), schema)]), vec![Value::from(ARGUMENTS)]);
        (Value::Object(schema), Op::Inside(ARGUMENTS, Box::new(op)))
    }

    /// An object with these properties.
    pub(super) fn object(&self, properties: Map<String, Value>, required: Vec<Value>) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if self.capabilities.requires_all || !required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        if self.capabilities.requires_all {
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

    /// Encodes a schema inside of an object or an array.
    pub(super) fn child(&mut self, schema: &Value, at: &str, depth: usize) -> Fragment {
        let direct = std::mem::take(&mut self.direct);
        let fragment = self.fragment(schema, at, depth + 1);
        self.direct = direct;
        if fragment.adds_nothing { Fragment::any() } else { fragment }
    }

    /// Encodes a schema of the same value as the one around it.
    pub(super) fn fragment(&mut self, schema: &Value, at: &str, depth: usize) -> Fragment {
        if let Value::Object(map) = schema
            && self.capabilities.has_references
            && let Some(target) = pointer(map)
            && (self.open.contains(&target) || map.keys().all(|keyword| is_beside_reference(keyword)))
        {
            let mut fragment = self.reference(&target, depth);
            self.annotate(map, &mut fragment, at);
            for (keyword, value) in map.iter().filter(|(keyword, _)| !is_beside_reference(keyword)) {
                self.describe(&mut fragment, keyword, value, at);
            }
            return fragment;
        }
        self.plain(schema, at, depth)
    }

    /// Encodes a schema in place, whatever it refers to.
    fn plain(&mut self, schema: &Value, at: &str, depth: usize) -> Fragment {
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => {
                self.report_loss(at, "false", "in the description: no value fits");
                let sentences = "No value fits here.".to_owned();
                return Fragment { sentences: vec![sentences], ..Fragment::any() };
            }
            _ => return Fragment::any(),
        };
        if !self.spend(1) || self.level >= LEVELS {
            return self.as_text(schema, at, "nesting");
        }
        let merged = self.merge(map, at);
        if merged.used.iter().any(|used| self.direct.contains(used)) {
            return Fragment::nothing();
        }
        let unrolled = |used: &String| self.open.iter().filter(|open| *open == used).count() >= UNROLLED;
        if merged.used.iter().any(unrolled) {
            return self.as_text(schema, at, "recursion");
        }
        let (open, direct) = (self.open.len(), self.direct.len());
        self.open.extend(merged.used.iter().cloned());
        self.direct.extend(merged.used);
        self.level += 1;
        let fragment = self.kind(&merged.map, at, depth);
        self.level -= 1;
        self.open.truncate(open);
        self.direct.truncate(direct);
        let mut fragment = fragment;
        fragment.sentences.splice(0..0, merged.sentences);
        self.annotate(&merged.map, &mut fragment, at);
        fragment
    }

    /// Encodes a part as JSON text.
    pub(super) fn as_text(&mut self, schema: &Value, at: &str, what: &str) -> Fragment {
        self.report_loss(at, what, "JSON text, whose schema is in the description");
        let schema = beginning(&standalone(schema, self.document, SHOWN), SHOWN);
        self.spend(schema.len() / 64);
        Fragment::text(vec![format!("Written as JSON text that fits this JSON Schema: {schema}")], false)
    }

    /// Adds the annotations of a schema.
    fn annotate(&mut self, map: &Map<String, Value>, fragment: &mut Fragment, at: &str) {
        if let Some(description) = map.get("description").and_then(Value::as_str) {
            fragment.sentences.insert(0, description.to_owned());
        }
        if let Some(examples) =
            map.get("examples").filter(|examples| examples.as_array().is_some_and(|it| !it.is_empty()))
        {
            fragment.sentences.push(sentence("examples", examples));
        }
        if map.get("deprecated").is_some_and(|deprecated| *deprecated == Value::Bool(true)) {
            fragment.sentences.push("Deprecated.".to_owned());
        }
        for keyword in ["not", "if"] {
            if let Some(value) = map.get(keyword) {
                let value = if keyword == "if" {
                    let parts = ["if", "then", "else"].into_iter();
                    parts.filter_map(|part| Some((part.to_owned(), map.get(part)?.clone()))).collect()
                } else {
                    value.clone()
                };
                self.describe(fragment, keyword, &value, at);
            }
        }
    }

    /// Describes a keyword in a sentence and reports the loss.
    pub(super) fn describe(&mut self, fragment: &mut Fragment, keyword: &str, value: &Value, at: &str) {
        let sentence = sentence(keyword, value);
        self.report_loss(at, keyword, format!("in the description: {sentence}"));
        fragment.sentences.push(sentence);
    }
}

/// True if a keyword limits nothing where it is beside a reference.
fn is_beside_reference(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "description" | "title" | "default" | "examples" | "deprecated" | "not" | "if")
}

/// An encoded part of a schema, and the conversion of its values.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) schema: Map<String, Value>,
    /// Sentences of its description.
    pub(super) sentences: Vec<String>,
    pub(super) op: Op,
    pub(super) shape: Shape,
    /// True if it accepts only `null`, whatever its encoding.
    pub(super) is_null: bool,
    /// True if it refers to the union that it is a branch of.
    pub(super) adds_nothing: bool,
}

impl Fragment {
    pub(super) fn new(schema: Value, op: Op, shape: Shape) -> Self {
        let schema = if let Value::Object(schema) = schema { schema } else { Map::new() };
        Self { schema, sentences: Vec::new(), op, shape, is_null: false, adds_nothing: false }
    }

    /// A value written as JSON text.
    pub(super) fn text(sentences: Vec<String>, plain: bool) -> Self {
        Self { sentences, ..Self::new(json!({"type": "string"}), Op::Text { plain }, Shape::of(KindSet::STRING)) }
    }

    /// Any value.
    pub(super) fn any() -> Self {
        let sentences =
            "Any value, written as JSON text, for example \"42\", \"[1, 2]\" or \"{\\\"a\\\": 1}\".".to_owned();
        Self::text(vec![sentences], true)
    }

    pub(super) fn nothing() -> Self {
        Self { adds_nothing: true, ..Self::any() }
    }

    /// The same, or `null`.
    pub(super) fn or_null(mut self, capabilities: &Capabilities) -> Self {
        if self.shape.has_null() {
            return self;
        }
        if capabilities.has_null {
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
        self.shape = self.shape.or_null();
        self.op = self.op.or_null();
        self
    }

    /// The schema with its description, and the conversion of its values.
    pub(super) fn finish(self, capabilities: &Capabilities) -> (Value, Op, Shape) {
        let Self { schema, sentences, op, shape, .. } = self;
        (described(schema, sentences, capabilities), op, shape)
    }
}

fn described(mut schema: Map<String, Value>, sentences: Vec<String>, capabilities: &Capabilities) -> Value {
    let description = joined(sentences);
    if description.is_empty() {
        return Value::Object(schema);
    }
    if schema.contains_key("$ref") {
        // Nothing may be beside a reference.
        schema = Map::from_iter([("anyOf".to_owned(), json!([schema]))]);
    }
    let place = match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(choices) if capabilities.isolates_unions => choices.first_mut().and_then(Value::as_object_mut),
        _ => None,
    };
    match place {
        Some(first) => {
            let own = first.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            first.insert("description".to_owned(), Value::from(joined([description, own])));
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

/// The number of nested schemas that are searched for `null`.
const NULL_LEVELS: usize = 100;

/// The definitions of an encoded schema, in the order of first use.
#[derive(Default)]
pub(super) struct EncodedDefinitions {
    all: Vec<EncodedDefinition>,
    by_pointer: HashMap<String, usize>,
}

/// A part that is referred to.
struct EncodedDefinition {
    name: String,
    /// `None` while it is being encoded.
    done: Option<(Value, Op, Shape)>,
}

impl EncodedDefinitions {
    /// The definitions and the conversions of their values.
    pub(super) fn finish(self) -> (Map<String, Value>, Vec<Op>) {
        let mut definitions = Map::new();
        let mut shared = Vec::with_capacity(self.all.len());
        for EncodedDefinition { name, done } in self.all {
            let (schema, op) = done.map_or((json!({}), Op::Same), |(schema, op, _)| (schema, op));
            definitions.insert(name, schema);
            shared.push(op);
        }
        (definitions, shared)
    }

    /// A unique name for a definition.
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
    /// Encodes a reference; its definition is encoded on first use.
    pub(super) fn reference(&mut self, target: &str, depth: usize) -> Fragment {
        if self.direct.iter().any(|direct| direct == target) {
            return Fragment::nothing();
        }
        let index = match self.definitions.by_pointer.get(target) {
            Some(index) => *index,
            None => self.define(target, depth),
        };
        let definition = &self.definitions.all[index];
        let schema = json!({"$ref": format!("#/$defs/{}", definition.name)});
        let (op, shape) = match &definition.done {
            Some((_, Op::Same, shape)) => (Op::Same, shape.clone()),
            Some((_, _, shape)) => (Op::Shared(index), shape.clone()),
            None => (Op::Shared(index), self.outline(target)),
        };
        Fragment::new(schema, op, shape)
    }

    fn define(&mut self, target: &str, depth: usize) -> usize {
        let index = self.definitions.all.len();
        let name = self.definitions.name(target);
        self.definitions.by_pointer.insert(target.to_owned(), index);
        self.definitions.all.push(EncodedDefinition { name: name.clone(), done: None });
        let document = self.document;
        let schema = document.pointer(target).unwrap_or(&Value::Null);
        let (open, direct) = (self.open.len(), self.direct.len());
        self.open.push(target.to_owned());
        self.direct.push(target.to_owned());
        // With nothing in between, a definition is as deep as the reference to it.
        let depth = if direct > 0 { depth } else { 0 };
        let fragment = self.fragment(schema, &name, depth);
        self.open.truncate(open);
        self.direct.truncate(direct);
        let fragment = if fragment.adds_nothing { Fragment::any() } else { fragment };
        self.definitions.all[index].done = Some(fragment.finish(self.capabilities));
        index
    }

    /// The shape of a definition that is still being encoded, as far as it is known: most of all whether it can be `null`.
    fn outline(&self, target: &str) -> Shape {
        let schema = self.document.pointer(target).unwrap_or(&Value::Null);
        if let Some(shape) = self.object_shape(schema) {
            return shape;
        }
        let kinds = if self.admits_null(schema, 0) { KindSet::ALL } else { KindSet::ALL.without(KindSet::NULL) };
        Shape::of(kinds)
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
            || level < NULL_LEVELS
                && (["anyOf", "oneOf", "allOf"].iter().any(|key| lists(key, &|it| self.admits_null(it, level + 1)))
                    || pointer(map)
                        .and_then(|target| self.document.pointer(&target))
                        .is_some_and(|target| self.admits_null(target, level + 10)))
    }
}
