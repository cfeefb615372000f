//! The lineage of a run: the agents that called each other, from the outermost one to the one that runs.

use std::fmt;
use std::iter::successors;
use std::sync::Arc;

use super::budget::{Budget, BudgetLimits};

/// The limits of the tree of runs below an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// The most agents in a path, with this one.
    pub depth: usize,
    /// The budget that all runs share. That of the outermost agent applies.
    pub budget: BudgetLimits,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { depth: 5, budget: BudgetLimits::default() }
    }
}

/// The place of a run in a tree of agents.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib::agent::{Lineage, Refusal, TreeLimits};
///
/// let limits = TreeLimits { depth: 2, ..TreeLimits::default() };
/// let planner = Lineage::enter(None, "planner", limits)?;
/// let searcher = Lineage::enter(Some(&planner), "searcher", limits)?;
///
/// assert_eq!(searcher.path(), ["planner".into(), "searcher".into()]);
/// assert!(matches!(Lineage::enter(Some(&searcher), "reader", limits), Err(Refusal::TooDeep { limit: 2, .. })));
/// # Ok::<(), Refusal>(())
/// ```
#[derive(Debug)]
pub struct Lineage {
    agent: Arc<str>,
    caller: Option<Arc<Lineage>>,
    depth: usize,
    /// The depth that no run of the tree may exceed.
    deepest: usize,
    budget: Arc<Budget>,
}

impl Lineage {
    /// Begins the run of an agent, called by the run of another one or from outside.
    ///
    /// # Errors
    ///
    /// If the agent is among its own callers, or too deep below the outermost one.
    pub fn enter(
        caller: Option<&Arc<Self>>,
        agent: impl Into<Arc<str>>,
        limits: TreeLimits,
    ) -> Result<Arc<Self>, Refusal> {
        let agent = agent.into();
        let (above, deepest) = caller.map_or((0, usize::MAX), |caller| (caller.depth, caller.deepest));
        let deepest = deepest.min(above.saturating_add(limits.depth));
        let path = || caller.map(|caller| caller.path()).unwrap_or_default();
        if caller.is_some_and(|caller| caller.has(&agent)) {
            return Err(Refusal::Cycle { path: path(), agent });
        }
        if above >= deepest {
            return Err(Refusal::TooDeep { path: path(), agent, limit: deepest });
        }
        let budget = caller.map_or_else(|| Arc::new(Budget::new(limits.budget)), |caller| caller.budget.clone());
        Ok(Arc::new(Self { agent, caller: caller.cloned(), depth: above + 1, deepest, budget }))
    }

    /// The name of the agent that runs.
    #[must_use]
    pub fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// The run that called this one.
    #[must_use]
    pub fn caller(&self) -> Option<&Arc<Self>> {
        self.caller.as_ref()
    }

    /// The number of agents in the path, with this one.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The budget that it shares with the other runs of the tree.
    #[must_use]
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The names of the agents, from the outermost one to this one.
    #[must_use]
    pub fn path(&self) -> Vec<Arc<str>> {
        let mut path: Vec<_> = self.upwards().map(|run| run.agent.clone()).collect();
        path.reverse();
        path
    }

    /// True if an agent is in the path.
    #[must_use]
    pub fn has(&self, agent: &str) -> bool {
        self.upwards().any(|run| *run.agent == *agent)
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |run| run.caller.as_deref())
    }
}

/// The reason why an agent may not be called. Its text is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The agent is among its own callers.
    Cycle {
        /// The callers, from the outermost one.
        path: Vec<Arc<str>>,
        /// The agent.
        agent: Arc<str>,
    },
    /// Too many agents have called each other.
    TooDeep {
        /// The callers, from the outermost one.
        path: Vec<Arc<str>>,
        /// The agent.
        agent: Arc<str>,
        /// The most agents in a path.
        limit: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Cycle { path, agent } | Self::TooDeep { path, agent, .. }) = self;
        let path: Vec<&str> = path.iter().chain([agent]).map(|name| &**name).collect();
        let path = path.join(" → ");
        match self {
            Self::Cycle { .. } => {
                write!(formatter, "The agent '{agent}' cannot be called by itself ({path}): do this part yourself.")
            }
            Self::TooDeep { limit, .. } => write!(
                formatter,
                "The agent '{agent}' cannot be called here, because at most {limit} agents may call each other ({path}): \
                 do this part yourself."
            ),
        }
    }
}
