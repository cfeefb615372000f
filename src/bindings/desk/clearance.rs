//! What is remembered of a tool that may run whatever it is called with, so that most calls ask nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Never a stamp.
const NEVER: u64 = u64::MAX;

/// Up to which change of rules and groups a tool may run without a question, for a caller that nobody named.
pub(crate) struct Clearance {
    /// Counts the changes of the groups of its toolkit, which rules may name.
    groups: Arc<AtomicU64>,
    rules_at: AtomicU64,
    groups_at: AtomicU64,
}

impl Clearance {
    pub(crate) fn new(groups: Arc<AtomicU64>) -> Self {
        Self { groups, rules_at: AtomicU64::new(NEVER), groups_at: AtomicU64::new(NEVER) }
    }

    /// The same for another form of the tool, which is judged anew.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.groups.clone())
    }

    /// The state of the groups; to be read before the rules are asked.
    pub(super) fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn holds(&self, rules: u64) -> bool {
        self.rules_at.load(Ordering::Relaxed) == rules
            && self.groups_at.load(Ordering::Relaxed) == self.groups.load(Ordering::Relaxed)
    }

    /// Remembers that the tool may run, by the state of rules and groups at which that was found.
    pub(super) fn note(&self, rules: u64, groups: u64) {
        // In this order: the attached thread that reads sees both or neither, and others do not read.
        self.rules_at.store(rules, Ordering::Relaxed);
        self.groups_at.store(groups, Ordering::Relaxed);
    }
}
