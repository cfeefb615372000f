//! The permission stage: decides whether a call runs, is asked about, waits for an answer, or is denied.
//!
//! Nothing here waits or does I/O of its own. A driver reports an event (arguments, an answer, a resumption) and gets the
//! [`Next`] thing to do; the I/O on the way, such as writing the audit, is done by the driver's [`Host`].
//!
//! Read this file first: [`Permissions`] are the rules and grants that the tools of a toolkit share, and
//! [`PermissionStage::route`] is the one decision tree. A call follows it with [`PermissionStage::decide`], a dry run only
//! reads it. `identity` is the call that a decision is about, `outcome` the results as data, `host` the interface of a driver,
//! `deferred` the decisions that wait until they are stored, `resume` the calls that end with a pending value and go on later.

mod deferred;
mod host;
mod identity;
mod outcome;
mod resume;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use serde_json::{Value, json};

use super::path::Clearance;
use super::{EventKind, Reply};
use crate::Result;
use crate::policy::{
    AllowCache, Answer, AuditRecord, Cause, Choice, Decision, Grants, Pending, Policy, PolicyStamp, Question, Quick,
    Rule, Ruling, Verdict,
};
use crate::store::Write;

pub use deferred::Deferred;
use deferred::Recorded;
pub use host::{Host, Standing, ToolFacts};
pub use identity::{CallInfo, CheckedArguments, Unfit};
pub use outcome::{ApprovalRequest, DecidedBy, Next, Outlook, Route, Waiting};
pub use resume::Resumption;

/// The rules where no policy is set.
static NO_RULES: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);

/// There are rules.
const RULED: u8 = 1;
/// Decisions are recorded.
const AUDITED: u8 = 2;

/// The rules and grants that the tools of a toolkit share.
#[derive(Debug, Default)]
pub struct Permissions {
    policy: RwLock<Option<Arc<Policy>>>,
    headless: AtomicBool,
    /// The reasons to do more than nothing before each call: `RULED`, `AUDITED`.
    marks: AtomicU8,
    /// The number of times that another policy was set.
    epoch: AtomicU64,
    grants: Grants,
}

impl Permissions {
    /// The policy, if there is one.
    #[must_use]
    pub fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the policy.
    pub fn set_policy(&self, policy: Option<Arc<Policy>>) {
        self.mark(RULED, policy.is_some());
        self.epoch.fetch_add(1, Ordering::Relaxed);
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// Sets if decisions are recorded.
    pub fn set_audited(&self, audited: bool) {
        self.mark(AUDITED, audited);
    }

    fn mark(&self, mark: u8, set: bool) {
        if set {
            self.marks.fetch_or(mark, Ordering::Relaxed);
        } else {
            self.marks.fetch_and(!mark, Ordering::Relaxed);
        }
    }

    /// True if no approver can be asked, so that calls that need approval are denied at once.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.headless.load(Ordering::Relaxed)
    }

    /// Sets if calls that need approval are denied at once.
    pub fn set_headless(&self, headless: bool) {
        self.headless.store(headless, Ordering::Relaxed);
    }

    /// The grants of this run, and the questions that wait, of calls outside of sessions.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// True if there are rules.
    #[must_use]
    pub fn is_ruled(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & RULED != 0
    }

    /// True if decisions are recorded.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & AUDITED != 0
    }

    /// True if it is certain that a tool may run, without a look at the rules. `asks` is true for a tool that wants to be
    /// confirmed, and `may_name_caller` for a call that may have a caller.
    #[inline]
    #[must_use]
    pub fn lets_pass(&self, asks: bool, cache: &AllowCache, may_name_caller: bool) -> bool {
        match self.marks.load(Ordering::Relaxed) {
            0 => !asks,
            // What is remembered is for a call without a caller.
            RULED if !may_name_caller => self.stamp().is_some_and(|stamp| cache.holds(stamp)),
            _ => false,
        }
    }

    /// The state of the rules; `None` without a policy.
    #[must_use]
    pub fn stamp(&self) -> Option<PolicyStamp> {
        let revision = self.policy.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.revision();
        Some(PolicyStamp::new(self.epoch.load(Ordering::Relaxed), revision))
    }

    /// Decides without looking at the arguments, and remembers in the cache that a tool may run.
    ///
    /// # Errors
    ///
    /// The verdict, if the call may not run whatever its arguments are.
    pub fn preview(
        &self,
        tool: &impl ToolFacts,
        caller: Option<&str>,
        cache: Option<&AllowCache>,
    ) -> Result<Clearance, Verdict> {
        // Both are read before the rules: a change meanwhile makes the cache miss.
        let (stamp, groups) = (self.stamp(), cache.map(AllowCache::groups));
        let quick = match self.policy() {
            Some(rules) => tool.with_facts(caller, |facts| rules.quick(facts)),
            None => tool.with_facts(caller, |facts| NO_RULES.quick(&facts.without_policy())),
        };
        match quick {
            Quick::Fixed(verdict) if verdict.decision == Decision::Deny => Err(verdict),
            Quick::Fixed(verdict)
                if verdict.decision == Decision::Allow && verdict.shadowed.is_none() && !self.is_audited() =>
            {
                if let (None, Some(stamp), Some(cache), Some(groups)) = (caller, stamp, cache, groups) {
                    cache.allow(stamp, groups);
                }
                Ok(Clearance::Pass)
            }
            Quick::Fixed(_) | Quick::NeedsArguments => Ok(Clearance::Decide),
        }
    }

    /// The verdict of the rules.
    pub fn verdict(&self, tool: &impl ToolFacts, caller: Option<&str>, arguments: &Value) -> Verdict {
        match self.policy() {
            Some(rules) => tool.with_facts(caller, |facts| rules.decide(facts, arguments)),
            None => tool.with_facts(caller, |facts| NO_RULES.decide(&facts.without_policy(), arguments)),
        }
    }
}

const HEADLESS: &str = "it needs approval, and no approver is available";
const DECLINED: &str = "the approver declined it";
const CANCELLED: &str = "all pending approvals were cancelled";
const REPLACED: &str = "the tool was replaced after it was approved";
const UNRECORDED: &str = "the decision could not be recorded";

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
        match route {
            Route::Run { granted: false } => Ok(self.run(arguments, &Decided::by_rule(&verdict))),
            Route::Run { granted: true } => {
                let decided = Decided::answered(&verdict, Choice::Run, DecidedBy::Grant);
                Ok(self.run(arguments, &decided))
            }
            Route::Deny => Ok(self.deny(&verdict, &arguments.whole)),
            Route::Headless => {
                let decided = Decided { by: Some(DecidedBy::Headless), ..Decided::by_rule(&verdict) };
                Ok(self.turn_down(&arguments.whole, decided, HEADLESS.to_owned()))
            }
            Route::Ask => Ok(self.ask(arguments, verdict)),
            Route::Pend => self.pend(arguments, verdict),
        }
    }

    /// Ends a call whose arguments cannot be decided about.
    #[must_use]
    pub fn refuse(&self, unfit: Unfit) -> Next {
        match unfit {
            Unfit::Refused(reply) => Next::Respond(reply),
            Unfit::Unwritable(reason) => {
                let reason =
                    format!("its arguments are not valid JSON values, so that no rule can check them: {reason}");
                self.turn_down(&Value::Null, Decided::refused(DecidedBy::Arguments), reason)
            }
        }
    }

    /// Decides without looking at the arguments; see [`Permissions::preview`].
    ///
    /// # Errors
    ///
    /// The verdict, if the call may not run whatever its arguments are.
    pub fn preview(&self, cache: Option<&AllowCache>) -> Result<Clearance, Verdict> {
        self.permissions.preview(self.tool, self.caller(), cache)
    }

    /// Ends a call that a rule denies; the arguments are for the audit only.
    #[must_use]
    pub fn deny(&self, verdict: &Verdict, arguments: &Value) -> Next {
        self.turn_down(arguments, Decided::by_rule(verdict), denial_reason(verdict))
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
        match answer.choice {
            Choice::Cancel => {
                let reply = Reply::Cancelled { tool: self.tool.name().to_owned() };
                Ok(self.end(&asked.whole, decided, CANCELLED.to_owned(), reply))
            }
            Choice::No => {
                let reason = answer.reason.unwrap_or_else(|| DECLINED.to_owned());
                Ok(self.turn_down(&asked.whole, decided, reason))
            }
            Choice::Once | Choice::Run | Choice::Always => match self.host.find_again() {
                Standing::Same => self.run_approved(asked, verdict, &answer, decided),
                Standing::Replaced => Ok(self.turn_down(&asked.whole, decided.denied(), REPLACED.to_owned())),
                Standing::Gone(reply) => Ok(self.end(&asked.whole, decided.denied(), reply.text(), reply)),
            },
        }
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
                    return Ok(self.turn_down(&asked.whole, decided.denied(), reason));
                }
            },
        };
        let now = self.verdict(&arguments);
        if now.decision == Decision::Deny {
            return Ok(self.deny(&now, &arguments.whole));
        }
        let result = self.record(&decided, &arguments.whole);
        Ok(self.after_record(Recorded::Approved(arguments, verdict.clone(), answer.choice, decided), result))
    }

    /// Records the decision, and lets the tool run with the arguments that it is about.
    fn run(&self, arguments: CheckedArguments, decided: &Decided) -> Next {
        let result = self.record(decided, &arguments.whole);
        self.after_record(Recorded::Run(arguments), result)
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

    /// Keeps what was allowed beyond this call; none if that takes a while. False if it is asked each time.
    fn remember(&self, choice: Choice, asked: &Verdict) -> Option<Result<bool>> {
        if asked.decision != Decision::Ask {
            return Some(Ok(true));
        }
        match choice {
            Choice::Once | Choice::No | Choice::Cancel => Some(Ok(true)),
            Choice::Run => {
                self.grant(&asked.cause);
                Some(Ok(true))
            }
            Choice::Always => match self.allow_always(&asked.cause) {
                Ok((true, Some(write))) => self.host.begin(write),
                Ok((is_allowed, _)) => Some(Ok(is_allowed)),
                Err(error) => Some(Err(error)),
            },
        }
    }

    /// Warns if a tool was not allowed for always.
    fn note_allowed(&self, asked: &Verdict, result: Result<bool>) {
        let tool = self.tool.name();
        match result {
            Ok(true) => {}
            Ok(false) => {
                let asks = asked.cause.name();
                self.host.warn(&format!("'{tool}' runs this once, not always: `{asks}` asks each time"));
            }
            Err(error) => {
                // The next run asks again.
                self.grant(&asked.cause);
                self.host.warn(&format!("'{tool}' may run always, but that cannot be saved: {error}"));
            }
        }
    }

    fn grant(&self, asked: &Cause) {
        self.grants().allow(self.tool.name(), self.tool.schema_hash(), self.caller(), Question::from(asked));
    }

    fn allow_always(&self, asked: &Cause) -> Result<(bool, Option<Write>)> {
        let (tool, caller, policy) = (self.tool.name(), self.caller(), self.host.policy_to_extend());
        self.host.blocking(|| policy.begin_allow_always(tool, caller, asked))
    }

    /// Cancels every call that waits for an answer: of the session, or of the toolkit outside of sessions.
    fn cancel_all(&self) {
        self.grants().cancel_all();
        self.host.cancel_questions();
    }

    /// Ends the call before the tool has run, with a denial.
    fn turn_down(&self, arguments: &Value, decided: Decided, reason: String) -> Next {
        let reply = self.denial(reason.clone());
        self.end(arguments, decided, reason, reply)
    }

    /// Ends the call before the tool has run: records that, reports it, and replies.
    fn end(&self, arguments: &Value, decided: Decided, reason: String, reply: Reply) -> Next {
        let result = self.record(&decided, arguments);
        self.after_record(Recorded::End(decided, reason, reply), result)
    }

    /// Records a decision; none if that takes a while.
    fn record(&self, decided: &Decided, arguments: &Value) -> Option<Result<(), String>> {
        if !self.permissions.is_audited() {
            return Some(Ok(()));
        }
        let redaction = self.tool.redaction();
        let shown = redaction.arguments(arguments);
        let path = self.call.path();
        self.host.begin_record(&AuditRecord {
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
    fn by_rule(verdict: &Verdict) -> Self {
        Self {
            decision: verdict.decision,
            rule: verdict.rule().cloned(),
            shadow: verdict.shadowed.as_ref().map(|shadowed| shadowed.decision),
            by: None,
            answer: None,
            ruling: if verdict.decision == Decision::Allow { Ruling::Run } else { Ruling::Denied },
        }
    }

    fn answered(verdict: &Verdict, choice: Choice, by: DecidedBy) -> Self {
        let ruling = match choice {
            Choice::Once | Choice::Run | Choice::Always => Ruling::Run,
            Choice::No => Ruling::Denied,
            Choice::Cancel => Ruling::Cancelled,
        };
        Self { answer: Some(choice), by: Some(by), ruling, ..Self::by_rule(verdict) }
    }

    /// Toolcrib itself denies a call, for want of what a decision needs.
    fn refused(by: DecidedBy) -> Self {
        let (decision, ruling) = (Decision::Deny, Ruling::Denied);
        Self { decision, rule: None, shadow: None, by: Some(by), answer: None, ruling }
    }

    fn denied(self) -> Self {
        Self { ruling: Ruling::Denied, ..self }
    }

    fn pending(verdict: &Verdict) -> Self {
        Self { ruling: Ruling::Pending, ..Self::by_rule(verdict) }
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

/// The reason for the model why a rule denies a call; a rule without one keeps it to itself.
fn denial_reason(verdict: &Verdict) -> String {
    match &verdict.cause {
        Cause::Rule(rule) => rule.reason().unwrap_or_default().to_owned(),
        Cause::Permission | Cause::Default => verdict.reason().into_owned(),
    }
}
