//! The core's errors as Python exceptions; one arm for each, so that a new error asks for its exception.

use std::any::Any;

use pyo3::prelude::*;

use crate::Error;

mod python {
    #![allow(missing_docs, reason = "the classes are documented where they are defined, in errors.py")]
    pyo3::import_exception!(toolcrib.errors, DuplicateToolError);
    pyo3::import_exception!(toolcrib.errors, UnknownToolError);
    pyo3::import_exception!(toolcrib.errors, NoFreeNameError);
    pyo3::import_exception!(toolcrib.errors, DuplicateGroupError);
    pyo3::import_exception!(toolcrib.errors, UnknownGroupError);
    pyo3::import_exception!(toolcrib.errors, BasicGroupError);
    pyo3::import_exception!(toolcrib.errors, InvalidSchemaError);
    pyo3::import_exception!(toolcrib.errors, IncompleteSchemaError);
    pyo3::import_exception!(toolcrib.errors, UnsupportedTypeError);
    pyo3::import_exception!(toolcrib.errors, ExtendedModelError);
    pyo3::import_exception!(toolcrib.errors, InternalError);
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::DuplicateTool { .. } => python::DuplicateToolError::new_err(text),
            Error::UnknownTool { .. } | Error::ToolNotFound { .. } => python::UnknownToolError::new_err(text),
            Error::NoFreeName { .. } => python::NoFreeNameError::new_err(text),
            Error::DuplicateGroup { .. } => python::DuplicateGroupError::new_err(text),
            Error::UnknownGroup { .. } => python::UnknownGroupError::new_err(text),
            Error::BasicGroup => python::BasicGroupError::new_err(text),
            Error::InvalidSchema { .. } => python::InvalidSchemaError::new_err(text),
            Error::IncompleteSchema { .. } => python::IncompleteSchemaError::new_err(text),
            Error::UnsupportedType { .. } => python::UnsupportedTypeError::new_err(text),
            Error::FieldConflict { .. }
            | Error::PresetConflict { .. }
            | Error::DefinitionConflict { .. }
            | Error::UnusableModel { .. } => python::ExtendedModelError::new_err(text),
        }
    }
}

/// A panic caught at the border: a defect of toolcrib, told as an ordinary exception so that the program lives on.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "an unknown panic".to_owned());
    python::InternalError::new_err(format!("toolcrib failed internally, please report this: {what}"))
}
