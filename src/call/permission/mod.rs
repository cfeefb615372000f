//! The permission stage: decides whether a call runs, is asked about, waits for an answer, or is denied.
//!
//! Nothing here waits or does I/O of its own. A driver reports an event (arguments, an answer, a resumption) and gets the
//! [`Next`] thing to do; the I/O on the way, such as writing the audit, is done by the driver's [`Host`].
//!
//! [`PermissionStage::route`] is the one decision tree. A call follows it with [`PermissionStage::decide`], a dry run only
//! reads it. `identity` is the call that a decision is about, `host` the interface of a driver, `permissions` the rules and
//! grants that the tools of a toolkit share, `outcome` the decisions as data.

mod host;
mod identity;
mod outcome;
mod permissions;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{EventKind, Reply};
use crate::policy::{
    Answer, ApprovalDraft, ApprovalScope, AuditRecord, Cause, Choice, Decision, Grants, Pending, Question, Ruling,
    Ticket, ToolKind, Verdict,
};
use crate::schema::check::HIDDEN;
use crate::{Error, Result};

pub use host::{Host, Standing, ToolFacts};
use identity::{CLAIMED, FRESH, USED};
pub use identity::{CallInfo, CheckedArguments, Resumption, Unfit};
pub use outcome::{Decided, DecidedBy, Outlook, Route};
pub use permissions::{Permissions, Preview};

const HEADLESS: &str = "it needs approval, and no approver is available";
const DECLINED: &str = "the approver declined it";
const CANCELLED: &str = "all pending approvals were cancelled";
const REPLACED: &str = "the tool was replaced after it was approved";
const UNRECORDED: &str = "the decision could not be recorded";

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
    arguments: CheckedArguments,
    verdict: Verdict,
    ticket: Ticket,
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
}

/// The permission stage of one call.
#[derive(Debug)]
pub struct PermissionStage<'a, T, H> {
    /// The tool.
    pub tool: &'a T,
    /// The call.
    pub call: &'a CallInfo,
    /// The rules and grants.
    pub permissions: &'a Permissions,
    /// The surroundings.
    pub host: &'a H,
}

impl<T: ToolFacts, H: Host> PermissionStage<'_, T, H> {
    fn caller(&self) -> Option<&str> {
        self.call.caller.as_deref()
    }

    fn session(&self) -> Option<&str> {
        self.call.session_id().map(|id| &**id)
    }

    /// The approvals for this run: those of the session, or of the toolkit if the call is part of none.
    fn grants(&self) -> &Grants {
        self.call.session.as_ref().map_or_else(|| self.permissions.grants(), |session| session.grants())
    }

    /// The one decision tree: which way a call with these arguments goes, and why. It changes nothing.
    #[must_use]
    pub fn route(&self, arguments: &CheckedArguments) -> (Route, Verdict) {
        self.route_of(self.permissions.verdict(self.tool, self.caller(), &arguments.whole))
    }

    fn route_of(&self, verdict: Verdict) -> (Route, Verdict) {
        let route = match verdict.decision {
            Decision::Allow => Route::Run { granted: false },
            Decision::Deny => Route::Deny,
            Decision::Ask if self.is_granted(&verdict.cause) => Route::Run { granted: true },
            Decision::Ask if self.permissions.is_headless() => Route::Headless,
            Decision::Ask if self.host.has_approver() => Route::Ask,
            Decision::Ask => Route::Pend,
        };
        (route, verdict)
    }

    /// Decides about a call with these arguments.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn decide(&self, arguments: CheckedArguments) -> Result<Next, H::Error> {
        let (route, verdict) = self.route(&arguments);
        self.take(route, verdict, arguments)
    }

    /// The same as [`decide`](Self::decide) for a call that the tool itself wants to be confirmed.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn decide_confirmed(&self, arguments: CheckedArguments) -> Result<Next, H::Error> {
        let verdict = self.permissions.verdict(self.tool, self.caller(), &arguments.whole);
        let (route, verdict) = self.route_of(verdict.confirmed());
        self.take(route, verdict, arguments)
    }

    fn take(&self, route: Route, verdict: Verdict, arguments: CheckedArguments) -> Result<Next, H::Error> {
        self.note_shadow(&verdict);
        Ok(match route {
            Route::Run { granted: false } => self.run(arguments, &Decided::by_rule(&verdict)),
            Route::Run { granted: true } => {
                let decided = Decided::answered(&verdict, Choice::Run, DecidedBy::Grant);
                self.run(arguments, &decided)
            }
            Route::Deny => Next::Respond(self.deny(&verdict, &arguments.whole)),
            Route::Headless => {
                let decided = Decided { by: Some(DecidedBy::Headless), ..Decided::by_rule(&verdict) };
                self.turn_down(&arguments.whole, &decided, HEADLESS.to_owned())
            }
            Route::Ask => self.ask(arguments, verdict),
            Route::Pend => return self.pend(&arguments, &verdict),
        })
    }

    /// The outcome that a call with these arguments would have; `confirms` if the tool itself wants it to be confirmed. Nothing
    /// runs, is asked or recorded.
    #[must_use]
    pub fn outlook(&self, arguments: Result<CheckedArguments, Unfit>, confirms: bool) -> Outlook {
        match arguments {
            Ok(arguments) => {
                let verdict = self.permissions.verdict(self.tool, self.caller(), &arguments.whole);
                let (route, verdict) = self.route_of(if confirms { verdict.confirmed() } else { verdict });
                let reason = match route {
                    Route::Deny => Some(denial_reason(&verdict)),
                    Route::Headless => Some(HEADLESS.to_owned()),
                    Route::Run { .. } | Route::Ask | Route::Pend => None,
                };
                let denial = reason.map(|reason| self.denial(reason));
                Outlook { would: route.as_str(), reply: None, denial, verdict: Some(verdict) }
            }
            Err(unfit) => match self.permissions.preview(self.tool, self.caller(), None) {
                // What is denied whatever the arguments are is denied with these.
                Preview::Deny(verdict) => {
                    let denial = Some(self.denial(denial_reason(&verdict)));
                    Outlook { would: Route::Deny.as_str(), reply: None, denial, verdict: Some(verdict) }
                }
                Preview::Pass | Preview::NeedsArguments => Outlook::refused(match unfit {
                    Unfit::Refused(reply) => reply,
                    Unfit::Unwritable(reason) => self.denial(reason),
                }),
            },
        }
    }

    /// Ends a call whose arguments cannot be decided about.
    #[must_use]
    pub fn refuse(&self, unfit: Unfit) -> Reply {
        match unfit {
            Unfit::Refused(reply) => reply,
            Unfit::Unwritable(reason) => {
                let reason =
                    format!("its arguments are not valid JSON values, so that no rule can check them: {reason}");
                self.denied(&Value::Null, &Decided::refused(DecidedBy::Arguments), reason)
            }
        }
    }

    /// Ends a call that a rule denies; the arguments are for the audit only.
    #[must_use]
    pub fn deny(&self, verdict: &Verdict, arguments: &Value) -> Reply {
        self.denied(arguments, &Decided::by_rule(verdict), denial_reason(verdict))
    }

    /// The reply to a call that does not run for this reason.
    fn denial(&self, reason: String) -> Reply {
        Reply::Denied { tool: self.tool.name().to_owned(), reason }
    }

    /// Goes on after the approver has answered.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn answer(&self, waiting: Waiting, answer: Answer) -> Result<Next, H::Error> {
        let Waiting { arguments, verdict, ticket } = waiting;
        let was_cancelled = self.grants().is_cancelled(ticket);
        let answer = if was_cancelled { Answer { choice: Choice::Cancel, edited: None, ..answer } } else { answer };
        if answer.choice == Choice::Cancel && !was_cancelled {
            self.cancel_all();
        }
        self.follow(arguments, &verdict, answer, DecidedBy::Approver)
    }

    /// Uses a pending call up before anything runs. `None` if the call goes on and [`resume`](Self::resume) is to be called in
    /// the place of [`decide`](Self::decide).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAnswer`] for edited arguments that do not fit, while the call can still be answered otherwise; the
    /// errors of [`Approvals::claim`](crate::policy::Approvals::claim).
    pub fn claim(&self, resumption: &Resumption) -> Result<Option<Next>, H::Error> {
        let Resumption { pending, answer, .. } = resumption;
        let asked = self.host.complete(&pending.arguments)?;
        if let Some(edited) = &answer.edited
            && let Err(unfit) = self.check(edited, &asked)?
        {
            let (expected, found) = ("`arguments` that fit the tool's schema", unfit.reason());
            return Err(Error::InvalidAnswer { expected, found }.into());
        }
        let (approvals, _) = self.host.approvals()?;
        let (scope, now) = (self.scope(), self.host.now());
        self.host.blocking(|| approvals.claim(pending, &scope, now))?;
        resumption.advance(FRESH, CLAIMED);
        if answer.choice.is_yes() {
            return Ok(None);
        }
        if answer.choice == Choice::Cancel {
            self.cancel_all();
        }
        let verdict = self.verdict(&asked);
        self.follow(asked, &verdict, answer.clone(), DecidedBy::Resume).map(Some)
    }

    /// Goes on with the arguments that were approved, whatever middleware made of the request on its way. `None` if that was
    /// done before: an approval is used once.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn resume(&self, resumption: &Resumption) -> Result<Option<Next>, H::Error> {
        if !resumption.advance(CLAIMED, USED) {
            return Ok(None);
        }
        let asked = self.host.complete(&resumption.pending.arguments)?;
        let verdict = self.verdict(&asked);
        let by = resumption.answer.by.clone().map_or(DecidedBy::Resume, DecidedBy::Named);
        let decided = Decided::answered(&verdict, resumption.answer.choice, by);
        self.run_approved(asked, &verdict, &resumption.answer, decided).map(Some)
    }

    /// Does what an answer says.
    fn follow(
        &self,
        asked: CheckedArguments,
        verdict: &Verdict,
        answer: Answer,
        by: DecidedBy,
    ) -> Result<Next, H::Error> {
        let by = answer.by.clone().map_or(by, DecidedBy::Named);
        let decided = Decided::answered(verdict, answer.choice, by);
        Ok(match answer.choice {
            Choice::Cancel => self.cancelled(&asked.whole, &decided),
            Choice::No => {
                let reason = answer.reason.unwrap_or_else(|| DECLINED.to_owned());
                self.turn_down(&asked.whole, &decided, reason)
            }
            Choice::Once | Choice::Run | Choice::Always => match self.host.find_again() {
                Standing::Same => return self.run_approved(asked, verdict, &answer, decided),
                Standing::Replaced => self.turn_down(&asked.whole, &decided.denied(), REPLACED.to_owned()),
                Standing::Gone(reply) => {
                    self.report(&asked.whole, &decided.denied(), &reply.text());
                    Next::Respond(reply)
                }
            },
        })
    }

    /// Runs what was approved, unless a rule has come to be against it, and keeps what else was allowed.
    fn run_approved(
        &self,
        asked: CheckedArguments,
        verdict: &Verdict,
        answer: &Answer,
        decided: Decided,
    ) -> Result<Next, H::Error> {
        let arguments = match &answer.edited {
            None => asked,
            Some(edited) => match self.check(edited, &asked)? {
                Ok(arguments) => arguments,
                Err(unfit) => {
                    let reason = format!("it was approved with other arguments, which do not fit: {}", unfit.reason());
                    self.host.warn(&format!("a call of '{}' was denied: {reason}", self.tool.name()));
                    return Ok(self.turn_down(&asked.whole, &decided.denied(), reason));
                }
            },
        };
        let now = self.verdict(&arguments);
        if now.decision == Decision::Deny {
            return Ok(Next::Respond(self.deny(&now, &arguments.whole)));
        }
        if let Err(reason) = self.record(&decided, &arguments.whole) {
            return Ok(self.deny_unrecorded(&reason));
        }
        self.remember(answer.choice, verdict);
        self.report_result(&decided, "");
        Ok(Next::Run(arguments))
    }

    /// Records the decision, and lets the tool run with the arguments that it is about.
    fn run(&self, arguments: CheckedArguments, decided: &Decided) -> Next {
        match self.record(decided, &arguments.whole) {
            Ok(()) => Next::Run(arguments),
            Err(reason) => self.deny_unrecorded(&reason),
        }
    }

    fn ask(&self, arguments: CheckedArguments, verdict: Verdict) -> Next {
        let ticket = self.grants().wait();
        self.report_request(&arguments, &verdict, None);
        let request = ApprovalRequest {
            tool: self.tool.name().to_owned(),
            arguments: self.tool.redaction().arguments(&arguments.whole),
            caller: self.call.caller.clone(),
            rule: verdict.rule().map(|rule| rule.id().to_owned()),
            reason: verdict.reason().into_owned(),
            kind: self.tool.kind(),
            description: self.tool.description(),
            call_id: self.call.id.clone(),
            session: self.call.session_id().cloned(),
            path: self.call.path(),
        };
        Next::Ask(Box::new((request, Waiting { arguments, verdict, ticket })))
    }

    /// Ends the call with a value by which it can be resumed.
    fn pend(&self, arguments: &CheckedArguments, verdict: &Verdict) -> Result<Next, H::Error> {
        let (approvals, life) = self.host.approvals()?;
        let draft = ApprovalDraft { call_id: &self.call.id, arguments: &arguments.sent, scope: self.scope(), life };
        let (now, nonce) = (self.host.now(), self.host.nonce()?);
        let pending = match self.host.blocking(|| approvals.ask(&draft, now, nonce)) {
            Ok(pending) => pending,
            // The model sent arguments that cannot be kept.
            Err(Error::InvalidPending { expected, .. }) => {
                let decided = Decided { by: Some(DecidedBy::Arguments), ..Decided::by_rule(verdict) };
                let reason =
                    format!("it needs approval, and its arguments cannot be kept until then: they must be {expected}");
                return Ok(self.turn_down(&arguments.whole, &decided, reason));
            }
            Err(error) => return Err(error.into()),
        };
        let decided = Decided { ruling: Ruling::Pending, ..Decided::by_rule(verdict) };
        if let Err(reason) = self.record(&decided, &arguments.whole) {
            return Ok(self.deny_unrecorded(&reason));
        }
        self.report_request(arguments, verdict, Some(&pending));
        Ok(Next::Pend(Box::new(pending)))
    }

    fn scope(&self) -> ApprovalScope<'_> {
        let (schema_hash, presets_hash) = (self.tool.schema_hash(), self.tool.presets_hash());
        let (caller, session) = (self.caller(), self.session());
        ApprovalScope { tool: self.tool.name(), schema_hash, presets_hash, caller, session }
    }

    /// Edited arguments as they run; a secret that is still hidden in them is what it was.
    fn check(
        &self,
        edited: &Map<String, Value>,
        asked: &CheckedArguments,
    ) -> Result<Result<CheckedArguments, Unfit>, H::Error> {
        let shown = self.tool.redaction().arguments(&asked.whole);
        let mut edited = edited.clone();
        for (name, value) in &mut edited {
            let original = asked.sent.get(name).or_else(|| asked.whole.get(name));
            if let (Some(original), Some(shown)) = (original, shown.get(name))
                && shows_hidden(shown)
                && value == shown
            {
                *value = original.clone();
            }
        }
        self.host.check(&edited)
    }

    fn verdict(&self, arguments: &CheckedArguments) -> Verdict {
        let verdict = self.permissions.verdict(self.tool, self.caller(), &arguments.whole);
        self.note_shadow(&verdict);
        verdict
    }

    fn note_shadow(&self, verdict: &Verdict) {
        if verdict.shadowed.is_some()
            && let Some(policy) = self.permissions.policy()
        {
            policy.note_shadow(self.tool.name(), self.caller(), verdict, self.host.now());
        }
    }

    fn is_granted(&self, asked: &Cause) -> bool {
        let grants = self.grants();
        !grants.is_empty()
            && grants.allows(self.tool.name(), self.tool.schema_hash(), self.caller(), Question::from(asked))
    }

    /// Keeps what was allowed beyond this call.
    fn remember(&self, choice: Choice, asked: &Verdict) {
        if asked.decision != Decision::Ask {
            return;
        }
        let (tool, caller) = (self.tool.name(), self.caller());
        let grant = || self.grants().allow(tool, self.tool.schema_hash(), caller, Question::from(&asked.cause));
        match choice {
            Choice::Once | Choice::No | Choice::Cancel => {}
            Choice::Run => grant(),
            Choice::Always => match self.allow_always(&asked.cause) {
                Ok(true) => {}
                Ok(false) => {
                    let asks = asked.cause.name();
                    self.host.warn(&format!("'{tool}' runs this once, not always: `{asks}` asks each time"));
                }
                Err(error) => {
                    // The next run asks again.
                    grant();
                    self.host.warn(&format!("'{tool}' may run always, but that cannot be saved: {error}"));
                }
            },
        }
    }

    fn allow_always(&self, asked: &Cause) -> Result<bool> {
        let (tool, caller, policy) = (self.tool.name(), self.caller(), self.host.policy_to_extend()?);
        self.host.blocking(|| policy.allow_always(tool, caller, asked))
    }

    /// Cancels every call that waits for an answer: of the session, or of the toolkit outside of sessions.
    fn cancel_all(&self) {
        self.grants().cancel_all();
        self.host.cancel_questions();
    }

    fn cancelled(&self, arguments: &Value, decided: &Decided) -> Next {
        self.report(arguments, decided, CANCELLED);
        Next::Respond(Reply::Cancelled { tool: self.tool.name().to_owned() })
    }

    fn turn_down(&self, arguments: &Value, decided: &Decided, reason: String) -> Next {
        Next::Respond(self.denied(arguments, decided, reason))
    }

    /// Ends the call before the tool has run: records that, reports it, and replies.
    fn denied(&self, arguments: &Value, decided: &Decided, reason: String) -> Reply {
        self.report(arguments, decided, &reason);
        self.denial(reason)
    }

    /// A decision that cannot be recorded is a no.
    fn deny_unrecorded(&self, reason: &str) -> Next {
        self.warn_unrecorded(reason);
        self.report_result(&Decided::refused(DecidedBy::Audit), UNRECORDED);
        Next::Respond(self.denial(UNRECORDED.to_owned()))
    }

    /// Records a decision that keeps the call from running, and emits it.
    fn report(&self, arguments: &Value, decided: &Decided, reason: &str) {
        if let Err(reason) = self.record(decided, arguments) {
            // It does not run in any case.
            self.warn_unrecorded(&reason);
        }
        self.report_result(decided, reason);
    }

    fn warn_unrecorded(&self, reason: &str) {
        let tool = self.tool.name();
        self.host.warn(&format!("the decision about a call of '{tool}' could not be recorded: {reason}"));
    }

    fn record(&self, decided: &Decided, arguments: &Value) -> Result<(), String> {
        if !self.permissions.is_audited() {
            return Ok(());
        }
        let redaction = self.tool.redaction();
        let shown = redaction.arguments(arguments);
        let path = self.call.path();
        self.host.record(&AuditRecord {
            time: self.host.now(),
            call: &self.call.id,
            tool: self.tool.name(),
            arguments_hash: AuditRecord::hash_of(arguments, &redaction),
            arguments: Some(&shown),
            caller: self.caller(),
            session: self.session(),
            path: &path,
            rule: decided.rule.as_ref().map(|rule| rule.id()),
            decision: decided.decision,
            shadow: decided.shadow,
            answered_by: decided.by.as_ref().map(DecidedBy::as_str),
            answer: decided.answer,
            outcome: Some(decided.ruling),
        })
    }

    fn report_result(&self, decided: &Decided, reason: &str) {
        if self.host.wants(EventKind::PermissionResult) {
            self.host.emit(EventKind::PermissionResult, decided.to_value(reason));
        }
    }

    fn report_request(&self, arguments: &CheckedArguments, verdict: &Verdict, pending: Option<&Pending>) {
        if self.host.wants(EventKind::PermissionRequest) {
            let data = json!({
                "arguments": self.tool.redaction().arguments(&arguments.whole),
                "rule": verdict.rule().map(|rule| rule.id()),
                "reason": verdict.reason(),
                "kind": self.tool.kind().as_str(),
                "pending": pending.map(|pending| json!({"id": pending.id()})),
            });
            self.host.emit(EventKind::PermissionRequest, data);
        }
    }
}

/// The reason for the model why a rule denies a call; a rule without one keeps it to itself.
fn denial_reason(verdict: &Verdict) -> String {
    match &verdict.cause {
        Cause::Rule(rule) => rule.reason().unwrap_or_default().to_owned(),
        Cause::Permission | Cause::Default => verdict.reason().into_owned(),
    }
}

/// True if a redacted value hides something.
fn shows_hidden(shown: &Value) -> bool {
    match shown {
        Value::String(text) => text == HIDDEN,
        Value::Array(items) => items.iter().any(shows_hidden),
        Value::Object(entries) => entries.values().any(shows_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
