//! Examples that a rule carries: calls that it has to be about, and calls that it must not be about.

use serde_json::{Map, Value};

use super::condition::{Short, type_name};
use super::fault::{Fault, unknown};
use super::matcher::Names;
use super::{CallFacts, Kind, Rule};

const KEYS: [&str; 7] = ["tool", "server", "group", "tag", "kind", "caller", "arguments"];

/// Hands the rule back if its examples are as it says. Else tells what is wrong with them, and whether a call that it
/// should be about is one that it is not about.
pub(super) fn check(rule: &Rule, fields: &Map<String, Value>) -> Result<Rule, (bool, Vec<Fault>)> {
    let (mut is_refuted, mut faults) = (false, Vec::new());
    for (key, is_wanted) in [("match", true), ("not_match", false)] {
        let examples = match fields.get(key) {
            None => continue,
            Some(Value::Array(examples)) => examples.as_slice(),
            Some(example @ (Value::String(_) | Value::Object(_))) => std::slice::from_ref(example),
            Some(other) => {
                let reason = format!("it has to be a list of calls, and is {}", type_name(other));
                faults.push(Fault::at(key, reason));
                continue;
            }
        };
        for (number, example) in (1..).zip(examples) {
            match is_about(rule, example) {
                Ok(is_about) if is_about == is_wanted => {}
                Ok(_) => {
                    is_refuted |= is_wanted;
                    let is = if is_wanted { "is not" } else { "is" };
                    let reason = format!("the rule {is} about example {number}, {}", Short(example));
                    faults.push(Fault::at(key, reason));
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

/// Whether a rule is about an example. What an example does not say it takes from the rule, where that names one thing.
fn is_about(rule: &Rule, example: &Value) -> Result<bool, Fault> {
    let none = Map::new();
    let (fields, tool) = match example {
        Value::Object(fields) => (fields, None),
        Value::String(tool) => (&none, Some(tool.as_str())),
        other => return Err(Fault::whole(format!("it has to be a table or a name, and is {}", type_name(other)))),
    };
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(unknown("field", key, &KEYS));
    }
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(Fault::whole(format!("`{key}` has to be a string, and is {}", type_name(other)))),
    };
    let list = |key: &str| match fields.get(key) {
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().ok_or_else(|| Fault::whole(format!("`{key}` has to be a list of strings"))))
            .collect(),
        _ => text(key).map(Vec::from_iter),
    };
    let or = |given: Vec<_>, names: Option<&Names>| {
        if given.is_empty() {
            Vec::from_iter(only(names).map(str::to_owned))
        } else {
            given.into_iter().map(str::to_owned).collect()
        }
    };
    let (groups, tags) = (or(list("group")?, rule.group.as_ref()), or(list("tag")?, rule.tag.as_ref()));
    let tool = tool.or(text("tool")?).or_else(|| only(rule.tool.as_ref()));
    let kind = match text("kind")? {
        Some(word) => Kind::parse(word).ok_or_else(|| unknown("kind", word, &Kind::ALL.map(|(_, word)| word)))?,
        None => rule.kind.as_ref().and_then(|kinds| kinds.first().copied()).unwrap_or_default(),
    };
    let subject = CallFacts {
        server: text("server")?.or_else(|| only(rule.server.as_ref())),
        groups: &groups.iter().map(String::as_str).collect::<Vec<_>>(),
        tags: &tags.iter().map(String::as_str).collect::<Vec<_>>(),
        kind,
        caller: text("caller")?.or_else(|| only(rule.caller.as_ref())),
        ..CallFacts::of(tool.ok_or_else(|| Fault::whole("it has to say which `tool` is called"))?)
    };
    Ok(rule.matches(&subject, fields.get("arguments").unwrap_or(&Value::Null)))
}

/// The one name that a condition is about.
fn only(names: Option<&Names>) -> Option<&str> {
    match names.map(|names| (names.exact(), names.globs())) {
        Some(([name], [])) => Some(name),
        _ => None,
    }
}
