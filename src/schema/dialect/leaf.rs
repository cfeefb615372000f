//! Encodes scalars, enumerations and arrays.

use serde_json::{Map, Value, json};

use super::codec::{BranchTest, Op, TupleCodec};
use super::encoder::{Encoder, Fragment};
use super::object::EncodedFields;
use super::union::{Choice, Keys, Shape, is_annotation};
use super::{LONGEST_LISTED, MANY_LISTED};
use crate::schema::check::{JsonLike, KindSet};
use crate::schema::view;

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
            "dependencies",
            "unevaluatedProperties",
        ],
        _ => &[],
    }
}

/// The type that the keywords of a schema without `type` apply to.
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
    /// Encodes a merged schema by the type of its values.
    pub(super) fn kind(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Fragment {
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
                    let test = BranchTest::Kinds(KindSet::named(kind)?);
                    Some(Choice { schema: Value::Object(single), test, label: Some(kind.to_owned()) })
                });
                let choices: Vec<Choice> = choices.collect();
                self.union(choices, at, depth)
            }
            _ => match implied(map) {
                Some(kind) => self.typed(map, kind, at, depth),
                None => Fragment::any(),
            },
        }
    }

    fn typed(&mut self, map: &Map<String, Value>, kind: &str, at: &str, depth: usize) -> Fragment {
        match kind {
            "object" => self.object_or_map(map, at, depth),
            "array" => self.array(map, at, depth),
            "null" => self.null(),
            "string" | "integer" | "number" | "boolean" => {
                let shape = match kind {
                    "string" => KindSet::STRING,
                    "boolean" => KindSet::BOOLEAN,
                    _ => KindSet::NUMBER,
                };
                let mut fragment = Fragment::new(json!({"type": kind}), Op::Same, Shape::of(shape));
                self.limit(&mut fragment, map, kind, &[], at);
                fragment
            }
            _ => Fragment::any(),
        }
    }

    fn null(&self) -> Fragment {
        let fragment = if self.capabilities.has_null {
            Fragment::new(json!({"type": "null"}), Op::Same, Shape::of(KindSet::NULL))
        } else {
            let op = Op::Listed(Box::new([("null".into(), Value::Null)]));
            Fragment::new(json!({"type": "string", "enum": ["null"]}), op, Shape::of(KindSet::STRING))
        };
        Fragment { is_null: true, ..fragment }
    }

    /// Adds the limits of a type, as keywords where the dialect has them.
    pub(super) fn limit(
        &mut self,
        fragment: &mut Fragment,
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
            if (self.capabilities.keeps)(kind, keyword, value) {
                fragment.schema.insert((*keyword).to_owned(), value.clone());
                continue;
            }
            let closed = closed_bound(kind, keyword, value)
                .filter(|(closed, value)| !map.contains_key(*closed) && (self.capabilities.keeps)(kind, closed, value));
            match closed {
                Some((keyword, value)) => drop(fragment.schema.insert(keyword.to_owned(), value)),
                None => self.describe(fragment, keyword, value, at),
            }
        }
    }
}

/// Turns an exclusive bound on integers into an inclusive one.
fn closed_bound(kind: &str, keyword: &str, value: &Value) -> Option<(&'static str, Value)> {
    let bound = value.as_i64().filter(|_| kind == "integer")?;
    match keyword {
        "exclusiveMinimum" => Some(("minimum", Value::from(bound.checked_add(1)?))),
        "exclusiveMaximum" => Some(("maximum", Value::from(bound.checked_sub(1)?))),
        _ => None,
    }
}

impl Encoder<'_> {
    /// Encodes an `enum` or a `const`.
    pub(super) fn enumeration(&mut self, map: &Map<String, Value>, at: &str) -> Fragment {
        let Some(members) = view::members(map) else { return Fragment::any() };
        let mut values = members.to_vec();
        let kinds = view::type_names(map).filter_map(KindSet::named).fold(KindSet::NONE, KindSet::or);
        if kinds != KindSet::NONE {
            let kinds = or_integral(kinds);
            values.retain(|value| kinds.has(value.kind()));
        }
        let has_null = values.iter().any(Value::is_null);
        values.retain(|value| !value.is_null());
        if values.is_empty() {
            return self.kind(&Map::from_iter([("type".to_owned(), Value::from("null"))]), at, 0);
        }
        if !self.spend((values.len() + lengths(&values)) / 64 + 1) {
            return Fragment::any();
        }
        let fragment = if self.is_too_long(&values) { self.unlisted(&values, at) } else { self.listed(values) };
        if has_null { fragment.or_null(self.capabilities) } else { fragment }
    }

    fn is_too_long(&self, values: &[Value]) -> bool {
        self.listed + values.len() > self.capabilities.listed
            || values.len() > MANY_LISTED && lengths(values) > LONGEST_LISTED
    }

    /// Describes more values than the dialect takes in a sentence.
    fn unlisted(&mut self, values: &[Value], at: &str) -> Fragment {
        let kind = common_kind(values);
        let mut fragment = match kind {
            Some((kind, shape)) => Fragment::new(json!({"type": kind}), Op::Same, Shape::of(shape)),
            None => Fragment::any(),
        };
        self.describe(&mut fragment, "enum", &Value::Array(values.to_vec()), at);
        fragment
    }

    fn listed(&mut self, values: Vec<Value>) -> Fragment {
        self.listed += values.len();
        let is_scalar = values.iter().all(|value| !value.is_array() && !value.is_object());
        if self.capabilities.lists_strings_only || !is_scalar {
            return listed_as_texts(values);
        }
        if let Some((kind, shape)) = common_kind(&values) {
            return Fragment::new(json!({"type": kind, "enum": values}), Op::Same, Shape::of(shape));
        }
        // Values of several types: an enumeration for each.
        let mut groups: Vec<(&str, KindSet, Vec<Value>)> = Vec::new();
        for value in values {
            let Some((kind, shape)) = common_kind(std::slice::from_ref(&value)) else { continue };
            match groups.iter_mut().find(|(own, ..)| *own == kind) {
                Some((.., group)) => group.push(value),
                None => groups.push((kind, shape, vec![value])),
            }
        }
        let shape = groups.iter().fold(KindSet::NONE, |all, (_, shape, _)| all.or(*shape));
        let choices: Vec<Value> =
            groups.into_iter().map(|(kind, _, values)| json!({"type": kind, "enum": values})).collect();
        Fragment::new(json!({"anyOf": choices}), Op::Same, Shape::of(shape.without(KindSet::NULL)))
    }
}

/// Lists every value as a string: itself if that is unambiguous, else its JSON.
fn listed_as_texts(values: Vec<Value>) -> Fragment {
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
    Fragment::new(schema, op, Shape::of(KindSet::STRING))
}

fn lengths(values: &[Value]) -> usize {
    values.iter().filter_map(Value::as_str).map(str::len).sum()
}

/// Adds floats to integers: a number such as 1.0 is an integer too.
fn or_integral(kinds: KindSet) -> KindSet {
    if kinds.meets(KindSet::NUMBER) { kinds.or(KindSet::NUMBER) } else { kinds }
}

fn common_kind(values: &[Value]) -> Option<(&'static str, KindSet)> {
    let kind = |value: &Value| match value {
        Value::String(_) => Some(("string", KindSet::STRING)),
        Value::Bool(_) => Some(("boolean", KindSet::BOOLEAN)),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(("integer", KindSet::NUMBER)),
        Value::Number(_) => Some(("number", KindSet::NUMBER)),
        _ => None,
    };
    let first = kind(values.first()?)?;
    values.iter().all(|value| kind(value).is_some_and(|other| other == first)).then_some(first)
}

impl Encoder<'_> {
    pub(super) fn array(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Fragment {
        if depth >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        let (first, rest) = view::item_keywords(map);
        let (places, items) = (map.get(first).and_then(Value::as_array), map.get(rest));
        let Some(places) = places.filter(|places| !places.is_empty()) else {
            return self.list(map, items, at, depth);
        };
        let most = map.get("maxItems").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
        let is_full = most.is_some_and(|most| most <= places.len()) || items == Some(&Value::Bool(false));
        let is_uniform = places.iter().all(|place| *place == places[0]);
        // Positions that are all the same are a list of that length.
        if is_uniform && (is_full || items == places.first()) {
            let mut uniform = map.clone();
            uniform.shift_remove("prefixItems");
            if is_full {
                let most = most.unwrap_or(places.len()).min(places.len());
                uniform.insert("maxItems".to_owned(), Value::from(most));
            }
            return self.list(&uniform, places.first(), at, depth);
        }
        self.places(map, places, (!is_full).then(|| items.unwrap_or(&Value::Bool(true))), at, depth)
    }

    fn list(&mut self, map: &Map<String, Value>, items: Option<&Value>, at: &str, depth: usize) -> Fragment {
        let item = self.child(items.unwrap_or(&Value::Bool(true)), &format!("{at}[]"), depth);
        let (item, op, _) = item.finish(self.capabilities);
        let mut fragment = Fragment::new(json!({"type": "array", "items": item}), op.each(), Shape::of(KindSet::ARRAY));
        self.limit(&mut fragment, map, "array", &[], at);
        fragment
    }

    /// Encodes a list of fixed positions as an object with a field for each.
    fn places(
        &mut self,
        map: &Map<String, Value>,
        places: &[Value],
        rest: Option<&Value>,
        at: &str,
        depth: usize,
    ) -> Fragment {
        let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut encoded = EncodedFields::default();
        for (index, place) in places.iter().enumerate() {
            let name = format!("item_{}", index + 1);
            let is_required = u64::try_from(index).is_ok_and(|index| index < least);
            self.add_field(&mut encoded, &name, place, is_required, &format!("{at}[{index}]"), depth);
        }
        let mut all_keys = std::mem::take(&mut encoded.keys);
        let rest = rest.map(|rest| {
            let list = self.list(&Map::new(), Some(rest), &format!("{at}[]"), depth);
            let (schema, op, _) = list.finish(self.capabilities);
            encoded.properties.insert("more".to_owned(), schema);
            all_keys.all.push("more".into());
            if self.capabilities.requires_all {
                encoded.required.push(Value::from("more"));
                all_keys.required.push("more".into());
            }
            ("more".into(), op)
        });
        let op =
            Op::Tuple(Box::new(TupleCodec { fixed: encoded.fields, rest, explicit: self.capabilities.requires_all }));
        let schema = self.object(encoded.properties, encoded.required);
        let mut fragment =
            Fragment::new(Value::Object(schema), op, Shape::object(Keys { tags: Vec::new(), ..all_keys }));
        // The fields themselves define the number of items.
        let count = places.len() as u64;
        let settled = |keyword: &str, size: &Value| {
            size.as_u64().is_some_and(|size| if keyword == "minItems" { size <= count } else { size == count })
        };
        for keyword in ["minItems", "maxItems", "uniqueItems", "contains"] {
            if let Some(value) = map.get(keyword).filter(|value| **value != Value::Bool(false))
                && !settled(keyword, value)
            {
                self.describe(&mut fragment, keyword, value, at);
            }
        }
        fragment
    }
}
