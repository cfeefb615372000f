//! The registry after any history, against a simple model of it.

use proptest::prelude::*;
use toolcrib::registry::{BASIC, Registry};

use crate::registry::{add, listed, names};

#[derive(Debug, Clone)]
enum Step {
    Create(u8, bool),
    Switch(u8, bool),
    Drop(u8),
    Insert(u8, u8),
    Remove(u8),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u8, any::<bool>()).prop_map(|(group, active)| Step::Create(group, active)),
        3 => (0..4u8, any::<bool>()).prop_map(|(group, active)| Step::Switch(group, active)),
        1 => (0..4u8).prop_map(Step::Drop),
        6 => (0..5u8, 0..4u8).prop_map(|(tool, group)| Step::Insert(tool, group)),
        2 => (0..5u8).prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ]
}

const GROUPS: [&str; 4] = ["g", "h", "i", BASIC];
const TOOLS: [&str; 5] = ["a", "b", "c", "d", "e"];

proptest! {
    #[test]
    fn any_history_ends_where_a_simple_model_does(steps in prop::collection::vec(step(), 0..60)) {
        let mut registry = Registry::default();
        let mut groups: Vec<(u8, bool)> = Vec::new();
        let mut tools: Vec<(u8, u8)> = Vec::new();

        for step in steps {
            let (before, listing) = (registry.revision(), listed(&registry).join(" "));
            match step {
                Step::Create(group, active) => {
                    let is_new = groups.iter().all(|(known, _)| *known != group);
                    let created = registry.create_group(GROUPS[usize::from(group)], "", active, None);
                    prop_assert_eq!(created.is_ok(), is_new);
                    groups.extend(is_new.then_some((group, active)));
                }
                Step::Switch(group, active) => {
                    registry.set_active([GROUPS[usize::from(group)]], active);
                    groups.iter_mut().filter(|(known, _)| *known == group).for_each(|known| known.1 = active);
                }
                Step::Drop(group) => {
                    let dropped = registry.remove_groups(&[GROUPS[usize::from(group)].to_owned()]);
                    prop_assert_eq!(dropped.is_ok(), group != 3);
                    if group != 3 {
                        groups.retain(|(known, _)| *known != group);
                        tools.retain(|(_, home)| *home != group);
                    }
                }
                Step::Insert(name, group) => {
                    let exists = group == 3 || groups.iter().any(|(known, _)| *known == group);
                    prop_assert_eq!(registry.group(GROUPS[usize::from(group)]).is_ok(), exists);
                    if exists {
                        add(&mut registry, TOOLS[usize::from(name)], GROUPS[usize::from(group)], 0);
                        match tools.iter_mut().find(|(known, _)| *known == name) {
                            Some(known) => known.1 = group,
                            None => tools.push((name, group)),
                        }
                    }
                }
                Step::Remove(name) => {
                    registry.remove(TOOLS[usize::from(name)]);
                    tools.retain(|(known, _)| *known != name);
                }
                Step::Clear => {
                    registry.clear();
                    groups.clear();
                    tools.clear();
                }
            }
            let is_on = |group: u8| group == 3 || groups.contains(&(group, true));
            let expected: Vec<&str> =
                tools.iter().filter(|(_, group)| is_on(*group)).map(|(name, _)| TOOLS[usize::from(*name)]).collect();
            let all: Vec<&str> = tools.iter().map(|(name, _)| TOOLS[usize::from(*name)]).collect();
            prop_assert_eq!(names(&registry), all);
            prop_assert_eq!(listed(&registry), expected);
            prop_assert!(listed(&registry).join(" ") == listing || registry.revision() != before);
        }
    }
}
