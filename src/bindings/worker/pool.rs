//! The queue of work and the count of those who take it.
//!
//! Work is taken only by a thread that holds the GIL, and only one thread at a time is on its way to it: 200 short jobs
//! are then run by the first worker in a row, while a job that blocks lets the next worker through at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::growth::{CORE, Growth};
use super::{Shared, lock, thread};

/// How long the end of the process waits for workers that are busy.
const GRACE: Duration = Duration::from_secs(1);

/// Something to be done in a worker thread.
pub(super) trait Work: Send + Sync {
    /// Does it; never panics.
    fn run(self: Arc<Self>, py: Python<'_>);

    /// Tells it that nobody waits for it any more.
    fn give_up(&self, py: Python<'_>);
}

#[derive(Default)]
pub(super) struct Pool {
    pub(super) state: Mutex<State>,
    /// Idle workers wait here.
    pub(super) wake: Condvar,
    /// The thread that decides on growth waits here.
    pub(super) watch: Condvar,
    /// Rung when a worker has gone.
    pub(super) gone: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<Arc<dyn Work>>,
    /// Counts jobs taken, so that growth can see a standstill.
    pub(super) taken: u64,
    pub(super) threads: usize,
    /// Threads that are no longer counted but have not ended yet.
    pub(super) leaving: usize,
    pub(super) idle: usize,
    /// Workers on their way to the GIL to take a job; new threads among them.
    pub(super) waking: usize,
    /// Threads that wait for the reader of a generator.
    pub(super) held: usize,
    /// Idle workers that may leave `wake`, already counted in `waking`.
    pub(super) permits: usize,
    pub(super) growth: Growth,
    pub(super) closed: bool,
    pub(super) serial: usize,
    /// What each thread does, or did last.
    pub(super) running: HashMap<usize, Weak<dyn Work>, ahash::RandomState>,
}

/// Why a pool takes no work.
pub(super) enum Refused {
    Closed,
    NoThread,
}

impl Pool {
    pub(super) fn submit(&self, shared: &'static Shared, work: Arc<dyn Work>) -> Result<(), Refused> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Refused::Closed);
        }
        state.queue.push_back(work);
        self.rouse(shared, &mut state);
        if state.threads == 0 {
            state.queue.pop_back();
            return Err(Refused::NoThread);
        }
        Ok(())
    }

    /// Sees to it that somebody is on the way to the work that waits.
    pub(super) fn rouse(&self, shared: &'static Shared, state: &mut State) {
        if state.queue.is_empty() || state.waking > 0 {
            return;
        }
        if state.busy() >= CORE {
            self.observe(shared, state);
        } else {
            self.summon(shared, state);
        }
    }

    /// Sends one more worker for work, an idle one or a new one.
    pub(super) fn summon(&self, shared: &'static Shared, state: &mut State) {
        if state.idle > 0 {
            state.idle -= 1;
            state.waking += 1;
            state.permits += 1;
            self.wake.notify_one();
        } else {
            thread::spawn(shared, state);
        }
    }

    /// Counts a thread out (or in again) that waits for a generator's reader.
    pub(super) fn hold(&self, shared: &'static Shared, held: bool) {
        let mut state = lock(&self.state);
        if held {
            state.held += 1;
            self.rouse(shared, &mut state);
        } else {
            state.held -= 1;
        }
    }

    /// Takes no more work, drops what waits, and gives workers a moment to come to an end.
    pub(super) fn close(&self, py: Python<'_>) {
        let (queue, running) = {
            let mut state = lock(&self.state);
            state.closed = true;
            self.wake.notify_all();
            self.watch.notify_all();
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.running))
        };
        for work in queue {
            work.give_up(py);
        }
        for work in running.into_values().filter_map(|work| work.upgrade()) {
            work.give_up(py);
        }
        py.detach(|| {
            let until = Instant::now() + GRACE;
            let mut state = lock(&self.state);
            while state.threads + state.leaving > 0 {
                let Some(rest) = until.checked_duration_since(Instant::now()) else {
                    break;
                };
                state = self.gone.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
            }
        });
    }
}
