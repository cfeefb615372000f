//! Sub-agents: the tool that is an agent, its run, and the rules of the ready-made loop.
//!
//! The path of a run: [`tool`] is the function of a registered agent. A call of it comes to `call/agent.rs`, which checks its
//! lineage, opens the session that [`tool`] selects, and calls the loop with the inputs, the session and the [`run`]. The loop
//! calls tools through its session, and what it emits through the run is progress in the stream of the call. [`rules`] are
//! the decisions of the core that the ready-made loop in `python/toolcrib/_agent_loop.py` asks for.

mod rules;
mod run;
mod tool;

use pyo3::prelude::*;

pub(crate) use run::PyAgentRun;
pub(crate) use tool::PyAgentTool;

/// Adds the classes and functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<run::PyAgentRun>()?;
    super::add_internal::<tool::PyAgentTool>(module)?;
    rules::install(module)
}
