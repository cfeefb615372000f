//! Answers `always` in a store, which all processes on it share.

use std::sync::Arc;

use super::{Policy, Rule, Tier};
use crate::store::{Entries, Put, Store};
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
        *lock(&self.answers) = Some(store.clone());
        Ok(())
    }

    /// True if answers are saved in a store.
    #[must_use]
    pub fn has_store(&self) -> bool {
        lock(&self.answers).is_some()
    }

    /// Adds an answer, and saves it in the store if there is one.
    pub(super) fn save_answer(&self, mut rule: Rule) -> Result<Arc<Rule>> {
        if let Some(known) = self.equal_rule(&rule) {
            return Ok(known);
        }
        let store = lock(&self.answers).clone();
        if let Some(store) = store.filter(|_| rule.answers.is_some()) {
            if rule.id.is_empty() {
                rule.id = rule.content_id().into();
            }
            let (key, value) = (rule.id().to_owned(), rule.to_value().to_string().into_bytes());
            store.run(Put { space: ANSWERS.to_owned(), key, value, expected: None })?;
        }
        self.add(rule)
    }
}
