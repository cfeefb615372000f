//! Decisions as data: the route of a call, the outcome of a dry run, and who decided.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Reply;
use crate::policy::{Choice, Decision, Rule, Ruling, Verdict};

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

/// A decision, and how it came about.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The decision of the rules.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: Option<Arc<Rule>>,
    /// The decision that shadow mode kept back.
    pub shadow: Option<Decision>,
    /// The party that decided in place of a rule.
    pub by: Option<DecidedBy>,
    /// The answer of an approver.
    pub answer: Option<Choice>,
    /// The result for the call.
    pub ruling: Ruling,
}

impl Decided {
    pub(super) fn by_rule(verdict: &Verdict) -> Self {
        Self {
            decision: verdict.decision,
            rule: verdict.rule().cloned(),
            shadow: verdict.shadowed.as_ref().map(|shadowed| shadowed.decision),
            by: None,
            answer: None,
            ruling: if verdict.decision == Decision::Allow { Ruling::Run } else { Ruling::Denied },
        }
    }

    pub(super) fn answered(verdict: &Verdict, choice: Choice, by: DecidedBy) -> Self {
        let ruling = match choice {
            Choice::Once | Choice::Run | Choice::Always => Ruling::Run,
            Choice::No => Ruling::Denied,
            Choice::Cancel => Ruling::Cancelled,
        };
        Self { answer: Some(choice), by: Some(by), ruling, ..Self::by_rule(verdict) }
    }

    /// Toolcrib itself denies a call, for want of what a decision needs.
    pub(super) fn refused(by: DecidedBy) -> Self {
        let (decision, ruling) = (Decision::Deny, Ruling::Denied);
        Self { decision, rule: None, shadow: None, by: Some(by), answer: None, ruling }
    }

    pub(super) fn denied(self) -> Self {
        Self { ruling: Ruling::Denied, ..self }
    }

    /// The data of the event that reports it.
    #[must_use]
    pub fn to_value(&self, reason: &str) -> Value {
        json!({
            "decision": if self.ruling == Ruling::Run { "allow" } else { "deny" },
            "answer": self.answer.map(Choice::as_str),
            "rule": self.rule.as_ref().map(|rule| rule.id()),
            "reason": reason,
            "by": self.by.as_ref().map(DecidedBy::as_str),
        })
    }
}
