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
    /// The rules of a policy that never match a tool, or not as they are written: names that no tool has, and values that are not in the
    /// canonical form that rules see, so that nothing is equal to them.
    pub(crate) fn check_rules(&self, py: Python<'_>, policy: &Policy) -> PyResult<Vec<RuleProblem>> {
        let (tools, known, groups) = self.with_registry(|registry| {
            let tools: Vec<Py<PyTool>> = registry.tools().map(|tool| tool.body.clone_ref(py)).collect();
            let known: Vec<KnownTool> = tools.iter().map(|tool| known_tool(py, tool.get())).collect();
            (tools, known, registry.group_ids().map(str::to_owned).collect::<Vec<_>>())
        });
        // A toolkit without tools is not ready to be checked.
        if tools.is_empty() {
            return Ok(Vec::new());
        }
        let mut problems = policy.check(&known, &groups);
        for rule in policy.rules().iter().filter(|rule| rule.operands().next().is_some()) {
            for (tool, _) in tools.iter().zip(&known).filter(|(_, known)| rule.concerns(known)) {
                for (name, value) in rule.operands() {
                    if let Some(seen) = tool.get().plan.canonical(py, name, value)? {
                        problems.extend(RuleProblem::of_value(rule, &tool.get().name, name, value, seen.as_ref()));
                    }
                }
            }
        }
        Ok(problems)
    }

    /// Logs the problems of rules, once for each state of the rules. It is called when the tools are used, so that rules may be written
    /// before the tools are registered.
    #[inline]
    pub(crate) fn warn_of_rules(&self, py: Python<'_>) {
        if let Some(policy) = self.permissions(py).get().rules_to_check() {
            self.log_problems(py, &policy);
        }
    }

    #[cold]
    fn log_problems(&self, py: Python<'_>, policy: &Policy) {
        if self.with_registry(|registry| registry.tools().next().is_none()) {
            self.permissions(py).get().forget_check();
        }
        let logged = self.check_rules(py, policy).and_then(|problems| {
            problems.iter().try_for_each(|problem| {
                let text = format!("{problem}; until that changes, the rule does not work as it is written");
                if self.permissions(py).get().is_new_problem(&text) { log_warning(py, &text) } else { Ok(()) }
            })
        });
        if let Err(error) = logged {
            error.write_unraisable(py, None);
        }
    }
}
