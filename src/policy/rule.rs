//! A rule: which calls it is about, and what it makes of them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::condition::{Condition, Reach};
use super::matcher::Names;
use super::pattern::{ArgumentsPattern, Texts};
use super::question::Answers;
use super::read::{self, Fault};
use super::{CallFacts, Cause, Decision, Kind, Tier};
use crate::{Error, Result};

/// The highest priority in a tier.
pub const MAX_PRIORITY: u16 = 999;

/// A rule of a policy. It is made by [`Rule::from_value`], and never changes.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) id: Arc<str>,
    pub(super) tier: Tier,
    pub(super) priority: u16,
    pub(super) decision: Decision,
    pub(super) reason: Option<Box<str>>,
    pub(super) is_shadow: bool,
    pub(super) answers: Option<Answers>,
    pub(super) tool: Option<Names>,
    pub(super) server: Option<Names>,
    pub(super) group: Option<Names>,
    pub(super) tag: Option<Names>,
    pub(super) caller: Option<Names>,
    pub(super) kind: Option<Box<[Kind]>>,
    pub(super) arguments: Box<[Condition]>,
    pub(super) pattern: Option<ArgumentsPattern>,
    pub(super) origin: Option<Origin>,
    /// What it was made from.
    pub(super) fields: Map<String, Value>,
}

/// Where a rule was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: Arc<str>,
    /// The line that the rule begins in, from 1; zero if it was written there and not read yet.
    pub line: usize,
    /// Which rule of the file it is, from 1; zero likewise, and for one that stands for a whole file.
    pub index: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.file),
            line => write!(formatter, "{}:{line}", self.file),
        }
    }
}

/// The conditions of a rule that do not look at arguments, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Tool,
    Server,
    Group,
    Tag,
    Kind,
    Caller,
}

/// The conditions of a rule that look at arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentField {
    Condition(usize),
    Pattern,
}

impl Rule {
    /// Makes a rule from its fields, as they stand in a file; `tier` may be among them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRule`] with everything that is wrong with it.
    pub fn from_value(value: &Value) -> Result<Self> {
        let Value::Object(fields) = value else {
            let fault = Fault::whole("a rule is a table of its fields");
            return Err(invalid("", &[fault]));
        };
        let reading = read::rule(fields, true);
        reading.rule.map_err(|faults| invalid(&reading.partial.id.unwrap_or_default(), &faults))
    }

    /// The fields that it was made from, with its id and tier.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        if !self.id.is_empty() {
            fields.insert("id".to_owned(), (*self.id).into());
        }
        fields.insert("tier".to_owned(), self.tier.as_str().into());
        for (key, value) in &self.fields {
            fields.entry(key).or_insert_with(|| value.clone());
        }
        Value::Object(fields)
    }

    /// Its name, unique in its policy; empty as long as it is in none and none was given.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whose rule it is.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Which rules of its tier it goes before; the higher go first.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.priority
    }

    /// What it makes of the calls that it is about.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Why, in words for the model and for whoever is asked.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether it only tells what it would do.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// Whether it is somebody's lasting yes: it counts only where somebody would be asked, and never against a rule that
    /// denies.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.answers.is_some()
    }

    /// Whether it is an answer to what a cause asks. Those of a weaker tier are none.
    pub(super) fn answers(&self, cause: &Cause) -> bool {
        cause.rule().is_none_or(|rule| rule.tier <= self.tier) && self.answers.is_some_and(|it| it.fit(cause))
    }

    /// The file and line that it comes from, if it was in a file.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Whether it looks at arguments.
    #[must_use]
    pub fn needs_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.pattern.is_some()
    }

    /// Whether it is about a call.
    #[must_use]
    pub fn matches(&self, subject: &CallFacts<'_>, arguments: &Value) -> bool {
        self.misfit(subject).is_none() && self.misfit_of_arguments(arguments, &mut Texts::default()).is_none()
    }

    /// The first condition that a call does not fulfil, its arguments aside.
    pub(super) fn misfit(&self, subject: &CallFacts<'_>) -> Option<Field> {
        let fails = |names: &Option<Names>, name: Option<&str>| {
            names.as_ref().is_some_and(|names| !name.is_some_and(|name| names.fit(name)))
        };
        let fails_all =
            |names: &Option<Names>, given: &[&str]| names.as_ref().is_some_and(|names| !names.fit_any(given));
        match () {
            () if fails(&self.tool, Some(subject.tool)) => Some(Field::Tool),
            () if fails(&self.server, subject.server) => Some(Field::Server),
            () if fails_all(&self.group, subject.groups) => Some(Field::Group),
            () if fails_all(&self.tag, subject.tags) => Some(Field::Tag),
            () if self.kind.as_ref().is_some_and(|kinds| !kinds.contains(&subject.kind)) => Some(Field::Kind),
            () if self.caller.as_ref().is_some_and(|names| !names.fit_caller(subject.caller)) => Some(Field::Caller),
            () => None,
        }
    }

    /// The first condition that arguments do not fulfil.
    pub(super) fn misfit_of_arguments(&self, arguments: &Value, texts: &mut Texts) -> Option<ArgumentField> {
        let reach = self.reach();
        if let Some(at) = self.arguments.iter().position(|condition| !condition.holds(arguments, reach)) {
            return Some(ArgumentField::Condition(at));
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(arguments, texts) => Some(ArgumentField::Pattern),
            _ => None,
        }
    }

    /// What opens is read narrowly, what closes is read widely.
    fn reach(&self) -> Reach {
        match self.decision {
            Decision::Allow => Reach::All,
            Decision::Ask | Decision::Deny => Reach::Any,
        }
    }
}

/// The error for a rule with these faults.
pub(super) fn invalid(id: &str, faults: &[Fault]) -> Error {
    let reason = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Error::InvalidRule { rule: id.to_owned(), reason }
}
