//! `AgentOutput`, and the JSON Schemas of what users write in place of one: a dict, a pydantic model, or any type that an argument
//! may have.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use serde_json::Value;

use crate::agent::AgentOutput;
use crate::bindings::imported::import_module;
use crate::bindings::json::{self, schema_from_python};
use crate::bindings::once::intern;
use crate::bindings::parameters::{class_name, text};
use crate::schema::{Node, remove_titles};

/// The value that an agent has to give when it has completed its task.
///
/// Args:
///     name: The name of the argument that carries it.
///     description: The description for the agent's model.
///     schema: Its JSON Schema, a pydantic model or a type.
///     process: A function that turns the value into the text of the result.
#[pyclass(name = "AgentOutput", module = "toolcrib", frozen)]
pub(crate) struct PyAgentOutput {
    pub(super) output: AgentOutput,
    class: Option<Py<PyAny>>,
    process: Option<Py<PyAny>>,
}

impl PyAgentOutput {
    /// The output of a definition in a file.
    pub(super) fn of_file(output: AgentOutput) -> Self {
        Self { output, class: None, process: None }
    }
}

#[pymethods]
impl PyAgentOutput {
    #[new]
    #[pyo3(signature = (name, description, schema, process=None))]
    fn new(
        name: &Bound<'_, PyAny>,
        description: &Bound<'_, PyAny>,
        schema: &Bound<'_, PyAny>,
        process: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if let Some(process) = process.as_ref().filter(|process| !process.is_callable()) {
            return Err(PyTypeError::new_err(format!("process must be callable, not {}", class_name(process))));
        }
        let output = AgentOutput {
            name: text("name", name)?,
            description: text("description", description)?,
            schema: schema_of("schema", schema)?,
        };
        let class = (!schema.is_instance_of::<PyDict>()).then(|| schema.clone().unbind());
        Ok(Self { output, class, process: process.map(Bound::unbind) })
    }

    /// The name of the argument that carries it.
    #[getter]
    fn name(&self) -> &str {
        &self.output.name
    }

    /// The description for the agent's model.
    #[getter]
    fn description(&self) -> &str {
        &self.output.description
    }

    /// The JSON Schema, as a copy.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::schema_to_python(py, &self.output.schema)
    }

    /// The pydantic model or the type that was given in place of a schema.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.class.as_ref().map(|class| class.clone_ref(py))
    }

    /// The function that turns the value into the text of the result.
    #[getter]
    fn process(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.process.as_ref().map(|process| process.clone_ref(py))
    }

    fn __repr__(&self) -> String {
        format!("AgentOutput(name={:?})", self.output.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.class.iter().chain(&self.process).try_for_each(|object| visit.call(object))
    }
}

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
fn schema_of(parameter: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
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
