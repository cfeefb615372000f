//! `Explanation`: why a call is decided as it is, rule by rule.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::bindings::json as bridge;
use crate::policy::{Explanation, RuleOutcome};

/// Why a call is decided as it is, rule by rule.
#[pyclass(name = "Explanation", module = "toolcrib.policy", frozen)]
pub(crate) struct PyExplanation(Explanation);

impl From<Explanation> for PyExplanation {
    fn from(explanation: Explanation) -> Self {
        Self(explanation)
    }
}

#[pymethods]
impl PyExplanation {
    /// What is decided: `"allow"`, `"ask"` or `"deny"`.
    #[getter]
    fn decision(&self) -> &'static str {
        self.0.verdict.decision.as_str()
    }

    /// The id of the rule that decides; None if the tool's own permission or the default does.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.0.verdict.rule().map(|rule| rule.id())
    }

    /// Why.
    #[getter]
    fn reason(&self) -> String {
        self.0.verdict.reason().into_owned()
    }

    /// What would be decided if nothing were in shadow mode; None if it is the same.
    #[getter]
    fn shadowed(&self) -> Option<&'static str> {
        self.0.verdict.shadowed.as_ref().map(|shadowed| shadowed.decision.as_str())
    }

    /// Every rule in the order in which it is tried, and what came of it.
    #[getter]
    fn tried<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tried = self.0.tried.iter().map(|tried| {
            let (outcome, failure) = match &tried.outcome {
                RuleOutcome::Decides => ("decides", None),
                RuleOutcome::WouldDecide => ("would_decide", None),
                RuleOutcome::Answered => ("answered", None),
                RuleOutcome::Matches => ("matches", None),
                RuleOutcome::Fails(failure) => ("fails", Some(failure)),
            };
            json!({
                "rule": tried.rule.id(),
                "tier": tried.rule.tier().as_str(),
                "priority": tried.rule.priority(),
                "decision": tried.rule.decision().as_str(),
                "outcome": outcome,
                "condition": failure.map(|failure| &failure.condition),
                "wanted": failure.map(|failure| &failure.wanted),
                "seen": failure.map(|failure| &failure.seen),
            })
        });
        bridge::to_python(py, &Value::Array(tried.collect()))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Explanation(decision='{}', rule={:?})", self.decision(), self.rule())
    }
}
