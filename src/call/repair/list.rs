//! The list of repairs, short enough to be read.

use crate::call::{Change, Repair, RepairKind};
use crate::schema::check::ValuePath;

/// How many different repairs are listed.
const MOST: usize = 50;

/// The repairs so far; the same repair at many places is one entry with a count.
#[derive(Debug, Default)]
pub(super) struct List {
    entries: Vec<Repair>,
    left_out: usize,
}

impl List {
    /// Adds a repair that shows no value.
    pub(super) fn add(&mut self, what: RepairKind, at: impl Into<ValuePath>, text: &'static str) {
        self.push(what, at, Change::Said(text.into()));
    }

    pub(super) fn push(&mut self, what: RepairKind, at: impl Into<ValuePath>, change: Change) {
        if self.counts(what, &change) {
            return;
        }
        if self.entries.len() < MOST {
            self.entries.push(Repair::of(what, change).at(at));
        } else {
            self.left_out += 1;
        }
    }

    /// Counts one more of an entry that is there already, so that its other places need not be listed.
    pub(super) fn counts(&mut self, what: RepairKind, change: &Change) -> bool {
        let known = self.entries.iter_mut().find(|repair| repair.what == what && repair.change == *change);
        known.map(|repair| repair.times += 1).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn into_repairs(self) -> Vec<Repair> {
        let mut repairs = self.entries;
        if self.left_out > 0 {
            repairs.push(Repair::new(RepairKind::Syntax, format!("and {} more", self.left_out)));
        }
        repairs
    }
}
