//! The outcomes of the permission stage as data: the next thing to do, the question to the approver, the route of a call, the
//! outcome of a dry run, and who decided.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CheckedArguments, Deferred, HEADLESS, Host, PermissionStage, ToolFacts, Unfit, denial_reason};
use crate::call::Reply;
use crate::policy::{Pending, Ticket, ToolKind, Verdict};

/// The question that an approver is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// The tool's name.
    pub tool: String,
    /// The arguments that it will run with, redacted.
    pub arguments: Value,
    /// The caller, if one is named.
    pub caller: Option<Arc<str>>,
    /// The id of the rule that asks; none if the tool itself or the policy's default does.
    pub rule: Option<String>,
    /// The reason.
    pub reason: String,
    /// The kind of effect the tool has.
    pub kind: ToolKind,
    /// The description that the model is shown.
    pub description: Option<String>,
    /// The id of the call.
    pub call_id: String,
    /// The id of the session, if the call is part of one.
    pub session: Option<Arc<str>>,
    /// The agents that called each other until this call, from the outermost one; empty outside of agents.
    pub path: Vec<Arc<str>>,
}

/// A question that waits for an answer; the driver keeps it and gives it back with the answer.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub(super) arguments: CheckedArguments,
    pub(super) verdict: Verdict,
    pub(super) ticket: Ticket,
}

impl Waiting {
    /// The arguments that the question is about.
    #[must_use]
    pub fn arguments(&self) -> &CheckedArguments {
        &self.arguments
    }
}

/// The next thing for a driver to do.
#[derive(Debug)]
pub enum Next {
    /// Run the tool with these arguments.
    Run(CheckedArguments),
    /// Ask the approver, then report the answer with [`PermissionStage::answer`].
    Ask(Box<(ApprovalRequest, Waiting)>),
    /// End the call with [`Reply::Pending`] and this value, by which it can be resumed.
    Pend(Box<Pending>),
    /// End the call with this reply.
    Respond(Reply),
    /// Wait for the write that the [`Host`] has begun, then report its result with [`PermissionStage::written`].
    Wait(Box<Deferred>),
}

/// The way of a call through the permission stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It runs.
    Run {
        /// True if an approver has allowed such calls for this run.
        granted: bool,
    },
    /// The approver is asked.
    Ask,
    /// It ends with a pending value.
    Pend,
    /// A rule denies it.
    Deny,
    /// It needs approval, and no approver can be asked.
    Headless,
}

impl Route {
    /// The word by which a dry run reports it: `run`, `ask`, `pending` or `deny`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Ask => "ask",
            Self::Pend => "pending",
            Self::Deny | Self::Headless => "deny",
        }
    }
}

/// The outcome that a call would have.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// The word for it: `run`, `ask`, `pending`, `deny`, or `refuse` where the request itself is wrong.
    pub would: &'static str,
    /// The reply to a request that is wrong.
    pub reply: Option<Reply>,
    /// The reply to a call that is denied.
    pub denial: Option<Reply>,
    /// The verdict of the rules, if they were looked at.
    pub verdict: Option<Verdict>,
}

impl Outlook {
    /// The outlook of a request that is wrong.
    #[must_use]
    pub fn refused(reply: Reply) -> Self {
        Self { would: "refuse", reply: Some(reply), denial: None, verdict: None }
    }

    /// The outlook as a JSON object; `tool` is the name in the request.
    #[must_use]
    pub fn to_value(&self, tool: Option<&str>) -> Value {
        let (verdict, reply) = (self.verdict.as_ref(), self.reply.as_ref());
        let text = reply.map(Reply::text);
        let is_about_arguments = matches!(reply, Some(Reply::InvalidArguments { .. }));
        json!({
            "tool": tool,
            "would": self.would,
            "decision": verdict.map(|verdict| verdict.decision.as_str()),
            "rule": verdict.and_then(|verdict| verdict.rule()).map(|rule| rule.id()),
            "reason": verdict.map(|verdict| verdict.reason().into_owned()).or_else(|| text.clone()),
            "cause": verdict.map(|verdict| verdict.cause.kind()),
            "text": text.clone().or_else(|| self.denial.as_ref().map(Reply::text)),
            "shadowed": verdict.and_then(|verdict| verdict.shadowed.as_ref()).map(|shadowed| shadowed.decision.as_str()),
            "code": reply.map(|reply| reply.code().as_str()),
            "problems": text.filter(|_| is_about_arguments),
        })
    }
}

impl<T: ToolFacts, H: Host> PermissionStage<'_, T, H> {
    /// The outcome that a call with these arguments would have; `confirms` if the tool itself wants it to be confirmed. Nothing
    /// runs, is asked or recorded.
    #[must_use]
    pub fn outlook(&self, arguments: &CheckedArguments, confirms: bool) -> Outlook {
        let verdict = self.permissions.verdict(self.tool, self.caller(), &arguments.whole);
        let (route, verdict) = self.route_of(if confirms { verdict.confirmed() } else { verdict });
        let reason = match route {
            Route::Deny => return self.denied(verdict),
            Route::Headless => Some(HEADLESS.to_owned()),
            Route::Run { .. } | Route::Ask | Route::Pend => None,
        };
        let denial = reason.map(|reason| self.denial(reason));
        Outlook { would: route.as_str(), reply: None, denial, verdict: Some(verdict) }
    }

    /// The outcome of a call that a rule denies.
    #[must_use]
    pub fn denied(&self, verdict: Verdict) -> Outlook {
        let denial = Some(self.denial(denial_reason(&verdict)));
        Outlook { would: Route::Deny.as_str(), reply: None, denial, verdict: Some(verdict) }
    }

    /// The outcome of a call whose arguments cannot be decided about.
    #[must_use]
    pub fn unfit(&self, unfit: Unfit) -> Outlook {
        Outlook::refused(match unfit {
            Unfit::Refused(reply) => reply,
            Unfit::Unwritable(reason) => self.denial(reason),
        })
    }
}

/// The party that took a decision in place of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// An answer that holds for this run.
    Grant,
    /// No approver can be asked.
    Headless,
    /// The arguments cannot be decided about or kept.
    Arguments,
    /// The audit could not be written.
    Audit,
    /// The approver, who gave no name.
    Approver,
    /// The caller of `resume`, who gave no name.
    Resume,
    /// An approver of this name.
    Named(String),
}

impl DecidedBy {
    /// The word or name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Grant => "grant",
            Self::Headless => "headless",
            Self::Arguments => "unwritable arguments",
            Self::Audit => "audit",
            Self::Approver => "approver",
            Self::Resume => "resume",
            Self::Named(name) => name,
        }
    }
}
