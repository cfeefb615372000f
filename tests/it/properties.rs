//! What holds for groups and roles after any history: of the roster, and of a registry that is looked at through views.

#![allow(clippy::expect_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use toolcrib::Error;
use toolcrib::registry::{BASIC, Filter, Member, RecordStamp, Registry, Role, Roles, Roster, RosterGroup, View};

use crate::membership::{about, new};

const GROUPS: [&str; 5] = ["org_management", "g", "h", "", "k"];
const TOOLS: [&str; 6] = ["a", "b", "c", "d", "\u{430}", "e"];

#[derive(Debug, Clone)]
enum Step {
    Register(&'static str, Vec<&'static str>),
    Unregister(&'static str),
    Update(&'static str, Vec<&'static str>),
    Reserve(&'static str),
    Switch(&'static str, bool),
    Insert(&'static str, Vec<&'static str>),
    Remove(&'static str),
}

fn group() -> impl Strategy<Value = &'static str> {
    prop::sample::select(GROUPS.to_vec())
}

fn any_group() -> impl Strategy<Value = &'static str> {
    prop::sample::select([&GROUPS[..], &[BASIC, "nowhere", "G"]].concat())
}

fn tool() -> impl Strategy<Value = &'static str> {
    prop::sample::select(TOOLS.to_vec())
}

fn tools() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(tool(), 0..5)
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (group(), tools()).prop_map(|(id, tools)| Step::Register(id, tools)),
        2 => group().prop_map(Step::Unregister),
        2 => (group(), tools()).prop_map(|(id, tools)| Step::Update(id, tools)),
        1 => group().prop_map(Step::Reserve),
        2 => (group(), any::<bool>()).prop_map(|(id, active)| Step::Switch(id, active)),
        4 => (tool(), prop::collection::vec(group(), 0..3)).prop_map(|(name, ids)| Step::Insert(name, ids)),
        1 => tool().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..14)
}

/// A roster after a history, where each definition tells its group.
fn roster(steps: Vec<Step>) -> Roster<&'static str> {
    let mut roster = Roster::default();
    for step in steps {
        // A step that is refused is a part of the history too.
        let _ = match step {
            Step::Register(id, tools) => roster.register(id, id.to_uppercase(), said(id, &tools)).map(drop),
            Step::Unregister(id) => roster.unregister(id),
            Step::Update(id, tools) => roster.update(id, said(id, &tools)),
            Step::Reserve(id) => roster.reserve(id),
            Step::Switch(..) | Step::Insert(..) | Step::Remove(_) => Ok(()),
        };
    }
    roster
}

fn said(id: &'static str, tools: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    tools.iter().map(|name| (*name, id)).collect()
}

/// Registers a group in which names that are free become new tools.
fn register(registry: &mut Registry<u32>, id: &str, tools: &[&str]) -> Result<(), Error> {
    let mut fresh = set(tools.iter().copied().filter(|name| registry.find(name).is_none()));
    let mut members = Vec::new();
    for name in tools {
        let is_new = fresh.remove(*name);
        members.push(if is_new { Member::New(new(registry, name, 0)) } else { Member::Known((*name).to_owned()) });
    }
    registry.register_group(about(id, true), &mut members).map(drop)
}

fn registry(steps: Vec<Step>) -> Registry<u32> {
    let mut registry = Registry::default();
    for step in steps {
        let _ = match step {
            Step::Register(id, tools) | Step::Update(id, tools) => register(&mut registry, id, &tools),
            Step::Unregister(id) => registry.unregister_group(id).map(drop),
            Step::Reserve(id) => registry.reserve_group(id),
            Step::Switch(id, active) => {
                registry.set_active([id], active);
                Ok(())
            }
            Step::Insert(name, ids) => {
                let mut tool = new(&registry, name, 1);
                let mut groups = ids.iter().filter_map(|id| registry.group(id).ok());
                tool.group = groups.next().unwrap_or(tool.group);
                tool.more = groups.collect();
                tool.tags = ids.iter().map(|id| Box::from(*id)).collect();
                registry.insert(tool);
                Ok(())
            }
            Step::Remove(name) => {
                registry.remove(name);
                Ok(())
            }
        };
    }
    registry
}

/// The same, with every group on.
fn open_registry(steps: Vec<Step>) -> Registry<u32> {
    let mut registry = registry(steps);
    registry.set_active(GROUPS, true);
    registry
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn seen(view: &View, registry: &Registry<u32>) -> BTreeSet<String> {
    view.listed(registry).iter().map(|tool| tool.name.to_string()).collect()
}

fn union(registry: &Registry<u32>, ids: &[&str]) -> BTreeSet<String> {
    set(ids.iter().flat_map(|id| registry.members(id)))
}

fn told(roster: &Roster<&'static str>) -> Vec<String> {
    roster.list().map(|(id, entry)| format!("{id} {} {:?}", entry.about(), entry.tools().collect::<Vec<_>>())).collect()
}

fn told_registry(registry: &Registry<u32>) -> Vec<String> {
    let tools = |id: &str| registry.members(id).collect::<Vec<_>>().join(",");
    let holders = registry.tools().map(|tool| format!("{:?}", registry.holders(&tool.name).collect::<Vec<_>>()));
    registry.group_ids().map(|id| format!("{id} {}", tools(id))).chain(holders).collect()
}

/// What a tool knows of itself agrees with what the groups say.
fn is_whole(registry: &Registry<u32>) -> bool {
    registry.tools().all(|tool| {
        let groups: Vec<&str> = tool.groups().map(|group| group.name()).collect();
        let seat: Vec<String> = tool.memberships.groups().iter().map(|group| group.name().to_owned()).collect();
        groups == registry.holders(&tool.name).collect::<Vec<_>>()
            && groups == seat
            && groups.iter().all(|id| registry.members(id).any(|name| *name == *tool.name))
    }) && registry.group_ids().all(|id| registry.members(id).all(|name| registry.find(name).is_some()))
}

fn filter(groups: Option<Vec<&str>>, names: Option<Vec<&str>>, exclude: &[&str], tags: Option<Vec<&str>>) -> Filter {
    let boxed = |names: Vec<&str>| names.into_iter().map(Box::from).collect();
    Filter {
        groups: groups.map(boxed),
        names: names.map(boxed),
        exclude: exclude.iter().map(|name| Box::from(*name)).collect(),
        tags: tags.map(boxed),
        without_agents: false,
    }
}

fn filters() -> impl Strategy<Value = Filter> {
    let groups = prop::option::of(prop::collection::vec(any_group(), 0..4));
    let tags = prop::option::weighted(0.3, prop::collection::vec(group(), 0..3));
    (groups, prop::option::weighted(0.3, tools()), prop::collection::vec(tool(), 0..2), tags)
        .prop_map(|(groups, names, exclude, tags)| filter(groups, names, &exclude, tags))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn property_1_a_registered_group_is_there_and_the_latest_of_its_tools(steps in history(), id in group(), tools in tools()) {
        let mut roster = roster(steps.clone());
        if roster.register(id, "new".to_owned(), said(id, &tools)).is_ok() {
            let entry = roster.get(id).expect("registered");
            prop_assert_eq!(entry.about(), "new");
            prop_assert_eq!(set(entry.tools().map(|(name, _)| name)), set(tools.iter().copied()));
            prop_assert!(tools.iter().all(|name| roster.holder(name) == Some(id)));
        }
        let mut registry = registry(steps);
        if register(&mut registry, id, &tools).is_ok() {
            prop_assert_eq!(registry.group(id).expect("registered").description(), format!("About {id}."));
            prop_assert_eq!(set(registry.members(id)), set(tools.iter().copied()));
            prop_assert!(tools.iter().all(|name| registry.holder(name) == Some(id)));
        }
        prop_assert!(is_whole(&registry));
    }

    #[test]
    fn property_2_an_unregistered_group_is_gone_from_its_tools(steps in history(), id in group()) {
        let mut roster = roster(steps.clone());
        let held: Vec<String> = roster.definitions([id]).iter().map(|(name, _)| (*name).to_owned()).collect();
        if roster.unregister(id).is_ok() {
            prop_assert!(roster.get(id).is_none());
            for name in held {
                prop_assert!(roster.holders(&name).all(|holder| holder != id));
                let others = roster.ids().any(|other| roster.is_in(&name, [other]));
                prop_assert_eq!(roster.holder(&name).is_some(), others);
            }
        }
        let mut registry = registry(steps);
        let held: Vec<String> = registry.members(id).map(str::to_owned).collect();
        if registry.unregister_group(id).is_ok() {
            prop_assert!(registry.group(id).is_err());
            for name in held {
                prop_assert_eq!(registry.find(&name).is_some(), registry.holder(&name).is_some());
                prop_assert!(registry.holders(&name).all(|holder| holder != id));
            }
        }
        prop_assert!(is_whole(&registry));
    }

    #[test]
    fn property_3_a_reserved_group_is_refused_and_nothing_changes(steps in history(), id in group(), tools in tools()) {
        let mut roster = roster(steps.clone());
        if roster.reserve(id).is_ok() {
            let before = told(&roster);
            let refused = roster.register(id, String::new(), said(id, &tools)).map(drop);
            prop_assert_eq!(refused.as_ref().map_err(Error::code), Err(Some("reserved_group_id")));
            let refused = roster.unregister(id);
            prop_assert_eq!(refused.as_ref().map_err(Error::code), Err(Some("cannot_unregister_reserved")));
            prop_assert_eq!(told(&roster), before);
        }
        let mut registry = registry(steps);
        if registry.reserve_group(id).is_ok() {
            let before = told_registry(&registry);
            let refused = register(&mut registry, id, &tools);
            prop_assert_eq!(refused.as_ref().map_err(Error::code), Err(Some("reserved_group_id")));
            let refused = registry.unregister_group(id).map(drop);
            prop_assert_eq!(refused.as_ref().map_err(Error::code), Err(Some("cannot_unregister_reserved")));
            prop_assert!(registry.remove_groups(&[id.to_owned()]).is_err());
            prop_assert_eq!(told_registry(&registry), before);
        }
    }

    #[test]
    fn property_4_what_groups_define_together_is_their_union_without_duplicates(
        steps in history(), ids in prop::collection::vec(any_group(), 0..6)
    ) {
        let roster = roster(steps.clone());
        let names: Vec<&str> = roster.definitions(ids.iter().copied()).iter().map(|(name, _)| *name).collect();
        let expected = set(ids.iter().filter_map(|id| roster.get(id)).flat_map(RosterGroup::tools).map(|(name, _)| name));
        prop_assert_eq!(names.len(), expected.len());
        prop_assert_eq!(set(names), expected);

        let registry = open_registry(steps);
        let view = View::from(Filter::of_groups(ids.iter().copied()));
        let names: Vec<&str> = view.listed(&registry).iter().map(|tool| &*tool.name).collect();
        let order: Vec<&str> = registry.tools().map(|tool| &*tool.name).filter(|name| names.contains(name)).collect();
        prop_assert_eq!(&names, &order, "in the order of registration, each once");
        prop_assert_eq!(set(names), union(&registry, &ids));
    }

    #[test]
    fn property_5_a_tool_outside_of_a_role_is_never_admitted(
        steps in history(), ids in prop::collection::vec(any_group(), 0..4), name in "[abcdA]|\u{430}|b|.{0,3}"
    ) {
        let registry = open_registry(steps);
        let view = Role::new("agent", "", Some(ids.iter().map(|id| (*id).to_owned()).collect())).view(None);

        let admitted = registry.admit(&name, Some(&view)).is_ok();

        prop_assert_eq!(admitted, union(&registry, &ids).contains(&name));
        prop_assert_eq!(admitted, registry.is_in(&name, ids.iter().copied()));
        prop_assert!(registry.admit(&name, Some(&Filter::nothing().into())).is_err());
    }

    #[test]
    fn property_6_a_list_has_one_entry_for_each_group_with_all_of_its_tools(steps in history()) {
        let roster = roster(steps.clone());
        let ids: Vec<&str> = roster.ids().collect();
        prop_assert_eq!(set(ids.iter().copied()).len(), ids.len());
        for (id, entry) in roster.list() {
            prop_assert_eq!(entry.tools().len(), roster.definitions([id]).len());
            prop_assert!(entry.tools().all(|(name, said)| *said == id && roster.is_in(name, [id])));
        }
        let names: Vec<&str> = roster.tool_names().collect();
        prop_assert_eq!(names.len(), roster.definitions(ids.iter().copied()).len());

        let registry = registry(steps);
        prop_assert_eq!(registry.group_ids().next(), Some(BASIC));
        prop_assert_eq!(registry.group_ids().len(), registry.groups().len() + 1);
        prop_assert_eq!(union(&registry, &registry.group_ids().collect::<Vec<_>>()).len(), registry.tools().len());
    }

    #[test]
    fn property_8_a_role_without_groups_sees_all_of_them_and_root_exactly_one(
        steps in history(), default in prop::option::of(prop::collection::vec(any_group(), 0..3))
    ) {
        let registry = open_registry(steps);
        let all: Vec<&str> = registry.group_ids().collect();
        let ids = default.clone().unwrap_or(all);
        let mut roles = Roles::new(default.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect()));
        roles.add(Role::new("agent", "", None), RecordStamp::default()).expect("a new name");

        prop_assert_eq!(seen(&roles.view("agent"), &registry), union(&registry, &ids));
        prop_assert_eq!(seen(&roles.view("root"), &registry), union(&registry, &["org_management"]));
        prop_assert_eq!(seen(&roles.view("other"), &registry), BTreeSet::new());
    }

    #[test]
    fn sight_equals_permission(steps in history(), first in filters(), second in filters()) {
        let roster = roster(steps.clone());
        for id in roster.ids() {
            let shown = set(roster.definitions([id]).iter().map(|(name, _)| *name));
            prop_assert_eq!(shown, set(TOOLS.into_iter().filter(|name| roster.is_in(name, [id]))));
        }
        let registry = registry(steps);
        let (outer, inner) = (View::from(first.clone()), View::from(second.clone()));
        for view in [View::default(), outer.clone(), inner.clone(), outer.narrowed(second)] {
            let admitted = set(TOOLS.into_iter().filter(|name| registry.admit(name, Some(&view)).is_ok()));
            prop_assert_eq!(seen(&view, &registry), admitted);
        }
        let all = set(registry.listed().map(|tool| &*tool.name));
        prop_assert_eq!(&seen(&View::default(), &registry), &all);
        prop_assert_eq!(&set(TOOLS.into_iter().filter(|name| registry.admit(name, None).is_ok())), &all);
        let both = &seen(&outer, &registry) & &seen(&inner, &registry);
        prop_assert_eq!(seen(&inner.narrowed(first), &registry), both, "narrowing is intersection");
    }

    #[test]
    fn unregistering_never_makes_a_tool_of_another_group_uncallable(steps in history(), id in group(), other in any_group()) {
        prop_assume!(id != other);
        let mut roster = roster(steps.clone());
        let before = set(roster.definitions([other]).iter().map(|(name, _)| *name));
        let _ = roster.unregister(id);
        prop_assert!(before.iter().all(|name| roster.is_in(name, [other])));

        let mut registry = open_registry(steps);
        let view = View::from(Filter::of_groups([other]));
        let before = seen(&view, &registry);
        let _ = registry.unregister_group(id);
        prop_assert_eq!(&seen(&view, &registry), &before);
        prop_assert!(before.iter().all(|name| registry.admit(name, None).is_ok()));
    }
}
