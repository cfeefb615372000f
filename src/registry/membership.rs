//! Groups that are registered and unregistered as a whole, with the tools they hold.

use std::collections::HashSet;
use std::sync::Arc;

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
        self.roster.may_register(&id)?;
        self.check_members(&id, members)?;
        let is_replaced = self.roster.get(&id).is_some();
        let group = match self.group(&id) {
            Ok(group) => {
                group.set_description(description);
                group.set_notes(notes);
                group.set_active(active);
                group
            }
            Err(_) => Arc::new(Group::new(&id, active, &description, notes, self.revision.clone())),
        };
        self.roster.open(&id, group.clone());
        let mut names = Vec::with_capacity(members.len());
        let mut gone = Vec::new();
        for member in members.drain(..) {
            match member {
                Member::Known(name) => names.push(name),
                Member::New(tool) => {
                    names.push(tool.name.clone().into());
                    let tags = tool.tags.clone();
                    let replaced = self.tools.insert(tool.name.clone(), tool);
                    gone.extend(replaced.inspect(|old| self.tags.take(&old.name, &old.tags)));
                    self.tags.put(names.last().map_or("", |name| name), &tags);
                }
            }
        }
        let mut touched: Vec<Arc<str>> = self.roster.refill(&id, names.iter().map(|name| (name, ())));
        touched.extend(names.into_iter().map(Arc::from));
        gone.extend(self.settle(touched));
        Ok(Registered { is_replaced, gone })
    }

    /// Refuses an id that is reserved.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroup`].
    pub fn may_register(&self, id: &str) -> Result<()> {
        self.roster.may_register(id)
    }

    /// Takes a group out, and hands back the tools that no other group holds.
    ///
    /// # Errors
    ///
    /// [`Error::ReservedGroupStays`] and [`Error::UnknownGroup`].
    pub fn unregister_group(&mut self, id: &str) -> Result<Vec<Tool<B>>> {
        self.roster.may_unregister(id)?;
        let touched = self.roster.close(id);
        Ok(self.settle(touched))
    }

    /// Keeps the id of a group from being registered or removed from now on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is no such group.
    pub fn reserve_group(&mut self, id: &str) -> Result<()> {
        self.roster.reserve(id)
    }

    /// Whether a group's id is reserved, as that of the basic group always is.
    #[must_use]
    pub fn is_reserved(&self, id: &str) -> bool {
        self.roster.get(id).is_some_and(super::Entry::is_reserved)
    }

    /// The ids of all groups, first the basic one, then the others in the order they were created.
    #[must_use]
    pub fn group_ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.roster.ids()
    }

    /// The names of the tools that a group holds, in the order it took them in.
    pub fn members(&self, id: &str) -> impl Iterator<Item = &str> {
        self.roster.get(id).into_iter().flat_map(|entry| entry.tools().map(|(name, ())| name))
    }

    /// The group that was the latest to take a tool in, of those that hold it.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&str> {
        self.roster.holder(name)
    }

    /// All groups that hold a tool, the latest to take it in last.
    #[must_use]
    pub fn holders(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.roster.holders(name)
    }

    /// Whether one of these groups holds a tool, be they on or off.
    pub fn is_in<'a>(&self, name: &str, ids: impl IntoIterator<Item = &'a str>) -> bool {
        self.roster.is_in(name, ids)
    }

    /// Puts a tool that is told and called in another way in the place of one; its groups and tags stay.
    pub fn exchange(&mut self, name: &str, make: impl FnOnce(&Tool<B>) -> Tool<B>) -> Option<Tool<B>> {
        let place = self.tools.get_mut(name)?;
        let new = make(place);
        let new = Tool {
            name: place.name.clone(),
            group: place.group.clone(),
            more: place.more.clone(),
            tags: place.tags.clone(),
            ..new
        };
        new.seat.set(new.group.clone(), new.more.clone());
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
                    return Err(Error::DuplicateTool { name: tool.name.clone().into() });
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

    /// Tells the tools of these names which groups hold them, and takes out those that none does.
    pub(super) fn settle(&mut self, names: Vec<Arc<str>>) -> Vec<Tool<B>> {
        self.touch();
        let (kept, gone): (Vec<_>, HashSet<_>) = {
            let (kept, gone): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| self.roster.holder(name).is_some());
            (kept, gone.into_iter().collect())
        };
        for name in kept {
            self.reseat(&name);
        }
        if gone.is_empty() {
            return Vec::new();
        }
        let gone: Vec<Tool<B>> =
            self.tools.extract_if(.., |name, _| gone.contains(&**name)).map(|(_, tool)| tool).collect();
        for tool in &gone {
            self.tags.take(&tool.name, &tool.tags);
        }
        gone
    }

    /// Tells a tool which groups hold it.
    pub(super) fn reseat(&mut self, name: &str) {
        let Some(tool) = self.tools.get_mut(name) else { return };
        let mut groups = self.roster.holders(name).filter_map(|id| self.roster.get(id)).map(|it| it.about().clone());
        if let Some(first) = groups.next() {
            tool.group = first;
            tool.more = groups.collect();
            tool.seat.set(tool.group.clone(), tool.more.clone());
        }
    }
}
