//! The decision about a call: taken innermost, on the arguments that really run, before anything does.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::case::Case;
use super::freeze::{Frozen, Unfit};
use super::input::{InDict, Input};
use super::request::Request;
use super::start::Refusal;
use super::state::{State, Step};
use crate::bindings::desk::Ruling;
use crate::bindings::log;
use crate::bindings::note::{Decided, note};
use crate::bindings::value::error_text;
use crate::call::{Answer, EventKind};
use crate::policy::{Cause, Choice, Decision, Verdict};

/// What a model is told where somebody would have to be asked and nobody is there.
const HEADLESS: &str = "it would need somebody's approval, and nobody can be asked here";

impl State {
    /// Whether the tool that was found may run without another look.
    ///
    /// # Safety
    /// `tool` is filled.
    #[inline]
    pub(super) unsafe fn is_cleared(&self) -> bool {
        // SAFETY: as for the caller.
        let tool = unsafe { self.tool() };
        tool.desk.get().lets_pass(tool, self.is_view()) && self.rare.get().is_none_or(|rare| !rare.is_resumed())
    }

    /// Decides about a call that is not cleared.
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    #[cold]
    pub(super) unsafe fn judge(&self, input: impl Input) -> Step {
        // SAFETY: as for the caller.
        Python::attach(|py| unsafe {
            let case = self.known_case();
            if let Some(case) = case.filter(|case| case.is_granted(&self.tool().name)) {
                return self.judge_resumed(py, &case);
            }
            let caller = self.caller(py);
            match self.tool().desk.get().glance(self.tool(), caller.as_deref()) {
                Ruling::Pass => self.execute(input),
                Ruling::Deny(verdict) => {
                    let arguments = input.to_dict(py);
                    let arguments = arguments.map(|input| Frozen::glimpse(py, self.tool(), input.as_any()));
                    self.deny(py, &verdict, &arguments.unwrap_or(Value::Null))
                }
                Ruling::Weigh => self.weigh(py, &input),
            }
        })
    }

    /// Refuses a call that a rule denies whatever its arguments are, before any middleware sees it.
    ///
    /// # Safety
    /// The thread is attached; `toolkit` is filled, and the call has not started.
    pub(super) unsafe fn denied_outright(&self, py: Python<'_>) -> Option<Step> {
        // SAFETY: as for the caller; the slots are filled as asked for.
        unsafe {
            if !self.toolkit(py).get().desk(py).get().is_ruled() {
                return None;
            }
            let (name, _) = Request::of(py, self).into_parts();
            let tool = self.admitted_tool(py, &name?).ok()?;
            let caller = self.caller(py);
            let Ruling::Deny(verdict) = tool.get().desk.get().glance(tool.get(), caller.as_deref()) else {
                return None;
            };
            let arguments = Request::arguments(py, self).map(|input| Frozen::glimpse(py, tool.get(), &input));
            self.tool.set(tool.into_ptr());
            Some(self.deny(py, &verdict, &arguments.unwrap_or(Value::Null)))
        }
    }

    /// Decides by the arguments.
    unsafe fn weigh(&self, py: Python<'_>, input: &impl Input) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            let frozen = match self.freeze(py, input) {
                Ok(frozen) => frozen,
                Err(step) => return step,
            };
            let verdict = self.verdict_on(py, &frozen);
            match verdict.decision {
                Decision::Allow => self.run_frozen(py, &frozen, &Decided::by_rule(&verdict)),
                Decision::Deny => self.deny(py, &verdict, &frozen.whole),
                Decision::Ask => self.ask_or_wait(py, frozen, &verdict),
            }
        }
    }

    /// Makes a copy of arguments to decide about, or refuses them.
    pub(super) unsafe fn freeze(&self, py: Python<'_>, input: &impl Input) -> Result<Frozen, Step> {
        // SAFETY: as for `judge`.
        unsafe {
            match Frozen::of(py, &self.tool().plan, input) {
                Ok(Ok(frozen)) => Ok(frozen),
                Ok(Err(Unfit::Refused(answer))) => Err(self.refuse(Refusal::Answer(answer))),
                Ok(Err(Unfit::Unwritable(reason))) => {
                    let reason = format!("its arguments cannot be judged, because JSON cannot hold them: {reason}");
                    Err(self.turn_down(py, &Value::Null, &Decided::refused("unwritable arguments"), reason))
                }
                Err(error) => Err(self.refuse(Refusal::Raise(error))),
            }
        }
    }

    /// What the rules say about frozen arguments.
    pub(super) unsafe fn verdict_on(&self, py: Python<'_>, frozen: &Frozen) -> Verdict {
        // SAFETY: as for `judge`.
        let tool = unsafe { self.tool() };
        let (desk, caller) = (tool.desk.get(), self.caller(py));
        let verdict = desk.judge(tool, caller.as_deref(), &frozen.whole);
        if verdict.shadowed.is_some()
            && let Some(policy) = desk.policy(py)
        {
            policy.get().rules().note_shadow(&tool.name, caller.as_deref(), &verdict, jiff::Timestamp::now());
        }
        verdict
    }

    /// Somebody has to agree: they may have done so before, nobody may be there, they may be asked now or later.
    unsafe fn ask_or_wait(&self, py: Python<'_>, frozen: Frozen, verdict: &Verdict) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            let tool = self.tool();
            let (desk, caller) = (tool.desk.get(), self.caller(py));
            if desk.is_granted(tool, caller.as_deref(), &verdict.cause) {
                return self.run_frozen(py, &frozen, &Decided::before(verdict));
            }
            let asked = desk.asked(py);
            match asked.approver {
                _ if asked.headless => {
                    let reason = HEADLESS.to_owned();
                    self.turn_down(py, &frozen.whole, &Decided::headless(verdict), reason)
                }
                Some(approver) => self.begin_approval(py, frozen, verdict, approver.bind(py), asked.patience),
                None => self.pend(py, &frozen, verdict),
            }
        }
    }

    /// Notes the decision, and runs the tool with what was decided about.
    pub(super) unsafe fn run_frozen(&self, py: Python<'_>, frozen: &Frozen, decided: &Decided<'_>) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            if let Err(error) = self.note_decision(py, decided, &frozen.whole) {
                return self.unaccounted(py, &error);
            }
            self.execute_frozen(py, frozen)
        }
    }

    pub(super) unsafe fn execute_frozen(&self, py: Python<'_>, frozen: &Frozen) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            match frozen.to_dict(py) {
                Ok(input) => self.execute(InDict(&input)),
                Err(error) => self.refuse(Refusal::Raise(error)),
            }
        }
    }

    /// A rule is against it.
    pub(super) unsafe fn deny(&self, py: Python<'_>, verdict: &Verdict, arguments: &Value) -> Step {
        let reason = match &verdict.cause {
            Cause::Rule(rule) => rule.reason().unwrap_or_default().to_owned(),
            Cause::Permission | Cause::Default => verdict.reason().into_owned(),
        };
        // SAFETY: as for `judge`.
        unsafe { self.turn_down(py, arguments, &Decided::by_rule(verdict), reason) }
    }

    /// Ends the call before the tool has run: notes that, tells whoever listens, and answers.
    pub(super) unsafe fn turn_down(
        &self,
        py: Python<'_>,
        arguments: &Value,
        decided: &Decided<'_>,
        reason: String,
    ) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            let tool = self.tool().name.to_string();
            self.tell_refusal(py, arguments, decided, &reason);
            self.refuse(Refusal::Answer(Answer::Denied { tool, reason }))
        }
    }

    /// Notes that a call does not run, and tells whoever listens.
    pub(super) unsafe fn tell_refusal(&self, py: Python<'_>, arguments: &Value, decided: &Decided<'_>, reason: &str) {
        // SAFETY: as for `judge`.
        unsafe {
            if let Err(error) = self.note_decision(py, decided, arguments) {
                // It does not run in any case.
                self.complain(py, &error);
            }
            self.tell_result(py, decided, reason);
        }
    }

    /// A decision that cannot be accounted for is a no.
    pub(super) unsafe fn unaccounted(&self, py: Python<'_>, error: &PyErr) -> Step {
        // SAFETY: as for `judge`.
        unsafe {
            self.complain(py, error);
            let tool = self.tool().name.to_string();
            let reason = "the decision about it could not be recorded".to_owned();
            self.tell_result(py, &Decided::refused("audit"), &reason);
            self.refuse(Refusal::Answer(Answer::Denied { tool, reason }))
        }
    }

    unsafe fn complain(&self, py: Python<'_>, error: &PyErr) {
        // SAFETY: as for `judge`.
        let tool = unsafe { &self.tool().name };
        let text = format!("the decision about a call of '{tool}' could not be recorded: {}", error_text(py, error));
        if let Err(error) = log::warning(py, &text) {
            error.write_unraisable(py, None);
        }
    }

    /// Notes a decision where decisions are noted.
    pub(super) unsafe fn note_decision(
        &self,
        py: Python<'_>,
        decided: &Decided<'_>,
        arguments: &Value,
    ) -> PyResult<()> {
        // SAFETY: as for `judge`.
        let tool = unsafe { self.tool() };
        if !tool.desk.get().is_audited() {
            return Ok(());
        }
        let case = self.case(py);
        note(py, tool, &case, decided, arguments)
    }

    /// Tells whoever listens what was decided.
    pub(super) unsafe fn tell_result(&self, py: Python<'_>, decided: &Decided<'_>, reason: &str) {
        // SAFETY: as for `judge`.
        let desk = unsafe { self.tool() }.desk.get();
        if !desk.is_heard() {
            return;
        }
        let case: Arc<Case> = self.case(py);
        desk.tell(py, EventKind::PermissionResult, &case, || {
            let data = PyDict::new(py);
            data.set_item(intern!(py, "decision"), decided.outcome_word())?;
            data.set_item(intern!(py, "answer"), decided.answer.map(Choice::as_str))?;
            data.set_item(intern!(py, "rule"), decided.rule)?;
            data.set_item(intern!(py, "reason"), reason)?;
            data.set_item(intern!(py, "by"), decided.by)?;
            Ok(data)
        });
    }
}
