//! What an encoded value looks like from outside: enough to tell the choices of a union apart without trying each.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::check::{Kind, Kinds, Subject};

pub(super) const NULL: Kinds = Kinds::of(Kind::Null);
pub(super) const BOOLEAN: Kinds = Kinds::of(Kind::Bool);
pub(super) const NUMBER: Kinds = Kinds::of(Kind::Int).or(Kinds::of(Kind::Float));
pub(super) const STRING: Kinds = Kinds::of(Kind::String);
pub(super) const ARRAY: Kinds = Kinds::of(Kind::Array);
pub(super) const OBJECT: Kinds = Kinds::of(Kind::Object);

/// The kinds that an encoded value can have, and the keys if it is an object.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) kinds: Kinds,
    /// Unknown if there are several objects, or one that is still being encoded.
    keys: Option<Arc<Keys>>,
}

/// The keys of an object.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) required: Vec<Box<str>>,
    pub(super) all: Vec<Box<str>>,
    /// Required properties that have one of a few texts.
    pub(super) tags: Vec<(Box<str>, Vec<Value>)>,
}

impl Form {
    pub(super) const fn of(kinds: Kinds) -> Self {
        Self { kinds, keys: None }
    }

    pub(super) fn object(keys: Keys) -> Self {
        Self { kinds: OBJECT, keys: Some(Arc::new(keys)) }
    }

    pub(super) fn or_null(self) -> Self {
        Self { kinds: self.kinds.or(NULL), ..self }
    }

    /// One or the other.
    pub(super) fn or(&self, other: &Form) -> Self {
        let keys = match (self.kinds.meets(OBJECT), other.kinds.meets(OBJECT)) {
            (true, false) => self.keys.clone(),
            (false, true) => other.keys.clone(),
            _ => None,
        };
        Self { kinds: self.kinds.or(other.kinds), keys }
    }

    pub(super) fn has_null(&self) -> bool {
        self.kinds.meets(NULL)
    }

    /// Whether a value could have both forms.
    pub(super) fn meets(&self, other: &Form) -> bool {
        if self.kinds.without(OBJECT).meets(other.kinds.without(OBJECT)) {
            return true;
        }
        if !(self.kinds.meets(OBJECT) && other.kinds.meets(OBJECT)) {
            return false;
        }
        match (&self.keys, &other.keys) {
            (Some(one), Some(two)) => one.meets(two),
            _ => true,
        }
    }

    /// Whether a value has this form.
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
