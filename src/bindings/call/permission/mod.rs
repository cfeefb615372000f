//! The permission stage: decided innermost, on the arguments that really run, before anything does.
//!
//! The decisions are the core's ([`PermissionStage`]); here they meet Python: this file asks the approver, and its [`CallHost`]
//! does what takes I/O. `write` lets a decision wait until it is stored, `confirm` asks the tool itself, [`resume`] ends calls with
//! a pending value, begins calls that resume one, and looks at calls without running them.

mod confirm;
mod resume;
mod write;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use serde_json::{Map, Value};

use super::arguments::{ArgumentNotes, BoundArguments};
use super::python::attached;
use super::python::drive::{Sent, await_iter, send};
use super::request::{Peeked, Request};
use super::state::{Early, Phase, State, Step};
use crate::Error;
use crate::bindings::imported::{APPROVAL, APPROVAL_REQUEST, ASK_APPROVER, CANCEL_QUESTIONS};
use crate::bindings::into_response::error_text;
use crate::bindings::once::intern;
use crate::bindings::policy::{AuditSink, PyPermissions, value_of};
use crate::bindings::registration::Confirmation;
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::bindings::{json, log_warning};
use crate::bytes::random_bytes;
use crate::call::path::Clearance;
use crate::call::{
    ApprovalRequest, CallInfo, CheckedArguments, EventKind, Host, Next, PermissionStage, Standing, ToolFacts, Unfit,
    Waiting,
};
use crate::policy::{Answer, Approvals, AuditRecord, CallFacts, Decision, Permission, Policy, Redaction, ToolKind};
use crate::store::Write;

use confirm::{secrets_of, without_secrets};
pub(crate) use resume::{check, explained_arguments, resumed};
pub(super) use write::Writing;

/// The arguments of a call between their stage and this one.
pub(super) enum Arguments<'py> {
    /// Rules let them pass, whatever they are: they are on their way into the function.
    Bound(BoundArguments<'py>),
    /// Rules have to see them.
    Checked(CheckedArguments),
    /// They were approved before, and are in the resumption of the call.
    Approved,
}

/// The arguments that may run now.
type Permitted<'py> = Result<BoundArguments<'py>, Early<'py>>;

impl State {
    /// Denies a call that may not run whatever its arguments are.
    #[inline(always)]
    pub(super) fn deny_outright<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        request: &Request<'py>,
    ) -> Result<Clearance, Early<'py>> {
        let PyTool { traits, allow_cache, permissions, .. } = tool.get();
        let asks = traits.permission == Permission::Confirm || traits.confirmation == Confirmation::Decides;
        let is_allowed = permissions.get().core().lets_pass(asks, allow_cache, self.view.get(py).is_some());
        if is_allowed && self.cold.get().is_none_or(|cold| !cold.is_resumed()) {
            return Ok(Clearance::Pass);
        }
        attached(py, |py| self.preview(py, tool, || request.arguments.as_ref().ok().cloned()))
    }

    /// The same by a look at the rules; `shown` gives the arguments for the audit log.
    #[cold]
    pub(super) fn preview<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        shown: impl FnOnce() -> Option<Bound<'py, PyDict>>,
    ) -> Result<Clearance, Early<'py>> {
        if let Some(toolkit) = self.toolkit.get(py) {
            toolkit.get().warn_of_rules(py);
        }
        // The answer of a tool that decides itself is not known from one call to the next.
        let decides = tool.get().traits.confirmation == Confirmation::Decides;
        let cache = (!decides).then_some(&tool.get().allow_cache);
        let (view, caller) = (ToolView { py, tool: tool.get() }, self.caller(py));
        match tool.get().permissions.get().core().preview(&view, caller.as_deref(), cache) {
            Ok(Clearance::Pass) if !decides && !self.is_approved(tool.get()) => Ok(Clearance::Pass),
            Ok(_) => Ok(Clearance::Decide),
            Err(verdict) => {
                let shown = shown().map_or(Value::Null, |shown| redacted(tool.get(), shown.as_any()));
                let next = self.in_stage(py, tool, &self.info(py), |stage| stage.deny(&verdict, &shown));
                Err(self.end_by(py, tool, next))
            }
        }
    }

    /// True if an answer that was given before lets the tool run.
    pub(super) fn is_approved(&self, tool: &PyTool) -> bool {
        self.known_info().is_some_and(|call| call.is_approved(&tool.name))
    }

    /// Checks the arguments that rules have to see.
    #[cold]
    pub(super) fn check_arguments<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        arguments: &Bound<'py, PyDict>,
    ) -> Result<Arguments<'py>, Early<'py>> {
        match tool.get().plan.check_arguments(arguments, self)? {
            Ok(checked) => Ok(Arguments::Checked(checked)),
            Err(unfit) => {
                let next = self.in_stage(py, tool, &self.info(py), |stage| stage.refuse(unfit));
                Err(self.end_by(py, tool, next))
            }
        }
    }

    /// Decides whether the tool may run with these arguments.
    #[cold]
    pub(super) fn decide<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        arguments: Arguments<'py>,
    ) -> Permitted<'py> {
        let call = self.info(py);
        let next = match (arguments, &call.resumption) {
            (Arguments::Bound(arguments), _) => return Ok(arguments),
            (Arguments::Checked(checked), _) if self.asks_tool(py, tool, &checked) => {
                return self.ask_tool(py, tool, checked);
            }
            (Arguments::Checked(checked), _) => self.in_stage(py, tool, &call, |stage| stage.decide(checked)),
            (Arguments::Approved, Some(resumption)) => self.in_stage(py, tool, &call, |stage| stage.resume(resumption)),
            (Arguments::Approved, None) => self.in_stage(py, tool, &call, |stage| Ok(stage.used_up())),
        };
        self.follow(py, tool, next?)
    }

    /// True if the tool has a part in the approval of a call: it decides about it, or describes it to the approver.
    fn asks_tool<'py>(&self, py: Python<'py>, tool: &Bound<'py, PyTool>, checked: &CheckedArguments) -> bool {
        let confirmation = tool.get().traits.confirmation;
        confirmation != Confirmation::Silent
            && self.in_stage(py, tool, &self.info(py), |stage| {
                let (_, verdict) = stage.route(checked);
                match verdict.decision {
                    Decision::Ask => true,
                    Decision::Allow => verdict.rule().is_none() && confirmation == Confirmation::Decides,
                    Decision::Deny => false,
                }
            })
    }

    /// Denies a call that may not run whatever its arguments are, before any middleware sees it.
    pub(super) fn deny_before_layers<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(toolkit) = self.toolkit.get(py) else { return Ok(()) };
        if !toolkit.get().permissions(py).get().core().is_ruled() {
            return Ok(());
        }
        let Some(name) = Peeked::of(py, self).name else { return Ok(()) };
        let Ok(tool) = self.find_admitted(py, &name) else { return Ok(()) };
        self.preview(py, &tool, || self.read_request(py).ok()?.arguments.ok()).map(drop)
    }

    /// Goes on waiting for the answer: the arguments that may run, once it is there.
    pub(super) fn await_answer<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Permitted<'py> {
        if self.is_writing() {
            return self.await_write(py);
        }
        let Some(question) = self.awaited.get(py) else { return Err(Early::Step(self.end_of_stream(py))) };
        match send(&question, value) {
            Sent::Yielded(future) => Err(Early::Step(Step::Suspend(future))),
            Sent::Returned(answer) => self.answered(py, &answer),
            Sent::Raised(error) => Err(Early::Step(self.fail(py, *error))),
        }
    }

    /// The question is answered: the arguments that may run.
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
                let arguments = self.permitted_arguments(py, &arguments)?;
                self.bound(py, tool.get().plan.bind_permitted(arguments, self))
            }
            Next::Ask(question) => {
                let (request, waiting) = *question;
                self.ask(py, tool, &request, waiting)?;
                Err(Early::Wait)
            }
            Next::Pend(pending) => Err(self.end_pending(py, &pending)),
            Next::Respond(reply) => Err(reply.into()),
            Next::Wait(deferred) => {
                self.wait_for_write(tool, deferred);
                Err(Early::Wait)
            }
        }
    }

    /// Drops the description of a call that runs with other arguments.
    fn keep_confirmation_of(&self, py: Python<'_>, arguments: &CheckedArguments) {
        if let Some(cold) = self.cold.get()
            && cold.confirmed.take().is_some_and(|confirmed| confirmed != arguments.sent)
        {
            cold.confirmation.clear(py);
        }
    }

    /// The arguments that were decided about, with the objects that were built from them.
    fn permitted_arguments<'py>(&self, py: Python<'py>, arguments: &CheckedArguments) -> PyResult<Bound<'py, PyDict>> {
        match self.built_from(py, &arguments.sent) {
            Some(built) => Ok(built),
            None => Ok(json::to_python(py, &arguments.sent)?.cast_into()?),
        }
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

/// The answer of an approver: a word, a boolean or an `Approval`.
///
/// `arguments` and `by` are the further parameters of a resumption.
///
/// Raises `InvalidAnswerError` if it is anything else, and `TypeError` if edited arguments are not a mapping or are passed
/// twice, or another field is not a string.
fn answer_of(answer: &Bound<'_, PyAny>, arguments: Option<&Bound<'_, PyAny>>, by: Option<&str>) -> PyResult<Answer> {
    let py = answer.py();
    let field = |name: &str| answer.getattr(name).map(|value| Some(value).filter(|value| !value.is_none()));
    let text = |name: &str| -> PyResult<Option<String>> {
        let Some(text) = field(name)? else { return Ok(None) };
        let Ok(text) = text.cast::<PyString>() else {
            let kind = text.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("an approval's `{name}` must be a string, not {kind}")));
        };
        Ok(Some(text.to_str()?.to_owned()))
    };
    // There is no instance of a class that was never imported.
    let is_approval = APPROVAL.if_imported(py).map_or(Ok(false), |class| answer.is_instance(class))?;
    let (word, own, own_by, reason) = if is_approval {
        let own = field("arguments")?;
        (answer.getattr(intern!(py, "answer"))?, own, text("by")?, text("reason")?)
    } else {
        (answer.clone(), None, None, None)
    };
    if arguments.is_some() && own.is_some() {
        return Err(PyTypeError::new_err("resume() got edited arguments twice: in the answer and as a parameter"));
    }
    let edited = arguments.or(own.as_ref()).map(|edited| value_of(edited, "the edited arguments")).transpose()?;
    let answer = Answer::new(&word_or_flag(&word)?, edited.as_ref())?;
    Ok(Answer { by: own_by.filter(|by| !by.is_empty()).or_else(|| by.map(str::to_owned)), reason, ..answer })
}

/// The JSON value of a string or a boolean. The error for anything else names its type.
fn word_or_flag(answer: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(flag) = answer.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(word) = answer.cast::<PyString>() {
        return Ok(word.to_string_lossy().into());
    }
    if answer.is_none() {
        return Err(invalid_answer("None".to_owned()).into());
    }
    let kind = answer.get_type().qualname()?;
    Err(invalid_answer(format!("an object of type {}", kind.to_string_lossy())).into())
}

/// The error for an object that is not an answer.
fn invalid_answer(found: String) -> Error {
    Error::InvalidAnswer { expected: "`once`, `run`, `always`, `no`, `cancel`, a boolean or an `Approval`", found }
}

/// The facts of a tool for the core's permission stage.
pub(crate) struct ToolView<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) tool: &'a PyTool,
}

impl ToolFacts for ToolView<'_, '_> {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn kind(&self) -> ToolKind {
        self.tool.traits.kind
    }

    fn description(&self) -> Option<String> {
        self.tool.schema.description()
    }

    fn with_facts<T>(&self, caller: Option<&str>, look: impl FnOnce(&CallFacts<'_>) -> T) -> T {
        let tool = self.tool;
        let tags = tool.seat.tags();
        let tags: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
        tool.seat.with(|first, more| {
            let groups: Vec<&str> = std::iter::once(first).chain(more).map(|group| group.name()).collect();
            look(&CallFacts {
                tool: &tool.name,
                server: tool.server(),
                groups: &groups,
                tags: &tags,
                kind: tool.traits.kind,
                permission: tool.traits.permission,
                caller,
            })
        })
    }

    fn schema_hash(&self) -> [u8; 32] {
        self.tool.schema_hash()
    }

    fn presets_hash(&self) -> [u8; 32] {
        self.tool.presets_hash(self.py)
    }

    fn redaction(&self) -> Redaction<'_> {
        self.tool.plan.redaction()
    }
}

/// A call under way, as the surroundings of its own permission stage.
struct CallHost<'a, 'py> {
    py: Python<'py>,
    state: &'a State,
    tool: &'a Bound<'py, PyTool>,
    call: &'a CallInfo,
}

impl CallHost<'_, '_> {
    fn permissions(&self) -> &PyPermissions {
        self.tool.get().permissions.get()
    }
}

impl Host for CallHost<'_, '_> {
    type Error = PyErr;

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn nonce(&self) -> PyResult<[u8; 16]> {
        Ok(random_bytes()?)
    }

    fn has_approver(&self) -> bool {
        self.permissions().has_approver()
    }

    fn approvals(&self) -> PyResult<(Arc<Approvals>, Duration)> {
        let approvals = self.permissions().approvals(self.py)?;
        Ok((approvals.get().core()?, approvals.get().lifetime()))
    }

    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String> {
        let Some(sink) = self.permissions().audit(self.py) else { return Ok(()) };
        sink.record(self.py, record).map_err(|error| error_text(self.py, &error))
    }

    fn begin_record(&self, record: &AuditRecord<'_>) -> Option<Result<(), String>> {
        match self.permissions().audit(self.py) {
            Some(AuditSink::Store(store)) => {
                let recorded = self.begin(store.get().core().defer_record(record))?;
                Some(recorded.map(drop).map_err(|error| error.to_string()))
            }
            _ => Some(self.record(record)),
        }
    }

    fn begin(&self, write: Write) -> Option<crate::Result<bool>> {
        self.state.begin_write(self.py, write)
    }

    fn wants(&self, _: EventKind) -> bool {
        self.permissions().listeners.is_watched()
    }

    fn emit(&self, kind: EventKind, data: Value) {
        let py = self.py;
        self.permissions().listeners.emit(py, kind, self.call, || Ok(json::to_python(py, &data)?.cast_into()?));
    }

    fn check(&self, edited: &Map<String, Value>) -> PyResult<Result<CheckedArguments, Unfit>> {
        let edited = json::to_python(self.py, &Value::Object(edited.clone()))?.cast_into::<PyDict>()?;
        self.tool.get().plan.check_arguments(&edited, self.state)
    }

    fn complete(&self, sent: &Value) -> PyResult<CheckedArguments> {
        self.tool.get().plan.completed(self.py, sent.clone(), None, self.state)
    }

    fn find_again(&self) -> Standing {
        let tool = self.tool.get();
        if self.state.toolkit.get(self.py).is_none() {
            return tool.refuse_quarantined().map_or_else(Standing::Gone, |()| Standing::Same);
        }
        match self.state.find_admitted(self.py, &tool.name) {
            // A view makes its own meta tool each time.
            Ok(now) if now.is(self.tool) || now.get().meta.is_some() => Standing::Same,
            Ok(_) => Standing::Replaced,
            Err(reply) => Standing::Gone(reply),
        }
    }

    fn policy_to_extend(&self) -> Arc<Policy> {
        self.permissions().policy_to_extend(self.py)
    }

    fn cancel_questions(&self) {
        let (py, session) = (self.py, self.call.session_id().map(|id| &**id));
        let cancelled =
            CANCEL_QUESTIONS.get(py).and_then(|cancel_all| cancel_all.call1((&self.tool.get().permissions, session)));
        if let Err(error) = cancelled {
            error.write_unraisable(py, None);
        }
    }

    fn blocking<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.py.detach(work)
    }

    fn warn(&self, text: &str) {
        warn(self.py, text);
    }
}

/// Logs a warning for the developer.
fn warn(py: Python<'_>, text: &str) {
    if let Err(error) = log_warning(py, text) {
        error.write_unraisable(py, None);
    }
}
