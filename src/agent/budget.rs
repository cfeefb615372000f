//! The budget of a tree of agents: turns, calls and tokens that the outermost agent and all agents below it share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limits of a budget; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BudgetLimits {
    /// The turns of all agents.
    pub turns: Option<u64>,
    /// The tool calls of all agents.
    pub calls: Option<u64>,
    /// The tokens of all agents.
    pub tokens: Option<u64>,
}

impl Default for BudgetLimits {
    /// High enough for any sensible tree, and low enough to end a runaway one.
    fn default() -> Self {
        Self { turns: Some(1_000), calls: Some(10_000), tokens: None }
    }
}

/// A part of a budget that is used up, with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The turns.
    Turns(u64),
    /// The calls.
    Calls(u64),
    /// The tokens.
    Tokens(u64),
}

impl fmt::Display for Exhausted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, unit) = match self {
            Self::Turns(limit) => (limit, "turns"),
            Self::Calls(limit) => (limit, "tool calls"),
            Self::Tokens(limit) => (limit, "tokens"),
        };
        write!(formatter, "The total budget of {limit} {unit} for this agent and its sub-agents is used up.")
    }
}

/// The used part of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUse {
    /// The turns.
    pub turns: u64,
    /// The calls.
    pub calls: u64,
    /// The tokens.
    pub tokens: u64,
}

/// A budget that many runs share, in any thread. However many take from it at once, it never gives more than its limits.
#[derive(Debug)]
pub struct Budget {
    limits: BudgetLimits,
    turns: AtomicU64,
    calls: AtomicU64,
    tokens: AtomicU64,
}

impl Budget {
    /// Makes a budget of which nothing is used.
    #[must_use]
    pub const fn new(limits: BudgetLimits) -> Self {
        Self { limits, turns: AtomicU64::new(0), calls: AtomicU64::new(0), tokens: AtomicU64::new(0) }
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// The used part.
    #[must_use]
    pub fn used(&self) -> BudgetUse {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BudgetUse { turns: load(&self.turns), calls: load(&self.calls), tokens: load(&self.tokens) }
    }

    /// Takes a turn of an agent: one request to its model.
    ///
    /// # Errors
    ///
    /// The part that is used up; then nothing is taken.
    pub fn take_turn(&self) -> Result<(), Exhausted> {
        self.has_tokens()?;
        take(&self.turns, self.limits.turns).map_err(Exhausted::Turns)
    }

    /// Takes a call of a tool.
    ///
    /// # Errors
    ///
    /// The part that is used up; then nothing is taken.
    pub fn take_call(&self) -> Result<(), Exhausted> {
        self.has_tokens()?;
        take(&self.calls, self.limits.calls).map_err(Exhausted::Calls)
    }

    /// Returns a call that was taken and did not run.
    pub fn return_call(&self) {
        // There is nothing to return before a call is taken.
        let _ = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1));
    }

    /// Counts tokens, which are used already: they may exceed the limit.
    pub fn add_tokens(&self, tokens: u64) {
        let add = |used: u64| Some(used.saturating_add(tokens));
        // The closure always returns a value.
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Refuses if there are no tokens left.
    ///
    /// # Errors
    ///
    /// The limit of the tokens.
    pub fn has_tokens(&self) -> Result<(), Exhausted> {
        match self.limits.tokens {
            Some(limit) if self.tokens.load(Ordering::Relaxed) >= limit => Err(Exhausted::Tokens(limit)),
            _ => Ok(()),
        }
    }
}

/// Takes one from a counter with a limit.
fn take(counter: &AtomicU64, limit: Option<u64>) -> Result<(), u64> {
    let most = limit.unwrap_or(u64::MAX);
    let next = |used: u64| (used < most).then(|| used.saturating_add(1));
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map(drop).map_err(|_| most)
}
