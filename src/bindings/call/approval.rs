//! Asking whoever may approve a call, while the call waits.

use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::Value;

use super::drive::{await_iter, resume};
use super::freeze::{Frozen, Unfit};
use super::input::InDict;
use super::start::Refusal;
use super::state::{Phase, State, Step};
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
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    pub(super) unsafe fn begin_approval(
        &self,
        py: Python<'_>,
        frozen: Frozen,
        verdict: &Verdict,
        approver: &Bound<'_, PyAny>,
        patience: Option<f64>,
    ) -> Step {
        // SAFETY: as for the caller; the coroutine is owned.
        unsafe {
            self.tell_request(py, &frozen, verdict, None);
            let question = self.request_for_approval(py, &frozen, verdict).and_then(|request| {
                let module = py.import(intern!(py, "toolcrib._approver"))?;
                let desk = self.tool().desk.clone_ref(py);
                module.call_method1(intern!(py, "ask"), (desk, approver, request, patience))
            });
            let question = match question {
                Ok(question) => await_iter(question.into_ptr()),
                Err(error) => return self.refuse(Refusal::Raise(error)),
            };
            if question.is_null() {
                return self.refuse(Refusal::Raise(PyErr::fetch(py)));
            }
            let ticket = self.tool().desk.get().grants().wait();
            self.rare().question.replace(Some(Box::new(Question { frozen, verdict: verdict.clone(), ticket })));
            self.pending.set(question);
            self.phase.set(Phase::Approval);
            self.step_approval(ffi::Py_None())
        }
    }

    /// What the approver is shown.
    unsafe fn request_for_approval<'py>(
        &self,
        py: Python<'py>,
        frozen: &Frozen,
        verdict: &Verdict,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as for `begin_approval`.
        let tool = unsafe { self.tool() };
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

    /// Tells whoever listens that somebody is asked.
    pub(super) unsafe fn tell_request(
        &self,
        py: Python<'_>,
        frozen: &Frozen,
        verdict: &Verdict,
        pending: Option<&str>,
    ) {
        // SAFETY: as for `begin_approval`.
        let tool = unsafe { self.tool() };
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

    /// Goes on waiting for the answer.
    pub(super) unsafe fn step_approval(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `pending` drives the question.
        unsafe {
            match resume(self.pending.get(), value) {
                (PySendResult::PYGEN_NEXT, future) => Step::Suspend(future),
                (PySendResult::PYGEN_RETURN, reply) => self.answered(reply),
                (PySendResult::PYGEN_ERROR, _) => self.fail(),
            }
        }
    }

    /// The question is answered; consumes the reply.
    pub(super) unsafe fn answered(&self, reply: *mut PyObject) -> Step {
        // SAFETY: the reply is owned; the phase was `Approval`, so that the question is there.
        Python::attach(|py| unsafe {
            let reply = Bound::from_owned_ptr(py, reply);
            self.pending.clear();
            // From here on it is the tool that is waited for.
            self.suspended.set(false);
            let Some(question) = self.rare().question.take() else { return self.end_of_stream() };
            let reply = Reply::read(&reply).unwrap_or_else(|error| {
                let text = format!(
                    "who was asked whether '{}' may run answered nonsense: it may not: {}",
                    self.tool().name,
                    error_text(py, &error)
                );
                if let Err(error) = log::warning(py, &text) {
                    error.write_unraisable(py, None);
                }
                let reason = Some("whoever was asked could not answer".to_owned());
                Reply { choice: Choice::No, edited: None, by: None, reason }
            });
            self.follow(py, *question, reply)
        })
    }

    unsafe fn follow(&self, py: Python<'_>, question: Question, reply: Reply<'_>) -> Step {
        let Question { frozen, verdict, ticket } = question;
        // SAFETY: as for `begin_approval`.
        unsafe {
            let desk = self.tool().desk.get();
            let is_cancelled = desk.grants().is_cancelled(ticket);
            let choice = if is_cancelled { Choice::Cancel } else { reply.choice };
            let by = reply.by.as_deref().unwrap_or("approver");
            let decided = Decided { by: Some(by), ..answered_by(&verdict, choice) };
            match choice {
                Choice::Cancel => {
                    if !is_cancelled {
                        desk.grants().cancel_all();
                    }
                    self.cancel(py, &frozen, &decided)
                }
                Choice::No => {
                    let reason = reply.reason.unwrap_or_else(|| "whoever was asked did not agree".to_owned());
                    self.turn_down(py, &frozen.whole, &decided, reason)
                }
                Choice::Once | Choice::Run | Choice::Always => {
                    let frozen = match self.edited(py, frozen, reply.edited.as_ref(), &decided) {
                        Ok(frozen) => frozen,
                        Err(step) => return step,
                    };
                    if let Some(step) = self.has_left(py, &frozen, &decided) {
                        return step;
                    }
                    self.run_approved(py, &frozen, &decided, choice, &verdict)
                }
            }
        }
    }

    /// Runs what was approved, unless a rule has come to be against it, and keeps in mind what else was allowed.
    pub(super) unsafe fn run_approved(
        &self,
        py: Python<'_>,
        frozen: &Frozen,
        decided: &Decided<'_>,
        choice: Choice,
        asked: &Verdict,
    ) -> Step {
        // SAFETY: as for `begin_approval`.
        unsafe {
            let now = self.verdict_on(py, frozen);
            if now.decision == Decision::Deny {
                return self.deny(py, &now, &frozen.whole);
            }
            if let Err(error) = self.note_decision(py, decided, &frozen.whole) {
                return self.unaccounted(py, &error);
            }
            self.remember(py, choice, asked);
            self.tell_result(py, decided, "");
            self.execute_frozen(py, frozen)
        }
    }

    /// Keeps in mind what was allowed beyond this call.
    unsafe fn remember(&self, py: Python<'_>, choice: Choice, asked: &Verdict) {
        if asked.decision != Decision::Ask {
            return;
        }
        // SAFETY: as for `begin_approval`.
        let tool = unsafe { self.tool() };
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

    /// The arguments to run with: those that were shown, or what was put in their place and is checked anew.
    pub(super) unsafe fn edited(
        &self,
        py: Python<'_>,
        frozen: Frozen,
        edited: Option<&Bound<'_, PyDict>>,
        decided: &Decided<'_>,
    ) -> Result<Frozen, Step> {
        let Some(edited) = edited else { return Ok(frozen) };
        // SAFETY: as for `begin_approval`.
        unsafe {
            let decided = Decided { outcome: Ruling::Denied, ..*decided };
            let reason = match checked_edit(self.tool(), edited, &frozen) {
                Ok(Ok(edited)) => return Ok(edited),
                Ok(Err(reason)) => reason,
                Err(error) => return Err(self.refuse(Refusal::Raise(error))),
            };
            let reason = format!("it was approved with other arguments, which do not fit: {reason}");
            if let Err(error) = log::warning(py, &format!("a call of '{}' was denied: {reason}", self.tool().name)) {
                error.write_unraisable(py, None);
            }
            Err(self.turn_down(py, &frozen.whole, &decided, reason))
        }
    }

    /// The answer for a tool that may not be called any more, since somebody was asked.
    unsafe fn has_left(&self, py: Python<'_>, frozen: &Frozen, decided: &Decided<'_>) -> Option<Step> {
        // SAFETY: as for `begin_approval`.
        unsafe {
            if self.toolkit.get().is_null() {
                return None;
            }
            let name = self.tool().name.clone();
            let decided = Decided { outcome: Ruling::Denied, ..*decided };
            match self.admitted_tool(py, &name) {
                // A view makes its own meta tool each time.
                Ok(tool) if tool.as_ptr() == self.tool.get() || tool.get().meta.is_some() => None,
                Ok(_) => {
                    let reason = "it is another tool by now than the one that was approved".to_owned();
                    Some(self.turn_down(py, &frozen.whole, &decided, reason))
                }
                Err(answer) => {
                    self.tell_refusal(py, &frozen.whole, &decided, &answer.text());
                    Some(self.refuse(Refusal::Answer(answer)))
                }
            }
        }
    }

    /// Everything that waits was cancelled.
    pub(super) unsafe fn cancel(&self, py: Python<'_>, frozen: &Frozen, decided: &Decided<'_>) -> Step {
        // SAFETY: as for `begin_approval`.
        unsafe {
            if let Err(error) = self.note_decision(py, decided, &frozen.whole) {
                error.write_unraisable(py, None);
            }
            self.tell_result(py, decided, "everything that waited was cancelled");
            self.refuse(Refusal::Answer(Answer::Cancelled { tool: self.tool().name.to_string() }))
        }
    }
}

/// Edited arguments as they run, or why they do not fit.
pub(super) fn checked_edit(
    tool: &PyTool,
    edited: &Bound<'_, PyDict>,
    frozen: &Frozen,
) -> PyResult<Result<Frozen, String>> {
    let edited = unmasked(tool, edited, frozen)?;
    Ok(Frozen::of(edited.py(), &tool.plan, &InDict(&edited))?.map_err(|unfit| match unfit {
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
