//! The path of a call: find, admit, arguments, permission, run. Each stage gives its result or the reply that ends the call.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    ArgumentRules, Behaviour, CallInfo, CheckedArguments, Host, Next, Outlook, PermissionStage, Permissions, Presets,
    Preview, ReadRepairs, Repair, Reply, Standing, ToolCall, ToolFacts, Unfit,
};
use crate::Result;
use crate::policy::{CallFacts, Permission, Redaction, ToolKind, hash};
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
    /// Prepares a call: the stages in order.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer.
    pub fn prepare(&self, request: &ToolCall, call: &CallInfo) -> Result<Prepared<'r, B>, H::Error> {
        let mut repairs = Vec::new();
        let tool = match self.find(request) {
            Ok(tool) => tool,
            Err(reply) => return Ok(Prepared { tool: None, repairs, next: Next::Respond(reply) }),
        };
        let stage = PermissionStage { tool, call, permissions: self.permissions, host: self.host };
        let next = match self.permissions.preview(tool, call.caller.as_deref(), None) {
            // What a rule denies is denied before the arguments are looked at, even if they cannot be read.
            Preview::Deny(verdict) => {
                let shown = match &request.error {
                    None => tool.redaction().unchecked(request.arguments.clone()),
                    Some(_) => Value::Null,
                };
                stage.deny(&verdict, &shown)?
            }
            preview => match (accept(tool, request, &mut repairs), preview) {
                (Ok(arguments), Preview::Pass) => Next::Run(arguments),
                (Ok(arguments), _) => stage.decide(arguments)?,
                (Err(reply), _) => Next::Respond(reply),
            },
        };
        Ok(Prepared { tool: Some(tool), repairs, next })
    }

    /// The outcome that a call would have: the same stages, without anything that has an effect.
    #[must_use]
    pub fn outlook(&self, request: &ToolCall, call: &CallInfo) -> Outlook {
        let tool = match self.find(request) {
            Ok(tool) => tool,
            Err(reply) => return Outlook::refused(reply),
        };
        let arguments = accept(tool, request, &mut Vec::new());
        let stage = PermissionStage { tool, call, permissions: self.permissions, host: self.host };
        stage.outlook(arguments.map_err(Unfit::Refused), false)
    }

    /// Finds the tool of a request. If the caller has no such tool, a request that cannot be read is answered with the reason for
    /// that: it may be no call of a tool at all.
    fn find(&self, request: &ToolCall) -> Result<&'r Tool<B>, Reply> {
        if request.name.is_empty() {
            readable(request)?;
        }
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

    /// The state of a tool, which was found before, when an approver has answered.
    #[must_use]
    pub fn standing(&self, tool: &Tool<B>) -> Standing {
        match self.admit(&tool.name) {
            Ok(now) if Arc::ptr_eq(&now.schema, &tool.schema) => Standing::Same,
            Ok(_) => Standing::Replaced,
            Err(reply) => Standing::Gone(reply),
        }
    }
}

/// Refuses a request that cannot be read.
fn readable(request: &ToolCall) -> Result<(), Reply> {
    match &request.error {
        None if request.name.is_empty() => Err(Reply::BadCall { reason: "it has no `name`".to_owned() }),
        None => Ok(()),
        Some(error) if request.name.is_empty() => Err(Reply::BadCall { reason: error.to_string() }),
        Some(error) => Err(Reply::BadCall { reason: format!("the call of '{}': {error}", request.name) }),
    }
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
