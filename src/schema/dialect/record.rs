//! Objects with named fields, and maps.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::codec::{Absence, Field, Fields, KEY, Op, VALUE};
use super::encoder::Encoder;
use super::form::{ARRAY, Form, Keys};
use super::names;
use super::piece::Piece;
use super::words;

/// The property that holds the entries of an object that have no property of their own.
const OTHERS: &str = "additional_properties";

/// The fields of an object so far.
#[derive(Default)]
pub(super) struct Told {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<Value>,
    pub(super) fields: Vec<Field>,
    pub(super) keys: Keys,
}

impl Encoder<'_> {
    pub(super) fn record(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Piece {
        let empty = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: HashSet<&str> =
            map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let others = Others::of(map);
        if properties.is_empty() && required.is_empty() {
            return match others {
                Others::None => self.empty_record(map, at),
                Others::Unsaid if map.contains_key("properties") => self.empty_record(map, at),
                Others::Unsaid if depth == 0 => {
                    self.lose(at, "entries", "nothing: the schema names none, so that none can be sent");
                    self.empty_record(map, at)
                }
                Others::Unsaid | Others::Any if !map.contains_key("propertyNames") => free_object(),
                others => self.map_of(map, others.schema(), at, depth),
            };
        }
        if depth >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        let mut told = Told::default();
        for (name, property) in properties {
            if !self.spend(1) {
                break;
            }
            self.tell_field(&mut told, name, property, required.contains(&**name), &entry(at, name), depth);
        }
        // What is required without being described must be sent all the same.
        let named = map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in named.filter(|name| !properties.contains_key(*name)) {
            self.tell_field(&mut told, name, &Value::Bool(true), true, &entry(at, name), depth);
        }
        let rest = match others {
            Others::None | Others::Unsaid => None,
            others => Some(self.tell_others(&mut told, others.schema(), at, depth)),
        };
        let fields = Fields { named: told.fields, rest, explicit: self.rules.requires_all };
        let schema = self.object(told.properties, told.required);
        let mut piece = Piece::new(Value::Object(schema), fields.into_op(), Form::object(told.keys));
        self.limit(&mut piece, map, "object", &[], at);
        piece
    }

    fn empty_record(&mut self, map: &Map<String, Value>, at: &str) -> Piece {
        if at.is_empty() || self.rules.has_empty_objects {
            let schema = self.object(Map::new(), Vec::new());
            let mut piece = Piece::new(Value::Object(schema), Op::Same, Form::object(Keys::default()));
            self.limit(&mut piece, map, "object", &[], at);
            return piece;
        }
        self.enumeration(&Map::from_iter([("const".to_owned(), json!({}))]), at)
    }

    /// Adds a field, in the way that one is told that may be left out.
    pub(super) fn tell_field(
        &mut self,
        told: &mut Told,
        name: &str,
        property: &Value,
        is_required: bool,
        at: &str,
        depth: usize,
    ) {
        self.count_property();
        let mut piece = self.child(property, at, depth);
        let mut outer = names::safe(name, self.rules.is_name).into_owned();
        while told.properties.contains_key(&outer) {
            outer.push('_');
        }
        if outer != name {
            piece.words.push(names::in_full(name));
        }
        let default = property.get("default");
        let mut absence = Absence::Missing;
        if !is_required {
            if let Some(default) = default.filter(|default| !default.is_null()) {
                piece.words.push(words::sentence("default", default));
            }
            (piece, absence) = self.leave_out(piece, default);
        }
        if self.rules.requires_all || is_required {
            told.required.push(Value::from(outer.as_str()));
            told.keys.required.push(outer.as_str().into());
        }
        told.keys.all.push(outer.as_str().into());
        let (schema, op, _) = piece.finish(self.rules);
        if matches!(op, Op::Same)
            && is_required
            && schema.get("type").is_some_and(|kind| kind == "string")
            && let Some(Value::Array(texts)) = schema.get("enum")
        {
            told.keys.tags.push((outer.as_str().into(), texts.clone()));
        }
        told.properties.insert(outer.clone(), schema);
        told.fields.push(Field { outer: outer.into(), inner: name.into(), op, absence });
    }

    /// A field that may be left out: by leaving it out, or by `null` where every field must be there.
    fn leave_out(&self, mut piece: Piece, default: Option<&Value>) -> (Piece, Absence) {
        let has_null = piece.form.has_null();
        if !self.rules.requires_all {
            let absence = if has_null { Absence::Missing } else { Absence::Lenient };
            return (piece, absence);
        }
        // By the schema's own word, `null` and nothing are the same here.
        if has_null && default.is_some_and(Value::is_null) {
            return (piece, Absence::Null);
        }
        if !has_null {
            piece.words.push("null leaves it out.".to_owned());
            // This `null` is no value, so that nothing is to be done to it.
            let op = std::mem::replace(&mut piece.op, Op::Same);
            return (Piece { op, ..piece.or_null(self.rules) }, Absence::Null);
        }
        let mut words = std::mem::take(&mut piece.words);
        words.push("null leaves it out; a value is in an object, and may be null itself.".to_owned());
        let op = std::mem::replace(&mut piece.op, Op::Same);
        let (schema, ..) = piece.finish(self.rules);
        let boxed = self.object(Map::from_iter([(VALUE.to_owned(), schema)]), vec![Value::from(VALUE)]);
        let piece = Piece::new(Value::Object(boxed), Op::Same, Form::object(Keys::default())).or_null(self.rules);
        // The field takes the value out of its box before anything is done to it.
        (Piece { words, op, ..piece }, Absence::Boxed)
    }

    /// Adds the property for all other entries.
    fn tell_others(&mut self, told: &mut Told, values: &Value, at: &str, depth: usize) -> (Box<str>, Op) {
        let mut name = OTHERS.to_owned();
        while told.properties.contains_key(&name) {
            name.push('_');
        }
        let piece = self.map_of(&Map::new(), values, &entry(at, "*"), depth + 1);
        let (mut schema, op, _) = piece.finish(self.rules);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), Value::from("All other entries."));
        }
        told.properties.insert(name.clone(), schema);
        told.keys.all.push(name.as_str().into());
        if self.rules.requires_all {
            told.required.push(Value::from(name.as_str()));
            told.keys.required.push(name.as_str().into());
        }
        (name.into(), op)
    }

    /// A map as a list of its entries.
    fn map_of(&mut self, map: &Map<String, Value>, values: &Value, at: &str, depth: usize) -> Piece {
        if depth + 1 >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        let key = self.key_of(map, at);
        let value = self.child(values, &entry(at, "*"), depth + 1);
        let (value, op, _) = value.finish(self.rules);
        let pair = Map::from_iter([(KEY.to_owned(), key), (VALUE.to_owned(), value)]);
        let pair = self.object(pair, vec![Value::from(KEY), Value::from(VALUE)]);
        let mut piece = Piece::new(json!({"type": "array", "items": pair}), Op::Pairs(Box::new(op)), Form::of(ARRAY));
        piece.words.push("A list of entries, each key once.".to_owned());
        let mut limits = Map::new();
        for (of_map, of_list) in [("minProperties", "minItems"), ("maxProperties", "maxItems")] {
            limits.extend(map.get(of_map).map(|size| (of_list.to_owned(), size.clone())));
        }
        self.limit(&mut piece, &limits, "array", &[], at);
        self.limit(&mut piece, map, "object", &["minProperties", "maxProperties", "propertyNames"], at);
        piece
    }

    fn key_of(&mut self, map: &Map<String, Value>, at: &str) -> Value {
        let mut names = match map.get("propertyNames") {
            Some(Value::Object(names)) => names.clone(),
            _ => Map::new(),
        };
        if let Some(pattern) = only_pattern(map) {
            names.insert("pattern".to_owned(), Value::from(pattern));
        }
        names.insert("type".to_owned(), Value::from("string"));
        let (schema, op, _) = self.child(&Value::Object(names), at, 0).finish(self.rules);
        let is_text = matches!(op, Op::Same) && schema.get("type").is_some_and(|kind| kind == "string");
        if is_text { schema } else { json!({"type": "string"}) }
    }

    /// The form of a plain record, before it is encoded.
    pub(super) fn record_form(&self, schema: &Value) -> Option<Form> {
        let map = schema.as_object()?;
        let is_plain = !["$ref", "allOf", "anyOf", "oneOf", "enum", "const"].iter().any(|key| map.contains_key(*key));
        let is_closed = matches!(Others::of(map), Others::None | Others::Unsaid);
        let properties = map.get("properties")?.as_object().filter(|it| is_plain && is_closed && !it.is_empty())?;
        let mut keys = Keys::default();
        for name in properties.keys() {
            let outer = names::safe(name, self.rules.is_name);
            keys.required.push(outer.as_ref().into());
            keys.all.push(outer.into());
        }
        Some(Form::object(keys))
    }
}

/// An object of which nothing is known.
fn free_object() -> Piece {
    Piece::text(vec!["A JSON object, written as text, for example \"{\\\"a\\\": 1}\".".to_owned()], false)
}

/// What a schema says about entries that are not named in it.
enum Others<'a> {
    /// There are none.
    None,
    Unsaid,
    Any,
    Of(&'a Value),
}

impl<'a> Others<'a> {
    fn of(map: &'a Map<String, Value>) -> Self {
        let patterns = map.get("patternProperties").and_then(Value::as_object).filter(|it| !it.is_empty());
        match (map.get("additionalProperties"), patterns) {
            (None | Some(Value::Bool(false)), Some(patterns)) if patterns.len() == 1 => {
                patterns.values().next().map_or(Self::Any, Self::Of)
            }
            (_, Some(_)) | (Some(Value::Bool(true)), None) => Self::Any,
            (Some(Value::Bool(false)), None) => Self::None,
            (Some(Value::Object(schema)), None) if schema.is_empty() => Self::Any,
            (Some(schema), None) => Self::Of(schema),
            (None, None) => Self::Unsaid,
        }
    }

    fn schema(&self) -> &'a Value {
        if let Self::Of(schema) = self { schema } else { &Value::Bool(true) }
    }
}

fn only_pattern(map: &Map<String, Value>) -> Option<&str> {
    let patterns = map.get("patternProperties")?.as_object()?;
    // Where other keys are allowed too, the pattern does not limit them.
    let is_closed = matches!(map.get("additionalProperties"), None | Some(Value::Bool(false)));
    patterns.keys().next().filter(|_| is_closed && patterns.len() == 1).map(String::as_str)
}

fn entry(at: &str, name: &str) -> String {
    let name = words::short(name, 100);
    if at.is_empty() { name } else { format!("{at}.{name}") }
}
