//! Arguments of methods that Python users call. Each reader names the parameter in its errors, which pyo3's own do not.

use std::path::PathBuf;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

use crate::near::did_you_mean;

/// The error for an argument of the wrong type. `parameter` is its name, `expected` the types that it may have.
pub(crate) fn wrong_type(parameter: &str, expected: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{parameter} must be {expected}, not {}", class_name(argument)))
}

/// Reads a string that need not be valid Unicode.
pub(crate) fn string<'a, 'py>(parameter: &str, argument: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    argument.cast::<PyString>().map_err(|_| wrong_type(parameter, "a string", argument))
}

/// Reads a string.
pub(crate) fn text(parameter: &str, argument: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(string(parameter, argument)?.to_str()?.to_owned())
}

/// Reads a string that may be `None`.
pub(crate) fn optional_text(parameter: &str, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    argument.map(|argument| text(parameter, argument)).transpose()
}

/// Reads a switch, which has a default.
pub(crate) fn flag(parameter: &str, argument: &Omittable<'_>, default: bool) -> PyResult<bool> {
    let Some(argument) = &argument.0 else { return Ok(default) };
    argument.extract().map_err(|_| wrong_type(parameter, "True or False", argument))
}

/// Reads a number of seconds that may be `None`.
pub(crate) fn optional_seconds(parameter: &str, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
    let read = |argument: &Bound<'_, PyAny>| {
        let seconds = if argument.is_instance_of::<PyBool>() { None } else { argument.extract().ok() };
        seconds.ok_or_else(|| wrong_type(parameter, "a number of seconds", argument))
    };
    argument.map(read).transpose()
}

/// Reads the path of a file or folder that may be `None`.
pub(crate) fn optional_path(parameter: &str, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<PathBuf>> {
    let read = |argument: &Bound<'_, PyAny>| argument.extract().map_err(|_| wrong_type(parameter, "a path", argument));
    argument.map(read).transpose()
}

/// Reads bytes that may be `None`.
pub(crate) fn optional_bytes<'a>(
    parameter: &str,
    argument: Option<&'a Bound<'_, PyAny>>,
) -> PyResult<Option<&'a [u8]>> {
    let read = |argument: &'a Bound<'_, PyAny>| match argument.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(wrong_type(parameter, "bytes", argument)),
    };
    argument.map(read).transpose()
}

/// Reads a dictionary that may be `None`.
pub(crate) fn optional_dict<'py>(
    parameter: &str,
    argument: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let read = |argument: &Bound<'py, PyAny>| {
        argument.cast::<PyDict>().cloned().map_err(|_| wrong_type(parameter, "a dictionary", argument))
    };
    argument.map(read).transpose()
}

/// Reads an instance of one of toolcrib's classes that may be `None`.
pub(crate) fn optional_instance<T: PyTypeInfo>(
    parameter: &str,
    argument: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Py<T>>> {
    let read = |argument: &Bound<'_, PyAny>| {
        argument.cast::<T>().map(|object| object.clone().unbind()).map_err(|_| {
            let expected =
                T::type_object(argument.py()).name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            wrong_type(parameter, &format!("an object of the class `{expected}`"), argument)
        })
    };
    argument.map(read).transpose()
}

/// Reads a list of names, given as any iterable of strings. A single string is one name. `parameter` is named in errors.
pub(crate) fn name_list<C: FromIterator<N>, N: for<'a> From<&'a str>>(
    parameter: &str,
    names: &Bound<'_, PyAny>,
) -> PyResult<C> {
    if let Ok(name) = names.cast::<PyString>() {
        return Ok(std::iter::once(N::from(name.to_str()?)).collect());
    }
    let refused = || wrong_type(parameter, "a list of strings", names);
    if names.is_instance_of::<PyBytes>() {
        return Err(refused());
    }
    let items = names.try_iter().map_err(|_| refused())?;
    let name = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let text = item.cast::<PyString>().map_err(|_| {
            let class = class_name(&item);
            PyTypeError::new_err(format!("{parameter} must be a list of strings, and one of them is {class}"))
        })?;
        Ok(N::from(text.to_str()?))
    };
    items.map(name).collect()
}

/// Reads a list of names that may be `None`.
pub(crate) fn optional_name_list<C: FromIterator<N>, N: for<'a> From<&'a str>>(
    parameter: &str,
    names: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<C>> {
    names.map(|names| name_list(parameter, names)).transpose()
}

/// Refuses a keyword argument that a method of a class does not have, with the one that was probably meant. The names are those of
/// the method's `text_signature`.
pub(crate) fn no_unknown<T: PyTypeInfo>(method: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(unknown) = unknown.and_then(|unknown| unknown.keys().get_item(0).ok()) else { return Ok(()) };
    let class = T::type_object(unknown.py());
    let (owner, shown) = if method == "__init__" {
        (class.clone().into_any(), class.name()?.to_string())
    } else {
        (class.getattr(method)?, format!("{}.{method}", class.name()?))
    };
    let signature: String = owner.getattr("__text_signature__")?.extract()?;
    let names = signature.trim_matches(['(', ')']).split(',').filter_map(|part| part.trim().split('=').next());
    let option = unknown.str()?.to_string_lossy().into_owned();
    let hint = did_you_mean(&option, names.filter(|name| name.starts_with(|first: char| first.is_alphabetic())));
    Err(PyTypeError::new_err(format!("{shown}() got an unknown option `{option}`{hint}")))
}

/// Returns the parsed value of an option, or the error that lists the valid words.
pub(crate) fn choice<T>(option: &str, word: &str, parsed: Option<T>, choices: &str) -> PyResult<T> {
    parsed.ok_or_else(|| PyValueError::new_err(format!("{option} must be {choices}, not '{word}'")))
}

/// An argument that may be omitted, where `None` is a value like any other.
#[derive(Default)]
pub(crate) struct Omittable<'py>(pub(crate) Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Omittable<'py> {
    type Error = std::convert::Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// The name of the class of an object, for errors.
pub(crate) fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// The error for the arguments of a method that takes a tool's name, and its arguments by keyword; `None` if they are right.
pub(crate) fn call_mistake<'py>(
    method: &str,
    name: Option<&Bound<'py, PyAny>>,
    misplaced: &[Bound<'py, PyAny>],
) -> Option<PyErr> {
    let usage = match name {
        Some(name) if !name.is_instance_of::<PyString>() => {
            format!("the name of a tool must be a string, not {}", class_name(name))
        }
        Some(_) if misplaced.is_empty() => return None,
        Some(_) => match misplaced[0].cast::<PyDict>() {
            Ok(_) => "arguments are passed by keyword; unpack a dictionary with `**`".to_owned(),
            Err(_) => "arguments are passed by keyword".to_owned(),
        },
        None => "the name of a tool is missing".to_owned(),
    };
    Some(PyTypeError::new_err(format!("{method}(name, **arguments): {usage}")))
}

/// Raise an exception if the arguments of `run` are not a name, and arguments by keyword.
#[pyfunction]
pub(crate) fn _check_call(method: &str, name: &Bound<'_, PyAny>, misplaced: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    call_mistake(method, Some(name), &misplaced).map_or(Ok(()), Err)
}

/// Return a list of names, given as any iterable of strings. A single string is one name.
#[pyfunction]
pub(crate) fn _name_list(parameter: &str, names: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    name_list(parameter, names)
}

/// Return `: did you mean ...?` for an unknown word, or an empty string.
#[pyfunction]
pub(crate) fn _did_you_mean(word: &str, known: Vec<String>) -> String {
    did_you_mean(word, known.iter().map(String::as_str))
}
