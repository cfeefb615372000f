//! Groups in order, each with the tools it holds, and for each tool the groups that hold it.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Error, Result};

type Members<D> = IndexMap<Arc<str>, D, ahash::RandomState>;

/// Who holds which tools.
///
/// A tool may be in several groups, so that what a group shows and what it allows are the same: no group can take a tool
/// away from another. `D` is what a group says about one of its tools, `A` what is said about a group.
#[derive(Debug)]
pub struct Roster<D, A = String> {
    groups: IndexMap<Arc<str>, Entry<D, A>, ahash::RandomState>,
    /// The groups of each tool, the latest to take it in last; a tool that no group holds is not here.
    holders: HashMap<Arc<str>, Vec<Arc<str>>, ahash::RandomState>,
}

/// A group as a roster keeps it.
#[derive(Debug)]
pub struct Entry<D, A = String> {
    about: A,
    is_reserved: bool,
    tools: Members<D>,
}

impl<D, A> Entry<D, A> {
    /// What is said about the group.
    pub fn about(&self) -> &A {
        &self.about
    }

    /// Whether nobody may register or unregister its id.
    pub fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// The tools it holds with what it says about them, in the order it took them in.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = (&str, &D)> {
        self.tools.iter().map(|(name, said)| (&**name, said))
    }
}

impl<D, A> Default for Roster<D, A> {
    fn default() -> Self {
        Self { groups: IndexMap::default(), holders: HashMap::default() }
    }
}

impl<D, A> Roster<D, A> {
    /// Adds a group with its tools, or puts it in the place of the one that has the id; says whether there was one.
    ///
    /// Of several definitions of one tool the last is kept.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`] if the id is reserved; then nothing has changed.
    pub fn register<N: AsRef<str>>(
        &mut self,
        id: &str,
        about: A,
        tools: impl IntoIterator<Item = (N, D)>,
    ) -> Result<bool> {
        self.may_register(id)?;
        let is_replaced = self.open(id, about);
        self.refill(id, tools);
        Ok(is_replaced)
    }

    /// Takes a group out.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroupStays`] and [`Error::UnknownGroup`].
    pub fn unregister(&mut self, id: &str) -> Result<()> {
        self.may_unregister(id)?;
        self.close(id);
        Ok(())
    }

    /// Gives a group, reserved or not, other tools.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn update<N: AsRef<str>>(&mut self, id: &str, tools: impl IntoIterator<Item = (N, D)>) -> Result<()> {
        self.known(id)?;
        self.refill(id, tools);
        Ok(())
    }

    /// Keeps the id of a group from being registered or unregistered from now on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn reserve(&mut self, id: &str) -> Result<()> {
        self.known(id)?;
        if let Some(entry) = self.groups.get_mut(id) {
            entry.is_reserved = true;
        }
        Ok(())
    }

    /// The tools of these groups in the order of the ids, each once as the first of them defines it; ids that no group has
    /// are passed over.
    pub fn definitions<'a>(&'a self, ids: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a D)> {
        let mut found = IndexMap::<&str, &D, ahash::RandomState>::default();
        for (name, said) in ids.into_iter().filter_map(|id| self.get(id)).flat_map(Entry::tools) {
            found.entry(name).or_insert(said);
        }
        found.into_iter().collect()
    }

    /// All groups in their order.
    #[must_use]
    pub fn list(&self) -> impl ExactSizeIterator<Item = (&str, &Entry<D, A>)> {
        self.groups.iter().map(|(id, entry)| (&**id, entry))
    }

    /// The ids of all groups in their order.
    #[must_use]
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.groups.keys().map(|id| &**id)
    }

    /// Finds a group by its exact id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Entry<D, A>> {
        self.groups.get(id)
    }

    /// The group that was the latest to take a tool in, of those that hold it.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&str> {
        self.holders(name).last()
    }

    /// All groups that hold a tool, the latest to take it in last.
    #[must_use]
    pub fn holders(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> + use<'_, D, A> {
        self.holders.get(name).into_iter().flatten().map(|id| &**id)
    }

    /// Whether one of these groups holds a tool.
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

    /// Adds a group without tools, or says something else about the one that has the id; says whether there was one.
    fn open(&mut self, id: &str, about: A) -> bool {
        if let Some(entry) = self.groups.get_mut(id) {
            entry.about = about;
            return true;
        }
        self.groups.insert(id.into(), Entry { about, is_reserved: false, tools: Members::default() });
        false
    }

    /// Takes a group out, whether it is reserved or not, and names the tools it held.
    fn close(&mut self, id: &str) -> Vec<Arc<str>> {
        let Some(entry) = self.groups.shift_remove(id) else { return Vec::new() };
        let names: Vec<Arc<str>> = entry.tools.into_keys().collect();
        for name in &names {
            self.forget(name, id);
        }
        names
    }

    /// Gives a group other tools and names those it held; it becomes the latest to hold the new ones.
    fn refill<N: AsRef<str>>(&mut self, id: &str, tools: impl IntoIterator<Item = (N, D)>) -> Vec<Arc<str>> {
        let old = self.groups.get_mut(id).map(|entry| std::mem::take(&mut entry.tools)).unwrap_or_default();
        let names: Vec<Arc<str>> = old.into_keys().collect();
        for name in &names {
            self.forget(name, id);
        }
        for (name, said) in tools {
            self.join(id, name.as_ref(), said);
        }
        names
    }

    /// Puts a tool into a group, which becomes the latest to hold it unless it holds it already.
    fn join(&mut self, id: &str, name: &str, said: D) {
        let Some((_, id, entry)) = self.groups.get_full_mut(id) else { return };
        if let Some(old) = entry.tools.get_mut(name) {
            *old = said;
            return;
        }
        let known = self.holders.get_key_value(name).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| name.into());
        entry.tools.insert(name.clone(), said);
        // Most tools are in one group.
        self.holders.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(id.clone());
    }

    /// Takes a group from those that hold a tool.
    fn forget(&mut self, name: &str, id: &str) {
        if let Some(holders) = self.holders.get_mut(name) {
            holders.retain(|holder| **holder != *id);
            if holders.is_empty() {
                self.holders.remove(name);
            }
        }
    }
}
