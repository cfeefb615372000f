//! How a checker looks at a JSON-like value without converting it.

use std::borrow::Cow;

use jsonschema::json::{Json, SerdeJson};
use serde_json::{Number, Value};

/// What a value is, as far as JSON has a word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number written without a fraction and without an exponent.
    Int,
    /// Any other finite number.
    Float,
    /// Text.
    String,
    /// A list of values.
    Array,
    /// Values under names.
    Object,
    /// Something that JSON cannot say.
    Other,
}

/// An integer, as exactly as a comparison with an `i64` needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// It fits.
    Small(i64),
    /// More than `i64::MAX`.
    Above,
    /// Less than `i64::MIN`.
    Below,
}

/// A value under inspection.
///
/// Every question but [`kind`](Subject::kind) is put only to a value of the kind that it is about; asked of another, it answers
/// with something harmless.
pub trait Subject: Sized {
    /// The representation under which `jsonschema` reads such a value in place.
    type Form: Json;

    /// The kind of the value.
    fn kind(&self) -> Kind;

    /// Whether it is `true`.
    fn is_true(&self) -> bool;

    /// The integer, for comparisons.
    fn integer(&self) -> Integer;

    /// All decimal digits of the integer with its sign, or `None` where there are more than `most`.
    fn digits(&self, most: usize) -> Option<String>;

    /// The number, unless an `f64` cannot carry it exactly as it was written.
    fn float(&self) -> Option<f64>;

    /// The text, unless it is not well-formed Unicode.
    fn text(&self) -> Option<&str>;

    /// The text, with a replacement character for what is not Unicode.
    fn lossy_text(&self) -> Cow<'_, str>;

    /// How many code points, items or entries it has.
    fn length(&self) -> usize;

    /// Whether `test` holds for every item; stops at the first that fails.
    fn every_item(&self, test: impl FnMut(&Self) -> bool) -> bool;

    /// Whether `test` holds for every entry; stops at the first that fails. A key that is not plain text is given as `None`.
    fn every_entry(&self, test: impl FnMut(Option<&str>, &Self) -> bool) -> bool;

    /// Looks at the value under a key.
    fn at_key<R>(&self, key: &str, look: impl FnOnce(&Self) -> R) -> Option<R>;

    /// What to call a value of the kind [`Kind::Other`].
    fn other_name(&self) -> String;

    /// The value as `jsonschema` sees it.
    fn node(&self) -> <Self::Form as Json>::Node<'_>;
}

impl Subject for Value {
    type Form = SerdeJson;

    fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(number) if is_integer_text(number.as_str()) => Kind::Int,
            // Text such as `1e999` is a JSON number, but nothing that can be computed with.
            Value::Number(number) if number.as_f64().is_some_and(f64::is_finite) => Kind::Float,
            Value::Number(_) => Kind::Other,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
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

/// Whether a number is written as an integer.
pub(super) fn is_integer_text(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn number(text: &str) -> Value {
        serde_json::from_str(text).expect("a JSON number")
    }

    #[test]
    fn a_number_has_the_kind_it_is_written_in() {
        assert_eq!(number("12345678901234567890123").kind(), Kind::Int);
        assert_eq!(number("1.0").kind(), Kind::Float);
        assert_eq!(number("1e2").kind(), Kind::Float);
        assert_eq!(number("1e999").kind(), Kind::Other);
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
