//! The meta tool, whose schema lists the groups of its toolkit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};

use crate::bindings::json::DictTemplate;
use crate::bindings::once::intern;
use crate::bindings::tool::{PyTool, schema_to_python};
use crate::bindings::toolkit::PyToolkit;
use crate::schema::{FunctionSchema, Node};

/// The method by which a model switches groups.
pub(crate) const META_TOOL: &str = "reset_equipped_tools";

/// The cache of the schema of a meta tool, with the revision of the toolkit for which it was made.
#[derive(Default)]
pub(crate) struct MetaTool {
    cached: Mutex<Option<(u64, Arc<DictTemplate>)>>,
}

impl MetaTool {
    fn cached(&self) -> MutexGuard<'_, Option<(u64, Arc<DictTemplate>)>> {
        // The pair is replaced in one assignment, so a panic cannot leave it half-changed.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the schema for `revision`, if it is cached.
    pub(crate) fn copy<'py>(&self, py: Python<'py>, revision: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let cached =
            self.cached().as_ref().filter(|(made_at, _)| *made_at == revision).map(|(_, schema)| schema.clone());
        cached.map(|schema| schema.copy(py)).transpose()
    }

    /// Makes the schema for `revision`, caches it and returns a copy.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        revision: u64,
        schema: &FunctionSchema,
        switches: &Map<String, Value>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let schema = Arc::new(DictTemplate::new(&schema_to_python(py, &with_switches(schema, switches))?)?);
        let old = self.cached().replace((revision, schema.clone()));
        drop(old);
        schema.copy(py)
    }

    /// The toolkit of a meta tool; `None` for any other tool.
    pub(crate) fn toolkit_of<'py>(py: Python<'py>, tool: &PyTool) -> PyResult<Option<Bound<'py, PyToolkit>>> {
        if tool.meta.is_none() {
            return Ok(None);
        }
        let owner = tool.registered().bind(py).getattr(intern!(py, "__self__"))?;
        Ok(Some(owner.cast_into::<PyToolkit>()?))
    }
}

/// The schema with an additional boolean for each group. A parameter that has the name of a group stays as it is.
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

/// The parameters against which a call of the meta tool is checked: any name is accepted, because the tool itself tells the
/// model about unknown groups.
pub(crate) fn with_any_switch(parameters: &Node) -> Node {
    let mut parameters = parameters.clone();
    if let Node::Object(parameters) = &mut parameters
        && parameters.get("additionalProperties").is_none_or(|others| *others == Node::Bool(false))
    {
        parameters.insert("additionalProperties", json!({"type": "boolean"}).into());
    }
    parameters
}
