//! Loading files of rules, so that nothing that is wrong with them opens anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fault::{Fault, unknown};
use super::read::{self, Partial};
use super::rule::{MAX_PRIORITY, Origin};
use super::toml::{Document, Entry};
use super::{Decision, Rule, Tier};
use crate::Error;
use crate::store::{self, Disk, Fs};

use super::problem::{Effect, Problem};

/// The largest file of rules.
pub(super) const LIMIT: usize = 1 << 20;

/// What a model is told where a rule cannot be used; the details are for those who can mend it.
const CLOSED: &str = "a rule of the policy cannot be used, and until it is mended this is denied";

/// A file of rules, and whose rules they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Whose rules they are.
    pub tier: Tier,
    /// Where they are.
    pub path: PathBuf,
    /// Whether the file may be missing; a file that may not be and is closes its tier.
    pub is_optional: bool,
}

impl Source {
    /// A file that has to be there.
    pub fn new(tier: Tier, path: impl Into<PathBuf>) -> Self {
        Self { tier, path: path.into(), is_optional: false }
    }

    /// The same file, which may be missing.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// What was read from files.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) rules: Vec<Rule>,
    pub(super) problems: Vec<Problem>,
}

pub(super) fn load(sources: &[Source]) -> Loaded {
    let mut loaded = Loaded::default();
    for source in sources {
        let file = source.path.display().to_string();
        match text(&Disk, &source.path) {
            Ok(text) => read_file(source.tier, &file, &text, &mut loaded),
            Err(Error::MissingFile { .. }) if source.is_optional => {}
            Err(error) => {
                let reason = match error {
                    Error::MissingFile { .. } => "there is no such file".to_owned(),
                    Error::FileAccess { reason, .. } => format!("it cannot be read: {reason}"),
                    Error::FileTooLarge { limit, .. } => format!("it is larger than {limit} bytes"),
                    Error::InvalidPolicyFile { reason, .. } => reason,
                    other => other.to_string(),
                };
                loaded.close(Problem::of_file(source.tier, &file, None, reason));
            }
        }
    }
    loaded
}

/// The text of a file of rules.
pub(super) fn text<F: Fs>(fs: &F, path: &Path) -> crate::Result<String> {
    let bytes = store::whole(fs, path, LIMIT)?;
    String::from_utf8(bytes).map_err(|error| {
        let reason = format!("it is no UTF-8 text from byte {} on", error.utf8_error().valid_up_to());
        Error::InvalidPolicyFile { path: path.display().to_string(), reason }
    })
}

/// Reads the rules of one file.
pub(super) fn read_file(tier: Tier, file: &str, text: &str, loaded: &mut Loaded) {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err((line, reason)) => return loaded.close(Problem::of_file(tier, file, line, reason)),
    };
    // Behind a word that nobody knows there may be rules.
    for (key, line) in document.other_keys() {
        let fault = unknown("key", key, &["rule"]);
        loaded.close(Problem::of_file(tier, file, Some(line), fault.reason).suggest(fault.suggestion));
    }
    match document.entries() {
        Ok(entries) => entries.into_iter().for_each(|entry| loaded.read_rule(tier, file, &document, entry)),
        Err(line) => {
            let problem = Problem::of_file(tier, file, Some(line), "`rule` is no list of tables");
            loaded.close(problem.suggest(Some("write `[[rule]]`".to_owned())));
        }
    }
}

impl Loaded {
    /// Denies every call of a tier.
    fn close(&mut self, problem: Problem) {
        let partial = Partial { tier: problem.tier, priority: Some(MAX_PRIORITY), ..Partial::default() };
        let origin = Origin { file: problem.file.as_str().into(), line: problem.line.unwrap_or(1), index: 0 };
        let id = format!("{}-unreadable", problem.tier);
        self.rules.push(stand_in(partial, &Map::new(), id, origin));
        self.problems.push(problem);
    }

    fn read_rule(&mut self, tier: Tier, file: &str, document: &Document<'_>, entry: Entry) {
        let origin = Origin { file: file.into(), line: entry.line, index: entry.index };
        let Some(fields) = entry.fields else {
            let problem = Problem::of_file(tier, file, Some(entry.line), "a rule is a table of its fields");
            return self.close(Problem { rule: Some(entry.index), ..problem });
        };
        let reading = read::rule(&fields, false);
        let partial = Partial { tier, ..reading.partial };
        let made = || format!("{tier}-{}", entry.index);
        let faults = match reading.rule {
            Ok(mut rule) if entry.faults.is_empty() => {
                if rule.id.is_empty() {
                    rule.id = made().into();
                }
                (rule.tier, rule.origin) = (tier, Some(origin));
                return self.rules.push(rule);
            }
            Ok(_) => entry.faults,
            Err(faults) => {
                // What has no place in JSON is told once, where it stands.
                let is_told = |fault: &Fault| entry.faults.iter().any(|told| told.field.first() == fault.field.first());
                let rest = faults.into_iter().filter(|fault| !is_told(fault));
                entry.faults.iter().cloned().chain(rest).collect()
            }
        };
        let id = partial.id.clone().filter(|id| !id.is_empty());
        // Leaving out a rule that allows, or that only tells what it would do, opens nothing.
        let is_harmless = partial.decision == Some(Decision::Allow) || partial.is_shadow;
        let effect = if is_harmless { Effect::LeftOut } else { Effect::Closed };
        for fault in faults {
            let line = document.line(entry.index, &fault.field);
            let place =
                Problem { rule: Some(entry.index), id: id.clone(), effect, ..Problem::of_file(tier, file, line, "") };
            self.problems.push(Problem::of_fault(fault, place));
        }
        if !is_harmless {
            self.rules.push(stand_in(partial, &fields, id.unwrap_or_else(made), origin));
        }
    }
}

/// A rule that denies what another is about, as far as that could be read.
fn stand_in(mut partial: Partial, fields: &Map<String, Value>, id: String, origin: Origin) -> Rule {
    if partial.is_refuted {
        partial = Partial { tier: partial.tier, priority: partial.priority, ..Partial::default() };
    }
    let Partial { tier, priority, tool, server, group, tag, caller, kind, .. } = partial;
    let read = [
        ("tool", tool.is_some()),
        ("server", server.is_some()),
        ("group", group.is_some()),
        ("tag", tag.is_some()),
        ("caller", caller.is_some()),
        ("kind", kind.is_some()),
    ];
    let mut kept: Map<_, _> = read
        .into_iter()
        .filter(|(_, is_read)| *is_read)
        .filter_map(|(key, _)| Some((key.to_owned(), fields.get(key)?.clone())))
        .collect();
    if kept.is_empty() {
        kept.insert("tool".to_owned(), "*".into());
    }
    // A place that cannot be read may have been the first.
    let priority = priority.unwrap_or(MAX_PRIORITY);
    kept.insert("decision".to_owned(), Decision::Deny.as_str().into());
    kept.insert("priority".to_owned(), priority.into());
    kept.insert("reason".to_owned(), CLOSED.into());
    Rule {
        id: Arc::from(id),
        tier,
        priority,
        decision: Decision::Deny,
        reason: Some(CLOSED.into()),
        is_shadow: false,
        answers: None,
        tool,
        server,
        group,
        tag,
        caller,
        kind,
        arguments: Box::default(),
        pattern: None,
        origin: Some(origin),
        fields: kept,
    }
}
