//! Parses a rule from its fields and collects everything that is wrong with it.

use serde_json::{Map, Value};

use super::problem::{Fault, unknown};
use crate::policy::approval::AnsweredQuestions;
use crate::policy::argument::{Condition, Short, type_name};
use crate::policy::pattern::ArgumentsPattern;
use crate::policy::rule::{FactConditions, MAX_PRIORITY, NamePatterns};
use crate::policy::{CallFacts, Decision, Rule, Tier, ToolKind};

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

/// The fields of an example call, and of a rule those that say what it matches.
const EXAMPLE_KEYS: [&str; 7] = ["tool", "server", "group", "tag", "kind", "caller", "arguments"];

/// Names that other systems use for our fields.
const FOREIGN_KEYS: [(&str, &str); 5] = [
    ("toolName", "tool"),
    ("mcpName", "server"),
    ("argsPattern", "args_pattern"),
    ("denyMessage", "reason"),
    ("deny_message", "reason"),
];

/// The longest id or reason, in bytes.
const TEXT_LIMIT: usize = 4096;

/// A rule, or its faults with the part of it that is valid.
pub(crate) struct ParsedRule {
    pub(crate) rule: Result<Rule, Vec<Fault>>,
    pub(crate) partial: PartialRule,
}

/// The valid fields of a rule, each for itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct PartialRule {
    pub(crate) id: Option<String>,
    pub(super) tier: Tier,
    pub(super) decision: Option<Decision>,
    /// None if it is invalid, or may be meant by an unknown field; a rule without priority has zero.
    pub(super) priority: Option<u16>,
    pub(super) is_shadow: bool,
    pub(super) facts: FactConditions,
    /// True if an example shows that the conditions miss the calls they are meant for.
    pub(super) is_refuted: bool,
}

/// Parses a rule; a rule of a file may not name its tier.
pub(crate) fn rule(fields: &Map<String, Value>, may_name_tier: bool) -> ParsedRule {
    let mut parser = RuleParser { fields, faults: Vec::new() };
    let has_unknown_keys = parser.check_keys(may_name_tier);
    let id = parser.text("id");
    if id.as_deref() == Some("") {
        parser.faults.push(Fault::at("id", "it is empty").suggest("leave it out, and one is made"));
    }
    let tier = parser.word("tier", Tier::parse, &Tier::ALL.map(Tier::as_str)).unwrap_or_default();
    let decision = parser.decision();
    // An unknown field may be a misspelt priority.
    let priority = parser.priority().filter(|_| !has_unknown_keys);
    let reason = parser.text("reason");
    let mut partial = PartialRule {
        id,
        tier,
        decision,
        priority,
        is_shadow: parser.flag("shadow"),
        facts: FactConditions {
            tool: parser.names("tool"),
            server: parser.names("server"),
            group: parser.names("group"),
            tag: parser.names("tag"),
            caller: parser.callers(),
            kind: parser.kinds(),
        },
        is_refuted: false,
    };
    let answers = parser.answers(partial.decision, partial.is_shadow);
    let arguments = parser.arguments();
    let pattern = parser.pattern();
    parser.check_conditions();
    let faults = parser.faults;
    let rule = match (partial.decision, partial.priority) {
        (Some(decision), Some(priority)) if faults.is_empty() => {
            let rule = Rule {
                id: partial.id.clone().unwrap_or_default().into(),
                tier: partial.tier,
                priority,
                decision,
                reason: reason.map(Into::into),
                is_shadow: partial.is_shadow,
                answers,
                facts: partial.facts.clone(),
                arguments: arguments.into(),
                pattern,
                origin: None,
                fields: fields.clone(),
            };
            check_examples(&rule, fields).map_err(|(is_refuted, faults)| {
                partial.is_refuted = is_refuted;
                faults
            })
        }
        _ => Err(faults),
    };
    ParsedRule { rule, partial }
}

/// Parses the fields of a rule one by one and collects their faults.
struct RuleParser<'a> {
    fields: &'a Map<String, Value>,
    faults: Vec<Fault>,
}

impl RuleParser<'_> {
    /// True if there is an unknown field.
    fn check_keys(&mut self, may_name_tier: bool) -> bool {
        let mut has_unknown = false;
        for key in self.fields.keys() {
            if key == "tier" && !may_name_tier {
                let fault = Fault::at("tier", "the rules of a file have the tier that the file is loaded for");
                self.faults.push(fault.suggest("leave it out"));
            } else if !KEYS.contains(&key.as_str()) {
                has_unknown = true;
                let fault = match FOREIGN_KEYS.iter().find(|(foreign, _)| foreign == key) {
                    Some((_, ours)) => {
                        Fault::whole(format!("unknown field `{key}`")).suggest(format!("write `{ours}`"))
                    }
                    None => unknown("field", key, &KEYS),
                };
                self.faults.push(fault.under(key));
            }
        }
        has_unknown
    }

    fn fault(&mut self, key: &str, wanted: &str, value: &Value) {
        self.faults.push(Fault::expected(wanted, type_name(value)).under(key));
    }

    /// The value; an error becomes a fault of the field.
    fn accept<T>(&mut self, key: &str, parsed: Result<T, String>) -> Option<T> {
        parsed.map_err(|reason| self.faults.push(Fault::at(key, reason))).ok()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::String(text) if text.len() > TEXT_LIMIT => {
                self.faults.push(Fault::at(key, format!("it is longer than {TEXT_LIMIT} bytes")));
                None
            }
            Value::String(text) => Some(text.clone()),
            other => {
                self.fault(key, "a string", other);
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> bool {
        match self.fields.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.fault(key, "`true` or `false`", other);
                false
            }
        }
    }

    fn word<T>(&mut self, key: &str, parse: impl Fn(&str) -> Option<T>, known: &[&str]) -> Option<T> {
        let word = self.text(key)?;
        let found = parse(&word);
        if found.is_none() {
            self.faults.push(unknown(key, &word, known).under(key));
        }
        found
    }

    fn decision(&mut self) -> Option<Decision> {
        if !self.fields.contains_key("decision") {
            let fault = Fault::at("decision", "it is missing");
            self.faults.push(fault.suggest("write `decision = \"allow\"`, `\"ask\"` or `\"deny\"`"));
        }
        self.word("decision", Decision::parse, &Decision::ALL.map(Decision::as_str))
    }

    fn priority(&mut self) -> Option<u16> {
        let Some(value) = self.fields.get("priority") else { return Some(0) };
        let priority = value.as_u64().and_then(|priority| u16::try_from(priority).ok());
        let priority = priority.filter(|priority| *priority <= MAX_PRIORITY);
        if priority.is_none() {
            let wanted = format!("a whole number from 0 to {MAX_PRIORITY}");
            self.faults.push(Fault::expected(&wanted, Short(value)).under("priority"));
        }
        priority
    }

    /// One string or a list of strings.
    fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.fields.get(key)?;
        let items = match value {
            Value::String(_) => std::slice::from_ref(value),
            Value::Array(items) if items.is_empty() => {
                let fault = Fault::at(key, "the list is empty, so the rule matches nothing");
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

    fn names(&mut self, key: &str) -> Option<NamePatterns> {
        let strings = self.strings(key)?;
        self.accept(key, NamePatterns::parse(strings.iter().map(String::as_str)))
    }

    fn callers(&mut self) -> Option<NamePatterns> {
        let strings = self.strings("caller")?;
        self.accept("caller", NamePatterns::parse_callers(strings.iter().map(String::as_str)))
    }

    /// The questions that the rule answers, which only a rule that allows can.
    fn answers(&mut self, decision: Option<Decision>, is_shadow: bool) -> Option<AnsweredQuestions> {
        let word = self.text("answers")?;
        let answers = AnsweredQuestions::parse(&word);
        if answers.is_none() {
            let fault = Fault::at("answers", format!("unknown question `{word}`"));
            self.faults.push(fault.suggest("write `ask`, or keep the text that was saved"));
        }
        if decision.is_some_and(|decision| decision != Decision::Allow) {
            self.faults.push(Fault::at("answers", "only a rule that allows can be an answer"));
        }
        if is_shadow {
            self.faults.push(Fault::at("answers", "an answer cannot be in shadow mode"));
        }
        answers
    }

    fn kinds(&mut self) -> Option<Box<[ToolKind]>> {
        let words = self.strings("kind")?;
        let mut kinds = Vec::new();
        for word in words {
            match parse_kind(&word) {
                Ok(kind) => kinds.push(kind),
                Err(_) if word == "*" => kinds.extend(ToolKind::ALL),
                Err(fault) => {
                    self.faults.push(fault.under("kind"));
                    return None;
                }
            }
        }
        Some(kinds.into())
    }

    fn arguments(&mut self) -> Vec<Condition> {
        let conditions = match self.fields.get("arguments") {
            None => return Vec::new(),
            Some(Value::Object(conditions)) => conditions,
            Some(other) => {
                self.fault("arguments", "a table of paths with their conditions", other);
                return Vec::new();
            }
        };
        if conditions.is_empty() {
            self.faults.push(Fault::at("arguments", "missing condition").suggest("leave it out"));
        }
        let mut parsed = Vec::new();
        for (path, wanted) in conditions {
            match Condition::parse(path, wanted) {
                Ok(condition) => parsed.push(condition),
                Err(faults) => self.faults.extend(faults.into_iter().map(|fault| fault.under(path).under("arguments"))),
            }
        }
        parsed
    }

    fn pattern(&mut self) -> Option<ArgumentsPattern> {
        let source = self.text("args_pattern")?;
        self.accept("args_pattern", ArgumentsPattern::parse(&source))
    }

    fn check_conditions(&mut self) {
        let mut conditions = EXAMPLE_KEYS.iter().chain(&["args_pattern"]);
        if !conditions.any(|key| self.fields.contains_key(*key)) {
            let fault = Fault::whole("the rule has no condition");
            self.faults.push(fault.suggest("write `tool = \"*\"` to match every call"));
        }
    }
}

fn parse_kind(word: &str) -> Result<ToolKind, Fault> {
    ToolKind::parse(word).ok_or_else(|| unknown("kind", word, &ToolKind::ALL.map(ToolKind::as_str)))
}

/// Checks the examples that a rule carries: `match` lists calls that it has to match, `not_match` calls that it must not.
///
/// The flag of the error is true if the rule does not match a call that it should.
fn check_examples(rule: &Rule, fields: &Map<String, Value>) -> Result<Rule, (bool, Vec<Fault>)> {
    let (mut is_refuted, mut faults) = (false, Vec::new());
    for (key, is_wanted) in [("match", true), ("not_match", false)] {
        let examples = match fields.get(key) {
            None => continue,
            Some(Value::Array(examples)) => examples.as_slice(),
            Some(example @ (Value::String(_) | Value::Object(_))) => std::slice::from_ref(example),
            Some(other) => {
                faults.push(Fault::expected("a list of calls", type_name(other)).under(key));
                continue;
            }
        };
        for (number, example) in (1..).zip(examples) {
            match matches_example(rule, example) {
                Ok(is_match) if is_match == is_wanted => {}
                Ok(_) => {
                    is_refuted |= is_wanted;
                    let verb = if is_wanted { "does not match" } else { "matches" };
                    faults.push(Fault::at(key, format!("the rule {verb} example {number}, {}", Short(example))));
                }
                Err(mut fault) => {
                    fault.reason = format!("example {number}: {}", fault.reason);
                    faults.push(fault.under(key));
                }
            }
        }
    }
    if faults.is_empty() { Ok(rule.clone()) } else { Err((is_refuted, faults)) }
}

/// True if a rule matches an example. Fields that an example lacks are taken from the rule, where it names a single value.
fn matches_example(rule: &Rule, example: &Value) -> Result<bool, Fault> {
    let none = Map::new();
    let (fields, tool) = match example {
        Value::Object(fields) => (fields, None),
        Value::String(tool) => (&none, Some(tool.as_str())),
        other => return Err(Fault::expected("a table or a name", type_name(other))),
    };
    if let Some(key) = fields.keys().find(|key| !EXAMPLE_KEYS.contains(&key.as_str())) {
        return Err(unknown("field", key, &EXAMPLE_KEYS));
    }
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(Fault::expected(&format!("a string as `{key}`"), type_name(other))),
    };
    let list = |key: &str| match fields.get(key) {
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| {
                let wanted = || format!("a list of strings as `{key}`");
                name.as_str().ok_or_else(|| Fault::expected(&wanted(), type_name(name)))
            })
            .collect(),
        _ => text(key).map(Vec::from_iter),
    };
    let or_single = |given: Vec<_>, names| if given.is_empty() { Vec::from_iter(single(names)) } else { given };
    let facts = &rule.facts;
    let tool = tool.or(text("tool")?).or_else(|| single(facts.tool.as_ref()));
    let kind = match text("kind")? {
        Some(word) => parse_kind(word)?,
        None => facts.kind.as_ref().and_then(|kinds| kinds.first().copied()).unwrap_or_default(),
    };
    let example = CallFacts {
        server: text("server")?.or_else(|| single(facts.server.as_ref())),
        groups: &or_single(list("group")?, facts.group.as_ref()),
        tags: &or_single(list("tag")?, facts.tag.as_ref()),
        kind,
        caller: text("caller")?.or_else(|| single(facts.caller.as_ref())),
        ..CallFacts::of(tool.ok_or_else(|| Fault::whole("missing field `tool`"))?)
    };
    Ok(rule.matches(&example, fields.get("arguments").unwrap_or(&Value::Null)))
}

/// The name of a condition that allows a single one.
fn single(names: Option<&NamePatterns>) -> Option<&str> {
    names.and_then(NamePatterns::single)
}
