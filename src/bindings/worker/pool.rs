//! The queue of work, the threads that take from it, and the decision to add one.
//!
//! Work is taken only by a thread that holds the GIL, and only one thread at a time is on its way to it: 200 short jobs
//! are then run by the first worker in a row, while a job that blocks lets the next worker through at once.
//!
//! A few threads are enough for short jobs. When all of them block, perhaps on jobs that still wait in the queue (a tool
//! that runs a tool), only another thread helps. When they are merely busy with the GIL, another one makes it worse, so
//! the longer a worker waits for the GIL, the longer a standstill has to last before the pool grows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{Shared, lock};
use crate::bindings::call::python::interpreter;

/// Threads that are added without delay, and that are kept.
const CORE: usize = 8;
/// Threads at most, without those that wait for the reader of a generator.
const MOST: usize = 256;
/// Threads at most, all counted.
const LIMIT: usize = 1024;
/// Shortest standstill after which a thread is added.
const TICK: Duration = Duration::from_millis(2);
/// Longest standstill after which a thread is added.
const PATIENCE: Duration = Duration::from_secs(1);
/// Length of a standstill that counts, in multiples of the last wait for the GIL.
const RELUCTANCE: u32 = 10;
/// Jobs in a row before a worker looks at the clock.
const BATCH: usize = 16;
/// Shortest time for which a worker keeps the GIL before it offers it to others. The next thread has to be woken for it,
/// which takes longer than many a job.
const HOLD: Duration = Duration::from_millis(1);
/// Time for which a worker beyond the core ones waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// Time for which the end of the process waits for workers that are busy.
const GRACE: Duration = Duration::from_secs(1);

/// Something to be done in a worker thread.
pub(super) trait Work: Send + Sync {
    /// Does it; never panics.
    fn run(self: Arc<Self>, py: Python<'_>);

    /// Says that its result is not needed any more.
    fn abandon(&self, py: Python<'_>);
}

#[derive(Default)]
pub(super) struct Pool {
    state: Mutex<State>,
    /// Idle workers wait here.
    work: Condvar,
    /// The supervisor waits here.
    supervision: Condvar,
    /// Notified when a worker has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Work>>,
    /// Counts jobs taken, so that the supervisor can see a standstill.
    taken: u64,
    threads: usize,
    /// Threads that are no longer counted but have not ended yet.
    leaving: usize,
    idle: usize,
    /// Workers on their way to the GIL to take a job; new threads among them.
    waking: usize,
    /// Threads that wait for the reader of a generator.
    held_up: usize,
    /// Idle workers that may stop waiting, already counted in `waking`.
    permits: usize,
    growth: Growth,
    is_closed: bool,
    /// The number of the next thread.
    serial: usize,
    /// What each thread does, or did last.
    running: HashMap<usize, Weak<dyn Work>, ahash::RandomState>,
}

/// The need for more threads, as far as it is known.
struct Growth {
    has_supervisor: bool,
    is_watching: bool,
    /// Length of a standstill that counts.
    patience: Duration,
    /// Number of threads that the next standstill adds.
    step: usize,
}

/// The reason why a pool takes no work.
pub(super) enum Refused {
    Closed,
    NoThread,
}

impl Pool {
    /// Puts work into the queue, from any thread.
    pub(super) fn submit(&self, shared: &'static Shared, work: Arc<dyn Work>) -> Result<(), Refused> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Refused::Closed);
        }
        state.queue.push_back(work);
        self.wake_worker(shared, &mut state);
        if state.threads == 0 {
            state.queue.pop_back();
            return Err(Refused::NoThread);
        }
        Ok(())
    }

    /// Sees to it that a worker is on the way to the work that waits.
    fn wake_worker(&self, shared: &'static Shared, state: &mut State) {
        if state.queue.is_empty() || state.waking > 0 {
            return;
        }
        if state.busy() >= CORE {
            self.watch_queue(shared, state);
        } else {
            self.add_worker(shared, state);
        }
    }

    /// Sends one more worker for work, an idle one or a new one.
    fn add_worker(&self, shared: &'static Shared, state: &mut State) {
        if state.idle > 0 {
            state.idle -= 1;
            state.waking += 1;
            state.permits += 1;
            self.work.notify_one();
        } else {
            spawn(shared, state);
        }
    }

    /// Counts a thread out (or in again) that waits for a generator's reader.
    pub(super) fn hold(&self, shared: &'static Shared, is_held_up: bool) {
        let mut state = lock(&self.state);
        if is_held_up {
            state.held_up += 1;
            self.wake_worker(shared, &mut state);
        } else {
            state.held_up -= 1;
        }
    }

    /// Takes no more work, abandons what waits, and gives workers a moment to come to an end.
    pub(super) fn close(&self, py: Python<'_>) {
        let (queue, running) = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            self.work.notify_all();
            self.supervision.notify_all();
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.running))
        };
        for work in queue {
            work.abandon(py);
        }
        for work in running.into_values().filter_map(|work| work.upgrade()) {
            work.abandon(py);
        }
        py.detach(|| {
            let until = Instant::now() + GRACE;
            let mut state = lock(&self.state);
            while state.threads + state.leaving > 0 {
                let Some(rest) = until.checked_duration_since(Instant::now()) else {
                    break;
                };
                state = self.ended.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
            }
        });
    }
}

// A worker thread

/// The reason why an idle worker stops waiting.
enum Wakeup {
    Work,
    Leave,
    Close,
}

/// The way a worker ended: still counted as a thread, or not.
enum End {
    Counted,
    CountedOut,
}

/// Adds a worker; if the system has no thread left, the pool does with those it has.
fn spawn(shared: &'static Shared, state: &mut State) {
    let serial = state.serial;
    // As much as Python's own threads get on Linux: deep recursion in a tool counts on it.
    let builder = std::thread::Builder::new().name(thread_name(serial)).stack_size(8 << 20);
    if builder.spawn(move || work(shared, serial)).is_ok() {
        state.serial += 1;
        state.threads += 1;
        state.waking += 1;
    }
}

fn thread_name(serial: usize) -> String {
    format!("toolcrib-worker-{serial}")
}

/// The life of a worker thread: takes jobs while it holds the GIL, waits for more without it.
fn work(shared: &'static Shared, serial: usize) {
    let started = Instant::now();
    // One attachment for all of the thread's life, so that `threading.local` and the like last.
    let end = Python::try_attach(|py| {
        shared.pool.note_contention(started.elapsed());
        notify_threading(py, &shared.names.begin, Some(thread_name(serial)));
        let end = shared.pool.serve(shared, py, serial);
        notify_threading(py, &shared.names.end, None);
        end
    });
    if !shared.is_current() {
        return;
    }
    let mut state = lock(&shared.pool.state);
    match end {
        Some(End::Counted) => state.threads -= 1,
        Some(End::CountedOut) => state.leaving -= 1,
        None => {
            // The interpreter has ended before the thread came to it.
            state.waking -= 1;
            state.threads -= 1;
        }
    }
    shared.pool.ended.notify_all();
}

/// Reports the thread's beginning or end to `threading`; a tool runs without it, too.
fn notify_threading(py: Python<'_>, function: &Py<PyAny>, name: Option<String>) {
    let args = match name {
        Some(name) => PyTuple::new(py, [PyString::new(py, &name)]),
        None => Ok(PyTuple::empty(py)),
    };
    let Ok(args) = args else { return };
    match interpreter::call(py, function, &args.unbind(), None) {
        Ok(nothing) => interpreter::release(py, nothing),
        Err(exception) => interpreter::report(py, exception, function),
    }
}

impl Pool {
    /// Runs jobs until this thread is not needed any more.
    fn serve(&self, shared: &'static Shared, py: Python<'_>, serial: usize) -> End {
        let (mut in_a_row, mut is_waking, mut since) = (0, true, Instant::now());
        loop {
            if in_a_row == BATCH {
                in_a_row = 0;
                if since.elapsed() >= HOLD {
                    py.detach(|| ());
                    since = Instant::now();
                }
            }
            let mut state = lock(&self.state);
            if std::mem::take(&mut is_waking) {
                state.waking -= 1;
            }
            if state.is_closed {
                return End::Counted;
            }
            if let Some(work) = state.queue.pop_front() {
                state.taken += 1;
                state.running.insert(serial, Arc::downgrade(&work));
                self.wake_worker(shared, &mut state);
                drop(state);
                in_a_row += 1;
                work.run(py);
                if !shared.is_current() {
                    return End::Counted; // the job forked, and this is the child
                }
                continue;
            }
            state.running.remove(&serial);
            state.idle += 1;
            drop(state);
            let (wakeup, woken) = py.detach(|| (self.wait(), Instant::now()));
            match wakeup {
                Wakeup::Work => {}
                Wakeup::Leave => return End::CountedOut,
                Wakeup::Close => return End::Counted,
            }
            since = Instant::now();
            self.note_contention(since - woken);
            (in_a_row, is_waking) = (0, true);
        }
    }

    /// Waits for a permit; the thread does not hold the GIL.
    fn wait(&self) -> Wakeup {
        let mut state = lock(&self.state);
        let since = Instant::now();
        loop {
            if state.is_closed {
                return Wakeup::Close;
            }
            if state.permits > 0 {
                state.permits -= 1;
                return Wakeup::Work;
            }
            if state.threads <= CORE {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(rest) = IDLE.checked_sub(since.elapsed()) else {
                state.idle -= 1;
                // Counted out here and not when it has ended, or too many would end at the same time.
                state.threads -= 1;
                state.leaving += 1;
                return Wakeup::Leave;
            };
            state = self.work.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// Growth

impl Pool {
    /// Has the queue supervised until it is empty.
    fn watch_queue(&self, shared: &'static Shared, state: &mut State) {
        let growth = &mut state.growth;
        if growth.is_watching {
            return;
        }
        if !growth.has_supervisor {
            let builder = std::thread::Builder::new().name("toolcrib-growth".to_owned());
            growth.has_supervisor = builder.spawn(move || shared.pool.supervise(shared)).is_ok();
        }
        growth.is_watching = growth.has_supervisor;
        self.supervision.notify_one();
    }

    /// Records the time that a worker had to wait for the GIL.
    fn note_contention(&self, waited: Duration) {
        lock(&self.state).growth.note(waited);
    }

    fn supervise(&self, shared: &'static Shared) {
        let mut state = lock(&self.state);
        while !state.is_closed {
            if !state.growth.is_watching {
                state = self.supervision.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (taken, patience) = (state.taken, state.growth.patience);
            state = self.supervision.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if state.queue.is_empty() || !state.has_room() {
                // The next change of the queue asks again.
                state.growth.is_watching = false;
                state.growth.step = 1;
            } else if state.taken == taken && state.waking == 0 {
                for _ in 0..state.growth.step.min(state.queue.len()) {
                    if state.has_room() {
                        self.add_worker(shared, &mut state);
                    }
                }
                state.growth.step = (state.growth.step * 2).min(CORE * 8);
            }
        }
    }
}

impl State {
    /// Threads that are at work, or on their way to it.
    fn busy(&self) -> usize {
        self.threads.saturating_sub(self.idle + self.held_up)
    }

    fn has_room(&self) -> bool {
        self.busy() < MOST && (self.idle > 0 || self.threads < LIMIT)
    }
}

impl Default for Growth {
    fn default() -> Self {
        Growth { has_supervisor: false, is_watching: false, patience: TICK, step: 1 }
    }
}

impl Growth {
    fn note(&mut self, waited: Duration) {
        // Less than a millisecond is a thread switch, not contention.
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
    fn threads_held_up_by_readers_do_not_count_until_there_are_far_too_many() {
        let mut state = State { threads: MOST, ..State::default() };
        assert!(!state.has_room());

        state.held_up = 1;
        assert!(state.has_room());

        (state.threads, state.held_up) = (LIMIT, LIMIT);
        assert!(!state.has_room());
    }
}
