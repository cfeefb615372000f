//! `AgentInput`, and the inputs of an agent in the forms that users write: named, as a JSON Schema or as a pydantic model.

use indexmap::IndexMap;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping};

use super::output::schema_of_object;
use crate::agent::{AgentInput, Inputs};
use crate::bindings::json;
use crate::bindings::parameters::{Omittable, class_name, flag, optional_text, text};
use crate::near::did_you_mean;

/// One input of an agent.
///
/// Args:
///     type: `"string"`, `"number"`, `"integer"`, `"boolean"`, `"string[]"` or `"number[]"`.
///     description: The description for the calling model.
///     required: True if the agent cannot be called without it.
#[pyclass(name = "AgentInput", module = "toolcrib", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyAgentInput(pub(super) AgentInput);

#[pymethods]
impl PyAgentInput {
    #[new]
    #[pyo3(
        signature = (r#type, description=None, required=Omittable(None)),
        text_signature = "(type, description='', required=True)"
    )]
    fn new(
        r#type: &Bound<'_, PyAny>,
        description: Option<&Bound<'_, PyAny>>,
        required: Omittable<'_>,
    ) -> PyResult<Self> {
        Ok(Self(AgentInput {
            kind: text("type", r#type)?,
            description: optional_text("description", description)?.unwrap_or_default(),
            required: flag("required", &required, true)?,
        }))
    }

    /// The name of its type.
    #[getter]
    fn r#type(&self) -> &str {
        &self.0.kind
    }

    /// The description for the calling model.
    #[getter]
    fn description(&self) -> &str {
        &self.0.description
    }

    /// True if the agent cannot be called without it.
    #[getter]
    fn required(&self) -> bool {
        self.0.required
    }

    fn __repr__(&self) -> String {
        let AgentInput { kind, description, required } = &self.0;
        let required = if *required { "True" } else { "False" };
        format!("AgentInput(type={kind:?}, description={description:?}, required={required})")
    }
}

/// Reads the inputs of an agent.
pub(super) fn read_inputs(inputs: &Bound<'_, PyAny>) -> PyResult<Inputs> {
    let is_declared = |dict: &Bound<'_, PyDict>| -> PyResult<bool> {
        Ok(!dict.get_item("type")?.is_some_and(|kind| kind.eq("object").unwrap_or(false)))
    };
    let is_model = inputs.is_instance_of::<pyo3::types::PyType>();
    if is_model || inputs.cast::<PyDict>().is_ok_and(|dict| !is_declared(dict).unwrap_or(true)) {
        return match schema_of_object(inputs)? {
            Some(schema) => Ok(Inputs::Schema(schema)),
            None => Err(wrong_inputs(inputs)),
        };
    }
    let dict = as_dict("inputs", inputs).map_err(|_| wrong_inputs(inputs))?.cast_into::<PyDict>()?;
    let mut read = IndexMap::new();
    for (name, input) in json::entries_of(&dict) {
        let name = text("the name of an input", &name)?;
        let input = match input.cast::<PyAgentInput>() {
            Ok(input) => input.get().0.clone(),
            Err(_) => read_input(&name, &input)?,
        };
        read.insert(name, input);
    }
    Ok(Inputs::Declared(read))
}

fn wrong_inputs(inputs: &Bound<'_, PyAny>) -> PyErr {
    let class = class_name(inputs);
    PyTypeError::new_err(format!("inputs must be a mapping of names, a JSON Schema or a pydantic model, not {class}"))
}

/// Reads an input that is given as a dict.
fn read_input(name: &str, input: &Bound<'_, PyAny>) -> PyResult<AgentInput> {
    const KNOWN: [&str; 3] = ["type", "description", "required"];
    let Ok(fields) = input.cast::<PyDict>() else {
        let class = class_name(input);
        return Err(PyTypeError::new_err(format!("input `{name}` must be an AgentInput or a dictionary, not {class}")));
    };
    for (key, _) in json::entries_of(fields) {
        let key = text("a key of an input", &key)?;
        if !KNOWN.contains(&key.as_str()) {
            let hint = did_you_mean(&key, KNOWN);
            let expected = ": expected `type`, `description` or `required`; pass a JSON Schema for all inputs for more";
            let end = if hint.is_empty() { expected } else { &hint };
            return Err(PyValueError::new_err(format!("input `{name}`: unknown key `{key}`{end}")));
        }
    }
    let Some(kind) = fields.get_item("type")? else {
        return Err(PyValueError::new_err(format!("input `{name}`: missing `type`")));
    };
    let required = match fields.get_item("required")? {
        None => true,
        Some(required) => required.cast::<PyBool>().map(PyBoolMethods::is_true).map_err(|_| {
            PyTypeError::new_err(format!(
                "required of input `{name}` must be True or False, not {}",
                class_name(&required)
            ))
        })?,
    };
    Ok(AgentInput {
        kind: text(&format!("type of input `{name}`"), &kind)?,
        description: match fields.get_item("description")? {
            Some(description) => text(&format!("description of input `{name}`"), &description)?,
            None => String::new(),
        },
        required,
    })
}

/// A mapping as a dict.
pub(super) fn as_dict<'py>(parameter: &str, mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if mapping.is_instance_of::<PyDict>() {
        return Ok(mapping.clone());
    }
    if mapping.cast::<PyMapping>().is_err() {
        return Err(PyTypeError::new_err(format!("{parameter} must be a mapping, not {}", class_name(mapping))));
    }
    mapping.py().get_type::<PyDict>().call1((mapping,))
}
