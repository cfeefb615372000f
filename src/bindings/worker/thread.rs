//! The life of a worker thread: takes jobs while it holds the GIL, waits for more without it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::growth::CORE;
use super::pool::{Pool, State};
use super::{Shared, guard, lock};

/// Jobs in a row before a worker looks at the clock.
const BATCH: usize = 16;
/// How long a worker keeps the GIL at least before it offers it to others. Whoever gets it has to be woken for it, which
/// takes longer than many a job.
const HOLD: Duration = Duration::from_millis(1);
/// How long a worker beyond the core ones waits for work before it goes.
const IDLE: Duration = Duration::from_secs(10);

/// What an idle worker is called for.
enum Call {
    Work,
    Leave,
    Close,
}

/// How a worker ended.
enum End {
    Counted,
    CountedOut,
}

/// Adds a worker; if the system has no thread left, those that are there have to do.
pub(super) fn spawn(shared: &'static Shared, state: &mut State) {
    let serial = state.serial;
    // As much as Python's own threads get on Linux: deep recursion in a tool counts on it.
    let builder = std::thread::Builder::new().name(name(serial)).stack_size(8 << 20);
    if builder.spawn(move || work(shared, serial)).is_ok() {
        state.serial += 1;
        state.threads += 1;
        state.waking += 1;
    }
}

fn name(serial: usize) -> String {
    format!("toolcrib-worker-{serial}")
}

/// The life of a worker thread.
fn work(shared: &'static Shared, serial: usize) {
    let started = Instant::now();
    // One attachment for all of the thread's life, so that `threading.local` and the like last.
    let end = Python::try_attach(|py| {
        shared.pool.note_contention(started.elapsed());
        introduce(py, &shared.names.begin, Some(name(serial)));
        let end = shared.pool.serve(shared, py, serial);
        introduce(py, &shared.names.end, None);
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
    shared.pool.gone.notify_all();
}

/// Tells `threading` of the thread's beginning or end; a tool runs without it too.
fn introduce(py: Python<'_>, function: &Py<PyAny>, name: Option<String>) {
    let args = match name {
        Some(name) => PyTuple::new(py, [PyString::new(py, &name)]),
        None => Ok(PyTuple::empty(py)),
    };
    let Ok(args) = args else { return };
    match guard::call(py, function, &args.unbind(), None) {
        Ok(nothing) => guard::release(py, nothing),
        Err(exception) => guard::report(py, exception, function),
    }
}

impl Pool {
    /// Runs jobs until there is no more need of this thread.
    fn serve(&self, shared: &'static Shared, py: Python<'_>, serial: usize) -> End {
        let (mut kept, mut waking, mut since) = (0, true, Instant::now());
        loop {
            if kept == BATCH {
                kept = 0;
                if since.elapsed() >= HOLD {
                    py.detach(|| ());
                    since = Instant::now();
                }
            }
            let mut state = lock(&self.state);
            if std::mem::take(&mut waking) {
                state.waking -= 1;
            }
            if state.closed {
                return End::Counted;
            }
            if let Some(work) = state.queue.pop_front() {
                state.taken += 1;
                state.running.insert(serial, Arc::downgrade(&work));
                self.rouse(shared, &mut state);
                drop(state);
                kept += 1;
                work.run(py);
                if !shared.is_current() {
                    return End::Counted; // the job forked, and this is the child
                }
                continue;
            }
            state.running.remove(&serial);
            state.idle += 1;
            drop(state);
            let (call, woken) = py.detach(|| (self.wait(), Instant::now()));
            match call {
                Call::Work => {}
                Call::Leave => return End::CountedOut,
                Call::Close => return End::Counted,
            }
            since = Instant::now();
            self.note_contention(since - woken);
            (kept, waking) = (0, true);
        }
    }

    /// Waits for a permit; the thread does not hold the GIL.
    fn wait(&self) -> Call {
        let mut state = lock(&self.state);
        let since = Instant::now();
        loop {
            if state.closed {
                return Call::Close;
            }
            if state.permits > 0 {
                state.permits -= 1;
                return Call::Work;
            }
            if state.threads <= CORE {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(rest) = IDLE.checked_sub(since.elapsed()) else {
                state.idle -= 1;
                // Counted out here and not when it has ended, or too many would go at the same time.
                state.threads -= 1;
                state.leaving += 1;
                return Call::Leave;
            };
            state = self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
