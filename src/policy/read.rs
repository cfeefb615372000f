//! Reading a rule from its fields, wherever they come from, and finding everything that is wrong with them.

use serde_json::{Map, Value};

use super::condition::Condition;
use super::example;
use super::fields::Reader;
use super::matcher::Names;
use super::pattern::ArgumentsPattern;
use super::question::Answers;
use super::{Decision, Kind, Rule, Tier};

pub(super) use super::fault::Fault;

/// What could be read of a rule, and the rule if that was everything.
pub(super) struct Reading {
    pub(super) rule: Result<Rule, Vec<Fault>>,
    pub(super) partial: Partial,
}

/// The fields of a rule that could be read, each for itself.
#[derive(Debug, Default, Clone)]
pub(super) struct Partial {
    pub(super) id: Option<String>,
    pub(super) tier: Tier,
    pub(super) decision: Option<Decision>,
    /// Nothing if it could not be read, or may be in a field that nobody knows; a rule that says none has zero.
    pub(super) priority: Option<u16>,
    pub(super) reason: Option<String>,
    pub(super) is_shadow: bool,
    pub(super) answers: Option<Answers>,
    pub(super) tool: Option<Names>,
    pub(super) server: Option<Names>,
    pub(super) group: Option<Names>,
    pub(super) tag: Option<Names>,
    pub(super) caller: Option<Names>,
    pub(super) kind: Option<Box<[Kind]>>,
    /// Whether an example shows that its conditions miss what they are meant for.
    pub(super) is_refuted: bool,
}

/// Reads a rule; one from a file does not say its tier.
pub(super) fn rule(fields: &Map<String, Value>, may_say_tier: bool) -> Reading {
    let mut reader = Reader { fields, faults: Vec::new() };
    let is_any_unknown = reader.unknown_keys(may_say_tier);
    let id = reader.text("id");
    if id.as_deref() == Some("") {
        reader.faults.push(Fault::at("id", "it is empty").suggest("leave it out, and one is made"));
    }
    let mut partial = Partial {
        id,
        tier: reader.word("tier", Tier::parse, &Tier::ALL.map(Tier::as_str)).unwrap_or_default(),
        decision: reader.decision(),
        // Behind a word that nobody knows there may be its place.
        priority: reader.priority().filter(|_| !is_any_unknown),
        reason: reader.text("reason"),
        is_shadow: reader.flag("shadow"),
        answers: None,
        tool: reader.names("tool"),
        server: reader.names("server"),
        group: reader.names("group"),
        tag: reader.names("tag"),
        caller: reader.callers(),
        kind: reader.kinds(),
        is_refuted: false,
    };
    partial.answers = reader.answers(partial.decision, partial.is_shadow);
    let arguments = reader.arguments();
    let pattern = reader.pattern();
    reader.some_condition();
    let faults = std::mem::take(&mut reader.faults);
    let rule = match (partial.decision, partial.priority) {
        (Some(decision), Some(priority)) if faults.is_empty() => {
            let rule = whole(&partial, decision, priority, arguments, pattern, fields);
            example::check(&rule, fields).map_err(|(is_refuted, faults)| {
                partial.is_refuted = is_refuted;
                faults
            })
        }
        _ => Err(faults),
    };
    Reading { rule, partial }
}

fn whole(
    partial: &Partial,
    decision: Decision,
    priority: u16,
    arguments: Vec<Condition>,
    pattern: Option<ArgumentsPattern>,
    fields: &Map<String, Value>,
) -> Rule {
    let Partial { id, tier, reason, is_shadow, answers, tool, server, group, tag, caller, kind, .. } = partial.clone();
    Rule {
        id: id.unwrap_or_default().into(),
        tier,
        priority,
        decision,
        reason: reason.map(Into::into),
        is_shadow,
        answers,
        tool,
        server,
        group,
        tag,
        caller,
        kind,
        arguments: arguments.into(),
        pattern,
        origin: None,
        fields: fields.clone(),
    }
}
