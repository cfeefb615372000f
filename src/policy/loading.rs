//! The rules of a policy that come from files, and those that are put into them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::engine::insert;
use super::file::{self, Loaded, Source};
use super::problem::Problem;
use super::rule::Origin;
use super::write::append;
use super::{Decision, Policy, Rule, Tier};
use crate::Result;
use crate::store::Disk;

impl Policy {
    /// A policy of the rules in these files, and everything that is wrong with them; see [`load`](Self::load).
    #[must_use]
    pub fn from_files(sources: Vec<Source>, default: Decision) -> (Self, Vec<Problem>) {
        let policy = Self::default();
        policy.set_default(default);
        let problems = policy.load(sources);
        (policy, problems)
    }

    /// Adds the rules of files, and tells everything that is wrong with them.
    ///
    /// What is wrong opens nothing. A rule that cannot be used and plainly allows is left out. Any other one is
    /// replaced by a rule that denies, with the same place in the order (the first of its tier, if that cannot be read or
    /// there is a field that nobody knows) and the conditions that could be read, without those on arguments; if its own examples show that the
    /// conditions miss what they are meant for, without any. A file that cannot be read is replaced by a rule that
    /// denies every call, first of its tier.
    pub fn load(&self, sources: Vec<Source>) -> Vec<Problem> {
        let mut kept = self.lock();
        let mut rules = self.snapshot().rules.clone();
        let mut loaded = file::load(&sources);
        keep(&mut rules, &mut loaded);
        kept.extend(sources);
        self.swap(|state| state.rules = rules);
        loaded.problems
    }

    /// Reads the files again that were loaded, in place of the rules that came from them.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files; then all rules stay as they were.
    pub fn reload(&self) -> Result<(), Vec<Problem>> {
        let sources = self.lock();
        let mut rules = self.snapshot().rules.clone();
        rules.retain(|rule| rule.origin.is_none());
        let mut loaded = file::load(&sources);
        keep(&mut rules, &mut loaded);
        if !loaded.problems.is_empty() {
            return Err(loaded.problems);
        }
        self.swap(|state| state.rules = rules);
        Ok(())
    }

    /// Adds a rule for good: also at the end of the first file of its tier that was loaded, if there is one. A rule that
    /// the policy has already is not added again.
    ///
    /// # Errors
    ///
    /// What [`add_to_file`](Self::add_to_file) fails with; then nothing changes.
    pub fn remember(&self, rule: Rule) -> Result<Arc<Rule>> {
        let source = self.sources().into_iter().find(|source| source.tier == rule.tier);
        match source {
            Some(source) => self.add_to_file(source, rule),
            None => match self.known(&rule) {
                Some(known) => Ok(known),
                None => self.add(rule),
            },
        }
    }

    /// Adds a rule, and puts it at the end of a file; a file that was not loaded counts as one that was from then on. If
    /// the file has such a rule already, only the policy may get it.
    ///
    /// # Errors
    ///
    /// What [`append`] and [`add`](Self::add) fail with; then neither the file nor the policy changes.
    pub fn add_to_file(&self, source: Source, mut rule: Rule) -> Result<Arc<Rule>> {
        let mut sources = self.lock();
        let mut rules = self.snapshot().rules.clone();
        rule.tier = source.tier;
        if rule.id.is_empty() {
            rule.id = rule.lasting_id().into();
        }
        let known = self.known(&rule);
        if known.is_none() {
            // Its place in the file is known when the file is read again.
            let file = source.path.display().to_string().into();
            insert(&mut rules, vec![Rule { origin: Some(Origin { file, line: 0, index: 0 }), ..rule.clone() }])?;
        }
        append(&Disk, &source.path, &rule)?;
        if !sources.iter().any(|known| (known.tier, &known.path) == (source.tier, &source.path)) {
            sources.push(source.optional());
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let added = rules[rules.len() - 1].clone();
        self.swap(|state| state.rules = rules);
        Ok(added)
    }

    /// The rule that says the same, if there is one.
    fn known(&self, rule: &Rule) -> Option<Arc<Rule>> {
        self.snapshot().rules.iter().find(|known| known.says_the_same(rule)).cloned()
    }

    /// The files that were loaded.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        self.lock().clone()
    }

    /// The file of a tier that was loaded first.
    #[must_use]
    pub fn file_of(&self, tier: Tier) -> Option<Box<Path>> {
        self.lock().iter().find(|source| source.tier == tier).map(|source| source.path.clone().into())
    }
}

/// Adds rules from files, of which none may get lost: one whose id is taken gets another.
fn keep(rules: &mut Vec<Arc<Rule>>, loaded: &mut Loaded) {
    let mut ids: HashSet<Arc<str>> = rules.iter().map(|rule| rule.id.clone()).collect();
    for mut rule in std::mem::take(&mut loaded.rules) {
        let wanted = rule.id.clone();
        let mut number = 1;
        while !ids.insert(rule.id.clone()) {
            number += 1;
            rule.id = format!("{wanted}-{number}").into();
        }
        if rule.id != wanted && rule.fields.contains_key("id") {
            loaded.problems.push(Problem::taken_id(&rule, &wanted));
        }
        rules.push(Arc::new(rule));
    }
}
