//! What is noted of a decision, wherever decisions are noted.

use jiff::Timestamp;
use pyo3::prelude::*;
use serde_json::Value;

use super::call::Case;
use super::tool::PyTool;
use crate::policy::{Choice, Decision, Record, Ruling, Verdict};

/// A decision, and how it came about.
#[derive(Clone, Copy)]
pub(crate) struct Decided<'a> {
    pub(crate) decision: Decision,
    pub(crate) rule: Option<&'a str>,
    /// Who answered, if somebody was asked.
    pub(crate) by: Option<&'a str>,
    pub(crate) answer: Option<Choice>,
    pub(crate) shadow: Option<Decision>,
    pub(crate) outcome: Ruling,
}

impl<'a> Decided<'a> {
    /// A rule, the tool itself or the default has decided.
    pub(crate) fn by_rule(verdict: &'a Verdict) -> Self {
        Self {
            decision: verdict.decision,
            rule: verdict.rule().map(|rule| rule.id()),
            by: None,
            answer: None,
            shadow: verdict.shadowed.as_ref().map(|shadowed| shadowed.decision),
            outcome: if verdict.decision == Decision::Allow { Ruling::Run } else { Ruling::Denied },
        }
    }

    /// Somebody has agreed to all such calls of this run.
    pub(crate) fn before(verdict: &'a Verdict) -> Self {
        Self { answer: Some(Choice::Run), by: Some("grant"), outcome: Ruling::Run, ..Self::by_rule(verdict) }
    }

    /// Nobody can be asked.
    pub(crate) fn headless(verdict: &'a Verdict) -> Self {
        Self { by: Some("headless"), ..Self::by_rule(verdict) }
    }

    /// Toolcrib itself refuses, for want of what a decision needs.
    pub(crate) fn refused(by: &'a str) -> Self {
        Self { decision: Decision::Deny, rule: None, by: Some(by), answer: None, shadow: None, outcome: Ruling::Denied }
    }

    /// What listeners are told: whether it may run.
    pub(crate) fn outcome_word(&self) -> &'static str {
        if self.outcome == Ruling::Run { "allow" } else { "deny" }
    }
}

/// Notes a decision. It must not take effect if that fails.
pub(crate) fn note(
    py: Python<'_>,
    tool: &PyTool,
    case: &Case,
    decided: &Decided<'_>,
    arguments: &Value,
) -> PyResult<()> {
    let Some(sink) = tool.desk.get().audit(py) else { return Ok(()) };
    let redaction = tool.plan.redaction();
    let shown = redaction.arguments(arguments);
    sink.note(
        py,
        &Record {
            time: Timestamp::now(),
            call: &case.id,
            tool: &tool.name,
            arguments_hash: Record::sum_of(arguments, &redaction),
            arguments: Some(&shown),
            caller: case.caller.as_deref(),
            rule: decided.rule,
            decision: decided.decision,
            shadow: decided.shadow,
            answered_by: decided.by,
            answer: decided.answer,
            outcome: Some(decided.outcome),
        },
    )
}
