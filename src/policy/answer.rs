//! What somebody who was asked about a call said.

use serde_json::{Map, Value};

use crate::{Error, Result};

/// What somebody decides about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// This call may run.
    Once,
    /// It may, and so may others of the tool until the run is over.
    Run,
    /// It may, and so may others of the tool from now on.
    Always,
    /// It may not.
    No,
    /// It may not, and nothing may that waits for an answer now.
    Cancel,
}

impl Choice {
    /// Every choice with its word.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Once, "once"),
        (Self::Run, "run"),
        (Self::Always, "always"),
        (Self::No, "no"),
        (Self::Cancel, "cancel"),
    ];

    /// Reads the word for it, to the letter: what is nearly a yes is none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAnswer`] has the words there are.
    pub fn parse(word: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|(_, known)| *known == word);
        known.map(|(choice, _)| *choice).ok_or_else(|| invalid(WORDS, &Value::from(word)))
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Always => "always",
            Self::No => "no",
            Self::Cancel => "cancel",
        }
    }

    /// Whether the call may run.
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Once | Self::Run | Self::Always)
    }
}

/// The answer of an approver: a choice, and the arguments to run the call with if they are others than it was asked about with.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The choice.
    pub choice: Choice,
    /// Arguments in place of those that were shown; they are checked as if a model had sent them.
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
    /// Reads an answer from JSON: a word, true for `once`, false for `no`, or `{"answer": …, "arguments": {…}}`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAnswer`] says what was found instead. Whoever gets it must take it for a no.
    pub fn from_value(value: &Value) -> Result<Self> {
        match value {
            Value::Bool(true) => Ok(Choice::Once.into()),
            Value::Bool(false) => Ok(Choice::No.into()),
            Value::String(word) => Choice::parse(word).map(Self::from),
            Value::Object(fields) => Self::from_fields(fields),
            _ => Err(invalid(FORMS, value)),
        }
    }

    fn from_fields(fields: &Map<String, Value>) -> Result<Self> {
        if let Some(name) = fields.keys().find(|name| !matches!(name.as_str(), "answer" | "arguments")) {
            return Err(Error::InvalidAnswer { expected: "`answer` and `arguments` only", found: format!("{name:?}") });
        }
        let answer = fields.get("answer").ok_or_else(|| invalid("an `answer`", &Value::Object(fields.clone())))?;
        if answer.is_object() {
            return Err(invalid(WORDS, answer));
        }
        let choice = Self::from_value(answer)?.choice;
        let edited = match fields.get("arguments") {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) if !choice.is_yes() => {
                return Err(Error::InvalidAnswer {
                    expected: "`arguments` only where the call may run",
                    found: format!("them beside `{}`", choice.as_str()),
                });
            }
            Some(Value::Object(arguments)) => Some(arguments.clone()),
            Some(other) => return Err(invalid("an object of `arguments`", other)),
        };
        Ok(Self { edited, ..choice.into() })
    }
}

impl Answer {
    /// A no, for this reason.
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
    // Long enough to recognize it by, short enough for a message.
    let found: String = found.to_string().chars().take(80).collect();
    Error::InvalidAnswer { expected, found }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_from_each_of_its_forms() {
        for (choice, word) in Choice::ALL {
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
    fn nonsense_is_no_answer() {
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
            Choice::parse("yes").unwrap_err().to_string(),
            "not an answer: \"yes\"; expected `once`, `run`, `always`, `no` or `cancel`"
        );
    }
}
