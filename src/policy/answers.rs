//! Answers `always` in a store, which all processes on it share.

use std::sync::Arc;

use super::{Policy, Rule, Tier};
use crate::store::{Entries, Put, Store, Write};
use crate::sync::lock;
use crate::{Error, Result};

/// The space of saved answers in a store.
const ANSWERS: &str = "policy-answers";

impl Policy {
    /// Adds the answers that a store has, and saves those to come in it, unless a file of the user's tier is loaded.
    ///
    /// # Errors
    ///
    /// Those of the store, and [`Error::DamagedFile`] for an invalid answer. Then nothing changes.
    pub fn use_store(&self, store: &Store) -> Result<()> {
        let damaged = |reason: String| Error::DamagedFile { path: store.url(), reason };
        let mut rules = Vec::new();
        for (key, entry) in store.run(Entries { space: ANSWERS.to_owned() })? {
            let rule = serde_json::from_slice(&entry.value)
                .map_err(|error| error.to_string())
                .and_then(|value| Rule::from_value(&value).map_err(|error| error.to_string()));
            let rule = rule.map_err(|reason| damaged(format!("its saved answer `{key}` is invalid: {reason}")))?;
            // A saved answer never decides more than the question that was asked.
            if rule.tier() != Tier::User || rule.answers.is_none() {
                return Err(damaged(format!("its saved answer `{key}` is a rule of another kind")));
            }
            rules.push(rule);
        }
        for rule in rules {
            if self.equal_rule(&rule).is_none() {
                self.add(rule)?;
            }
        }
        self.save_in(store);
        Ok(())
    }

    /// Saves the answers to come in a store, without those that it has.
    pub fn save_in(&self, store: &Store) {
        *lock(&self.answers) = Some(store.clone());
    }

    /// True if answers are saved in a store.
    #[must_use]
    pub fn has_store(&self) -> bool {
        lock(&self.answers).is_some()
    }

    /// Adds an answer, after it was saved in the store if there is one.
    pub(super) fn save_answer(&self, mut rule: Rule) -> Result<Arc<Rule>> {
        if let Some(known) = self.equal_rule(&rule) {
            return Ok(known);
        }
        if let Some((store, put)) = self.put_answer(&mut rule) {
            store.run(put)?;
        }
        self.add(rule)
    }

    /// The same for a caller that must not block: the answer is added when the write is done. None if there is nothing to wait for.
    pub(super) fn defer_answer(self: &Arc<Self>, mut rule: Rule) -> Result<Option<Write>> {
        if self.equal_rule(&rule).is_some() {
            return Ok(None);
        }
        let Some((store, put)) = self.put_answer(&mut rule) else { return self.add(rule).map(|_| None) };
        let policy = self.clone();
        Ok(Some(store.write(put, move |saved| saved.and_then(|_| policy.add(rule)).map(|_| true))))
    }

    /// The operation that saves an answer, which has an id then.
    fn put_answer(&self, rule: &mut Rule) -> Option<(Store, Put)> {
        let store = lock(&self.answers).clone().filter(|_| rule.answers.is_some())?;
        if rule.id.is_empty() {
            rule.id = rule.content_id().into();
        }
        let (key, value) = (rule.id().to_owned(), rule.to_value().to_string().into_bytes());
        Some((store, Put { space: ANSWERS.to_owned(), key, value, expected: None }))
    }
}
