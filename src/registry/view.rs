//! What one who is not shown everything sees of a registry, and may therefore call.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Access, Denial, Filter, Group, Registry, Tool, notes_of};

/// A live choice among the tools of a registry.
///
/// It holds no tools, only what is chosen: a tool that is registered later is seen at once, and one that is gone is not.
/// A tool is listed, and may be called, through a group that the view names and that is on.
#[derive(Debug, Clone, Default)]
pub struct View {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone)]
enum Layer {
    Fixed(Arc<Filter>),
    /// What a role may see, which can change.
    Role(Arc<Access>),
}

impl Layer {
    fn filter(&self) -> Arc<Filter> {
        match self {
            Self::Fixed(filter) => filter.clone(),
            Self::Role(access) => access.filter(),
        }
    }
}

impl From<Filter> for View {
    fn from(filter: Filter) -> Self {
        Self { layers: vec![Layer::Fixed(Arc::new(filter))] }
    }
}

impl From<Arc<Access>> for View {
    fn from(access: Arc<Access>) -> Self {
        Self { layers: vec![Layer::Role(access)] }
    }
}

impl View {
    /// The view of what this one sees and the filter chooses.
    #[must_use]
    pub fn narrowed(&self, filter: Filter) -> Self {
        let mut layers = self.layers.clone();
        if filter != Filter::default() {
            layers.push(Layer::Fixed(Arc::new(filter)));
        }
        Self { layers }
    }

    /// Whether it shows a tool, were its groups on.
    pub fn sees<B>(&self, tool: &Tool<B>) -> bool {
        self.layers.iter().all(|layer| layer.filter().sees(tool))
    }

    /// Whether it shows a group.
    #[must_use]
    pub fn names_group(&self, group: &Group) -> bool {
        self.layers.iter().all(|layer| layer.filter().names_group(group))
    }

    /// Whether it lists a tool, which then may be called.
    pub fn admits<B>(&self, tool: &Tool<B>) -> bool {
        tool.is_on() && self.layers.iter().all(|layer| layer.filter().admits(tool))
    }

    pub(super) fn admit<B>(&self, tool: &Tool<B>) -> Result<(), Denial> {
        if self.admits(tool) {
            return Ok(());
        }
        let shown = tool.groups().find(|group| self.names_group(group)).filter(|_| self.sees(tool));
        Err(shown.map_or(Denial::OutOfView, |group| Denial::Inactive(group.clone())))
    }

    /// The tools it lists, in the order they were registered.
    ///
    /// The time it takes goes with the tools of the groups, the names or the tags that are chosen, whichever are the fewest,
    /// and not with all tools.
    #[must_use]
    pub fn listed<'r, B>(&self, registry: &'r Registry<B>) -> Vec<&'r Tool<B>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(Layer::filter).collect();
        let admits = |tool: &&Tool<B>| tool.is_on() && filters.iter().all(|filter| filter.admits(tool));
        let candidates = filters.iter().filter_map(|filter| filter.candidates(registry));
        let Some(fewest) = candidates.min_by_key(|candidates| candidates.len(registry)) else {
            return registry.tools().filter(admits).collect();
        };
        let mut places = fewest.places(registry);
        places.sort_unstable();
        places.dedup();
        places
            .into_iter()
            .filter_map(|place| registry.tools.get_index(place))
            .map(|(_, it)| it)
            .filter(admits)
            .collect()
    }

    /// The groups it shows, in the order they were created, without the basic one.
    pub fn groups<'r, B>(&self, registry: &'r Registry<B>) -> impl Iterator<Item = &'r Arc<Group>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(Layer::filter).collect();
        registry.groups().filter(move |group| filters.iter().all(|filter| filter.names_group(group)))
    }

    /// The notes of the groups it shows that are on, each under a heading.
    #[must_use]
    pub fn activated_notes<B>(&self, registry: &Registry<B>) -> String {
        notes_of(self.groups(registry).filter(|group| group.is_active()))
    }

    /// The groups that somebody who looks through it may switch: those it shows, but where it picks tools by name or tag,
    /// only those that hold one of these.
    pub fn switched<'r, B>(&self, registry: &'r Registry<B>) -> Vec<&'r Arc<Group>> {
        let filters: Vec<Arc<Filter>> = self.layers.iter().map(Layer::filter).collect();
        let picks = filters.iter().flat_map(|filter| filter.picks());
        let Some(fewest) = picks.min_by_key(|picks| picks.len(registry)) else {
            return self.groups(registry).collect();
        };
        let tools = fewest.places(registry).into_iter().filter_map(|place| registry.tools.get_index(place));
        let seen = tools.map(|(_, tool)| tool).filter(|tool| filters.iter().all(|filter| filter.sees(tool)));
        let held: HashSet<&str> = seen.flat_map(|tool| tool.groups().map(|group| group.name())).collect();
        self.groups(registry).filter(|group| held.contains(group.name())).collect()
    }

    /// Whether some groups cannot be switched through it, be they there or not.
    #[must_use]
    pub fn limits_groups(&self) -> bool {
        let limits = |filter: &Filter| filter.groups.is_some() || filter.picks().next().is_some();
        self.layers.iter().any(|layer| limits(&layer.filter()))
    }

    /// A number that changes whenever what a role may see has changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        let revision = |layer: &Layer| match layer {
            Layer::Fixed(_) => 0,
            Layer::Role(access) => access.revision(),
        };
        self.layers.iter().map(revision).sum()
    }
}
