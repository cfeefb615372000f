//! The schema of a declared tool, which validates parameters before an invocation is built.

use pyo3::prelude::*;
use serde_json::Value;

use super::agent::schema_of_object;
use super::json;
use crate::Error;
use crate::schema::check::Checker;

/// The compiled JSON Schema of a declared tool's parameters.
#[pyclass(name = "_DeclaredSchema", module = "toolcrib._core", frozen)]
pub(crate) struct PyDeclaredSchema {
    schema: Value,
    checker: Checker,
}

#[pymethods]
impl PyDeclaredSchema {
    /// Compile a JSON Schema or the schema of a pydantic model.
    #[new]
    fn new(parameters: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(schema) = schema_of_object(parameters)? else {
            return Err(
                Error::InvalidSchema { reason: "Expected a JSON Schema or a pydantic model.".to_owned() }.into()
            );
        };
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(Error::InvalidSchema { reason: "Expected `\"type\": \"object\"`.".to_owned() }.into());
        }
        let checker = Checker::compile(&schema)?;
        Ok(Self { schema, checker })
    }

    /// The schema, as a copy.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::schema_to_python(py, &self.schema)
    }

    /// Describe the first problem of parameters; None if they fit.
    fn problem(&self, params: &Bound<'_, PyAny>) -> Option<String> {
        match json::value_from_python(params) {
            Ok(value) => self.checker.first_problem(&value, "params"),
            Err(error) => Some(format!("params must consist of JSON values: {}", error.value(params.py()))),
        }
    }
}
