//! Explanations: the reasons for a decision, rule by rule.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::argument::Short;
use super::pattern::ArgumentTexts;
use super::rule::{ArgumentField, FactField};
use super::snapshot::Snapshot;
use super::{CallFacts, Cause, Decision, Question, Rule, Verdict};

/// The explanation of a decision: every rule in the order in which it is tried, with its outcome.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The name of the tool that is called.
    pub tool: String,
    /// The rules.
    pub tried: Vec<TriedRule>,
    /// The verdict.
    pub verdict: Verdict,
    /// The origin of the question, if a lasting approval answers it.
    pub question: Option<Cause>,
    /// The default of the policy.
    pub default: Decision,
}

/// One rule, with its outcome.
#[derive(Debug, Clone)]
pub struct TriedRule {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The outcome.
    pub outcome: RuleOutcome,
}

/// The outcome of a rule for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOutcome {
    /// The rule matches and decides.
    Decides,
    /// The rule matches and would decide without shadow mode.
    WouldDecide,
    /// The rule asks, and a lasting approval answers it.
    Answered,
    /// The rule matches, but another one goes before it, or it is in shadow mode and makes no difference.
    Matches,
    /// The rule does not match.
    Fails(Failure),
}

/// The first condition of a rule that a call does not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The field of the rule; conditions on arguments are `arguments.PATH`.
    pub condition: String,
    /// The value that the rule expects.
    pub wanted: String,
    /// The value in the call.
    pub seen: String,
}

pub(super) fn explain(snapshot: &Snapshot, facts: &CallFacts<'_>, arguments: &Value, shown: &Value) -> Explanation {
    let mut texts = ArgumentTexts::default();
    let plan = snapshot.plan(facts);
    let mut is_met = |rule: &Rule| rule.argument_mismatch(arguments, &mut texts).is_none();
    let (unanswered, _) = plan.unanswered(&mut is_met);
    let verdict = plan.verdict(is_met);
    let is_answered = verdict.rule().is_some_and(|rule| rule.is_answer());
    let question = is_answered.then(|| unanswered.cause.clone());
    let is = |cause: Option<&Cause>, rule: &Arc<Rule>| {
        cause.and_then(Cause::rule).is_some_and(|deciding| Arc::ptr_eq(deciding, rule))
    };
    let shadowed = verdict.shadowed.as_ref().map(|shadowed| &shadowed.cause);
    let tried = snapshot.rules.iter().map(|rule| {
        let outcome = match failure(rule, facts, (arguments, shown), &mut texts) {
            Some(failure) => RuleOutcome::Fails(failure),
            None if is(Some(&verdict.cause), rule) => RuleOutcome::Decides,
            None if is(question.as_ref(), rule) => RuleOutcome::Answered,
            None if is(shadowed, rule) => RuleOutcome::WouldDecide,
            None if rule.is_answer() && !is_answer_to(rule, &unanswered) => RuleOutcome::Fails(Failure {
                condition: "answers".to_owned(),
                wanted: wanted(rule.fields.get("answers")),
                seen: asked(&unanswered),
            }),
            None => RuleOutcome::Matches,
        };
        TriedRule { rule: rule.clone(), outcome }
    });
    Explanation {
        tool: facts.tool.to_owned(),
        tried: tried.collect(),
        default: snapshot.default,
        verdict: verdict.clone(),
        question: question.clone(),
    }
}

fn is_answer_to(rule: &Rule, verdict: &Verdict) -> bool {
    verdict.decision == Decision::Ask && rule.answers(&verdict.cause)
}

/// The question that the verdict asks, for a message.
fn asked(verdict: &Verdict) -> String {
    match (verdict.decision, verdict.rule()) {
        (Decision::Ask, Some(rule)) => format!("\"{}\" of tier {}", Question::from(&verdict.cause), rule.tier()),
        (Decision::Ask, None) => format!("\"{}\"", Question::from(&verdict.cause)),
        (Decision::Allow | Decision::Deny, _) => format!("no question, but {}", verdict.decision),
    }
}

/// The first condition that a call does not fulfil; only `shown` arguments are quoted.
fn failure(
    rule: &Rule,
    facts: &CallFacts<'_>,
    (arguments, shown): (&Value, &Value),
    texts: &mut ArgumentTexts,
) -> Option<Failure> {
    if let Some(field) = rule.facts.mismatch(facts) {
        let one = |name: Option<&str>| name.map_or_else(|| "none".to_owned(), |name| format!("{name:?}"));
        let (condition, seen) = match field {
            FactField::Tool => ("tool", one(Some(facts.tool))),
            FactField::Server => ("server", one(facts.server)),
            FactField::Group => ("group", format!("{:?}", facts.groups)),
            FactField::Tag => ("tag", format!("{:?}", facts.tags)),
            FactField::Kind => ("kind", one(Some(facts.kind.as_str()))),
            FactField::Caller => ("caller", one(facts.caller)),
        };
        return Some(Failure { condition: condition.to_owned(), wanted: wanted(rule.fields.get(condition)), seen });
    }
    Some(match rule.argument_mismatch(arguments, texts)? {
        ArgumentField::Condition(at) => {
            let path = &rule.arguments[at].path;
            let text = path.to_string();
            let conditions = rule.fields.get("arguments").and_then(|conditions| conditions.get(&text));
            let seen = path.first(shown).map_or_else(|| "nothing".to_owned(), |value| Short(value).to_string());
            Failure { condition: format!("arguments.{text}"), wanted: wanted(conditions), seen }
        }
        ArgumentField::Pattern => Failure {
            condition: "args_pattern".to_owned(),
            wanted: wanted(rule.fields.get("args_pattern")),
            seen: Short(shown).to_string(),
        },
    })
}

fn wanted(field: Option<&Value>) -> String {
    field.map(|value| Short(value).to_string()).unwrap_or_default()
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "`{}`: {}, because {}", self.tool, self.verdict.decision, self.verdict.reason())?;
        if let Some(shadowed) = &self.verdict.shadowed {
            let (decision, cause) = (shadowed.decision, shadowed.cause.name());
            writeln!(formatter, "in shadow mode: it would be {decision} by `{cause}`, because {}", shadowed.reason())?;
        }
        for (number, tried) in (1..).zip(&self.tried) {
            writeln!(formatter, "{number:>4}. {tried}")?;
        }
        let mark = |is: fn(&Cause) -> bool| match &self.question {
            _ if is(&self.verdict.cause) => ": decides",
            Some(question) if is(question) => ": asks, and is answered",
            _ => "",
        };
        let of_tool = mark(|cause| matches!(cause, Cause::Permission));
        let by_default = mark(|cause| matches!(cause, Cause::Default));
        writeln!(formatter, "   then the tool's own permission{of_tool}")?;
        write!(formatter, "   then the default, {}{by_default}", self.default)
    }
}

impl fmt::Display for TriedRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        let (id, tier, priority, decision) = (rule.id(), rule.tier(), rule.priority(), rule.decision());
        write!(formatter, "{decision} by `{id}` ({tier} {priority}")?;
        if rule.is_shadow() {
            formatter.write_str(", shadow")?;
        }
        if let Some(origin) = rule.origin() {
            write!(formatter, ", {origin}")?;
        }
        formatter.write_str("): ")?;
        match &self.outcome {
            RuleOutcome::Decides => formatter.write_str("decides"),
            RuleOutcome::Answered => formatter.write_str("asks, and is answered"),
            RuleOutcome::WouldDecide => formatter.write_str("would decide"),
            RuleOutcome::Matches => formatter.write_str("matches too"),
            RuleOutcome::Fails(Failure { condition, wanted, seen }) => {
                write!(formatter, "does not match: `{condition}` is {wanted}, the call has {seen}")
            }
        }
    }
}
