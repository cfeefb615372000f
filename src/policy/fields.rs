//! The fields of a rule, each read for itself.

use serde_json::{Map, Value};

use super::condition::{Condition, Short, type_name};
use super::fault::{Fault, unknown};
use super::matcher::Names;
use super::pattern::ArgumentsPattern;
use super::question::Answers;
use super::rule::MAX_PRIORITY;
use super::{Decision, Kind, test};

const KEYS: [&str; 17] = [
    "id",
    "tool",
    "server",
    "group",
    "tag",
    "kind",
    "caller",
    "arguments",
    "args_pattern",
    "decision",
    "priority",
    "tier",
    "reason",
    "shadow",
    "answers",
    "match",
    "not_match",
];

/// How others call these.
const FOREIGN: [(&str, &str); 5] = [
    ("toolName", "tool"),
    ("mcpName", "server"),
    ("argsPattern", "args_pattern"),
    ("denyMessage", "reason"),
    ("deny_message", "reason"),
];

/// The longest id or reason.
const TEXT: usize = 4096;

/// Reads the fields of a rule one by one, and collects what is wrong.
pub(super) struct Reader<'a> {
    pub(super) fields: &'a Map<String, Value>,
    pub(super) faults: Vec<Fault>,
}

impl Reader<'_> {
    /// Whether there is a field that nobody knows.
    pub(super) fn unknown_keys(&mut self, may_say_tier: bool) -> bool {
        let mut is_any_unknown = false;
        for key in self.fields.keys() {
            if key == "tier" && !may_say_tier {
                let fault = Fault::at("tier", "the rules of a file have the tier that the file is loaded for");
                self.faults.push(fault.suggest("leave it out"));
            } else if !KEYS.contains(&key.as_str()) {
                is_any_unknown = true;
                let fault = match FOREIGN.iter().find(|(foreign, _)| foreign == key) {
                    Some((_, ours)) => {
                        Fault::whole(format!("there is no field `{key}`")).suggest(format!("it is `{ours}`"))
                    }
                    None => unknown("field", key, &KEYS),
                };
                self.faults.push(fault.under(key));
            }
        }
        is_any_unknown
    }

    fn fault(&mut self, key: &str, wanted: &str, value: &Value) {
        self.faults.push(Fault::at(key, format!("it has to be {wanted}, and is {}", type_name(value))));
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::String(text) if text.len() > TEXT => {
                self.faults.push(Fault::at(key, format!("it is longer than {TEXT} bytes")));
                None
            }
            Value::String(text) => Some(text.clone()),
            other => {
                self.fault(key, "a string", other);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> bool {
        match self.fields.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.fault(key, "`true` or `false`", other);
                false
            }
        }
    }

    pub(super) fn word<T>(&mut self, key: &str, parse: impl Fn(&str) -> Option<T>, known: &[&str]) -> Option<T> {
        let word = self.text(key)?;
        let found = parse(&word);
        if found.is_none() {
            self.faults.push(unknown(key, &word, known).under(key));
        }
        found
    }

    pub(super) fn decision(&mut self) -> Option<Decision> {
        if !self.fields.contains_key("decision") {
            let fault = Fault::at("decision", "it is missing");
            self.faults.push(fault.suggest("write `decision = \"allow\"`, `\"ask\"` or `\"deny\"`"));
        }
        self.word("decision", Decision::parse, &Decision::ALL.map(Decision::as_str))
    }

    pub(super) fn priority(&mut self) -> Option<u16> {
        let Some(value) = self.fields.get("priority") else { return Some(0) };
        let read = value.as_u64().and_then(|priority| u16::try_from(priority).ok());
        let read = read.filter(|priority| *priority <= MAX_PRIORITY);
        if read.is_none() {
            let seen = Short(value);
            let reason = format!("it has to be a whole number from 0 to {MAX_PRIORITY}, and is {seen}");
            self.faults.push(Fault::at("priority", reason));
        }
        read
    }

    /// Strings, of which there is one or a list.
    fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.fields.get(key)?;
        let items = match value {
            Value::String(_) => std::slice::from_ref(value),
            Value::Array(items) if items.is_empty() => {
                let fault = Fault::at(key, "the list is empty, so the rule is about nothing");
                self.faults.push(fault.suggest("leave it out, or write `\"*\"` for everything"));
                return None;
            }
            Value::Array(items) => items,
            other => {
                self.fault(key, "a string or a list of strings", other);
                return None;
            }
        };
        let strings: Option<Vec<_>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        if strings.is_none()
            && let Some(other) = items.iter().find(|item| !item.is_string())
        {
            self.fault(key, "a list of strings only", other);
        }
        strings
    }

    pub(super) fn names(&mut self, key: &str) -> Option<Names> {
        let strings = self.strings(key)?;
        match Names::parse(strings.iter().map(String::as_str)) {
            Ok(names) => Some(names),
            Err(reason) => {
                self.faults.push(Fault::at(key, reason));
                None
            }
        }
    }

    pub(super) fn callers(&mut self) -> Option<Names> {
        let strings = self.strings("caller")?;
        let names = Names::of_callers(strings.iter().map(String::as_str));
        names.map_err(|reason| self.faults.push(Fault::at("caller", reason))).ok()
    }

    /// Which questions it answers, which only a yes can.
    pub(super) fn answers(&mut self, decision: Option<Decision>, is_shadow: bool) -> Option<Answers> {
        let word = self.text("answers")?;
        let answers = Answers::parse(&word);
        if answers.is_none() {
            let fault = Fault::at("answers", format!("there is no question `{word}`"));
            self.faults.push(fault.suggest("write `ask`, or leave it as it was saved"));
        }
        if decision.is_some_and(|decision| decision != Decision::Allow) {
            self.faults.push(Fault::at("answers", "only a rule that allows can be an answer"));
        }
        if is_shadow {
            self.faults.push(Fault::at("answers", "an answer cannot be in shadow mode"));
        }
        answers
    }

    pub(super) fn kinds(&mut self) -> Option<Box<[Kind]>> {
        let words = self.strings("kind")?;
        let mut kinds = Vec::new();
        for word in words {
            match Kind::parse(&word) {
                Some(kind) => kinds.push(kind),
                None if word == "*" => kinds.extend(Kind::ALL.map(|(kind, _)| kind)),
                None => {
                    self.faults.push(unknown("kind", &word, &Kind::ALL.map(|(_, word)| word)).under("kind"));
                    return None;
                }
            }
        }
        Some(kinds.into())
    }

    pub(super) fn arguments(&mut self) -> Vec<Condition> {
        let conditions = match self.fields.get("arguments") {
            None => return Vec::new(),
            Some(Value::Object(conditions)) => conditions,
            Some(other) => {
                self.fault("arguments", "a table of paths with their conditions", other);
                return Vec::new();
            }
        };
        if conditions.is_empty() {
            self.faults.push(Fault::at("arguments", "it has no condition").suggest("leave it out"));
        }
        let mut read = Vec::new();
        for (path, wanted) in conditions {
            match test::condition(path, wanted) {
                Ok(condition) => read.push(condition),
                Err(faults) => self.faults.extend(faults.into_iter().map(|fault| fault.under(path).under("arguments"))),
            }
        }
        read
    }

    pub(super) fn pattern(&mut self) -> Option<ArgumentsPattern> {
        let source = self.text("args_pattern")?;
        match ArgumentsPattern::parse(&source) {
            Ok(pattern) => Some(pattern),
            Err(reason) => {
                self.faults.push(Fault::at("args_pattern", reason));
                None
            }
        }
    }

    pub(super) fn some_condition(&mut self) {
        const CONDITIONS: [&str; 8] = ["tool", "server", "group", "tag", "kind", "caller", "arguments", "args_pattern"];
        if !CONDITIONS.iter().any(|key| self.fields.contains_key(*key)) {
            let fault = Fault::whole("the rule does not say what it is about");
            self.faults.push(fault.suggest("write `tool = \"*\"` if it is about every call"));
        }
    }
}
