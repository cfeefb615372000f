//! Sub-agents as Python sees them. Read in this order:
//!
//! - `described`: JSON Schemas from what users write in place of one;
//! - `definition`: `AgentDefinition` and the values in it;
//! - `folder`: definitions in files.

mod definition;
mod described;
mod folder;

use pyo3::prelude::*;

#[allow(unused_imports, reason = "the runner of agents uses it")]
pub(crate) use definition::PyAgentDefinition;
pub(crate) use described::schema_of_object;

/// Adds the classes to the module.
pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<definition::PyAgentDefinition>()?;
    module.add_class::<definition::PyAgentInput>()?;
    module.add_class::<definition::PyAgentLimits>()?;
    module.add_class::<definition::PyAgentOutput>()?;
    module.add_class::<definition::PyAgentPrompt>()?;
    module.add_class::<folder::PyAgentFolder>()
}
