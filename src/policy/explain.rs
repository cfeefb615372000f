//! Why a call is decided as it is, rule by rule.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::condition::Short;
use super::pattern::Texts;
use super::rule::{ArgumentField, Field};
use super::snapshot::Snapshot;
use super::{CallFacts, Cause, Decision, Question, Rule, Verdict};

/// Every rule in the order in which it is tried, and what came of it.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The name of the tool that is called.
    pub tool: String,
    /// The rules.
    pub tried: Vec<Tried>,
    /// What is decided in the end.
    pub verdict: Verdict,
    /// What asks, if that has been answered for good.
    pub question: Option<Cause>,
    /// What the policy does where no rule says anything.
    pub default: Decision,
}

/// One rule, and what came of it.
#[derive(Debug, Clone)]
pub struct Tried {
    /// The rule.
    pub rule: Arc<Rule>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is about the call, and decides.
    Decides,
    /// It is about the call, and would have decided if nothing were in shadow mode.
    WouldDecide,
    /// It asks, which has been answered for good.
    Answered,
    /// It is about the call, but another one goes before it, or it is in shadow mode and makes no difference.
    Matches,
    /// It is not about the call.
    Fails(Failure),
}

/// The first condition of a rule that a call does not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The field of the rule; conditions on arguments are `arguments.PATH`.
    pub condition: String,
    /// What the rule wants there.
    pub wanted: String,
    /// What the call has there.
    pub seen: String,
}

pub(super) fn explain(snapshot: &Snapshot, subject: &CallFacts<'_>, arguments: &Value, shown: &Value) -> Explanation {
    let mut texts = Texts::default();
    let plan = snapshot.plan(subject);
    let mut is_met = |rule: &Rule| rule.misfit_of_arguments(arguments, &mut texts).is_none();
    let (unanswered, _) = plan.unanswered(&mut is_met);
    let verdict = plan.verdict(is_met);
    let is_answered = verdict.rule().is_some_and(|rule| rule.is_answer());
    let question = is_answered.then(|| unanswered.cause.clone());
    let is = |cause: Option<&Cause>, rule: &Arc<Rule>| {
        cause.and_then(Cause::rule).is_some_and(|deciding| Arc::ptr_eq(deciding, rule))
    };
    let shadowed = verdict.shadowed.as_ref().map(|shadowed| &shadowed.cause);
    let tried = snapshot.rules.iter().map(|rule| {
        let outcome = match failure(rule, subject, (arguments, shown), &mut texts) {
            Some(failure) => Outcome::Fails(failure),
            None if is(Some(&verdict.cause), rule) => Outcome::Decides,
            None if is(question.as_ref(), rule) => Outcome::Answered,
            None if is(shadowed, rule) => Outcome::WouldDecide,
            None if rule.is_answer() && !is_answer_to(rule, &unanswered) => Outcome::Fails(Failure {
                condition: "answers".to_owned(),
                wanted: wanted(rule.fields.get("answers")),
                seen: asked(&unanswered),
            }),
            None => Outcome::Matches,
        };
        Tried { rule: rule.clone(), outcome }
    });
    Explanation {
        tool: subject.tool.to_owned(),
        tried: tried.collect(),
        default: snapshot.default,
        verdict: verdict.clone(),
        question: question.clone(),
    }
}

fn is_answer_to(rule: &Rule, verdict: &Verdict) -> bool {
    verdict.decision == Decision::Ask && rule.answers(&verdict.cause)
}

/// What somebody would be asked.
fn asked(verdict: &Verdict) -> String {
    match (verdict.decision, verdict.rule()) {
        (Decision::Ask, Some(rule)) => format!("\"{}\" of tier {}", Question::from(&verdict.cause), rule.tier()),
        (Decision::Ask, None) => format!("\"{}\"", Question::from(&verdict.cause)),
        (Decision::Allow | Decision::Deny, _) => format!("no question, but {}", verdict.decision),
    }
}

/// The first condition that a call does not fulfil; of its arguments, those are told that may be shown.
fn failure(
    rule: &Rule,
    subject: &CallFacts<'_>,
    (arguments, shown): (&Value, &Value),
    texts: &mut Texts,
) -> Option<Failure> {
    if let Some(field) = rule.misfit(subject) {
        let one = |name: Option<&str>| name.map_or_else(|| "none".to_owned(), |name| format!("{name:?}"));
        let (condition, seen) = match field {
            Field::Tool => ("tool", one(Some(subject.tool))),
            Field::Server => ("server", one(subject.server)),
            Field::Group => ("group", format!("{:?}", subject.groups)),
            Field::Tag => ("tag", format!("{:?}", subject.tags)),
            Field::Kind => ("kind", one(Some(subject.kind.as_str()))),
            Field::Caller => ("caller", one(subject.caller)),
        };
        return Some(Failure { condition: condition.to_owned(), wanted: wanted(rule.fields.get(condition)), seen });
    }
    Some(match rule.misfit_of_arguments(arguments, texts)? {
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
            Some(question) if is(question) => ": asks, which has been answered",
            _ => "",
        };
        let of_tool = mark(|cause| matches!(cause, Cause::Permission));
        let by_default = mark(|cause| matches!(cause, Cause::Default));
        writeln!(formatter, "   then the tool's own permission{of_tool}")?;
        write!(formatter, "   then the default, {}{by_default}", self.default)
    }
}

impl fmt::Display for Tried {
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
            Outcome::Decides => formatter.write_str("decides"),
            Outcome::Answered => formatter.write_str("asks, which has been answered"),
            Outcome::WouldDecide => formatter.write_str("would decide"),
            Outcome::Matches => formatter.write_str("is about this call too"),
            Outcome::Fails(Failure { condition, wanted, seen }) => {
                write!(formatter, "no, its `{condition}` is {wanted} and the call has {seen}")
            }
        }
    }
}
