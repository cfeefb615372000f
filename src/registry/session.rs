//! Sessions: one conversation over a shared registry, with its own group switches, run-wide approvals, limits and counters.
//!
//! A session holds no tools. It is part of a [`View`](super::View), and keeps only what differs from the registry: the
//! groups that were switched through it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Map, Value, json};

use super::{BASIC, Group, Registry};
use crate::agent::{Exhausted, Lineage};
use crate::policy::Grants;
use crate::store::FileFormat;
use crate::sync::lock;

/// The groups that were switched through a session, sorted by name.
type Switches = Vec<(Arc<str>, bool)>;

/// One conversation over a shared registry.
///
/// It can be shared between threads. Groups that were not switched through it are as active as the registry has them.
#[derive(Debug)]
pub struct Session {
    id: Arc<str>,
    switches: Mutex<Switches>,
    /// True if there is a switch, so that the others need no lock.
    is_switched: AtomicBool,
    revision: AtomicU64,
    limits: AtomicLimits,
    /// The counters of this run.
    calls: AtomicU64,
    tokens: AtomicU64,
    /// The counters of earlier runs.
    earlier_calls: AtomicU64,
    earlier_tokens: AtomicU64,
    /// The failures in a row of each tool that failed last.
    failures: Mutex<BTreeMap<Box<str>, u64>>,
    grants: Grants,
    /// The run of the agent that the session belongs to.
    lineage: Option<Arc<Lineage>>,
    /// The session whose call this one is a part of, and for whose limits its calls count, too.
    outer: Option<Arc<Self>>,
}

/// Limits of one run; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SessionLimits {
    /// The number of calls that may run, whether they succeed or not.
    pub calls: Option<u64>,
    /// The number of times that a tool may be called again after a failure, until it succeeds.
    pub retries: Option<u64>,
    /// The number of tokens that the program has [reported](Session::add_tokens).
    pub tokens: Option<u64>,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// No call is left of this number.
    Calls(u64),
    /// No token is left of this number.
    Tokens(u64),
    /// The tool has failed this many times in a row.
    Retries(u64),
    /// A part of the budget that a tree of agents shares is used up.
    Budget(Exhausted),
}

/// The counters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SessionUsage {
    /// The calls of this run.
    pub calls: u64,
    /// The tokens of this run.
    pub tokens: u64,
    /// The calls of all runs.
    pub total_calls: u64,
    /// The tokens of all runs.
    pub total_tokens: u64,
    /// The failures in a row of each tool that failed last; counted only while retries are limited.
    pub failures: BTreeMap<Box<str>, u64>,
}

/// The groups that are active at one moment.
pub(super) enum Activity<'a> {
    /// As active as the registry has them.
    Registry,
    /// As the switches of a session say, and otherwise as the registry has them.
    Session(MutexGuard<'a, Switches>),
    /// All of them.
    All,
}

impl<'a> Activity<'a> {
    /// The switches of a session, or of none.
    #[inline]
    pub(super) fn of(session: Option<&'a Session>) -> Self {
        match session.filter(|session| session.is_switched.load(Ordering::Relaxed)) {
            None => Self::Registry,
            Some(session) => Self::Session(lock(&session.switches)),
        }
    }

    /// True if a group is active.
    #[inline]
    pub(super) fn has(&self, group: &Group) -> bool {
        match self {
            Self::Registry => group.is_active(),
            Self::Session(switches) => switch_of(switches, group.name()).unwrap_or_else(|| group.is_active()),
            Self::All => true,
        }
    }
}

fn switch_of(switches: &Switches, name: &str) -> Option<bool> {
    let place = switches.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
    Some(switches[place].1)
}

impl Session {
    /// Makes a session without switches.
    #[must_use]
    pub fn new(id: &str, limits: SessionLimits) -> Self {
        Self {
            id: id.into(),
            switches: Mutex::default(),
            is_switched: AtomicBool::new(false),
            revision: AtomicU64::new(0),
            limits: AtomicLimits::new(limits),
            calls: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            earlier_calls: AtomicU64::new(0),
            earlier_tokens: AtomicU64::new(0),
            failures: Mutex::default(),
            grants: Grants::default(),
            lineage: None,
            outer: None,
        }
    }

    /// The session of an agent that was called in another one, whose limits its calls count for, too.
    #[must_use]
    pub fn within(self, outer: Option<Arc<Self>>) -> Self {
        Self { outer, ..self }
    }

    /// The sessions around this one, from the innermost.
    fn around(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.outer.as_deref(), |session| session.outer.as_deref())
    }

    /// The session of the run of an agent: its calls and tokens also count for the budget of the tree.
    #[must_use]
    pub fn of_agent(self, lineage: Arc<Lineage>) -> Self {
        Self { lineage: Some(lineage), ..self }
    }

    /// The run of the agent that the session belongs to.
    #[must_use]
    pub fn lineage(&self) -> Option<&Arc<Lineage>> {
        self.lineage.as_ref()
    }

    /// Takes over the group switches of another session.
    pub fn copy_switches(&self, other: &Self) {
        if other.has_switches() {
            let copied = lock(&other.switches).clone();
            let mut switches = lock(&self.switches);
            *switches = copied;
            self.note_switches(&switches);
        }
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The approvals for this run, and the questions that wait.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// True if a group is active in this session.
    #[must_use]
    pub fn is_active(&self, group: &Group) -> bool {
        Activity::of(Some(self)).has(group)
    }

    /// True if a group was switched through this session.
    #[must_use]
    pub fn has_switches(&self) -> bool {
        self.is_switched.load(Ordering::Relaxed)
    }

    /// Switches groups for this session only; the basic group is always active.
    pub fn switch<'a>(&self, groups: impl IntoIterator<Item = (&'a Group, bool)>) {
        let mut switches = lock(&self.switches);
        for (group, active) in groups.into_iter().filter(|(group, _)| group.name() != BASIC) {
            match switches.binary_search_by(|(known, _)| (**known).cmp(group.name())) {
                Ok(place) => switches[place].1 = active,
                Err(place) => switches.insert(place, (group.shared_name().clone(), active)),
            }
        }
        self.note_switches(&switches);
    }

    /// Forgets the switches of groups that a registry does not have any more.
    pub(super) fn forget_unknown<B>(&self, registry: &Registry<B>) {
        let mut switches = lock(&self.switches);
        switches.retain(|(name, _)| registry.groups.get(name).is_some());
        self.note_switches(&switches);
    }

    fn note_switches(&self, switches: &Switches) {
        self.is_switched.store(!switches.is_empty(), Ordering::Relaxed);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever a group is switched.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> SessionLimits {
        self.limits.get()
    }

    /// Sets the limits; the counters stay.
    pub fn set_limits(&self, limits: SessionLimits) {
        self.limits.set(limits);
    }

    /// True if failures are counted, because retries are limited.
    #[inline]
    #[must_use]
    pub fn counts_failures(&self) -> bool {
        self.limits.retries.load(Ordering::Relaxed) != UNLIMITED
    }

    /// The counters.
    #[must_use]
    pub fn usage(&self) -> SessionUsage {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (calls, tokens) = (load(&self.calls), load(&self.tokens));
        SessionUsage {
            calls,
            tokens,
            total_calls: load(&self.earlier_calls).saturating_add(calls),
            total_tokens: load(&self.earlier_tokens).saturating_add(tokens),
            failures: lock(&self.failures).clone(),
        }
    }

    /// Refuses a call of a tool if a limit is reached; nothing is counted.
    ///
    /// # Errors
    ///
    /// The limit.
    #[inline]
    pub fn may_call(&self, tool: &str) -> Result<(), LimitReached> {
        self.has_calls()?;
        self.has_tokens()?;
        if self.outer.is_some() {
            self.around().try_for_each(|session| session.has_calls().and_then(|()| session.has_tokens()))?;
        }
        if self.counts_failures() { self.may_retry(tool) } else { Ok(()) }
    }

    #[inline]
    fn has_calls(&self) -> Result<(), LimitReached> {
        let limit = self.limits.calls.load(Ordering::Relaxed);
        if self.calls.load(Ordering::Relaxed) >= limit { Err(LimitReached::Calls(limit)) } else { Ok(()) }
    }

    #[inline]
    fn has_tokens(&self) -> Result<(), LimitReached> {
        let limit = self.limits.tokens.load(Ordering::Relaxed);
        if self.tokens.load(Ordering::Relaxed) >= limit {
            return Err(LimitReached::Tokens(limit));
        }
        match &self.lineage {
            Some(lineage) => lineage.budget().has_tokens().map_err(LimitReached::Budget),
            None => Ok(()),
        }
    }

    #[cold]
    fn may_retry(&self, tool: &str) -> Result<(), LimitReached> {
        let failed = lock(&self.failures).get(tool).copied().unwrap_or_default();
        if failed > self.limits.retries.load(Ordering::Relaxed) { Err(LimitReached::Retries(failed)) } else { Ok(()) }
    }

    /// Counts a call that is about to run. However many calls run at once, no more are let through than the limit has.
    ///
    /// # Errors
    ///
    /// The limit that is reached; then nothing is counted.
    #[inline]
    pub fn count_call(&self) -> Result<(), LimitReached> {
        self.take_call()?;
        if self.lineage.is_none() && self.outer.is_none() { Ok(()) } else { self.count_around() }
    }

    #[inline]
    fn take_call(&self) -> Result<(), LimitReached> {
        let limit = self.limits.calls.load(Ordering::Relaxed);
        let next = |calls: u64| (calls < limit).then(|| calls + 1);
        let counted = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        counted.map(drop).map_err(|_| LimitReached::Calls(limit))
    }

    fn return_call(&self) {
        // The run may have ended since, with its counters.
        let _ = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1));
    }

    /// Counts a call for the sessions around this one and for the budget of the tree, or for none of them.
    #[cold]
    fn count_around(&self) -> Result<(), LimitReached> {
        let refused = self.around().enumerate().find_map(|(at, session)| Some((at, session.take_call().err()?)));
        let (counted, limit) = match (refused, &self.lineage) {
            (Some((counted, limit)), _) => (counted, limit),
            (None, None) => return Ok(()),
            (None, Some(lineage)) => match lineage.budget().take_call() {
                Ok(()) => return Ok(()),
                Err(exhausted) => (usize::MAX, LimitReached::Budget(exhausted)),
            },
        };
        self.return_call();
        self.around().take(counted).for_each(Self::return_call);
        Err(limit)
    }

    /// Counts the result of a call of a tool. Returns the limit if the tool may not be called again.
    pub fn count_result(&self, tool: &str, failed: bool) -> Option<LimitReached> {
        let mut failures = lock(&self.failures);
        if !failed {
            failures.remove(tool);
            return None;
        }
        let count = failures.entry(tool.into()).or_default();
        *count = count.saturating_add(1);
        (*count > self.limits.retries.load(Ordering::Relaxed)).then_some(LimitReached::Retries(*count))
    }

    /// Counts tokens that the program has used for this session.
    pub fn add_tokens(&self, tokens: u64) {
        add(&self.tokens, tokens);
        if let Some(lineage) = &self.lineage {
            lineage.budget().add_tokens(tokens);
        }
    }

    /// Counts tokens that agents below this session have used, and that their budget has counted.
    pub fn count_below(&self, tokens: u64) {
        add(&self.tokens, tokens);
    }

    /// Ends the run: approvals for the run are revoked, and the counters of the limits begin again.
    pub fn end_run(&self) {
        self.grants.forget();
        add(&self.earlier_calls, self.calls.swap(0, Ordering::Relaxed));
        add(&self.earlier_tokens, self.tokens.swap(0, Ordering::Relaxed));
        lock(&self.failures).clear();
    }

    /// The part of the session that is saved; `state` are values of the program.
    #[must_use]
    pub fn saved(&self, caller: Option<&str>, state: Map<String, Value>) -> SessionState {
        let groups = lock(&self.switches).iter().map(|(name, active)| (name.clone(), *active)).collect();
        SessionState { id: self.id.to_string(), caller: caller.map(str::to_owned), groups, usage: self.usage(), state }
    }

    /// Restores the switches and the counters of a saved session. Approvals for the run are revoked.
    pub fn restore(&self, saved: &SessionState) {
        let mut groups: Switches = saved.groups.iter().filter(|(name, _)| **name != *BASIC).cloned().collect();
        groups.sort();
        let mut switches = lock(&self.switches);
        *switches = groups;
        self.note_switches(&switches);
        drop(switches);
        let SessionUsage { calls, tokens, total_calls, total_tokens, failures } = &saved.usage;
        let store = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        store(&self.calls, *calls);
        store(&self.tokens, *tokens);
        store(&self.earlier_calls, total_calls.saturating_sub(*calls));
        store(&self.earlier_tokens, total_tokens.saturating_sub(*tokens));
        lock(&self.failures).clone_from(failures);
        self.grants.forget();
    }
}

/// Adds to a counter, which stays at its maximum.
fn add(counter: &AtomicU64, amount: u64) {
    // The closure always returns a value.
    let _ = counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_add(amount).min(MOST)));
}

/// The value for no limit.
const UNLIMITED: u64 = u64::MAX;
/// The highest value of a limit or counter, which stays below the value for no limit.
const MOST: u64 = u64::MAX - 1;

/// Limits that can be changed while calls run.
struct AtomicLimits {
    calls: AtomicU64,
    retries: AtomicU64,
    tokens: AtomicU64,
}

impl AtomicLimits {
    fn new(limits: SessionLimits) -> Self {
        let limit = |limit: Option<u64>| AtomicU64::new(limit.map_or(UNLIMITED, |limit| limit.min(MOST)));
        Self { calls: limit(limits.calls), retries: limit(limits.retries), tokens: limit(limits.tokens) }
    }

    fn get(&self) -> SessionLimits {
        let limit = |limit: &AtomicU64| Some(limit.load(Ordering::Relaxed)).filter(|limit| *limit != UNLIMITED);
        SessionLimits { calls: limit(&self.calls), retries: limit(&self.retries), tokens: limit(&self.tokens) }
    }

    fn set(&self, limits: SessionLimits) {
        let Self { calls, retries, tokens } = Self::new(limits);
        let pairs = [(&self.calls, calls), (&self.retries, retries), (&self.tokens, tokens)];
        for (limit, new) in pairs {
            limit.store(new.into_inner(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for AtomicLimits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}

/// The format of a saved session.
pub const SESSION_FORMAT: FileFormat = FileFormat { name: "toolcrib-session", version: 1, limit: 16 * 1024 * 1024 };

/// The saved part of a session. Its filters, limits and approvals are not among it: they are the program's to set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionState {
    /// The id of the session.
    pub id: String,
    /// The caller.
    pub caller: Option<String>,
    /// The groups that were switched through the session.
    pub groups: Vec<(Arc<str>, bool)>,
    /// The counters.
    pub usage: SessionUsage,
    /// The values of the program.
    pub state: Map<String, Value>,
}

impl SessionState {
    /// Converts the state to the value that is saved.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let groups: Map<String, Value> =
            self.groups.iter().map(|(name, active)| (name.to_string(), (*active).into())).collect();
        let failures: Map<String, Value> =
            self.usage.failures.iter().map(|(tool, count)| (tool.to_string(), (*count).into())).collect();
        json!({
            "id": self.id,
            "caller": self.caller,
            "groups": groups,
            "usage": {
                "calls": self.usage.calls,
                "tokens": self.usage.tokens,
                "total_calls": self.usage.total_calls,
                "total_tokens": self.usage.total_tokens,
                "failures": failures,
            },
            "state": self.state,
        })
    }

    /// Parses a saved state.
    ///
    /// # Errors
    ///
    /// A clause for the developer. An unknown entry is an error, too: its writer relied on it.
    pub fn from_value(value: Value) -> Result<Self, String> {
        let Value::Object(mut entries) = value else { return Err("its state is not an object".to_owned()) };
        let mut take = |key: &str| entries.shift_remove(key).ok_or_else(|| format!("its state has no `{key}`"));
        let (id, caller, groups) = (take("id")?, take("caller")?, take("groups")?);
        let (usage, state) = (take("usage")?, take("state")?);
        if let Some(key) = entries.keys().next() {
            return Err(format!("its state has an unknown entry `{key}`"));
        }
        let groups = object("groups", groups)?.into_iter().map(|(name, active)| match active {
            Value::Bool(active) => Ok((name.into(), active)),
            _ => Err(format!("the switch of its group `{name}` is not true or false")),
        });
        Ok(Self {
            id: match id {
                Value::String(id) if !id.is_empty() => id,
                _ => return Err("its `id` is not a text".to_owned()),
            },
            caller: match caller {
                Value::Null => None,
                Value::String(caller) => Some(caller),
                _ => return Err("its `caller` is not a text".to_owned()),
            },
            groups: groups.collect::<Result<_, _>>()?,
            usage: read_usage(usage)?,
            state: object("state", state)?,
        })
    }
}

fn object(key: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(entries) => Ok(entries),
        _ => Err(format!("its `{key}` is not an object")),
    }
}

fn read_usage(value: Value) -> Result<SessionUsage, String> {
    let mut entries = object("usage", value)?;
    let count = |key: &str, value: Option<Value>| {
        value.and_then(|value| value.as_u64()).ok_or_else(|| format!("its usage has no number `{key}`"))
    };
    let mut take = |key: &str| count(key, entries.shift_remove(key));
    let (calls, tokens) = (take("calls")?, take("tokens")?);
    let (total_calls, total_tokens) = (take("total_calls")?, take("total_tokens")?);
    let failures = object("failures", entries.shift_remove("failures").unwrap_or_default())?;
    if let Some(key) = entries.keys().next() {
        return Err(format!("its usage has an unknown entry `{key}`"));
    }
    let failures = failures.into_iter().map(|(tool, value)| Ok((tool.as_str().into(), count(&tool, Some(value))?)));
    Ok(SessionUsage { calls, tokens, total_calls, total_tokens, failures: failures.collect::<Result<_, String>>()? })
}
