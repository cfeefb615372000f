//! Policy files: TOML files with `[[rule]]` tables.
//!
//! An invalid rule or file never makes a policy more permissive. Read in this order: this file (loading, reloading and
//! adding rules), `parse` (one rule from its fields), `problem` (error reports), `write` (rules as TOML).

mod parse;
mod problem;
mod write;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) use parse::rule as parse_rule;
pub use problem::{Effect, PolicyProblem};
pub(super) use problem::{Fault, invalid, unknown};
pub use write::append;

use self::parse::PartialRule;
use super::engine::insert;
use super::rule::{FactConditions, MAX_PRIORITY, Origin};
use super::{Decision, Policy, Rule, Tier};
use crate::store::{self, Disk, Fs};
use crate::{Error, Result};

/// The largest policy file, in bytes.
const LIMIT: usize = 1 << 20;

/// The reason for the model where a rule is invalid. It names the place for those who can fix it, without the path of the file.
fn invalid_rule(origin: &Origin) -> String {
    let name =
        Path::new(&*origin.file).file_name().map_or_else(|| origin.file.to_string(), |name| name.display().to_string());
    format!("line {} of the policy file `{name}` is invalid, and until it is fixed this is denied", origin.line)
}

const NOT_TABLES: &str = "`rule` is not a list of tables";

/// A policy file, with the tier of its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The tier of the rules.
    pub tier: Tier,
    /// The path.
    pub path: PathBuf,
    /// True if the file may be missing; otherwise a missing file denies every call of its tier.
    pub is_optional: bool,
}

impl PolicyFile {
    /// Names a file that has to exist.
    pub fn new(tier: Tier, path: impl Into<PathBuf>) -> Self {
        Self { tier, path: path.into(), is_optional: false }
    }

    /// Checks that the operating system lets the file be read; its content may still be invalid.
    ///
    /// # Errors
    ///
    /// [`Error::MissingFile`] unless it may be missing, and [`Error::FileAccess`].
    pub fn check_readable(&self) -> Result<()> {
        match text(&Disk, &self.path) {
            Err(Error::MissingFile { .. }) if self.is_optional => Ok(()),
            Err(error @ (Error::MissingFile { .. } | Error::FileAccess { .. })) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The same file, which may be missing.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

impl Policy {
    /// Makes a policy of the rules in these files, and reports everything that is wrong with them; see [`load`](Self::load).
    #[must_use]
    pub fn from_files(files: Vec<PolicyFile>, default: Decision) -> (Self, Vec<PolicyProblem>) {
        let policy = Self::default();
        policy.set_default(default);
        let problems = policy.load(files);
        (policy, problems)
    }

    /// Adds the rules of files, and reports everything that is wrong with them.
    ///
    /// A problem never allows anything:
    ///
    /// - An invalid rule that allows is ignored.
    /// - Any other invalid rule is replaced by one that denies, with the same priority and the conditions that are valid,
    ///   without those on arguments. If its priority is invalid or a field is unknown, it goes first in its tier. If its own
    ///   examples show that the conditions miss the calls they are meant for, it denies every call.
    /// - A file that cannot be read is replaced by a rule that denies every call, first in its tier.
    pub fn load(&self, files: Vec<PolicyFile>) -> Vec<PolicyProblem> {
        let mut known_files = self.lock_files();
        let mut rules = self.snapshot().rules.clone();
        let problems = load(&files).add_to(&mut rules);
        known_files.extend(files);
        self.swap(|state| state.rules = rules);
        problems
    }

    /// Loads all files again, and replaces the rules that came from them.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files; then no rule changes.
    pub fn reload(&self) -> Result<(), Vec<PolicyProblem>> {
        let files = self.lock_files();
        let mut rules = self.snapshot().rules.clone();
        rules.retain(|rule| rule.origin.is_none());
        let problems = load(&files).add_to(&mut rules);
        if !problems.is_empty() {
            return Err(problems);
        }
        self.swap(|state| state.rules = rules);
        Ok(())
    }

    /// Adds a rule, also to the first file of its tier that was loaded, if there is one, and otherwise to the
    /// [store of answers](Self::use_store). A rule that the policy already has is not added again.
    ///
    /// # Errors
    ///
    /// Those of [`add_to_file`](Self::add_to_file) and of the store; then nothing changes.
    pub fn remember(&self, rule: Rule) -> Result<Arc<Rule>> {
        let file = self.files().into_iter().find(|file| file.tier == rule.tier);
        match file {
            Some(file) => self.add_to_file(file, rule),
            None => self.save_answer(rule),
        }
    }

    /// Adds a rule, and appends it to a file, which from then on counts as loaded. If the file already has an equal rule, only
    /// the policy changes.
    ///
    /// # Errors
    ///
    /// Those of [`append`] and [`add`](Self::add); then neither the file nor the policy changes.
    pub fn add_to_file(&self, file: PolicyFile, mut rule: Rule) -> Result<Arc<Rule>> {
        let mut files = self.lock_files();
        let mut rules = self.snapshot().rules.clone();
        rule.tier = file.tier;
        if rule.id.is_empty() {
            rule.id = rule.content_id().into();
        }
        let known = self.equal_rule(&rule);
        if known.is_none() {
            // Its line is known when the file is loaded again.
            let origin = Origin { file: file.path.display().to_string().into(), line: 0, index: 0 };
            insert(&mut rules, vec![Rule { origin: Some(origin), ..rule.clone() }])?;
        }
        append(&Disk, &file.path, &rule)?;
        if !files.iter().any(|known| (known.tier, &known.path) == (file.tier, &file.path)) {
            files.push(file.optional());
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let added = rules[rules.len() - 1].clone();
        self.swap(|state| state.rules = rules);
        Ok(added)
    }

    pub(in crate::policy) fn equal_rule(&self, rule: &Rule) -> Option<Arc<Rule>> {
        self.snapshot().rules.iter().find(|known| known.equals(rule)).cloned()
    }

    /// The files that were loaded.
    #[must_use]
    pub fn files(&self) -> Vec<PolicyFile> {
        self.lock_files().clone()
    }
}

/// The content of policy files.
#[derive(Debug, Default)]
struct LoadedRules {
    rules: Vec<Rule>,
    problems: Vec<PolicyProblem>,
}

fn load(files: &[PolicyFile]) -> LoadedRules {
    let mut loaded = LoadedRules::default();
    for file in files {
        let path = file.path.display().to_string();
        match text(&Disk, &file.path) {
            Ok(text) => loaded.parse(file.tier, &path, &text),
            Err(Error::MissingFile { .. }) if file.is_optional => {}
            Err(error) => {
                let reason = match error {
                    Error::MissingFile { .. } => "the file does not exist".to_owned(),
                    Error::FileAccess { reason, .. } => format!("cannot read the file: {reason}"),
                    Error::FileTooLarge { limit, .. } => format!("the file is larger than {limit} bytes"),
                    Error::InvalidPolicyFile { reason, .. } => reason,
                    other => other.to_string(),
                };
                loaded.deny_all(PolicyProblem::of_file(file.tier, &path, None, reason));
            }
        }
    }
    loaded
}

/// The text of a policy file.
fn text<F: Fs>(fs: &F, path: &Path) -> Result<String> {
    let bytes = store::whole(fs, path, LIMIT)?;
    String::from_utf8(bytes).map_err(|error| {
        let reason = format!("invalid UTF-8 at byte {}", error.utf8_error().valid_up_to());
        Error::InvalidPolicyFile { path: path.display().to_string(), reason }
    })
}

impl LoadedRules {
    /// Parses the rules of one file.
    fn parse(&mut self, tier: Tier, file: &str, text: &str) {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err((line, reason)) => return self.deny_all(PolicyProblem::of_file(tier, file, line, reason)),
        };
        // An unknown key may hold rules.
        for (key, line) in document.other_keys() {
            let fault = unknown("key", key, &["rule"]);
            self.deny_all(PolicyProblem::of_file(tier, file, Some(line), fault.reason).suggest(fault.suggestion));
        }
        match document.entries() {
            Ok(entries) => entries.into_iter().for_each(|entry| self.parse_rule(tier, file, &document, entry)),
            Err(line) => {
                let problem = PolicyProblem::of_file(tier, file, Some(line), NOT_TABLES);
                self.deny_all(problem.suggest(Some("write `[[rule]]`".to_owned())));
            }
        }
    }

    /// Denies every call of a tier.
    fn deny_all(&mut self, problem: PolicyProblem) {
        let partial = PartialRule { tier: problem.tier, priority: Some(MAX_PRIORITY), ..PartialRule::default() };
        let origin = Origin { file: problem.file.as_str().into(), line: problem.line.unwrap_or(1), index: 0 };
        let id = format!("{}-unreadable", problem.tier);
        self.rules.push(denying(partial, &Map::new(), id, origin));
        self.problems.push(problem);
    }

    fn parse_rule(&mut self, tier: Tier, file: &str, document: &Document<'_>, entry: RuleEntry) {
        let origin = Origin { file: file.into(), line: entry.line, index: entry.index };
        let Some(fields) = entry.fields else {
            let problem = PolicyProblem::of_file(tier, file, Some(entry.line), "expected a table of fields");
            return self.deny_all(PolicyProblem { rule: Some(entry.index), ..problem });
        };
        let parsed = parse_rule(&fields, false);
        let partial = PartialRule { tier, ..parsed.partial };
        let made_id = || format!("{tier}-{}", entry.index);
        let faults = match parsed.rule {
            Ok(mut rule) if entry.faults.is_empty() => {
                if rule.id.is_empty() {
                    rule.id = made_id().into();
                }
                (rule.tier, rule.origin) = (tier, Some(origin));
                return self.rules.push(rule);
            }
            Ok(_) => entry.faults,
            Err(faults) => {
                // A value that JSON cannot express is reported once.
                let is_known = |fault: &Fault| entry.faults.iter().any(|it| it.field.first() == fault.field.first());
                let rest = faults.into_iter().filter(|fault| !is_known(fault));
                entry.faults.iter().cloned().chain(rest).collect()
            }
        };
        let id = partial.id.clone().filter(|id| !id.is_empty());
        // Ignoring a rule that allows, or that is in shadow mode, allows nothing.
        let is_harmless = partial.decision == Some(Decision::Allow) || partial.is_shadow;
        let effect = if is_harmless { Effect::Ignored } else { Effect::Denied };
        for fault in faults {
            let line = document.line(entry.index, &fault.field);
            let place = PolicyProblem::of_file(tier, file, line, "");
            let place = PolicyProblem { rule: Some(entry.index), id: id.clone(), effect, ..place };
            self.problems.push(PolicyProblem::of_fault(fault, place));
        }
        if !is_harmless {
            self.rules.push(denying(partial, &fields, id.unwrap_or_else(made_id), origin));
        }
    }

    /// Adds the rules to those of a policy, and returns the problems. No rule may get lost: one whose id is taken gets another.
    fn add_to(mut self, rules: &mut Vec<Arc<Rule>>) -> Vec<PolicyProblem> {
        let mut ids: HashSet<Arc<str>> = rules.iter().map(|rule| rule.id.clone()).collect();
        for mut rule in self.rules {
            let wanted = rule.id.clone();
            let mut number = 1;
            while !ids.insert(rule.id.clone()) {
                number += 1;
                rule.id = format!("{wanted}-{number}").into();
            }
            if rule.id != wanted && rule.fields.contains_key("id") {
                self.problems.push(PolicyProblem::taken_id(&rule, &wanted));
            }
            rules.push(Arc::new(rule));
        }
        self.problems
    }
}

/// The rule that denies the calls which an invalid rule matches, as far as it could be parsed.
fn denying(mut partial: PartialRule, fields: &Map<String, Value>, id: String, origin: Origin) -> Rule {
    if partial.is_refuted {
        partial.facts = FactConditions::default();
    }
    let valid = partial.facts.present();
    let mut kept: Map<_, _> = valid.filter_map(|key| Some((key.to_owned(), fields.get(key)?.clone()))).collect();
    if kept.is_empty() {
        kept.insert("tool".to_owned(), "*".into());
    }
    // An invalid priority may have been the highest.
    let priority = partial.priority.unwrap_or(MAX_PRIORITY);
    kept.insert("decision".to_owned(), Decision::Deny.as_str().into());
    kept.insert("priority".to_owned(), priority.into());
    let reason = invalid_rule(&origin);
    kept.insert("reason".to_owned(), reason.clone().into());
    Rule {
        id: Arc::from(id),
        tier: partial.tier,
        priority,
        decision: Decision::Deny,
        reason: Some(reason.into()),
        is_shadow: false,
        answers: None,
        facts: partial.facts,
        arguments: Box::default(),
        pattern: None,
        origin: Some(origin),
        fields: kept,
    }
}

/// A policy file that is well-formed TOML, with line numbers.
struct Document<'t> {
    text: &'t str,
    table: DeTable<'t>,
}

/// A `[[rule]]` table.
struct RuleEntry {
    /// The number of the rule in the file, from 1.
    index: usize,
    /// The first line.
    line: usize,
    /// The fields; none if it is not a table.
    fields: Option<Map<String, Value>>,
    /// The values that JSON cannot express, which are `null` in the fields.
    faults: Vec<Fault>,
}

impl<'t> Document<'t> {
    /// Parses a file; the error has the line and the reason.
    fn parse(text: &'t str) -> Result<Self, (Option<usize>, String)> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { text, table: table.into_inner() }),
            Err(error) => {
                let line = error.span().map(|span| line_of(text, span.start));
                Err((line, format!("invalid TOML: {}", error.message().replace('\n', ", "))))
            }
        }
    }

    /// The keys other than `rule`, with their lines.
    fn other_keys(&self) -> Vec<(&str, usize)> {
        let others = self.table.keys().filter(|key| key.get_ref() != "rule");
        others.map(|key| (key.get_ref().as_ref(), line_of(self.text, key.span().start))).collect()
    }

    /// The rules; the error is the line of a `rule` that is not a list.
    fn entries(&self) -> Result<Vec<RuleEntry>, usize> {
        let Some(value) = self.table.get("rule") else { return Ok(Vec::new()) };
        let DeValue::Array(rules) = value.get_ref() else { return Err(line_of(self.text, value.span().start)) };
        let entry = |(index, rule): (usize, &Spanned<DeValue<'_>>)| {
            let mut faults = Vec::new();
            let fields = match json(rule.get_ref(), &mut Vec::new(), &mut faults) {
                Value::Object(fields) => Some(fields),
                _ => None,
            };
            RuleEntry { index, line: line_of(self.text, rule.span().start), fields, faults }
        };
        Ok((1..).zip(rules.iter()).map(entry).collect())
    }

    /// The line of a field of a rule, or of the innermost table on the path to it that exists.
    fn line(&self, index: usize, field: &[String]) -> Option<usize> {
        let rules = self.table.get("rule")?.get_ref().as_array()?;
        let rule = rules.get(index.checked_sub(1)?)?;
        let (mut table, mut at) = (rule.get_ref().as_table(), rule.span().start);
        for key in field {
            let Some((key, value)) = table.and_then(|table| table.get_key_value(key.as_str())) else { break };
            at = key.span().start;
            table = value.get_ref().as_table();
        }
        Some(line_of(self.text, at))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Converts a value to JSON; a value that JSON cannot express becomes `null` and a fault.
fn json(value: &DeValue<'_>, path: &mut Vec<String>, faults: &mut Vec<Fault>) -> Value {
    let number = match value {
        DeValue::String(text) => return Value::String(text.clone().into_owned()),
        DeValue::Boolean(flag) => return Value::Bool(*flag),
        DeValue::Array(items) => return items.iter().map(|item| json(item.get_ref(), path, faults)).collect(),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                path.push(key.get_ref().clone().into_owned());
                let value = json(value.get_ref(), path, faults);
                (path.pop().unwrap_or_default(), value)
            };
            return Value::Object(table.iter().map(entry).collect());
        }
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().trim_start_matches('+').to_owned()),
        DeValue::Datetime(_) => None,
    };
    if let Some(number) = number.and_then(|number| serde_json::from_str(&number).ok()) {
        return Value::Number(number);
    }
    let reason = format!("JSON cannot express this {}", value.type_str());
    faults.push(Fault { field: path.clone(), ..Fault::whole(reason) }.suggest("write a string or a number"));
    Value::Null
}
