//! The arguments that a decision is about: a copy that nobody else can change, and that runs if the decision is yes.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::arguments::{Plan, RecordRepairs};
use crate::bindings::json;
use crate::bindings::tool::PyTool;
use crate::bindings::value::error_text;
use crate::call::Answer;

/// Arguments that are checked and cannot be changed any more.
pub(super) struct Frozen {
    /// What was sent, as far as it was changed to fit.
    pub(super) sent: Value,
    /// The same with the defaults of parameters that were not sent: what rules and people judge.
    pub(super) whole: Value,
}

/// Why arguments cannot be judged.
pub(super) enum Unfit {
    /// They do not fit the schema.
    Refused(Answer),
    /// JSON cannot hold them, so that a rule could not see what it is there to deny.
    Unwritable(String),
}

impl Frozen {
    /// Checks the arguments of a request and makes a copy of them.
    pub(super) fn of(
        plan: &Plan,
        input: &Bound<'_, PyDict>,
        notes: &impl RecordRepairs,
    ) -> PyResult<Result<Self, Unfit>> {
        let py = input.py();
        let settled = match plan.accepted(input, notes)? {
            Ok(settled) => settled,
            Err(answer) => return Ok(Err(Unfit::Refused(answer))),
        };
        let sent: Value = match json::from_python(&settled) {
            Ok(node) => node.into(),
            Err(error) => return Ok(Err(Unfit::Unwritable(error_text(py, &error)))),
        };
        let whole = plan.completed(py, sent.clone());
        Ok(Ok(Self { sent, whole }))
    }

    /// Arguments that were frozen before.
    pub(super) fn again(py: Python<'_>, plan: &Plan, sent: Value) -> Self {
        let whole = plan.completed(py, sent.clone());
        Self { sent, whole }
    }

    /// What runs.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(json::to_python(py, &self.sent)?.cast_into::<PyDict>()?)
    }

    /// Arguments as they came, redacted, also if they do not fit.
    pub(super) fn redacted(tool: &PyTool, came: &Bound<'_, PyAny>) -> Value {
        let as_value = || json::from_python(came).map_or(Value::Null, Value::from);
        if tool.traits.secrets.is_empty() {
            return as_value();
        }
        if let Ok(input) = came.cast::<PyDict>()
            && let Ok(Ok(frozen)) = Self::of(&tool.plan, input, &())
        {
            return tool.plan.redaction().arguments(&frozen.sent);
        }
        tool.plan.redaction().unchecked(as_value())
    }

    /// What people are shown.
    pub(super) fn shown(&self, tool: &PyTool) -> Value {
        tool.plan.redaction().arguments(&self.whole)
    }
}
