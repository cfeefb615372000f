//! Events: each listener gets what it wants in order, and nobody waits for a slow one.

#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib::call::{Event, EventHub, EventKind, Kinds, Listener};

fn event(kind: EventKind, number: usize) -> Event {
    let (call, tool, time) = ("call_1".into(), Some("send".into()), Timestamp::UNIX_EPOCH);
    Event { kind, call, tool, caller: None, session: None, path: vec!["planner".into()], time, data: json!(number) }
}

fn numbers(listener: &Listener) -> Vec<Value> {
    listener.take_all().iter().map(|event| event.data.clone()).collect()
}

#[test]
fn an_event_is_told_in_one_form() {
    assert_eq!(
        event(EventKind::CallStart, 1).to_value(),
        json!({
            "type": "call_start", "call_id": "call_1", "tool": "send", "caller": null, "session": null,
            "path": ["planner"], "time": "1970-01-01T00:00:00.000Z", "data": 1,
        })
    );
}

#[test]
fn a_kind_is_read_from_its_word_and_has_its_place_in_a_set() {
    for kind in EventKind::ALL {
        let only = Kinds::from_iter([kind]);

        assert_eq!(EventKind::parse(kind.as_str()), Some(kind));
        assert!(EventKind::ALL.iter().all(|other| only.contains(*other) == (*other == kind)));
        assert!(Kinds::ALL.contains(kind));
    }
    assert_eq!(EventKind::parse("Chunk"), None);
}

#[test]
fn a_listener_gets_the_kinds_it_wants_in_order() {
    let hub = EventHub::default();
    let all = hub.listen(Kinds::ALL, 10, None);
    let some = hub.listen(Kinds::from_iter([EventKind::Chunk, EventKind::Error]), 10, None);

    for (number, kind) in EventKind::ALL.into_iter().enumerate() {
        hub.emit(event(kind, number));
    }

    assert_eq!(numbers(&all), [0, 1, 2, 3, 4, 5].map(Value::from));
    assert_eq!(numbers(&some), [1, 5].map(Value::from));
}

#[test]
fn the_oldest_make_room_and_are_counted() {
    let hub = EventHub::default();
    let slow = hub.listen(Kinds::ALL, 3, None);

    (0..10).for_each(|number| hub.emit(event(EventKind::Chunk, number)));

    assert_eq!(slow.dropped(), 7);
    assert_eq!(slow.take().map(|event| event.data.clone()), Some(json!(7)));
    assert_eq!(numbers(&slow), [8, 9].map(Value::from));
    assert_eq!(slow.take(), None);
}

#[test]
fn a_hub_is_watched_while_somebody_listens() {
    let hub = EventHub::<Arc<Event>>::default();
    assert!(!hub.is_watched());

    let one = hub.listen(Kinds::from_iter([EventKind::Chunk]), 1, None);
    let other = hub.listen(Kinds::from_iter([EventKind::Error]), 1, None);
    assert!(hub.is_watched() && hub.wants(EventKind::Chunk) && !hub.wants(EventKind::CallEnd));

    drop(one);
    assert!(hub.is_watched() && !hub.wants(EventKind::Chunk));
    other.close();
    assert!(!hub.is_watched());
}

#[test]
fn what_waits_can_be_taken_after_closing_and_nothing_comes_after_it() {
    let hub = EventHub::default();
    let listener = hub.listen(Kinds::ALL, 10, None);
    let other = hub.listen(Kinds::ALL, 10, None);
    hub.emit(event(EventKind::Chunk, 1));

    listener.close();
    hub.emit(event(EventKind::Chunk, 2));

    assert_eq!(numbers(&listener), [json!(1)]);
    assert_eq!(numbers(&other), [1, 2].map(Value::from));
}

#[test]
fn a_listener_outlives_its_hub() {
    let hub = EventHub::default();
    let listener = hub.listen(Kinds::ALL, 10, None);
    hub.emit(event(EventKind::Chunk, 1));

    drop(hub);

    assert_eq!(numbers(&listener), [json!(1)]);
}

#[test]
fn whoever_has_nothing_is_woken_once() {
    let hub = EventHub::default();
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let waker = Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let listener = hub.listen(Kinds::ALL, 2, Some(waker));

    (0..5).for_each(|number| hub.emit(event(EventKind::Chunk, number)));
    assert_eq!(woken.load(Ordering::SeqCst), 1);

    drop(listener.take_all());
    hub.emit(event(EventKind::Chunk, 5));
    assert_eq!(woken.load(Ordering::SeqCst), 2);
}

/// An event whose end emits another one, as one that holds foreign objects might.
#[derive(Clone)]
struct Chain(#[allow(dead_code, reason = "it is there to be dropped")] Arc<Link>);

struct Link(Arc<EventHub<Chain>>, AtomicBool);

impl Drop for Link {
    fn drop(&mut self) {
        if self.1.load(Ordering::SeqCst) {
            self.0.publish(EventKind::Error, &Chain(Arc::new(Link(self.0.clone(), AtomicBool::new(false)))));
        }
    }
}

#[test]
fn an_event_is_dropped_and_a_listener_woken_while_no_lock_is_held() {
    let hub = Arc::new(EventHub::<Chain>::default());
    let again = hub.clone();
    // Each of these would wait for ever if a lock were held.
    let waker = Box::new(move || drop(again.listen(Kinds::ALL, 1, None)));
    let listener = hub.listen(Kinds::ALL, 1, Some(waker));

    for _ in 0..3 {
        hub.publish(EventKind::Chunk, &Chain(Arc::new(Link(hub.clone(), AtomicBool::new(true)))));
    }

    assert!(listener.dropped() >= 2);
    drop(listener);
    assert!(!hub.is_watched());
}

#[test]
fn many_threads_tell_and_listen_at_once() {
    const TELLERS: usize = 4;
    const EVENTS: usize = 5_000;
    let hub = EventHub::default();
    let wide = hub.listen(Kinds::ALL, TELLERS * EVENTS, None);
    let narrow = hub.listen(Kinds::ALL, 16, None);
    let is_over = AtomicBool::new(false);

    let taken = thread::scope(|scope| {
        let tellers: Vec<_> = (0..TELLERS)
            .map(|teller| {
                let hub = &hub;
                scope.spawn(move || {
                    for number in 0..EVENTS {
                        hub.emit(event(EventKind::Chunk, teller * EVENTS + number));
                    }
                })
            })
            .collect();
        let (narrow, is_over) = (&narrow, &is_over);
        let reader = scope.spawn(move || {
            let mut taken = 0;
            while !is_over.load(Ordering::SeqCst) {
                taken += narrow.take_all().len();
            }
            taken + narrow.take_all().len()
        });
        let hub = &hub;
        let comer = scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                let listener = hub.listen(Kinds::ALL, 4, None);
                assert!(listener.take_all().len() <= 4);
            }
        });
        for teller in tellers {
            teller.join().expect("a thread");
        }
        is_over.store(true, Ordering::SeqCst);
        comer.join().expect("a thread");
        reader.join().expect("a thread")
    });

    let all: Vec<usize> =
        wide.take_all().iter().map(|event| event.data.to_string().parse().expect("a number")).collect();
    assert_eq!(all.len(), TELLERS * EVENTS);
    for teller in 0..TELLERS {
        let its: Vec<_> = all.iter().filter(|number| *number / EVENTS == teller).collect();
        assert!(its.is_sorted() && its.len() == EVENTS);
    }
    assert_eq!(taken as u64 + narrow.dropped(), (TELLERS * EVENTS) as u64);
    drop((wide, narrow));
    assert!(!hub.is_watched());
}
