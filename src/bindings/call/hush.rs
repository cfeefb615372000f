//! What is said about the arguments of a tool that has secrets: nothing that could be one of them, however it came.

use serde_json::{Map, Value};

use crate::call::Repair;
use crate::schema::check::Problem;

/// What stands in place of a value that may be a secret.
const HIDDEN: &str = "***";
/// What a problem says of a value after showing it.
const KINDS: [&str; 6] = ["a boolean", "an integer", "a number", "a string", "an array", "an object"];
/// What a problem says where there is no value to show.
const PLAIN: [&str; 5] = ["nothing", "null", "more", "another key", "another name"];

/// Which arguments are secrets, and which are certainly none.
pub(super) struct Hush<'a> {
    /// The ways to the secrets, as `mask` knows them.
    pub(super) secrets: &'a [Box<str>],
    /// The parameters that the model was shown.
    pub(super) properties: Option<&'a Map<String, Value>>,
}

impl Hush<'_> {
    /// Arguments that do not fit, of which only parameters without a secret are shown.
    pub(super) fn arguments(&self, sent: Value) -> Value {
        let Value::Object(mut entries) = sent else { return HIDDEN.into() };
        for (name, value) in &mut entries {
            if !self.is_parameter(name) || self.secrets.iter().any(|way| touches(way, name)) {
                *value = HIDDEN.into();
            }
        }
        Value::Object(entries)
    }

    /// The problems, which say what was expected, but not what a secret was.
    pub(super) fn problems(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        for problem in &mut problems {
            if !self.is_public(&problem.path) && !PLAIN.contains(&problem.found.as_str()) {
                let kind = problem.found.strip_suffix(')').and_then(|found| found.rsplit_once(" ("));
                let kind = kind.map(|(_, kind)| kind).filter(|kind| KINDS.contains(kind));
                problem.found = kind.map_or_else(|| HIDDEN.to_owned(), |kind| format!("{HIDDEN} ({kind})"));
            }
        }
        problems
    }

    /// The repairs, which say what was mended, but not what a secret was.
    pub(super) fn repairs(&self, mut repairs: Vec<Repair>) -> Vec<Repair> {
        for repair in &mut repairs {
            if !repair.at.is_empty() && repair.text.contains(" was read as ") && !self.is_public(&repair.at) {
                "it was read as a value of another kind".clone_into(&mut repair.text);
            }
        }
        repairs
    }

    fn is_parameter(&self, name: &str) -> bool {
        self.properties.is_some_and(|properties| properties.contains_key(name))
    }

    /// Whether what is at a path can be told. A path that cannot be followed leads to something that cannot.
    fn is_public(&self, path: &str) -> bool {
        let Some(way) = way_of(path) else { return false };
        let first = way.split('.').next().unwrap_or_default();
        self.is_parameter(first) && !self.secrets.iter().any(|secret| touches(secret, &way))
    }
}

/// Whether one way leads to something that the other leads into.
fn touches(one: &str, other: &str) -> bool {
    let leads_into = |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    one == other || leads_into(one, other) || leads_into(other, one)
}

/// A path as the ways to secrets are written: `hosts[2].key` is `hosts.key`.
fn way_of(path: &str) -> Option<String> {
    let mut way = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        way.push_str(before);
        let (index, after) = after.split_once(']')?;
        if !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest = after;
    }
    way.push_str(rest);
    (!way.is_empty() && !way.contains(['"', '…'])).then_some(way)
}
