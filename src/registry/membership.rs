//! Groups that are registered and unregistered as a whole, with the tools they hold.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexSet;

use super::{Group, GroupState, Registry, Tool};
use crate::{Error, Result};

/// A tool that a group is registered with.
#[derive(Debug)]
pub enum Member<B> {
    /// One that is in the registry, by its name.
    Known(String),
    /// One that is new; whatever groups it names, it is put into this one.
    New(Tool<B>),
}

/// What became of a group that was registered.
#[derive(Debug)]
pub struct Registered<B> {
    /// Whether it took the place of one that had the id.
    pub is_replaced: bool,
    /// The tools that were replaced, or that no group holds any more.
    pub gone: Vec<Tool<B>>,
}

impl<B> Registry<B> {
    /// Adds a group with its tools, or puts it in the place of the one that has the id.
    ///
    /// Tools that are in other groups stay there as well. A tool that only the replaced group held is taken out unless the
    /// new group holds it too, and a new tool may have the name of such a tool. The members are taken from the list if all
    /// goes well; otherwise they and everything else stay as they were.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`], [`Error::InvalidGroup`] if a named tool is not there, and [`Error::DuplicateTool`] if a new
    /// tool has the name of one that another group holds.
    pub fn register_group(&mut self, state: GroupState, members: &mut Vec<Member<B>>) -> Result<Registered<B>> {
        let GroupState { name: id, description, notes, active } = state;
        self.groups.may_register(&id)?;
        self.check_members(&id, members)?;
        let is_replaced = self.groups.get(&id).is_some();
        let group = match self.group(&id) {
            Ok(group) => {
                group.set_description(description);
                group.set_notes(notes);
                group.set_active(active);
                group
            }
            Err(_) => Arc::new(Group::new(&id, active, &description, notes, self.revision.clone())),
        };
        self.groups.open(&id, group.clone());
        let mut names: IndexSet<Arc<str>> = IndexSet::with_capacity(members.len());
        let mut gone = Vec::new();
        for member in members.drain(..) {
            match member {
                Member::Known(name) => _ = names.insert(name.into()),
                Member::New(mut tool) => {
                    tool.place(vec![group.clone()]);
                    names.insert(tool.name.clone());
                    let (name, tags) = (tool.name.clone(), tool.tags.clone());
                    let replaced = self.tools.insert(name.clone(), tool);
                    gone.extend(replaced.inspect(|old| self.tags.take(&old.name, &old.tags)));
                    self.tags.put(&name, &tags);
                }
            }
        }
        let mut held = Vec::with_capacity(names.len());
        for name in &names {
            if let Some(tool) = self.tools.get_mut(name) {
                // The group becomes the latest to hold each of its tools.
                let others = tool.groups().filter(|other| other.name() != id).cloned();
                let groups = others.chain([group.clone()]).collect();
                tool.place(groups);
                held.push(tool.name.clone());
            }
        }
        let before = self.groups.refill(&id, held).into_iter().filter(|name| !names.contains(name)).collect();
        gone.extend(self.release(before, &[&id]));
        Ok(Registered { is_replaced, gone })
    }

    /// Refuses an id that is reserved.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`].
    pub fn may_register(&self, id: &str) -> Result<()> {
        self.groups.may_register(id)
    }

    /// Takes a group out, and hands back the tools that no other group holds.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroupStays`] and [`Error::UnknownGroup`].
    pub fn unregister_group(&mut self, id: &str) -> Result<Vec<Tool<B>>> {
        self.groups.may_unregister(id)?;
        Ok(self.close_groups([id]))
    }

    /// Keeps the id of a group from being registered or removed from now on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn reserve_group(&mut self, id: &str) -> Result<()> {
        self.groups.reserve(id)
    }

    /// Whether a group's id is reserved, as that of the basic group always is.
    #[must_use]
    pub fn is_reserved(&self, id: &str) -> bool {
        self.groups.is_reserved(id)
    }

    /// The ids of all groups, first the basic one, then the others in the order they were created.
    #[must_use]
    pub fn group_ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.groups.iter().map(|(id, _)| id)
    }

    /// The names of the tools that a group holds, in the order it took them in.
    pub fn members(&self, id: &str) -> impl Iterator<Item = &str> {
        self.groups.get(id).into_iter().flat_map(|held| &held.tools).map(|name| &**name)
    }

    /// The group that was the latest to take a tool in, of those that hold it.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&str> {
        self.holders(name).next_back()
    }

    /// All groups that hold a tool, the latest to take it in last.
    #[must_use]
    pub fn holders(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.find(name).into_iter().flat_map(Tool::groups).map(|group| group.name())
    }

    /// Whether one of these groups holds a tool, be they on or off.
    pub fn is_in<'a>(&self, name: &str, ids: impl IntoIterator<Item = &'a str>) -> bool {
        {
            let Some(tool) = self.find(name) else { return false };
            ids.into_iter().any(|id| tool.groups().any(|group| group.name() == id))
        }
    }

    /// Puts a tool that is told and called in another way in the place of one; its groups and tags stay.
    pub fn exchange(&mut self, name: &str, make: impl FnOnce(&Tool<B>) -> Tool<B>) -> Option<Tool<B>> {
        let place = self.tools.get_mut(name)?;
        let new = make(place);
        let mut new = Tool { name: place.name.clone(), tags: place.tags.clone(), ..new };
        new.place(place.groups().cloned().collect());
        let old = std::mem::replace(place, new);
        self.touch();
        Some(old)
    }

    fn check_members(&self, id: &str, members: &[Member<B>]) -> Result<()> {
        let mut new = HashSet::new();
        for member in members {
            if let Member::New(tool) = member {
                let is_taken = self.find(&tool.name).is_some() && self.holders(&tool.name).any(|holder| holder != id);
                if is_taken || !new.insert(&*tool.name) {
                    return Err(Error::DuplicateTool { name: tool.name.to_string() });
                }
            }
        }
        for member in members {
            if let Member::Known(name) = member
                && self.find(name).is_none()
                && !new.contains(&**name)
            {
                let reason = format!("there is no tool `{name}`");
                return Err(Error::InvalidGroup { id: id.to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Takes groups out, reserved or not, and hands back the tools that no other group holds.
    pub(super) fn close_groups<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) -> Vec<Tool<B>> {
        let ids: Vec<&str> = ids.into_iter().collect();
        let held = ids.iter().flat_map(|id| self.groups.close(id)).collect();
        self.release(held, &ids)
    }

    /// Tells tools that these groups no longer hold them, and takes out those that no group holds.
    fn release(&mut self, names: Vec<Arc<str>>, ids: &[&str]) -> Vec<Tool<B>> {
        self.touch();
        let mut gone = HashSet::new();
        for name in names {
            let Some(tool) = self.tools.get_mut(&name) else { continue };
            let others: Vec<_> = tool.groups().filter(|group| !ids.contains(&group.name())).cloned().collect();
            if !tool.place(others) {
                gone.insert(name);
            }
        }
        if gone.is_empty() {
            return Vec::new();
        }
        let gone: Vec<Tool<B>> =
            self.tools.extract_if(.., |name, _| gone.contains(name)).map(|(_, tool)| tool).collect();
        for tool in &gone {
            self.tags.take(&tool.name, &tool.tags);
        }
        gone
    }
}
