//! The permission stage: decided innermost, on the arguments that really run, before anything does.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::case::Case;
use super::freeze::{Frozen, Unfit};
use super::python::attached;
use super::request::Peeked;
use super::state::{Early, State};
use crate::bindings::desk::Ruling;
use crate::bindings::log;
use crate::bindings::note::{Decided, note};
use crate::bindings::tool::PyTool;
use crate::bindings::value::error_text;
use crate::call::{Answer, EventKind};
use crate::policy::{Cause, Choice, Decision, Verdict};

/// The reason where an approval is needed and no approver can be asked.
const HEADLESS: &str = "it would need somebody's approval, and nobody can be asked here";

/// The arguments that may run now, or `None` while an approver is asked.
type Permitted<'py> = Result<Option<Bound<'py, PyDict>>, Early<'py>>;

impl State {
    /// Decides whether the tool may run with these arguments.
    #[inline]
    pub(super) fn decide<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        arguments: Bound<'py, PyDict>,
    ) -> Permitted<'py> {
        let is_allowed = tool.get().desk.get().lets_pass(tool.get(), self.view.get(py).is_some());
        if is_allowed && self.cold.get().is_none_or(|cold| !cold.is_resumed()) {
            return Ok(Some(arguments));
        }
        attached(py, |py| self.decide_by_rules(py, tool.get(), arguments))
    }

    #[cold]
    fn decide_by_rules<'py>(&self, py: Python<'py>, tool: &PyTool, arguments: Bound<'py, PyDict>) -> Permitted<'py> {
        if let Some(case) = self.known_case().filter(|case| case.is_granted(&tool.name)) {
            return self.decide_resumed(py, tool, &case).map(Some);
        }
        let caller = self.caller(py);
        match tool.desk.get().glance(tool, caller.as_deref()) {
            Ruling::Pass => Ok(Some(arguments)),
            Ruling::Deny(verdict) => {
                let shown = Frozen::redacted(tool, arguments.as_any());
                Err(self.deny(py, tool, &verdict, &shown))
            }
            Ruling::Weigh => self.decide_by_arguments(py, tool, &arguments),
        }
    }

    /// Refuses a call that a rule denies whatever its arguments are, before any middleware sees it.
    pub(super) fn deny_outright<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(toolkit) = self.toolkit.get(py) else { return Ok(()) };
        if !toolkit.get().desk(py).get().is_ruled() {
            return Ok(());
        }
        let Some(name) = Peeked::of(py, self).name else { return Ok(()) };
        let Ok(tool) = self.find_admitted(py, &name) else { return Ok(()) };
        let caller = self.caller(py);
        let Ruling::Deny(verdict) = tool.get().desk.get().glance(tool.get(), caller.as_deref()) else {
            return Ok(());
        };
        let arguments = Peeked::arguments(py, self).map(|input| Frozen::redacted(tool.get(), &input));
        Err(self.deny(py, tool.get(), &verdict, &arguments.unwrap_or(Value::Null)))
    }

    fn decide_by_arguments<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: &Bound<'py, PyDict>,
    ) -> Permitted<'py> {
        let frozen = self.freeze(py, tool, arguments)?;
        let verdict = self.verdict_on(py, tool, &frozen);
        match verdict.decision {
            Decision::Allow => self.run_frozen(py, tool, &frozen, &Decided::by_rule(&verdict)).map(Some),
            Decision::Deny => Err(self.deny(py, tool, &verdict, &frozen.whole)),
            Decision::Ask => self.ask_or_wait(py, tool, frozen, &verdict),
        }
    }

    /// Makes a copy of arguments to decide about, or refuses them.
    fn freeze<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: &Bound<'py, PyDict>,
    ) -> Result<Frozen, Early<'py>> {
        match Frozen::of(&tool.plan, arguments, self)? {
            Ok(frozen) => Ok(frozen),
            Err(Unfit::Refused(answer)) => Err(answer.into()),
            Err(Unfit::Unwritable(reason)) => {
                let reason = format!("its arguments cannot be judged, because JSON cannot hold them: {reason}");
                Err(self.turn_down(py, tool, &Value::Null, &Decided::refused("unwritable arguments"), reason))
            }
        }
    }

    /// The rules' decision on frozen arguments.
    pub(super) fn verdict_on(&self, py: Python<'_>, tool: &PyTool, frozen: &Frozen) -> Verdict {
        let (desk, caller) = (tool.desk.get(), self.caller(py));
        let verdict = desk.judge(tool, caller.as_deref(), &frozen.whole);
        if verdict.shadowed.is_some()
            && let Some(policy) = desk.policy(py)
        {
            policy.get().rules().note_shadow(&tool.name, caller.as_deref(), &verdict, jiff::Timestamp::now());
        }
        verdict
    }

    /// An approval is needed: it was given before, or cannot be had, or is asked for now or later.
    fn ask_or_wait<'py>(&self, py: Python<'py>, tool: &PyTool, frozen: Frozen, verdict: &Verdict) -> Permitted<'py> {
        let (desk, caller) = (tool.desk.get(), self.caller(py));
        if desk.is_granted(tool, caller.as_deref(), &verdict.cause) {
            return self.run_frozen(py, tool, &frozen, &Decided::before(verdict)).map(Some);
        }
        let asked = desk.asked(py);
        match asked.approver {
            _ if asked.headless => {
                let reason = HEADLESS.to_owned();
                Err(self.turn_down(py, tool, &frozen.whole, &Decided::headless(verdict), reason))
            }
            Some(approver) => {
                self.begin_approval(py, tool, frozen, verdict, approver.bind(py), asked.patience).map(|()| None)
            }
            None => Err(self.pend(py, tool, &frozen, verdict)),
        }
    }

    /// Notes the decision; the arguments that were decided about are the ones that run.
    fn run_frozen<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        frozen: &Frozen,
        decided: &Decided<'_>,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        if let Err(error) = self.note_decision(py, tool, decided, &frozen.whole) {
            return Err(self.deny_unaudited(py, tool, &error));
        }
        Ok(frozen.to_dict(py)?)
    }

    /// A rule is against it.
    pub(super) fn deny<'py>(&self, py: Python<'py>, tool: &PyTool, verdict: &Verdict, arguments: &Value) -> Early<'py> {
        let reason = match &verdict.cause {
            Cause::Rule(rule) => rule.reason().unwrap_or_default().to_owned(),
            Cause::Permission | Cause::Default => verdict.reason().into_owned(),
        };
        self.turn_down(py, tool, arguments, &Decided::by_rule(verdict), reason)
    }

    /// Ends the call before the tool has run: notes that, emits it, and answers.
    pub(super) fn turn_down<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        arguments: &Value,
        decided: &Decided<'_>,
        reason: String,
    ) -> Early<'py> {
        self.tell_refusal(py, tool, arguments, decided, &reason);
        Early::Reply(Answer::Denied { tool: tool.name.to_string(), reason })
    }

    /// Notes that a call does not run, and emits it.
    pub(super) fn tell_refusal(
        &self,
        py: Python<'_>,
        tool: &PyTool,
        arguments: &Value,
        decided: &Decided<'_>,
        reason: &str,
    ) {
        if let Err(error) = self.note_decision(py, tool, decided, arguments) {
            // It does not run in any case.
            warn_audit_failed(py, tool, &error);
        }
        self.tell_result(py, tool, decided, reason);
    }

    /// A decision that cannot be accounted for is a no.
    pub(super) fn deny_unaudited<'py>(&self, py: Python<'py>, tool: &PyTool, error: &PyErr) -> Early<'py> {
        warn_audit_failed(py, tool, error);
        let reason = "the decision about it could not be recorded".to_owned();
        self.tell_result(py, tool, &Decided::refused("audit"), &reason);
        Early::Reply(Answer::Denied { tool: tool.name.to_string(), reason })
    }

    /// Notes a decision in the audit log.
    pub(super) fn note_decision(
        &self,
        py: Python<'_>,
        tool: &PyTool,
        decided: &Decided<'_>,
        arguments: &Value,
    ) -> PyResult<()> {
        if !tool.desk.get().is_audited() {
            return Ok(());
        }
        note(py, tool, &self.case(py), decided, arguments)
    }

    /// Emits the decision.
    pub(super) fn tell_result(&self, py: Python<'_>, tool: &PyTool, decided: &Decided<'_>, reason: &str) {
        let desk = tool.desk.get();
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

fn warn_audit_failed(py: Python<'_>, tool: &PyTool, error: &PyErr) {
    let text = format!("the decision about a call of '{}' could not be recorded: {}", tool.name, error_text(py, error));
    if let Err(error) = log::warning(py, &text) {
        error.write_unraisable(py, None);
    }
}
