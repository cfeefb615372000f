//! Copies of dicts and lists, all the way down: of what may be anything and may hold itself, and of JSON that is copied often.
//! Everything but dicts and lists is shared.

use std::collections::HashMap;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

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

/// A dict of JSON values that is copied often: where its dicts and lists are is found out once.
pub(crate) struct Template {
    dict: Py<PyDict>,
    nested: Box<[(Py<PyString>, Nested)]>,
}

/// A dict or a list inside of a template; everything else is shared by all copies.
enum Nested {
    Dict(Template),
    List(Py<PyList>, Box<[(usize, Nested)]>),
}

impl Template {
    /// The template of a dict that nobody changes any more.
    pub(crate) fn new(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut nested = Vec::new();
        for (key, value) in dict {
            if let Some(value) = Nested::new(&value)? {
                nested.push((key.cast_into::<PyString>()?.unbind(), value));
            }
        }
        Ok(Self { dict: dict.clone().unbind(), nested: nested.into() })
    }

    /// A copy, all the way down.
    pub(crate) fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let copy = self.dict.bind(py).copy()?;
        for (key, nested) in &self.nested {
            copy.set_item(key.bind(py), nested.copy(py)?)?;
        }
        Ok(copy)
    }
}

impl Nested {
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return Ok(Some(Self::Dict(Template::new(dict)?)));
        }
        let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
        let mut nested = Vec::new();
        for (index, item) in list.iter().enumerate() {
            nested.extend(Self::new(&item)?.map(|item| (index, item)));
        }
        Ok(Some(Self::List(list.clone().unbind(), nested.into())))
    }

    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Dict(template) => template.copy(py).map(Bound::into_any),
            Self::List(list, nested) => {
                let list = list.bind(py);
                let copy = list.get_slice(0, list.len());
                for (index, item) in nested {
                    copy.set_item(*index, item.copy(py)?)?;
                }
                Ok(copy.into_any())
            }
        }
    }
}
