//! Python objects as `jsonschema` reads them in place.
//!
//! The crate has such a form of its own, but one that refuses subclasses of `int`, `float` and `str` and text with lone surrogates. This one
//! sees what [`Subject`] sees, so that the quick test and the judge never disagree about what a value is.

use std::{borrow::Cow, str::FromStr};

use jsonschema::{
    JsonType,
    json::{Array, Json, JsonNumber, Node, NodeIdentity, Object},
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use serde_json::{Map, Number, Value};

use crate::schema::check::{Integer, Kind, Subject};

/// The most digits of an integer that are looked at; Python itself writes out no more.
const DIGITS: usize = 4300;

/// The form. Public because it is named in the implementation of a public trait for a public type.
#[allow(unreachable_pub)]
pub struct PyForm;

impl Json for PyForm {
    type Node<'py> = Bound<'py, PyAny>;
    type PreparedKey = Py<PyString>;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> Py<PyString> {
        Python::attach(|py| PyString::intern(py, key).unbind())
    }

    fn with_string_node<T>((): &mut (), string: &str, look: impl FnOnce(Bound<'_, PyAny>) -> T) -> T {
        Python::attach(|py| look(PyString::new(py, string).into_any()))
    }
}

/// A number as `jsonschema` compares it.
#[allow(unreachable_pub)]
pub enum PyNumber {
    Small(i64),
    Float(f64),
    /// An integer outside of `i64`.
    Big(Number),
}

impl JsonNumber for PyNumber {
    fn as_u64(&self) -> Option<u64> {
        match self {
            PyNumber::Small(small) => u64::try_from(*small).ok(),
            PyNumber::Float(_) => None,
            PyNumber::Big(number) => number.as_u64(),
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self {
            PyNumber::Small(small) => Some(*small),
            PyNumber::Float(_) => None,
            PyNumber::Big(number) => number.as_i64(),
        }
    }

    #[allow(clippy::cast_precision_loss)] // As for any `serde_json::Number`: the exact forms are asked first.
    fn as_f64(&self) -> Option<f64> {
        match self {
            PyNumber::Small(small) => Some(*small as f64),
            PyNumber::Float(float) => Some(*float),
            PyNumber::Big(number) => number.as_f64(),
        }
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_number().to_string())
    }

    fn to_number(&self) -> Cow<'_, Number> {
        match self {
            PyNumber::Small(small) => Cow::Owned(Number::from(*small)),
            // Finite, because no other float is of the kind of numbers.
            PyNumber::Float(float) => Cow::Owned(Number::from_f64(*float).unwrap_or_else(|| Number::from(0))),
            PyNumber::Big(number) => Cow::Borrowed(number),
        }
    }

    fn is_integer(&self) -> bool {
        match self {
            PyNumber::Float(float) => float.fract() == 0.0,
            PyNumber::Small(_) | PyNumber::Big(_) => true,
        }
    }

    fn is_written_as_integer(&self) -> bool {
        !matches!(self, PyNumber::Float(_))
    }
}

impl<'py> Node<'py, PyForm> for Bound<'py, PyAny> {
    type Object = PyObjectNode<'py>;
    type Array = PyArrayNode<'py>;
    type Number = PyNumber;

    fn as_object(&self) -> Option<PyObjectNode<'py>> {
        self.cast::<PyDict>().ok().map(|dict| PyObjectNode(dict.clone()))
    }

    fn as_array(&self) -> Option<PyArrayNode<'py>> {
        (self.kind() == Kind::Array).then(|| PyArrayNode(self.clone()))
    }

    fn as_string(&self) -> Option<Cow<'py, str>> {
        (self.kind() == Kind::String).then(|| Cow::Owned(self.lossy_text().into_owned()))
    }

    fn as_number(&self) -> Option<PyNumber> {
        match self.kind() {
            Kind::Int => Some(match self.integer() {
                Integer::Small(small) => PyNumber::Small(small),
                side => PyNumber::Big(big(self, side)),
            }),
            Kind::Float => self.float().map(PyNumber::Float),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.is_true())
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }

    fn is_number(&self) -> bool {
        matches!(self.kind(), Kind::Int | Kind::Float)
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            // What JSON has no word for is never brought before the judge alone: see `Checker::settle`.
            Kind::Null | Kind::Other => JsonType::Null,
            Kind::Bool => JsonType::Boolean,
            Kind::Int | Kind::Float => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        (self.kind() == Kind::String).then(|| self.length() as u64)
    }

    fn to_value(&self) -> Cow<'py, Value> {
        Cow::Owned(to_value(self, 0))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(self.as_ptr() as usize))
    }
}

/// An integer outside of `i64` with all its digits; one with too many of them stands for all that are larger than it.
fn big(value: &Bound<'_, PyAny>, side: Integer) -> Number {
    let digits = value.digits(DIGITS).and_then(|digits| Number::from_str(&digits).ok());
    digits.unwrap_or_else(|| {
        let sign = if side == Integer::Below { "-" } else { "" };
        let digits = format!("{sign}{}", "9".repeat(DIGITS));
        Number::from_str(&digits).unwrap_or_else(|_| Number::from(0))
    })
}

/// A copy, for the keywords that compare whole values. Depth is bounded, because deep values are refused before.
fn to_value(value: &Bound<'_, PyAny>, depth: usize) -> Value {
    match value.kind() {
        Kind::Bool => Value::Bool(value.is_true()),
        Kind::Int | Kind::Float => {
            value.as_number().map_or(Value::Null, |number| Value::Number(number.to_number().into_owned()))
        }
        Kind::String => Value::String(value.lossy_text().into_owned()),
        Kind::Array if depth < 256 => {
            let mut items = Vec::with_capacity(value.length());
            value.every_item(|item| {
                items.push(to_value(item, depth + 1));
                true
            });
            Value::Array(items)
        }
        Kind::Object if depth < 256 => {
            let mut entries = Map::new();
            value.every_entry(|key, entry| {
                entries.insert(key.unwrap_or_default().to_owned(), to_value(entry, depth + 1));
                true
            });
            Value::Object(entries)
        }
        Kind::Null | Kind::Other | Kind::Array | Kind::Object => Value::Null,
    }
}

/// A dict.
#[allow(unreachable_pub)]
pub struct PyObjectNode<'py>(Bound<'py, PyDict>);

impl<'py> Object<'py, PyForm> for PyObjectNode<'py> {
    type Node = Bound<'py, PyAny>;
    type MemberName = String;
    type MembersIter = std::vec::IntoIter<(String, Bound<'py, PyAny>)>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &Py<PyString>) -> Option<Bound<'py, PyAny>> {
        self.0.get_item(key.bind(self.0.py())).ok().flatten()
    }

    fn members(&self) -> Self::MembersIter {
        let members = self.0.iter().filter_map(|(key, value)| {
            let key = key.cast_exact::<PyString>().ok()?.to_str().ok()?.to_owned();
            Some((key, value))
        });
        members.collect::<Vec<_>>().into_iter()
    }
}

/// A list or a tuple.
#[allow(unreachable_pub)]
pub struct PyArrayNode<'py>(Bound<'py, PyAny>);

impl<'py> Array<'py, PyForm> for PyArrayNode<'py> {
    type Node = Bound<'py, PyAny>;
    type ElementsIter = std::vec::IntoIter<Bound<'py, PyAny>>;

    fn len(&self) -> usize {
        self.0.length()
    }

    fn elements(&self) -> Self::ElementsIter {
        let mut items = Vec::with_capacity(self.0.length());
        self.0.every_item(|item| {
            items.push(item.clone());
            true
        });
        items.into_iter()
    }
}
