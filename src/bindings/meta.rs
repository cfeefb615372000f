//! The meta tool as one of a toolkit's tools: its schema follows the groups and is kept until something changes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString};
use serde_json::{Map, Value, json};

use super::json;
use super::tool::{PyTool, schema_to_python};
use super::toolkit::PyToolkit;
use crate::schema::{FunctionSchema, Node};

/// The name of the method that switches groups for a model.
pub(crate) const NAME: &str = "reset_equipped_tools";

/// What is kept for a tool that switches the groups of the toolkit it is in: its schema, with the revision it was made at.
#[derive(Default)]
pub(crate) struct MetaTool {
    kept: Mutex<Option<(u64, Py<PyDict>)>>,
}

impl MetaTool {
    fn kept(&self) -> MutexGuard<'_, Option<(u64, Py<PyDict>)>> {
        // The pair is replaced in one assignment.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The schema of that revision for a caller to keep, if it was made before.
    pub(crate) fn copy<'py>(&self, py: Python<'py>, revision: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let schema = self.kept().as_ref().filter(|(made_at, _)| *made_at == revision).map(|(_, it)| it.clone_ref(py));
        schema.map(|schema| json::copy_dict(schema.bind(py))).transpose()
    }

    /// Makes the schema of a revision and keeps it.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        revision: u64,
        schema: &FunctionSchema,
        switches: &Map<String, Value>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = schema_to_python(py, &with_switches(schema, switches))?;
        let copy = json::copy_dict(&dict)?;
        let old = self.kept().replace((revision, dict.unbind()));
        drop(old);
        Ok(copy)
    }

    /// The toolkit whose groups a tool switches, if it is a meta tool.
    pub(crate) fn toolkit_of<'py>(py: Python<'py>, tool: &PyTool) -> PyResult<Option<Bound<'py, PyToolkit>>> {
        if tool.meta.is_none() {
            return Ok(None);
        }
        let owner = tool.registered().bind(py).getattr(intern!(py, "__self__"))?;
        Ok(Some(owner.cast_into::<PyToolkit>()?))
    }
}

/// A schema with one boolean more for each group; a parameter that has a group's name stays.
pub(crate) fn with_switches(schema: &FunctionSchema, switches: &Map<String, Value>) -> FunctionSchema {
    let mut parameters = schema.parameters().value().clone();
    if let Value::Object(parameters) = &mut parameters {
        let properties = parameters.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            for (name, switch) in switches {
                properties.entry(name.as_str()).or_insert_with(|| switch.clone());
            }
        }
    }
    schema.with_parameters(&parameters.into())
}

/// The parameters that a call of the meta tool is held to: any name may be sent, because the tool itself can tell the model
/// which groups there are at that moment.
pub(crate) fn open(parameters: &Node) -> Node {
    let mut parameters = parameters.clone();
    if let Node::Object(parameters) = &mut parameters
        && parameters.get("additionalProperties").is_none_or(|others| *others == Node::Bool(false))
    {
        parameters.insert("additionalProperties", json!({"type": "boolean"}).into());
    }
    parameters
}

/// Whether `function` is the method of that name of this very toolkit.
pub(crate) fn is_method_of(toolkit: &PyToolkit, function: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = function.py();
    if function.is_exact_instance_of::<PyFunction>() {
        return Ok(false);
    }
    let Some(name) = function.getattr_opt(intern!(py, "__name__"))? else { return Ok(false) };
    if !name.cast::<PyString>().is_ok_and(|name| *name == NAME) {
        return Ok(false);
    }
    let owner = function.getattr_opt(intern!(py, "__self__"))?;
    Ok(owner.is_some_and(|owner| owner.cast::<PyToolkit>().is_ok_and(|owner| std::ptr::eq(owner.get(), toolkit))))
}
