//! Group membership: registering and unregistering groups as a whole, with the tools they hold.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::{Group, GroupState, Registry, Tool};
use crate::{Error, Result};

/// A tool that a group is registered with.
#[derive(Debug)]
pub enum Member<B> {
    /// A registered tool, by its name.
    Known(String),
    /// A new tool; it joins this group, regardless of the groups that it names.
    New(Tool<B>),
}

/// The result of registering a group.
#[derive(Debug)]
pub struct RegisteredGroup<B> {
    /// True if it replaced a group of the same id.
    pub is_replaced: bool,
    /// The tools that were replaced, or that are in no group any more.
    pub removed: Vec<Tool<B>>,
}

impl<B> Registry<B> {
    /// Adds a group with its tools, or replaces the group of the same id.
    ///
    /// Tools that are in other groups stay there as well. A tool that was only in the replaced group is removed unless it is in
    /// the new group, too, and a new tool may have the name of such a tool. On success the list of members is drained;
    /// on an error nothing changes.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`], [`Error::InvalidGroup`] if a named tool is unknown, and [`Error::DuplicateTool`] if a new
    /// tool has the name of one in another group.
    pub fn register_group(&mut self, state: GroupState, members: &mut Vec<Member<B>>) -> Result<RegisteredGroup<B>> {
        let id = state.name.clone();
        self.groups.may_register(&id)?;
        self.check_members(&id, members)?;
        let is_replaced = self.groups.get(&id).is_some();
        let group = self.put_group(state);
        let mut names: IndexSet<Arc<str>> = IndexSet::with_capacity(members.len());
        let mut removed = Vec::new();
        for member in members.drain(..) {
            match member {
                Member::Known(name) => _ = names.insert(name.into()),
                Member::New(mut tool) => {
                    tool.set_groups(vec![group.clone()]);
                    names.insert(tool.name.clone());
                    let (name, tags) = (tool.name.clone(), tool.tags.clone());
                    tool.set_tags(tags.clone());
                    let replaced = self.tools.insert(name.clone(), tool);
                    removed.extend(replaced.inspect(|old| self.tags.remove(&old.name, &old.tags)));
                    self.tags.add(&name, &tags);
                }
            }
        }
        let mut tools = Vec::with_capacity(names.len());
        for name in &names {
            if let Some(tool) = self.tools.get_mut(name) {
                // The group becomes the latest of each of its tools.
                let others = tool.groups().filter(|other| other.name() != id).cloned();
                let groups = others.chain([group.clone()]).collect();
                tool.set_groups(groups);
                tools.push(tool.name.clone());
            }
        }
        let before = self.groups.set_tools(&id, tools).into_iter().filter(|name| !names.contains(name)).collect();
        removed.extend(self.release(before, &[&id]));
        Ok(RegisteredGroup { is_replaced, removed })
    }

    /// Creates a group, or changes the group of the same name.
    pub(super) fn put_group(&mut self, state: GroupState) -> Arc<Group> {
        let GroupState { name, description, notes, active } = state;
        if let Ok(group) = self.group(&name) {
            group.set_description(description);
            group.set_notes(notes);
            group.set_active(active);
            return group;
        }
        let group = Arc::new(Group::new(&name, active, &description, notes, self.revision.clone()));
        self.groups.insert(group.clone());
        group
    }

    /// Refuses a reserved id.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`].
    pub fn may_register(&self, id: &str) -> Result<()> {
        self.groups.may_register(id)
    }

    /// Removes a group, and returns the tools that are in no other group.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroupStays`] and [`Error::UnknownGroup`].
    pub fn unregister_group(&mut self, id: &str) -> Result<Vec<Tool<B>>> {
        self.groups.may_unregister(id)?;
        Ok(self.drop_groups([id]))
    }

    /// Reserves the id of a group: from now on it can neither be registered nor removed.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`].
    pub fn reserve_group(&mut self, id: &str) -> Result<()> {
        self.groups.reserve(id)
    }

    /// True if a group's id is reserved, as that of the basic group always is.
    #[must_use]
    pub fn is_reserved(&self, id: &str) -> bool {
        self.groups.is_reserved(id)
    }

    /// The ids of all groups, first the basic one, then the others in the order of their creation.
    #[must_use]
    pub fn group_ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.groups.iter().map(|(id, _)| id)
    }

    /// The names of the tools in a group, in the order in which they joined.
    pub fn members(&self, id: &str) -> impl Iterator<Item = &str> {
        self.groups.get(id).into_iter().flat_map(|entry| &entry.tools).map(|name| &**name)
    }

    /// The latest group that a tool joined.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&str> {
        self.holders(name).next_back()
    }

    /// All groups of a tool, the latest that it joined last.
    #[must_use]
    pub fn holders(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.find(name).into_iter().flat_map(Tool::groups).map(|group| group.name())
    }

    /// True if a tool is in one of these groups, active or not.
    pub fn is_in<'a>(&self, name: &str, ids: impl IntoIterator<Item = &'a str>) -> bool {
        let Some(tool) = self.find(name) else { return false };
        ids.into_iter().any(|id| tool.groups().any(|group| group.name() == id))
    }

    /// Replaces the schema and the body of a tool; its name, groups, tags and quarantine stay.
    pub fn exchange(&mut self, name: &str, make: impl FnOnce(&Tool<B>) -> Tool<B>) -> Option<Tool<B>> {
        let old = self.tools.get_mut(name)?;
        let mut new = Tool { name: old.name.clone(), ..make(old) };
        new.set_tags(old.tags.clone());
        new.set_groups(old.groups().cloned().collect());
        new.set_quarantine(old.quarantine.clone());
        let old = std::mem::replace(old, new);
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
                let reason = format!("unknown tool `{name}`");
                return Err(Error::InvalidGroup { id: id.to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Removes groups, reserved or not, and returns the tools that are in no other group.
    pub(super) fn drop_groups<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) -> Vec<Tool<B>> {
        let ids: Vec<&str> = ids.into_iter().collect();
        let entry = ids.iter().flat_map(|id| self.groups.remove(id)).collect();
        self.release(entry, &ids)
    }

    /// Takes tools out of these groups, and removes those that are in no group any more.
    fn release(&mut self, names: Vec<Arc<str>>, ids: &[&str]) -> Vec<Tool<B>> {
        self.touch();
        let mut removed = HashSet::new();
        for name in names {
            let Some(tool) = self.tools.get_mut(&name) else { continue };
            let others: Vec<_> = tool.groups().filter(|group| !ids.contains(&group.name())).cloned().collect();
            if !tool.set_groups(others) {
                removed.insert(name);
            }
        }
        if removed.is_empty() {
            return Vec::new();
        }
        let removed: Vec<Tool<B>> =
            self.tools.extract_if(.., |name, _| removed.contains(name)).map(|(_, tool)| tool).collect();
        for tool in &removed {
            self.tags.remove(&tool.name, &tool.tags);
        }
        removed
    }
}

/// The groups of a registry by name, in the order of their creation.
///
/// The groups of a tool are stored with the tool.
#[derive(Debug, Default)]
pub(super) struct Groups(IndexMap<Box<str>, GroupEntry, ahash::RandomState>);

/// A group with its tools.
#[derive(Debug)]
pub(super) struct GroupEntry {
    pub(super) group: Arc<Group>,
    pub(super) is_reserved: bool,
    /// In the order in which they joined.
    pub(super) tools: Vec<Arc<str>>,
}

impl Groups {
    pub(super) fn get(&self, id: &str) -> Option<&GroupEntry> {
        self.0.get(id)
    }

    /// All groups in their order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &GroupEntry)> {
        self.0.iter().map(|(id, entry)| (&**id, entry))
    }

    pub(super) fn is_reserved(&self, id: &str) -> bool {
        self.get(id).is_some_and(|entry| entry.is_reserved)
    }

    pub(super) fn may_register(&self, id: &str) -> Result<()> {
        if self.is_reserved(id) { Err(Error::ReservedGroup { id: id.to_owned() }) } else { Ok(()) }
    }

    pub(super) fn may_unregister(&self, id: &str) -> Result<()> {
        match self.get(id) {
            Some(entry) if entry.is_reserved => Err(Error::ReservedGroupStays { id: id.to_owned() }),
            Some(_) => Ok(()),
            None => Err(Error::UnknownGroup { name: id.to_owned() }),
        }
    }

    /// Reserves the name of a group.
    pub(super) fn reserve(&mut self, id: &str) -> Result<()> {
        let entry = self.0.get_mut(id).ok_or_else(|| Error::UnknownGroup { name: id.to_owned() })?;
        entry.is_reserved = true;
        Ok(())
    }

    /// Adds a group without tools at the end.
    pub(super) fn insert(&mut self, group: Arc<Group>) {
        self.0.insert(group.name().into(), GroupEntry { group, is_reserved: false, tools: Vec::new() });
    }

    /// Removes a group, reserved or not, and returns the names of its tools.
    pub(super) fn remove(&mut self, id: &str) -> Vec<Arc<str>> {
        self.0.shift_remove(id).map(|entry| entry.tools).unwrap_or_default()
    }

    /// Replaces the tools of a group, and returns the names of the old ones.
    pub(super) fn set_tools(&mut self, id: &str, tools: Vec<Arc<str>>) -> Vec<Arc<str>> {
        self.0.get_mut(id).map(|entry| std::mem::replace(&mut entry.tools, tools)).unwrap_or_default()
    }

    /// Adds a tool that is not in the group yet.
    pub(super) fn add_tool(&mut self, id: &str, tool: Arc<str>) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.tools.push(tool);
        }
    }

    /// Removes a tool from a group.
    pub(super) fn remove_tool(&mut self, id: &str, tool: &str) {
        if let Some(entry) = self.0.get_mut(id)
            && let Some(position) = entry.tools.iter().position(|name| **name == *tool)
        {
            entry.tools.remove(position);
        }
    }

    /// Sorts groups: the named ones first, then the others in their old order.
    pub(super) fn sort<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        for (position, id) in ids.into_iter().enumerate() {
            if let Some(from) = self.0.get_index_of(id) {
                self.0.move_index(from, position);
            }
        }
    }
}
