//! Groups that share tools: memberships, and the tools that a removed group takes along.

#![allow(clippy::expect_used)]

use std::sync::{Arc, LazyLock};

use toolcrib::Error;
use toolcrib::registry::{BASIC, Denial, GroupState, Member, RegisteredGroup, Registry, Tool};
use toolcrib::schema::{Entries, FunctionSchema};

use crate::registry::{add, listed, names};

/// One schema for all tools: it plays no part here, and takes time to make.
static SCHEMA: LazyLock<Arc<FunctionSchema>> = LazyLock::new(|| Arc::new(FunctionSchema::new(&Entries::new(), "any")));

pub(super) fn about(id: &str, active: bool) -> GroupState {
    GroupState { name: id.to_owned(), description: format!("About {id}."), notes: None, active }
}

pub(super) fn new(registry: &Registry<u32>, name: &str, body: u32) -> Tool<u32> {
    let basic = registry.group(BASIC).expect("always there");
    Tool::new(name, basic, SCHEMA.clone(), body)
}

pub(super) fn register(registry: &mut Registry<u32>, id: &str, tools: &[&str]) -> Result<RegisteredGroup<u32>, Error> {
    let mut members = tools.iter().map(|name| Member::Known((*name).to_owned())).collect();
    registry.register_group(about(id, true), &mut members)
}

pub(super) fn holders(registry: &Registry<u32>, name: &str) -> Vec<String> {
    registry.holders(name).map(str::to_owned).collect()
}

/// `look` in basic, `read` in files, and both in `desk`.
fn workshop() -> Registry<u32> {
    let mut registry = Registry::default();
    registry.create_group("files", "The disk.", true, None).expect("a new name");
    add(&mut registry, "look", BASIC, 1);
    add(&mut registry, "read", "files", 2);
    register(&mut registry, "desk", &["look", "read"]).expect("a free id");
    registry
}

#[test]
fn a_tool_is_in_several_groups_and_stays_where_it_was() {
    let registry = workshop();

    assert_eq!(holders(&registry, "read"), ["files", "desk"]);
    assert_eq!(registry.holder("read"), Some("desk"));
    assert_eq!(registry.find("read").map(|tool| tool.group.name()), Some("files"));
    assert_eq!(registry.members("desk").collect::<Vec<_>>(), ["look", "read"]);
    assert_eq!(registry.group_ids().collect::<Vec<_>>(), [BASIC, "files", "desk"]);
}

#[test]
fn a_tool_may_be_called_while_any_of_its_groups_is_active() {
    let mut registry = workshop();

    registry.set_active(["files"], false);
    assert!(registry.admit("read", None).is_ok());
    assert_eq!(listed(&registry), ["look", "read"]);
    registry.set_active(["desk"], false);

    assert!(matches!(registry.admit("read", None), Err(Denial::Inactive(group)) if group.name() == "files"));
    assert_eq!(listed(&registry), ["look"]);
}

#[test]
fn unregistering_takes_out_only_what_no_other_group_holds() {
    let mut registry = workshop();
    let tool = new(&registry, "tidy", 3);
    registry
        .register_group(about("room", true), &mut vec![Member::New(tool), Member::Known("read".to_owned())])
        .expect("ok");

    let gone = registry.unregister_group("room").expect("a group");

    assert_eq!(gone.iter().map(|tool| tool.body).collect::<Vec<_>>(), [3]);
    assert_eq!(holders(&registry, "read"), ["files", "desk"]);
    assert_eq!(names(&registry), ["look", "read"]);
}

#[test]
fn the_first_group_may_go_and_the_tool_stays_in_the_others() {
    let mut registry = workshop();
    let memberships = registry.find("read").expect("a tool").memberships.clone();

    let gone = registry.remove_groups(&["files".to_owned()]).expect("not reserved");

    assert!(gone.is_empty());
    assert_eq!(registry.find("read").map(|tool| tool.group.name()), Some("desk"));
    assert_eq!(memberships.group().name(), "desk", "the shared memberships follow");
    assert!(registry.admit("read", None).is_ok());
}

#[test]
fn a_group_that_is_gone_switches_nothing_on() {
    let mut registry = workshop();
    let files = registry.group("files").expect("a group");
    registry.set_active(["desk"], false);
    registry.unregister_group("files").expect("a group");

    files.set_active(true);

    assert!(matches!(registry.admit("read", None), Err(Denial::Inactive(_))));
}

#[test]
fn registering_an_id_again_replaces_the_group_and_its_tools_in_place() {
    let mut registry = workshop();
    let tool = new(&registry, "tidy", 3);
    registry.register_group(about("room", true), &mut vec![Member::New(tool)]).expect("a free id");
    register(&mut registry, "last", &[]).expect("a free id");
    let tool = new(&registry, "tidy", 4);

    let registered = registry.register_group(about("room", false), &mut vec![Member::New(tool)]).expect("not reserved");

    assert!(registered.is_replaced);
    assert_eq!(registered.removed.iter().map(|tool| tool.body).collect::<Vec<_>>(), [3]);
    assert_eq!(registry.group_ids().collect::<Vec<_>>(), [BASIC, "files", "desk", "room", "last"]);
    assert_eq!(
        registry.find("tidy").map(|tool| (tool.body, tool.group.name(), tool.is_active())),
        Some((4, "room", false))
    );
}

#[test]
fn replacing_a_group_takes_out_what_only_it_held() {
    let mut registry = workshop();

    let registered = register(&mut registry, "files", &[]).expect("not reserved");
    assert!(registered.removed.is_empty(), "the desk still holds it");
    let registered = register(&mut registry, "desk", &["look"]).expect("not reserved");

    assert_eq!(registered.removed.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["read"]);
    assert_eq!(holders(&registry, "look"), [BASIC, "desk"]);
}

#[test]
fn no_group_takes_the_name_of_a_tool_that_another_holds() {
    let mut registry = workshop();
    let mut members = vec![Member::New(new(&registry, "thief", 8)), Member::New(new(&registry, "read", 9))];

    let refused = registry.register_group(about("evil", true), &mut members);

    assert_eq!(refused.err(), Some(Error::DuplicateTool { name: "read".to_owned() }));
    assert_eq!(members.len(), 2, "the members are still the caller's");
    assert_eq!(registry.find("read").map(|tool| tool.body), Some(2));
    assert_eq!(names(&registry), ["look", "read"]);
    assert!(registry.group("evil").is_err());
}

#[test]
fn a_group_of_a_tool_that_is_not_there_is_refused_whole() {
    let mut registry = workshop();

    let refused = register(&mut registry, "desk", &["look", "missing"]);

    let error = refused.expect_err("a tool is missing");
    assert_eq!(error.code(), Some("invalid_group_def"));
    assert_eq!(error.to_string(), "invalid group `desk`: unknown tool `missing`");
    assert_eq!(holders(&registry, "read"), ["files", "desk"]);
}

#[test]
fn reserved_ids_are_kept_and_basic_is_one_of_them() {
    let mut registry = workshop();
    registry.reserve_group("desk").expect("a group");

    for id in ["desk", BASIC] {
        assert_eq!(register(&mut registry, id, &["missing"]).expect_err("reserved").code(), Some("reserved_group_id"));
        let removed = registry.unregister_group(id).expect_err("reserved");
        assert_eq!(removed.code(), Some("cannot_unregister_reserved"));
    }
    let removed = registry.remove_groups(&["files".to_owned(), "desk".to_owned()]);
    assert_eq!(removed.err(), Some(Error::ReservedGroupStays { id: "desk".to_owned() }));
    assert!(registry.group("files").is_ok(), "nothing was removed");
}

#[test]
fn a_tool_that_is_replaced_is_in_the_groups_of_the_new_one_in_their_order() {
    let mut registry = workshop();
    let (files, desk) = (registry.group("files").expect("there"), registry.group("desk").expect("there"));
    let mut tool = new(&registry, "read", 5);
    (tool.group, tool.more) = (desk, Box::new([files.clone(), files]));

    registry.insert(tool);
    assert_eq!(holders(&registry, "read"), ["desk", "files"]);
    add(&mut registry, "read", BASIC, 6);

    assert_eq!(holders(&registry, "read"), [BASIC]);
    assert_eq!(registry.members("desk").collect::<Vec<_>>(), ["look"]);
    assert_eq!(names(&registry), ["look", "read"]);
}

#[test]
fn a_tool_that_is_told_anew_keeps_its_groups_and_tags() {
    let mut registry = workshop();

    let old = registry.exchange("read", |old| Tool::new("other", old.group.clone(), old.schema.clone(), 7));

    assert_eq!(old.map(|tool| tool.body), Some(2));
    let tool = registry.find("read").expect("there");
    assert_eq!((tool.body, &*tool.name, tool.memberships.groups().len()), (7, "read", 2));
}

#[test]
fn loading_a_state_orders_the_groups_and_moves_no_tool() {
    let mut registry = workshop();

    registry.restore_groups(vec![about("desk", false), about("gone", true)]);

    assert_eq!(registry.group_ids().collect::<Vec<_>>(), [BASIC, "desk", "gone", "files"]);
    assert_eq!(holders(&registry, "read"), ["files", "desk"]);
    assert_eq!(listed(&registry), ["look"]);
}
