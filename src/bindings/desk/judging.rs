//! What the rules say about a call.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use pyo3::prelude::*;
use serde_json::Value;

use super::PyDesk;
use super::terms::{AUDITED, RULED};
use crate::bindings::policy::PyPolicy;
use crate::bindings::tool::PyTool;
use crate::policy::{CallFacts, Cause, Decision, Grants, Permission, Policy, Question, Quick, Stamp, Verdict};

/// What holds where nobody has set a policy.
static NO_RULES: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);

/// What can be said about a call before its arguments are looked at.
pub(crate) enum Ruling {
    /// It may run, and nobody wants to know.
    Pass,
    /// It may not run, whatever its arguments are.
    Deny(Verdict),
    /// There is more to it.
    Weigh,
}

impl PyDesk {
    /// Whether it is certain that a tool may run.
    #[inline]
    pub(crate) fn lets_pass(&self, tool: &PyTool, is_view: bool) -> bool {
        match self.marks.load(Ordering::Relaxed) {
            0 => tool.traits.permission == Permission::Auto,
            // What is remembered is for a caller that nobody named.
            RULED if !is_view => self.stamp().is_some_and(|stamp| tool.clearance.holds(stamp)),
            _ => false,
        }
    }

    /// Names one state of the rules.
    fn stamp(&self) -> Option<Stamp> {
        let revision = self.terms().policy_revision()?;
        Some(Stamp::new(self.epoch.load(Ordering::Relaxed), revision))
    }

    /// Whether there are rules.
    pub(crate) fn is_ruled(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & RULED != 0
    }

    /// Whether decisions are noted.
    pub(crate) fn is_audited(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & AUDITED != 0
    }

    /// What was allowed for this run.
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Agrees for this run to what a cause asks about a tool.
    pub(crate) fn grant(&self, tool: &PyTool, caller: Option<&str>, asked: &Cause) {
        self.grants.allow(&tool.name, tool.schema_hash(), caller, Question::from(asked));
    }

    /// Whether somebody has agreed for this run to what a cause asks about a tool.
    pub(crate) fn is_granted(&self, tool: &PyTool, caller: Option<&str>, asked: &Cause) -> bool {
        self.grants.allows(&tool.name, tool.schema_hash(), caller, Question::from(asked))
    }

    /// Judges a call without looking at its arguments.
    pub(crate) fn glance(&self, tool: &PyTool, caller: Option<&str>) -> Ruling {
        let (stamp, groups) = (self.stamp(), tool.clearance.groups());
        let rules = self.rules();
        let rules = rules.as_ref().unwrap_or(&NO_RULES);
        match about(tool, caller, |subject| rules.quick(subject)) {
            Quick::Fixed(verdict) if verdict.decision == Decision::Deny => Ruling::Deny(verdict),
            Quick::Fixed(verdict) if verdict.decision == Decision::Allow && verdict.shadowed.is_none() => {
                if self.is_audited() {
                    return Ruling::Weigh;
                }
                if let (None, Some(stamp)) = (caller, stamp) {
                    tool.clearance.allow(stamp, groups);
                }
                Ruling::Pass
            }
            Quick::Fixed(_) | Quick::NeedsArguments => Ruling::Weigh,
        }
    }

    /// Judges a call.
    pub(crate) fn judge(&self, tool: &PyTool, caller: Option<&str>, arguments: &Value) -> Verdict {
        let rules = self.rules();
        let rules = rules.as_ref().unwrap_or(&NO_RULES);
        about(tool, caller, |subject| rules.decide(subject, arguments))
    }

    /// The policy to which an answer is added that is to hold from now on; made if there is none.
    pub(crate) fn policy_to_extend(&self, py: Python<'_>) -> PyResult<Py<PyPolicy>> {
        if let Some(policy) = self.policy(py) {
            return Ok(policy);
        }
        let policy = Py::new(py, PyPolicy::default())?;
        self.set_policy(Some(policy.clone_ref(py)));
        Ok(policy)
    }
}

/// What rules can know about a call of a tool.
pub(crate) fn about<T>(tool: &PyTool, caller: Option<&str>, ask: impl FnOnce(&CallFacts<'_>) -> T) -> T {
    let tags: Vec<&str> = tool.tags.iter().map(AsRef::as_ref).collect();
    tool.seat.with(|first, more| {
        let groups: Vec<&str> = std::iter::once(first).chain(more).map(|group| group.name()).collect();
        ask(&CallFacts {
            tool: &tool.name,
            server: tool.server.as_deref(),
            groups: &groups,
            tags: &tags,
            kind: tool.traits.kind,
            permission: tool.traits.permission,
            caller,
        })
    })
}
