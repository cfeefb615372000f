//! Rules of a policy that never match a tool of the toolkit, because a name or a value in them is misspelt.

use pyo3::prelude::*;

use super::PyToolkit;
use crate::bindings::call::ToolView;
use crate::bindings::log_warning;
use crate::bindings::tool::PyTool;
use crate::call::ToolFacts;
use crate::policy::{KnownTool, Policy, RuleProblem};

/// The facts about a tool that rules can name.
fn known_tool(py: Python<'_>, tool: &PyTool) -> KnownTool {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ToolView { py, tool }.with_facts(None, |facts| KnownTool {
        name: tool.name.clone(),
        server: facts.server.map(str::to_owned),
        groups: owned(facts.groups),
        tags: owned(facts.tags),
        kind: facts.kind,
        schema: tool.schema.clone(),
    })
}

impl PyToolkit {
    /// Names in rules that no tool has.
    fn unknown_names(&self, py: Python<'_>, policy: &Policy) -> Vec<RuleProblem> {
        let (tools, groups): (Vec<_>, Vec<_>) = self.with_registry(|registry| {
            let tools = registry.tools().map(|tool| known_tool(py, tool.body.get()));
            (tools.collect(), registry.group_ids().map(str::to_owned).collect())
        });
        // A toolkit without tools is not ready to be checked.
        if tools.is_empty() { Vec::new() } else { policy.check(&tools, &groups) }
    }

    /// Values in rules that are not in the canonical form that rules see, so that nothing is equal to them.
    fn unseen_values(&self, py: Python<'_>, policy: &Policy) -> PyResult<Vec<RuleProblem>> {
        let tools: Vec<Py<PyTool>> =
            self.with_registry(|registry| registry.tools().map(|tool| tool.body.clone_ref(py)).collect());
        let mut problems = Vec::new();
        for rule in policy.rules().iter().filter(|rule| rule.operands().next().is_some()) {
            for tool in tools.iter().filter(|tool| rule.concerns(&known_tool(py, tool.get()))) {
                for (name, value) in rule.operands() {
                    if let Some(seen) = tool.get().plan.canonical(py, name, value)? {
                        problems.extend(RuleProblem::of_value(rule, &tool.get().name, name, value, seen.as_ref()));
                    }
                }
            }
        }
        Ok(problems)
    }

    /// The rules of a policy that never match a tool, or not as they are written.
    pub(crate) fn check_rules(&self, py: Python<'_>, policy: &Policy) -> PyResult<Vec<RuleProblem>> {
        let mut problems = self.unknown_names(py, policy);
        problems.extend(self.unseen_values(py, policy)?);
        Ok(problems)
    }

    /// Logs the names in rules that are unknown so far, once for each state of the rules. It is called when the tools are used, so that
    /// rules may be written before the tools are registered.
    #[inline]
    pub(crate) fn warn_of_rules(&self, py: Python<'_>) {
        if let Some(policy) = self.permissions(py).get().rules_to_check() {
            self.log_unknown_names(py, &policy);
        }
    }

    #[cold]
    fn log_unknown_names(&self, py: Python<'_>, policy: &Policy) {
        if self.with_registry(|registry| registry.tools().next().is_none()) {
            self.permissions(py).get().forget_check();
        }
        for problem in self.unknown_names(py, policy) {
            let text = format!("{problem}; until there is one, the rule does not match");
            if self.permissions(py).get().is_new_problem(&text)
                && let Err(error) = log_warning(py, &text)
            {
                error.write_unraisable(py, None);
            }
        }
    }
}
