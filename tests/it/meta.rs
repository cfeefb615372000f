//! The meta tool: groups that a model activates.

#![allow(clippy::expect_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::registry::{Registry, Switch};

fn registry() -> Registry<()> {
    let mut registry = Registry::default();
    registry.create_group("search", "Finding things.", true, Some("Be brief.".to_owned())).expect("a new name");
    registry.create_group("_files", "Files.", false, None).expect("a new name");
    registry.create_group("two words", "Both.", false, Some("Be kind.".to_owned())).expect("a new name");
    registry
}

fn wanted(switches: &[(&str, Switch)]) -> Vec<(String, Switch)> {
    switches.iter().map(|(name, switch)| ((*name).to_owned(), switch.clone())).collect()
}

fn active(registry: &Registry<()>) -> Vec<String> {
    registry.groups().filter(|group| group.is_active()).map(|group| group.name().to_owned()).collect()
}

#[test]
fn every_group_is_a_switch_in_the_order_of_creation() {
    let switches = Value::Object(registry().switches());

    assert_eq!(
        switches.to_string(),
        json!({
            "search": {"default": false, "description": "Finding things.", "type": "boolean"},
            "_files": {"default": false, "description": "Files.", "type": "boolean"},
            "two words": {"default": false, "description": "Both.", "type": "boolean"},
        })
        .to_string()
    );
}

#[test]
fn a_choice_is_complete_and_its_notes_come_with_the_answer() {
    let mut registry = registry();

    let text = registry.equip(&wanted(&[("two words", Switch::On), ("_files", Switch::On), ("search", Switch::Off)]));

    assert_eq!(active(&registry), ["_files", "two words"]);
    assert_eq!(
        text.expect("known groups"),
        "Now tool groups 'two words', '_files' are activated. You MUST follow these notes to use these tools:\n\
         <notes>## About Tool Group 'two words'\nBe kind.</notes>"
    );
}

#[test]
fn a_group_without_notes_is_only_named() {
    let text = registry().equip(&wanted(&[("_files", Switch::On)]));

    assert_eq!(text.expect("a known group"), "Now tool groups '_files' are activated.");
}

#[test]
fn an_empty_choice_puts_everything_away() {
    let mut registry = registry();

    let text = registry.equip(&[]);

    assert_eq!(text.expect("nothing is wrong"), "All tool groups are now deactivated currently.");
    assert_eq!(active(&registry), Vec::<String>::new());
}

#[test]
fn a_switch_that_is_no_boolean_changes_nothing() {
    let mut registry = registry();
    let switches = [("_files", Switch::On), ("search", Switch::Wrong("<class 'str'>".to_owned()))];

    let text = registry.equip(&wanted(&switches)).expect_err("no boolean");

    assert_eq!(text, "Invalid arguments: the argument search should be a bool value, but got <class 'str'>.");
    assert_eq!(active(&registry), ["search"]);
}

#[test]
fn unknown_groups_are_named_and_change_nothing() {
    let mut registry = registry();

    let text = registry.equip(&wanted(&[("_files", Switch::On), ("basic", Switch::On), ("ghost", Switch::Off)]));

    assert_eq!(
        text.expect_err("two unknown groups"),
        "Invalid arguments: unknown tool groups 'basic', 'ghost', nothing was changed. \
         The tool groups are 'search', '_files', 'two words'."
    );
    assert_eq!(active(&registry), ["search"]);
}

#[test]
fn without_groups_every_name_is_unknown() {
    let text = Registry::<()>::default().equip(&wanted(&[("a", Switch::On)])).expect_err("an unknown group");

    assert_eq!(text, "Invalid arguments: unknown tool group 'a', nothing was changed. There are no tool groups.");
}

#[test]
fn tools_and_notes_of_named_groups_are_found_whether_they_are_on_or_off() {
    let registry = registry();

    let notes = registry.notes_of(&["two words".to_owned(), "search".to_owned(), "basic".to_owned()]);

    assert_eq!(
        notes.expect("known groups"),
        "## About Tool Group 'search'\nBe brief.\n## About Tool Group 'two words'\nBe kind."
    );
    assert!(registry.notes_of(&["ghost".to_owned()]).is_err());
    assert!(registry.listed_in(&["ghost".to_owned()]).map(drop).is_err());
}

proptest! {
    #[test]
    fn for_any_choice_all_is_as_chosen_or_as_it_was(
        choice in prop::collection::hash_map("search|_files|two words|basic|ghost", 0_u8..3, 0..5),
    ) {
        let mut registry = registry();
        let before = active(&registry);
        let switch = |word| match word { 0 => Switch::Off, 1 => Switch::On, _ => Switch::Wrong("<class 'int'>".to_owned()) };
        let wanted: Vec<(String, Switch)> = choice.into_iter().map(|(name, word)| (name, switch(word))).collect();

        let outcome = registry.equip(&wanted);

        if outcome.is_ok() {
            let is_on = |name: &str| wanted.iter().any(|(other, switch)| other == name && *switch == Switch::On);
            prop_assert!(registry.groups().all(|group| group.is_active() == is_on(group.name())));
        } else {
            prop_assert_eq!(active(&registry), before);
        }
    }
}
