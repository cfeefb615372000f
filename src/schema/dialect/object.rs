//! Encodes objects with named fields, and maps.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::codec::{Absence, FieldCodec, KEY, ObjectCodec, Op, VALUE};
use super::encoder::{Encoder, Fragment};
use super::light::{full_name, safe_name};
use super::union::{Keys, Shape};
use super::{sentence, short};
use crate::schema::check::KindSet;
use crate::schema::view;

/// The property for the entries that have no property of their own.
const OTHERS: &str = "additional_properties";

/// The fields of an object so far.
#[derive(Default)]
pub(super) struct EncodedFields {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<Value>,
    pub(super) fields: Vec<FieldCodec>,
    pub(super) keys: Keys,
}

impl Encoder<'_> {
    pub(super) fn object_or_map(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Fragment {
        let empty = Map::new();
        let properties = view::properties(map).unwrap_or(&empty);
        let required: HashSet<&str> = view::required(map).collect();
        let others = OtherEntries::of(map);
        if properties.is_empty() && required.is_empty() {
            return match others {
                OtherEntries::None => self.empty_object(map, at),
                // Without named properties the arguments are none. An object inside of them is open to any entry.
                OtherEntries::Unstated if depth == 0 && map.contains_key("properties") => self.empty_object(map, at),
                OtherEntries::Unstated if depth == 0 => {
                    self.report_loss(at, "entries", "nothing: the schema names none, so that none can be sent");
                    self.empty_object(map, at)
                }
                OtherEntries::Unstated | OtherEntries::Any if !map.contains_key("propertyNames") => free_object(),
                others => self.map_of(map, others.schema(), at, depth),
            };
        }
        if depth >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        let mut encoded = EncodedFields::default();
        for (name, property) in properties {
            if !self.spend(1) {
                break;
            }
            self.add_field(&mut encoded, name, property, required.contains(&**name), &entry(at, name), depth);
        }
        // Names that are required but not described must be sent too.
        for name in view::required(map).filter(|name| !properties.contains_key(*name)) {
            self.add_field(&mut encoded, name, &Value::Bool(true), true, &entry(at, name), depth);
        }
        let rest = match others {
            OtherEntries::None | OtherEntries::Unstated => None,
            others => Some(self.add_other_entries(&mut encoded, others.schema(), at, depth)),
        };
        let fields = ObjectCodec { named: encoded.fields, rest, explicit: self.capabilities.requires_all };
        let schema = self.object(encoded.properties, encoded.required);
        let mut fragment = Fragment::new(Value::Object(schema), fields.into_op(), Shape::object(encoded.keys));
        self.limit(&mut fragment, map, "object", &[], at);
        fragment
    }

    fn empty_object(&mut self, map: &Map<String, Value>, at: &str) -> Fragment {
        if at.is_empty() || self.capabilities.has_empty_objects {
            let schema = self.object(Map::new(), Vec::new());
            let mut fragment = Fragment::new(Value::Object(schema), Op::Same, Shape::object(Keys::default()));
            self.limit(&mut fragment, map, "object", &[], at);
            return fragment;
        }
        self.enumeration(&Map::from_iter([("const".to_owned(), json!({}))]), at)
    }

    /// Adds a field, encoded as optional unless it is required.
    pub(super) fn add_field(
        &mut self,
        encoded: &mut EncodedFields,
        name: &str,
        property: &Value,
        is_required: bool,
        at: &str,
        depth: usize,
    ) {
        self.count_property();
        let mut fragment = self.child(property, at, depth);
        let mut outer = safe_name(name, self.capabilities.is_name).into_owned();
        while encoded.properties.contains_key(&outer) {
            outer.push('_');
        }
        if outer != name {
            fragment.sentences.push(full_name(name));
        }
        let default = property.get("default");
        let mut absence = Absence::Missing;
        if !is_required {
            if let Some(default) = default.filter(|default| !default.is_null()) {
                fragment.sentences.push(sentence("default", default));
            }
            (fragment, absence) = self.leave_out(fragment, default);
        }
        if self.capabilities.requires_all || is_required {
            encoded.required.push(Value::from(outer.as_str()));
            encoded.keys.required.push(outer.as_str().into());
        }
        encoded.keys.all.push(outer.as_str().into());
        let (schema, op, _) = fragment.finish(self.capabilities);
        if matches!(op, Op::Same)
            && is_required
            && schema.get("type").is_some_and(|kind| kind == "string")
            && let Some(Value::Array(texts)) = schema.get("enum")
        {
            encoded.keys.tags.push((outer.as_str().into(), texts.clone()));
        }
        encoded.properties.insert(outer.clone(), schema);
        encoded.fields.push(FieldCodec { outer: outer.into(), inner: name.into(), op, absence });
    }

    /// Makes a field optional: it is left out, or `null` where every field must be present.
    fn leave_out(&self, mut fragment: Fragment, default: Option<&Value>) -> (Fragment, Absence) {
        let has_null = fragment.shape.has_null();
        if !self.capabilities.requires_all {
            let absence = if has_null { Absence::Missing } else { Absence::Lenient };
            return (fragment, absence);
        }
        // By the schema's own default, `null` and a missing field are the same here.
        if has_null && default.is_some_and(Value::is_null) {
            return (fragment, Absence::Null);
        }
        if !has_null {
            fragment.sentences.push("null leaves it out.".to_owned());
            // This `null` stands for a missing field, so it is not converted.
            let op = std::mem::replace(&mut fragment.op, Op::Same);
            return (Fragment { op, ..fragment.or_null(self.capabilities) }, Absence::Null);
        }
        let mut sentences = std::mem::take(&mut fragment.sentences);
        sentences.push("null leaves it out; a value is in an object, and may be null itself.".to_owned());
        let op = std::mem::replace(&mut fragment.op, Op::Same);
        let (schema, ..) = fragment.finish(self.capabilities);
        let boxed = self.object(Map::from_iter([(VALUE.to_owned(), schema)]), vec![Value::from(VALUE)]);
        let fragment =
            Fragment::new(Value::Object(boxed), Op::Same, Shape::object(Keys::default())).or_null(self.capabilities);
        // The value is taken out of its box before it is converted.
        (Fragment { sentences, op, ..fragment }, Absence::Boxed)
    }

    /// Adds the property for all other entries.
    fn add_other_entries(
        &mut self,
        encoded: &mut EncodedFields,
        values: &Value,
        at: &str,
        depth: usize,
    ) -> (Box<str>, Op) {
        let mut name = OTHERS.to_owned();
        while encoded.properties.contains_key(&name) {
            name.push('_');
        }
        let fragment = self.map_of(&Map::new(), values, &entry(at, "*"), depth + 1);
        let (mut schema, op, _) = fragment.finish(self.capabilities);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), Value::from("All other entries."));
        }
        encoded.properties.insert(name.clone(), schema);
        encoded.keys.all.push(name.as_str().into());
        if self.capabilities.requires_all {
            encoded.required.push(Value::from(name.as_str()));
            encoded.keys.required.push(name.as_str().into());
        }
        (name.into(), op)
    }

    /// Encodes a map as a list of its entries.
    fn map_of(&mut self, map: &Map<String, Value>, values: &Value, at: &str, depth: usize) -> Fragment {
        if depth + 1 >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        let key = self.key_of(map, at);
        let value = self.child(values, &entry(at, "*"), depth + 1);
        let (value, op, _) = value.finish(self.capabilities);
        let pair = Map::from_iter([(KEY.to_owned(), key), (VALUE.to_owned(), value)]);
        let pair = self.object(pair, vec![Value::from(KEY), Value::from(VALUE)]);
        let mut fragment =
            Fragment::new(json!({"type": "array", "items": pair}), Op::Pairs(Box::new(op)), Shape::of(KindSet::ARRAY));
        fragment.sentences.push("A list of entries, each key once.".to_owned());
        let mut limits = Map::new();
        for (of_map, of_list) in [("minProperties", "minItems"), ("maxProperties", "maxItems")] {
            limits.extend(map.get(of_map).map(|size| (of_list.to_owned(), size.clone())));
        }
        self.limit(&mut fragment, &limits, "array", &[], at);
        self.limit(&mut fragment, map, "object", &["minProperties", "maxProperties", "propertyNames"], at);
        fragment
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
        let (schema, op, _) = self.child(&Value::Object(names), at, 0).finish(self.capabilities);
        let is_text = matches!(op, Op::Same) && schema.get("type").is_some_and(|kind| kind == "string");
        if is_text { schema } else { json!({"type": "string"}) }
    }

    /// The shape of a plain object, before it is encoded.
    pub(super) fn object_shape(&self, schema: &Value) -> Option<Shape> {
        let map = schema.as_object()?;
        let is_plain = !["$ref", "allOf", "anyOf", "oneOf", "enum", "const"].iter().any(|key| map.contains_key(*key));
        let is_closed = matches!(OtherEntries::of(map), OtherEntries::None | OtherEntries::Unstated);
        let properties = map.get("properties")?.as_object().filter(|it| is_plain && is_closed && !it.is_empty())?;
        let mut keys = Keys::default();
        for name in properties.keys() {
            let outer = safe_name(name, self.capabilities.is_name);
            keys.required.push(outer.as_ref().into());
            keys.all.push(outer.into());
        }
        Some(Shape::object(keys))
    }
}

/// Encodes an object without a schema.
fn free_object() -> Fragment {
    Fragment::text(vec!["A JSON object, written as text, for example \"{\\\"a\\\": 1}\".".to_owned()], false)
}

/// The rule of a schema for entries that it does not name.
enum OtherEntries<'a> {
    /// They are not allowed.
    None,
    Unstated,
    Any,
    Of(&'a Value),
}

impl<'a> OtherEntries<'a> {
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
            (None, None) => Self::Unstated,
        }
    }

    fn schema(&self) -> &'a Value {
        if let Self::Of(schema) = self { schema } else { &Value::Bool(true) }
    }
}

fn only_pattern(map: &Map<String, Value>) -> Option<&str> {
    let patterns = map.get("patternProperties")?.as_object()?;
    // If other keys are allowed too, the pattern does not limit them.
    let is_closed = matches!(map.get("additionalProperties"), None | Some(Value::Bool(false)));
    patterns.keys().next().filter(|_| is_closed && patterns.len() == 1).map(String::as_str)
}

fn entry(at: &str, name: &str) -> String {
    let name = short(name, 100);
    if at.is_empty() { name } else { format!("{at}.{name}") }
}
