//! The permission stage: decides whether a call runs, is asked about, waits for an answer, or is denied.
//!
//! Nothing here waits or does I/O of its own. A driver reports what happened (arguments, an answer, a resumption) and is told
//! what to do [`Next`]; what has to be done on the way, such as writing the audit, it does as a [`Host`].
//!
//! [`PermissionStage::route`] is the one decision tree. A call follows it with [`PermissionStage::decide`], a dry run only looks at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{EventKind, Reply};
use crate::policy::{
    AllowCache, Answer, ApprovalDraft, ApprovalScope, Approvals, AuditRecord, CallFacts, Cause, Choice, Decision,
    Grants, Pending, Policy, PolicyStamp, Question, Quick, Redaction, Rule, Ruling, Ticket, ToolKind, Verdict,
};
use crate::schema::check::HIDDEN;
use crate::{Error, Result};

/// The rules where no policy is set.
static NO_RULES: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);

const HEADLESS: &str = "it would need somebody's approval, and nobody can be asked here";
const DECLINED: &str = "whoever was asked did not agree";
const CANCELLED: &str = "everything that waited was cancelled";
const REPLACED: &str = "it is another tool by now than the one that was approved";
const UNRECORDED: &str = "the decision about it could not be recorded";

/// One call, as all of its layers and everything that is recorded of it know it.
#[derive(Debug)]
pub struct CallInfo {
    /// The id that the model gave the call, or one that was made up.
    pub id: String,
    /// The tool that the request names, if it names one.
    pub tool: Option<String>,
    /// The caller, if one is named.
    pub caller: Option<Arc<str>>,
    /// The pending call that this one resumes.
    pub resumption: Option<Resumption>,
}

impl CallInfo {
    /// How much is kept of a name or an id that a model made up, in characters.
    const LONGEST_NAME: usize = 256;

    /// The call of a request.
    #[must_use]
    pub fn new(id: &str, tool: Option<&str>, caller: Option<Arc<str>>) -> Self {
        let short = |text: &str| text.chars().take(Self::LONGEST_NAME).collect();
        Self { id: short(id), tool: tool.map(short), caller, resumption: None }
    }

    /// The call that resumes a pending one.
    #[must_use]
    pub fn resuming(pending: Pending, answer: Answer, caller: Option<Arc<str>>) -> Self {
        let (id, tool) = (pending.id.clone(), Some(pending.tool.clone()));
        Self { id, tool, caller, resumption: Some(Resumption::new(pending, answer)) }
    }

    /// True if an answer that was given before lets a tool run.
    #[must_use]
    pub fn is_approved(&self, tool: &str) -> bool {
        self.resumption.as_ref().is_some_and(|resumption| resumption.is_for(tool))
    }
}

/// A pending call and the answer to it.
#[derive(Debug)]
pub struct Resumption {
    pending: Pending,
    answer: Answer,
    stage: AtomicU8,
}

/// The stages of a resumption.
const FRESH: u8 = 0;
const CLAIMED: u8 = 1;
const USED: u8 = 2;

impl Resumption {
    /// A resumption that has not begun.
    #[must_use]
    pub fn new(pending: Pending, answer: Answer) -> Self {
        Self { pending, answer, stage: AtomicU8::new(FRESH) }
    }

    /// The pending call.
    #[must_use]
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// The answer to it.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// True if the pending call is not used up yet.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == FRESH
    }

    /// True if this is what lets a tool run.
    #[must_use]
    pub fn is_for(&self, tool: &str) -> bool {
        self.stage.load(Ordering::Relaxed) == CLAIMED && self.pending.tool == tool
    }

    fn advance(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Arguments that a decision is about: a copy that is checked and that nothing can change any more.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedArguments {
    /// What was sent, as far as it was coerced to fit: what runs.
    pub sent: Value,
    /// The same with the defaults of parameters that were not sent: what rules and approvers see.
    pub whole: Value,
}

/// The reason why arguments cannot be decided about.
#[derive(Debug, Clone, PartialEq)]
pub enum Unfit {
    /// They do not fit the schema.
    Refused(Reply),
    /// JSON cannot hold them, so that a rule could not see what it is there to deny.
    Unwritable(String),
}

impl Unfit {
    fn reason(self) -> String {
        match self {
            Self::Refused(reply) => reply.text(),
            Self::Unwritable(reason) => reason,
        }
    }
}

/// A tool as the permission stage sees it.
pub trait ToolFacts {
    /// The tool's name.
    fn name(&self) -> &str;

    /// What the tool does to the world.
    fn kind(&self) -> ToolKind;

    /// The description that the model is shown.
    fn description(&self) -> Option<String>;

    /// Shows the facts that rules look at.
    fn with_facts<T>(&self, caller: Option<&str>, look: impl FnOnce(&CallFacts<'_>) -> T) -> T;

    /// The hash of the schema.
    fn schema_hash(&self) -> [u8; 32];

    /// The hash of the presets, which no others have, so that an approval is not good for those.
    fn presets_hash(&self) -> [u8; 32];

    /// The secrets of the tool.
    fn redaction(&self) -> Redaction<'_>;
}

/// The state of a tool after an approver was asked about a call of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The call still goes to the same tool.
    Same,
    /// Another tool has the name.
    Replaced,
    /// The call is not admitted any more.
    Gone(Reply),
}

/// The surroundings of a call, which do for the permission stage what takes I/O.
pub trait Host {
    /// A mistake of the developer, which ends the call.
    type Error: From<Error>;

    /// The time.
    fn now(&self) -> Timestamp;

    /// 128 random bits.
    ///
    /// # Errors
    ///
    /// If the system has none.
    fn nonce(&self) -> Result<[u8; 16], Self::Error>;

    /// True if there is an approver to ask.
    fn has_approver(&self) -> bool;

    /// The approvals that make a call pending, and how long an answer counts.
    ///
    /// # Errors
    ///
    /// If there are none and none can be made.
    fn approvals(&self) -> Result<(Arc<Approvals>, Duration), Self::Error>;

    /// Records a decision before it takes effect; see [`Permissions::set_audited`].
    ///
    /// # Errors
    ///
    /// The reason why it may not be recorded; then the call must not run.
    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String>;

    /// True if there are listeners for events of a kind.
    fn wants(&self, kind: EventKind) -> bool;

    /// Emits an event of the call.
    fn emit(&self, kind: EventKind, data: Value);

    /// Checks arguments that an approver put in place of the model's, as if the model had sent them.
    ///
    /// # Errors
    ///
    /// A mistake of the developer; arguments that do not fit are the inner error.
    fn check(&self, edited: &Map<String, Value>) -> Result<Result<JudgedArguments, Unfit>, Self::Error>;

    /// Completes arguments that were checked before with the defaults of those that were not sent.
    ///
    /// # Errors
    ///
    /// A default that cannot be made.
    fn complete(&self, sent: &Value) -> Result<JudgedArguments, Self::Error>;

    /// Finds the tool of the call again.
    fn find_again(&self) -> Standing;

    /// The policy that a lasting permission is added to; made if there is none.
    fn policy_to_extend(&self) -> Arc<Policy>;

    /// Ends every question that is being asked with the answer `cancel`.
    fn cancel_questions(&self);

    /// Does work that may take a while, such as writing a file.
    fn blocking<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Logs a warning for the developer.
    fn warn(&self, text: &str);
}

/// There are rules.
const RULED: u8 = 1;
/// Decisions are recorded.
const AUDITED: u8 = 2;

/// The rules and grants that the tools of a toolkit share.
#[derive(Debug, Default)]
pub struct Permissions {
    policy: RwLock<Option<Arc<Policy>>>,
    headless: AtomicBool,
    /// What there is anything to do for before each call: `RULED`, `AUDITED`.
    marks: AtomicU8,
    /// How often another policy was put in place.
    epoch: AtomicU64,
    grants: Grants,
}

/// A decision that does not look at the arguments.
#[derive(Debug)]
pub enum Preview {
    /// The call may run, and nothing is recorded.
    Pass,
    /// The call may not run, whatever its arguments are.
    Deny(Verdict),
    /// The arguments have to be known.
    NeedsArguments,
}

impl Permissions {
    /// The policy, if there is one.
    #[must_use]
    pub fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another policy in place.
    pub fn set_policy(&self, policy: Option<Arc<Policy>>) {
        self.mark(RULED, policy.is_some());
        self.epoch.fetch_add(1, Ordering::Relaxed);
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// Tells that decisions are recorded, or not any more.
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

    /// True if nobody can be asked, so that what needs approval is denied at once.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.headless.load(Ordering::Relaxed)
    }

    /// Denies at once what needs approval, or asks again.
    pub fn set_headless(&self, headless: bool) {
        self.headless.store(headless, Ordering::Relaxed);
    }

    /// The grants of this run, and the questions that wait.
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

    fn stamp(&self) -> Option<PolicyStamp> {
        let revision = self.policy.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.revision();
        Some(PolicyStamp::new(self.epoch.load(Ordering::Relaxed), revision))
    }

    /// Decides without looking at the arguments, and remembers in the cache that a tool may run.
    pub fn preview(&self, tool: &impl ToolFacts, caller: Option<&str>, cache: Option<&AllowCache>) -> Preview {
        // Both are read before the rules: a change meanwhile makes the cache miss.
        let (stamp, groups) = (self.stamp(), cache.map(AllowCache::groups));
        let rules = self.policy();
        let rules = rules.as_ref().unwrap_or(&NO_RULES);
        match tool.with_facts(caller, |facts| rules.quick(facts)) {
            Quick::Fixed(verdict) if verdict.decision == Decision::Deny => Preview::Deny(verdict),
            Quick::Fixed(verdict)
                if verdict.decision == Decision::Allow && verdict.shadowed.is_none() && !self.is_audited() =>
            {
                if let (None, Some(stamp), Some(cache), Some(groups)) = (caller, stamp, cache, groups) {
                    cache.allow(stamp, groups);
                }
                Preview::Pass
            }
            Quick::Fixed(_) | Quick::NeedsArguments => Preview::NeedsArguments,
        }
    }

    /// The verdict of the rules.
    pub fn verdict(&self, tool: &impl ToolFacts, caller: Option<&str>, arguments: &Value) -> Verdict {
        let rules = self.policy();
        let rules = rules.as_ref().unwrap_or(&NO_RULES);
        tool.with_facts(caller, |facts| rules.decide(facts, arguments))
    }
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
    /// It needs approval, and nobody can be asked.
    Headless,
}

impl Route {
    /// The word by which a dry run tells it: `run`, `ask`, `pending` or `deny`.
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
    /// The verdict of the rules, if they were looked at.
    pub verdict: Option<Verdict>,
}

impl Outlook {
    /// The outlook of a request that is wrong.
    #[must_use]
    pub fn refused(reply: Reply) -> Self {
        Self { would: "refuse", reply: Some(reply), verdict: None }
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
    /// Nobody can be asked.
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
    /// What the tool does to the world.
    pub kind: ToolKind,
    /// The description that the model is shown.
    pub description: Option<String>,
    /// The id of the call.
    pub call_id: String,
}

/// A question that waits for an answer; the driver keeps it and gives it back with the answer.
#[derive(Debug, Clone)]
pub struct Waiting {
    arguments: JudgedArguments,
    verdict: Verdict,
    ticket: Ticket,
}

/// The next thing for a driver to do.
#[derive(Debug)]
pub enum Next {
    /// Run the tool with these arguments.
    Run(JudgedArguments),
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

    /// The one decision tree: which way a call with these arguments goes, and why. It changes nothing.
    #[must_use]
    pub fn route(&self, arguments: &JudgedArguments) -> (Route, Verdict) {
        let verdict = self.permissions.verdict(self.tool, self.caller(), &arguments.whole);
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
    pub fn decide(&self, arguments: JudgedArguments) -> Result<Next, H::Error> {
        let (route, verdict) = self.route(&arguments);
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

    /// The outcome that a call with these arguments would have. Nothing runs, is asked or recorded.
    #[must_use]
    pub fn outlook(&self, arguments: Result<JudgedArguments, Unfit>) -> Outlook {
        match arguments {
            Ok(arguments) => {
                let (route, verdict) = self.route(&arguments);
                Outlook { would: route.as_str(), reply: None, verdict: Some(verdict) }
            }
            Err(unfit) => match self.permissions.preview(self.tool, self.caller(), None) {
                // What is denied whatever the arguments are is denied with these.
                Preview::Deny(verdict) => Outlook { would: Route::Deny.as_str(), reply: None, verdict: Some(verdict) },
                Preview::Pass | Preview::NeedsArguments => Outlook::refused(match unfit {
                    Unfit::Refused(reply) => reply,
                    Unfit::Unwritable(reason) => Reply::Denied { tool: self.tool.name().to_owned(), reason },
                }),
            },
        }
    }

    /// Ends a call whose arguments cannot be decided about.
    pub fn refuse(&self, unfit: Unfit) -> Reply {
        match unfit {
            Unfit::Refused(reply) => reply,
            Unfit::Unwritable(reason) => {
                let reason = format!("its arguments cannot be judged, because JSON cannot hold them: {reason}");
                self.denied(&Value::Null, &Decided::refused(DecidedBy::Arguments), reason)
            }
        }
    }

    /// Ends a call that a rule denies; the arguments are for the audit only.
    pub fn deny(&self, verdict: &Verdict, arguments: &Value) -> Reply {
        let reason = match &verdict.cause {
            Cause::Rule(rule) => rule.reason().unwrap_or_default().to_owned(),
            Cause::Permission | Cause::Default => verdict.reason().into_owned(),
        };
        self.denied(arguments, &Decided::by_rule(verdict), reason)
    }

    /// Goes on after the approver has answered.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn answer(&self, waiting: Waiting, answer: Answer) -> Result<Next, H::Error> {
        let Waiting { arguments, verdict, ticket } = waiting;
        let was_cancelled = self.permissions.grants().is_cancelled(ticket);
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
    /// errors of [`Approvals::claim`].
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
        asked: JudgedArguments,
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
        asked: JudgedArguments,
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
    fn run(&self, arguments: JudgedArguments, decided: &Decided) -> Next {
        match self.record(decided, &arguments.whole) {
            Ok(()) => Next::Run(arguments),
            Err(reason) => self.deny_unrecorded(&reason),
        }
    }

    fn ask(&self, arguments: JudgedArguments, verdict: Verdict) -> Next {
        let ticket = self.permissions.grants().wait();
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
        };
        Next::Ask(Box::new((request, Waiting { arguments, verdict, ticket })))
    }

    /// Ends the call with a value by which it can be resumed.
    fn pend(&self, arguments: &JudgedArguments, verdict: &Verdict) -> Result<Next, H::Error> {
        let (approvals, life) = self.host.approvals()?;
        let draft = ApprovalDraft { id: &self.call.id, arguments: &arguments.sent, scope: self.scope(), life };
        let pending = match approvals.ask(&draft, self.host.now(), self.host.nonce()?) {
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
        ApprovalScope { tool: self.tool.name(), schema_hash, presets_hash, caller: self.caller(), session: None }
    }

    /// Edited arguments as they run; a secret that is still hidden in them is what it was.
    fn check(
        &self,
        edited: &Map<String, Value>,
        asked: &JudgedArguments,
    ) -> Result<Result<JudgedArguments, Unfit>, H::Error> {
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

    fn verdict(&self, arguments: &JudgedArguments) -> Verdict {
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
        let grants = self.permissions.grants();
        !grants.is_empty()
            && grants.allows(self.tool.name(), self.tool.schema_hash(), self.caller(), Question::from(asked))
    }

    /// Keeps what was allowed beyond this call.
    fn remember(&self, choice: Choice, asked: &Verdict) {
        if asked.decision != Decision::Ask {
            return;
        }
        let (tool, caller) = (self.tool.name(), self.caller());
        let grant =
            || self.permissions.grants().allow(tool, self.tool.schema_hash(), caller, Question::from(&asked.cause));
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
        let (tool, caller, policy) = (self.tool.name(), self.caller(), self.host.policy_to_extend());
        self.host.blocking(|| policy.allow_always(tool, caller, asked))
    }

    /// Cancels every call that waits for an answer.
    fn cancel_all(&self) {
        self.permissions.grants().cancel_all();
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
        Reply::Denied { tool: self.tool.name().to_owned(), reason }
    }

    /// A decision that cannot be recorded is a no.
    fn deny_unrecorded(&self, reason: &str) -> Next {
        self.warn_unrecorded(reason);
        self.report_result(&Decided::refused(DecidedBy::Audit), UNRECORDED);
        Next::Respond(Reply::Denied { tool: self.tool.name().to_owned(), reason: UNRECORDED.to_owned() })
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
        self.host.record(&AuditRecord {
            time: self.host.now(),
            call: &self.call.id,
            tool: self.tool.name(),
            arguments_hash: AuditRecord::hash_of(arguments, &redaction),
            arguments: Some(&shown),
            caller: self.caller(),
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

    fn report_request(&self, arguments: &JudgedArguments, verdict: &Verdict, pending: Option<&Pending>) {
        if self.host.wants(EventKind::PermissionRequest) {
            let data = json!({
                "arguments": self.tool.redaction().arguments(&arguments.whole),
                "rule": verdict.rule().map(|rule| rule.id()),
                "reason": verdict.reason(),
                "kind": self.tool.kind().as_str(),
                "pending": pending.map(|pending| json!({"id": pending.id})),
            });
            self.host.emit(EventKind::PermissionRequest, data);
        }
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
