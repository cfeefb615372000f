//! Asking whoever may approve a call, while the call waits.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::Value;

use super::freeze::{Frozen, Unfit};
use super::python::attached;
use super::python::drive::{Sent, await_iter, send};
use super::state::{Early, Phase, State, Step};
use crate::bindings::json;
use crate::bindings::log;
use crate::bindings::note::Decided;
use crate::bindings::tool::PyTool;
use crate::bindings::value::error_text;
use crate::call::{Answer, EventKind};
use crate::policy::{Choice, Decision, Ruling, Ticket, Verdict};

/// A question that is being asked.
pub(super) struct Question {
    frozen: Frozen,
    verdict: Verdict,
    ticket: Ticket,
}

/// What came of it.
pub(super) struct Reply<'py> {
    pub(super) choice: Choice,
    pub(super) edited: Option<Bound<'py, PyDict>>,
    pub(super) by: Option<String>,
    pub(super) reason: Option<String>,
}

impl<'py> Reply<'py> {
    /// Reads what `toolcrib._approver` gives.
    pub(super) fn read(reply: &Bound<'py, PyAny>) -> PyResult<Self> {
        type Fields<'py> = (String, Option<Bound<'py, PyAny>>, Option<String>, Option<String>);
        let (answer, edited, by, reason): Fields<'py> = reply.extract()?;
        let choice = Choice::parse(&answer)?;
        let edited = edited.map(|edited| edited.cast_into::<PyDict>().map_err(PyErr::from)).transpose()?;
        Ok(Self { choice, edited, by, reason })
    }
}

impl State {
    /// Asks an approver.
    pub(super) fn begin_approval<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: Frozen,
        verdict: &Verdict,
        approver: &Bound<'py, PyAny>,
        patience: Option<f64>,
    ) -> Result<(), Early<'py>> {
        self.tell_request(py, tool, &frozen, verdict, None);
        let request = self.request_for_approval(py, tool, &frozen, verdict)?;
        let module = py.import(intern!(py, "toolcrib._approver"))?;
        let desk = tool.desk.clone_ref(py);
        let question = module.call_method1(intern!(py, "ask"), (desk, approver, request, patience))?;
        let question = await_iter(question)?;
        let ticket = tool.desk.get().grants().wait();
        self.cold().question.replace(Some(Box::new(Question { frozen, verdict: verdict.clone(), ticket })));
        self.awaited.set(question);
        self.phase.set(Phase::Approval);
        Ok(())
    }

    /// The request that the approver gets.
    fn request_for_approval<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: &Frozen,
        verdict: &Verdict,
    ) -> PyResult<Bound<'py, PyAny>> {
        let case = self.case(py);
        let fields = PyDict::new(py);
        fields.set_item(intern!(py, "tool"), &*tool.name)?;
        fields.set_item(intern!(py, "arguments"), json::to_python(py, &frozen.shown(tool))?)?;
        fields.set_item(intern!(py, "caller"), case.caller.as_deref())?;
        fields.set_item(intern!(py, "rule"), verdict.rule().map(|rule| rule.id()))?;
        fields.set_item(intern!(py, "reason"), verdict.reason())?;
        fields.set_item(intern!(py, "kind"), tool.traits.kind.as_str())?;
        fields.set_item(intern!(py, "description"), tool.schema.description())?;
        fields.set_item(intern!(py, "call_id"), &case.id)?;
        let class = py.import(intern!(py, "toolcrib.policy"))?.getattr(intern!(py, "ApprovalRequest"))?;
        class.call((), Some(&fields))
    }

    /// Emits the request for an approval.
    pub(super) fn tell_request(
        &self,
        py: Python<'_>,
        tool: &PyTool,
        frozen: &Frozen,
        verdict: &Verdict,
        pending: Option<&str>,
    ) {
        let desk = tool.desk.get();
        if !desk.is_heard() {
            return;
        }
        desk.tell(py, EventKind::PermissionRequest, &self.case(py), || {
            let data = PyDict::new(py);
            data.set_item(intern!(py, "arguments"), json::to_python(py, &frozen.shown(tool))?)?;
            data.set_item(intern!(py, "rule"), verdict.rule().map(|rule| rule.id()))?;
            data.set_item(intern!(py, "reason"), verdict.reason())?;
            data.set_item(intern!(py, "kind"), tool.traits.kind.as_str())?;
            data.set_item(intern!(py, "pending"), pending.map(|id| [("id", id)].into_py_dict(py)).transpose()?)?;
            Ok(data)
        });
    }

    /// Goes on waiting for the answer: the arguments that may run, once it is there.
    pub(super) fn await_answer<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        let Some(question) = self.awaited.get(py) else { return Err(Early::Step(self.end_of_stream(py))) };
        match send(&question, value) {
            Sent::Yielded(future) => Err(Early::Step(Step::Suspend(future))),
            Sent::Returned(reply) => self.answered(py, &reply),
            Sent::Raised(error) => Err(Early::Step(self.fail(py, error))),
        }
    }

    /// The question is answered: the arguments that may run.
    pub(super) fn answered<'py>(
        &self,
        py: Python<'py>,
        reply: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        attached(py, |py| {
            self.awaited.clear(py);
            // From here on it is the tool that is waited for.
            self.suspended.set(false);
            let Some(question) = self.cold().question.take() else { return Err(Early::Step(self.end_of_stream(py))) };
            let tool = self.tool(py);
            let tool = tool.get();
            let reply = Reply::read(reply).unwrap_or_else(|error| {
                let text = format!(
                    "approver for '{}' returned an invalid answer; denying the call: {}",
                    tool.name,
                    error_text(py, &error)
                );
                if let Err(error) = log::warning(py, &text) {
                    error.write_unraisable(py, None);
                }
                let reason = Some("whoever was asked could not answer".to_owned());
                Reply { choice: Choice::No, edited: None, by: None, reason }
            });
            self.apply_answer(py, tool, *question, reply)
        })
    }

    fn apply_answer<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        question: Question,
        reply: Reply<'py>,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        let Question { frozen, verdict, ticket } = question;
        let desk = tool.desk.get();
        let is_cancelled = desk.grants().is_cancelled(ticket);
        let choice = if is_cancelled { Choice::Cancel } else { reply.choice };
        let by = reply.by.as_deref().unwrap_or("approver");
        let decided = Decided { by: Some(by), ..answered_by(&verdict, choice) };
        match choice {
            Choice::Cancel => {
                if !is_cancelled {
                    desk.grants().cancel_all();
                }
                Err(self.cancel(py, tool, &frozen, &decided))
            }
            Choice::No => {
                let reason = reply.reason.unwrap_or_else(|| "whoever was asked did not agree".to_owned());
                Err(self.turn_down(py, tool, &frozen.whole, &decided, reason))
            }
            Choice::Once | Choice::Run | Choice::Always => {
                let frozen = self.edited(py, tool, frozen, reply.edited.as_ref(), &decided)?;
                self.check_still_admitted(py, tool, &frozen, &decided)?;
                self.permit_approved(py, tool, &frozen, &decided, choice, &verdict)
            }
        }
    }

    /// Lets run what was approved, unless a rule denies it by now, and remembers what else was allowed.
    pub(super) fn permit_approved<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: &Frozen,
        decided: &Decided<'_>,
        choice: Choice,
        asked: &Verdict,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        let now = self.verdict_on(py, tool, frozen);
        if now.decision == Decision::Deny {
            return Err(self.deny(py, tool, &now, &frozen.whole));
        }
        if let Err(error) = self.note_decision(py, tool, decided, &frozen.whole) {
            return Err(self.deny_unaudited(py, tool, &error));
        }
        self.remember(py, tool, choice, asked);
        self.tell_result(py, tool, decided, "");
        Ok(frozen.to_dict(py)?)
    }

    /// Remembers what was allowed beyond this call.
    fn remember(&self, py: Python<'_>, tool: &PyTool, choice: Choice, asked: &Verdict) {
        if asked.decision != Decision::Ask {
            return;
        }
        let (desk, caller) = (tool.desk.get(), self.caller(py));
        let grant = || desk.grant(tool, caller.as_deref(), &asked.cause);
        let kept = match choice {
            Choice::Run => return grant(),
            Choice::Always => desk.policy_to_extend(py),
            Choice::Once | Choice::No | Choice::Cancel => return,
        };
        let kept = kept.and_then(|policy| {
            let policy = policy.get().rules().clone();
            Ok(py.detach(|| policy.allow_always(&tool.name, caller.as_deref(), &asked.cause))?)
        });
        let text = match kept {
            Ok(true) => return,
            Ok(false) => format!("'{}' runs this once, not always: `{}` asks each time", tool.name, asked.cause.name()),
            Err(error) => {
                // The next run asks again.
                grant();
                format!("'{}' may run always, but that cannot be saved: {}", tool.name, error_text(py, &error))
            }
        };
        if let Err(error) = log::warning(py, &text) {
            error.write_unraisable(py, None);
        }
    }

    /// The arguments to run with: those that were shown, or the edited ones, which are checked anew.
    pub(super) fn edited<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: Frozen,
        edited: Option<&Bound<'py, PyDict>>,
        decided: &Decided<'_>,
    ) -> Result<Frozen, Early<'py>> {
        let Some(edited) = edited else { return Ok(frozen) };
        let decided = Decided { outcome: Ruling::Denied, ..*decided };
        let reason = match checked_edit(tool, edited, &frozen)? {
            Ok(edited) => return Ok(edited),
            Err(reason) => reason,
        };
        let reason = format!("it was approved with other arguments, which do not fit: {reason}");
        if let Err(error) = log::warning(py, &format!("a call of '{}' was denied: {reason}", tool.name)) {
            error.write_unraisable(py, None);
        }
        Err(self.turn_down(py, tool, &frozen.whole, &decided, reason))
    }

    /// Refuses a tool that may not be called any more, since the approver was asked.
    fn check_still_admitted<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: &Frozen,
        decided: &Decided<'_>,
    ) -> Result<(), Early<'py>> {
        if self.toolkit.get(py).is_none() {
            return Ok(());
        }
        let decided = Decided { outcome: Ruling::Denied, ..*decided };
        match self.find_admitted(py, &tool.name) {
            // A view makes its own meta tool each time.
            Ok(found) if found.is(&*self.tool(py)) || found.get().meta.is_some() => Ok(()),
            Ok(_) => {
                let reason = "the tool was replaced after it was approved".to_owned();
                Err(self.turn_down(py, tool, &frozen.whole, &decided, reason))
            }
            Err(answer) => {
                self.tell_refusal(py, tool, &frozen.whole, &decided, &answer.text());
                Err(answer.into())
            }
        }
    }

    /// All pending questions were cancelled.
    pub(super) fn cancel<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: &Frozen,
        decided: &Decided<'_>,
    ) -> Early<'py> {
        if let Err(error) = self.note_decision(py, tool, decided, &frozen.whole) {
            error.write_unraisable(py, None);
        }
        self.tell_result(py, tool, decided, "everything that waited was cancelled");
        Early::Reply(Answer::Cancelled { tool: tool.name.to_string() })
    }
}

/// Edited arguments as they run, or why they do not fit.
pub(super) fn checked_edit(
    tool: &PyTool,
    edited: &Bound<'_, PyDict>,
    frozen: &Frozen,
) -> PyResult<Result<Frozen, String>> {
    let edited = unmasked(tool, edited, frozen)?;
    Ok(Frozen::of(&tool.plan, &edited, &())?.map_err(|unfit| match unfit {
        Unfit::Refused(answer) => answer.text(),
        Unfit::Unwritable(reason) => reason,
    }))
}

/// Edited arguments in which a secret that is still hidden is what it was.
fn unmasked<'py>(tool: &PyTool, edited: &Bound<'py, PyDict>, frozen: &Frozen) -> PyResult<Bound<'py, PyDict>> {
    let py = edited.py();
    let edited = edited.copy()?;
    let shown = frozen.shown(tool);
    for way in &tool.traits.secrets {
        let name = way.split('.').next().unwrap_or_default();
        let Some(original) = frozen.sent.get(name).or_else(|| frozen.whole.get(name)) else { continue };
        let is_untouched = match (edited.get_item(name)?, shown.get(name)) {
            (Some(given), Some(shown)) => json::from_python(&given).is_ok_and(|given| Value::from(given) == *shown),
            _ => false,
        };
        if is_untouched {
            edited.set_item(name, json::to_python(py, original)?)?;
        }
    }
    Ok(edited)
}

/// A decision that somebody took.
pub(super) fn answered_by(verdict: &Verdict, choice: Choice) -> Decided<'_> {
    let outcome = match choice {
        Choice::Once | Choice::Run | Choice::Always => Ruling::Run,
        Choice::No => Ruling::Denied,
        Choice::Cancel => Ruling::Cancelled,
    };
    Decided { answer: Some(choice), outcome, ..Decided::by_rule(verdict) }
}
