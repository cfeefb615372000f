//! A dry run: what would become of a call, without anything running, being asked or being noted.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::freeze::{Frozen, Unfit};
use super::request::{NO_CALL, is_readable};
use super::state::{Early, Origin, State};
use crate::bindings::desk::Ruling;
use crate::call::Answer;
use crate::policy::{Decision, Verdict};

/// What would become of a call.
struct Outlook {
    /// `run`, `ask`, `pending`, `deny`, or `refuse` where the request itself is wrong.
    would: &'static str,
    answer: Option<Answer>,
    verdict: Option<Verdict>,
}

impl Outlook {
    fn refused(answer: Answer) -> Self {
        Self { would: "refuse", answer: Some(answer), verdict: None }
    }

    fn to_dict<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let shown = PyDict::new(py);
        let verdict = self.verdict.as_ref();
        let is_about_arguments = matches!(self.answer, Some(Answer::InvalidArguments { .. }));
        let text = self.answer.as_ref().map(Answer::text);
        shown.set_item(intern!(py, "tool"), name)?;
        shown.set_item(intern!(py, "would"), self.would)?;
        shown.set_item(intern!(py, "decision"), verdict.map(|verdict| verdict.decision.as_str()))?;
        shown.set_item(intern!(py, "rule"), verdict.and_then(|verdict| verdict.rule()).map(|rule| rule.id()))?;
        let reason = verdict.map(|verdict| verdict.reason().into_owned());
        shown.set_item(intern!(py, "reason"), reason.or_else(|| text.clone()))?;
        let shadowed = verdict.and_then(|verdict| verdict.shadowed.as_ref());
        shown.set_item(intern!(py, "shadowed"), shadowed.map(|shadowed| shadowed.decision.as_str()))?;
        shown.set_item(intern!(py, "code"), self.answer.as_ref().map(|answer| answer.code().as_str()))?;
        shown.set_item(intern!(py, "problems"), if is_about_arguments { text } else { None })?;
        Ok(shown)
    }
}

/// Reports the outcome that a call of a toolkit or through a view would have.
pub(crate) fn check<'py>(origin: &Bound<'py, PyAny>, call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = origin.py();
    if !is_readable(call) {
        return Err(PyTypeError::new_err(NO_CALL));
    }
    let state = State::stream(Origin::of(origin)?, call.clone());
    let mut name = None;
    let outlook = match outlook(py, &state, &mut name) {
        Ok(outlook) => outlook,
        Err(Early::Reply(answer)) => Outlook::refused(answer),
        Err(Early::Raise(error)) => return Err(error),
        Err(Early::Step(_)) => return Err(PyTypeError::new_err(NO_CALL)),
    };
    outlook.to_dict(py, name.as_deref())
}

fn outlook<'py>(py: Python<'py>, state: &State, name: &mut Option<String>) -> Result<Outlook, Early<'py>> {
    let request = state.read_request(py)?;
    let name = name.insert(request.name()?.to_owned());
    let tool = state.find_admitted(py, name)?;
    state.refuse_uncertain(py, tool.get(), &request.arguments)?;
    let desk = tool.get().desk.get();
    let caller = state.caller(py);
    let verdict = match Frozen::of(&tool.get().plan, &request.arguments, state)? {
        Ok(frozen) => desk.judge(tool.get(), caller.as_deref(), &frozen.whole),
        Err(unfit) => {
            // What is denied whatever the arguments are is denied with these.
            if let Ruling::Deny(verdict) = desk.glance(tool.get(), caller.as_deref()) {
                return Ok(Outlook { would: "deny", answer: None, verdict: Some(verdict) });
            }
            return Ok(Outlook::refused(match unfit {
                Unfit::Refused(answer) => answer,
                Unfit::Unwritable(reason) => Answer::Denied { tool: name.clone(), reason },
            }));
        }
    };
    let asked = desk.asked(py);
    let would = match verdict.decision {
        Decision::Allow => "run",
        Decision::Deny => "deny",
        Decision::Ask if desk.is_granted(tool.get(), caller.as_deref(), &verdict.cause) => "run",
        Decision::Ask if asked.headless => "deny",
        Decision::Ask if asked.approver.is_some() => "ask",
        Decision::Ask => "pending",
    };
    Ok(Outlook { would, answer: None, verdict: Some(verdict) })
}
