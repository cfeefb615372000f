//! Arguments of methods that Python users call: lists of names, words of a fixed set, and arguments that may be omitted.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Reads a list of names, given as any iterable of strings except a single string. `parameter` is named in errors.
pub(crate) fn name_list<C: FromIterator<N>, N: for<'a> From<&'a str>>(
    parameter: &str,
    names: &Bound<'_, PyAny>,
) -> PyResult<C> {
    let refused = || PyTypeError::new_err(format!("{parameter} must be a list of strings, not {}", class_name(names)));
    // A string is an iterable of strings too, but passing one is a mistake.
    if names.is_instance_of::<PyString>() || names.is_instance_of::<PyBytes>() {
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

/// Returns the parsed value of an option, or the error that lists the valid words.
pub(crate) fn choice<T>(option: &str, word: &str, parsed: Option<T>, choices: &str) -> PyResult<T> {
    parsed.ok_or_else(|| PyValueError::new_err(format!("{option} must be {choices}, not '{word}'")))
}

/// An argument that may be omitted, where `None` is a value like any other.
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
