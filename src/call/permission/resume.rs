//! Calls that end with a pending value, and the calls that resume them; and arguments that an approver edited.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Map, Number, Value};

use super::deferred::PendingCall;
use super::{CheckedArguments, Decided, DecidedBy, Deferred, Host, Next, PermissionStage, ToolFacts, Unfit};
use crate::Error;
use crate::json::number::is_integer_text;
use crate::policy::{Answer, ApprovalDraft, ApprovalScope, Choice, Pending, Verdict, claimed};

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

impl<T: ToolFacts, H: Host> PermissionStage<'_, T, H> {
    /// Ends the call with a value by which it can be resumed.
    pub(super) fn pend(&self, arguments: CheckedArguments, verdict: Verdict) -> Result<Next, H::Error> {
        let (approvals, life) = self.host.approvals()?;
        let draft = ApprovalDraft { call_id: &self.call.id, arguments: &arguments.sent, scope: self.scope(), life };
        let (now, nonce) = (self.host.now(), self.host.nonce()?);
        match self.host.blocking(|| approvals.begin_ask(&draft, now, nonce)) {
            Ok((pending, keep)) => self.keep(Box::new(PendingCall { arguments, verdict, pending }), keep),
            // The model sent arguments that cannot be kept.
            Err(Error::InvalidPending { expected, .. }) => {
                let decided = Decided { by: Some(DecidedBy::Arguments), ..Decided::by_rule(&verdict) };
                let reason =
                    format!("it needs approval, and its arguments cannot be kept until then: they must be {expected}");
                Ok(self.turn_down(&arguments.whole, decided, reason))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn scope(&self) -> ApprovalScope<'_> {
        let (schema_hash, presets_hash) = (self.tool.schema_hash(), self.tool.presets_hash());
        let (caller, session) = (self.caller(), self.session());
        ApprovalScope { tool: self.tool.name(), schema_hash, presets_hash, caller, session }
    }

    /// Edited arguments as they run. One that the approver left as it was shown is the one that was sent, or the default, because what is
    /// shown may hide a secret or write a value in another form.
    pub(super) fn check(
        &self,
        edited: &Map<String, Value>,
        asked: &CheckedArguments,
    ) -> Result<Result<CheckedArguments, Unfit>, H::Error> {
        let shown = self.tool.redaction().arguments(&asked.whole);
        let mut as_sent = Map::new();
        for (name, value) in edited {
            let is_left = shown.get(name).is_some_and(|shown| is_unedited(value, shown));
            match asked.sent.get(name) {
                Some(sent) if is_left => _ = as_sent.insert(name.clone(), sent.clone()),
                None if is_left => {}
                _ => _ = as_sent.insert(name.clone(), value.clone()),
            }
        }
        self.host.check(&as_sent)
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
        if let Some(write) = self.host.blocking(|| approvals.begin_claim(pending, &scope, now))? {
            match self.host.begin(write) {
                Some(result) => claimed(pending, result)?,
                None => return Ok(Some(Next::Wait(Box::new(Deferred::Claimed(asked))))),
            }
        }
        self.follow_claim(asked, resumption)
    }

    /// Goes on with a pending call that is used up now.
    pub(super) fn follow_claim(
        &self,
        asked: CheckedArguments,
        resumption: &Resumption,
    ) -> Result<Option<Next>, H::Error> {
        let answer = &resumption.answer;
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

    /// Goes on with the arguments that were approved, whatever middleware made of the request on its way.
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, which end the call.
    pub fn resume(&self, resumption: &Resumption) -> Result<Next, H::Error> {
        if !resumption.advance(CLAIMED, USED) {
            return Ok(self.used_up());
        }
        let asked = self.host.complete(&resumption.pending.arguments)?;
        let verdict = self.verdict(&asked);
        let by = resumption.answer.by.clone().map_or(DecidedBy::Resume, DecidedBy::Named);
        let decided = Decided::answered(&verdict, resumption.answer.choice, by);
        self.run_approved(asked, &verdict, &resumption.answer, decided)
    }

    /// The end of a call whose approval was used before.
    #[must_use]
    pub fn used_up(&self) -> Next {
        Next::Respond(self.denial("the approval was used before".to_owned()))
    }
}

/// True if a value that an approver returned is the one that was shown. A number with a fraction may have lost digits on its way, as a
/// float of the approver's language.
fn is_unedited(value: &Value, shown: &Value) -> bool {
    match (value, shown) {
        (Value::Number(value), Value::Number(shown)) => {
            let is_fraction = |number: &Number| !is_integer_text(number.as_str());
            value == shown || (is_fraction(value) && is_fraction(shown) && value.as_f64() == shown.as_f64())
        }
        (Value::Array(values), Value::Array(shown)) => {
            values.len() == shown.len() && values.iter().zip(shown).all(|(value, shown)| is_unedited(value, shown))
        }
        (Value::Object(entries), Value::Object(shown)) => {
            let is_left = |(name, value): (&String, &Value)| shown.get(name).is_some_and(|it| is_unedited(value, it));
            entries.len() == shown.len() && entries.iter().all(is_left)
        }
        (value, shown) => value == shown,
    }
}
