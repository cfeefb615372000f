//! The roster: groups and their tools, rule by rule. Rules for any history are in `properties`.

#![allow(clippy::expect_used)]

use toolcrib::Error;
use toolcrib::registry::Roster;

/// Group `g` holds `a` and `b`, then group `h` holds `b` and `c`.
fn roster() -> Roster<u32> {
    let mut roster = Roster::default();
    roster.register("g", "The first.".to_owned(), [("a", 1), ("b", 2)]).expect("a free id");
    roster.register("h", "The second.".to_owned(), [("b", 3), ("c", 4)]).expect("a free id");
    roster
}

#[test]
fn two_groups_hold_one_tool_and_the_latest_is_told() {
    let roster = roster();

    assert_eq!(roster.holder("b"), Some("h"));
    assert_eq!(roster.holders("b").collect::<Vec<_>>(), ["g", "h"]);
    assert!(roster.is_in("b", ["g"]) && roster.is_in("b", ["h"]));
    assert!(!roster.is_in("a", ["h", "nowhere"]) && !roster.is_in("a", []));
}

#[test]
fn unregistering_a_group_leaves_the_tools_of_another_alone() {
    let mut roster = roster();

    roster.unregister("h").expect("a group");

    assert_eq!((roster.holder("b"), roster.holder("c")), (Some("g"), None));
    assert_eq!(roster.definitions(["g", "h"]), [("a", &1), ("b", &2)]);
}

#[test]
fn definitions_come_in_the_order_of_the_ids_and_the_first_is_kept() {
    let roster = roster();

    assert_eq!(roster.definitions(["h", "nowhere", "g", "h"]), [("b", &3), ("c", &4), ("a", &1)]);
    assert!(roster.definitions([]).is_empty());
}

#[test]
fn registering_an_id_again_replaces_the_group_in_its_place() {
    let mut roster = roster();

    let is_replaced = roster.register("g", "Another.".to_owned(), [("b", 5), ("b", 6)]);

    assert_eq!(is_replaced, Ok(true));
    assert_eq!(roster.ids().collect::<Vec<_>>(), ["g", "h"]);
    assert_eq!((roster.holder("a"), roster.holder("b")), (None, Some("g")));
    assert_eq!(roster.definitions(["g"]), [("b", &6)]);
    assert_eq!(roster.get("g").map(|entry| entry.about().as_str()), Some("Another."));
}

#[test]
fn a_reserved_group_is_neither_replaced_nor_taken_out_but_may_get_other_tools() {
    let mut roster = roster();
    roster.reserve("g").expect("a group");

    let replaced = roster.register("g", String::new(), [("evil", 0)]);
    let removed = roster.unregister("g");
    roster.update("g", [("a", 7)]).expect("a group");

    assert_eq!(replaced.as_ref().map_err(Error::code), Err(Some("reserved_group_id")));
    assert_eq!(removed.as_ref().map_err(Error::code), Err(Some("cannot_unregister_reserved")));
    assert_eq!(roster.definitions(["g"]), [("a", &7)]);
    assert!(roster.get("g").is_some_and(toolcrib::registry::RosterGroup::is_reserved));
}

#[test]
fn a_group_that_is_not_there_is_not_found() {
    let mut roster = roster();

    let refused = [roster.unregister("x"), roster.reserve("x"), roster.update("x", [("a", 1)])];

    assert!(refused.iter().all(|it| it.as_ref().err().and_then(Error::code) == Some("group_not_found")));
}

#[test]
fn an_empty_id_is_an_id_and_a_group_may_be_empty() {
    let mut roster = roster();

    roster.register("", String::new(), Vec::<(&str, u32)>::new()).expect("a free id");

    assert_eq!(roster.get("").map(|entry| entry.tools().len()), Some(0));
}

#[test]
fn every_tool_is_named_once() {
    let roster = roster();

    assert_eq!(roster.tool_names().collect::<Vec<_>>(), ["a", "b", "c"]);
}
