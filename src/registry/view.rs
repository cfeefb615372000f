//! Views: the part of a registry that a caller sees, and may therefore call.

use std::collections::HashSet;
use std::sync::Arc;

use super::membership::GroupEntry;
use super::session::Activity;
use super::{Group, Registry, RoleAccess, Session, Tool, notes_of};
use crate::near::nearest;

/// A live selection of the tools of a registry.
///
/// It holds filters, not tools: a tool that is registered later is visible at once, and a removed one is not.
/// A tool is listed, and may be called, through an active group that the view includes. In a view of a session, the groups
/// that were switched through the session are as active as it has them. In a view [with inactive groups](Self::with_inactive)
/// all groups count as active.
#[derive(Debug, Clone, Default)]
pub struct View {
    layers: Vec<ViewLayer>,
    session: Option<Arc<Session>>,
    includes_inactive: bool,
}

#[derive(Debug, Clone)]
enum ViewLayer {
    Fixed(Arc<Filter>),
    /// The filter of a role, which can change.
    Role(Arc<RoleAccess>),
}

impl ViewLayer {
    fn filter(&self) -> Arc<Filter> {
        match self {
            Self::Fixed(filter) => filter.clone(),
            Self::Role(access) => access.filter(),
        }
    }

    /// True if its filter meets a condition.
    #[inline]
    fn meets(&self, condition: impl FnOnce(&Filter) -> bool) -> bool {
        match self {
            Self::Fixed(filter) => condition(filter),
            Self::Role(access) => condition(&access.filter()),
        }
    }
}

impl From<Filter> for View {
    fn from(filter: Filter) -> Self {
        Self { layers: vec![ViewLayer::Fixed(Arc::new(filter))], ..Self::default() }
    }
}

impl From<Arc<RoleAccess>> for View {
    fn from(access: Arc<RoleAccess>) -> Self {
        Self { layers: vec![ViewLayer::Role(access)], ..Self::default() }
    }
}

impl View {
    /// The view narrowed by another filter.
    #[must_use]
    pub fn narrowed(&self, filter: Filter) -> Self {
        let mut layers = self.layers.clone();
        if filter != Filter::default() {
            layers.push(ViewLayer::Fixed(Arc::new(filter)));
        }
        Self { layers, ..self.clone() }
    }

    /// The same selection with the tools of inactive groups, for a host that keeps the switches itself. It neither reads nor
    /// changes those of the registry and of the session.
    #[must_use]
    pub fn with_inactive(self) -> Self {
        Self { includes_inactive: true, ..self }
    }

    /// The view narrowed to what another view includes, too; a session of that one is left out.
    #[must_use]
    pub fn intersected(&self, other: &Self) -> Self {
        let layers = self.layers.iter().chain(&other.layers).cloned().collect();
        Self { layers, ..self.clone() }
    }

    /// The same selection in a session.
    #[must_use]
    pub fn in_session(&self, session: Arc<Session>) -> Self {
        Self { session: Some(session), ..self.clone() }
    }

    /// The session that the view belongs to.
    #[inline]
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// True if it selects all tools and groups, as active as the registry has them.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let is_switched = self.session.as_ref().is_some_and(|session| session.has_switches());
        self.layers.is_empty() && !is_switched && !self.includes_inactive
    }

    /// True if it includes a tool, active or not.
    pub fn sees<B>(&self, tool: &Tool<B>) -> bool {
        self.layers.iter().all(|layer| layer.meets(|filter| filter.sees(tool)))
    }

    /// True if it includes a group.
    #[must_use]
    pub fn includes_group(&self, group: &Group) -> bool {
        self.layers.iter().all(|layer| layer.meets(|filter| filter.includes_group(group)))
    }

    /// True if a group is active in the session of the view, or in the registry if there is no session.
    #[must_use]
    pub fn is_active(&self, group: &Group) -> bool {
        self.activity().has(group)
    }

    /// Activates or deactivates groups: in the session of the view, or in the registry if there is no session.
    pub fn switch<'a>(&self, groups: impl IntoIterator<Item = (&'a Group, bool)>) {
        match &self.session {
            Some(session) => session.switch(groups),
            None => groups.into_iter().for_each(|(group, active)| group.set_active(active)),
        }
    }

    #[inline]
    fn activity(&self) -> Activity<'_> {
        if self.includes_inactive { Activity::All } else { Activity::of(self.session.as_deref()) }
    }

    /// True if it lists a tool, which then may be called.
    pub fn admits<B>(&self, tool: &Tool<B>) -> bool {
        let activity = self.activity();
        is_active(tool, &activity) && self.layers.iter().all(|layer| layer.meets(|it| it.admits(tool, &activity)))
    }

    pub(super) fn admit<B>(&self, tool: &Tool<B>) -> Result<(), Denial> {
        if self.admits(tool) {
            return Ok(());
        }
        let shown = tool.groups().find(|group| self.includes_group(group)).filter(|_| self.sees(tool));
        Err(shown.map_or(Denial::OutOfView, |group| Denial::of_hidden(tool, group)))
    }

    /// The tools it lists, in the order of registration.
    ///
    /// It takes time proportional to the tools of the selected groups, names or tags, whichever are the fewest,
    /// and not to all tools.
    #[must_use]
    pub fn listed<'r, B>(&self, registry: &'r Registry<B>) -> Vec<&'r Tool<B>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(ViewLayer::filter).collect();
        let activity = self.activity();
        let admits =
            |tool: &&Tool<B>| is_active(tool, &activity) && filters.iter().all(|filter| filter.admits(tool, &activity));
        let candidates = filters.iter().filter_map(|filter| filter.candidates(registry, &activity));
        let Some(fewest) = candidates.min_by_key(|candidates| candidates.len(registry, &activity)) else {
            return registry.tools().filter(admits).collect();
        };
        let mut positions = fewest.positions(registry, &activity);
        positions.sort_unstable();
        positions.dedup();
        positions
            .into_iter()
            .filter_map(|position| registry.tools.get_index(position))
            .map(|(_, it)| it)
            .filter(admits)
            .collect()
    }

    /// The groups it includes, in the order of their creation, without the basic one.
    pub fn groups<'r, B>(&self, registry: &'r Registry<B>) -> impl Iterator<Item = &'r Arc<Group>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(ViewLayer::filter).collect();
        registry.groups().filter(move |group| filters.iter().all(|filter| filter.includes_group(group)))
    }

    /// The notes of the active groups it includes, each under a heading.
    #[must_use]
    pub fn activated_notes<B>(&self, registry: &Registry<B>) -> String {
        let activity = self.activity();
        notes_of(self.groups(registry).filter(|group| activity.has(group)))
    }

    /// The groups that may be switched through it: those it includes, but where it selects tools by name or tag,
    /// only those with one of these tools.
    pub fn switchable_groups<'r, B>(&self, registry: &'r Registry<B>) -> Vec<&'r Arc<Group>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(ViewLayer::filter).collect();
        let (picks, activity) = (filters.iter().flat_map(|filter| filter.picks()), self.activity());
        let Some(fewest) = picks.min_by_key(|picks| picks.len(registry, &activity)) else {
            return self.groups(registry).collect();
        };
        let positions = fewest.positions(registry, &activity).into_iter();
        let tools = positions.filter_map(|position| registry.tools.get_index(position));
        let seen = tools.map(|(_, tool)| tool).filter(|tool| filters.iter().all(|filter| filter.sees(tool)));
        let held: HashSet<&str> = seen.flat_map(|tool| tool.groups().map(|group| group.name())).collect();
        self.groups(registry).filter(|group| held.contains(group.name())).collect()
    }

    /// True if there may be groups that cannot be switched through it.
    #[must_use]
    pub fn limits_groups(&self) -> bool {
        let limits = |filter: &Filter| filter.groups.is_some() || filter.picks().next().is_some();
        self.layers.iter().any(|layer| limits(&layer.filter()))
    }

    /// A number that changes whenever the filter of a role changes, or a group is switched through the session.
    #[must_use]
    pub fn revision(&self) -> u64 {
        let revision = |layer: &ViewLayer| match layer {
            ViewLayer::Fixed(_) => 0,
            ViewLayer::Role(access) => access.revision(),
        };
        let switched = self.session.as_ref().map_or(0, |session| session.revision());
        self.layers.iter().map(revision).sum::<u64>() + switched
    }
}

/// True if one of the groups of a tool is active, and it is not quarantined.
#[inline]
fn is_active<B>(tool: &Tool<B>, activity: &Activity<'_>) -> bool {
    tool.groups().any(|group| activity.has(group)) && tool.quarantine.is_none()
}

/// A set of names, compared byte by byte.
pub type NameSet = HashSet<Box<str>, ahash::RandomState>;

/// A selection of tools by groups, names and tags; a tool must meet all conditions.
///
/// An empty set selects nothing, and `None` is no condition. Unknown names are allowed: they select a tool or group as soon as
/// it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The tool is in one of these groups. `basic` is a group like any other here.
    pub groups: Option<NameSet>,
    /// The tool has one of these names.
    pub names: Option<NameSet>,
    /// The tool has none of these names.
    pub exclude: NameSet,
    /// The tool has one of these tags.
    pub tags: Option<NameSet>,
    /// The tool does not run an agent.
    pub without_agents: bool,
}

impl Filter {
    /// Selects the tools of these groups.
    pub fn of_groups<N: Into<Box<str>>>(ids: impl IntoIterator<Item = N>) -> Self {
        Self { groups: Some(ids.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// Selects nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { groups: Some(NameSet::default()), ..Self::default() }
    }

    /// True if it selects a tool, active or not.
    pub fn sees<B>(&self, tool: &Tool<B>) -> bool {
        self.matches(tool) && tool.groups().any(|group| self.includes_group(group))
    }

    /// True if it selects a tool through an active group.
    fn admits<B>(&self, tool: &Tool<B>, activity: &Activity<'_>) -> bool {
        self.matches(tool) && tool.groups().any(|group| activity.has(group) && self.includes_group(group))
    }

    /// True if it includes a group.
    pub fn includes_group(&self, group: &Group) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(group.name()))
    }

    fn matches<B>(&self, tool: &Tool<B>) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(&*tool.name))
            && !self.exclude.contains(&*tool.name)
            && !(self.without_agents && tool.is_agent)
            && self.tags.as_ref().is_none_or(|tags| tool.tags.iter().any(|tag| tags.contains(tag)))
    }

    /// The lists of tools that it selects one by one, and not by their groups.
    fn picks(&self) -> impl Iterator<Item = Candidates<'_>> {
        let names = self.names.as_ref().map(Candidates::Names);
        names.into_iter().chain(self.tags.as_ref().map(Candidates::Tags))
    }

    /// The shortest list that contains every tool it can select, if it has any condition.
    fn candidates<'a, B>(&'a self, registry: &'a Registry<B>, activity: &Activity<'_>) -> Option<Candidates<'a>> {
        let groups = self.groups.as_ref().map(Candidates::Groups);
        groups.into_iter().chain(self.picks()).min_by_key(|candidates| candidates.len(registry, activity))
    }
}

/// A list of tools that contains every tool which a filter can select.
#[derive(Clone, Copy)]
enum Candidates<'a> {
    Groups(&'a NameSet),
    Names(&'a NameSet),
    Tags(&'a NameSet),
}

impl<'a> Candidates<'a> {
    fn len<B>(self, registry: &Registry<B>, activity: &Activity<'_>) -> usize {
        match self {
            Self::Groups(ids) => active(registry, ids, activity).map(|entry| entry.tools.len()).sum(),
            Self::Names(names) => names.len(),
            Self::Tags(tags) => tags.iter().map(|tag| registry.tags.tools(tag).len()).sum(),
        }
    }

    /// The positions of the tools in the registry, some perhaps twice.
    fn positions<B>(self, registry: &'a Registry<B>, activity: &Activity<'_>) -> Vec<usize> {
        let position = |name: &str| registry.tools.get_index_of(name);
        match self {
            Self::Groups(ids) => {
                let names = active(registry, ids, activity).flat_map(|entry| &entry.tools);
                names.filter_map(|name| position(name)).collect()
            }
            Self::Names(names) => names.iter().filter_map(|name| position(name)).collect(),
            Self::Tags(tags) => tags.iter().flat_map(|tag| registry.tags.tools(tag)).filter_map(position).collect(),
        }
    }
}

/// The active groups of these names.
fn active<'a, B>(
    registry: &'a Registry<B>,
    ids: &'a NameSet,
    activity: &Activity<'_>,
) -> impl Iterator<Item = &'a GroupEntry> {
    ids.iter().filter_map(|id| registry.groups.get(id)).filter(|entry| activity.has(&entry.group))
}

/// The reason why a tool may not be called.
#[derive(Debug, Clone)]
pub enum Denial {
    /// No tool has the name.
    Unknown,
    /// Its groups are inactive; this is one of them.
    Inactive(Arc<Group>),
    /// It is quarantined for this reason.
    Quarantined(Arc<str>),
    /// The view does not include it, or there is no such tool: a caller with a view does not learn which.
    OutOfView,
}

impl Denial {
    /// The reason why a tool of this group is not listed to a caller who may know of it.
    fn of_hidden<B>(tool: &Tool<B>, group: &Arc<Group>) -> Self {
        tool.quarantine.clone().map_or_else(|| Self::Inactive(group.clone()), Self::Quarantined)
    }
}

impl<B> Registry<B> {
    /// Finds the tool of a call, if it may be called, at all or through a view.
    ///
    /// # Errors
    ///
    /// The reason why not.
    #[inline]
    pub fn admit(&self, name: &str, view: Option<&View>) -> Result<&Tool<B>, Denial> {
        match (self.find(name), view) {
            (Some(tool), None) if tool.is_active() => Ok(tool),
            (Some(tool), None) => Err(Denial::of_hidden(tool, &tool.group)),
            (None, None) => Err(Denial::Unknown),
            (Some(tool), Some(view)) => view.admit(tool).map(|()| tool),
            (None, Some(_)) => Err(Denial::OutOfView),
        }
    }

    /// The name that was probably meant by an unknown one, among the tools that may be called, at all or through a view.
    #[must_use]
    pub fn similar(&self, name: &str, view: Option<&View>) -> Option<&str> {
        match view {
            None => nearest(name, self.listed().map(|tool| &*tool.name)),
            Some(view) => nearest(name, view.listed(self).into_iter().map(|tool| &*tool.name)),
        }
    }
}
