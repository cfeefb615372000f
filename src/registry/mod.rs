//! Where tools and groups are kept, in the order they came.

mod group;
mod meta;
mod namesake;
mod saved;
mod tool;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;

pub use group::{BASIC, Group};
pub use meta::Switch;
pub use namesake::Namesake;
pub use saved::{FORMAT, GroupState};
pub use tool::Tool;

use crate::{Error, Result};

type Tools<B> = IndexMap<Box<str>, Tool<B>, ahash::RandomState>;

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
    groups: IndexMap<String, Arc<Group>>,
    basic: Arc<Group>,
    revision: Revision,
}

impl<B> Default for Registry<B> {
    fn default() -> Self {
        let revision = Revision::default();
        Self {
            tools: Tools::default(),
            groups: IndexMap::new(),
            basic: Arc::new(Group::basic(revision.clone())),
            revision,
        }
    }
}

impl<B> Registry<B> {
    /// Adds a group.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateGroup`] if the name is taken or the reserved one.
    pub fn create_group(&mut self, name: &str, description: &str, active: bool, notes: Option<String>) -> Result<()> {
        if name == BASIC || self.groups.contains_key(name) {
            return Err(Error::DuplicateGroup { name: name.to_owned() });
        }
        let group = Group::new(name, active, description, notes, self.revision.clone());
        self.groups.insert(name.to_owned(), Arc::new(group));
        self.touch();
        Ok(())
    }

    /// Switches groups on or off; names that no group has are ignored, and the basic group is always on.
    pub fn set_active<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, active: bool) {
        for name in names {
            if let Some(group) = self.groups.get(name) {
                group.set_active(active);
            }
        }
    }

    /// Removes groups with all of their tools, and hands the tools back; names that no group has are ignored.
    ///
    /// # Errors
    ///
    /// [`Error::BasicGroup`] if the basic group is among them; then nothing is removed.
    pub fn remove_groups(&mut self, names: &[String]) -> Result<Vec<Tool<B>>> {
        if names.iter().any(|name| name == BASIC) {
            return Err(Error::BasicGroup);
        }
        for name in names {
            self.groups.shift_remove(name);
        }
        self.touch();
        let (gone, kept) = std::mem::take(&mut self.tools)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, tool)| names.iter().any(|name| name == tool.group.name()));
        self.tools = kept.into_iter().collect();
        Ok(gone.into_iter().map(|(_, tool)| tool).collect())
    }

    /// Finds a group by name, the basic one included.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if there is none.
    pub fn group(&self, name: &str) -> Result<Arc<Group>> {
        if name == BASIC {
            return Ok(self.basic.clone());
        }
        self.groups.get(name).cloned().ok_or_else(|| Error::UnknownGroup { name: name.to_owned() })
    }

    /// The groups in the order they were created, without the basic one.
    #[must_use]
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Arc<Group>> {
        self.groups.values()
    }

    /// Decides under which name a new tool is kept, if at all: `None` means that the tool that has the name stays.
    ///
    /// `suffix` makes the random part of a new name.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateTool`] if the name is taken and that is to be refused, [`Error::NoFreeName`] if no new one is found.
    pub fn name_for(
        &self,
        name: &str,
        namesake: Namesake,
        mut suffix: impl FnMut() -> String,
    ) -> Result<Option<String>> {
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

    /// Keeps a tool under its name; a tool that had the name is replaced in its place and handed back.
    pub fn insert(&mut self, tool: Tool<B>) -> Option<Tool<B>> {
        self.touch();
        self.tools.insert(tool.name.clone(), tool)
    }

    /// Takes a tool out.
    pub fn remove(&mut self, name: &str) -> Option<Tool<B>> {
        self.touch();
        self.tools.shift_remove(name)
    }

    /// Takes everything out: tools and groups.
    pub fn clear(&mut self) -> Vec<Tool<B>> {
        self.groups.clear();
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

    /// The tools that a model is told about: those whose group is on.
    pub fn listed(&self) -> impl Iterator<Item = &Tool<B>> {
        self.tools.values().filter(|tool| tool.group.is_active())
    }

    /// The tools of the basic group and of the groups of these names, whether they are on or off.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if a name is not that of a group.
    pub fn listed_in(&self, names: &[String]) -> Result<impl Iterator<Item = &Tool<B>>> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        let is_wanted = |group: &str| group == BASIC || names.iter().any(|name| name == group);
        Ok(self.tools.values().filter(move |tool| is_wanted(tool.group.name())))
    }

    /// The notes of the groups that are on, each under a heading.
    #[must_use]
    pub fn activated_notes(&self) -> String {
        notes_of(self.groups.values().filter(|group| group.is_active()))
    }

    /// The notes of the groups of these names, whether they are on or off, in the order the groups were created.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`] if a name is not that of a group.
    pub fn notes_of(&self, names: &[String]) -> Result<String> {
        names.iter().try_for_each(|name| self.group(name).map(drop))?;
        Ok(notes_of(self.groups.values().filter(|group| names.iter().any(|name| name == group.name()))))
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
