//! The thread pool: its queue, its worker threads, and the rule by which it grows; and [`Workers`], the state that jobs and
//! inboxes share with it, which ends at the exit of the process and in a forked child.
//!
//! Work is taken only by a thread that holds the GIL, and only one thread at a time waits for the GIL to take some. So the
//! first worker runs 200 short jobs in a row, while a job that blocks lets the next worker through at once.
//!
//! A few threads are enough for short jobs. When all of them block, perhaps on jobs that are still in the queue (a tool
//! that runs a tool), only another thread helps. When they are merely busy with the GIL, another one makes it worse, so
//! the longer a worker waits for the GIL, the longer a standstill has to last before the pool grows.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::wakeup::LoopInboxes;
use crate::bindings::call::python::interpreter::{self, GilCell};
use crate::bindings::imported::{BEGIN_THREAD, END_THREAD};
use crate::sync::lock;

/// Number of threads that are started without delay and kept.
const CORE_THREADS: usize = 8;
/// Maximum number of threads, without those that wait for the reader of a generator.
const MAX_ACTIVE_THREADS: usize = 256;
/// Maximum number of all threads.
const MAX_THREADS: usize = 1024;
/// Shortest standstill after which a thread is added.
const MIN_STANDSTILL: Duration = Duration::from_millis(2);
/// Longest standstill after which a thread is added.
const MAX_STANDSTILL: Duration = Duration::from_secs(1);
/// Length of a standstill that counts, in multiples of the last wait for the GIL.
const GIL_WAIT_FACTOR: u32 = 10;
/// Number of jobs in a row before a worker reads the clock.
const BATCH: usize = 16;
/// Shortest time for which a worker keeps the GIL before it offers it to others. The next thread has to be woken for it,
/// which takes longer than a short job.
const GIL_HOLD: Duration = Duration::from_millis(1);
/// Time for which a worker beyond the core ones waits for work before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the end of the process waits for workers that are busy.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The state that threads, jobs and inboxes share. A forked child makes its own.
pub(super) struct Workers {
    /// The number of forks before the process that it belongs to.
    generation: u64,
    pub(super) pool: Pool,
    pub(super) inboxes: LoopInboxes,
    pub(super) python: PythonObjects,
}

/// Python objects that are looked up once.
pub(super) struct PythonObjects {
    pub(super) get_running_loop: Py<PyAny>,
    /// `types.GeneratorType`.
    pub(super) generator: Py<PyAny>,
    /// `toolcrib._worker.begin`.
    begin_thread: Py<PyAny>,
    /// `toolcrib._worker.end`.
    end_thread: Py<PyAny>,
}

/// Empty before the first use and in a forked child; the state is never freed, so that a reference to it lasts.
static CURRENT: GilCell<Option<&'static Workers>> = GilCell::new(None);

/// The number of forks between the process that loaded the module and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Workers {
    pub(super) fn current(py: Python<'_>) -> PyResult<&'static Workers> {
        if let Some(workers) = CURRENT.with(py, |current| *current) {
            return Ok(workers);
        }
        let fresh = Workers {
            generation: GENERATION.load(Ordering::Acquire),
            pool: Pool::default(),
            inboxes: LoopInboxes::default(),
            python: PythonObjects {
                get_running_loop: py.import("asyncio")?.getattr("get_running_loop")?.unbind(),
                generator: py.import("types")?.getattr("GeneratorType")?.unbind(),
                begin_thread: BEGIN_THREAD.get(py)?.clone().unbind(),
                end_thread: END_THREAD.get(py)?.clone().unbind(),
            },
        };
        // An import lets other threads run, even of a module that is loaded, and one of them may have made the state meanwhile.
        Ok(CURRENT.with(py, |current| *current.get_or_insert_with(|| Box::leak(Box::new(fresh)))))
    }

    /// False in a child that was forked after this was made: the threads do not exist there, and any of them may have held
    /// a lock.
    pub(super) fn is_current(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Acquire)
    }
}

/// Registers the functions that stop workers before the interpreter ends and reset the state in a forked child.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let close = wrap_pyfunction!(close, module)?;
    py.import("atexit")?.call_method1("register", (close,))?;
    let options = PyDict::new(py);
    options.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        register.call((), Some(&options))?;
    }
    Ok(())
}

/// Ends idle workers and waits a short time for the busy ones.
#[pyfunction]
#[pyo3(name = "_close_workers")]
fn close(py: Python<'_>) {
    if let Some(workers) = CURRENT.with(py, |current| *current) {
        workers.pool.close(py);
    }
}

/// Resets the state in a forked child, without touching locks that the parent's threads may have held.
#[pyfunction]
#[pyo3(name = "_forget_workers")]
fn forget(py: Python<'_>) {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    CURRENT.with(py, |current| *current = None);
}

// The queue

/// An item of the queue.
pub(super) trait Work: Send + Sync {
    /// Runs it in a worker thread; never panics.
    fn run(self: Arc<Self>, py: Python<'_>);

    /// Notifies it that its result is not needed any more.
    fn abandon(&self, py: Python<'_>);
}

/// A thread pool.
#[derive(Default)]
pub(super) struct Pool {
    state: Mutex<PoolState>,
    /// Idle workers wait here.
    work: Condvar,
    /// The supervisor waits here.
    supervision: Condvar,
    /// Notified when a worker has ended.
    ended: Condvar,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<Arc<dyn Work>>,
    /// Number of jobs taken, by which the supervisor notices a standstill.
    taken: u64,
    threads: usize,
    /// Threads that are no longer counted but have not ended yet.
    leaving: usize,
    idle: usize,
    /// Workers that wait for the GIL to take a job, new threads included.
    waking: usize,
    /// Threads that wait for the reader of a generator.
    held_up: usize,
    /// Idle workers that may stop waiting, already counted in `waking`.
    permits: usize,
    growth: Growth,
    is_closed: bool,
    /// The number of the next thread.
    serial: usize,
    /// The current or last work of each thread.
    running: HashMap<usize, Weak<dyn Work>, ahash::RandomState>,
}

/// The state of the rule by which the pool grows.
struct Growth {
    has_supervisor: bool,
    is_watching: bool,
    /// Length of a standstill after which threads are added.
    patience: Duration,
    /// Number of threads that the next standstill adds.
    step: usize,
}

/// The reason for which a pool refuses work.
pub(super) enum SubmitError {
    Closed,
    NoThread,
}

impl Pool {
    /// Puts work into the queue, from any thread.
    pub(super) fn submit(&self, workers: &'static Workers, work: Arc<dyn Work>) -> Result<(), SubmitError> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(SubmitError::Closed);
        }
        state.queue.push_back(work);
        self.wake_worker(workers, &mut state);
        if state.threads == 0 {
            state.queue.pop_back();
            return Err(SubmitError::NoThread);
        }
        Ok(())
    }

    /// Wakes or starts a worker if there is work and no worker is on the way to it.
    fn wake_worker(&self, workers: &'static Workers, state: &mut PoolState) {
        if state.queue.is_empty() || state.waking > 0 {
            return;
        }
        if state.busy() >= CORE_THREADS {
            self.watch_queue(workers, state);
        } else {
            self.add_worker(workers, state);
        }
    }

    /// Adds one more active worker, an idle one or a new one.
    fn add_worker(&self, workers: &'static Workers, state: &mut PoolState) {
        if state.idle > 0 {
            state.idle -= 1;
            state.waking += 1;
            state.permits += 1;
            self.work.notify_one();
        } else {
            spawn_worker(workers, state);
        }
    }

    /// Excludes a thread that waits for a generator's reader from the active ones, or includes it again.
    pub(super) fn set_held_up(&self, workers: &'static Workers, is_held_up: bool) {
        let mut state = lock(&self.state);
        if is_held_up {
            state.held_up += 1;
            self.wake_worker(workers, &mut state);
        } else {
            state.held_up -= 1;
        }
    }

    /// Refuses further work, abandons the present work, and waits a short time for workers to end.
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
            let until = Instant::now() + SHUTDOWN_TIMEOUT;
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

/// The reason for which an idle worker stops waiting.
enum WakeReason {
    Work,
    Leave,
    Close,
}

/// The end of a worker: still counted as a thread, or not.
enum ThreadEnd {
    Counted,
    CountedOut,
}

/// Starts a worker. If the system refuses, the pool goes on with the threads it has.
fn spawn_worker(workers: &'static Workers, state: &mut PoolState) {
    let serial = state.serial;
    // The same size as for Python's own threads on Linux, which deep recursion in a tool may need.
    let builder = std::thread::Builder::new().name(thread_name(serial)).stack_size(8 << 20);
    if builder.spawn(move || run_worker(workers, serial)).is_ok() {
        state.serial += 1;
        state.threads += 1;
        state.waking += 1;
    }
}

fn thread_name(serial: usize) -> String {
    format!("toolcrib-worker-{serial}")
}

/// The body of a worker thread: takes jobs while it holds the GIL, waits for more without it.
fn run_worker(workers: &'static Workers, serial: usize) {
    let started = Instant::now();
    // One attachment for the whole life of the thread, so that values of `threading.local` last.
    let end = Python::try_attach(|py| {
        workers.pool.record_gil_wait(started.elapsed());
        notify_threading(py, &workers.python.begin_thread, Some(thread_name(serial)));
        let end = workers.pool.serve(workers, py, serial);
        notify_threading(py, &workers.python.end_thread, None);
        end
    });
    if !workers.is_current() {
        return;
    }
    let mut state = lock(&workers.pool.state);
    match end {
        Some(ThreadEnd::Counted) => state.threads -= 1,
        Some(ThreadEnd::CountedOut) => state.leaving -= 1,
        None => {
            // The interpreter has ended before the thread could attach to it.
            state.waking -= 1;
            state.threads -= 1;
        }
    }
    workers.pool.ended.notify_all();
}

/// Reports the start or end of this thread to `threading`. Tools run even if that fails.
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
    /// Runs jobs until this thread is to end.
    fn serve(&self, workers: &'static Workers, py: Python<'_>, serial: usize) -> ThreadEnd {
        let (mut in_a_row, mut is_waking, mut since) = (0, true, Instant::now());
        loop {
            if in_a_row == BATCH {
                in_a_row = 0;
                if since.elapsed() >= GIL_HOLD {
                    py.detach(|| ());
                    since = Instant::now();
                }
            }
            let mut state = lock(&self.state);
            if std::mem::take(&mut is_waking) {
                state.waking -= 1;
            }
            if state.is_closed {
                return ThreadEnd::Counted;
            }
            if let Some(work) = state.queue.pop_front() {
                state.taken += 1;
                state.running.insert(serial, Arc::downgrade(&work));
                self.wake_worker(workers, &mut state);
                drop(state);
                in_a_row += 1;
                work.run(py);
                if !workers.is_current() {
                    return ThreadEnd::Counted; // the job forked, and this is the child
                }
                continue;
            }
            state.running.remove(&serial);
            state.idle += 1;
            drop(state);
            let (wakeup, woken) = py.detach(|| (self.wait(), Instant::now()));
            match wakeup {
                WakeReason::Work => {}
                WakeReason::Leave => return ThreadEnd::CountedOut,
                WakeReason::Close => return ThreadEnd::Counted,
            }
            since = Instant::now();
            self.record_gil_wait(since - woken);
            (in_a_row, is_waking) = (0, true);
        }
    }

    /// Waits for a permit; the thread does not hold the GIL.
    fn wait(&self) -> WakeReason {
        let mut state = lock(&self.state);
        let since = Instant::now();
        loop {
            if state.is_closed {
                return WakeReason::Close;
            }
            if state.permits > 0 {
                state.permits -= 1;
                return WakeReason::Work;
            }
            if state.threads <= CORE_THREADS {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(rest) = IDLE_TIMEOUT.checked_sub(since.elapsed()) else {
                state.idle -= 1;
                // Not counted from here on, rather than from its end, or too many would end at the same time.
                state.threads -= 1;
                state.leaving += 1;
                return WakeReason::Leave;
            };
            state = self.work.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// Growth

impl Pool {
    /// Makes the supervisor watch the queue until it is empty.
    fn watch_queue(&self, workers: &'static Workers, state: &mut PoolState) {
        let growth = &mut state.growth;
        if growth.is_watching {
            return;
        }
        if !growth.has_supervisor {
            let builder = std::thread::Builder::new().name("toolcrib-growth".to_owned());
            growth.has_supervisor = builder.spawn(move || workers.pool.supervise(workers)).is_ok();
        }
        growth.is_watching = growth.has_supervisor;
        self.supervision.notify_one();
    }

    /// Records the time that a worker had to wait for the GIL.
    fn record_gil_wait(&self, waited: Duration) {
        lock(&self.state).growth.record_gil_wait(waited);
    }

    /// The body of the supervisor thread: adds workers while the queue stands still.
    fn supervise(&self, workers: &'static Workers) {
        let mut state = lock(&self.state);
        while !state.is_closed {
            if !state.growth.is_watching {
                state = self.supervision.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (taken, patience) = (state.taken, state.growth.patience);
            state = self.supervision.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if state.queue.is_empty() || !state.has_room() {
                // The next change of the queue starts the supervision again.
                state.growth.is_watching = false;
                state.growth.step = 1;
            } else if state.taken == taken && state.waking == 0 {
                for _ in 0..state.growth.step.min(state.queue.len()) {
                    if state.has_room() {
                        self.add_worker(workers, &mut state);
                    }
                }
                state.growth.step = (state.growth.step * 2).min(CORE_THREADS * 8);
            }
        }
    }
}

impl PoolState {
    /// Number of threads that run work or are about to.
    fn busy(&self) -> usize {
        self.threads.saturating_sub(self.idle + self.held_up)
    }

    fn has_room(&self) -> bool {
        self.busy() < MAX_ACTIVE_THREADS && (self.idle > 0 || self.threads < MAX_THREADS)
    }
}

impl Default for Growth {
    fn default() -> Self {
        Growth { has_supervisor: false, is_watching: false, patience: MIN_STANDSTILL, step: 1 }
    }
}

impl Growth {
    fn record_gil_wait(&mut self, waited: Duration) {
        // Less than a millisecond is a thread switch, not contention.
        if waited < Duration::from_millis(1) {
            self.patience = MIN_STANDSTILL;
        } else {
            self.patience = (waited * GIL_WAIT_FACTOR).clamp(MIN_STANDSTILL, MAX_STANDSTILL);
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

        growth.record_gil_wait(Duration::from_micros(80));
        assert_eq!((growth.patience, growth.step), (MIN_STANDSTILL, 16));

        growth.record_gil_wait(Duration::from_millis(5));
        assert_eq!((growth.patience, growth.step), (Duration::from_millis(50), 1));

        growth.record_gil_wait(Duration::from_secs(9));
        assert_eq!((growth.patience, growth.step), (MAX_STANDSTILL, 1));
    }

    #[test]
    fn threads_held_up_by_readers_do_not_count_until_there_are_far_too_many() {
        let mut state = PoolState { threads: MAX_ACTIVE_THREADS, ..PoolState::default() };
        assert!(!state.has_room());

        state.held_up = 1;
        assert!(state.has_room());

        (state.threads, state.held_up) = (MAX_THREADS, MAX_THREADS);
        assert!(!state.has_room());
    }
}
