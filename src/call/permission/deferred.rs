//! Decisions that wait for a write: what is stored takes effect only when it is durable.

use super::{
    CheckedArguments, Decided, DecidedBy, Host, Next, PermissionStage, REPLACED, Route, Standing, ToolFacts, UNRECORDED,
};
use crate::Result;
use crate::call::Reply;
use crate::policy::{Choice, Pending, Verdict, claimed, unkept};
use crate::store::Write;

/// A decision that waits for a write. The driver keeps it, and gives it back with the result.
#[derive(Debug)]
pub enum Deferred {
    /// The decision was recorded.
    Recorded(Recorded),
    /// The call was kept, so that it can be pending.
    Kept(Box<PendingCall>),
    /// The pending call of a resumption was used up; its arguments.
    Claimed(CheckedArguments),
    /// The tool was allowed for always; the arguments of the call, its verdict, and the decision about it.
    Allowed(CheckedArguments, Verdict, Decided),
}

/// A decision that takes effect when it is recorded.
#[derive(Debug)]
pub enum Recorded {
    /// The call runs.
    Run(CheckedArguments),
    /// The call runs because an approver said so.
    Approved(CheckedArguments, Verdict, Choice, Decided),
    /// The call ends, for this reason and with this reply, also if that cannot be recorded.
    End(Decided, String, Reply),
    /// The call is pending.
    Pending(Box<PendingCall>),
}

/// A call that is about to be pending.
#[derive(Debug)]
pub struct PendingCall {
    pub(super) arguments: CheckedArguments,
    pub(super) verdict: Verdict,
    pub(super) pending: Pending,
}

impl<T: ToolFacts, H: Host> PermissionStage<'_, T, H> {
    /// Goes on after a write. `None` if it was the claim of a resumed call, which now goes on to [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// Mistakes of the developer, and those of [`claim`](Self::claim).
    pub fn written(&self, deferred: Deferred, result: Result<bool>) -> Result<Option<Next>, H::Error> {
        if result.is_ok()
            && let Some(changed) = self.recheck(&deferred)?
        {
            return Ok(Some(changed));
        }
        match deferred {
            Deferred::Recorded(recorded) => {
                Ok(Some(self.recorded(recorded, result.map(drop).map_err(|error| error.to_string()))))
            }
            Deferred::Kept(call) => self.kept(call, result).map(Some),
            Deferred::Claimed(asked) => self.claimed(asked, result),
            Deferred::Allowed(arguments, verdict, decided) => {
                self.note_allowed(&verdict, result);
                Ok(Some(self.run_decided(arguments, &decided)))
            }
        }
    }

    /// The way of a call that may not run any more: the tools and rules may have changed while it waited.
    fn recheck(&self, deferred: &Deferred) -> Result<Option<Next>, H::Error> {
        let (arguments, was_asked) = match deferred {
            Deferred::Recorded(Recorded::Run(arguments)) => (arguments, false),
            Deferred::Recorded(Recorded::Approved(arguments, ..)) | Deferred::Allowed(arguments, ..) => {
                (arguments, true)
            }
            Deferred::Recorded(Recorded::End(..) | Recorded::Pending(_)) | Deferred::Kept(_) | Deferred::Claimed(_) => {
                return Ok(None);
            }
        };
        let (route, verdict) = self.route(arguments);
        let decided = Decided::by_rule(&verdict).denied();
        match self.host.find_again() {
            Standing::Same => {}
            Standing::Replaced => return Ok(Some(self.turn_down(&arguments.whole, decided, REPLACED.to_owned()))),
            Standing::Gone(reply) => return Ok(Some(self.end(&arguments.whole, decided, reply.text(), reply))),
        }
        match route {
            Route::Run { .. } => Ok(None),
            Route::Ask | Route::Pend | Route::Headless if was_asked => Ok(None),
            route => self.take(route, verdict, arguments.clone()).map(Some),
        }
    }

    /// Does what a decision says, once it is recorded.
    pub(super) fn after_record(&self, then: Recorded, result: Option<Result<(), String>>) -> Next {
        match result {
            Some(result) => self.recorded(then, result),
            None => Next::Wait(Box::new(Deferred::Recorded(then))),
        }
    }

    fn recorded(&self, then: Recorded, result: Result<(), String>) -> Next {
        match (then, result) {
            (Recorded::End(decided, reason, reply), result) => {
                if let Err(unrecorded) = result {
                    // It does not run in any case.
                    self.warn_unrecorded(&unrecorded);
                }
                self.report_result(&decided, &reason);
                Next::Respond(reply)
            }
            (_, Err(reason)) => self.deny_unrecorded(&reason),
            (Recorded::Run(arguments), Ok(())) => Next::Run(arguments),
            (Recorded::Approved(arguments, verdict, choice, decided), Ok(())) => {
                self.remember_then_run(arguments, verdict, choice, decided)
            }
            (Recorded::Pending(call), Ok(())) => {
                let PendingCall { arguments, verdict, pending } = *call;
                self.report_request(&arguments, &verdict, Some(&pending));
                Next::Pend(Box::new(pending))
            }
        }
    }

    /// Keeps a call that is about to be pending.
    pub(super) fn keep(&self, call: Box<PendingCall>, write: Option<Write>) -> Result<Next, H::Error> {
        match write.map_or(Some(Ok(true)), |write| self.host.begin(write)) {
            Some(result) => self.kept(call, result),
            None => Ok(Next::Wait(Box::new(Deferred::Kept(call)))),
        }
    }

    fn kept(&self, call: Box<PendingCall>, result: Result<bool>) -> Result<Next, H::Error> {
        result.map_err(|error| unkept(&call.pending, &error))?;
        let result = self.record(&Decided::pending(&call.verdict), &call.arguments.whole);
        Ok(self.after_record(Recorded::Pending(call), result))
    }

    /// Goes on with a resumed call whose pending value is used up now.
    fn claimed(&self, asked: CheckedArguments, result: Result<bool>) -> Result<Option<Next>, H::Error> {
        let Some(resumption) = &self.call.resumption else { return Ok(None) };
        claimed(resumption.pending(), result)?;
        self.follow_claim(asked, resumption)
    }

    /// Keeps what was allowed beyond this call, and lets it run.
    fn remember_then_run(
        &self,
        arguments: CheckedArguments,
        verdict: Verdict,
        choice: Choice,
        decided: Decided,
    ) -> Next {
        match self.remember(choice, &verdict) {
            Some(result) => self.note_allowed(&verdict, result),
            None => return Next::Wait(Box::new(Deferred::Allowed(arguments, verdict, decided))),
        }
        self.run_decided(arguments, &decided)
    }

    fn run_decided(&self, arguments: CheckedArguments, decided: &Decided) -> Next {
        self.report_result(decided, "");
        Next::Run(arguments)
    }

    /// A decision that cannot be recorded is a no.
    fn deny_unrecorded(&self, reason: &str) -> Next {
        self.warn_unrecorded(reason);
        self.report_result(&Decided::refused(DecidedBy::Audit), UNRECORDED);
        Next::Respond(self.denial(UNRECORDED.to_owned()))
    }

    fn warn_unrecorded(&self, reason: &str) {
        let tool = self.tool.name();
        self.host.warn(&format!("the decision about a call of '{tool}' could not be recorded: {reason}"));
    }
}
