//! Python objects as the check of a call's arguments sees them, in place: [`JsonLike`] for the check itself, [`PyForm`] for
//! `jsonschema`. No Python code runs while they look.
//!
//! `jsonschema` has such a form of its own, but one that refuses subclasses of `int`, `float` and `str` and text with lone
//! surrogates. This one sees what [`JsonLike`] sees, so that the quick test and the validator never disagree about a value.

use std::borrow::Cow;
use std::str::FromStr;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node as JsonNode, NodeIdentity, Object};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use serde_json::{Map, Number, Value};

use crate::bindings::json::entries_of;
use crate::schema::check::{Integer, JsonLike, Rebuild, ValueKind};

impl JsonLike for Bound<'_, PyAny> {
    type Form = PyForm;

    #[inline]
    fn kind(&self) -> ValueKind {
        if self.is_exact_instance_of::<PyString>() {
            ValueKind::String
        } else if self.is_exact_instance_of::<PyInt>() {
            ValueKind::Int
        } else if self.is_exact_instance_of::<PyDict>() {
            ValueKind::Object
        } else if self.is_exact_instance_of::<PyList>() {
            ValueKind::Array
        } else if self.is_exact_instance_of::<PyBool>() {
            ValueKind::Bool
        } else if let Ok(float) = self.cast_exact::<PyFloat>() {
            float_kind(float)
        } else if self.is_none() {
            ValueKind::Null
        } else {
            rare_kind(self)
        }
    }

    fn is_true(&self) -> bool {
        self.cast::<PyBool>().is_ok_and(PyBoolMethods::is_true)
    }

    fn integer(&self) -> Integer {
        if let Ok(small) = self.extract::<i64>() {
            return Integer::Small(small);
        }
        // Beyond every `i64`, so that an `f64` still knows the sign.
        let negative = self.cast::<PyInt>().is_ok_and(|int| int.lt(0).unwrap_or(false));
        if negative { Integer::Below } else { Integer::Above }
    }

    fn digits(&self, most: usize) -> Option<String> {
        if let Ok(small) = self.extract::<i64>() {
            let digits = small.to_string();
            return (digits.len() <= most).then_some(digits);
        }
        // Writing out takes quadratic time, so it is measured first; and a subclass is asked as the integer that it is.
        let int = self.py().get_type::<PyInt>();
        let bits: usize = int.call_method1("bit_length", (self,)).ok()?.extract().ok()?;
        if bits / 4 > most {
            return None;
        }
        let text: String = int.call_method1("__repr__", (self,)).ok()?.extract().ok()?;
        (text.len() <= most + 1).then_some(text)
    }

    fn float(&self) -> Option<f64> {
        self.cast::<PyFloat>().ok().map(PyFloatMethods::value).filter(|float| float.is_finite())
    }

    fn text(&self) -> Option<&str> {
        self.cast::<PyString>().ok()?.to_str().ok()
    }

    fn lossy_text(&self) -> Cow<'_, str> {
        self.cast::<PyString>().map_or(Cow::Borrowed(""), |text| text.to_string_lossy())
    }

    fn length(&self) -> usize {
        // The lengths of the builtins, not those that a subclass may claim.
        if let Ok(list) = self.cast::<PyList>() {
            list.len()
        } else if let Ok(dict) = self.cast::<PyDict>() {
            dict.len()
        } else if let Ok(tuple) = self.cast::<PyTuple>() {
            tuple.len()
        } else if let Ok(text) = self.cast::<PyString>() {
            text.len().unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    fn is_list(&self) -> bool {
        self.is_instance_of::<PyList>()
    }

    #[inline]
    fn every_item(&self, mut test: impl FnMut(&Self) -> bool) -> bool {
        if let Ok(list) = self.cast::<PyList>() {
            list.iter().all(|item| test(&item))
        } else if let Ok(tuple) = self.cast::<PyTuple>() {
            tuple.iter_borrowed().all(|item| test(&item))
        } else {
            true
        }
    }

    #[inline]
    fn every_entry(&self, mut test: impl FnMut(Option<&str>, &Self) -> bool) -> bool {
        self.cast::<PyDict>().map_or(true, |dict| {
            // Not the dict itself, which a test may change: keys further in may run Python code when they are compared.
            entries_of(dict).into_iter().all(|(key, value)| {
                // Only an exact `str` is compared and hashed without running anybody's code.
                let key = key.cast_exact::<PyString>().ok().and_then(|key| key.to_str().ok());
                test(key, &value)
            })
        })
    }

    fn at_key<R>(&self, key: &str, look: impl FnOnce(&Self) -> R) -> Option<R> {
        let value = self.cast::<PyDict>().ok()?.get_item(key).ok()??;
        Some(look(&value))
    }

    fn other_name(&self) -> String {
        if let Ok(float) = self.cast::<PyFloat>() {
            return format!("{} (not a number that JSON has)", python_name(float.value()));
        }
        // What a type calls itself is asked of `type`, so that a metaclass has no say.
        let name = self.get_type().name().map(|name| name.to_string_lossy().into_owned());
        format!("<{} object>", name.as_deref().unwrap_or("unknown"))
    }

    fn node(&self) -> Bound<'_, PyAny> {
        self.clone()
    }
}

fn float_kind(float: &Bound<'_, PyFloat>) -> ValueKind {
    if float.value().is_finite() { ValueKind::Float } else { ValueKind::Other }
}

fn python_name(float: f64) -> &'static str {
    match float {
        float if float.is_nan() => "nan",
        float if float > 0.0 => "inf",
        _ => "-inf",
    }
}

/// Subclasses, and what JSON has no word for.
#[cold]
fn rare_kind(value: &Bound<'_, PyAny>) -> ValueKind {
    if value.is_instance_of::<PyString>() {
        ValueKind::String
    } else if value.is_instance_of::<PyInt>() {
        ValueKind::Int
    } else if let Ok(float) = value.cast::<PyFloat>() {
        float_kind(float)
    } else if value.is_instance_of::<PyDict>() {
        ValueKind::Object
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        ValueKind::Array
    } else {
        ValueKind::Other
    }
}

impl Rebuild for Bound<'_, PyAny> {
    fn build(&self, value: &Value) -> Option<Self> {
        build(self.py(), value)
    }

    fn with_items(&self, items: Vec<(usize, Self)>) -> Option<Self> {
        let mut copy: Vec<Self> = Vec::with_capacity(self.length());
        self.every_item(|item| {
            copy.push(item.clone());
            true
        });
        for (index, item) in items {
            *copy.get_mut(index)? = item;
        }
        Some(PyList::new(self.py(), copy).ok()?.into_any())
    }

    fn with_entries(&self, entries: Vec<(String, Self)>) -> Option<Self> {
        let copy = self.cast::<PyDict>().ok()?.copy().ok()?;
        for (key, value) in entries {
            copy.set_item(key, value).ok()?;
        }
        Some(copy.into_any())
    }
}

/// A Python object of a JSON value; `None` for a number that Python cannot hold.
fn build<'py>(py: Python<'py>, value: &Value) -> Option<Bound<'py, PyAny>> {
    Some(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => build_number(py, number)?,
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| build(py, item)).collect::<Option<_>>()?;
            PyList::new(py, items).ok()?.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, build(py, value)?).ok()?;
            }
            dict.into_any()
        }
    })
}

fn build_number<'py>(py: Python<'py>, number: &Number) -> Option<Bound<'py, PyAny>> {
    if let Some(small) = number.as_i64() {
        return Some(PyInt::new(py, small).into_any());
    }
    if number.as_str().contains(['.', 'e', 'E']) {
        let float = number.as_f64().filter(|float| float.is_finite())?;
        return Some(PyFloat::new(py, float).into_any());
    }
    // More digits than Python reads in linear time make it raise.
    let int: Bound<'py, PyType> = py.get_type::<PyInt>();
    int.call1((number.as_str(),)).ok()
}

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

impl<'py> JsonNode<'py, PyForm> for Bound<'py, PyAny> {
    type Object = PyObjectNode<'py>;
    type Array = PyArrayNode<'py>;
    type Number = PyNumber;

    fn as_object(&self) -> Option<PyObjectNode<'py>> {
        self.cast::<PyDict>().ok().map(|dict| PyObjectNode(dict.clone()))
    }

    fn as_array(&self) -> Option<PyArrayNode<'py>> {
        (self.kind() == ValueKind::Array).then(|| PyArrayNode(self.clone()))
    }

    fn as_string(&self) -> Option<Cow<'py, str>> {
        (self.kind() == ValueKind::String).then(|| Cow::Owned(self.lossy_text().into_owned()))
    }

    fn as_number(&self) -> Option<PyNumber> {
        match self.kind() {
            ValueKind::Int => Some(match self.integer() {
                Integer::Small(small) => PyNumber::Small(small),
                side => PyNumber::Big(big(self, side)),
            }),
            ValueKind::Float => self.float().map(PyNumber::Float),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        (self.kind() == ValueKind::Bool).then(|| self.is_true())
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }

    fn is_number(&self) -> bool {
        matches!(self.kind(), ValueKind::Int | ValueKind::Float)
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            // A value that JSON cannot hold never reaches the validator alone: see `Checker::check`.
            ValueKind::Null | ValueKind::Other => JsonType::Null,
            ValueKind::Bool => JsonType::Boolean,
            ValueKind::Int | ValueKind::Float => JsonType::Number,
            ValueKind::String => JsonType::String,
            ValueKind::Array => JsonType::Array,
            ValueKind::Object => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        (self.kind() == ValueKind::String).then(|| self.length() as u64)
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
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Int | ValueKind::Float => {
            value.as_number().map_or(Value::Null, |number| Value::Number(number.to_number().into_owned()))
        }
        ValueKind::String => Value::String(value.lossy_text().into_owned()),
        ValueKind::Array if depth < 256 => {
            let mut items = Vec::with_capacity(value.length());
            value.every_item(|item| {
                items.push(to_value(item, depth + 1));
                true
            });
            Value::Array(items)
        }
        ValueKind::Object if depth < 256 => {
            let mut entries = Map::new();
            value.every_entry(|key, entry| {
                entries.insert(key.unwrap_or_default().to_owned(), to_value(entry, depth + 1));
                true
            });
            Value::Object(entries)
        }
        ValueKind::Null | ValueKind::Other | ValueKind::Array | ValueKind::Object => Value::Null,
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
