//! Python objects as the checker sees them. No Python code runs while it looks.

use std::borrow::Cow;

use pyo3::{
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType},
};
use serde_json::{Number, Value};

use super::form::PyForm;
use crate::bindings::json::entries_of;
use crate::schema::check::{Integer, Kind, Rebuild, Subject};

impl Subject for Bound<'_, PyAny> {
    type Form = PyForm;

    #[inline]
    fn kind(&self) -> Kind {
        if self.is_exact_instance_of::<PyString>() {
            Kind::String
        } else if self.is_exact_instance_of::<PyInt>() {
            Kind::Int
        } else if self.is_exact_instance_of::<PyDict>() {
            Kind::Object
        } else if self.is_exact_instance_of::<PyList>() {
            Kind::Array
        } else if self.is_exact_instance_of::<PyBool>() {
            Kind::Bool
        } else if let Ok(float) = self.cast_exact::<PyFloat>() {
            float_kind(float)
        } else if self.is_none() {
            Kind::Null
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

fn float_kind(float: &Bound<'_, PyFloat>) -> Kind {
    if float.value().is_finite() { Kind::Float } else { Kind::Other }
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
fn rare_kind(value: &Bound<'_, PyAny>) -> Kind {
    if value.is_instance_of::<PyString>() {
        Kind::String
    } else if value.is_instance_of::<PyInt>() {
        Kind::Int
    } else if let Ok(float) = value.cast::<PyFloat>() {
        float_kind(float)
    } else if value.is_instance_of::<PyDict>() {
        Kind::Object
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        Kind::Array
    } else {
        Kind::Other
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
