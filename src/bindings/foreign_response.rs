//! Responses of another library's class with the same six fields, such as AgentScope's: read as toolcrib's own, and made in
//! place of them for a toolkit that takes the place of the other library's.

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::into_response::into_response;
use super::response::{FIELDS, PyToolResponse};
use crate::bindings::once::intern;

/// The class in which a toolkit delivers its responses, if that is not toolcrib's own.
pub(crate) struct ResponseClass(Py<PyType>);

impl ResponseClass {
    pub(crate) fn new(class: Bound<'_, PyType>) -> Self {
        Self(class.unbind())
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }

    /// True for a response of this class, which is delivered as it is.
    #[inline]
    pub(crate) fn holds(&self, value: &Bound<'_, PyAny>) -> bool {
        let class = self.0.bind(value.py());
        value.get_type().is(class) || value.is_instance(class).unwrap_or(false)
    }

    /// The response that a value of a tool becomes.
    pub(crate) fn response_of<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.holds(&value) { Ok(value) } else { self.convert(into_response(value)?) }
    }

    /// A response in this class: one of toolcrib's is converted, any other stays. Attributes that the class does not have are
    /// set only if they say something.
    pub(crate) fn convert<'py>(&self, response: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = response.py();
        let Ok(own) = response.cast::<PyToolResponse>() else { return Ok(response) };
        let converted = self.0.bind(py).call1(PyToolResponse::fields(own)?)?;
        let (code, mode) = PyToolResponse::extras(own);
        if let Some(code) = code {
            converted.setattr(intern!(py, "code"), code)?;
        }
        if let Some(mode) = mode {
            converted.setattr(intern!(py, "mode"), mode)?;
        }
        Ok(converted)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// The exception for a tool without a result. Other plain values become responses, but a missing one is a mistake, and
/// AgentScope raises this text.
#[cold]
pub(crate) fn not_a_response() -> PyErr {
    PyTypeError::new_err(
        "The tool function must return a ToolResponse object, or an AsyncGenerator/Generator of ToolResponse objects, \
         but got <class 'NoneType'>.",
    )
}

/// A response as one of toolcrib's own: itself, or the conversion of one that has the same fields.
pub(crate) fn own<'py>(response: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyToolResponse>> {
    if let Ok(own) = response.cast::<PyToolResponse>() {
        return Ok(own.clone());
    }
    match adopt(response)? {
        Some(adopted) => Ok(adopted),
        None => Ok(into_response(response.clone())?.cast_into::<PyToolResponse>()?),
    }
}

/// Converts a response of another library that has the same fields.
pub(crate) fn adopt<'py>(foreign: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyToolResponse>>> {
    let py = foreign.py();
    let mut fields = Vec::with_capacity(FIELDS.len());
    for field in FIELDS {
        match foreign.getattr_opt(field)? {
            Some(value) => fields.push(value),
            None => return Ok(None),
        }
    }
    let class = PyToolResponse::type_object(py);
    let adopted = class.call1(PyTuple::new(py, fields)?)?.cast_into::<PyToolResponse>()?;
    for attribute in [intern!(py, "code"), intern!(py, "mode")] {
        if let Some(value) = foreign.getattr_opt(attribute)?.filter(PyAnyMethods::is_instance_of::<PyString>) {
            // Another library may use the name for something else.
            let _ = adopted.setattr(attribute, value);
        }
    }
    Ok(Some(adopted))
}

/// The code of a response; none also for the response of another library, which has no codes.
pub(crate) fn code_of(response: &Bound<'_, PyAny>) -> Option<String> {
    let code = response.getattr_opt(intern!(response.py(), "code")).ok().flatten()?;
    code.cast::<PyString>().ok().map(|code| code.to_string_lossy().into_owned())
}

/// True if a response already says that the call was cancelled.
pub(crate) fn is_interrupted(response: &Bound<'_, PyAny>) -> bool {
    let mark = response.getattr_opt(intern!(response.py(), "is_interrupted")).ok().flatten();
    mark.is_some_and(|mark| mark.is_truthy().unwrap_or(false))
}
