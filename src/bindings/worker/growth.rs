//! When a worker thread is added: only when nothing moves.
//!
//! A few threads are enough for short jobs. When all of them block, perhaps on jobs that still wait in the queue (a tool
//! that runs a tool), only another thread helps. When they are merely busy with the GIL, another one makes it worse,
//! so the longer a worker waits for the GIL the less eager the pool is to grow.

use std::sync::PoisonError;
use std::time::Duration;

use super::pool::{Pool, State};
use super::{Shared, lock};

/// Threads that work without hesitation, and that are kept.
pub(super) const CORE: usize = 8;
/// Threads at most, without those that wait for the reader of a generator.
const MOST: usize = 256;
/// Threads at most, all counted.
const LIMIT: usize = 1024;
/// How long nothing may move before another thread is sent for work.
const TICK: Duration = Duration::from_millis(2);
/// How many times the last wait for the GIL a standstill has to last.
const RELUCTANCE: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known about the need of more threads.
pub(super) struct Growth {
    started: bool,
    watching: bool,
    /// How long a standstill lasts before it counts.
    patience: Duration,
    /// How many threads the next standstill sends for work.
    step: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Growth { started: false, watching: false, patience: TICK, step: 1 }
    }
}

impl Pool {
    /// Has the queue watched until it is empty.
    pub(super) fn observe(&self, shared: &'static Shared, state: &mut State) {
        let growth = &mut state.growth;
        if growth.watching {
            return;
        }
        if !growth.started {
            let builder = std::thread::Builder::new().name("toolcrib-growth".to_owned());
            growth.started = builder.spawn(move || shared.pool.supervise(shared)).is_ok();
        }
        growth.watching = growth.started;
        self.watch.notify_one();
    }

    /// Remembers how long a worker had to wait for the GIL.
    pub(super) fn note_contention(&self, waited: Duration) {
        lock(&self.state).growth.note(waited);
    }

    fn supervise(&self, shared: &'static Shared) {
        let mut state = lock(&self.state);
        while !state.closed {
            if !state.growth.watching {
                state = self.watch.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (taken, patience) = (state.taken, state.growth.patience);
            state = self.watch.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if state.queue.is_empty() || !state.has_room() {
                // Whoever adds to the queue or takes from it asks again.
                state.growth.watching = false;
                state.growth.step = 1;
            } else if state.taken == taken && state.waking == 0 {
                for _ in 0..state.growth.step.min(state.queue.len()) {
                    if state.has_room() {
                        self.summon(shared, &mut state);
                    }
                }
                state.growth.step = (state.growth.step * 2).min(CORE * 8);
            }
        }
    }
}

impl State {
    /// Threads that are at work, or on their way to it.
    pub(super) fn busy(&self) -> usize {
        self.threads.saturating_sub(self.idle + self.held)
    }

    fn has_room(&self) -> bool {
        self.busy() < MOST && (self.idle > 0 || self.threads < LIMIT)
    }
}

impl Growth {
    fn note(&mut self, waited: Duration) {
        // Less than a millisecond is a thread switch, not a contest.
        if waited < Duration::from_millis(1) {
            self.patience = TICK;
        } else {
            self.patience = (waited * RELUCTANCE).clamp(TICK, PATIENCE);
            self.step = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contested_gil_makes_growth_reluctant_but_never_stops_it() {
        let mut growth = Growth { step: 16, ..Growth::default() };

        growth.note(Duration::from_micros(80));
        assert_eq!((growth.patience, growth.step), (TICK, 16));

        growth.note(Duration::from_millis(5));
        assert_eq!((growth.patience, growth.step), (Duration::from_millis(50), 1));

        growth.note(Duration::from_secs(9));
        assert_eq!((growth.patience, growth.step), (PATIENCE, 1));
    }

    #[test]
    fn threads_held_by_readers_do_not_count_until_there_are_far_too_many() {
        let mut state = State { threads: MOST, ..State::default() };
        assert!(!state.has_room());

        state.held = 1;
        assert!(state.has_room());

        (state.threads, state.held) = (LIMIT, LIMIT);
        assert!(!state.has_room());
    }
}
