//! The arguments stage: arguments as a model sent them, coerced, repaired and checked against the schema that it was shown.

use serde_json::{Map, Value};

use super::repair::{ParameterNames, coercions, explanation, repair_names, uncertainty};
use super::{ArgumentMode, Behaviour, Repair, RepairKind, RepairMode, Reply};
use crate::policy::Redaction;
use crate::schema::check::{JsonLike, Mode, Problem, render};

/// The repairs that were needed to read a request, and the signs that it may not say what was meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadRepairs {
    /// The repairs.
    pub repairs: Vec<Repair>,
    /// True if the end of the request is missing.
    pub is_truncated: bool,
    /// True if an object had a key twice.
    pub has_duplicate_keys: bool,
}

impl ReadRepairs {
    /// True if the request was read without any trouble.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.repairs.is_empty() && !self.is_truncated && !self.has_duplicate_keys
    }
}

/// The rules by which the arguments of one tool are accepted.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentRules<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The schema that the model was shown.
    pub parameters: &'a Value,
    /// The switches of the toolkit.
    pub behaviour: Behaviour,
    /// Other names of parameters, each with the one that it stands for.
    pub aliases: &'a [(Box<str>, Box<str>)],
    /// Names that do not exist for the model: presets and parameters that it was not shown.
    pub hidden: &'a [Box<str>],
    /// The parameters whose values only the tool sees.
    pub secrets: &'a [Box<str>],
    /// True if the tool is known to change nothing.
    pub is_read_only: bool,
}

/// Accepted arguments and their repairs, or every problem with them.
pub type Accepted<S> = Result<(S, Vec<Repair>), Vec<Problem>>;

impl<'a> ArgumentRules<'a> {
    /// The redaction of what is said about the arguments.
    #[must_use]
    pub fn redaction(&self) -> Redaction<'a> {
        Redaction::new(self.secrets, self.parameters)
    }

    /// The reply to a request whose arguments are not certainly what was meant; `None` if the tool may run with them.
    /// `explain` says what is wrong with repaired arguments; see [`explain`](Self::explain).
    #[must_use]
    pub fn refuse_repaired(&self, read: &ReadRepairs, explain: impl FnOnce(Vec<Repair>) -> String) -> Option<Reply> {
        if read.is_empty() {
            return None;
        }
        if !self.is_read_only
            && let Some(doubt) = uncertainty(read.is_truncated, read.has_duplicate_keys)
        {
            return Some(Reply::BadCall { reason: format!("{doubt} The tool '{}' has not run.", self.tool) });
        }
        match self.behaviour.repair() {
            RepairMode::On => None,
            // Nothing is repaired then, but a call may have been read elsewhere.
            RepairMode::Off if read.repairs.iter().all(|repair| repair.what == RepairKind::Duplicate) => None,
            RepairMode::Explain | RepairMode::Off => {
                Some(Reply::InvalidArguments { text: explain(self.redacted(read.repairs.clone())) })
            }
        }
    }

    /// Accepts arguments: coerces and checks them, and if they do not fit, does the same under the names that were probably
    /// meant. `check` is the compiled schema; `to_value` and `from_value` convert where names have to be repaired.
    ///
    /// # Errors
    ///
    /// Whatever `check` or `from_value` fail with.
    pub fn accept<S: JsonLike + Clone, E>(
        &self,
        input: &S,
        check: impl Fn(&S, Mode) -> Result<Result<S, Vec<Problem>>, E>,
        to_value: impl FnOnce(&S) -> Option<Value>,
        from_value: impl FnOnce(Value) -> Result<S, E>,
    ) -> Result<Accepted<S>, E> {
        let mode = match self.behaviour.arguments {
            ArgumentMode::Coerce => Mode::Coerce,
            ArgumentMode::Check | ArgumentMode::Pass => Mode::Check,
        };
        let problems = match check(input, mode)? {
            Ok(accepted) => {
                let repairs = coercions(input, &accepted);
                return Ok(Ok((accepted, repairs)));
            }
            Err(problems) => problems,
        };
        if mode == Mode::Check || self.behaviour.repair() == RepairMode::Off {
            return Ok(Err(problems));
        }
        let names = ParameterNames { aliases: self.aliases, hidden: self.hidden };
        let renamed = to_value(input).and_then(|value| repair_names(&value, self.parameters, names));
        let Some((renamed, mut repairs)) = renamed else { return Ok(Err(problems)) };
        let renamed = from_value(renamed)?;
        Ok(check(&renamed, mode)?.map(|accepted| {
            repairs.extend(coercions(&renamed, &accepted));
            (accepted, repairs)
        }))
    }

    /// The arguments to use with their repairs, or the reply that says what is wrong with them; both redacted. `shown` gives
    /// accepted arguments as JSON.
    ///
    /// # Errors
    ///
    /// The reply.
    pub fn settle<S>(
        &self,
        accepted: Accepted<S>,
        shown: impl FnOnce(&S) -> Option<Value>,
    ) -> Result<(S, Vec<Repair>), (Reply, Vec<Repair>)> {
        match accepted {
            Ok((input, repairs)) => {
                let repairs = self.redacted(repairs);
                if self.behaviour.repair() != RepairMode::Explain || repairs.is_empty() {
                    return Ok((input, repairs));
                }
                let shown = shown(&input).map(|shown| self.redaction().arguments(&shown));
                let text = explanation(self.tool, &repairs, shown.as_ref());
                Err((Reply::InvalidArguments { text }, repairs))
            }
            Err(problems) => {
                let text = render(self.tool, &self.redaction().problems(problems));
                Err((Reply::InvalidArguments { text }, Vec::new()))
            }
        }
    }

    /// The text about arguments that were repaired when they were read, and the repairs that are needed besides. The right
    /// arguments are shown only if they fit.
    pub fn explain<S>(
        &self,
        mut repairs: Vec<Repair>,
        accepted: Accepted<S>,
        shown: impl FnOnce(&S) -> Option<Value>,
    ) -> (String, Vec<Repair>) {
        match accepted {
            Ok((input, more)) => {
                let more = self.redacted(more);
                repairs.extend(more.iter().cloned());
                let shown = shown(&input).map(|shown| self.redaction().arguments(&shown));
                (explanation(self.tool, &repairs, shown.as_ref()), more)
            }
            Err(problems) => {
                let text = explanation(self.tool, &repairs, None);
                let problems = self.redaction().problems(problems);
                (format!("{text}\n{}", render(self.tool, &problems)), Vec::new())
            }
        }
    }

    /// Repairs without what could be a secret.
    #[must_use]
    pub fn redacted(&self, repairs: Vec<Repair>) -> Vec<Repair> {
        if self.secrets.is_empty() {
            return repairs;
        }
        let redaction = self.redaction();
        repairs.into_iter().map(|repair| repair.redacted(&redaction)).collect()
    }
}

/// Values that JSON can hold and that the model neither sees nor sets; they are merged last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Presets(Map<String, Value>);

impl Presets {
    /// The names, which do not exist for the model.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hash that an approval is bound to.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        crate::policy::hash(&Value::Object(self.0.clone()))
    }

    /// Arguments with the presets, which override them.
    #[must_use]
    pub fn merged(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(mut entries) => {
                entries.extend(self.0.clone());
                Value::Object(entries)
            }
            other => other,
        }
    }
}

impl From<Map<String, Value>> for Presets {
    fn from(values: Map<String, Value>) -> Self {
        Self(values)
    }
}
