//! Views: a listed tool may be called, and other tools cannot be detected.

#![allow(clippy::expect_used)]

use toolcrib::Error;
use toolcrib::registry::{BASIC, Denial, Filter, Member, NameSet, Registry, View};

use crate::membership::{about, new, register};
use crate::registry::add;

fn set(names: &[&str]) -> NameSet {
    names.iter().map(|name| Box::from(*name)).collect()
}

fn groups(ids: &[&str]) -> Filter {
    Filter { groups: Some(set(ids)), ..Filter::default() }
}

fn seen(view: &View, registry: &Registry<u32>) -> Vec<String> {
    view.listed(registry).iter().map(|tool| tool.name.to_string()).collect()
}

/// `look` in basic; `drill` and `saw` in machines, `saw` tagged; `drill` in `metal` as well; `plan` in a group that is off.
fn workshop() -> Registry<u32> {
    let mut registry = Registry::default();
    add(&mut registry, "look", BASIC, 1);
    for id in ["machines", "metal", "office"] {
        registry.create_group(id, "", id != "office", None).expect("a new name");
    }
    add(&mut registry, "drill", "machines", 2);
    let mut saw = new(&registry, "saw", 3);
    (saw.group, saw.tags) = (registry.group("machines").expect("there"), ["loud".into(), "sharp".into()].into());
    registry.insert(saw);
    register(&mut registry, "metal", &["drill"]).expect("not reserved");
    add(&mut registry, "plan", "office", 4);
    registry
}

#[test]
fn a_view_follows_the_tags_of_a_tool() {
    let mut registry = workshop();
    let sharp: View = Filter { tags: Some(set(&["sharp"])), ..Filter::default() }.into();
    let revision = registry.revision();

    registry.set_tags("drill", &["sharp".into(), "loud".into(), "sharp".into()]).expect("there");
    registry.set_tags("saw", &[]).expect("there");

    assert_eq!(seen(&sharp, &registry), ["drill"]);
    assert_ne!(registry.revision(), revision);
    let drill = registry.find("drill").expect("there");
    assert_eq!(drill.tags.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["sharp", "loud"]);
    assert_eq!(drill.tags, drill.memberships.tags());
    assert!(matches!(registry.set_tags("chisel", &[]), Err(Error::UnknownTool { name }) if name == "chisel"));
}

#[test]
fn a_view_lists_what_is_chosen_in_the_order_of_registration() {
    let registry = workshop();

    for (filter, expected) in [
        (Filter::default(), &["look", "drill", "saw"][..]),
        (groups(&["metal", "machines", BASIC]), &["look", "drill", "saw"]),
        (groups(&["metal"]), &["drill"]),
        (groups(&["nowhere"]), &[]),
        (groups(&[]), &[]),
        (groups(&["office"]), &[]),
        (Filter { names: Some(set(&["saw", "look", "plan"])), ..Filter::default() }, &["look", "saw"]),
        (Filter { names: Some(set(&["saw"])), ..groups(&["metal"]) }, &[]),
        (Filter { names: Some(set(&[])), ..Filter::default() }, &[]),
        (Filter { exclude: set(&["drill"]), ..groups(&["machines"]) }, &["saw"]),
        (Filter { exclude: set(&["drill"]), ..Filter::default() }, &["look", "saw"]),
        (Filter { tags: Some(set(&["sharp", "soft"])), ..Filter::default() }, &["saw"]),
        (Filter { tags: Some(set(&["machines"])), ..Filter::default() }, &[]),
        (Filter { groups: Some(set(&["loud"])), ..Filter::default() }, &[]),
        (Filter { tags: Some(set(&[])), ..Filter::default() }, &[]),
    ] {
        assert_eq!(seen(&filter.clone().into(), &registry), expected, "{filter:?}");
    }
}

#[test]
fn a_view_reaches_a_tool_only_through_groups_that_it_names_and_that_are_on() {
    let mut registry = workshop();
    let (metal, machines) = (View::from(groups(&["metal"])), View::from(groups(&["machines"])));

    registry.set_active(["metal"], false);

    assert_eq!(seen(&machines, &registry), ["drill", "saw"]);
    assert_eq!(seen(&metal, &registry), Vec::<String>::new());
    let denial = registry.admit("drill", Some(&metal)).expect_err("the way in is off");
    assert!(matches!(denial, Denial::Inactive(group) if group.name() == "metal"));
}

#[test]
fn what_a_view_does_not_show_looks_as_if_it_were_not_there() {
    let registry = workshop();
    let view = View::from(groups(&["machines"]));

    for name in ["look", "plan", "nothing", "dri\u{4ca}l", "drill ", "Drill", "ｄrill", "", "drill\0"] {
        assert!(matches!(registry.admit(name, Some(&view)), Err(Denial::OutOfView)), "{name:?}");
    }
    assert!(matches!(registry.admit("nothing", None), Err(Denial::Unknown)));
}

#[test]
fn a_view_follows_what_is_registered_and_taken_out() {
    let mut registry = workshop();
    let view = View::from(groups(&["garden"]));
    assert!(seen(&view, &registry).is_empty());
    let tool = new(&registry, "rake", 5);

    registry.register_group(about("garden", true), &mut vec![Member::New(tool)]).expect("a free id");
    assert_eq!(seen(&view, &registry), ["rake"]);
    registry.unregister_group("garden").expect("a group");

    assert!(seen(&view, &registry).is_empty());
}

#[test]
fn narrowing_never_shows_more() {
    let registry = workshop();
    let machines = View::from(groups(&["machines"]));

    assert_eq!(seen(&machines.narrowed(groups(&["metal"])), &registry), ["drill"]);
    assert_eq!(seen(&machines.narrowed(groups(&[BASIC])), &registry), Vec::<String>::new());
    assert_eq!(seen(&machines.narrowed(Filter::default()), &registry), ["drill", "saw"]);
    assert_eq!(seen(&View::from(groups(&[])).narrowed(Filter::default()), &registry), Vec::<String>::new());
}

#[test]
fn a_view_shows_the_groups_it_names() {
    let registry = workshop();
    let names = |view: &View| view.groups(&registry).map(|group| group.name().to_owned()).collect::<Vec<_>>();

    assert_eq!(names(&View::default()), ["machines", "metal", "office"]);
    assert_eq!(names(&View::from(groups(&["office", "metal", "x", BASIC]))), ["metal", "office"]);
    assert_eq!(names(&View::from(groups(&["office", "metal"])).narrowed(groups(&["metal"]))), ["metal"]);
}

#[test]
fn a_tag_that_is_gone_chooses_nothing() {
    let mut registry = workshop();
    let loud = View::from(Filter { tags: Some(set(&["loud"])), ..Filter::default() });

    add(&mut registry, "saw", "machines", 9);

    assert!(seen(&loud, &registry).is_empty());
}
