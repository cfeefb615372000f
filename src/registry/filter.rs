//! A choice among tools, by their groups, names and tags.

use std::collections::HashSet;

use super::{Group, Registry, Tool};

/// Names that are looked up, byte for byte.
pub type Names = HashSet<Box<str>, ahash::RandomState>;

/// Which tools are chosen: those for which everything holds that is asked here.
///
/// An empty set chooses nothing, and `None` asks nothing. A name that nothing has chooses nothing until something has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of these groups holds the tool. `basic` is a group like any other here.
    pub groups: Option<Names>,
    /// The tool has one of these names.
    pub names: Option<Names>,
    /// The tool has none of these names.
    pub exclude: Names,
    /// The tool carries one of these tags.
    pub tags: Option<Names>,
}

impl Filter {
    /// Chooses the tools of these groups.
    pub fn of_groups<N: Into<Box<str>>>(ids: impl IntoIterator<Item = N>) -> Self {
        Self { groups: Some(ids.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// Chooses nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { groups: Some(Names::default()), ..Self::default() }
    }

    /// Whether it chooses a tool, on or off.
    pub fn sees<B>(&self, tool: &Tool<B>) -> bool {
        self.suits(tool) && tool.groups().any(|group| self.names_group(group))
    }

    /// Whether it chooses a tool through a group that is on.
    pub fn admits<B>(&self, tool: &Tool<B>) -> bool {
        self.suits(tool) && tool.groups().any(|group| group.is_active() && self.names_group(group))
    }

    /// Whether it lets anybody see a group.
    pub fn names_group(&self, group: &Group) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(group.name()))
    }

    fn suits<B>(&self, tool: &Tool<B>) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(&*tool.name))
            && !self.exclude.contains(&*tool.name)
            && self.tags.as_ref().is_none_or(|tags| tool.tags.iter().any(|tag| tags.contains(tag)))
    }

    /// The lists of tools that it picks one by one, and not by their groups.
    pub(super) fn picks(&self) -> impl Iterator<Item = Candidates<'_>> {
        let names = self.names.as_ref().map(Candidates::Names);
        names.into_iter().chain(self.tags.as_ref().map(Candidates::Tags))
    }

    /// The shortest list of tools that all it can choose is on, if any is shorter than all tools.
    pub(super) fn candidates<'a, B>(&'a self, registry: &'a Registry<B>) -> Option<Candidates<'a>> {
        let groups = self.groups.as_ref().map(Candidates::Groups);
        groups.into_iter().chain(self.picks()).min_by_key(|candidates| candidates.len(registry))
    }
}

/// A list of tools by which a listing is shorter than all of them.
#[derive(Clone, Copy)]
pub(super) enum Candidates<'a> {
    Groups(&'a Names),
    Names(&'a Names),
    Tags(&'a Names),
}

impl<'a> Candidates<'a> {
    pub(super) fn len<B>(self, registry: &Registry<B>) -> usize {
        match self {
            Self::Groups(ids) => {
                ids.iter().filter_map(|id| registry.active_group(id)).map(|held| held.tools.len()).sum()
            }
            Self::Names(names) => names.len(),
            Self::Tags(tags) => tags.iter().map(|tag| registry.tags.tools(tag).len()).sum(),
        }
    }

    /// Where the tools are in the order of the registry, some perhaps twice.
    pub(super) fn places<B>(self, registry: &'a Registry<B>) -> Vec<usize> {
        let place = |name: &str| registry.tools.get_index_of(name);
        match self {
            Self::Groups(ids) => {
                let groups = ids.iter().filter_map(|id| registry.active_group(id));
                groups.flat_map(|held| &held.tools).filter_map(|name| place(name)).collect()
            }
            Self::Names(names) => names.iter().filter_map(|name| place(name)).collect(),
            Self::Tags(tags) => tags.iter().flat_map(|tag| registry.tags.tools(tag)).filter_map(place).collect(),
        }
    }
}
