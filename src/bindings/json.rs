//! JSON values to Python objects and back.

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Number, Value};

use crate::schema::{Entries, Node};

/// How deep a value may be nested: deep enough for any schema, shallow enough for any stack.
pub(crate) const DEEPEST: usize = 128;

/// Makes the Python object for `value`.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    make(py, value, PyString::new)
}

/// Makes the Python object for a schema, whose words are the same in every tool: they are made once.
pub(crate) fn schema_to_python<'py>(py: Python<'py>, schema: &Value) -> PyResult<Bound<'py, PyAny>> {
    const LONGEST_WORD: usize = 20;
    make(
        py,
        schema,
        |py, text| if text.len() <= LONGEST_WORD { PyString::intern(py, text) } else { PyString::new(py, text) },
    )
}

fn make<'py>(
    py: Python<'py>,
    value: &Value,
    string: fn(Python<'py>, &str) -> Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => number_to_python(py, number)?,
        Value::String(text) => string(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(make(py, item, string)?)?;
            }
            list.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(string(py, key), make(py, item, string)?)?;
            }
            dict.into_any()
        }
    })
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(small) = number.as_i64() {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    let text = number.as_str();
    if text.contains(['.', 'e', 'E']) {
        let float: f64 = text.parse().map_err(|_| PyValueError::new_err(format!("`{text}` is no number")))?;
        return Ok(PyFloat::new(py, float).into_any());
    }
    py.get_type::<PyInt>().call1((text,))
}

/// Reads a JSON value from a Python object; anything JSON cannot hold is an error that names its place.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Node> {
    Reading { drop_defaults: false }.read(object, &Place::Root, 0)
}

/// Reads a schema that Python code made: a default that JSON cannot hold is left out.
pub(crate) fn schema_from_python(object: &Bound<'_, PyAny>) -> PyResult<Node> {
    Reading { drop_defaults: true }.read(object, &Place::Root, 0)
}

struct Reading {
    drop_defaults: bool,
}

/// Where in the value we are, told only when something is wrong there.
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl Reading {
    fn read(&self, object: &Bound<'_, PyAny>, place: &Place<'_>, depth: usize) -> PyResult<Node> {
        if depth > DEEPEST {
            return Err(PyRecursionError::new_err(format!("{place}: more than {DEEPEST} levels deep")));
        }
        if object.is_none() {
            return Ok(Node::Null);
        }
        if let Ok(flag) = object.cast::<PyBool>() {
            return Ok(Node::Bool(flag.is_true()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return text
                .to_str()
                .map(|text| Node::from(text.to_owned()))
                .map_err(|_| PyValueError::new_err(format!("{place}: text with a lone surrogate is not JSON")));
        }
        if let Ok(integer) = object.cast::<PyInt>() {
            return integer_from_python(integer).map(Node::Number);
        }
        if let Ok(float) = object.cast::<PyFloat>() {
            return Number::from_f64(float.value())
                .map(Node::Number)
                .ok_or_else(|| PyValueError::new_err(format!("{place}: {} is not JSON", float.value())));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let mut entries = Entries::with_capacity(dict.len());
            for (key, item) in entries_of(dict) {
                let key = key.cast::<PyString>().map_err(|_| {
                    PyTypeError::new_err(format!("{place}: key {} is {}, not str", shown(&key), kind(&key)))
                })?;
                let key = key.to_str()?;
                match self.read(&item, &Place::Key(place, key), depth + 1) {
                    Ok(item) => entries.push(key.to_owned(), item),
                    Err(_) if self.drop_defaults && key == "default" => {}
                    Err(error) => return Err(error),
                }
            }
            return Ok(Node::Object(entries));
        }
        let items = if let Ok(list) = object.cast::<PyList>() {
            list.iter().collect::<Vec<_>>()
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            tuple.iter().collect()
        } else {
            return Err(PyTypeError::new_err(format!("{place}: {} is not JSON", kind(object))));
        };
        let items =
            items.iter().enumerate().map(|(index, item)| self.read(item, &Place::Index(place, index), depth + 1));
        items.collect::<PyResult<Vec<_>>>().map(Node::Array)
    }
}

/// The entries of a dict, taken before any of them is read: reading one may run Python code, and another thread may run
/// meanwhile, so that the dict may change.
pub(crate) fn entries_of<'py>(dict: &Bound<'py, PyDict>) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    dict.iter().collect()
}

/// Reads an integer of any size, digit by digit.
pub(crate) fn integer_from_python(integer: &Bound<'_, PyInt>) -> PyResult<Number> {
    if let Ok(small) = integer.extract::<i64>() {
        return Ok(Number::from(small));
    }
    // `int.__repr__` rather than `repr`: a subclass such as an enumeration shows itself differently.
    let digits = integer.py().get_type::<PyInt>().call_method1("__repr__", (integer,))?;
    Ok(Number::from_string_unchecked(digits.extract::<String>()?))
}

fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned())
}

fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Copies a dict of JSON values all the way down; strings and numbers are shared.
pub(crate) fn copy_dict<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let copy = dict.copy()?;
    for (key, value) in entries_of(&copy) {
        if let Some(value) = copy_container(&value)? {
            copy.set_item(key, value)?;
        }
    }
    Ok(copy)
}

fn copy_container<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return Ok(Some(copy_dict(dict)?.into_any()));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let copy = list.get_slice(0, list.len());
        for index in 0..copy.len() {
            if let Some(item) = copy_container(&copy.get_item(index)?)? {
                copy.set_item(index, item)?;
            }
        }
        return Ok(Some(copy.into_any()));
    }
    Ok(None)
}
