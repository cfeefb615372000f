//! The thread pool: its queue, its worker threads, and the rule by which it grows; and [`Workers`], the state that jobs and
//! inboxes share with it, which ends at the exit of the process and in a forked child. The rules that need no thread are in
//! `limits`.
//!
//! Work is taken only by a thread that holds the GIL, and only one thread at a time waits for the GIL to take some. So the
//! first worker runs 200 short jobs in a row, while a job that blocks lets the next worker through at once.
//!
//! A few threads are enough for short jobs. When all of them block, only another thread helps. When they are merely busy
//! with the GIL, another one makes it worse, so the longer a worker waits for the GIL, the longer a standstill has to last
//! before the pool grows. A thread that is known to wait ([`Hold`]), for the call that its tool makes or for the reader of its
//! generator, is replaced at once; so is one whose job was abandoned.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::limits::{CORE_THREADS, MAX_STANDSTILL, PoolState, RunningJob};
use super::nesting::{self, Nesting};
use super::wakeup::LoopInboxes;
use crate::bindings::call::python::interpreter::{self, GilCell};
use crate::bindings::imported::{BEGIN_THREAD, END_THREAD, LOGGER};
use crate::bindings::once::intern;
use crate::sync::lock;

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
    module.setattr("_nesting", wrap_pyfunction!(nesting::nesting, module)?)?;
    module.setattr("_call_nested", wrap_pyfunction!(nesting::call_nested, module)?)?;
    module.setattr("_keep_for_ever", wrap_pyfunction!(nesting::keep_for_ever, module)?)?;
    module.setattr("_call_held", wrap_pyfunction!(nesting::call_held, module)?)?;
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
    fn run(self: Arc<Self>, py: Python<'_>, running: RunningJob);

    /// Answers it without running it, because no thread can.
    fn refuse(self: Arc<Self>, py: Python<'_>);

    /// Notifies it that its result is not needed any more.
    fn abandon(&self, py: Python<'_>);

    /// The name of the tool.
    fn name(&self) -> &str;

    /// The number of jobs whose threads wait for this one.
    fn depth(&self) -> usize;
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
        let depth = work.depth();
        state.queue.push(work);
        self.wake_worker(workers, &mut state);
        if state.threads == 0 {
            state.queue.undo_push(depth);
            return Err(SubmitError::NoThread);
        }
        Ok(())
    }

    /// Wakes or starts a worker if there is work and no worker is on the way to it.
    fn wake_worker(&self, workers: &'static Workers, state: &mut PoolState) {
        let Some(depth) = state.queue.deepest() else { return };
        if state.waking > 0 {
            return;
        }
        if state.busy() < CORE_THREADS && state.has_room(depth) {
            self.add_worker(workers, state);
        } else {
            self.watch_queue(workers, state);
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

    /// Counts the thread of a job as one that waits, once more, and has another one take its place.
    pub(super) fn hold(&self, workers: &'static Workers, job: RunningJob) {
        let mut state = lock(&self.state);
        if state.hold(job) {
            self.replace(workers, &mut state);
        }
    }

    /// Undoes one [`hold`](Self::hold).
    pub(super) fn release(&self, job: RunningJob) {
        lock(&self.state).release(job);
    }

    /// Excludes the thread of an abandoned job, which cannot be stopped, from the active ones until the job has ended.
    pub(super) fn abandon(&self, workers: &'static Workers, job: RunningJob) {
        let mut state = lock(&self.state);
        if state.abandon(job) {
            self.replace(workers, &mut state);
        }
    }

    /// Has another worker take the next job in place of a thread that waits.
    fn replace(&self, workers: &'static Workers, state: &mut PoolState) {
        let Some(depth) = state.queue.deepest() else { return };
        if state.waking == 0 && state.has_room(depth) {
            self.add_worker(workers, state);
        } else {
            self.wake_worker(workers, state);
        }
    }

    /// Refuses further work, abandons the present work, and waits a short time for workers to end.
    pub(super) fn close(&self, py: Python<'_>) {
        let (queue, running) = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            self.work.notify_all();
            self.supervision.notify_all();
            (state.queue.take_all(), state.running())
        };
        for work in queue.into_iter().chain(running) {
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
            if let Some((work, running)) = state.take_work(serial) {
                self.wake_worker(workers, &mut state);
                drop(state);
                in_a_row += 1;
                let nesting = Nesting::enter(work.depth().saturating_add(1), Some((workers, running)));
                work.run(py, running);
                drop(nesting);
                if !workers.is_current() {
                    return ThreadEnd::Counted; // the job forked, and this is the child
                }
                continue;
            }
            state.rest(serial);
            self.wake_worker(workers, &mut state);
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

    /// The body of the supervisor thread: adds workers while the queue stands still, and ends a standstill that no worker
    /// can end.
    fn supervise(&self, workers: &'static Workers) {
        let mut state = lock(&self.state);
        while !state.is_closed {
            if !state.growth.is_watching {
                state = self.supervision.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (taken, patience) = (state.taken, state.growth.patience);
            state = self.supervision.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if state.queue.is_empty() {
                // The next change of the queue starts the supervision again.
                state.growth.rest();
            } else if state.taken != taken || state.waking > 0 {
                state.growth.note_progress();
            } else {
                for _ in 0..state.workers_to_add() {
                    self.add_worker(workers, &mut state);
                }
                let still = state.growth.stands_still();
                if state.waking == 0 && still >= MAX_STANDSTILL {
                    state = self.end_standstill(workers, state, still);
                }
            }
        }
    }

    /// Reports a standstill, and refuses the work in the queue that no thread will run.
    fn end_standstill<'a>(
        &'a self,
        workers: &'static Workers,
        mut state: MutexGuard<'a, PoolState>,
        still: Duration,
    ) -> MutexGuard<'a, PoolState> {
        let refused = state.take_hopeless(still);
        let report = state.growth.report().then(|| state.describe(refused.len()));
        if refused.is_empty() && report.is_none() {
            return state;
        }
        // The GIL is never awaited with the lock held.
        drop(state);
        Python::try_attach(|py| {
            if !workers.is_current() {
                return;
            }
            for work in refused {
                work.refuse(py);
            }
            let logged = report.map(|report| log_warning(py, &report));
            if let Some(Err(error)) = logged {
                error.write_unraisable(py, None);
            }
        });
        lock(&self.state)
    }
}

fn log_warning(py: Python<'_>, text: &str) -> PyResult<()> {
    LOGGER.get(py)?.call_method1(intern!(py, "warning"), (text,)).map(drop)
}

/// Counts the thread of a worker as one that waits, until this is dropped.
pub(super) struct Hold {
    workers: &'static Workers,
    job: RunningJob,
}

impl Hold {
    /// Holds a thread that runs a job.
    pub(super) fn new(workers: &'static Workers, job: RunningJob) -> Self {
        workers.pool.hold(workers, job);
        Self { workers, job }
    }

    /// Holds this thread, if it is a worker that runs a job.
    pub(super) fn of_this_thread() -> Option<Self> {
        let (workers, job) = nesting::running()?;
        workers.is_current().then(|| Self::new(workers, job))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.workers.is_current() {
            self.workers.pool.release(self.job);
        }
    }
}
