//! Questions to approvers and their answers, and approvals that apply to more than one call: for the session, or to everything
//! pending.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use crate::bytes::{from_hex, hex};
use crate::policy::{Cause, Rule, hash};
use crate::sync::lock;
use crate::{Error, Result};

string_enum! {
    /// The choice of an approver.
    pub enum Choice {
        /// This call may run.
        Once = "once",
        /// This call may run, and so may others of the tool until the run is over.
        Run = "run",
        /// This call may run, and so may others of the tool from now on.
        Always = "always",
        /// This call may not run.
        No = "no",
        /// Neither this call nor any other that is pending may run.
        Cancel = "cancel",
    }
}

impl Choice {
    /// True if the call may run.
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Once | Self::Run | Self::Always)
    }
}

/// The answer of an approver: a choice, perhaps with edited arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The choice.
    pub choice: Choice,
    /// Arguments that replace those that were shown; they are checked as if a model had sent them.
    pub edited: Option<Map<String, Value>>,
    /// The name of the approver, for the audit.
    pub by: Option<String>,
    /// The reason, for the model.
    pub reason: Option<String>,
}

const WORDS: &str = "`once`, `run`, `always`, `no` or `cancel`";
const FORMS: &str = "one of `once`, `run`, `always`, `no` and `cancel`, true, false, or an object with such an \
                     `answer` and perhaps `arguments`";

impl Answer {
    /// Parses an answer from JSON: a word, true for `once`, false for `no`, or `{"answer": …, "arguments": {…}}`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAnswer`], which must be treated as a no.
    pub fn from_value(value: &Value) -> Result<Self> {
        let Value::Object(fields) = value else { return Self::new(value, None) };
        if let Some(name) = fields.keys().find(|name| !matches!(name.as_str(), "answer" | "arguments")) {
            return Err(Error::InvalidAnswer { expected: "`answer` and `arguments` only", found: format!("{name:?}") });
        }
        let word = fields.get("answer").ok_or_else(|| invalid("an `answer`", value))?;
        Self::new(word, fields.get("arguments"))
    }

    /// Makes the answer of a word or a boolean, and of the arguments that replace those that were shown, if there are any.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAnswer`], which must be treated as a no.
    pub fn new(word: &Value, arguments: Option<&Value>) -> Result<Self> {
        let choice = match word {
            Value::Bool(true) => Choice::Once,
            Value::Bool(false) => Choice::No,
            Value::String(text) => Choice::parse(text).ok_or_else(|| invalid(WORDS, word))?,
            Value::Object(_) => return Err(invalid(WORDS, word)),
            Value::Null | Value::Number(_) | Value::Array(_) => return Err(invalid(FORMS, word)),
        };
        let edited = match arguments {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) if !choice.is_yes() => {
                return Err(Error::InvalidAnswer {
                    expected: "`arguments` only with an answer that allows the call",
                    found: format!("`arguments` with `{}`", choice.as_str()),
                });
            }
            Some(Value::Object(arguments)) => Some(arguments.clone()),
            Some(other) => return Err(invalid("an object of `arguments`", other)),
        };
        Ok(Self { edited, ..choice.into() })
    }

    /// Makes a no with a reason.
    #[must_use]
    pub fn no(reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Choice::No.into() }
    }
}

impl From<Choice> for Answer {
    fn from(choice: Choice) -> Self {
        Self { choice, edited: None, by: None, reason: None }
    }
}

fn invalid(expected: &'static str, found: &Value) -> Error {
    // Long enough to recognise, short enough for a message.
    let found: String = found.to_string().chars().take(80).collect();
    Error::InvalidAnswer { expected, found }
}

/// The prefix of a question that a rule asks.
const RULE_PREFIX: &str = "rule:";

/// The question that an approver is asked, by its origin, so that an answer counts for this question only.
///
/// A rule that is changed asks a new question; one that only changes its id does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// The permission that the tool declares.
    Permission,
    /// The default of the policy.
    Default,
    /// A rule, by the hash of its content.
    Rule([u8; 16]),
}

impl Question {
    /// Parses a question.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "permission" => Some(Self::Permission),
            "default" => Some(Self::Default),
            word => from_hex(word.strip_prefix(RULE_PREFIX)?).map(Self::Rule),
        }
    }

    fn of_rule(rule: &Rule) -> Self {
        let mut digits = [0; 16];
        let sum = hash(&json!([rule.tier().as_str(), rule.content()]));
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

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission => formatter.write_str("permission"),
            Self::Default => formatter.write_str("default"),
            Self::Rule(digits) => write!(formatter, "{RULE_PREFIX}{}", hex(digits)),
        }
    }
}

/// The questions that a lasting approval answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum AnsweredQuestions {
    Every,
    One(Question),
}

impl AnsweredQuestions {
    /// Parses the field `answers` of a rule: `ask` for every question, or one question.
    pub(in crate::policy) fn parse(word: &str) -> Option<Self> {
        if word == "ask" { Some(Self::Every) } else { Question::parse(word).map(Self::One) }
    }

    /// True if they include the question of a cause.
    pub(in crate::policy) fn include(self, cause: &Cause) -> bool {
        match self {
            Self::Every => true,
            Self::One(question) => question == Question::from(cause),
        }
    }
}

/// The most grants that are kept; beyond that the oldest is dropped, and then asked about again.
const MAX_GRANTS: usize = 10_000;

/// An approval for the rest of the run: one version of a tool, one caller, one question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Grant {
    tool: Box<str>,
    schema_hash: [u8; 32],
    caller: Option<Box<str>>,
    question: Question,
}

impl Grant {
    fn new(tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) -> Self {
        Self { tool: tool.into(), schema_hash, caller: caller.map(Into::into), question }
    }
}

/// Approvals for the rest of a run, and cancellation of all pending questions.
///
/// It can be shared between threads. A changed schema, another caller or another question needs a new approval.
#[derive(Debug, Default)]
pub struct Grants {
    allowed: Mutex<IndexSet<Grant, ahash::RandomState>>,
    /// The number of times that all pending questions were cancelled.
    cancelled: AtomicU64,
}

/// A pending question, which may be cancelled before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    cancelled_before: u64,
}

impl Grants {
    fn allowed(&self) -> MutexGuard<'_, IndexSet<Grant, ahash::RandomState>> {
        lock(&self.allowed)
    }

    /// Allows a caller to use a tool without this question until the run is over.
    pub fn allow(&self, tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) {
        let mut allowed = self.allowed();
        allowed.insert(Grant::new(tool, schema_hash, caller, question));
        if allowed.len() > MAX_GRANTS {
            allowed.shift_remove_index(0);
        }
    }

    /// True if a caller may use a tool without this question.
    #[must_use]
    pub fn allows(&self, tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) -> bool {
        self.allowed().contains(&Grant::new(tool, schema_hash, caller, question))
    }

    /// True if nothing is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allowed().is_empty()
    }

    /// Ends the run: all grants are dropped.
    pub fn forget(&self) {
        self.allowed().clear();
    }

    /// Registers a question that is about to be asked.
    #[must_use]
    pub fn wait(&self) -> Ticket {
        Ticket { cancelled_before: self.cancelled.load(Ordering::SeqCst) }
    }

    /// Cancels every pending question, but none that is asked later.
    pub fn cancel_all(&self) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
    }

    /// True if a question was cancelled, so that a yes to it does not count.
    #[must_use]
    pub fn is_cancelled(&self, ticket: Ticket) -> bool {
        self.cancelled.load(Ordering::SeqCst) != ticket.cancelled_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_from_each_of_its_forms() {
        for (choice, word) in Choice::ALL.into_iter().zip(["once", "run", "always", "no", "cancel"]) {
            assert_eq!(Answer::from_value(&json!(word)), Ok(choice.into()));
            assert_eq!(Answer::from_value(&json!({ "answer": word })), Ok(choice.into()));
            assert_eq!(choice.as_str(), word);
        }
        assert_eq!(Answer::from_value(&json!(true)), Ok(Choice::Once.into()));
        assert_eq!(Answer::from_value(&json!({"answer": false, "arguments": null})), Ok(Choice::No.into()));
        let edited = Answer::from_value(&json!({"answer": "run", "arguments": {"to": "ann"}})).unwrap();
        assert_eq!(edited.edited, json!({"to": "ann"}).as_object().cloned());
    }

    #[test]
    fn anything_else_is_refused() {
        for value in [
            json!(null),
            json!(1),
            json!([]),
            json!([true]),
            json!({}),
            json!(""),
            json!("yes"),
            json!("Once"),
            json!("once "),
            json!("оnce"),
            json!({"answer": "once", "also": 1}),
            json!({"answer": {"answer": "once"}}),
            json!({"answer": "once", "arguments": []}),
            json!({"answer": "no", "arguments": {}}),
        ] {
            assert!(matches!(Answer::from_value(&value), Err(Error::InvalidAnswer { .. })), "{value}");
        }
        assert_eq!(
            Answer::from_value(&json!("yes")).unwrap_err().to_string(),
            "invalid answer: expected `once`, `run`, `always`, `no` or `cancel`, got \"yes\""
        );
    }

    const ASKED: Question = Question::Permission;

    #[test]
    fn a_grant_is_for_one_tool_as_it_was_and_one_caller_and_one_question() {
        let grants = Grants::default();

        grants.allow("send", [1; 32], Some("ann"), ASKED);

        assert!(grants.allows("send", [1; 32], Some("ann"), ASKED));
        assert!(!grants.allows("sеnd", [1; 32], Some("ann"), ASKED));
        assert!(!grants.allows("send", [2; 32], Some("ann"), ASKED));
        assert!(!grants.allows("send", [1; 32], Some("eve"), ASKED));
        assert!(!grants.allows("send", [1; 32], None, ASKED));
        assert!(!grants.allows("send", [1; 32], Some("ann"), Question::Rule([1; 16])));
        grants.forget();
        assert!(!grants.allows("send", [1; 32], Some("ann"), ASKED));
    }

    #[test]
    fn grants_are_bounded_and_the_oldest_goes_first() {
        let grants = Grants::default();

        for number in 0..=MAX_GRANTS {
            grants.allow(&number.to_string(), [1; 32], None, ASKED);
        }

        assert!(!grants.allows("0", [1; 32], None, ASKED));
        assert!(grants.allows("1", [1; 32], None, ASKED));
        assert_eq!(grants.allowed().len(), MAX_GRANTS);
    }

    #[test]
    fn cancelling_all_is_for_what_waits_now() {
        let grants = Grants::default();
        let (first, second) = (grants.wait(), grants.wait());

        grants.cancel_all();

        let later = grants.wait();
        assert!(grants.is_cancelled(first) && grants.is_cancelled(second));
        assert!(!grants.is_cancelled(later));
    }
}
