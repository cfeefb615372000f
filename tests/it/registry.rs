//! The registry: names, groups and order, against the rules.

#![allow(clippy::expect_used)]

use std::rc::Rc;
use std::sync::Arc;

use toolcrib::Error;
use toolcrib::registry::{BASIC, Denial, Filter, NameConflict, Registry, Tool, View};
use toolcrib::schema::{Entries, FunctionSchema};

fn tool<B>(registry: &Registry<B>, name: &str, group: &str, body: B) -> Tool<B> {
    let group = registry.group(group).expect("a group");
    Tool::new(name, group, Arc::new(FunctionSchema::new(&Entries::new(), name)), body)
}

pub(super) fn add(registry: &mut Registry<u32>, name: &str, group: &str, body: u32) -> Option<Tool<u32>> {
    let tool = tool(registry, name, group, body);
    registry.insert(tool)
}

pub(super) fn names(registry: &Registry<u32>) -> Vec<&str> {
    registry.tools().map(|tool| &*tool.name).collect()
}

pub(super) fn listed(registry: &Registry<u32>) -> Vec<&str> {
    registry.listed().map(|tool| &*tool.name).collect()
}

fn no_suffix() -> String {
    unreachable!("the name is free or the strategy needs no other one")
}

/// Two groups, one of them on, and three tools.
fn workshop() -> Registry<u32> {
    let mut registry = Registry::default();
    registry.create_group("web", "The web.", true, Some("Be polite.".to_owned())).expect("a new name");
    registry.create_group("files", "The disk.", false, None).expect("a new name");
    add(&mut registry, "browse", "web", 1);
    add(&mut registry, "read", "files", 2);
    add(&mut registry, "think", BASIC, 3);
    registry
}

#[test]
fn a_group_is_created_once_and_basic_never() {
    let mut registry = workshop();

    for name in ["web", BASIC] {
        let error = registry.create_group(name, "Again.", false, None);
        assert_eq!(error, Err(Error::DuplicateGroup { name: name.to_owned() }));
    }
    let web = registry.group("web").expect("still there");
    assert_eq!((web.description().as_str(), web.is_active()), ("The web.", true));
}

#[test]
fn groups_are_told_in_order_and_without_basic() {
    let registry = workshop();

    let names: Vec<&str> = registry.groups().map(|group| group.name()).collect();

    assert_eq!(names, ["web", "files"]);
    assert_eq!(registry.group(BASIC).expect("always there").name(), BASIC);
    assert_eq!(registry.group("nowhere").err(), Some(Error::UnknownGroup { name: "nowhere".to_owned() }));
}

#[test]
fn switching_ignores_what_is_not_there_and_basic() {
    let mut registry = workshop();

    registry.set_active(["nowhere", BASIC, "files"], true);
    registry.set_active(["web", BASIC], false);

    assert_eq!(listed(&registry), ["read", "think"]);
}

#[test]
fn removing_groups_hands_their_tools_back() {
    let mut registry = workshop();

    let gone = registry.remove_groups(&["web".to_owned(), "nowhere".to_owned(), "files".to_owned()]);

    let gone: Vec<u32> = gone.expect("basic is not among them").into_iter().map(|tool| tool.body).collect();
    assert_eq!(gone, [1, 2]);
    assert_eq!(names(&registry), ["think"]);
    assert_eq!(registry.groups().len(), 0);
}

#[test]
fn removing_basic_removes_nothing() {
    let mut registry = workshop();

    let refused = registry.remove_groups(&["web".to_owned(), BASIC.to_owned()]);

    assert_eq!(refused.err(), Some(Error::BasicGroup));
    assert_eq!(names(&registry), ["browse", "read", "think"]);
    assert_eq!(registry.groups().len(), 2);
}

#[test]
fn a_free_name_is_kept_whatever_the_strategy() {
    let registry = workshop();

    for strategy in [NameConflict::Raise, NameConflict::Skip, NameConflict::Override, NameConflict::Rename] {
        assert_eq!(registry.name_for("new", strategy, no_suffix), Ok(Some("new".to_owned())));
    }
}

#[test]
fn a_taken_name_is_refused_skipped_or_taken_over() {
    let registry = workshop();

    let refused = Err(Error::DuplicateTool { name: "read".to_owned() });
    assert_eq!(registry.name_for("read", NameConflict::Raise, no_suffix), refused);
    assert_eq!(registry.name_for("read", NameConflict::Skip, no_suffix), Ok(None));
    assert_eq!(registry.name_for("read", NameConflict::Override, no_suffix), Ok(Some("read".to_owned())));
}

#[test]
fn renaming_tries_until_a_name_is_free() {
    let mut registry = workshop();
    add(&mut registry, "read_0", BASIC, 4);
    add(&mut registry, "read_1", BASIC, 5);
    let mut count = 0..;

    let name = registry.name_for("read", NameConflict::Rename, || count.next().unwrap_or_default().to_string());

    assert_eq!(name, Ok(Some("read_2".to_owned())));
}

#[test]
fn renaming_gives_up_after_a_hundred_tries() {
    let mut registry = workshop();
    add(&mut registry, "read_x", BASIC, 4);
    let mut tries = 0;

    let name = registry.name_for("read", NameConflict::Rename, || {
        tries += 1;
        "x".to_owned()
    });

    assert_eq!(name, Err(Error::NoFreeName { name: "read".to_owned(), tries: 100 }));
    assert_eq!(tries, 100);
}

#[test]
fn a_new_tool_takes_the_place_of_its_namesake() {
    let mut registry = workshop();

    let replaced = add(&mut registry, "browse", "files", 9);

    assert_eq!(replaced.map(|tool| tool.body), Some(1));
    assert_eq!(names(&registry), ["browse", "read", "think"]);
    assert_eq!(registry.find("browse").map(|tool| (tool.body, tool.group.name())), Some((9, "files")));
}

#[test]
fn removing_keeps_the_others_in_order() {
    let mut registry = workshop();

    let gone = registry.remove("browse");

    assert_eq!(gone.map(|tool| tool.body), Some(1));
    assert!(registry.remove("browse").is_none());
    assert_eq!(names(&registry), ["read", "think"]);
}

#[test]
fn a_name_is_found_by_its_bytes() {
    let registry = workshop();

    for name in ["", "Read", "read ", "rea\u{64}\u{301}", "reаd"] {
        assert!(registry.find(name).is_none(), "{name}");
    }
}

#[test]
fn what_is_taken_out_is_handed_back_and_not_dropped() {
    let body = Rc::new(());
    let mut registry = Registry::default();
    registry.create_group("web", "", true, None).expect("a new name");
    for name in ["a", "b", "c"] {
        let group = if name == "b" { "web" } else { BASIC };
        let tool = tool(&registry, name, group, body.clone());
        registry.insert(tool);
    }

    let tool = tool(&registry, "a", BASIC, body.clone());
    let replaced = registry.insert(tool);
    let removed = registry.remove("a");
    let grouped = registry.remove_groups(&["web".to_owned()]).expect("not basic");
    let cleared = registry.clear();

    assert_eq!((replaced.is_some(), removed.is_some(), grouped.len(), cleared.len()), (true, true, 1, 1));
    assert_eq!(Rc::strong_count(&body), 5);
}

#[test]
fn notes_are_those_of_active_groups_that_have_any() {
    let mut registry = workshop();
    registry.create_group("empty", "", true, Some(String::new())).expect("a new name");
    registry.create_group("last", "", true, Some("Bye.".to_owned())).expect("a new name");

    assert_eq!(registry.activated_notes(), "## About Tool Group 'web'\nBe polite.\n## About Tool Group 'last'\nBye.");
    registry.group("web").expect("there").set_notes(None);
    assert_eq!(registry.activated_notes(), "## About Tool Group 'last'\nBye.");
}

#[test]
fn a_group_that_is_held_still_switches() {
    let registry = workshop();
    let (files, before) = (registry.group("files").expect("there"), registry.revision());

    files.set_active(true);

    assert_eq!(listed(&registry), ["browse", "read", "think"]);
    assert_ne!(registry.revision(), before);
}

#[test]
fn a_name_that_is_empty_or_has_a_control_character_is_refused() {
    let registry = Registry::<u8>::default();

    for name in ["", "a\0", "a\nb", "\u{7f}", "\u{85}", "a\u{2028}b"] {
        let refused = registry.name_for(name, NameConflict::Rename, String::new);

        assert!(matches!(refused, Err(Error::InvalidToolName { .. })), "{name:?} gave {refused:?}");
    }
    assert_eq!(
        registry.name_for("naïve <tool>", NameConflict::Raise, String::new),
        Ok(Some("naïve <tool>".to_owned()))
    );
}

#[test]
fn a_quarantined_tool_is_neither_listed_nor_admitted() {
    let mut registry = workshop();
    let (everything, without) = (View::default(), View::from(Filter::of_groups([BASIC])));
    let before = registry.revision();

    registry.quarantine("browse", "it has changed").expect("a known tool");

    assert_ne!(registry.revision(), before);
    assert_eq!(listed(&registry), ["think"]);
    let in_web: Vec<&str> = registry.listed_in(&["web".to_owned()]).expect("a group").map(|tool| &*tool.name).collect();
    assert_eq!(in_web, ["think"]);
    assert!(everything.listed(&registry).iter().all(|tool| &*tool.name != "browse"));
    for view in [None, Some(&everything)] {
        let denial = registry.admit("browse", view).expect_err("it is quarantined");
        assert!(matches!(denial, Denial::Quarantined(reason) if &*reason == "it has changed"));
    }
    assert!(matches!(registry.admit("browse", Some(&without)), Err(Denial::OutOfView)));
    assert_eq!(
        registry.quarantined().map(|(tool, why)| (&*tool.name, why)).collect::<Vec<_>>(),
        [("browse", "it has changed")]
    );
}

#[test]
fn an_accepted_tool_is_in_its_place_again() {
    let mut registry = workshop();
    registry.quarantine("browse", "").expect("a known tool");

    assert!(registry.accept("browse").expect("a known tool"));

    assert!(!registry.accept("browse").expect("a known tool"));
    assert_eq!(listed(&registry), ["browse", "think"]);
    assert!(registry.admit("browse", None).is_ok());
    assert!(matches!(registry.quarantine("hammer", ""), Err(Error::UnknownTool { .. })));
}

#[test]
fn a_quarantine_outlives_groups_and_ends_with_a_replacement() {
    let mut registry = workshop();
    registry.quarantine("browse", "it has changed").expect("a known tool");
    let shared = registry.find("browse").expect("a tool").memberships.clone();

    registry.set_active(["web"], false);
    registry.set_active(["web"], true);
    registry.exchange("browse", |old| Tool::new("browse", old.group.clone(), old.schema.clone(), 4));
    let exchanged = listed(&registry) == ["think"];
    add(&mut registry, "browse", "web", 5);

    assert!(exchanged);
    assert_eq!(shared.quarantine().as_deref(), Some("it has changed"));
    assert_eq!(listed(&registry), ["browse", "think"]);
}

#[test]
fn a_tool_may_be_registered_in_quarantine() {
    let mut registry = workshop();
    let mut new = tool(&registry, "search", "web", 6);
    new.set_quarantine(Some("it is new".into()));

    registry.insert(new);

    assert_eq!(listed(&registry), ["browse", "think"]);
    assert!(matches!(registry.admit("search", None), Err(Denial::Quarantined(_))));
}
