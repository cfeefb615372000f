//! The rules and grants that the tools of a toolkit share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use serde_json::Value;

use super::ToolFacts;
use crate::policy::{AllowCache, Decision, Grants, Policy, PolicyStamp, Quick, Verdict};

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

    fn stamp(&self) -> Option<PolicyStamp> {
        let revision = self.policy.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.revision();
        Some(PolicyStamp::new(self.epoch.load(Ordering::Relaxed), revision))
    }

    /// Decides without looking at the arguments, and remembers in the cache that a tool may run.
    pub fn preview(&self, tool: &impl ToolFacts, caller: Option<&str>, cache: Option<&AllowCache>) -> Preview {
        // Both are read before the rules: a change meanwhile makes the cache miss.
        let (stamp, groups) = (self.stamp(), cache.map(AllowCache::groups));
        let quick = match self.policy() {
            Some(rules) => tool.with_facts(caller, |facts| rules.quick(facts)),
            None => tool.with_facts(caller, |facts| NO_RULES.quick(&facts.without_policy())),
        };
        match quick {
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
        match self.policy() {
            Some(rules) => tool.with_facts(caller, |facts| rules.decide(facts, arguments)),
            None => tool.with_facts(caller, |facts| NO_RULES.decide(&facts.without_policy(), arguments)),
        }
    }
}
