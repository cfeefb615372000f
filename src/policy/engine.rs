//! The policy: rules that can change at any time, and decisions that always follow one whole state of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::Value;

use super::explain::{Explanation, explain};
use super::file::Source;
use super::pattern::Texts;
use super::snapshot::Snapshot;
use super::{Arguments, Decision, Quick, Rule, Subject, Tier, Verdict};
use crate::{Error, Result};

/// Rules, and what to do where none of them says anything.
///
/// A call is decided by the first rule that is about it. Rules are tried by tier, then by priority; of equal ones those
/// that deny go first, then those that ask. Below all rules a tool that wants to be confirmed asks, and below that is
/// the default; the stricter of the two holds.
///
/// It is shared between threads as it is. Nothing is locked while arguments are asked for.
#[derive(Debug)]
pub struct Policy {
    snapshot: RwLock<Arc<Snapshot>>,
    /// The files that were loaded. Whoever changes anything holds this.
    sources: Mutex<Vec<Source>>,
    revision: AtomicU64,
}

/// What a change may change.
pub(super) struct State {
    pub(super) rules: Vec<Arc<Rule>>,
    default: Decision,
    is_shadow: bool,
}

impl Default for Policy {
    fn default() -> Self {
        let snapshot = Snapshot::new(Vec::new(), Decision::Allow, false);
        Self { snapshot: RwLock::new(Arc::new(snapshot)), sources: Mutex::default(), revision: AtomicU64::new(0) }
    }
}

impl Policy {
    /// A policy of these rules.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRule`] if two of them have the same id.
    pub fn new(rules: Vec<Rule>, default: Decision) -> Result<Self> {
        let policy = Self::default();
        policy.change(|state| {
            state.default = default;
            insert(&mut state.rules, rules)
        })?;
        Ok(policy)
    }

    /// Adds a rule, and hands it back with its id, which is made if it had none.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRule`] if there is one of that id; then nothing changes.
    pub fn add(&self, rule: Rule) -> Result<Arc<Rule>> {
        self.change(|state| {
            insert(&mut state.rules, vec![rule])?;
            Ok(state.rules[state.rules.len() - 1].clone())
        })
    }

    /// Adds rules, all of them or none.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRule`] if one has the id of another; then nothing changes.
    pub fn extend(&self, rules: Vec<Rule>) -> Result<()> {
        self.change(|state| insert(&mut state.rules, rules))
    }

    /// Takes a rule out, if it is there.
    pub fn remove(&self, id: &str) -> Option<Arc<Rule>> {
        let _writer = self.lock();
        let mut removed = None;
        if self.rule(id).is_some() {
            self.swap(|state| {
                let at = state.rules.iter().position(|rule| rule.id() == id);
                removed = at.map(|at| state.rules.remove(at));
            });
        }
        removed
    }

    /// Puts rules in the place of all that a tier has; they get that tier.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRule`] if one has the id of another; then nothing changes.
    pub fn replace_tier(&self, tier: Tier, mut rules: Vec<Rule>) -> Result<()> {
        for rule in &mut rules {
            rule.tier = tier;
        }
        self.change(|state| {
            state.rules.retain(|rule| rule.tier != tier);
            insert(&mut state.rules, rules)
        })
    }

    /// All rules, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> Vec<Arc<Rule>> {
        self.snapshot().rules.clone()
    }

    /// The rule of an id.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<Arc<Rule>> {
        self.snapshot().rules.iter().find(|rule| rule.id() == id).cloned()
    }

    /// What is done where no rule says anything.
    #[must_use]
    pub fn default_decision(&self) -> Decision {
        self.snapshot().default
    }

    /// Sets what is done where no rule says anything.
    pub fn set_default(&self, default: Decision) {
        let _writer = self.lock();
        self.swap(|state| state.default = default);
    }

    /// Whether the whole policy only tells what it would do.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.snapshot().is_shadow
    }

    /// Makes the whole policy only tell what it would do, or do it again. In shadow mode a tool that wants to be
    /// confirmed still asks, and every other call is allowed.
    pub fn set_shadow(&self, is_shadow: bool) {
        let _writer = self.lock();
        self.swap(|state| state.is_shadow = is_shadow);
    }

    /// A number that grows with every change. Who reads it before a verdict knows until when the verdict holds.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Decides without looking at the arguments, if that can be done.
    #[must_use]
    pub fn quick(&self, subject: &Subject<'_>) -> Quick {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        snapshot.with_plan(subject, |plan| match &plan.fixed {
            Some(verdict) => Quick::Fixed(verdict.clone()),
            None => Quick::NeedsArguments,
        })
    }

    /// Decides about a call.
    #[must_use]
    pub fn decide(&self, subject: &Subject<'_>, arguments: &dyn Arguments) -> Verdict {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        let plan = snapshot.with_plan(subject, |plan| match &plan.fixed {
            Some(verdict) => Err(verdict.clone()),
            None => Ok(plan.clone()),
        });
        // Arguments are asked for when nothing is locked: that may run anything.
        drop(snapshot);
        let plan = match plan {
            Ok(plan) => plan,
            Err(verdict) => return verdict,
        };
        let mut texts = Texts::default();
        let arguments = arguments.value();
        plan.verdict(|rule| rule.misfit_of_arguments(arguments, &mut texts).is_none())
    }

    /// Tells what every rule makes of a call, and which one decides.
    #[must_use]
    pub fn explain(&self, subject: &Subject<'_>, arguments: &dyn Arguments) -> Explanation {
        self.explain_with(subject, arguments, arguments.value())
    }

    /// The same, with other arguments to show than those that are judged: some may be secret.
    #[must_use]
    pub fn explain_with(&self, subject: &Subject<'_>, arguments: &dyn Arguments, shown: &Value) -> Explanation {
        explain(&self.snapshot(), subject, arguments.value(), shown)
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        // The snapshot is replaced in one assignment, so it is whole after any panic.
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes everything at once, or nothing.
    fn change<T>(&self, edit: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let _writer = self.lock();
        let mut state = self.state();
        let done = edit(&mut state)?;
        self.put(state);
        Ok(done)
    }

    /// Changes what cannot go wrong; the caller holds the lock of writers.
    pub(super) fn swap(&self, edit: impl FnOnce(&mut State)) {
        let mut state = self.state();
        edit(&mut state);
        self.put(state);
    }

    fn state(&self) -> State {
        let snapshot = self.snapshot();
        State { rules: snapshot.rules.clone(), default: snapshot.default, is_shadow: snapshot.is_shadow }
    }

    fn put(&self, state: State) {
        let snapshot = Arc::new(Snapshot::new(state.rules, state.default, state.is_shadow));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        // After the rules: who has read the new number sees the new rules.
        self.revision.fetch_add(1, Ordering::Release);
    }
}

/// Adds rules, which get an id if they have none.
pub(super) fn insert(rules: &mut Vec<Arc<Rule>>, new: Vec<Rule>) -> Result<()> {
    let mut ids: HashSet<Arc<str>> = rules.iter().map(|rule| rule.id.clone()).collect();
    // Ids that are given come before those that are made.
    for rule in new.iter().filter(|rule| !rule.id.is_empty()) {
        if !ids.insert(rule.id.clone()) {
            return Err(Error::DuplicateRule { id: rule.id.to_string() });
        }
    }
    let mut number = rules.len();
    for mut rule in new {
        while rule.id.is_empty() {
            number += 1;
            let id: Arc<str> = format!("rule-{number}").into();
            if ids.insert(id.clone()) {
                rule.id = id;
            }
        }
        rules.push(Arc::new(rule));
    }
    Ok(())
}
