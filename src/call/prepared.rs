//! The stages of a call of a tool whose arguments are JSON, up to its run: [`Path::prepare`] takes a call through them, and
//! [`Path::outlook`] says what would become of it.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;

use serde_json::{Map, Value};

use super::path::{self, Clearance, Driver};
use super::{
    ArgumentRules, Behaviour, CallInfo, CheckedArguments, Host, Next, Outlook, PermissionStage, Permissions, Presets,
    ReadRepairs, Repair, Reply, ToolCall, ToolFacts, Unfit, Waiting,
};
use crate::Result;
use crate::policy::{Answer, CallFacts, Permission, Redaction, ToolKind, hash};
use crate::registry::{Registry, Tool, View};
use crate::schema::check::Checker;

/// The body of a tool, as far as the path has to know it.
pub trait Profile {
    /// The compiled schema of the arguments.
    fn checker(&self) -> &Checker;

    /// The kind of effect the tool has.
    fn kind(&self) -> ToolKind {
        ToolKind::default()
    }

    /// The tool's own wish to be confirmed.
    fn permission(&self) -> Permission {
        Permission::default()
    }

    /// The MCP server that it belongs to.
    fn server(&self) -> Option<&str> {
        None
    }

    /// The parameters whose values only the tool sees.
    fn secrets(&self) -> &[Box<str>] {
        &[]
    }

    /// Other names of parameters, each with the one that it stands for.
    fn aliases(&self) -> &[(Box<str>, Box<str>)] {
        &[]
    }

    /// The values that the model neither sees nor sets, and their names.
    fn presets(&self) -> Option<(&Presets, &[Box<str>])> {
        None
    }

    /// The switches of its toolkit.
    fn behaviour(&self) -> Behaviour {
        Behaviour::default()
    }
}

impl<B: Profile> ToolFacts for Tool<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> ToolKind {
        self.body.kind()
    }

    fn description(&self) -> Option<String> {
        self.schema.description()
    }

    fn with_facts<T>(&self, caller: Option<&str>, look: impl FnOnce(&CallFacts<'_>) -> T) -> T {
        let groups: Vec<&str> = self.groups().map(|group| group.name()).collect();
        let tags: Vec<&str> = self.tags.iter().map(AsRef::as_ref).collect();
        look(&CallFacts {
            tool: &self.name,
            server: self.body.server(),
            groups: &groups,
            tags: &tags,
            kind: self.body.kind(),
            permission: self.body.permission(),
            caller,
        })
    }

    fn schema_hash(&self) -> [u8; 32] {
        hash(&self.schema.value())
    }

    fn presets_hash(&self) -> [u8; 32] {
        self.body.presets().map_or_else(|| Presets::default().hash(), |(presets, _)| presets.hash())
    }

    fn redaction(&self) -> Redaction<'_> {
        Redaction::new(self.body.secrets(), self.schema.parameters().value())
    }
}

/// The surroundings of a call: the tools, what a caller sees of them, and who may do what.
#[derive(Debug)]
pub struct Path<'a, B, H> {
    /// The tools.
    pub registry: &'a Registry<B>,
    /// The part of them that the caller sees; all if none.
    pub view: Option<&'a View>,
    /// The rules and grants.
    pub permissions: &'a Permissions,
    /// The driver's side of the permission stage.
    pub host: &'a H,
}

/// A call that has come up to the run of its tool, or to its end before.
#[derive(Debug)]
pub struct Prepared<'r, B> {
    /// The tool, if the call was admitted.
    pub tool: Option<&'r Tool<B>>,
    /// The repairs of the arguments, redacted.
    pub repairs: Vec<Repair>,
    /// The next thing to do.
    pub next: Next,
}

impl<'r, B: Profile, H: Host> Path<'r, B, H> {
    /// Takes a call up to the run of its tool, to the question to its approver, or to its end.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer.
    pub fn prepare(&self, request: &ToolCall, call: &CallInfo) -> Result<Prepared<'r, B>, H::Error> {
        let driver = Preparing { path: self, request, call, tool: Cell::new(None), repairs: RefCell::default() };
        let next = ended(path::begin(&driver))?;
        Ok(Prepared { tool: driver.tool.get(), repairs: driver.repairs.into_inner(), next })
    }

    /// The outcome that a call would have.
    #[must_use]
    pub fn outlook(&self, request: &ToolCall, call: &CallInfo) -> Outlook {
        let driver = Preparing { path: self, request, call, tool: Cell::new(None), repairs: RefCell::default() };
        match path::begin(&DryRun(&driver)) {
            Ok(outlook) | Err(outlook) => outlook,
        }
    }

    /// Goes on with a call whose approver has answered.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer.
    pub fn answer(
        &self,
        tool: &'r Tool<B>,
        request: &ToolCall,
        call: &CallInfo,
        (waiting, answer): (Waiting, Answer),
    ) -> Result<Next, H::Error> {
        let driver = Preparing { path: self, request, call, tool: Cell::new(Some(tool)), repairs: RefCell::default() };
        match driver.stage(tool).answer(waiting, answer)? {
            Next::Run(arguments) => ended(path::proceed(&driver, tool, arguments)),
            next => Ok(next),
        }
    }

    /// Finds the tool of a request. If the caller has no such tool, a request that cannot be read is answered with the reason for
    /// that: it may be no call of a tool at all.
    fn find(&self, request: &ToolCall) -> Result<&'r Tool<B>, Reply> {
        self.admit(&request.name).map_err(|reply| match readable(request) {
            Err(unreadable) if reply.names_no_tool() => unreadable,
            _ => reply,
        })
    }

    /// Finds the tool of a call and sees whether it may be called.
    ///
    /// # Errors
    ///
    /// The reply that says why not.
    pub fn admit(&self, name: &str) -> Result<&'r Tool<B>, Reply> {
        let tool = self
            .registry
            .admit(name, self.view)
            .map_err(|denial| Reply::refusing(name, &denial).suggesting(self.registry.similar(name, self.view)))?;
        match self.view.and_then(View::session).map(|session| session.may_call(name)) {
            Some(Err(limit)) => Err(Reply::LimitExceeded { tool: name.to_owned(), limit }),
            Some(Ok(())) | None => Ok(tool),
        }
    }
}

/// A call that is being prepared: the driver of the stages for tools whose arguments are JSON.
struct Preparing<'c, 'r, B, H> {
    path: &'c Path<'r, B, H>,
    request: &'c ToolCall,
    call: &'c CallInfo,
    /// The tool, once the call is admitted.
    tool: Cell<Option<&'r Tool<B>>>,
    repairs: RefCell<Vec<Repair>>,
}

/// The arguments of a call that is being prepared.
enum Arguments {
    /// Rules have to see them.
    Checked(CheckedArguments),
    /// Rules let them pass, whatever they are.
    Cleared(CheckedArguments),
    /// They were approved before, and are in the resumption of the call.
    Approved,
}

/// The end of the preparation before the tool runs.
enum Early<E> {
    Next(Box<Next>),
    Failed(E),
}

impl<E> From<Reply> for Early<E> {
    fn from(reply: Reply) -> Self {
        Next::Respond(reply).into()
    }
}

impl<E> From<Next> for Early<E> {
    fn from(next: Next) -> Self {
        Self::Next(Box::new(next))
    }
}

fn ended<E>(step: Result<Next, Early<E>>) -> Result<Next, E> {
    match step {
        Ok(next) => Ok(next),
        Err(Early::Next(next)) => Ok(*next),
        Err(Early::Failed(error)) => Err(error),
    }
}

impl<'c, 'r, B: Profile, H: Host> Preparing<'c, 'r, B, H> {
    fn stage(&self, tool: &'r Tool<B>) -> PermissionStage<'c, Tool<B>, H>
    where
        'r: 'c,
    {
        PermissionStage { tool, call: self.call, permissions: self.path.permissions, host: self.path.host }
    }
}

impl<'r, B: Profile, H: Host> Driver for Preparing<'_, 'r, B, H> {
    type Request = ();
    type Tool = &'r Tool<B>;
    type Arguments = Arguments;
    type Permitted = CheckedArguments;
    type Step = Next;
    type Early = Early<H::Error>;

    fn claim(&self) -> Result<(), Self::Early> {
        let Some(resumption) = &self.call.resumption else { return Ok(()) };
        let tool = match self.path.admit(&self.request.name) {
            Ok(tool) => tool,
            Err(reply) => {
                // The name of an altered call is not what the model called.
                let (approvals, _) = self.path.host.approvals().map_err(Early::Failed)?;
                approvals.verify(resumption.pending()).map_err(|error| Early::Failed(error.into()))?;
                return Err(reply.into());
            }
        };
        self.tool.set(Some(tool));
        match self.stage(tool).claim(resumption).map_err(Early::Failed)? {
            Some(next) => Err(next.into()),
            None => Ok(()),
        }
    }

    fn middleware(&self) -> Result<Option<Next>, Self::Early> {
        Ok(None)
    }

    fn request(&self) -> Result<(), Self::Early> {
        Ok(named(self.request)?)
    }

    fn admit(&self, (): &()) -> Result<&'r Tool<B>, Self::Early> {
        let tool = self.path.find(self.request)?;
        self.tool.set(Some(tool));
        Ok(tool)
    }

    fn deny_outright(&self, tool: &&'r Tool<B>, (): &()) -> Result<Clearance, Self::Early> {
        let stage = self.stage(tool);
        stage.preview(None).map_err(|verdict| {
            let shown = match &self.request.error {
                None => tool.redaction().unchecked(self.request.arguments.clone()),
                Some(_) => Value::Null,
            };
            stage.deny(&verdict, &shown).into()
        })
    }

    fn arguments(&self, tool: &&'r Tool<B>, (): (), clearance: Clearance) -> Result<Arguments, Self::Early> {
        if self.call.is_approved(&tool.name) {
            return Ok(Arguments::Approved);
        }
        let arguments = accept(tool, self.request, &mut self.repairs.borrow_mut())?;
        Ok(match clearance {
            Clearance::Pass => Arguments::Cleared(arguments),
            Clearance::Decide => Arguments::Checked(arguments),
        })
    }

    fn permission(&self, tool: &&'r Tool<B>, arguments: Arguments) -> Result<CheckedArguments, Self::Early> {
        let next = match (arguments, &self.call.resumption) {
            (Arguments::Cleared(arguments), _) => return Ok(arguments),
            (Arguments::Checked(arguments), _) => self.stage(tool).decide(arguments),
            (Arguments::Approved, Some(resumption)) => self.stage(tool).resume(resumption),
            (Arguments::Approved, None) => Ok(self.stage(tool).used_up()),
        };
        match next.map_err(Early::Failed)? {
            Next::Run(arguments) => Ok(arguments),
            next => Err(next.into()),
        }
    }

    fn count(&self, tool: &&'r Tool<B>) -> Result<(), Self::Early> {
        let Some(session) = &self.call.session else { return Ok(()) };
        let counted = session.count_call();
        counted.map_err(|limit| Reply::LimitExceeded { tool: tool.name.to_string(), limit }.into())
    }

    fn run(&self, _: &'r Tool<B>, arguments: CheckedArguments) -> Next {
        Next::Run(arguments)
    }
}

/// A dry run: the same stages, without anything that has an effect.
struct DryRun<'p, 'c, 'r, B, H>(&'p Preparing<'c, 'r, B, H>);

impl<'r, B: Profile, H: Host> Driver for DryRun<'_, '_, 'r, B, H> {
    type Request = ();
    type Tool = &'r Tool<B>;
    type Arguments = CheckedArguments;
    type Permitted = Infallible;
    type Step = Outlook;
    type Early = Outlook;

    fn claim(&self) -> Result<(), Outlook> {
        Ok(())
    }

    fn middleware(&self) -> Result<Option<Outlook>, Outlook> {
        Ok(None)
    }

    fn request(&self) -> Result<(), Outlook> {
        named(self.0.request).map_err(Outlook::refused)
    }

    fn admit(&self, (): &()) -> Result<&'r Tool<B>, Outlook> {
        self.0.path.find(self.0.request).map_err(Outlook::refused)
    }

    fn deny_outright(&self, tool: &&'r Tool<B>, (): &()) -> Result<Clearance, Outlook> {
        self.0.stage(tool).preview(None).map_err(|verdict| self.0.stage(tool).denied(verdict))
    }

    fn arguments(&self, tool: &&'r Tool<B>, (): (), _: Clearance) -> Result<CheckedArguments, Outlook> {
        accept(tool, self.0.request, &mut Vec::new()).map_err(Outlook::refused)
    }

    fn permission(&self, tool: &&'r Tool<B>, arguments: CheckedArguments) -> Result<Infallible, Outlook> {
        Err(self.0.stage(tool).outlook(&arguments, false))
    }

    fn count(&self, _: &&'r Tool<B>) -> Result<(), Outlook> {
        Ok(())
    }

    fn run(&self, _: &'r Tool<B>, permitted: Infallible) -> Outlook {
        match permitted {}
    }
}

/// Refuses a request that names no tool.
fn named(request: &ToolCall) -> Result<(), Reply> {
    if !request.name.is_empty() {
        return Ok(());
    }
    let reason = request.error.as_ref().map_or_else(|| "it has no `name`".to_owned(), ToString::to_string);
    Err(Reply::BadCall { reason })
}

/// Refuses a request whose arguments cannot be read.
fn readable(request: &ToolCall) -> Result<(), Reply> {
    let unreadable = |error| Reply::BadCall { reason: format!("the call of '{}': {error}", request.name) };
    request.error.as_ref().map_or(Ok(()), |error| Err(unreadable(error)))
}

fn rules<B: Profile>(tool: &Tool<B>) -> ArgumentRules<'_> {
    ArgumentRules {
        tool: &tool.name,
        parameters: tool.schema.parameters().value(),
        behaviour: tool.body.behaviour(),
        aliases: tool.body.aliases(),
        hidden: tool.body.presets().map_or(&[], |(_, names)| names),
        secrets: tool.body.secrets(),
        is_read_only: tool.body.kind().is_read_only(),
    }
}

/// Accepts the arguments of a request.
fn accept<B: Profile>(
    tool: &Tool<B>,
    request: &ToolCall,
    repairs: &mut Vec<Repair>,
) -> Result<CheckedArguments, Reply> {
    readable(request)?;
    let rules = rules(tool);
    let read = ReadRepairs {
        repairs: request.repairs.clone(),
        is_truncated: request.is_truncated,
        has_duplicate_keys: request.has_duplicate_keys,
    };
    let accepted = |input: &Value| checked(tool, &rules, input);
    let explain = |repairs: Vec<Repair>| rules.explain(repairs, accepted(&request.arguments), |it| Some(it.clone())).0;
    if let Some(reply) = rules.refuse_repaired(&read, explain) {
        return Err(reply);
    }
    repairs.extend(rules.redacted(read.repairs));
    match rules.settle(accepted(&request.arguments), |accepted| Some(accepted.clone())) {
        Ok((sent, more)) => {
            repairs.extend(more);
            Ok(complete(tool, sent))
        }
        Err((reply, more)) => {
            repairs.extend(more);
            Err(reply)
        }
    }
}

fn checked<B: Profile>(tool: &Tool<B>, rules: &ArgumentRules<'_>, input: &Value) -> super::Accepted<Value> {
    let hidden: Vec<&str> = rules.hidden.iter().map(AsRef::as_ref).collect();
    let check = |input: &Value, mode| -> Result<_, std::convert::Infallible> {
        let settled = tool.body.checker().check(input, mode, &hidden);
        Ok(settled.map(|changed| changed.unwrap_or_else(|| input.clone())))
    };
    match rules.accept(input, check, |input| Some(input.clone()), Ok) {
        Ok(accepted) => accepted,
        Err(never) => match never {},
    }
}

impl<B: Profile> Tool<B> {
    /// Checks arguments that an approver put in place of the model's.
    ///
    /// # Errors
    ///
    /// The reply that says what is wrong with them.
    pub fn check_edited(&self, edited: &Map<String, Value>) -> Result<CheckedArguments, Unfit> {
        let request = ToolCall::new(&*self.name, edited.clone());
        accept(self, &request, &mut Vec::new()).map_err(Unfit::Refused)
    }

    /// Completes arguments that were checked before with the defaults of those that were not sent.
    #[must_use]
    pub fn complete(&self, sent: &Value) -> CheckedArguments {
        complete(self, sent.clone())
    }
}

/// Adds the defaults that the schema has for parameters that were not sent.
fn complete<B>(tool: &Tool<B>, sent: Value) -> CheckedArguments {
    let mut whole = sent.clone();
    let properties = tool.schema.parameters().value().get("properties").and_then(Value::as_object);
    if let Value::Object(entries) = &mut whole {
        for (name, schema) in properties.into_iter().flatten() {
            if let Some(default) = schema.get("default").filter(|_| !entries.contains_key(name)) {
                entries.insert(name.clone(), default.clone());
            }
        }
    }
    CheckedArguments { sent, whole }
}
