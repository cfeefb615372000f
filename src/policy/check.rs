//! Names in rules that no tool of a toolkit has: a rule with a misspelt name protects nothing.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::argument::{Short, is_same};
use super::rule::NamePatterns;
use super::{CallFacts, Permission, Policy, Rule, ToolKind};
use crate::near::did_you_mean;
use crate::schema::FunctionSchema;
use crate::schema::shape::Shape;

/// The most names that a problem lists.
const LISTED: usize = 20;

/// The facts about a tool that rules can name.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// Its name.
    pub name: Arc<str>,
    /// The MCP server that it belongs to.
    pub server: Option<String>,
    /// The groups that hold it.
    pub groups: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The kind of effect that it has.
    pub kind: ToolKind,
    /// Its schema.
    pub schema: Arc<FunctionSchema>,
}

/// A name in a rule that nothing has, so that the rule, or a part of it, never matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The id of the rule.
    pub rule: String,
    /// The place that the rule was read from.
    pub origin: Option<String>,
    /// The field of the rule; conditions on arguments are `arguments.PATH`.
    pub field: String,
    /// The reason.
    pub reason: String,
}

impl RuleProblem {
    fn new(rule: &Rule, field: impl Into<String>, reason: impl Into<String>) -> Self {
        let origin = rule.origin().map(ToString::to_string);
        Self { rule: rule.id().to_owned(), origin, field: field.into(), reason: reason.into() }
    }

    /// The problem of a value that an argument is compared with and that rules never see. `seen` is the canonical form of the value,
    /// none if it does not fit the argument.
    #[must_use]
    pub fn of_value(rule: &Rule, tool: &str, name: &str, value: &Value, seen: Option<&Value>) -> Option<Self> {
        let reason = match seen {
            Some(seen) if is_same(seen, value) => return None,
            Some(seen) => {
                let (seen, value) = (Short(seen), Short(value));
                format!("tool `{tool}` gets {value} as {seen}, which is what rules see: write {seen}")
            }
            None => format!("{} does not fit the argument of tool `{tool}`", Short(value)),
        };
        Some(Self::new(rule, format!("arguments.{name}"), reason))
    }
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(formatter, "{origin}: ")?;
        }
        write!(formatter, "rule `{}`: `{}`: {}", self.rule, self.field, self.reason)
    }
}

impl Policy {
    /// Finds the names in rules that no tool has: of tools, servers, groups, tags and arguments. `groups` are all groups, also those
    /// without tools. Saved approvals are left out, because they may be of tools that are not there any more.
    #[must_use]
    pub fn check(&self, tools: &[KnownTool], groups: &[String]) -> Vec<RuleProblem> {
        let rules = self.rules();
        rules.iter().filter(|rule| !rule.is_answer()).flat_map(|rule| check_rule(rule, tools, groups)).collect()
    }
}

impl Rule {
    /// True if it can match calls of a tool, for any caller.
    #[must_use]
    pub fn concerns(&self, tool: &KnownTool) -> bool {
        let groups: Vec<&str> = tool.groups.iter().map(String::as_str).collect();
        let tags: Vec<&str> = tool.tags.iter().map(String::as_str).collect();
        let facts = CallFacts {
            tool: &tool.name,
            server: tool.server.as_deref(),
            groups: &groups,
            tags: &tags,
            kind: tool.kind,
            permission: Permission::Auto,
            caller: None,
        };
        self.facts.mismatch_apart_from_caller(&facts).is_none()
    }

    /// The conditions that compare a whole argument with a value: its name and the value.
    pub fn operands(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.arguments.iter().flat_map(|condition| {
            let operands = condition.path.single().map(|name| condition.operands().map(move |operand| (name, operand)));
            operands.into_iter().flatten()
        })
    }
}

fn check_rule(rule: &Rule, tools: &[KnownTool], groups: &[String]) -> Vec<RuleProblem> {
    let of = |names: &mut dyn Iterator<Item = &'_ str>| names.map(str::to_owned).collect::<Vec<_>>();
    let known = [
        ("tool", of(&mut tools.iter().map(|tool| &*tool.name))),
        ("server", of(&mut tools.iter().filter_map(|tool| tool.server.as_deref()))),
        ("group", of(&mut groups.iter().map(String::as_str))),
        ("tag", of(&mut tools.iter().flat_map(|tool| tool.tags.iter().map(String::as_str)))),
    ];
    let mut problems = Vec::new();
    for (field, known) in known {
        for pattern in patterns(rule.fields.get(field)) {
            if let Some(reason) = unknown_name(field, pattern, &known) {
                problems.push(RuleProblem::new(rule, field, reason));
            }
        }
    }
    let concerned: Vec<&KnownTool> = tools.iter().filter(|tool| rule.concerns(tool)).collect();
    if problems.is_empty() && concerned.is_empty() {
        let fields = rule.facts.present().filter(|field| *field != "caller").collect::<Vec<_>>();
        // A kind that no tool has is no mistake.
        if fields.len() > 1 && !fields.contains(&"kind") {
            problems.push(RuleProblem::new(rule, fields.join("`, `"), "no tool fulfils all of these together"));
        }
    }
    for condition in &rule.arguments {
        let shapes = concerned.iter().map(|tool| Shape::of(tool.schema.parameters().value()));
        let mut missing = shapes.map(|shape| condition.path.undeclared(&shape));
        if let Some(Some((name, known))) = missing.next()
            && missing.all(|unknown| unknown.is_some())
        {
            let owner = match &*concerned {
                [tool] => format!("tool `{}`", tool.name),
                tools => format!("none of the {} tools that the rule matches", tools.len()),
            };
            let has = if concerned.len() == 1 { "has no" } else { "has the" };
            let hint = did_you_mean(&name, known.iter().copied());
            let reason = format!("{owner} {has} argument `{name}`{hint}{}", listed("known", &known));
            problems.push(RuleProblem::new(rule, format!("arguments.{}", condition.path), reason));
        }
    }
    problems
}

/// The names and globs in a field of a rule.
fn patterns(field: Option<&Value>) -> impl Iterator<Item = &str> {
    let patterns = match field {
        Some(Value::Array(patterns)) => patterns.as_slice(),
        Some(pattern) => std::slice::from_ref(pattern),
        None => &[],
    };
    patterns.iter().filter_map(Value::as_str)
}

/// The reason why a name or glob matches nothing.
fn unknown_name(noun: &str, pattern: &str, known: &[String]) -> Option<String> {
    let parsed = NamePatterns::parse([pattern]).ok()?;
    if pattern == "*" || known.iter().any(|name| parsed.match_name(name)) {
        return None;
    }
    let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let list = listed("known", &names);
    Some(match parsed.single() {
        Some(name) => format!("unknown {noun} `{name}`{}{list}", did_you_mean(name, names.iter().copied())),
        None => format!("`{pattern}` matches no {noun}{list}"),
    })
}

/// The names in brackets, if there are not too many.
fn listed(word: &str, names: &[&str]) -> String {
    match names.len() {
        0 => String::new(),
        1..=LISTED => format!(" ({word}: {})", names.join(", ")),
        more => format!(" ({word}: {} and {} more)", names[..LISTED].join(", "), more - LISTED),
    }
}
