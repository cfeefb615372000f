//! Conditions on one argument of a call.

use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::glob::{Glob, Parsed};
use super::path::Path;
use crate::json::number::Decimal;

/// What has to be true of the value, or values, at one place in the arguments.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) path: Path,
    pub(super) tests: Tests,
}

#[derive(Debug, Clone)]
pub(super) enum Tests {
    /// Nothing may be there.
    Absent,
    /// Something is there, and all of these are true of it.
    Present(Box<[Test]>),
}

/// How many of the values that `[*]` leads to have to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Any: for a rule that denies or asks.
    Any,
    /// All, and at least one: for a rule that allows, so that one harmless item does not open the way for others.
    All,
}

/// One thing that can be true of a value.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Equals(Value),
    NotEquals(Value),
    In(Box<[Value]>),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Value),
    Glob(Parsed),
    Matches(Regex),
    Gt(Decimal),
    Ge(Decimal),
    Lt(Decimal),
    Le(Decimal),
    Type(Box<[Type]>),
}

/// The types of JSON; an integer is also a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Condition {
    /// Whether the arguments fulfil it.
    pub(super) fn holds(&self, arguments: &Value, reach: Reach) -> bool {
        let Tests::Present(tests) = &self.tests else { return self.is_absent(arguments, reach) };
        let fits = |seen: Option<&Value>| seen.is_some_and(|value| tests.iter().all(|test| test.holds(value)));
        let (mut some, mut all) = (false, true);
        self.path.visit(arguments, &mut |seen| {
            if fits(seen) {
                some = true;
                reach == Reach::All
            } else {
                all = false;
                reach == Reach::Any
            }
        });
        some && (all || reach == Reach::Any)
    }

    fn is_absent(&self, arguments: &Value, reach: Reach) -> bool {
        let (mut seen, mut missing) = (false, false);
        self.path.visit(arguments, &mut |value| {
            seen |= value.is_some();
            missing |= value.is_none();
            true
        });
        !seen || (missing && reach == Reach::Any)
    }
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(wanted) => is_same(value, wanted),
            Self::NotEquals(unwanted) => !is_same(value, unwanted),
            Self::In(wanted) => wanted.iter().any(|wanted| is_same(value, wanted)),
            Self::Prefix(part) => value.as_str().is_some_and(|text| text.starts_with(&**part)),
            Self::Suffix(part) => value.as_str().is_some_and(|text| text.ends_with(&**part)),
            Self::Contains(part) => contains(value, part),
            Self::Glob(glob) => value.as_str().is_some_and(|text| is_match(glob, text)),
            Self::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
            Self::Gt(bound) => number(value).is_some_and(|number| number > *bound),
            Self::Ge(bound) => number(value).is_some_and(|number| number >= *bound),
            Self::Lt(bound) => number(value).is_some_and(|number| number < *bound),
            Self::Le(bound) => number(value).is_some_and(|number| number <= *bound),
            Self::Type(types) => types.iter().any(|wanted| wanted.is_of(value)),
        }
    }
}

fn is_match(glob: &Parsed, text: &str) -> bool {
    match glob {
        Parsed::Exact(exact) => **exact == *text,
        Parsed::Glob(glob) => Glob::is_match(glob, text),
    }
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(&**part),
        (Value::Array(items), part) => items.iter().any(|item| is_same(item, part)),
        _ => false,
    }
}

fn number(value: &Value) -> Option<Decimal> {
    value.as_number().map(Decimal::of)
}

/// Whether two values are equal: numbers by what they amount to, objects in any order.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || Decimal::of(one) == Decimal::of(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there = |(key, value): (&String, &Value)| other.get(key).is_some_and(|found| is_same(value, found));
            one.len() == other.len() && one.iter().all(is_there)
        }
        (one, other) => one == other,
    }
}

impl Type {
    pub(super) const ALL: [(Self, &str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Number, "number"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
    ];

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.as_number().is_some_and(|number| Decimal::of(number).is_integer()),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// The word for the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// A value on one line, cut where it gets long.
pub(super) struct Short<'a>(pub(super) &'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: usize = 80;
        let text = crate::json::canonical(self.0);
        match text.char_indices().nth(LETTERS) {
            Some((end, _)) => write!(formatter, "{}…", &text[..end]),
            None => formatter.write_str(&text),
        }
    }
}
