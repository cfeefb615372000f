//! Tools as the registry keeps them, their tags, and name conflicts between them.

use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, Mutex};

use indexmap::IndexSet;

use super::Group;
use crate::schema::FunctionSchema;
use crate::sync::lock;

/// A tool as the registry keeps it.
#[derive(Debug)]
pub struct Tool<B> {
    /// The name that a model calls it by, unique in its toolkit.
    pub name: Arc<str>,
    /// The first of its groups.
    pub group: Arc<Group>,
    /// Its other groups, in the order in which it joined them.
    pub more: Box<[Arc<Group>]>,
    /// Labels that views can select it by.
    pub tags: Arc<[Box<str>]>,
    /// True if it runs an agent.
    pub is_agent: bool,
    /// The reason why it is quarantined: then it is neither listed nor callable, whatever its groups.
    pub quarantine: Option<Arc<str>>,
    /// Its groups, its tags and its quarantine, shared with other holders of the tool.
    pub memberships: Arc<Memberships>,
    /// The schema that the model is shown.
    pub schema: Arc<FunctionSchema>,
    /// The code that runs when it is called.
    pub body: B,
}

impl<B> Tool<B> {
    /// Makes a tool in one group, without tags.
    pub fn new(name: &str, group: Arc<Group>, schema: Arc<FunctionSchema>, body: B) -> Self {
        let memberships = Arc::new(Memberships::new(group.clone()));
        let (name, more, tags) = (name.into(), Box::default(), Arc::default());
        Self { name, group, more, tags, is_agent: false, quarantine: None, memberships, schema, body }
    }

    /// Its groups, in the order in which it joined them.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = &Arc<Group>> {
        iter::once(&self.group).chain(&self.more)
    }

    /// Sets its groups, here and in the shared memberships; false, and nothing changes, if there are none.
    pub(super) fn set_groups(&mut self, groups: Vec<Arc<Group>>) -> bool {
        let mut groups = groups.into_iter();
        let Some(first) = groups.next() else { return false };
        self.group = first;
        self.more = groups.collect();
        self.memberships.set(self.group.clone(), self.more.clone());
        true
    }

    /// Sets its tags, here and for the other holders of the tool.
    pub(super) fn set_tags(&mut self, tags: Arc<[Box<str>]>) {
        self.memberships.set_tags(tags.clone());
        self.tags = tags;
    }

    /// Sets or lifts its quarantine, here and for the other holders of the tool; returns the reason of the one before.
    pub fn set_quarantine(&mut self, reason: Option<Arc<str>>) -> Option<Arc<str>> {
        self.memberships.set_quarantine(reason.clone());
        std::mem::replace(&mut self.quarantine, reason)
    }

    /// True if one of its groups is active, and it is not quarantined.
    #[inline]
    pub fn is_active(&self) -> bool {
        (self.group.is_active() || self.more.iter().any(|group| group.is_active())) && self.quarantine.is_none()
    }
}

/// The groups of a tool, its tags and its quarantine, shared between the registry, which keeps them up to date, and others
/// that show or call the tool.
#[derive(Debug)]
pub struct Memberships {
    groups: Mutex<FirstAndMore>,
    tags: Mutex<Arc<[Box<str>]>>,
    quarantine: Mutex<Option<Arc<str>>>,
}

type FirstAndMore = (Arc<Group>, Box<[Arc<Group>]>);

impl From<Arc<Group>> for Memberships {
    fn from(group: Arc<Group>) -> Self {
        Self::new(group)
    }
}

impl Memberships {
    /// Makes the memberships of a tool in one group.
    #[must_use]
    pub fn new(group: Arc<Group>) -> Self {
        Self::among(group, Box::default())
    }

    /// Makes the memberships of a tool in several groups.
    #[must_use]
    pub fn among(group: Arc<Group>, more: Box<[Arc<Group>]>) -> Self {
        Self { groups: Mutex::new((group, more)), tags: Mutex::default(), quarantine: Mutex::default() }
    }

    /// The first of the groups.
    #[must_use]
    pub fn group(&self) -> Arc<Group> {
        self.with(|first, _| first.clone())
    }

    /// All groups, in the order in which the tool joined them.
    #[must_use]
    pub fn groups(&self) -> Vec<Arc<Group>> {
        self.with(|first, more| iter::once(first).chain(more).cloned().collect())
    }

    /// Passes the first and the other groups to a function without copying them.
    pub fn with<R>(&self, look: impl FnOnce(&Arc<Group>, &[Arc<Group>]) -> R) -> R {
        let groups = lock(&self.groups);
        look(&groups.0, &groups.1)
    }

    /// The labels that views and rules can select the tool by.
    #[must_use]
    pub fn tags(&self) -> Arc<[Box<str>]> {
        lock(&self.tags).clone()
    }

    /// Sets the tags of a tool that is not registered yet; [`Registry::set_tags`](super::Registry::set_tags) changes them.
    pub(crate) fn set_tags(&self, tags: Arc<[Box<str>]>) {
        *lock(&self.tags) = tags;
    }

    /// The reason why the tool is quarantined.
    #[must_use]
    pub fn quarantine(&self) -> Option<Arc<str>> {
        lock(&self.quarantine).clone()
    }

    fn set_quarantine(&self, reason: Option<Arc<str>>) {
        *lock(&self.quarantine) = reason;
    }

    pub(super) fn set(&self, group: Arc<Group>, more: Box<[Arc<Group>]>) {
        *lock(&self.groups) = (group, more);
    }
}

/// The number of new names that are tried.
pub(super) const RENAME_TRIES: usize = 100;

string_enum! {
    /// The reaction to a new tool whose name is taken.
    #[derive(Default)]
    pub enum NameConflict {
        /// Refuse the new tool.
        #[default]
        Raise = "raise",
        /// Keep the old tool.
        Skip = "skip",
        /// Replace the old tool.
        Override = "override",
        /// Keep both, the new one under a new name.
        Rename = "rename",
    }
}

/// The tools of each tag: labels for selecting tools, which unlike groups have no description and no on/off state.
#[derive(Debug, Default)]
pub(super) struct Tags(HashMap<Box<str>, IndexSet<Box<str>, ahash::RandomState>, ahash::RandomState>);

impl Tags {
    /// The names of the tools with a tag, in the order in which they got it.
    pub(super) fn tools(&self, tag: &str) -> impl ExactSizeIterator<Item = &str> {
        self.0.get(tag).map(|names| names.iter()).unwrap_or_default().map(|name| &**name)
    }

    pub(super) fn add(&mut self, name: &str, tags: &[Box<str>]) {
        for tag in tags {
            self.0.entry(tag.clone()).or_default().insert(name.into());
        }
    }

    pub(super) fn remove(&mut self, name: &str, tags: &[Box<str>]) {
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
