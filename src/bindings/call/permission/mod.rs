//! The permission stage: decided innermost, on the arguments that really run, before anything does.
//!
//! The decisions are the core's ([`PermissionStage`]); here they meet Python. [`host`] does what takes I/O, `confirm` asks the
//! tool itself, [`resume`] begins calls that resume a pending one, and looks at calls without running them.

mod confirm;
mod host;
mod resume;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;

use super::arguments::{ArgumentNotes, Plan};
use super::cold::Cold;
use super::python::attached;
use super::python::drive::{Sent, await_iter, send};
use super::request::Peeked;
use super::state::{Early, Phase, State, Step};
use crate::bindings::imported::{APPROVAL_REQUEST, ASK_APPROVER};
use crate::bindings::into_response::error_text;
use crate::bindings::once::intern;
use crate::bindings::policy::{ToolView, answer_of};
use crate::bindings::registration::Confirmation;
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::bindings::{json, log_warning, response};
use crate::call::{ApprovalRequest, CallInfo, CheckedArguments, Next, PermissionStage, Preview, Reply, Unfit, Waiting};
use crate::policy::{Answer, Pending, Permission};

use confirm::{secrets_of, without_secrets};
use host::CallHost;
pub(crate) use resume::{check, resumed};

/// The arguments that may run now, or `None` while an approver is asked.
type Permitted<'py> = Result<Option<Bound<'py, PyDict>>, Early<'py>>;

impl State {
    /// Decides whether the tool may run with these arguments.
    #[inline(always)]
    pub(super) fn decide<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        arguments: Bound<'py, PyDict>,
    ) -> Permitted<'py> {
        let PyTool { traits, allow_cache, permissions, .. } = tool.get();
        let asks = traits.permission == Permission::Confirm || traits.confirmation == Confirmation::Decides;
        let is_allowed = permissions.get().core().lets_pass(asks, allow_cache, self.view.get(py).is_some());
        if is_allowed && self.cold.get().is_none_or(|cold| !cold.is_resumed()) {
            return Ok(Some(arguments));
        }
        attached(py, |py| self.decide_by_rules(py, tool, arguments))
    }

    #[cold]
    fn decide_by_rules<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        arguments: Bound<'py, PyDict>,
    ) -> Permitted<'py> {
        if let Some(call) = self.known_info()
            && let Some(resumption) = call.resumption.as_ref().filter(|it| it.is_for(&tool.get().name))
        {
            let next = self.in_stage(py, tool, &call, |stage| stage.resume(resumption))?;
            return next.map_or_else(|| Err(Early::Step(self.end_of_stream(py))), |next| self.follow(py, tool, next));
        }
        let (view, caller) = (ToolView { py, tool: tool.get() }, self.caller(py));
        match tool.get().permissions.get().preview(&view, caller.as_deref()) {
            Preview::Pass if tool.get().traits.confirmation != Confirmation::Decides => return Ok(Some(arguments)),
            Preview::Deny(verdict) => {
                let shown = redacted(tool.get(), arguments.as_any());
                return Err(self.in_stage(py, tool, &self.info(py), |stage| stage.deny(&verdict, &shown)).into());
            }
            Preview::Pass | Preview::NeedsArguments => {}
        }
        let checked = check_arguments(py, &tool.get().plan, &arguments, self)?;
        let checked = match checked {
            Ok(checked) if self.asks_tool(py, tool, &checked) => return self.ask_tool(py, tool, checked),
            other => other,
        };
        let next = self.in_stage(py, tool, &self.info(py), |stage| match checked {
            Ok(checked) => stage.decide(checked),
            Err(unfit) => Ok(Next::Respond(stage.refuse(unfit))),
        })?;
        self.follow(py, tool, next)
    }

    /// Refuses a call that a rule denies whatever its arguments are, before any middleware sees it.
    pub(super) fn deny_outright<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(toolkit) = self.toolkit.get(py) else { return Ok(()) };
        if !toolkit.get().permissions(py).get().core().is_ruled() {
            return Ok(());
        }
        let Some(name) = Peeked::of(py, self).name else { return Ok(()) };
        let Ok(tool) = self.find_admitted(py, &name) else { return Ok(()) };
        let (view, caller) = (ToolView { py, tool: tool.get() }, self.caller(py));
        let Preview::Deny(verdict) = tool.get().permissions.get().preview(&view, caller.as_deref()) else {
            return Ok(());
        };
        let shown = Peeked::arguments(py, self).map_or(Value::Null, |input| redacted(tool.get(), &input));
        Err(self.in_stage(py, &tool, &self.info(py), |stage| stage.deny(&verdict, &shown)).into())
    }

    /// Uses the pending value of a resumed call up before anything runs.
    #[inline]
    pub(super) fn claim_approval<'py>(&self, py: Python<'py>, cold: &Cold) -> Result<(), Early<'py>> {
        if cold.is_to_claim() { attached(py, |py| self.claim(py)) } else { Ok(()) }
    }

    #[cold]
    fn claim<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(call) = self.known_info() else { return Ok(()) };
        let Some(resumption) = call.resumption.as_ref() else { return Ok(()) };
        let tool = self.find_admitted(py, &resumption.pending().tool)?;
        match self.in_stage(py, &tool, &call, |stage| stage.claim(resumption))? {
            Some(next) => self.follow(py, &tool, next).map(drop),
            None => Ok(()),
        }
    }

    /// Goes on waiting for the answer: the arguments that may run, once it is there; `None` if there is another question.
    pub(super) fn await_answer<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Permitted<'py> {
        let Some(question) = self.awaited.get(py) else { return Err(Early::Step(self.end_of_stream(py))) };
        match send(&question, value) {
            Sent::Yielded(future) => Err(Early::Step(Step::Suspend(future))),
            Sent::Returned(answer) => self.answered(py, &answer),
            Sent::Raised(error) => Err(Early::Step(self.fail(py, *error))),
        }
    }

    /// The question is answered: the arguments that may run, or `None` if there is another question.
    pub(super) fn answered<'py>(&self, py: Python<'py>, answer: &Bound<'py, PyAny>) -> Permitted<'py> {
        attached(py, |py| {
            self.awaited.clear(py);
            if let Some(checked) = self.cold().confirming.take() {
                return self.tool_answered(py, &self.tool(py).to_owned(), *checked, answer);
            }
            // From here on it is the tool that is waited for.
            self.suspended.set(false);
            let Some(waiting) = self.cold().waiting.take() else { return Err(Early::Step(self.end_of_stream(py))) };
            let tool = self.tool(py).to_owned();
            let answer = answer_of(answer, None, None).unwrap_or_else(|error| {
                let (tool, reason) = (&tool.get().name, error_text(py, &error));
                warn(py, &format!("approver for '{tool}' returned an invalid answer; denying the call: {reason}"));
                Answer::no("the approver failed")
            });
            let next = self.in_stage(py, &tool, &self.info(py), |stage| stage.answer(*waiting, answer))?;
            self.follow(py, &tool, next)
        })
    }

    /// Does something in the core's permission stage.
    fn in_stage<'py, T>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        call: &CallInfo,
        act: impl FnOnce(&PermissionStage<'_, ToolView<'_, 'py>, CallHost<'_, 'py>>) -> T,
    ) -> T {
        let view = ToolView { py, tool: tool.get() };
        let host = CallHost { py, state: self, tool, call };
        let permissions = tool.get().permissions.get().core();
        act(&PermissionStage { tool: &view, call, permissions, host: &host })
    }

    /// Does what the core says.
    fn follow<'py>(&self, py: Python<'py>, tool: &Bound<'py, PyTool>, next: Next) -> Permitted<'py> {
        match next {
            Next::Run(arguments) => {
                self.keep_confirmation_of(py, &arguments);
                self.permitted_arguments(py, &arguments).map(Some).map_err(Early::from)
            }
            Next::Ask(question) => {
                let (request, waiting) = *question;
                self.ask(py, tool, &request, waiting).map(|()| None).map_err(Early::from)
            }
            Next::Pend(pending) => Err(self.end_pending(py, &pending)),
            Next::Respond(reply) => Err(reply.into()),
        }
    }

    /// The arguments that were decided about, with the objects that were built from them.
    fn permitted_arguments<'py>(&self, py: Python<'py>, arguments: &CheckedArguments) -> PyResult<Bound<'py, PyDict>> {
        if let Some(cold) = self.cold.get()
            && cold.built_from.borrow().as_ref() == Some(&arguments.sent)
            && let Some(built) = cold.built.get(py)
        {
            return Ok(built.cast_into()?);
        }
        Ok(json::to_python(py, &arguments.sent)?.cast_into()?)
    }

    /// Begins to ask the approver; the call waits for the answer.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        request: &ApprovalRequest,
        waiting: Waiting,
    ) -> PyResult<()> {
        let permissions = tool.get().permissions.bind(py);
        let (approver, timeout) = (permissions.get().approver(py), permissions.get().approver_timeout());
        let session = self.viewed(py).and_then(|view| PyToolkitView::session_object(&view));
        let deps = session.and_then(|session| session.get().deps(py));
        let described = self.cold().confirmation.get(py);
        let secrets = described.as_ref().map(|_| secrets_of(py, tool.get(), waiting.arguments()));
        let request = request_to_python(py, request, deps, described, &secrets.unwrap_or_default())?;
        let question = ASK_APPROVER.get(py)?.call1((permissions, approver, request, timeout))?;
        self.awaited.set(await_iter(question)?);
        self.cold().waiting.replace(Some(Box::new(waiting)));
        self.phase.set(Phase::Approval);
        Ok(())
    }

    /// Ends the call with a pending value, with which it can be resumed later.
    fn end_pending<'py>(&self, py: Python<'py>, pending: &Pending) -> Early<'py> {
        let response = json::to_python(py, &pending.to_value()).and_then(|value| {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "pending"), value)?;
            let reply = Reply::Pending { tool: pending.tool.clone() };
            response::answer_with(py, &reply, Some(metadata.into_any()))
        });
        self.finish(py);
        Early::Step(response.map_or_else(Step::raise, Step::Chunk))
    }

    /// The identity of the call, which its layers share; made when it is first asked for.
    pub(super) fn info(&self, py: Python<'_>) -> Arc<CallInfo> {
        if let Some(info) = self.known_info() {
            return info;
        }
        let make = || {
            let Peeked { name, id } = Peeked::of(py, self);
            let id = id.filter(|id| !id.is_empty()).unwrap_or_else(made_up_id);
            CallInfo::new(&id, name.as_deref(), self.caller(py)).in_session(self.session(py))
        };
        let info = match self.port(py) {
            Some(port) => port.get().info(make),
            None => Arc::new(make()),
        };
        self.cold().info.replace(Some(info.clone()));
        info
    }

    /// The same, if it was asked for before.
    pub(super) fn known_info(&self) -> Option<Arc<CallInfo>> {
        self.cold.get().and_then(|cold| cold.info.borrow().clone())
    }

    /// Makes this stream a layer of a call that began elsewhere.
    pub(super) fn join(&self, info: Option<Arc<CallInfo>>) {
        if info.is_some() {
            self.cold().info.replace(info);
        }
    }
}

/// An id that no other call has. Nothing depends on its being hard to guess.
pub(crate) fn made_up_id() -> String {
    let seed = (SystemTime::now(), std::process::id());
    let bits = || RandomState::new().hash_one(seed);
    format!("call_{:016x}{:08x}", bits(), bits() >> 32)
}

/// Checks the arguments of a request, and makes the copy of them that is decided about.
fn check_arguments(
    py: Python<'_>,
    plan: &Plan,
    input: &Bound<'_, PyDict>,
    notes: &impl ArgumentNotes,
) -> PyResult<Result<CheckedArguments, Unfit>> {
    let accepted = match plan.accepted(input, notes)? {
        Ok(accepted) => accepted,
        Err(reply) => return Ok(Err(Unfit::Refused(reply))),
    };
    match json::value_from_python(&accepted.json) {
        Ok(sent) => {
            if let Some(built) = &accepted.built {
                notes.keep_built(&sent, built);
            }
            plan.completed(py, sent, accepted.built.as_ref(), notes).map(Ok)
        }
        Err(error) => Ok(Err(Unfit::Unwritable(error_text(py, &error)))),
    }
}

/// Arguments as they came, redacted, also if they do not fit.
pub(super) fn redacted(tool: &PyTool, came: &Bound<'_, PyAny>) -> Value {
    let as_value = |came: &Bound<'_, PyAny>| json::value_from_python(came).unwrap_or(Value::Null);
    if tool.traits.secrets.is_empty() {
        return as_value(came);
    }
    if let Ok(input) = came.cast::<PyDict>()
        && let Ok(Ok(accepted)) = tool.plan.accepted(input, &())
    {
        return tool.plan.redaction().arguments(&as_value(&accepted.json));
    }
    tool.plan.redaction().unchecked(as_value(came))
}

/// The arguments that rules see in a call, and the same redacted; arguments that do not fit are left as they are.
pub(crate) fn explained_arguments(py: Python<'_>, tool: &PyTool, sent: &Value) -> PyResult<(Value, Value)> {
    let input = json::to_python(py, sent)?;
    if let Ok(input) = input.cast::<PyDict>()
        && let Ok(checked) = check_arguments(py, &tool.plan, input, &())?
    {
        let shown = tool.plan.redaction().arguments(&checked.whole);
        return Ok((checked.whole, shown));
    }
    let whole = tool.plan.completed(py, sent.clone(), None, &())?.whole;
    let shown = tool.plan.redaction().unchecked(whole.clone());
    Ok((whole, shown))
}

/// The request that an approver gets.
fn request_to_python<'py>(
    py: Python<'py>,
    request: &ApprovalRequest,
    deps: Option<Py<PyAny>>,
    described: Option<Bound<'py, PyAny>>,
    secrets: &[String],
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item(intern!(py, "tool"), &request.tool)?;
    fields.set_item(intern!(py, "arguments"), json::to_python(py, &request.arguments)?)?;
    fields.set_item(intern!(py, "caller"), request.caller.as_deref())?;
    fields.set_item(intern!(py, "rule"), request.rule.as_deref())?;
    fields.set_item(intern!(py, "reason"), &request.reason)?;
    fields.set_item(intern!(py, "kind"), request.kind.as_str())?;
    fields.set_item(intern!(py, "description"), request.description.as_deref())?;
    fields.set_item(intern!(py, "call_id"), &request.call_id)?;
    fields.set_item(intern!(py, "session"), request.session.as_deref())?;
    fields.set_item(intern!(py, "deps"), deps)?;
    if let Some(described) = described {
        for name in [intern!(py, "summary"), intern!(py, "locations"), intern!(py, "details")] {
            fields.set_item(name, without_secrets(described.getattr(name)?, secrets, 0)?)?;
        }
    }
    fields.set_item(intern!(py, "path"), PyTuple::new(py, request.path.iter().map(|agent| &**agent))?)?;
    APPROVAL_REQUEST.get(py)?.call((), Some(&fields))
}

/// Logs a warning for the developer.
fn warn(py: Python<'_>, text: &str) {
    if let Err(error) = log_warning(py, text) {
        error.write_unraisable(py, None);
    }
}
