//! A named set of tools that is on or off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Revision;

/// The name of the group that every toolkit has and that is always on.
pub const BASIC: &str = "basic";

/// A named set of tools, with a description for the model and notes on how to use them.
#[derive(Debug)]
pub struct Group {
    name: String,
    active: AtomicBool,
    texts: Mutex<Texts>,
    revision: Revision,
}

#[derive(Debug, Clone)]
struct Texts {
    description: String,
    notes: Option<String>,
}

impl Group {
    pub(crate) fn new(name: &str, active: bool, description: &str, notes: Option<String>, revision: Revision) -> Self {
        Self {
            name: name.to_owned(),
            active: AtomicBool::new(active),
            texts: Mutex::new(Texts { description: description.to_owned(), notes }),
            revision,
        }
    }

    pub(super) fn basic(revision: Revision) -> Self {
        Self::new(BASIC, true, "", None, revision)
    }

    /// The name, unique in its toolkit.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts the changes of the registry it belongs to.
    pub fn revision(&self) -> &Arc<AtomicU64> {
        &self.revision
    }

    /// Whether its tools are shown to the model and may be called.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// Switches the group on or off.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Relaxed);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// What the group is for, told to the model.
    pub fn description(&self) -> String {
        self.texts().description.clone()
    }

    /// Says anew what the group is for.
    pub fn set_description(&self, description: String) {
        self.texts().description = description;
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// How to use the tools of the group, told to the model while it is on.
    pub fn notes(&self) -> Option<String> {
        self.texts().notes.clone()
    }

    /// Says anew how to use the tools of the group.
    pub fn set_notes(&self, notes: Option<String>) {
        self.texts().notes = notes;
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        // Both fields are whole after any panic: each is replaced in one assignment.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
