//! Sub-agents as Python sees them: definitions, the tool that is an agent, its run, and the rules of the ready-made loop.
//!
//! - `definition`: `AgentDefinition`, its limits and its prompt; with `input` and `output`, the values that an agent takes and gives;
//! - `folder`: definitions in files.
//!
//! The path of a run: [`tool`] is the function of a registered agent. A call of it comes to `call/agent.rs`, which checks its
//! lineage, opens the session that [`tool`] selects, and calls the loop with the inputs, the session and the [`run`]. The loop
//! calls tools through its session, and what it emits through the run is progress in the stream of the call. [`rules`] are
//! the decisions of the core that the ready-made loop in `python/toolcrib/_agent_loop.py` asks for.

mod definition;
mod folder;
mod input;
mod output;
mod rules;
mod run;
mod tool;

use pyo3::prelude::*;

#[allow(unused_imports, reason = "the runner of agents uses it")]
pub(crate) use definition::PyAgentDefinition;
pub(crate) use output::schema_of_object;
pub(crate) use run::PyAgentRun;
pub(crate) use tool::PyAgentTool;

/// Adds the classes and functions to the module.
pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<definition::PyAgentDefinition>()?;
    module.add_class::<input::PyAgentInput>()?;
    module.add_class::<definition::PyAgentLimits>()?;
    module.add_class::<output::PyAgentOutput>()?;
    module.add_class::<definition::PyAgentPrompt>()?;
    module.add_class::<folder::PyAgentFolder>()?;
    module.add_class::<run::PyAgentRun>()?;
    super::add_internal::<tool::PyAgentTool>(module)?;
    rules::install(module)
}
