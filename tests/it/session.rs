//! Sessions: group switches, limits and saved state of one conversation over a shared registry.

#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::policy::Question;
use toolcrib::registry::{
    BASIC, Denial, Filter, LimitReached, Registry, SESSION_FORMAT, Session, SessionLimits, SessionState, Switch, View,
};
use toolcrib::store::{Disk, load, save};

use crate::approval::Place;
use crate::registry::add;

/// `look` in basic, `search` in web, which is off, and `query` in data, which is on.
fn service() -> Registry<u32> {
    let mut registry = Registry::default();
    add(&mut registry, "look", BASIC, 1);
    for (id, active) in [("web", false), ("data", true)] {
        let notes = Some(format!("Notes on {id}."));
        registry.create_group(id, "", active, notes).expect("a new name");
    }
    add(&mut registry, "search", "web", 2);
    add(&mut registry, "query", "data", 3);
    registry
}

fn session(id: &str) -> (Arc<Session>, View) {
    limited(id, SessionLimits::default())
}

fn limited(id: &str, limits: SessionLimits) -> (Arc<Session>, View) {
    let session = Arc::new(Session::new(id, limits));
    (session.clone(), View::default().in_session(session))
}

fn seen(view: &View, registry: &Registry<u32>) -> Vec<String> {
    view.listed(registry).iter().map(|tool| tool.name.to_string()).collect()
}

fn on(names: &[&str]) -> Vec<(String, Switch)> {
    names.iter().map(|name| ((*name).to_owned(), Switch::On)).collect()
}

#[test]
fn a_session_without_switches_shows_what_the_registry_shows() {
    let registry = service();
    let (session, view) = session("a");

    assert_eq!(seen(&view, &registry), ["look", "query"]);
    assert!(view.is_everything() && !session.has_switches());
    registry.group("web").expect("there").set_active(true);
    assert_eq!(seen(&view, &registry), ["look", "search", "query"]);
}

#[test]
fn the_choice_of_one_session_changes_no_other_and_not_the_registry() {
    let mut registry = service();
    let ((_, ann), (_, bob)) = (session("ann"), session("bob"));

    let text = registry.equip_in(&ann, &on(&["web"])).expect("a known group");

    assert!(text.contains("'web'") && text.contains("Notes on web."), "{text}");
    assert_eq!(seen(&ann, &registry), ["look", "search"]);
    assert_eq!(ann.activated_notes(&registry), "## About Tool Group 'web'\nNotes on web.");
    assert!(registry.admit("search", Some(&ann)).is_ok());
    assert!(matches!(registry.admit("query", Some(&ann)), Err(Denial::Inactive(group)) if group.name() == "data"));
    assert_eq!(seen(&bob, &registry), ["look", "query"]);
    assert!(matches!(registry.admit("search", None), Err(Denial::Inactive(_))));
    assert_eq!(registry.active_groups().collect::<Vec<_>>(), ["data"]);
}

#[test]
fn what_a_session_has_switched_stays_when_the_registry_switches() {
    let registry = service();
    let (session, view) = session("a");
    let (web, data) = (registry.group("web").expect("there"), registry.group("data").expect("there"));

    session.switch([(&*web, false)]);
    web.set_active(true);
    data.set_active(false);

    assert_eq!(seen(&view, &registry), ["look"], "web was switched through the session, data was not");
}

#[test]
fn a_narrowed_view_of_a_session_switches_its_own_groups_only() {
    let mut registry = service();
    let (session, view) = session("a");
    let narrow = view.narrowed(Filter::of_groups(["web", BASIC]));

    assert!(registry.equip_in(&narrow, &on(&["data"])).is_err());
    registry.equip_in(&narrow, &on(&["web"])).expect("a known group");

    assert!(narrow.session().is_some_and(|of| Arc::ptr_eq(of, &session)));
    assert_eq!(seen(&narrow, &registry), ["look", "search"]);
    assert_eq!(seen(&view, &registry), ["look", "search", "query"]);
}

#[test]
fn the_basic_group_is_always_active() {
    let registry = service();
    let (session, view) = session("a");

    session.switch([(&*registry.group(BASIC).expect("there"), false)]);

    assert!(!session.has_switches());
    assert_eq!(seen(&view, &registry), ["look", "query"]);
}

#[test]
fn a_new_choice_forgets_groups_that_are_gone() {
    let mut registry = service();
    let (session, view) = session("a");
    registry.equip_in(&view, &on(&["web"])).expect("a known group");

    registry.unregister_group("web").expect("not reserved");
    registry.equip_in(&view, &on(&["data"])).expect("a known group");

    let groups = session.saved(None, serde_json::Map::new()).groups;
    assert_eq!(groups, [("data".into(), true)]);
}

#[test]
fn the_revision_of_a_view_follows_the_switches_of_its_session() {
    let registry = service();
    let ((session, view), (_, other)) = (session("a"), session("b"));
    let before = (view.revision(), other.revision(), registry.revision());

    session.switch([(&*registry.group("web").expect("there"), true)]);

    assert_ne!(view.revision(), before.0);
    assert_eq!((other.revision(), registry.revision()), (before.1, before.2));
}

#[test]
fn no_more_calls_are_counted_than_the_limit_has_however_many_threads_call() {
    let (session, _) = limited("a", SessionLimits { calls: Some(100), ..SessionLimits::default() });

    let counted: usize = thread::scope(|scope| {
        let call = || (0..50).filter(|_| session.may_call("x").is_ok() && session.count_call().is_ok()).count();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });

    assert_eq!((counted, session.usage().calls), (100, 100));
    assert_eq!(session.may_call("x"), Err(LimitReached::Calls(100)));
    session.end_run();
    assert_eq!(session.may_call("x"), Ok(()));
    assert_eq!((session.usage().calls, session.usage().total_calls), (0, 100));
}

#[test]
fn tokens_that_are_used_up_refuse_every_tool() {
    let (session, _) = limited("a", SessionLimits { tokens: Some(1000), ..SessionLimits::default() });

    session.add_tokens(999);
    assert_eq!(session.may_call("x"), Ok(()));
    session.add_tokens(u64::MAX);

    assert_eq!(session.may_call("x"), Err(LimitReached::Tokens(1000)));
    session.set_limits(SessionLimits::default());
    assert_eq!(session.may_call("x"), Ok(()), "no number of tokens reaches no limit");
}

#[test]
fn a_tool_that_fails_too_often_in_a_row_is_refused_and_others_are_not() {
    let (session, _) = limited("a", SessionLimits { retries: Some(1), ..SessionLimits::default() });

    assert_eq!(session.count_result("x", true), None);
    assert_eq!(session.count_result("x", false), None);
    assert_eq!(session.count_result("x", true), None, "the failures are not in a row");
    assert_eq!(session.may_call("x"), Ok(()));
    assert_eq!(session.count_result("x", true), Some(LimitReached::Retries(2)));

    assert_eq!(session.may_call("x"), Err(LimitReached::Retries(2)));
    assert_eq!(session.may_call("y"), Ok(()));
    session.end_run();
    assert_eq!(session.may_call("x"), Ok(()));
}

#[test]
fn a_limit_of_zero_lets_nothing_through() {
    for limits in [
        SessionLimits { calls: Some(0), ..SessionLimits::default() },
        SessionLimits { tokens: Some(0), ..SessionLimits::default() },
    ] {
        assert!(limited("a", limits).0.may_call("x").is_err(), "{limits:?}");
    }
}

#[test]
fn the_end_of_a_run_revokes_the_approvals_of_its_session() {
    let ((ann, _), (bob, _)) = (session("ann"), session("bob"));
    for session in [&ann, &bob] {
        session.grants().allow("pay", [1; 32], None, Question::Permission);
    }

    ann.end_run();

    assert!(!ann.grants().allows("pay", [1; 32], None, Question::Permission));
    assert!(bob.grants().allows("pay", [1; 32], None, Question::Permission));
}

#[test]
fn a_saved_session_goes_on_where_it_was() {
    let (mut registry, place) = (service(), Place::new());
    let limits = SessionLimits { calls: Some(3), retries: Some(0), tokens: None };
    let (session, view) = limited("chat-7", limits);
    registry.equip_in(&view, &on(&["web"])).expect("a known group");
    session.count_call().expect("below the limit");
    session.end_run();
    session.count_call().expect("below the limit");
    session.add_tokens(12);
    session.count_result("search", true);
    let state = json!({"topic": "birds"}).as_object().cloned().expect("an object");

    let path = place.path().join("chat-7.json");
    let value = session.saved(Some("ann"), state).to_value();
    save(&Disk, &path, &SESSION_FORMAT, &value).expect("saved");
    let loaded = SessionState::from_value(load(&Disk, &path, &SESSION_FORMAT).expect("loaded").value).expect("a state");
    let (again, later) = limited(&loaded.id, limits);
    again.restore(&loaded);

    assert_eq!((loaded.id.as_str(), loaded.caller.as_deref()), ("chat-7", Some("ann")));
    assert_eq!(loaded.state.get("topic"), Some(&json!("birds")));
    assert_eq!(again.usage(), session.usage());
    assert_eq!((again.usage().calls, again.usage().total_calls, again.usage().tokens), (1, 2, 12));
    assert_eq!(seen(&later, &registry), seen(&view, &registry));
    assert_eq!(again.may_call("search"), Err(LimitReached::Retries(1)));
}

#[test]
fn what_is_wrong_with_a_saved_state_is_named() {
    let state = Session::new("a", SessionLimits::default()).saved(None, serde_json::Map::new()).to_value();
    let told = |change: fn(&mut Value)| {
        let mut value = state.clone();
        change(&mut value);
        SessionState::from_value(value).expect_err("no state")
    };

    assert!(SessionState::from_value(state.clone()).is_ok());
    for (change, text) in [
        ((|value| *value = json!([])) as fn(&mut Value), "its state is not an object"),
        (|value| value["more"] = json!(1), "its state has an unknown entry `more`"),
        (|value| value["id"] = json!(""), "its `id` is not a text"),
        (|value| value["caller"] = json!(7), "its `caller` is not a text"),
        (|value| value["groups"] = json!({"web": 1}), "the switch of its group `web` is not true or false"),
        (|value| value["usage"]["calls"] = json!(-1), "its usage has no number `calls`"),
        (|value| value["usage"]["more"] = json!(1), "its usage has an unknown entry `more`"),
        (|value| drop(value.as_object_mut().expect("an object").remove("state")), "its state has no `state`"),
    ] {
        assert_eq!(told(change), text);
    }
}

#[test]
fn a_file_of_something_else_is_not_a_session() {
    let place = Place::new();
    let path = place.path().join("toolkit.json");
    save(&Disk, &path, &toolcrib::registry::FORMAT, &json!({"groups": []})).expect("saved");

    let refused = load(&Disk, &path, &SESSION_FORMAT);

    assert!(matches!(refused, Err(Error::ForeignFile { .. })), "{refused:?}");
}

proptest! {
    /// For any switches, a session lists a tool if and only if it admits the tool, and another session shows none of it.
    #[test]
    fn a_session_lists_what_it_admits(switches in prop::collection::vec((0..4_usize, any::<bool>()), 0..12)) {
        let mut registry: Registry<u32> = Registry::default();
        for number in 0..4 {
            let id = format!("g{number}");
            registry.create_group(&id, "", number % 2 == 0, None).expect("a new name");
            add(&mut registry, &format!("t{number}"), &id, number);
        }
        let ((session, view), (_, other)) = (session("a"), session("b"));
        let before = seen(&other, &registry);

        for (number, active) in &switches {
            session.switch([(&*registry.group(&format!("g{number}")).expect("there"), *active)]);
        }

        let last = |number: usize| switches.iter().rev().find(|(switched, _)| *switched == number).map(|(_, active)| *active);
        for number in 0..4 {
            let name = format!("t{number}");
            let expected = last(number).unwrap_or(number % 2 == 0);
            prop_assert_eq!(seen(&view, &registry).contains(&name), expected);
            prop_assert_eq!(registry.admit(&name, Some(&view)).is_ok(), expected);
        }
        prop_assert_eq!(seen(&other, &registry), before);
    }
}
