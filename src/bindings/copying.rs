//! Copies of what may be anything: dicts and lists are copied, however they hold each other, and all else is shared.

use std::collections::HashMap;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// How deep is copied; what is further in is shared.
const DEEPEST: usize = 100;

type Copies<'py> = HashMap<*mut PyObject, Bound<'py, PyAny>>;

/// Copies a dict and the dicts and lists in it.
pub(crate) fn copied<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    copy_dict(dict, 0, &mut HashMap::new())
}

fn copy_dict<'py>(dict: &Bound<'py, PyDict>, depth: usize, copies: &mut Copies<'py>) -> PyResult<Bound<'py, PyDict>> {
    let copy = dict.copy()?;
    copies.insert(dict.as_ptr(), copy.clone().into_any());
    // A list: keys of somebody's own class may change the dict while they are compared.
    for entry in copy.items() {
        let (key, value) = entry.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
        if let Some(value) = copy_container(&value, depth + 1, copies)? {
            copy.set_item(key, value)?;
        }
    }
    Ok(copy)
}

fn copy_container<'py>(
    value: &Bound<'py, PyAny>,
    depth: usize,
    copies: &mut Copies<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(copy) = copies.get(&value.as_ptr()) {
        return Ok(Some(copy.clone()));
    }
    if depth > DEEPEST {
        return Ok(None);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return Ok(Some(copy_dict(dict, depth, copies)?.into_any()));
    }
    let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
    let copy = list.get_slice(0, list.len());
    copies.insert(value.as_ptr(), copy.clone().into_any());
    for index in 0..copy.len() {
        if let Some(item) = copy_container(&copy.get_item(index)?, depth + 1, copies)? {
            copy.set_item(index, item)?;
        }
    }
    Ok(Some(copy.into_any()))
}
