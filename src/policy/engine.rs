//! The policy engine: rules that can change at any time. Each change makes a new [`Snapshot`], which decides about calls.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::explain::{Explanation, explain};
use super::snapshot::Snapshot;
use super::{Arguments, CallFacts, Cause, Decision, PolicyFile, Question, Rule, Tier, Verdict, rfc3339};
use crate::store::Store;
use crate::sync::{lock, read, write};
use crate::{Error, Result};

/// A set of rules, with a default for calls that no rule matches.
///
/// A call is decided by the first rule that matches it. Rules are tried by tier, then by priority; of equal ones those
/// that deny go first, then those that ask. If no rule matches, the stricter of the tool's own permission and the default
/// decides.
///
/// It can be shared between threads. Nothing is locked while arguments are converted.
#[derive(Debug)]
pub struct Policy {
    pub(super) snapshot: RwLock<Arc<Snapshot>>,
    /// The files that were loaded; locked by every change of the policy.
    files: Mutex<Vec<PolicyFile>>,
    /// The store of answers `always`.
    pub(super) answers: Mutex<Option<Store>>,
    revision: AtomicU64,
    shadowed: Mutex<VecDeque<ShadowNote>>,
}

/// The most decisions of shadow mode that are kept; the oldest are dropped.
const MAX_SHADOWED: usize = 1000;

/// A decision that had no effect because of shadow mode.
#[derive(Debug, Clone)]
pub struct ShadowNote {
    /// The time of the decision.
    pub time: Timestamp,
    /// The tool's name.
    pub tool: Box<str>,
    /// The caller.
    pub caller: Option<Box<str>>,
    /// The decision that was taken, with the one without shadow mode.
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

/// The part of a policy that a change edits.
pub(super) struct PolicyState {
    pub(super) rules: Vec<Arc<Rule>>,
    default: Decision,
    is_shadow: bool,
}

impl Default for Policy {
    fn default() -> Self {
        let snapshot = Snapshot::new(Vec::new(), Decision::Allow, false);
        let snapshot = RwLock::new(Arc::new(snapshot));
        Self {
            snapshot,
            files: Mutex::default(),
            answers: Mutex::default(),
            revision: AtomicU64::new(0),
            shadowed: Mutex::default(),
        }
    }
}

impl Policy {
    /// Makes a policy of these rules.
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

    /// Adds a rule, and returns it with its id, which is made if it had none.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRule`] if the id is taken; then nothing changes.
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

    /// Removes a rule, if it exists.
    pub fn remove(&self, id: &str) -> Option<Arc<Rule>> {
        let _writer = self.lock_files();
        let mut removed = None;
        if self.rule(id).is_some() {
            self.swap(|state| {
                let at = state.rules.iter().position(|rule| rule.id() == id);
                removed = at.map(|at| state.rules.remove(at));
            });
        }
        removed
    }

    /// All rules, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> Vec<Arc<Rule>> {
        self.snapshot().rules.clone()
    }

    /// Finds a rule by its id.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<Arc<Rule>> {
        self.snapshot().rules.iter().find(|rule| rule.id() == id).cloned()
    }

    /// The decision for calls that no rule matches.
    #[must_use]
    pub fn default_decision(&self) -> Decision {
        self.snapshot().default
    }

    /// Sets the decision for calls that no rule matches.
    pub fn set_default(&self, default: Decision) {
        let _writer = self.lock_files();
        self.swap(|state| state.default = default);
    }

    /// True if the whole policy is in shadow mode.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.snapshot().is_shadow
    }

    /// Switches shadow mode of the whole policy, in which it only reports its decisions. A tool whose permission is to confirm
    /// still asks, and every other call is allowed.
    pub fn set_shadow(&self, is_shadow: bool) {
        let _writer = self.lock_files();
        self.swap(|state| state.is_shadow = is_shadow);
    }

    /// A number that grows with every change. A verdict holds as long as the number that was read before it.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Explains a decision: the outcome of every rule, and the one that decides.
    #[must_use]
    pub fn explain(&self, facts: &CallFacts<'_>, arguments: &dyn Arguments) -> Explanation {
        self.explain_with(facts, arguments, arguments.value())
    }

    /// Explains a decision with redacted arguments: `shown` are the arguments that the explanation may quote.
    #[must_use]
    pub fn explain_with(&self, facts: &CallFacts<'_>, arguments: &dyn Arguments, shown: &Value) -> Explanation {
        explain(&self.snapshot(), facts, arguments.value(), shown)
    }

    /// Adds a lasting approval of a tool for a caller, as the answer to the question of a cause; it survives a restart if a file
    /// of the user's tier is loaded. False if a stronger tier than the user's asks, which a user may not answer permanently.
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
            "reason": "an approver allowed it for always",
        }))?;
        self.remember(rule)?;
        Ok(true)
    }

    /// Records a verdict whose decision differs without shadow mode.
    pub fn note_shadow(&self, tool: &str, caller: Option<&str>, verdict: &Verdict, time: Timestamp) {
        if verdict.shadowed.is_none() {
            return;
        }
        let note = ShadowNote { time, tool: tool.into(), caller: caller.map(Box::from), verdict: verdict.clone() };
        let mut shadowed = lock(&self.shadowed);
        if shadowed.len() >= MAX_SHADOWED {
            shadowed.pop_front();
        }
        shadowed.push_back(note);
    }

    /// The latest decisions that had no effect because of shadow mode, oldest first.
    #[must_use]
    pub fn shadowed(&self) -> Vec<ShadowNote> {
        lock(&self.shadowed).iter().cloned().collect()
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        read(&self.snapshot).clone()
    }

    pub(super) fn lock_files(&self) -> MutexGuard<'_, Vec<PolicyFile>> {
        lock(&self.files)
    }

    /// Applies a change as a whole, or not at all.
    fn change<T>(&self, edit: impl FnOnce(&mut PolicyState) -> Result<T>) -> Result<T> {
        let _writer = self.lock_files();
        let mut state = self.state();
        let done = edit(&mut state)?;
        self.put(state);
        Ok(done)
    }

    /// Applies a change that cannot fail; the caller holds the lock of `files`.
    pub(super) fn swap(&self, edit: impl FnOnce(&mut PolicyState)) {
        let mut state = self.state();
        edit(&mut state);
        self.put(state);
    }

    fn state(&self) -> PolicyState {
        let snapshot = self.snapshot();
        PolicyState { rules: snapshot.rules.clone(), default: snapshot.default, is_shadow: snapshot.is_shadow }
    }

    fn put(&self, state: PolicyState) {
        let snapshot = Arc::new(Snapshot::new(state.rules, state.default, state.is_shadow));
        *write(&self.snapshot) = snapshot;
        // After the rules: a thread that has read the new number sees the new rules.
        self.revision.fetch_add(1, Ordering::Release);
    }
}

/// Adds rules; those without an id get one.
pub(super) fn insert(rules: &mut Vec<Arc<Rule>>, new: Vec<Rule>) -> Result<()> {
    let mut ids: HashSet<Arc<str>> = rules.iter().map(|rule| rule.id.clone()).collect();
    // Given ids take precedence over generated ones.
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

/// The glob that matches only this name.
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

/// The state of the rules of a toolkit: which policy, and its revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyStamp(u64);

impl PolicyStamp {
    /// Makes the stamp of a policy's revision; `epoch` counts how often the policy was replaced.
    #[must_use]
    pub const fn new(epoch: u64, revision: u64) -> Self {
        Self(epoch << 32 | revision & 0xFFFF_FFFF)
    }

    /// The stamp as a number; no two states of the rules of a toolkit have the same.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A value that no stamp has.
const NEVER: u64 = u64::MAX;

/// A cache of the decision that a tool may run with any arguments and without a caller, until rules or groups change.
#[derive(Debug)]
pub struct AllowCache {
    /// The number of changes to the groups of its toolkit, which rules may name.
    groups: Arc<AtomicU64>,
    rules_at: AtomicU64,
    groups_at: AtomicU64,
}

impl AllowCache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new(groups: Arc<AtomicU64>) -> Self {
        Self { groups, rules_at: AtomicU64::new(NEVER), groups_at: AtomicU64::new(NEVER) }
    }

    /// Makes an empty cache for another form of the same tool.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::new(self.groups.clone())
    }

    /// The state of the groups; read it before the rules.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// True if the tool may run under this state of the rules.
    #[inline]
    #[must_use]
    pub fn holds(&self, rules: PolicyStamp) -> bool {
        self.rules_at.load(Ordering::Acquire) == rules.0 && self.groups_at.load(Ordering::Relaxed) == self.groups()
    }

    /// Stores that the tool may run under this state of rules and groups.
    pub fn allow(&self, rules: PolicyStamp, groups: u64) {
        // Never the halves of two different entries: between the stores the cache is invalid.
        self.rules_at.store(NEVER, Ordering::Relaxed);
        self.groups_at.store(groups, Ordering::Relaxed);
        self.rules_at.store(rules.0, Ordering::Release);
    }
}
