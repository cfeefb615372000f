//! Forks: a connection never crosses one.
//!
//! SQLite remembers the locks of all connections of a process in memory. A forked child inherits this memory but not the
//! locks, so it could write to a file that it believes to have locked. Therefore every SQLite connection is closed
//! before a fork, and opened again when it is needed. The host calls [`prepare_fork`] before, and
//! [`resume_after_fork`] in the parent or [`renew_after_fork`] in the child afterwards; after any other fork, SQLite is
//! refused in the child.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, Weak};

use super::worker::Worker;
use crate::sync::lock;

/// The process that has opened SQLite connections; zero if there is none.
static OPENED_BY: AtomicU32 = AtomicU32::new(0);

static GATE: PerProcess<Gate> = PerProcess::new();

/// A value for each process: a forked child has one of its own, and never touches the locks in that of its parent.
pub(super) struct PerProcess<T>(OnceLock<Box<OfProcess<T>>>);

struct OfProcess<T> {
    process: u32,
    value: T,
    forked: PerProcess<T>,
}

impl<T> PerProcess<T> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The value of this process, made if there is none.
    pub(super) fn get_or_init(&self, make: impl Fn() -> T) -> &T {
        let process = process::id();
        let mut link = self;
        loop {
            let of = link.0.get_or_init(|| Box::new(OfProcess { process, value: make(), forked: Self::new() }));
            if of.process == process {
                return &of.value;
            }
            link = &of.forked;
        }
    }

    /// The value of this process.
    pub(super) fn get(&self) -> Option<&T> {
        let mut link = self;
        loop {
            let of = link.0.get()?;
            if of.process == process::id() {
                return Some(&of.value);
            }
            link = &of.forked;
        }
    }

    /// True if another process has a value, and this one has none.
    pub(super) fn is_forked(&self) -> bool {
        self.0.get().is_some() && self.get().is_none()
    }
}

/// The open connections, and the fork that waits for their end.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_forking: bool,
    connections: usize,
    workers: Vec<Weak<Worker>>,
}

fn gate() -> &'static Gate {
    GATE.get_or_init(Gate::default)
}

/// The permit to use SQLite, which a fork waits for.
pub(super) struct Permit(());

impl Permit {
    /// Waits for the end of a fork; none in a child that was forked without [`prepare_fork`].
    pub(super) fn take() -> Option<Self> {
        let process = process::id();
        let opened_by = OPENED_BY.load(Ordering::SeqCst);
        if opened_by != 0 && opened_by != process {
            return None;
        }
        let gate = gate();
        let mut state = lock(&gate.state);
        while state.is_forking {
            state = gate.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        OPENED_BY.store(process, Ordering::SeqCst);
        state.connections += 1;
        Some(Self(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let gate = gate();
        lock(&gate.state).connections -= 1;
        gate.changed.notify_all();
    }
}

/// Makes a worker close its connection before a fork.
pub(super) fn register(worker: Weak<Worker>) {
    let mut state = lock(&gate().state);
    state.workers.retain(|worker| worker.strong_count() > 0);
    state.workers.push(worker);
}

/// Closes the SQLite connections of this process, and lets none be opened until the fork is over. Transactions end first.
pub fn prepare_fork() {
    let gate = gate();
    let mut state = lock(&gate.state);
    state.is_forking = true;
    for worker in state.workers.iter().filter_map(Weak::upgrade) {
        worker.rest();
    }
    while state.connections > 0 {
        state = gate.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Lets connections be opened again in the parent of a fork.
pub fn resume_after_fork() {
    let gate = gate();
    lock(&gate.state).is_forking = false;
    gate.changed.notify_all();
}

/// Lets connections be opened in the child of a fork that was prepared.
pub fn renew_after_fork() {
    OPENED_BY.store(0, Ordering::SeqCst);
    // At once, while the child has one thread: another could be forked while it is made.
    gate();
}
