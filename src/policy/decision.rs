//! What is decided about a call, and by what.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{Permission, Rule};

/// What happens with a call; the later one is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// It runs.
    Allow,
    /// Somebody has to agree first.
    Ask,
    /// It does not run.
    Deny,
}

impl Decision {
    /// Every decision, from the mildest to the strictest.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// What it comes to where nobody can be asked: silence is never consent.
    #[must_use]
    pub const fn headless(self) -> Self {
        match self {
            Self::Allow => Self::Allow,
            Self::Ask | Self::Deny => Self::Deny,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a decision comes from.
#[derive(Debug, Clone)]
pub enum Cause {
    /// A rule of the policy.
    Rule(Arc<Rule>),
    /// The tool asks by itself, and no rule says otherwise.
    Permission,
    /// What the policy does where no rule says anything.
    Default,
}

/// What is decided about a call.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What happens with the call.
    pub decision: Decision,
    /// What that comes from.
    pub cause: Cause,
    /// What rules in shadow mode would have made of it, if that is something else.
    pub shadowed: Option<Arc<Shadowed>>,
}

/// What would have been decided if nothing were in shadow mode.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// What would have happened with the call.
    pub decision: Decision,
    /// What that would have come from.
    pub cause: Cause,
}

/// What can be decided without looking at the arguments.
#[derive(Debug, Clone)]
pub enum Quick {
    /// All of it.
    Fixed(Verdict),
    /// A rule in question has a condition on the arguments.
    NeedsArguments,
}

impl Cause {
    /// The rule, if it was one.
    #[must_use]
    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Permission | Self::Default => None,
        }
    }

    /// A word for people and logs: the id of the rule, `permission` or `default`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.id(),
            Self::Permission => "permission",
            Self::Default => "default",
        }
    }

    fn reason(&self, decision: Decision) -> Cow<'_, str> {
        match (self, decision) {
            (Self::Rule(rule), _) if rule.reason().is_some() => rule.reason().unwrap_or_default().into(),
            (Self::Rule(rule), Decision::Allow) => format!("rule `{}` allows it", rule.id()).into(),
            (Self::Rule(rule), Decision::Ask) => format!("rule `{}` asks for approval", rule.id()).into(),
            (Self::Rule(rule), Decision::Deny) => format!("rule `{}` denies it", rule.id()).into(),
            (Self::Permission, _) => "the tool asks for confirmation".into(),
            (Self::Default, Decision::Allow) => "no rule is against it".into(),
            (Self::Default, Decision::Ask) => "no rule allows it without approval".into(),
            (Self::Default, Decision::Deny) => "no rule allows it".into(),
        }
    }
}

impl Verdict {
    /// The rule that decided, if one did.
    #[must_use]
    pub fn rule(&self) -> Option<&Arc<Rule>> {
        self.cause.rule()
    }

    /// Why, in the rule's own words if it has some.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        self.cause.reason(self.decision)
    }

    /// What holds where no rule does: the stricter of what the tool asks for and what the policy does by default.
    pub(super) fn without_rule(permission: Permission, default: Decision) -> Self {
        let (decision, cause) = match permission {
            Permission::Confirm if default <= Decision::Ask => (Decision::Ask, Cause::Permission),
            Permission::Confirm | Permission::Auto => (default, Cause::Default),
        };
        Self { decision, cause, shadowed: None }
    }

    pub(super) fn of_rule(rule: &Arc<Rule>) -> Self {
        Self { decision: rule.decision(), cause: Cause::Rule(rule.clone()), shadowed: None }
    }
}

impl Shadowed {
    /// Why, in the rule's own words if it has some.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        self.cause.reason(self.decision)
    }
}
