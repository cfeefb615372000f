//! What is wrong with a file of rules, and what is done about it.

use std::fmt;

use super::fault::Fault;
use super::{Rule, Tier};

/// One thing that is wrong with a file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The tier that the file is loaded for.
    pub tier: Tier,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// Which rule of the file, from 1; none if it is about the whole file.
    pub rule: Option<usize>,
    /// The id of the rule, if it has one.
    pub id: Option<String>,
    /// The field of the rule.
    pub field: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub suggestion: Option<String>,
    /// What is done until then.
    pub effect: Effect,
}

/// What is done about a rule or a file that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The rule is left out, which opens nothing.
    LeftOut,
    /// What the rule is about, as far as that could be read, is denied.
    Closed,
    /// Every call is denied, unless a rule of a stronger tier allows it.
    ClosedAll,
    /// The rule is used, under another id.
    Renamed,
}

impl Problem {
    /// A problem of a whole file.
    pub(super) fn of_file(tier: Tier, file: &str, line: Option<usize>, reason: impl Into<String>) -> Self {
        Self {
            tier,
            file: file.to_owned(),
            line,
            rule: None,
            id: None,
            field: None,
            reason: reason.into(),
            suggestion: None,
            effect: Effect::ClosedAll,
        }
    }

    pub(super) fn suggest(self, suggestion: Option<String>) -> Self {
        Self { suggestion, ..self }
    }

    /// The fault of a rule.
    pub(super) fn of_fault(fault: Fault, place: Self) -> Self {
        let field = (!fault.field.is_empty()).then(|| fault.field.join("."));
        Self { field, reason: fault.reason, suggestion: fault.suggestion, ..place }
    }

    /// A rule whose id another one has.
    pub(super) fn taken_id(rule: &Rule, wanted: &str) -> Self {
        let origin = rule.origin.as_ref();
        Self {
            line: origin.map(|origin| origin.line),
            rule: origin.map(|origin| origin.index),
            id: Some(wanted.to_owned()),
            field: Some("id".to_owned()),
            suggestion: Some(format!("it is used as `{}`", rule.id)),
            effect: Effect::Renamed,
            ..Self::of_file(rule.tier, origin.map_or("", |origin| &origin.file), None, "another rule has this id")
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        formatter.write_str(": ")?;
        if let Some(rule) = self.rule {
            write!(formatter, "rule {rule}")?;
            if let Some(id) = &self.id {
                write!(formatter, " (`{id}`)")?;
            }
            formatter.write_str(": ")?;
        }
        if let Some(field) = &self.field {
            write!(formatter, "`{field}`: ")?;
        }
        formatter.write_str(&self.reason)?;
        if let Some(suggestion) = &self.suggestion {
            write!(formatter, " ({suggestion})")?;
        }
        formatter.write_str(match self.effect {
            Effect::LeftOut => "; the rule is left out",
            Effect::Closed => "; what the rule is about is denied",
            Effect::ClosedAll => "; every call is denied, unless a stronger tier allows it",
            Effect::Renamed => "",
        })
    }
}
