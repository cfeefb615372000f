//! The registry: tools and their groups, in the order of registration, and the views and roles that limit who sees them.
//!
//! Read in this order:
//!
//! | module | holds |
//! |---|---|
//! | `tool`, `group` | a [`Tool`], a [`Group`] that is active or inactive, and the saved state of groups |
//! | this file | [`Registry`]: registering, finding and listing tools |
//! | `membership` | registering and removing groups with their tools |
//! | `view` | a [`View`] of a registry, the [`Filter`]s it is made of, and the admission of a call |
//! | `session` | a [`Session`]: one conversation, with its own switches, limits and counters; part of a view |
//! | `role`, `roles_file` | [`Role`]s, which follow changes, and the JSON file they are stored in |
//! | `meta` | the groups that a model may activate itself |
//! | `roster` | groups of tool definitions without bodies |

mod group;
mod membership;
mod meta;
mod role;
mod roles_file;
mod roster;
mod session;
mod tool;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::{IndexMap, IndexSet};

pub use group::{BASIC, FORMAT, Group, GroupState};
pub use membership::{Member, RegisteredGroup};
pub use meta::Switch;
pub use role::{ORG_MANAGEMENT, ROOT, RecordStamp, Role, RoleAccess, Roles};
pub use roles_file::{ROLES_FORMAT, ROLES_LIMIT, RoleProblem, RolesFile};
pub use roster::{Roster, RosterGroup};
pub use session::{LimitReached, SESSION_FORMAT, Session, SessionLimits, SessionState, SessionUsage};
pub use tool::{Memberships, NameConflict, Tool};
pub use view::{Denial, Filter, NameSet, View};

pub use crate::schema::check_name;

use membership::Groups;
use tool::{RENAME_TRIES, Tags};

use crate::{Error, Result};

type Tools<B> = IndexMap<Arc<str>, Tool<B>, ahash::RandomState>;

/// The number of changes that a listing of tools would show; shared with the groups, which can be switched directly.
pub(crate) type Revision = Arc<AtomicU64>;

/// The tools of a toolkit by name, and the groups they belong to.
///
/// It is generic over the body of a tool: a Rust program stores native tools, the Python bindings store callables.
/// Removed tools are returned instead of dropped, because dropping a body may run foreign code and the
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
        registry.add_basic_group(Arc::new(Group::basic(registry.revision.clone())));
        registry
    }
}

impl<B> Registry<B> {
    /// Adds the basic group as the first and reserves its name.
    fn add_basic_group(&mut self, basic: Arc<Group>) {
        self.groups.insert(basic);
        // The group exists, so this succeeds.
        let _ = self.groups.reserve(BASIC);
    }

    /// Adds a group.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateGroup`] if the name is taken.
    pub fn create_group(&mut self, name: &str, description: &str, active: bool, notes: Option<String>) -> Result<()> {
        if self.groups.get(name).is_some() {
            return Err(Error::DuplicateGroup { name: name.to_owned() });
        }
        let group = Group::new(name, active, description, notes, self.revision.clone());
        self.groups.insert(Arc::new(group));
        self.touch();
        Ok(())
    }

    /// Activates or deactivates groups; unknown names are ignored, and the basic group is always active.
    pub fn set_active<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, active: bool) {
        for name in names.into_iter().filter(|name| *name != BASIC) {
            if let Some(entry) = self.groups.get(name) {
                entry.group.set_active(active);
            }
        }
    }

    /// Removes groups and returns their tools; unknown names are ignored, and tools that are in another group stay
    /// registered.
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
        Ok(self.drop_groups(names.iter().map(String::as_str)))
    }

    /// Finds a group by name, the basic one included.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`].
    pub fn group(&self, name: &str) -> Result<Arc<Group>> {
        let found = self.groups.get(name).map(|entry| entry.group.clone());
        found.ok_or_else(|| Error::UnknownGroup { name: name.to_owned() })
    }

    /// The groups in the order of their creation, without the basic one.
    #[must_use]
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Arc<Group>> {
        self.groups.iter().map(|(_, entry)| &entry.group).skip(1)
    }

    /// The name to register a new tool under; `None` if the existing tool of that name stays.
    ///
    /// `suffix` makes the random part of a new name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidToolName`], [`Error::DuplicateTool`] if the name is taken and the conflict is an error, and
    /// [`Error::NoFreeName`] if no new name is found.
    pub fn name_for(
        &self,
        name: &str,
        conflict: NameConflict,
        mut suffix: impl FnMut() -> String,
    ) -> Result<Option<String>> {
        check_name(name)?;
        if !self.tools.contains_key(name) {
            return Ok(Some(name.to_owned()));
        }
        match conflict {
            NameConflict::Raise => Err(Error::DuplicateTool { name: name.to_owned() }),
            NameConflict::Skip => Ok(None),
            NameConflict::Override => Ok(Some(name.to_owned())),
            NameConflict::Rename => (0..RENAME_TRIES)
                .map(|_| format!("{name}_{}", suffix()))
                .find(|candidate| !self.tools.contains_key(candidate.as_str()))
                .map(Some)
                .ok_or_else(|| Error::NoFreeName { name: name.to_owned(), tries: RENAME_TRIES }),
        }
    }

    /// Registers a tool under its name and in its groups, which must be this registry's. A tool of the same name is replaced in
    /// its position and returned, and leaves the groups that the new one does not name.
    pub fn insert(&mut self, mut tool: Tool<B>) -> Option<Tool<B>> {
        self.touch();
        let (name, tags) = (tool.name.clone(), tool.tags.clone());
        // The registry's own groups, each once, in case the tool came with other groups of the same names.
        let mut groups: Vec<Arc<Group>> = Vec::with_capacity(1);
        for group in tool.groups().filter_map(|group| self.group(group.name()).ok()) {
            if !groups.iter().any(|known| Arc::ptr_eq(known, &group)) {
                groups.push(group);
            }
        }
        tool.set_groups(groups);
        tool.set_tags(tags.clone());
        let replaced = self.tools.insert(name.clone(), tool);
        let Some(tool) = self.tools.get(&name) else { return replaced };
        let held_by = |tool: Option<&Tool<B>>, group: &Group| {
            tool.is_some_and(|tool| tool.groups().any(|other| other.name() == group.name()))
        };
        for group in tool.groups().filter(|group| !held_by(replaced.as_ref(), group)) {
            self.groups.add_tool(group.name(), name.clone());
        }
        if let Some(old) = &replaced {
            for group in old.groups().filter(|group| !held_by(Some(tool), group)) {
                self.groups.remove_tool(group.name(), &name);
            }
            self.tags.remove(&name, &old.tags);
        }
        self.tags.add(&name, &tags);
        replaced
    }

    /// Removes a tool.
    pub fn remove(&mut self, name: &str) -> Option<Tool<B>> {
        self.touch();
        let removed = self.tools.shift_remove(name)?;
        for group in removed.groups() {
            self.groups.remove_tool(group.name(), name);
        }
        self.tags.remove(name, &removed.tags);
        Some(removed)
    }

    /// Removes all tools and groups, also reserved ones.
    pub fn clear(&mut self) -> Vec<Tool<B>> {
        let basic = self.group(BASIC);
        self.groups = Groups::default();
        if let Ok(basic) = basic {
            self.add_basic_group(basic);
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

    /// All tools in the order of registration.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool<B>> {
        self.tools.values()
    }

    /// The tools that a model sees: those with an active group that are not quarantined.
    pub fn listed(&self) -> impl Iterator<Item = &Tool<B>> {
        self.tools.values().filter(|tool| tool.is_active())
    }

    /// The tools of the basic group and of the named groups, active or not, that are not quarantined.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] for an unknown name.
    pub fn listed_in(&self, names: &[String]) -> Result<impl Iterator<Item = &Tool<B>>> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        let is_named = |group: &str| group == BASIC || names.iter().any(|name| name == group);
        let is_listed =
            move |tool: &&Tool<B>| tool.quarantine.is_none() && tool.groups().any(|group| is_named(group.name()));
        Ok(self.tools.values().filter(is_listed))
    }

    /// Replaces the tags of a tool, each of which counts once. Views and rules that name tags follow at once.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn set_tags(&mut self, name: &str, tags: &[Box<str>]) -> Result<()> {
        let tool = self.tools.get_mut(name).ok_or_else(|| Error::UnknownTool { name: name.to_owned() })?;
        let tags: IndexSet<Box<str>> = tags.iter().cloned().collect();
        let tags: Arc<[Box<str>]> = tags.into_iter().collect();
        let before = std::mem::take(&mut tool.tags);
        tool.set_tags(tags.clone());
        self.tags.remove(name, &before);
        self.tags.add(name, &tags);
        self.touch();
        Ok(())
    }

    /// Quarantines a tool: from now on it is neither listed nor callable, whatever its groups and the view, until it is
    /// [accepted](Self::accept), replaced or removed. Calls that run go on. A new reason replaces the old one.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn quarantine(&mut self, name: &str, reason: &str) -> Result<()> {
        self.set_quarantine(name, Some(reason.into())).map(drop)
    }

    /// Lifts the quarantine of a tool; false if it was not quarantined.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub fn accept(&mut self, name: &str) -> Result<bool> {
        self.set_quarantine(name, None).map(|reason| reason.is_some())
    }

    fn set_quarantine(&mut self, name: &str, reason: Option<Arc<str>>) -> Result<Option<Arc<str>>> {
        let tool = self.tools.get_mut(name).ok_or_else(|| Error::UnknownTool { name: name.to_owned() })?;
        let before = tool.set_quarantine(reason);
        self.touch();
        Ok(before)
    }

    /// The quarantined tools with the reasons, in the order of registration.
    pub fn quarantined(&self) -> impl Iterator<Item = (&Tool<B>, &str)> {
        self.tools.values().filter_map(|tool| Some((tool, tool.quarantine.as_deref()?)))
    }

    /// The notes of the active groups, each under a heading.
    #[must_use]
    pub fn activated_notes(&self) -> String {
        notes_of(self.groups().filter(|group| group.is_active()))
    }

    /// The notes of the named groups, active or not, in the order of their creation.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] for an unknown name.
    pub fn notes_of(&self, names: &[String]) -> Result<String> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        Ok(notes_of(self.groups().filter(|group| names.iter().any(|name| name == group.name()))))
    }

    /// A number that changes whenever the listing may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// The same number, to be read by any thread without the registry.
    #[must_use]
    pub fn shared_revision(&self) -> Arc<AtomicU64> {
        self.revision.clone()
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
