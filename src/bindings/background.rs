//! `TaskBoard`: what a toolkit runs in the background and what came of it, for `toolcrib._background` to work with.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::imported::BEGIN_TASK;
use super::response;
use crate::call::{Board, Limits, Notice, task_id};

type Tasks = Board<Py<PyAny>, Py<PyAny>>;

/// What a toolkit runs in the background and what came of it.
///
/// A task is an `asyncio.Task`, an outcome is a response or an exception.
#[pyclass(name = "_TaskBoard", module = "toolcrib._core", frozen)]
pub(crate) struct PyTaskBoard {
    board: Mutex<Tasks>,
    since: Instant,
}

impl Default for PyTaskBoard {
    fn default() -> Self {
        Self { board: Mutex::default(), since: Instant::now() }
    }
}

impl PyTaskBoard {
    fn board(&self) -> MutexGuard<'_, Tasks> {
        // The board is whole between any two of its methods, also when a panic came in between.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Lets go of results that are too old. They are dropped when the lock is not held, because that may run Python code.
    fn sweep(&self) {
        let old = self.board().sweep(self.now());
        drop(old);
    }
}

/// 128 bits that nobody can foresee. The clock and the process are in them because a forked child has its parent's keys.
fn random_bits() -> u128 {
    let half = || RandomState::new().hash_one((SystemTime::now(), std::process::id()));
    (u128::from(half()) << 64) | u128::from(half())
}

/// Lets a stream run in a task on the loop that runs in this thread, and says so.
pub(crate) fn begin<'py>(
    board: &Bound<'py, PyTaskBoard>,
    tool: &str,
    stream: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = board.py();
    let id = task_id(random_bits());
    BEGIN_TASK.get(py)?.call1((board, &id, tool, stream))?;
    response::notice(py, &Notice::Started { tool: tool.to_owned() }, &id)
}

type Entries = Vec<(String, Py<PyAny>)>;

fn copied<'a>(py: Python<'_>, entries: impl Iterator<Item = (&'a str, &'a Py<PyAny>)>) -> Entries {
    entries.map(|(id, object)| (id.to_owned(), object.clone_ref(py))).collect()
}

fn dict(py: Python<'_>, entries: Entries) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (id, object) in entries {
        dict.set_item(id, object)?;
    }
    Ok(dict)
}

#[pymethods]
impl PyTaskBoard {
    /// Note that a task runs.
    fn start(&self, task_id: &str, task: Py<PyAny>) {
        self.board().start(task_id, task);
    }

    /// Note what a task came to. Nothing is kept of a task that was cancelled.
    fn finish(&self, task_id: &str, outcome: Py<PyAny>) {
        let done = self.board().finish(task_id, outcome, self.now());
        drop(done);
    }

    /// Note that a task has come to its end without an outcome.
    fn forget(&self, task_id: &str) {
        let task = self.board().forget(task_id);
        drop(task);
    }

    /// Note that a task will not come to its end, because its event loop is closed.
    fn lose(&self, py: Python<'_>, task_id: &str) -> PyResult<()> {
        self.finish(task_id, response::notice(py, &Notice::LoopClosed, task_id)?.unbind());
        Ok(())
    }

    /// Take the outcome of a task, or say why there is none.
    fn fetch<'py>(&self, py: Python<'py>, task_id: &str) -> PyResult<Bound<'py, PyAny>> {
        self.sweep();
        let fetched = self.board().fetch(task_id);
        match fetched {
            Ok(outcome) => Ok(outcome.into_bound(py)),
            Err(notice) => response::notice(py, &notice, task_id),
        }
    }

    /// Give the task to cancel, if there is one, and say so.
    fn cancel<'py>(&self, py: Python<'py>, task_id: &str) -> PyResult<(Option<Py<PyAny>>, Bound<'py, PyAny>)> {
        self.sweep();
        let cancelled = self.board().cancel(task_id).map(|task| task.clone_ref(py));
        match cancelled {
            Ok(task) => Ok((Some(task), response::notice(py, &Notice::Cancelled, task_id)?)),
            Err(notice) => Ok((None, response::notice(py, &notice, task_id)?)),
        }
    }

    /// Say that somebody has waited long enough.
    #[staticmethod]
    fn still_running<'py>(py: Python<'py>, task_id: &str, seconds: String) -> PyResult<Bound<'py, PyAny>> {
        response::notice(py, &Notice::StillRunning { seconds }, task_id)
    }

    /// Say that a task was cancelled while somebody waited for it.
    #[staticmethod]
    fn cancelled<'py>(py: Python<'py>, task_id: &str) -> PyResult<Bound<'py, PyAny>> {
        response::notice(py, &Notice::CancelledMeanwhile, task_id)
    }

    /// Find a running task.
    fn task(&self, py: Python<'_>, task_id: &str) -> Option<Py<PyAny>> {
        self.board().task(task_id).map(|task| task.clone_ref(py))
    }

    /// List the running tasks.
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tasks = copied(py, self.board().running());
        dict(py, tasks)
    }

    /// List the tasks that are cancelled, but not yet at their end.
    fn leaving<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tasks = copied(py, self.board().leaving());
        dict(py, tasks)
    }

    /// Look at an outcome that nobody has fetched.
    fn outcome(&self, py: Python<'_>, task_id: &str) -> Option<Py<PyAny>> {
        self.sweep();
        self.board().outcome(task_id).map(|outcome| outcome.clone_ref(py))
    }

    /// List the outcomes that nobody has fetched.
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.sweep();
        let outcomes = copied(py, self.board().finished());
        dict(py, outcomes)
    }

    /// Set how many outcomes are kept, and for how many seconds.
    fn limit(&self, count: usize, age: f64) -> PyResult<()> {
        let age = if age == f64::INFINITY { Ok(Duration::MAX) } else { Duration::try_from_secs_f64(age) };
        let age = age.map_err(|_| PyValueError::new_err("age must be a number of seconds that is not negative"))?;
        let dropped = self.board().limit(Limits { count, age }, self.now());
        drop(dropped);
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let board = match self.board.try_lock() {
            Ok(board) => board,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread that holds the lock is using the board, which is then not garbage.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        board.running().chain(board.leaving()).chain(board.finished()).try_for_each(|(_, object)| visit.call(object))
    }

    fn __clear__(&self) {
        let cleared = std::mem::take(&mut *self.board());
        drop(cleared);
    }
}
