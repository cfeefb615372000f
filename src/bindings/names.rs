//! Lists of names as developers write them: any iterable of strings, but never a single string.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Reads a list of names; `what` is the parameter it came by.
pub(crate) fn read<C: FromIterator<N>, N: for<'a> From<&'a str>>(what: &str, names: &Bound<'_, PyAny>) -> PyResult<C> {
    let refused = |it: &Bound<'_, PyAny>| {
        let kind = it.get_type().qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("{what} must be a list of strings, not {kind}"))
    };
    // A string is an iterable of strings as well, which nobody means.
    if names.is_instance_of::<PyString>() || names.is_instance_of::<PyBytes>() {
        return Err(refused(names));
    }
    let items = names.try_iter().map_err(|_| refused(names))?;
    let name = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let text = item.cast::<PyString>().map_err(|_| {
            let kind = item.get_type().qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("{what} must be a list of strings, and one of them is {kind}"))
        })?;
        Ok(N::from(text.to_str()?))
    };
    items.map(name).collect()
}

/// The same where `None` is an answer of its own.
pub(crate) fn read_optional<C: FromIterator<N>, N: for<'a> From<&'a str>>(
    what: &str,
    names: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<C>> {
    names.map(|names| read(what, names)).transpose()
}
