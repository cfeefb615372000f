//! Decisions: the facts about a call that rules look at, and the verdict on it.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{Permission, Rule, ToolKind};

string_enum! {
    /// The decision about a call; a later one is stricter.
    #[derive(PartialOrd, Ord)]
    pub enum Decision {
        /// The call runs.
        Allow = "allow",
        /// The call needs an approval.
        Ask = "ask",
        /// The call does not run.
        Deny = "deny",
    }
}

impl Decision {
    /// The decision where there is no approver: silence is never consent.
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

/// The origin of a decision.
#[derive(Debug, Clone)]
pub enum Cause {
    /// A rule of the policy.
    Rule(Arc<Rule>),
    /// The permission that the tool declares, where no rule says otherwise.
    Permission,
    /// The default of the policy, where no rule matches.
    Default,
}

/// The decision about a call, with its origin.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The origin of the decision.
    pub cause: Cause,
    /// The decision without shadow mode, if it differs.
    pub shadowed: Option<Arc<Shadowed>>,
}

/// The decision that would have been taken without shadow mode.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// The decision.
    pub decision: Decision,
    /// The origin of the decision.
    pub cause: Cause,
}

/// A decision without looking at the arguments.
#[derive(Debug, Clone)]
pub enum Quick {
    /// The arguments make no difference.
    Fixed(Verdict),
    /// A rule that may match has a condition on the arguments.
    NeedsArguments,
}

impl Cause {
    /// The rule, if it is one.
    #[must_use]
    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Permission | Self::Default => None,
        }
    }

    /// The name for messages and logs: the id of the rule, `permission` or `default`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.id(),
            Self::Permission => "permission",
            Self::Default => "default",
        }
    }

    /// The word for its kind: `rule`, `permission` or `default`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
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

    /// The reason: the rule's own, if it has one.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        self.cause.reason(self.decision)
    }

    /// The verdict about a call that nothing is against and that its tool wants to be confirmed.
    #[must_use]
    pub fn confirmed(self) -> Self {
        match (self.decision, &self.cause) {
            (Decision::Allow, Cause::Permission | Cause::Default) => {
                Self { decision: Decision::Ask, cause: Cause::Permission, ..self }
            }
            _ => self,
        }
    }
}

impl Shadowed {
    /// The reason: the rule's own, if it has one.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        self.cause.reason(self.decision)
    }
}

/// The facts about a call, apart from its arguments, that rules can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallFacts<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The MCP server that it belongs to, by the name that this program gave it and never by what the server says.
    pub server: Option<&'a str>,
    /// The groups that hold it.
    pub groups: &'a [&'a str],
    /// Its tags.
    pub tags: &'a [&'a str],
    /// The kind of effect that it has.
    pub kind: ToolKind,
    /// The permission that the tool declares.
    pub permission: Permission,
    /// The caller, if one is named.
    pub caller: Option<&'a str>,
}

impl<'a> CallFacts<'a> {
    /// The same facts where no policy is set: a kind then asks for nothing.
    #[must_use]
    pub fn without_policy(&self) -> Self {
        let permission = match self.permission {
            Permission::ByKind => Permission::Auto,
            other => other,
        };
        Self { permission, ..*self }
    }

    /// The facts about a call of a tool of which only the name is known.
    #[must_use]
    pub const fn of(tool: &'a str) -> Self {
        Self {
            tool,
            server: None,
            groups: &[],
            tags: &[],
            kind: ToolKind::Other,
            permission: Permission::Auto,
            caller: None,
        }
    }
}

/// The arguments of a call, which are converted only when a rule looks at them.
///
/// They are the arguments that the tool will run with. Arguments that JSON cannot express must be refused before: a rule that
/// denies could not see what it is there to deny. A call without arguments has `null`.
pub trait Arguments {
    /// The arguments; an object, or `null`.
    fn value(&self) -> &Value;
}

impl Arguments for Value {
    fn value(&self) -> &Value {
        self
    }
}

impl<F: FnOnce() -> Value> Arguments for LazyCell<Value, F> {
    fn value(&self) -> &Value {
        self
    }
}
