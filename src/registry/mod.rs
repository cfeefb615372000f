//! Where tools and groups are kept, in the order they came.

mod admit;
mod filter;
mod group;
mod groups;
mod membership;
mod meta;
mod namesake;
mod role;
mod roles;
mod roles_file;
mod roster;
mod saved;
mod tags;
mod tool;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;

pub use admit::Denial;
pub use filter::{Filter, Names};
pub use group::{BASIC, Group};
pub use membership::{Member, Registered};
pub use meta::Switch;
pub use namesake::Namesake;
pub use role::{Access, ORG_MANAGEMENT, ROOT, Role};
pub use roles::{Roles, Stamp};
pub use roles_file::{Problem, ROLES_LIMIT, RolesFile};
pub use roster::{Entry, Roster};
pub use saved::{FORMAT, GroupState};
pub use tool::{Seat, Tool, check_name};
pub use view::View;

use groups::{Groups, Held};
use tags::Tags;

use crate::{Error, Result};

type Tools<B> = IndexMap<Arc<str>, Tool<B>, ahash::RandomState>;

/// Counts the changes that a listing of tools would show; shared with the groups, which can be switched directly.
pub(crate) type Revision = Arc<AtomicU64>;

/// Keeps tools by name and the groups they belong to.
///
/// It is generic over the body of a tool: a Rust program stores native tools, the Python bindings store callables.
/// What a change removes is handed back instead of dropped, because dropping a body may run foreign code and the
/// caller may hold a lock around the registry.
#[derive(Debug)]
pub struct Registry<B> {
    tools: Tools<B>,
    /// The basic group is the first.
    groups: Groups,
    tags: Tags,
    revision: Revision,
}

impl<B> Default for Registry<B> {
    fn default() -> Self {
        let revision = Revision::default();
        let mut registry = Self { tools: Tools::default(), groups: Groups::default(), tags: Tags::default(), revision };
        registry.found(Arc::new(Group::basic(registry.revision.clone())));
        registry
    }
}

impl<B> Registry<B> {
    /// Makes the basic group the first and reserves its name.
    fn found(&mut self, basic: Arc<Group>) {
        self.groups.open(BASIC, basic);
        // It is there, so that this succeeds.
        let _ = self.groups.reserve(BASIC);
    }

    /// Adds a group.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateGroup`] if the name is taken or the reserved one.
    pub fn create_group(&mut self, name: &str, description: &str, active: bool, notes: Option<String>) -> Result<()> {
        if self.groups.get(name).is_some() {
            return Err(Error::DuplicateGroup { name: name.to_owned() });
        }
        let group = Group::new(name, active, description, notes, self.revision.clone());
        self.groups.open(name, Arc::new(group));
        self.touch();
        Ok(())
    }

    /// Switches groups on or off; names that no group has are ignored, and the basic group is always on.
    pub fn set_active<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, active: bool) {
        for name in names.into_iter().filter(|name| *name != BASIC) {
            if let Some(held) = self.groups.get(name) {
                held.group.set_active(active);
            }
        }
    }

    /// Removes groups with all of their tools, and hands the tools back; names that no group has are ignored, and tools
    /// that another group holds stay there.
    ///
    /// # Errors
    ///
    /// [`Error::BasicGroup`] if the basic group is among them, [`Error::ReservedGroupStays`] if another reserved one is;
    /// then nothing is removed.
    pub fn remove_groups(&mut self, names: &[String]) -> Result<Vec<Tool<B>>> {
        if names.iter().any(|name| name == BASIC) {
            return Err(Error::BasicGroup);
        }
        if let Some(id) = names.iter().find(|name| self.is_reserved(name)) {
            return Err(Error::ReservedGroupStays { id: id.clone() });
        }
        Ok(self.close_groups(names.iter().map(String::as_str)))
    }

    /// Finds a group by name, the basic one included.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is none.
    pub fn group(&self, name: &str) -> Result<Arc<Group>> {
        let found = self.groups.get(name).map(|held| held.group.clone());
        found.ok_or_else(|| Error::UnknownGroup { name: name.to_owned() })
    }

    /// The groups in the order they were created, without the basic one.
    #[must_use]
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Arc<Group>> {
        self.groups.iter().map(|(_, held)| &held.group).skip(1)
    }

    /// Decides under which name a new tool is kept, if at all: `None` means that the tool that has the name stays.
    ///
    /// `suffix` makes the random part of a new name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidToolName`] if no tool may have the name, [`Error::DuplicateTool`] if it is taken and that is to be
    /// refused, [`Error::NoFreeName`] if no new one is found.
    pub fn name_for(
        &self,
        name: &str,
        namesake: Namesake,
        mut suffix: impl FnMut() -> String,
    ) -> Result<Option<String>> {
        check_name(name)?;
        if !self.tools.contains_key(name) {
            return Ok(Some(name.to_owned()));
        }
        match namesake {
            Namesake::Raise => Err(Error::DuplicateTool { name: name.to_owned() }),
            Namesake::Skip => Ok(None),
            Namesake::Override => Ok(Some(name.to_owned())),
            Namesake::Rename => (0..namesake::TRIES)
                .map(|_| format!("{name}_{}", suffix()))
                .find(|candidate| !self.tools.contains_key(candidate.as_str()))
                .map(Some)
                .ok_or_else(|| Error::NoFreeName { name: name.to_owned(), tries: namesake::TRIES }),
        }
    }

    /// Keeps a tool under its name and in its groups, which must be this registry's; a tool that had the name is replaced in
    /// its place and handed back, and leaves the groups that the new one does not name.
    pub fn insert(&mut self, mut tool: Tool<B>) -> Option<Tool<B>> {
        self.touch();
        let (name, tags) = (tool.name.clone(), tool.tags.clone());
        // The registry's own groups, should those that the tool came with be others of the same names.
        let mut groups: Vec<Arc<Group>> = Vec::with_capacity(1);
        for group in tool.groups().filter_map(|group| self.group(group.name()).ok()) {
            if !groups.iter().any(|known| Arc::ptr_eq(known, &group)) {
                groups.push(group);
            }
        }
        tool.place(groups);
        let replaced = self.tools.insert(name.clone(), tool);
        let Some(tool) = self.tools.get(&name) else { return replaced };
        let held_by = |tool: Option<&Tool<B>>, group: &Group| {
            tool.is_some_and(|tool| tool.groups().any(|other| other.name() == group.name()))
        };
        for group in tool.groups().filter(|group| !held_by(replaced.as_ref(), group)) {
            self.groups.add(group.name(), name.clone());
        }
        if let Some(old) = &replaced {
            for group in old.groups().filter(|group| !held_by(Some(tool), group)) {
                self.groups.take(group.name(), &name);
            }
            self.tags.take(&name, &old.tags);
        }
        self.tags.put(&name, &tags);
        replaced
    }

    /// Takes a tool out.
    pub fn remove(&mut self, name: &str) -> Option<Tool<B>> {
        self.touch();
        let removed = self.tools.shift_remove(name)?;
        for group in removed.groups() {
            self.groups.take(group.name(), name);
        }
        self.tags.take(name, &removed.tags);
        Some(removed)
    }

    /// Takes everything out: tools and groups, also those whose ids are reserved.
    pub fn clear(&mut self) -> Vec<Tool<B>> {
        let basic = self.group(BASIC);
        self.groups = Groups::default();
        if let Ok(basic) = basic {
            self.found(basic);
        }
        self.tags.clear();
        self.touch();
        std::mem::take(&mut self.tools).into_values().collect()
    }

    /// Finds a tool by its exact name.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Tool<B>> {
        self.tools.get(name)
    }

    /// All tools in the order they were registered.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool<B>> {
        self.tools.values()
    }

    /// The tools that a model is told about: those of which a group is on.
    pub fn listed(&self) -> impl Iterator<Item = &Tool<B>> {
        self.tools.values().filter(|tool| tool.is_on())
    }

    /// A group that is on, with the tools it holds.
    fn active_group(&self, id: &str) -> Option<&Held> {
        self.groups.get(id).filter(|held| held.group.is_active())
    }

    /// The tools of the basic group and of the groups of these names, whether they are on or off.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if a name is not that of a group.
    pub fn listed_in(&self, names: &[String]) -> Result<impl Iterator<Item = &Tool<B>>> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        let is_wanted = |group: &str| group == BASIC || names.iter().any(|name| name == group);
        Ok(self.tools.values().filter(move |tool| tool.groups().any(|group| is_wanted(group.name()))))
    }

    /// The notes of the groups that are on, each under a heading.
    #[must_use]
    pub fn activated_notes(&self) -> String {
        notes_of(self.groups().filter(|group| group.is_active()))
    }

    /// The notes of the groups of these names, whether they are on or off, in the order the groups were created.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if a name is not that of a group.
    pub fn notes_of(&self, names: &[String]) -> Result<String> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        Ok(notes_of(self.groups().filter(|group| names.iter().any(|name| name == group.name()))))
    }

    /// A number that changes whenever the listing may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        self.revision.fetch_add(1, Ordering::Relaxed);
    }
}

/// The notes of these groups, each under a heading.
fn notes_of<'a>(groups: impl Iterator<Item = &'a Arc<Group>>) -> String {
    let section = |group: &Arc<Group>| {
        let notes = group.notes().filter(|notes| !notes.is_empty())?;
        Some(format!("## About Tool Group '{}'\n{notes}", group.name()))
    };
    groups.filter_map(section).collect::<Vec<_>>().join("\n")
}
