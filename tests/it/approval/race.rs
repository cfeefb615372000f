//! Several claims of one call at the same moment.

use std::sync::{Arc, Barrier};
use std::thread;

use toolcrib::policy::{Approvals, Pending};

use super::{FACTS, Place, asked, at, key, on_disk};

/// The number of concurrent claims that succeed.
fn winners(rivals: &[Arc<Approvals>], pending: &Pending) -> usize {
    let start = Barrier::new(rivals.len());
    thread::scope(|scope| {
        let claim = |approvals: &Arc<Approvals>| {
            start.wait();
            approvals.claim(pending, &FACTS, at(1)).is_ok()
        };
        let claims: Vec<_> = rivals.iter().map(|rival| scope.spawn(move || claim(rival))).collect();
        claims.into_iter().map(|claim| claim.join().expect("a thread")).filter(|is_first| *is_first).count()
    })
}

#[test]
fn of_two_threads_exactly_one_wins() {
    let approvals = Arc::new(Approvals::in_memory(key()));

    for number in 0..1_000 {
        let pending = asked(&approvals, number);

        assert_eq!(winners(&[approvals.clone(), approvals.clone()], &pending), 1);
    }
}

#[test]
fn of_two_threads_with_a_folder_open_twice_exactly_one_wins() {
    let place = Place::new();
    let rivals = [Arc::new(on_disk(&place)), Arc::new(on_disk(&place))];

    for number in 0..1_000 {
        let pending = asked(&rivals[number % 2], number);

        assert_eq!(winners(&rivals, &pending), 1);
    }
}

#[test]
fn of_eight_threads_exactly_one_wins() {
    let place = Place::new();
    let rivals: Vec<_> = (0..8).map(|_| Arc::new(on_disk(&place))).collect();

    for number in 0..100 {
        let pending = asked(&rivals[0], number);

        assert_eq!(winners(&rivals, &pending), 1);
    }
}
