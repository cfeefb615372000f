//! The policy: rules that can change at any time, and decisions that always follow one whole state of them.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::explain::{Explanation, explain};
use super::file::Source;
use super::pattern::Texts;
use super::snapshot::Snapshot;
use super::{Arguments, CallFacts, Cause, Decision, Question, Quick, Rule, Tier, Verdict, rfc3339};
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
    shadowed: Mutex<VecDeque<ShadowNote>>,
}

/// How many decisions of shadow mode are kept; the oldest make room.
const SHADOWED: usize = 1000;

/// A decision that shadow mode kept from taking effect.
#[derive(Debug, Clone)]
pub struct ShadowNote {
    /// When it was taken.
    pub time: Timestamp,
    /// The tool's name.
    pub tool: Box<str>,
    /// The caller.
    pub caller: Option<Box<str>>,
    /// The decision that was taken, and the one that shadow mode kept back.
    pub verdict: Verdict,
}

impl ShadowNote {
    /// The note as a JSON object; `None` if both decisions are the same.
    #[must_use]
    pub fn to_value(&self) -> Option<Value> {
        let shadowed = self.verdict.shadowed.as_ref()?;
        Some(json!({
            "time": rfc3339(self.time),
            "tool": self.tool,
            "caller": self.caller,
            "decision": shadowed.decision.as_str(),
            "rule": shadowed.cause.rule().map(|rule| rule.id()),
            "reason": shadowed.reason(),
            "instead": self.verdict.decision.as_str(),
        }))
    }
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
        let snapshot = RwLock::new(Arc::new(snapshot));
        Self { snapshot, sources: Mutex::default(), revision: AtomicU64::new(0), shadowed: Mutex::default() }
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
    pub fn quick(&self, subject: &CallFacts<'_>) -> Quick {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        snapshot.with_plan(subject, |plan| match &plan.fixed {
            Some(verdict) => Quick::Fixed(verdict.clone()),
            None => Quick::NeedsArguments,
        })
    }

    /// Decides about a call.
    #[must_use]
    pub fn decide(&self, subject: &CallFacts<'_>, arguments: &dyn Arguments) -> Verdict {
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
    pub fn explain(&self, subject: &CallFacts<'_>, arguments: &dyn Arguments) -> Explanation {
        self.explain_with(subject, arguments, arguments.value())
    }

    /// The same, with other arguments to show than those that are judged: some may be secret.
    #[must_use]
    pub fn explain_with(&self, subject: &CallFacts<'_>, arguments: &dyn Arguments, shown: &Value) -> Explanation {
        explain(&self.snapshot(), subject, arguments.value(), shown)
    }

    /// Answers what a cause asks about a caller's use of a tool from now on, also after a restart if there is a file of the
    /// user's rules. False if it is not for the user to answer that for good.
    ///
    /// # Errors
    ///
    /// Those of [`remember`](Self::remember); then nothing changes.
    pub fn allow_always(&self, tool: &str, caller: Option<&str>, asked: &Cause) -> Result<bool> {
        if asked.rule().is_some_and(|rule| rule.tier() > Tier::User) {
            return Ok(false);
        }
        let rule = Rule::from_value(&json!({
            "tool": exactly(tool),
            "caller": exactly(caller.unwrap_or_default()),
            "answers": Question::from(asked).to_string(),
            "decision": "allow",
            "tier": "user",
            "reason": "it was allowed for always when somebody was asked",
        }))?;
        self.remember(rule)?;
        Ok(true)
    }

    /// Keeps what would have been decided if nothing were in shadow mode, if that is something else.
    pub fn note_shadow(&self, tool: &str, caller: Option<&str>, verdict: &Verdict, time: Timestamp) {
        if verdict.shadowed.is_none() {
            return;
        }
        let note = ShadowNote { time, tool: tool.into(), caller: caller.map(Box::from), verdict: verdict.clone() };
        let mut shadowed = self.shadowed.lock().unwrap_or_else(PoisonError::into_inner);
        if shadowed.len() >= SHADOWED {
            shadowed.pop_front();
        }
        shadowed.push_back(note);
    }

    /// The last decisions that shadow mode kept from taking effect, oldest first.
    #[must_use]
    pub fn shadowed(&self) -> Vec<ShadowNote> {
        self.shadowed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
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

/// The glob that only this name fits.
fn exactly(name: &str) -> String {
    let mut glob = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(letter);
    }
    glob
}

/// One state of the rules of a toolkit: which policy, and its revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u64);

impl Stamp {
    /// The stamp of a policy's revision; `epoch` counts how often another policy was put in place.
    #[must_use]
    pub const fn new(epoch: u64, revision: u64) -> Self {
        Self(epoch << 32 | revision & 0xFFFF_FFFF)
    }
}

/// Never a stamp.
const NEVER: u64 = u64::MAX;

/// Remembers that a tool may run whatever its arguments are, for a call without a caller, until rules or groups change.
#[derive(Debug)]
pub struct AllowCache {
    /// Counts the changes of the groups of its toolkit, which rules may name.
    groups: Arc<AtomicU64>,
    rules_at: AtomicU64,
    groups_at: AtomicU64,
}

impl AllowCache {
    /// A cache that remembers nothing yet.
    #[must_use]
    pub fn new(groups: Arc<AtomicU64>) -> Self {
        Self { groups, rules_at: AtomicU64::new(NEVER), groups_at: AtomicU64::new(NEVER) }
    }

    /// The cache for another form of the same tool, which is decided about anew.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::new(self.groups.clone())
    }

    /// The state of the groups; to be read before the rules are.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// True if the tool may run by this state of the rules.
    #[inline]
    #[must_use]
    pub fn holds(&self, rules: Stamp) -> bool {
        self.rules_at.load(Ordering::Acquire) == rules.0 && self.groups_at.load(Ordering::Relaxed) == self.groups()
    }

    /// Remembers that the tool may run, by the state of rules and groups at which that was found.
    pub fn allow(&self, rules: Stamp, groups: u64) {
        // Never both new halves of two different answers: between the stores the cache holds for nothing.
        self.rules_at.store(NEVER, Ordering::Relaxed);
        self.groups_at.store(groups, Ordering::Relaxed);
        self.rules_at.store(rules.0, Ordering::Release);
    }
}
