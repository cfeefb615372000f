//! The toolkit of a Rust program: its tools, and who may call them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::NativeTool;
use super::host::random_key;
use super::stream::ToolStream;
use crate::call::{ApprovalRequest, CallInfo, EventHub, Permissions, Profile, ToolCall};
use crate::policy::{Answer, Approvals, Pending, Permission, Policy, Sink, ToolKind};
use crate::registry::{BASIC, Filter, Registry, Tool, View};
use crate::schema::check::Checker;
use crate::{Error, Result};

/// The time that an answer to a pending call counts, unless the toolkit says otherwise.
const LIFE: Duration = Duration::from_secs(3600);

/// The tools of a program, and the one way to call them: find, admit, arguments, permission, run, respond.
///
/// It is shared by cloning it; a clone from [`view`](Self::view) sees and calls only a part of the tools. Calls run on the
/// tokio runtime that polls their stream.
#[derive(Clone)]
pub struct Toolkit {
    pub(super) shared: Arc<Shared>,
    pub(super) view: Option<Arc<View>>,
    pub(super) caller: Option<Arc<str>>,
}

/// The state that a toolkit shares with its views and its calls.
pub(super) struct Shared {
    registry: RwLock<Registry<NativeTool>>,
    pub(super) permissions: Permissions,
    settings: RwLock<Settings>,
    pub(super) events: EventHub,
    /// Cancelled when every question that waits is.
    questions: Mutex<CancellationToken>,
}

/// The parts that a program may put in place.
#[derive(Clone, Default)]
struct Settings {
    approver: Option<Approver>,
    approvals: Option<(Arc<Approvals>, Duration)>,
    audit: Option<Arc<dyn Sink>>,
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
    /// A toolkit without tools, whose calls are all allowed but those of tools that want to be confirmed.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            registry: RwLock::default(),
            permissions: Permissions::default(),
            settings: RwLock::default(),
            events: EventHub::default(),
            questions: Mutex::default(),
        };
        Self { shared: Arc::new(shared), view: None, caller: None }
    }

    /// The same toolkit with rules about who may call what.
    #[must_use]
    pub fn with_policy(self, policy: impl Into<Arc<Policy>>) -> Self {
        self.shared.permissions.set_policy(Some(policy.into()));
        self
    }

    /// The same toolkit with an approver, which is asked about every call that needs one.
    ///
    /// Without an approver such a call ends with a pending value; see [`resume`](Self::resume). An approver that panics has
    /// said no.
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

    /// The same toolkit with approvals that outlive the process, and the time that an answer counts.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<Approvals>, life: Duration) -> Self {
        self.settings_mut().approvals = Some((approvals, life));
        self
    }

    /// The same toolkit with a record of every decision. What cannot be recorded does not run.
    #[must_use]
    pub fn with_audit(self, audit: impl Sink + 'static) -> Self {
        self.settings_mut().audit = Some(Arc::new(audit));
        self.shared.permissions.set_audited(true);
        self
    }

    /// Registers a tool in the group that is always on.
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

    /// Takes a tool out. Calls that are under way go on.
    pub fn remove(&self, name: &str) -> Option<NativeTool> {
        let removed = self.registry_mut().remove(name);
        removed.map(|tool| tool.body)
    }

    /// Adds a group of tools, which is on or off.
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

    /// The schemas of the tools that may be called, as a model is told them.
    #[must_use]
    pub fn schemas(&self) -> Vec<Value> {
        let registry = self.registry();
        let schema = |tool: &Tool<NativeTool>| tool.schema.value();
        match &self.view {
            None => registry.listed().map(schema).collect(),
            Some(view) => view.listed(&registry).into_iter().map(schema).collect(),
        }
    }

    /// The toolkit as a caller sees it: the tools that this one sees and the filter chooses.
    ///
    /// Rules can be about the caller's name.
    #[must_use]
    pub fn view(&self, caller: Option<&str>, filter: Filter) -> Self {
        let view = match &self.view {
            None => View::from(filter),
            Some(view) => view.narrowed(filter),
        };
        let caller = caller.map(Arc::from).or_else(|| self.caller.clone());
        Self { shared: self.shared.clone(), view: Some(Arc::new(view)), caller }
    }

    /// Calls a tool. Nothing happens before the stream is polled.
    ///
    /// Whatever is wrong with the call is a response of the stream, with a code.
    pub fn call(&self, call: ToolCall) -> ToolStream {
        let info = CallInfo::new(call.id.as_deref().unwrap_or_default(), Some(&call.name), self.caller.clone());
        ToolStream::new(self.clone(), call, info)
    }

    /// Goes on with a call that ended with a pending value, now that there is an answer. Each can be used once.
    ///
    /// A value that is refused, because it was changed, used or has expired, is answered with the code `denied`.
    pub fn resume(&self, pending: Pending, answer: impl Into<Answer>) -> ToolStream {
        let arguments = pending.arguments.as_object().cloned().unwrap_or_default();
        let call = ToolCall { id: Some(pending.id.clone()), ..ToolCall::new(pending.tool.clone(), arguments) };
        ToolStream::new(self.clone(), call, CallInfo::resuming(pending, answer.into(), self.caller.clone()))
    }

    /// Reports what happens to calls; see [`EventHub::listen`].
    #[must_use]
    pub fn events(&self) -> &EventHub {
        &self.shared.events
    }

    /// The rules, and the permissions that approvers gave for this run.
    #[must_use]
    pub fn permissions(&self) -> &Permissions {
        &self.shared.permissions
    }

    pub(super) fn registry(&self) -> RwLockReadGuard<'_, Registry<NativeTool>> {
        // No code of others runs under the lock, and a registry is whole between its methods.
        self.shared.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn registry_mut(&self) -> RwLockWriteGuard<'_, Registry<NativeTool>> {
        self.shared.registry.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings_mut(&self) -> RwLockWriteGuard<'_, Settings> {
        self.shared.settings.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn approver(&self) -> Option<Approver> {
        self.settings().approver
    }

    pub(super) fn audit(&self) -> Option<Arc<dyn Sink>> {
        self.settings().audit
    }

    /// The approvals, made in memory for the first call that needs them.
    pub(super) fn approvals(&self) -> Result<(Arc<Approvals>, Duration)> {
        if let Some(approvals) = self.settings().approvals {
            return Ok(approvals);
        }
        let fresh = (Arc::new(Approvals::in_memory(random_key()?)), LIFE);
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        Ok(settings.approvals.get_or_insert(fresh).clone())
    }

    /// The token of the questions that wait now.
    pub(super) fn questions(&self) -> CancellationToken {
        self.lock_questions().clone()
    }

    pub(super) fn cancel_questions(&self) {
        let waiting = std::mem::take(&mut *self.lock_questions());
        waiting.cancel();
    }

    fn lock_questions(&self) -> MutexGuard<'_, CancellationToken> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Toolkit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.registry().tools().map(|tool| tool.name.to_string()).collect();
        formatter.debug_struct("Toolkit").field("tools", &names).finish_non_exhaustive()
    }
}
