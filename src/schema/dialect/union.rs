//! Encodes unions: their branches are distinguished by the shape of the values, or else by a tag.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::codec::{BranchCodec, BranchTest, CHOICE, Op, VALUE};
use super::encoder::{Encoder, Fragment};
use super::short;
use crate::schema::check::{JsonLike, KindSet};
use crate::schema::view::pointer;

/// A branch of a union.
pub(super) struct Choice {
    pub(super) schema: Value,
    pub(super) test: BranchTest,
    pub(super) label: Option<String>,
}

/// A branch in the dialect.
struct EncodedChoice {
    label: Option<String>,
    test: BranchTest,
    fragment: Fragment,
}

impl Encoder<'_> {
    /// Encodes `anyOf` or `oneOf`, unless it is only a condition on the schema beside it.
    pub(super) fn union_of(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Option<Fragment> {
        let keyword = ["anyOf", "oneOf"]
            .into_iter()
            .find(|keyword| map.get(*keyword).and_then(Value::as_array).is_some_and(|choices| !choices.is_empty()))?;
        let choices = map.get(keyword)?.as_array()?;
        let mut base = map.clone();
        base.shift_remove(keyword);
        let other = ["anyOf", "oneOf"].into_iter().find(|other| base.contains_key(*other));
        let other = other.and_then(|other| Some((other, base.shift_remove(other)?)));
        base.retain(|keyword, _| !is_annotation(keyword));
        let mut fragment = if !base.is_empty() && choices.iter().all(is_condition) {
            let mut fragment = self.kind(&base, at, depth);
            self.describe(&mut fragment, keyword, &map[keyword], at);
            fragment
        } else {
            if !self.spend(choices.len() * (base.len() + 1)) {
                return Some(Fragment::any());
            }
            let base = Value::Object(base);
            let has_base = base.as_object().is_some_and(|base| !base.is_empty());
            let choices = choices.iter().map(|choice| Choice {
                schema: if has_base { json!({"allOf": [choice, base]}) } else { choice.clone() },
                test: BranchTest::by(choice),
                label: label_of(choice),
            });
            let choices: Vec<Choice> = choices.collect();
            self.union(choices, at, depth)
        };
        if let Some((other, value)) = other {
            self.describe(&mut fragment, other, &value, at);
        }
        Some(fragment)
    }

    /// Encodes a union.
    pub(super) fn union(&mut self, choices: Vec<Choice>, at: &str, depth: usize) -> Fragment {
        let mut encoded: Vec<EncodedChoice> = Vec::with_capacity(choices.len());
        let mut has_null = false;
        for Choice { schema, test, label } in choices {
            let fragment = self.fragment(&schema, at, depth);
            if fragment.is_null {
                has_null = true;
            } else if !fragment.adds_nothing {
                encoded.push(EncodedChoice { label, test, fragment });
            }
        }
        let fragment = match encoded.len() {
            0 if has_null => return self.kind(&Map::from_iter([("type".to_owned(), Value::from("null"))]), at, depth),
            0 => return Fragment::nothing(),
            1 => encoded.swap_remove(0).fragment,
            _ => self.several(encoded),
        };
        if has_null { fragment.or_null(self.capabilities) } else { fragment }
    }

    fn several(&mut self, choices: Vec<EncodedChoice>) -> Fragment {
        if choices.iter().all(|choice| choice.fragment.op.is_same()) {
            return self.side_by_side(choices, |_| Op::Same);
        }
        let clashes = choices.iter().enumerate().any(|(index, one)| {
            choices[..index].iter().any(|other| {
                let is_same = one.fragment.op.is_same() && other.fragment.op.is_same();
                !is_same && one.fragment.shape.meets(&other.fragment.shape)
            })
        });
        if clashes { self.tagged(choices) } else { self.side_by_side(choices, |branches| Op::Choice(branches.into())) }
    }

    /// Puts the branches side by side.
    fn side_by_side(&mut self, choices: Vec<EncodedChoice>, op: fn(Vec<BranchCodec>) -> Op) -> Fragment {
        let shape =
            choices.iter().skip(1).fold(choices[0].fragment.shape.clone(), |all, it| all.or(&it.fragment.shape));
        let mut schemas: Vec<Value> = Vec::with_capacity(choices.len());
        let mut branches = Vec::with_capacity(choices.len());
        for EncodedChoice { test, fragment, .. } in choices {
            let (schema, op, shape) = fragment.finish(self.capabilities);
            branches.push(BranchCodec { label: "".into(), shape, test, op });
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
        Fragment::new(schema, op(branches), shape)
    }

    /// Puts each branch in an object with a tag.
    fn tagged(&mut self, choices: Vec<EncodedChoice>) -> Fragment {
        let mut schemas = Vec::with_capacity(choices.len());
        let mut branches: Vec<BranchCodec> = Vec::with_capacity(choices.len());
        for (index, EncodedChoice { label, test, fragment }) in choices.into_iter().enumerate() {
            let label = label.filter(|label| !branches.iter().any(|branch| *branch.label == **label));
            let label = label.unwrap_or_else(|| format!("option_{}", index + 1));
            let (schema, op, shape) = fragment.finish(self.capabilities);
            let tag = json!({"type": "string", "enum": [label]});
            let properties = Map::from_iter([(CHOICE.to_owned(), tag), (VALUE.to_owned(), schema)]);
            let object = self.object(properties, vec![Value::from(CHOICE), Value::from(VALUE)]);
            self.listed += 1;
            schemas.push(Value::Object(object));
            branches.push(BranchCodec { label: label.into(), shape, test, op });
        }
        let keys = || vec![CHOICE.into(), VALUE.into()];
        let shape = Shape::object(Keys { required: keys(), all: keys(), tags: Vec::new() });
        Fragment::new(json!({"anyOf": schemas}), Op::Tagged(branches.into()), shape)
    }
}

/// True for keywords that do not limit values, and for those that are described in sentences.
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

/// True if a schema does not define the structure of a value.
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
    let kind = || map.get("type").and_then(Value::as_str).filter(|it| KindSet::named(it).is_some()).map(str::to_owned);
    title.or_else(referred).or_else(kind).map(|label| short(&label, 60))
}

/// The shape of an encoded value: its kinds, and its keys if it is an object. It distinguishes branches of a union without trying each.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) kinds: KindSet,
    /// `None` if there are several objects, or one that is still being encoded.
    keys: Option<Arc<Keys>>,
}

/// The keys of an object.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) required: Vec<Box<str>>,
    pub(super) all: Vec<Box<str>>,
    /// Required properties with one of a few strings.
    pub(super) tags: Vec<(Box<str>, Vec<Value>)>,
}

impl Shape {
    pub(super) const fn of(kinds: KindSet) -> Self {
        Self { kinds, keys: None }
    }

    pub(super) fn object(keys: Keys) -> Self {
        Self { kinds: KindSet::OBJECT, keys: Some(Arc::new(keys)) }
    }

    pub(super) fn or_null(self) -> Self {
        Self { kinds: self.kinds.or(KindSet::NULL), ..self }
    }

    /// The union of two shapes.
    pub(super) fn or(&self, other: &Shape) -> Self {
        let keys = match (self.kinds.meets(KindSet::OBJECT), other.kinds.meets(KindSet::OBJECT)) {
            (true, false) => self.keys.clone(),
            (false, true) => other.keys.clone(),
            _ => None,
        };
        Self { kinds: self.kinds.or(other.kinds), keys }
    }

    pub(super) fn has_null(&self) -> bool {
        self.kinds.meets(KindSet::NULL)
    }

    /// True if a value could have both shapes.
    pub(super) fn meets(&self, other: &Shape) -> bool {
        if self.kinds.without(KindSet::OBJECT).meets(other.kinds.without(KindSet::OBJECT)) {
            return true;
        }
        if !(self.kinds.meets(KindSet::OBJECT) && other.kinds.meets(KindSet::OBJECT)) {
            return false;
        }
        match (&self.keys, &other.keys) {
            (Some(one), Some(two)) => one.meets(two),
            _ => true,
        }
    }

    /// True if a value has this shape.
    pub(super) fn admits(&self, value: &Value) -> bool {
        self.kinds.has(value.kind())
            && match (value, &self.keys) {
                (Value::Object(entries), Some(keys)) => keys.admit(entries),
                _ => true,
            }
    }
}

impl Keys {
    fn meets(&self, other: &Keys) -> bool {
        let within = |some: &[Box<str>], all: &[Box<str>]| some.iter().all(|key| all.contains(key));
        let tells_apart = self.tags.iter().any(|(key, values)| {
            other.tags.iter().any(|(name, others)| name == key && !others.iter().any(|value| values.contains(value)))
        });
        !tells_apart && within(&self.required, &other.all) && within(&other.required, &self.all)
    }

    fn admit(&self, entries: &Map<String, Value>) -> bool {
        self.required.iter().all(|key| entries.contains_key(&**key))
            && entries.keys().all(|key| self.all.iter().any(|known| **known == **key))
            && self.tags.iter().all(|(key, values)| entries.get(&**key).is_some_and(|value| values.contains(value)))
    }
}
