//! What a class is at first sight.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyType};

use super::known::Known;
use crate::schema::{ArrayKind, Type};

/// The commonest classes, by identity.
pub(super) fn plain_class(class: &Bound<'_, PyType>) -> Option<Type> {
    let py = class.py();
    if class.is(py.get_type::<PyString>()) {
        Some(Type::Text)
    } else if class.is(py.get_type::<PyInt>()) {
        Some(Type::Integer)
    } else if class.is(py.get_type::<PyFloat>()) {
        Some(Type::Number)
    } else if class.is(py.get_type::<PyBool>()) {
        Some(Type::Boolean)
    } else if class.is(py.get_type::<PyList>()) {
        Some(Type::Array { items: Box::new(Type::Any), kind: ArrayKind::List })
    } else if class.is(py.get_type::<PyDict>()) {
        Some(Type::Map { keys: Box::new(Type::Any), values: Box::new(Type::Any), countable: true })
    } else {
        None
    }
}

pub(super) fn known_class(class: &Bound<'_, PyType>) -> PyResult<Option<Known>> {
    let py = class.py();
    if class.is(py.get_type::<PyList>()) {
        return Ok(Some(Known::Array(ArrayKind::List)));
    }
    if class.is(py.get_type::<PyDict>()) {
        return Ok(Some(Known::Map { countable: true }));
    }
    // A class may hide both names behind a property of its metaclass.
    let Ok(module) = class.module() else {
        return Ok(None);
    };
    let name = class.qualname()?;
    let known = Known::named(module.to_str()?, name.to_str()?);
    Ok(known)
}

/// Whether an object tells pydantic what it is.
pub(super) fn asks_for_pydantic(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__get_pydantic_core_schema__"))?
        || object.hasattr(intern!(py, "__pydantic_core_schema__"))?
        || object.hasattr(intern!(py, "__get_pydantic_json_schema__"))?
        || object.hasattr(intern!(py, "__pydantic_config__"))?
        || object.hasattr(intern!(py, "__get_validators__"))?)
}

pub(super) fn is_forward(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    if annotation.is_exact_instance_of::<PyString>() {
        return Ok(true);
    }
    Ok(type_name(annotation) == "ForwardRef" && annotation.hasattr(intern!(annotation.py(), "__forward_arg__"))?)
}

pub(super) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().ok().and_then(|name| name.extract().ok()).unwrap_or_default()
}
