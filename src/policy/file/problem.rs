//! Problems in rules and policy files: the reason, the place, and what the policy does about it.

use std::fmt;

use crate::Error;
use crate::policy::{Rule, Tier};

/// A problem in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The tier that the file is loaded for.
    pub tier: Tier,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The number of the rule in the file, from 1; none for the whole file.
    pub rule: Option<usize>,
    /// The id of the rule, if it has one.
    pub id: Option<String>,
    /// The field of the rule.
    pub field: Option<String>,
    /// The reason.
    pub reason: String,
    /// The suggested fix.
    pub suggestion: Option<String>,
    /// The effect on the policy until it is fixed.
    pub effect: Effect,
}

/// The effect of an invalid rule or file on a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The rule is ignored, which allows nothing.
    Ignored,
    /// The calls that the rule matches, as far as it could be parsed, are denied.
    Denied,
    /// Every call is denied, unless a rule of a stronger tier allows it.
    DeniedAll,
    /// The rule is used, under another id.
    Renamed,
}

impl PolicyProblem {
    /// Makes a problem of a whole file.
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
            effect: Effect::DeniedAll,
        }
    }

    pub(super) fn suggest(self, suggestion: Option<String>) -> Self {
        Self { suggestion, ..self }
    }

    /// Makes a problem of a rule's fault; `place` has everything else.
    pub(super) fn of_fault(fault: Fault, place: Self) -> Self {
        let field = (!fault.field.is_empty()).then(|| fault.field.join("."));
        Self { field, reason: fault.reason, suggestion: fault.suggestion, ..place }
    }

    /// Makes the problem of a rule whose id is taken.
    pub(super) fn taken_id(rule: &Rule, wanted: &str) -> Self {
        let origin = rule.origin.as_ref();
        Self {
            line: origin.map(|origin| origin.line),
            rule: origin.map(|origin| origin.index),
            id: Some(wanted.to_owned()),
            field: Some("id".to_owned()),
            suggestion: Some(format!("the rule is used as `{}`", rule.id)),
            effect: Effect::Renamed,
            ..Self::of_file(
                rule.tier,
                origin.map_or("", |origin| &origin.file),
                None,
                "the id is taken by another rule",
            )
        }
    }
}

impl fmt::Display for PolicyProblem {
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
            Effect::Ignored => "; the rule is ignored",
            Effect::Denied => "; calls that the rule matches are denied",
            Effect::DeniedAll => "; every call is denied unless a stronger tier allows it",
            Effect::Renamed => "",
        })
    }
}

/// A fault of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The keys that lead to it; none for the whole rule.
    pub(crate) field: Vec<String>,
    pub(crate) reason: String,
    pub(crate) suggestion: Option<String>,
}

impl Fault {
    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Self { field: Vec::new(), reason: reason.into(), suggestion: None }
    }

    pub(crate) fn expected(wanted: &str, got: impl fmt::Display) -> Self {
        Self::whole(format!("expected {wanted}, got {got}"))
    }

    pub(crate) fn at(field: &str, reason: impl Into<String>) -> Self {
        Self { field: vec![field.to_owned()], ..Self::whole(reason) }
    }

    pub(crate) fn suggest(self, suggestion: impl Into<String>) -> Self {
        Self { suggestion: Some(suggestion.into()), ..self }
    }

    /// The same fault, with a key in front of its field.
    pub(crate) fn under(mut self, key: &str) -> Self {
        self.field.insert(0, key.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(formatter, "`{}`: ", self.field.join("."))?;
        }
        formatter.write_str(&self.reason)?;
        match &self.suggestion {
            Some(suggestion) => write!(formatter, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// The fault of an unknown word, with the known word that is most like it.
pub(crate) fn unknown(what: &str, word: &str, known: &[&str]) -> Fault {
    let closest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word.to_lowercase(), known), *known))
        .filter(|(distance, known)| *distance <= known.len().max(word.len()).div_ceil(3))
        .min();
    let suggestion = match closest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("expected {}", alternatives(known)),
    };
    Fault::whole(format!("unknown {what} `{word}`")).suggest(suggestion)
}

/// The words as a list with "or".
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// The error for a rule with these faults.
pub(crate) fn invalid(id: &str, faults: &[Fault]) -> Error {
    let reason = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Error::InvalidRule { rule: id.to_owned(), reason }
}
