//! Which question somebody is asked about a call, so that an answer is for that one and no other.

use serde_json::json;

use super::hex::{from_hex, hex};
use super::{Cause, Rule};
use crate::json::hash;

/// Before the digits of a rule.
const OF_RULE: &str = "rule:";

/// What asks about a call. A rule that is changed asks something new, and one that only changes its id does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// The tool itself.
    Permission,
    /// What the policy does where no rule says anything.
    Default,
    /// A rule, by what it says.
    Rule([u8; 16]),
}

impl Question {
    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "permission" => Some(Self::Permission),
            "default" => Some(Self::Default),
            word => from_hex(word.strip_prefix(OF_RULE)?).map(Self::Rule),
        }
    }

    fn of_rule(rule: &Rule) -> Self {
        let mut digits = [0; 16];
        let sum = hash(&json!([rule.tier().as_str(), rule.said()]));
        digits.copy_from_slice(&sum[..16]);
        Self::Rule(digits)
    }
}

impl From<&Cause> for Question {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::Rule(rule) => Self::of_rule(rule),
            Cause::Permission => Self::Permission,
            Cause::Default => Self::Default,
        }
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Permission => formatter.write_str("permission"),
            Self::Default => formatter.write_str("default"),
            Self::Rule(digits) => write!(formatter, "{OF_RULE}{}", hex(digits)),
        }
    }
}

/// Which questions a rule answers that only counts where somebody would be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Every,
    One(Question),
}

impl Answers {
    /// Reads the word: `ask` for every question.
    pub(super) fn parse(word: &str) -> Option<Self> {
        if word == "ask" { Some(Self::Every) } else { Question::parse(word).map(Self::One) }
    }

    /// Whether they are to what a cause asks.
    pub(super) fn fit(self, cause: &Cause) -> bool {
        match self {
            Self::Every => true,
            Self::One(question) => question == Question::from(cause),
        }
    }
}
