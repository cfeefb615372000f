//! The saved state of a registry.

#![allow(clippy::expect_used)]

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;
use toolcrib::registry::{GroupState, Registry};

fn group(name: &str, active: bool) -> GroupState {
    GroupState { name: name.to_owned(), description: format!("About {name}."), notes: None, active }
}

fn registry(groups: &[GroupState]) -> Registry<()> {
    let mut registry = Registry::default();
    for group in groups {
        let GroupState { name, description, notes, active } = group;
        registry.create_group(name, description, *active, notes.clone()).expect("a new name");
    }
    registry
}

fn names(registry: &Registry<()>) -> Vec<String> {
    registry.groups().map(|group| group.name().to_owned()).collect()
}

#[test]
fn the_groups_that_are_on_are_told_in_the_order_they_were_created() {
    let registry = registry(&[group("b", true), group("c", false), group("a", true)]);

    assert_eq!(registry.active_groups().collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn exactly_the_named_groups_are_on() {
    let mut registry = registry(&[group("a", true), group("b", false)]);

    registry.set_active_groups(&HashSet::from(["b".to_owned(), "unknown".to_owned()]));

    assert_eq!(registry.active_groups().collect::<Vec<_>>(), ["b"]);
    assert_eq!(names(&registry), ["a", "b"]);
}

#[test]
fn restored_groups_are_what_they_were_in_the_order_they_had() {
    let mut registry = registry(&[group("new", true), group("kept", false)]);
    let kept = registry.group("kept").expect("a group");
    let saved = vec![
        GroupState { notes: Some("Mind the gap.".to_owned()), ..group("gone", true) },
        GroupState { description: "Otherwise.".to_owned(), ..group("kept", true) },
    ];

    registry.restore_groups(saved.clone());

    let expected: Vec<_> = saved.into_iter().chain([group("new", false)]).collect();
    assert_eq!(registry.group_states(), expected);
    assert!(kept.is_active(), "a group that is still there is the same group");
}

#[test]
fn restoring_changes_the_listing() {
    let mut registry = registry(&[]);
    let before = registry.revision();

    registry.restore_groups(Vec::new());

    assert_ne!(registry.revision(), before);
}

#[test]
fn a_state_of_another_form_is_refused() {
    let entry = json!({ "name": "a", "description": "", "notes": null, "active": true });
    for value in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "groups": {} }),
        json!({ "groups": [], "roles": [] }),
        json!({ "groups": ["a"] }),
        json!({ "groups": [{ "name": "a" }] }),
        json!({ "groups": [{ "name": "a", "description": "", "notes": 1, "active": true }] }),
        json!({ "groups": [{ "name": "a", "description": "", "notes": null, "active": "yes" }] }),
        json!({ "groups": [{ "name": "a", "description": "", "notes": null, "active": true, "more": 1 }] }),
        json!({ "groups": [{ "name": "basic", "description": "", "notes": null, "active": false }] }),
        json!({ "groups": [entry, entry] }),
    ] {
        assert!(GroupState::read_all(value.clone()).is_err(), "{value}");
    }
}

proptest! {
    #[test]
    fn any_groups_come_back_as_they_were(
        groups in prop::collection::hash_map("[^b].*", (".*", prop::option::of(".*"), any::<bool>()), 0..9)
    ) {
        let groups: Vec<GroupState> = groups
            .into_iter()
            .map(|(name, (description, notes, active))| GroupState { name, description, notes, active })
            .collect();
        let mut other = registry(&[group("other", true)]);

        other.restore_groups(GroupState::read_all(GroupState::write_all(&groups)).expect("what was written"));

        prop_assert_eq!(&other.group_states()[..groups.len()], &groups[..]);
    }
}
