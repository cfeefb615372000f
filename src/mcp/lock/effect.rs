//! The effect of a change on the values that a keyword of a JSON Schema accepts.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::json::canonical;
use crate::json::number::Decimal;

/// The possible effects of a change on the accepted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Effect {
    /// Values that were refused may be accepted.
    pub(super) accepts_more: bool,
    /// Values that were accepted may be refused.
    pub(super) accepts_less: bool,
}

impl Effect {
    pub(super) const NONE: Self = Self { accepts_more: false, accepts_less: false };
    pub(super) const MORE: Self = Self { accepts_more: true, accepts_less: false };
    pub(super) const LESS: Self = Self { accepts_more: false, accepts_less: true };
    pub(super) const BOTH: Self = Self { accepts_more: true, accepts_less: true };

    /// Both effects together.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            accepts_more: self.accepts_more || other.accepts_more,
            accepts_less: self.accepts_less || other.accepts_less,
        }
    }

    /// The effect of a restriction that is added, removed or replaced by an unrelated one.
    pub(super) fn of_restriction(old: Option<&Value>, new: Option<&Value>) -> Self {
        match (old, new) {
            (None, Some(_)) => Self::LESS,
            (Some(_), None) => Self::MORE,
            (old, new) if old == new => Self::NONE,
            _ => Self::BOTH,
        }
    }

    /// The effect of the change of a set of accepted values.
    pub(super) fn of_sets<T: Ord>(old: &BTreeSet<T>, new: &BTreeSet<T>) -> Self {
        Self { accepts_more: !new.is_subset(old), accepts_less: !old.is_subset(new) }
    }
}

pub(super) fn types<'v>(old: Option<&'v Value>, new: Option<&'v Value>) -> Option<Effect> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let read = |value: Option<&'v Value>| -> Option<BTreeSet<&'v str>> {
        let mut names = match value {
            None => BTreeSet::from(TYPES),
            Some(Value::String(name)) => BTreeSet::from([name.as_str()]),
            Some(value) => names(Some(value))?,
        };
        if names.contains("number") {
            names.insert("integer");
        }
        names.iter().all(|name| TYPES.contains(name)).then_some(names)
    };
    Some(Effect::of_sets(&read(old)?, &read(new)?))
}

pub(super) fn bound(old: Option<&Value>, new: Option<&Value>, is_lower: bool) -> Option<Effect> {
    let read = |value: Option<&Value>| match value {
        None => Some(None),
        Some(Value::Number(number)) => Some(Some(Decimal::of(number))),
        Some(_) => None,
    };
    Some(match (read(old)?, read(new)?) {
        (None, None) => Effect::NONE,
        (None, Some(_)) => Effect::LESS,
        (Some(_), None) => Effect::MORE,
        (Some(old), Some(new)) if old == new => Effect::NONE,
        (Some(old), Some(new)) => {
            if (new > old) == is_lower {
                Effect::LESS
            } else {
                Effect::MORE
            }
        }
    })
}

pub(super) fn multiple(old: Option<&Value>, new: Option<&Value>) -> Option<Effect> {
    let (Some(before), Some(after)) = (old, new) else { return Some(Effect::of_restriction(old, new)) };
    let (before, after) = (before.as_u64()?, after.as_u64()?);
    if before.checked_rem(after)? == 0 {
        return Some(if before == after { Effect::NONE } else { Effect::MORE });
    }
    (after.checked_rem(before)? == 0).then_some(Effect::LESS)
}

pub(super) fn dependent(old: Option<&Value>, new: Option<&Value>) -> Option<Effect> {
    let (old, new) = (entries_of(old)?, entries_of(new)?);
    keys(old, new).try_fold(Effect::NONE, |effect, name| {
        let (old, new) = (names(old.get(name))?, names(new.get(name))?);
        Some(effect.or(Effect::of_sets(&new, &old)))
    })
}

pub(super) fn flag(value: Option<&Value>) -> Option<bool> {
    value.map_or(Some(false), Value::as_bool)
}

/// The values that a schema lists, by their canonical text.
pub(super) enum Listed {
    Anything,
    Values(BTreeSet<String>),
    Unclear,
}

pub(super) fn listed_values(schema: &Map<String, Value>) -> Listed {
    match (schema.get("enum"), schema.get("const")) {
        (None, None) => Listed::Anything,
        (Some(Value::Array(members)), None) => Listed::Values(members.iter().map(canonical).collect()),
        (None, Some(member)) => Listed::Values(BTreeSet::from([canonical(member)])),
        _ => Listed::Unclear,
    }
}

/// The keys of two objects, each once.
pub(super) fn keys<'k>(old: &'k Map<String, Value>, new: &'k Map<String, Value>) -> impl Iterator<Item = &'k str> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).map(String::as_str)
}

/// The entries of an object, none if it is missing; `None` for another value.
pub(super) fn entries_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    static NO_ENTRIES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.map_or(Some(&*NO_ENTRIES), Value::as_object)
}

/// The items of a list, none if it is missing; `None` for another value.
pub(super) fn list_of(value: Option<&Value>) -> Option<&[Value]> {
    value.map_or(Some(&[]), |value| value.as_array().map(Vec::as_slice))
}

/// The names in a list; `None` if it is not a list of names.
pub(super) fn names(value: Option<&Value>) -> Option<BTreeSet<&str>> {
    list_of(value)?.iter().map(Value::as_str).collect()
}
