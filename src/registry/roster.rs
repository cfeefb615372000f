//! Rosters: groups of tool definitions, without anything to call.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Error, Result};

type Members<D> = IndexMap<Arc<str>, D, ahash::RandomState>;

/// Groups in order, each with its tools, and for each tool its groups.
///
/// A tool may be in several groups, so that no group can take a tool away from another. `D` is the definition of a tool in a
/// group, `A` the description of a group.
#[derive(Debug)]
pub struct Roster<D, A = String> {
    groups: IndexMap<Arc<str>, RosterGroup<D, A>, ahash::RandomState>,
    /// The groups of each tool, the latest that it joined last; a tool without groups has no entry.
    holders: HashMap<Arc<str>, Vec<Arc<str>>, ahash::RandomState>,
}

/// A group of a roster.
#[derive(Debug)]
pub struct RosterGroup<D, A = String> {
    about: A,
    is_reserved: bool,
    tools: Members<D>,
}

impl<D, A> RosterGroup<D, A> {
    /// The description.
    pub fn about(&self) -> &A {
        &self.about
    }

    /// True if its id can neither be registered nor unregistered.
    pub fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// The tools with their definitions, in the order in which they joined.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = (&str, &D)> {
        self.tools.iter().map(|(name, definition)| (&**name, definition))
    }
}

impl<D, A> Default for Roster<D, A> {
    fn default() -> Self {
        Self { groups: IndexMap::default(), holders: HashMap::default() }
    }
}

impl<D, A> Roster<D, A> {
    /// Adds a group with its tools, or replaces the group of the same id; true if there was one.
    ///
    /// Of several definitions of one tool the last counts.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`] if the id is reserved; then nothing changes.
    pub fn register<N: AsRef<str>>(
        &mut self,
        id: &str,
        about: A,
        tools: impl IntoIterator<Item = (N, D)>,
    ) -> Result<bool> {
        self.may_register(id)?;
        let is_replaced = self.put(id, about);
        self.set_tools(id, tools);
        Ok(is_replaced)
    }

    /// Removes a group.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroupStays`] and [`Error::UnknownGroup`].
    pub fn unregister(&mut self, id: &str) -> Result<()> {
        self.may_unregister(id)?;
        let removed = self.groups.shift_remove(id).map(|group| group.tools).unwrap_or_default();
        removed.keys().for_each(|name| self.leave(name, id));
        Ok(())
    }

    /// Replaces the tools of a group, reserved or not.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`].
    pub fn update<N: AsRef<str>>(&mut self, id: &str, tools: impl IntoIterator<Item = (N, D)>) -> Result<()> {
        self.known(id)?;
        self.set_tools(id, tools);
        Ok(())
    }

    /// Reserves the id of a group: from now on it can neither be registered nor unregistered.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`].
    pub fn reserve(&mut self, id: &str) -> Result<()> {
        self.known(id)?;
        if let Some(entry) = self.groups.get_mut(id) {
            entry.is_reserved = true;
        }
        Ok(())
    }

    /// The tools of these groups in the order of the ids, each once, by its first definition; unknown ids are ignored.
    pub fn definitions<'a>(&'a self, ids: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a D)> {
        let mut found = IndexMap::<&str, &D, ahash::RandomState>::default();
        for (name, definition) in ids.into_iter().filter_map(|id| self.get(id)).flat_map(RosterGroup::tools) {
            found.entry(name).or_insert(definition);
        }
        found.into_iter().collect()
    }

    /// All groups in their order.
    #[must_use]
    pub fn list(&self) -> impl ExactSizeIterator<Item = (&str, &RosterGroup<D, A>)> {
        self.groups.iter().map(|(id, entry)| (&**id, entry))
    }

    /// The ids of all groups in their order.
    #[must_use]
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.groups.keys().map(|id| &**id)
    }

    /// Finds a group by its exact id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&RosterGroup<D, A>> {
        self.groups.get(id)
    }

    /// The latest group that a tool joined.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&str> {
        self.holders(name).last()
    }

    /// All groups of a tool, the latest that it joined last.
    #[must_use]
    pub fn holders(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> + use<'_, D, A> {
        self.holders.get(name).into_iter().flatten().map(|id| &**id)
    }

    /// True if a tool is in one of these groups.
    pub fn is_in<'a>(&self, name: &str, ids: impl IntoIterator<Item = &'a str>) -> bool {
        ids.into_iter().any(|id| self.get(id).is_some_and(|entry| entry.tools.contains_key(name)))
    }

    /// The names of all tools, each once, in the order of the groups.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        let is_first = |id: &Arc<str>, name: &str| {
            let earlier = self.groups.keys().take_while(|other| *other != id);
            self.holders(name).count() == 1 || !earlier.into_iter().any(|other| self.is_in(name, [&**other]))
        };
        self.groups
            .iter()
            .flat_map(move |(id, entry)| entry.tools.keys().filter(move |name| is_first(id, name)).map(|name| &**name))
    }

    fn may_register(&self, id: &str) -> Result<()> {
        match self.get(id) {
            Some(entry) if entry.is_reserved => Err(Error::ReservedGroup { id: id.to_owned() }),
            _ => Ok(()),
        }
    }

    fn may_unregister(&self, id: &str) -> Result<()> {
        match self.get(id) {
            Some(entry) if entry.is_reserved => Err(Error::ReservedGroupStays { id: id.to_owned() }),
            Some(_) => Ok(()),
            None => Err(Error::UnknownGroup { name: id.to_owned() }),
        }
    }

    fn known(&self, id: &str) -> Result<()> {
        self.get(id).map(drop).ok_or_else(|| Error::UnknownGroup { name: id.to_owned() })
    }

    /// Adds a group without tools, or replaces the description of the group of the same id; true if there was one.
    fn put(&mut self, id: &str, about: A) -> bool {
        if let Some(entry) = self.groups.get_mut(id) {
            entry.about = about;
            return true;
        }
        self.groups.insert(id.into(), RosterGroup { about, is_reserved: false, tools: Members::default() });
        false
    }

    /// Replaces the tools of a group, which becomes the latest of the new ones.
    fn set_tools<N: AsRef<str>>(&mut self, id: &str, tools: impl IntoIterator<Item = (N, D)>) {
        let old = self.groups.get_mut(id).map(|group| std::mem::take(&mut group.tools)).unwrap_or_default();
        old.keys().for_each(|name| self.leave(name, id));
        for (name, definition) in tools {
            self.join(id, name.as_ref(), definition);
        }
    }

    /// Adds a tool to a group, which becomes its latest, unless the tool is in the group already.
    fn join(&mut self, id: &str, name: &str, definition: D) {
        let Some((_, id, entry)) = self.groups.get_full_mut(id) else { return };
        if let Some(old) = entry.tools.get_mut(name) {
            *old = definition;
            return;
        }
        let known = self.holders.get_key_value(name).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| name.into());
        entry.tools.insert(name.clone(), definition);
        // Most tools are in one group.
        self.holders.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(id.clone());
    }

    /// Removes a group from those of a tool.
    fn leave(&mut self, name: &str, id: &str) {
        if let Some(holders) = self.holders.get_mut(name) {
            holders.retain(|holder| **holder != *id);
            if holders.is_empty() {
                self.holders.remove(name);
            }
        }
    }
}
