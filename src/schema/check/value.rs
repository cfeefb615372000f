//! A view of JSON-like values that needs no conversion.

use std::borrow::Cow;

use jsonschema::json::{Json, SerdeJson};
use serde_json::{Number, Value};

use crate::json::number::is_integer_text;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number written without a fraction and without an exponent.
    Int,
    /// Any other finite number.
    Float,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// Anything that is not JSON.
    Other,
}

/// An integer, as exact as comparisons with an `i64` need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// It fits.
    Small(i64),
    /// More than `i64::MAX`.
    Above,
    /// Less than `i64::MIN`.
    Below,
}

/// A value that can be read as JSON.
///
/// Every method except [`kind`](JsonLike::kind) is called only on values of the kind that it is about; on others it returns something
/// harmless.
pub trait JsonLike: Sized {
    /// The representation by which `jsonschema` reads such a value in place.
    type Form: Json;

    /// The kind of the value.
    fn kind(&self) -> ValueKind;

    /// True for `true`.
    fn is_true(&self) -> bool;

    /// The integer, for comparisons.
    fn integer(&self) -> Integer;

    /// All decimal digits of the integer with its sign, or `None` where there are more than `most`.
    fn digits(&self, most: usize) -> Option<String>;

    /// The number, unless an `f64` cannot carry it exactly as it was written.
    fn float(&self) -> Option<f64>;

    /// The string, unless it is not well-formed Unicode.
    fn text(&self) -> Option<&str>;

    /// The string, with replacement characters for what is not Unicode.
    fn lossy_text(&self) -> Cow<'_, str>;

    /// The number of code points, items or entries.
    fn length(&self) -> usize;

    /// True if an array is a list, and not another sequence that is accepted in its place.
    fn is_list(&self) -> bool {
        true
    }

    /// True if `test` holds for every item; stops at the first that fails.
    fn every_item(&self, test: impl FnMut(&Self) -> bool) -> bool;

    /// True if `test` holds for every entry; stops at the first that fails. A key that is not a plain string is passed as `None`.
    fn every_entry(&self, test: impl FnMut(Option<&str>, &Self) -> bool) -> bool;

    /// Calls `look` with the value under a key.
    fn at_key<R>(&self, key: &str, look: impl FnOnce(&Self) -> R) -> Option<R>;

    /// A description of a value of the kind [`ValueKind::Other`].
    fn other_name(&self) -> String;

    /// The value as `jsonschema` sees it.
    fn node(&self) -> <Self::Form as Json>::Node<'_>;
}

impl JsonLike for Value {
    type Form = SerdeJson;

    fn kind(&self) -> ValueKind {
        match self {
            Value::Null => ValueKind::Null,
            Value::Bool(_) => ValueKind::Bool,
            Value::Number(number) if is_integer_text(number.as_str()) => ValueKind::Int,
            // Text such as `1e999` is a JSON number, but cannot be computed with.
            Value::Number(number) if number.as_f64().is_some_and(f64::is_finite) => ValueKind::Float,
            Value::Number(_) => ValueKind::Other,
            Value::String(_) => ValueKind::String,
            Value::Array(_) => ValueKind::Array,
            Value::Object(_) => ValueKind::Object,
        }
    }

    fn is_true(&self) -> bool {
        *self == Value::Bool(true)
    }

    fn integer(&self) -> Integer {
        match self {
            Value::Number(number) => integer_of(number),
            _ => Integer::Small(0),
        }
    }

    fn digits(&self, most: usize) -> Option<String> {
        match self {
            Value::Number(number) if number.as_str().len() <= most => Some(number.to_string()),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Value::Number(number) => float_of(number),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn lossy_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.as_str().unwrap_or_default())
    }

    fn length(&self) -> usize {
        match self {
            Value::String(text) => text.chars().count(),
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    fn every_item(&self, test: impl FnMut(&Self) -> bool) -> bool {
        self.as_array().is_none_or(|items| items.iter().all(test))
    }

    fn every_entry(&self, mut test: impl FnMut(Option<&str>, &Self) -> bool) -> bool {
        self.as_object().is_none_or(|entries| entries.iter().all(|(key, value)| test(Some(key), value)))
    }

    fn at_key<R>(&self, key: &str, look: impl FnOnce(&Self) -> R) -> Option<R> {
        self.as_object()?.get(key).map(look)
    }

    fn other_name(&self) -> String {
        "a number out of range".to_owned()
    }

    fn node(&self) -> &Value {
        self
    }
}

/// The integer that a JSON number is, where [`is_integer_text`] holds for it.
pub(super) fn integer_of(number: &Number) -> Integer {
    match number.as_i64() {
        Some(small) => Integer::Small(small),
        None if number.as_str().starts_with('-') => Integer::Below,
        None => Integer::Above,
    }
}

/// The `f64` that stands for exactly what is written, if there is one.
pub(super) fn float_of(number: &Number) -> Option<f64> {
    let float = number.as_f64().filter(|float| float.is_finite())?;
    (Number::from_f64(float)?.as_str() == number.as_str()).then_some(float)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn number(text: &str) -> Value {
        serde_json::from_str(text).expect("a JSON number")
    }

    #[test]
    fn a_number_has_the_kind_of_its_text() {
        assert_eq!(number("12345678901234567890123").kind(), ValueKind::Int);
        assert_eq!(number("1.0").kind(), ValueKind::Float);
        assert_eq!(number("1e2").kind(), ValueKind::Float);
        assert_eq!(number("1e999").kind(), ValueKind::Other);
    }

    #[test]
    fn integers_outside_of_i64_keep_their_side() {
        assert_eq!(number("9223372036854775807").integer(), Integer::Small(i64::MAX));
        assert_eq!(number("9223372036854775808").integer(), Integer::Above);
        assert_eq!(number("-9223372036854775809").integer(), Integer::Below);
    }

    #[test]
    fn a_float_that_would_be_rounded_is_not_given() {
        assert_eq!(number("0.1").float(), Some(0.1));
        assert_eq!(number("0.1000000000000000000001").float(), None);
    }
}
