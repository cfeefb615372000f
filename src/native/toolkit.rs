//! The toolkit of a Rust program: its tools, groups, views, policy and approver.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::stream::ToolStream;
use super::{Asker, Logger, NativeTool};
use crate::bytes::random_bytes;
use crate::call::{ApprovalRequest, CallInfo, EventHub, KeepWhole, Permissions, Profile, ResultBudget, ToolCall};
use crate::policy::{Answer, Approvals, Key, Pending, Permission, Policy, Sink, ToolKind};
use crate::registry::{BASIC, Filter, Registry, Session, Tool, View};
use crate::schema::check::Checker;
use crate::sync::{lock, read, write};
use crate::trace::TraceContext;
use crate::{Error, Result};

/// Default time for which a pending call can be answered.
const APPROVAL_LIFETIME: Duration = Duration::from_secs(3600);

/// The tools of a program, and the interface to call them: find, admit, arguments, permission, run, respond.
///
/// Clones share their state; a clone made by [`view`](Self::view) sees and calls only a part of the tools. Calls run on the
/// tokio runtime that polls their stream.
#[derive(Clone)]
pub struct Toolkit {
    pub(super) state: Arc<ToolkitState>,
    pub(super) view: Option<Arc<View>>,
    pub(super) caller: Option<Arc<str>>,
    /// The asker of the calls through this clone, before that of the toolkit.
    asker: Option<Asker>,
    /// The logger of the calls through this clone.
    pub(super) logger: Option<Logger>,
    /// The trace that the calls through this clone are part of.
    pub(super) trace: Option<Arc<TraceContext>>,
    /// The budget of the results of calls through this clone.
    result_budget: Option<ResultBudget>,
    /// Cancelled together with all open questions to the approver, of the session or outside of sessions.
    questions: Arc<Mutex<CancellationToken>>,
}

/// The state that a toolkit shares with its views and its calls.
pub(super) struct ToolkitState {
    registry: RwLock<Registry<NativeTool>>,
    pub(super) permissions: Permissions,
    settings: RwLock<ToolkitSettings>,
    pub(super) events: EventHub,
}

/// The parts that a program may supply.
#[derive(Clone, Default)]
struct ToolkitSettings {
    approver: Option<Approver>,
    approvals: Option<(Arc<Approvals>, Duration)>,
    audit: Option<Arc<dyn Sink>>,
    asker: Option<Asker>,
    /// The budgets of groups, by their names.
    group_budgets: HashMap<String, ResultBudget>,
    whole_results: Option<Arc<dyn KeepWhole>>,
}

type Approval = Pin<Box<dyn Future<Output = Answer> + Send>>;
pub(super) type Approver = Arc<dyn Fn(ApprovalRequest) -> Approval + Send + Sync>;

impl Profile for NativeTool {
    fn checker(&self) -> &Checker {
        self.checker()
    }

    fn kind(&self) -> ToolKind {
        self.kind()
    }

    fn permission(&self) -> Permission {
        self.permission()
    }
}

impl Default for Toolkit {
    fn default() -> Self {
        Self::new()
    }
}

impl Toolkit {
    /// Makes a toolkit without tools. It allows all calls except those of tools with [`Permission::Confirm`].
    #[must_use]
    pub fn new() -> Self {
        let state = ToolkitState {
            registry: RwLock::default(),
            permissions: Permissions::default(),
            settings: RwLock::default(),
            events: EventHub::default(),
        };
        let state = Arc::new(state);
        Self {
            state,
            view: None,
            caller: None,
            asker: None,
            logger: None,
            trace: None,
            result_budget: None,
            questions: Arc::default(),
        }
    }

    /// Sets the rules that allow or deny calls, or ask the approver.
    #[must_use]
    pub fn with_policy(self, policy: impl Into<Arc<Policy>>) -> Self {
        self.state.permissions.set_policy(Some(policy.into()));
        self
    }

    /// Sets the approver, which is asked about every call that needs approval.
    ///
    /// Without an approver such a call ends with a pending value; see [`resume`](Self::resume). If the approver panics, the
    /// call is denied.
    #[must_use]
    pub fn with_approver<A, Fut>(self, approver: impl Fn(ApprovalRequest) -> Fut + Send + Sync + 'static) -> Self
    where
        A: Into<Answer>,
        Fut: Future<Output = A> + Send + 'static,
    {
        let approver = move |request: ApprovalRequest| -> Approval {
            let answer = approver(request);
            Box::pin(async move { answer.await.into() })
        };
        self.settings_mut().approver = Some(Arc::new(approver));
        self
    }

    /// Sets the approvals, for example ones that outlive the process, and the time for which a pending call can be answered.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<Approvals>, lifetime: Duration) -> Self {
        self.settings_mut().approvals = Some((approvals, lifetime));
        self
    }

    /// Sets the audit log of all decisions. A call whose decision cannot be recorded does not run.
    #[must_use]
    pub fn with_audit(self, audit: impl Sink + 'static) -> Self {
        self.settings_mut().audit = Some(Arc::new(audit));
        self.state.permissions.set_audited(true);
        self
    }

    /// Sets the function that answers the questions of tools; see [`ToolContext::ask`](super::ToolContext::ask).
    #[must_use]
    pub fn with_asker(self, asker: Asker) -> Self {
        self.settings_mut().asker = Some(asker);
        self
    }

    /// Limits the results of calls through this toolkit, and through the views and sessions that are made of it. Of all budgets
    /// that apply to a call, those of its tool and groups included, the smallest holds.
    #[must_use]
    pub fn with_result_budget(mut self, budget: ResultBudget) -> Self {
        self.result_budget = smallest(self.result_budget.into_iter().chain([budget]));
        self
    }

    /// Limits the results of the tools of a group.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn set_group_budget(&self, group: &str, budget: ResultBudget) -> Result<()> {
        let name = self.registry().group(group)?.name().to_owned();
        self.settings_mut().group_budgets.insert(name, budget);
        Ok(())
    }

    /// Sets the place that keeps the whole text of results that are cut.
    #[must_use]
    pub fn with_whole_results(self, keep: impl KeepWhole + 'static) -> Self {
        self.settings_mut().whole_results = Some(Arc::new(keep));
        self
    }

    /// The budget of the results of a tool.
    pub(super) fn budget_of(&self, tool: &Tool<NativeTool>) -> Option<ResultBudget> {
        let settings = read(&self.state.settings);
        let groups = tool.groups().filter_map(|group| settings.group_budgets.get(group.name()));
        let own = self.result_budget.iter().chain(tool.body.result_budget());
        smallest(groups.chain(own).cloned())
    }

    /// The budget of the results that no tool has given.
    pub(super) fn result_budget(&self) -> Option<ResultBudget> {
        self.result_budget.clone()
    }

    /// Registers a tool in the group that is always active.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateTool`] if the name is taken.
    pub fn register(&self, tool: NativeTool) -> Result<()> {
        self.register_in(BASIC, tool)
    }

    /// Registers a tool in a group.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group, [`Error::DuplicateTool`] if the name is taken.
    pub fn register_in(&self, group: &str, tool: NativeTool) -> Result<()> {
        let mut registry = self.registry_mut();
        let group = registry.group(group)?;
        if registry.find(tool.name()).is_some() {
            return Err(Error::DuplicateTool { name: tool.name().to_owned() });
        }
        let (name, schema, tags) = (tool.name().to_owned(), tool.schema().clone(), tool.tags().clone());
        registry.insert(Tool { tags, ..Tool::new(&name, group, schema, tool) });
        Ok(())
    }

    /// Removes a tool. Calls that have started go on.
    #[allow(clippy::must_use_candidate, reason = "the removal itself is the effect")]
    pub fn remove(&self, name: &str) -> Option<NativeTool> {
        let removed = self.registry_mut().remove(name);
        removed.map(|tool| tool.body)
    }

    /// Replaces the tags of a tool. Views and rules that name tags follow at once.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn set_tags<T: Into<Box<str>>>(&self, name: &str, tags: impl IntoIterator<Item = T>) -> Result<()> {
        let tags: Vec<Box<str>> = tags.into_iter().map(Into::into).collect();
        self.registry_mut().set_tags(name, &tags)
    }

    /// Quarantines a tool: it is neither listed nor callable until it is [accepted](Self::accept). Calls that run go on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn quarantine(&self, name: &str, reason: &str) -> Result<()> {
        self.registry_mut().quarantine(name, reason)
    }

    /// Lifts the quarantine of a tool; false if it was not quarantined.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn accept(&self, name: &str) -> Result<bool> {
        self.registry_mut().accept(name)
    }

    /// The names of the quarantined tools with the reasons, in the order of registration.
    #[must_use]
    pub fn quarantined(&self) -> Vec<(String, String)> {
        let registry = self.registry();
        registry.quarantined().map(|(tool, reason)| (tool.name.to_string(), reason.to_owned())).collect()
    }

    /// Adds a group of tools, active or not.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateGroup`] if the name is taken.
    pub fn create_group(&self, name: &str, description: &str, active: bool) -> Result<()> {
        self.registry_mut().create_group(name, description, active, None)
    }

    /// Switches a group on or off.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn set_active(&self, group: &str, active: bool) -> Result<()> {
        self.registry().group(group)?.set_active(active);
        Ok(())
    }

    /// The tools that may be called, in the order of their registration.
    #[must_use]
    pub fn tools(&self) -> Vec<NativeTool> {
        let registry = self.registry();
        let body = |tool: &Tool<NativeTool>| tool.body.clone();
        match &self.view {
            None => registry.listed().map(body).collect(),
            Some(view) => view.listed(&registry).into_iter().map(body).collect(),
        }
    }

    /// The tool of this name, whether it may be called or not.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NativeTool> {
        self.registry().find(name).map(|tool| tool.body.clone())
    }

    /// The schemas of the tools that may be called, as a model reads them.
    #[must_use]
    pub fn schemas(&self) -> Vec<Value> {
        self.tools().iter().map(|tool| tool.schema().value()).collect()
    }

    /// Makes a view for a caller: the tools of this toolkit that the filter selects.
    ///
    /// Rules can match the caller's name.
    #[must_use]
    pub fn view(&self, caller: Option<&str>, filter: Filter) -> Self {
        let view = match &self.view {
            None => View::from(filter),
            Some(view) => view.narrowed(filter),
        };
        let caller = caller.map(Arc::from).or_else(|| self.caller.clone());
        Self { view: Some(Arc::new(view)), caller, ..self.clone() }
    }

    /// Makes a session for a caller: the same tools, with group switches, approvals, limits and counters of its own.
    ///
    /// Keep the session itself to switch groups and to save it; see [`Session`].
    #[must_use]
    pub fn session(&self, session: Arc<Session>, caller: Option<&str>) -> Self {
        let view = self.view.as_deref().cloned().unwrap_or_default().in_session(session);
        let caller = caller.map(Arc::from).or_else(|| self.caller.clone());
        Self { view: Some(Arc::new(view)), caller, questions: Arc::default(), ..self.clone() }
    }

    /// The same toolkit with another asker for the questions of its tools; that of the toolkit is asked what it does not
    /// support.
    #[must_use]
    pub fn asking(&self, asker: Asker) -> Self {
        Self { asker: Some(asker), ..self.clone() }
    }

    /// The same toolkit with a logger for the messages of its tools.
    #[must_use]
    pub fn logging(&self, logger: Logger) -> Self {
        Self { logger: Some(logger), ..self.clone() }
    }

    /// The same toolkit for calls that are part of a trace; see [`ToolContext::trace`](super::ToolContext::trace).
    #[must_use]
    pub fn traced(&self, trace: impl Into<Arc<TraceContext>>) -> Self {
        Self { trace: Some(trace.into()), ..self.clone() }
    }

    /// The asker of calls through this toolkit.
    pub(super) fn asker(&self) -> Option<Asker> {
        match (&self.asker, self.state.asker()) {
            (Some(asker), Some(other)) => Some(asker.clone().or(other)),
            (asker, other) => asker.clone().or(other),
        }
    }

    /// The caller of calls through this toolkit.
    #[must_use]
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// A number that changes whenever the tools that may be called may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.registry().revision() + self.view.as_ref().map_or(0, |view| view.revision())
    }

    /// The session that calls through this toolkit are part of.
    pub(crate) fn current_session(&self) -> Option<&Arc<Session>> {
        self.view.as_ref()?.session()
    }

    /// Calls a tool. The call starts when the stream is first polled.
    ///
    /// An invalid or denied call is answered with a response of the stream that has a code.
    pub fn call(&self, call: ToolCall) -> ToolStream {
        let info = CallInfo::new(call.id.as_deref().unwrap_or_default(), Some(&call.name), self.caller.clone());
        ToolStream::new(self.clone(), call, info.in_session(self.current_session().cloned()))
    }

    /// Resumes a call that ended with a pending value, with the answer to it. Each value can be used once.
    ///
    /// A value that was altered or used, or has expired, is answered with the code `denied`.
    pub fn resume(&self, pending: Pending, answer: impl Into<Answer>) -> ToolStream {
        let arguments = pending.arguments.as_object().cloned().unwrap_or_default();
        let call = ToolCall { id: Some(pending.call_id.clone()), ..ToolCall::new(pending.tool.clone(), arguments) };
        let info = CallInfo::resuming(pending, answer.into(), self.caller.clone());
        ToolStream::new(self.clone(), call, info.in_session(self.current_session().cloned()))
    }

    /// The events of calls; see [`EventHub::listen`].
    #[must_use]
    pub fn events(&self) -> &EventHub {
        &self.state.events
    }

    /// The policy, and the permissions that approvers granted for this run.
    #[must_use]
    pub fn permissions(&self) -> &Permissions {
        &self.state.permissions
    }

    pub(super) fn registry(&self) -> RwLockReadGuard<'_, Registry<NativeTool>> {
        read(&self.state.registry)
    }

    fn registry_mut(&self) -> RwLockWriteGuard<'_, Registry<NativeTool>> {
        write(&self.state.registry)
    }

    fn settings_mut(&self) -> RwLockWriteGuard<'_, ToolkitSettings> {
        write(&self.state.settings)
    }
}

impl ToolkitState {
    fn settings(&self) -> ToolkitSettings {
        read(&self.settings).clone()
    }

    pub(super) fn approver(&self) -> Option<Approver> {
        self.settings().approver
    }

    pub(super) fn audit(&self) -> Option<Arc<dyn Sink>> {
        self.settings().audit
    }

    pub(super) fn asker(&self) -> Option<Asker> {
        self.settings().asker
    }

    pub(super) fn whole_results(&self) -> Option<Arc<dyn KeepWhole>> {
        read(&self.settings).whole_results.clone()
    }

    /// The approvals, made in memory for the first call that needs them.
    pub(super) fn approvals(&self) -> Result<(Arc<Approvals>, Duration)> {
        if let Some(approvals) = self.settings().approvals {
            return Ok(approvals);
        }
        let fresh = (Arc::new(Approvals::in_memory(Key::new(random_bytes()?))), APPROVAL_LIFETIME);
        Ok(write(&self.settings).approvals.get_or_insert(fresh).clone())
    }
}

impl Toolkit {
    /// The token that cancels the open questions.
    pub(super) fn questions(&self) -> CancellationToken {
        lock(&self.questions).clone()
    }

    pub(super) fn cancel_questions(&self) {
        let open = std::mem::take(&mut *lock(&self.questions));
        open.cancel();
    }
}

fn smallest(budgets: impl Iterator<Item = ResultBudget>) -> Option<ResultBudget> {
    budgets.reduce(ResultBudget::and)
}

impl fmt::Debug for Toolkit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.registry().tools().map(|tool| tool.name.to_string()).collect();
        formatter.debug_struct("Toolkit").field("tools", &names).finish_non_exhaustive()
    }
}
