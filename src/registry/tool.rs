//! One thing a model can call.

use std::iter;
use std::sync::{Arc, Mutex, PoisonError};

use super::Group;
use crate::schema::FunctionSchema;
use crate::{Error, Result};

/// Refuses a name that no tool may have: the empty one, and any with a control character or a line break, which would break
/// the lines of logs and prompts. What else a provider does not accept is changed for that provider alone.
///
/// # Errors
///
/// [`Error::InvalidToolName`].
pub fn check_name(name: &str) -> Result<()> {
    let is_control = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.contains(is_control) {
        "it has a control character or a line break in it"
    } else {
        return Ok(());
    };
    Err(Error::InvalidToolName { name: name.to_owned(), reason })
}

/// A tool as the registry keeps it.
#[derive(Debug)]
pub struct Tool<B> {
    /// The name a model calls it by, unique in its toolkit.
    pub name: Arc<str>,
    /// The first of the groups that hold it.
    pub group: Arc<Group>,
    /// The other groups that hold it, in the order they took it in.
    pub more: Box<[Arc<Group>]>,
    /// What views can choose it by besides.
    pub tags: Arc<[Box<str>]>,
    /// Where the registry tells others of its groups.
    pub seat: Arc<Seat>,
    /// What the model is told.
    pub schema: Arc<FunctionSchema>,
    /// What runs when it is called.
    pub body: B,
}

impl<B> Tool<B> {
    /// Makes a tool of one group, without tags.
    pub fn new(name: &str, group: Arc<Group>, schema: Arc<FunctionSchema>, body: B) -> Self {
        let seat = Arc::new(Seat::new(group.clone()));
        Self { name: name.into(), group, more: Box::default(), tags: Arc::default(), seat, schema, body }
    }

    /// Its groups, in the order they took it in.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = &Arc<Group>> {
        iter::once(&self.group).chain(&self.more)
    }

    /// Notes the groups that hold it, here and in its seat; false, and nothing is changed, if there are none.
    pub(super) fn place(&mut self, groups: Vec<Arc<Group>>) -> bool {
        let mut groups = groups.into_iter();
        let Some(first) = groups.next() else { return false };
        self.group = first;
        self.more = groups.collect();
        self.seat.set(self.group.clone(), self.more.clone());
        true
    }

    /// Whether one of its groups is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.group.is_active() || self.more.iter().any(|group| group.is_active())
    }
}

/// The groups of a tool as anybody may read them who shows the tool; the registry keeps them up to date.
#[derive(Debug)]
pub struct Seat(Mutex<FirstAndMore>);

type FirstAndMore = (Arc<Group>, Box<[Arc<Group>]>);

impl From<Arc<Group>> for Seat {
    fn from(group: Arc<Group>) -> Self {
        Self::new(group)
    }
}

impl Seat {
    /// The seat of a tool in one group.
    #[must_use]
    pub fn new(group: Arc<Group>) -> Self {
        Self(Mutex::new((group, Box::default())))
    }

    /// The seat of a tool in several groups.
    #[must_use]
    pub fn among(group: Arc<Group>, more: Box<[Arc<Group>]>) -> Self {
        Self(Mutex::new((group, more)))
    }

    /// The first of the groups.
    #[must_use]
    pub fn group(&self) -> Arc<Group> {
        self.with(|first, _| first.clone())
    }

    /// All of the groups, in the order they took the tool in.
    #[must_use]
    pub fn groups(&self) -> Vec<Arc<Group>> {
        self.with(|first, more| iter::once(first).chain(more).cloned().collect())
    }

    /// Shows the first and the other groups without copying them.
    pub fn with<R>(&self, look: impl FnOnce(&Arc<Group>, &[Arc<Group>]) -> R) -> R {
        // The pair is replaced in one assignment.
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&groups.0, &groups.1)
    }

    pub(super) fn set(&self, group: Arc<Group>, more: Box<[Arc<Group>]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (group, more);
    }
}
