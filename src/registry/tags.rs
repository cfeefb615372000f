//! Tags: sets of tools that nobody described and nobody switches.

use std::collections::HashMap;

use indexmap::IndexSet;

/// The tools of each tag.
#[derive(Debug, Default)]
pub(super) struct Tags(HashMap<Box<str>, IndexSet<Box<str>, ahash::RandomState>, ahash::RandomState>);

impl Tags {
    /// The names of the tools that carry a tag, in the order they got it.
    pub(super) fn tools(&self, tag: &str) -> impl ExactSizeIterator<Item = &str> {
        self.0.get(tag).map(|names| names.iter()).unwrap_or_default().map(|name| &**name)
    }

    pub(super) fn put(&mut self, name: &str, tags: &[Box<str>]) {
        for tag in tags {
            self.0.entry(tag.clone()).or_default().insert(name.into());
        }
    }

    pub(super) fn take(&mut self, name: &str, tags: &[Box<str>]) {
        for tag in tags {
            if let Some(names) = self.0.get_mut(tag) {
                names.shift_remove(name);
                if names.is_empty() {
                    self.0.remove(tag);
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
