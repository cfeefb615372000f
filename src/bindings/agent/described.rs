//! JSON Schemas from what users write in place of one: a dict, a pydantic model, or any type that an argument may have.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use serde_json::Value;

use crate::bindings::imported::import_module;
use crate::bindings::json::schema_from_python;
use crate::bindings::parameters::class_name;
use crate::schema::{Node, remove_titles};

/// The schema of a dict or a pydantic model; `None` for anything else.
pub(crate) fn schema_of_object(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if object.is_instance_of::<PyDict>() {
        return Ok(Some(schema_from_python(object)?.into()));
    }
    let name = intern!(object.py(), "model_json_schema");
    if object.is_instance_of::<PyType>()
        && let Some(describe) = object.getattr_opt(name)?
    {
        let mut schema: Node = schema_from_python(&describe.call0()?)?;
        remove_titles(&mut schema);
        return Ok(Some(schema.into()));
    }
    Ok(None)
}

/// The schema of a dict, a pydantic model or a type, which is described as the argument of a tool is.
pub(super) fn schema_of(parameter: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Some(schema) = schema_of_object(object)? {
        return Ok(schema);
    }
    if object.is_none() {
        let class = class_name(object);
        return Err(PyTypeError::new_err(format!("{parameter} must be a JSON Schema or a type, not {class}")));
    }
    let shape = import_module(object.py(), "toolcrib.context")?.getattr("_AnswerShape")?.call1((object,))?;
    Ok(schema_from_python(&shape.getattr("schema")?)?.into())
}
