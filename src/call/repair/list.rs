//! The list of what was mended, short enough to be read.

use crate::call::{Repair, RepairKind};

/// How many different things are listed.
const MOST: usize = 50;

/// What was mended so far; the same thing at many places is one entry with a count.
#[derive(Debug, Default)]
pub(super) struct List {
    entries: Vec<(Repair, usize)>,
    left_out: usize,
}

impl List {
    pub(super) fn add(&mut self, what: RepairKind, at: &str, text: &str) {
        if self.counts(what, text) {
            return;
        }
        if self.entries.len() < MOST {
            self.entries.push((Repair::new(what, text).at(at), 1));
        } else {
            self.left_out += 1;
        }
    }

    /// Counts one more of an entry that is there already, so that where else it is need not be told.
    pub(super) fn counts(&mut self, what: RepairKind, text: &str) -> bool {
        let known = self.entries.iter_mut().find(|(repair, _)| repair.what == what && repair.text == text);
        known.map(|(_, count)| *count += 1).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn into_repairs(self) -> Vec<Repair> {
        let counted = self.entries.into_iter().map(|(mut repair, count)| {
            if count > 1 {
                repair.text = format!("{} ({count} times)", repair.text);
            }
            repair
        });
        let mut repairs: Vec<Repair> = counted.collect();
        if self.left_out > 0 {
            repairs.push(Repair::new(RepairKind::Syntax, format!("and {} more", self.left_out)));
        }
        repairs
    }
}
