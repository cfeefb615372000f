//! `_TaskBoard`: the background tasks of a toolkit and their outcomes, for `toolcrib._background`.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::imported::BEGIN_TASK;
use super::response;
use crate::bytes::random_bytes;
use crate::call::{Board, Limits, Notice, task_id};
use crate::sync::lock;

type Tasks = Board<Py<PyAny>, Py<PyAny>>;

/// The background tasks of a toolkit, and the outcomes of those that have finished.
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
        lock(&self.board)
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Keeps the outcomes of cancelled tasks too.
    pub(crate) fn keep_cancelled(&self) {
        self.board().keep_cancelled();
    }

    /// Drops results that are too old, without the lock, because that may run Python code.
    fn sweep(&self) {
        let old = self.board().sweep(self.now());
        drop(old);
    }
}

/// Runs a stream in a task on the loop of this thread, and returns the response that announces it.
pub(crate) fn begin<'py>(
    board: &Bound<'py, PyTaskBoard>,
    tool: &str,
    stream: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = board.py();
    let id = task_id(u128::from_ne_bytes(random_bytes()?));
    BEGIN_TASK.get(py)?.call1((board, &id, tool, stream))?;
    response::notice(py, &Notice::Started { tool: tool.to_owned() }, &id)
}

type TaskEntries = Vec<(String, Py<PyAny>)>;

fn copied<'a>(py: Python<'_>, entries: impl Iterator<Item = (&'a str, &'a Py<PyAny>)>) -> TaskEntries {
    entries.map(|(id, object)| (id.to_owned(), object.clone_ref(py))).collect()
}

fn dict(py: Python<'_>, entries: TaskEntries) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (id, object) in entries {
        dict.set_item(id, object)?;
    }
    Ok(dict)
}

#[pymethods]
impl PyTaskBoard {
    /// Record a running task.
    fn start(&self, task_id: &str, task: Py<PyAny>) {
        self.board().start(task_id, task);
    }

    /// Record the outcome of a task. That of a cancelled task is kept only in AgentScope's place.
    fn finish(&self, task_id: &str, outcome: Py<PyAny>) {
        let done = self.board().finish(task_id, outcome, self.now());
        drop(done);
    }

    /// Remove a task that has ended without an outcome.
    fn forget(&self, task_id: &str) {
        let task = self.board().forget(task_id);
        drop(task);
    }

    /// Record that a task will never end, because its event loop is closed.
    fn lose(&self, py: Python<'_>, task_id: &str) -> PyResult<()> {
        self.finish(task_id, response::notice(py, &Notice::LoopClosed, task_id)?.unbind());
        Ok(())
    }

    /// Remove and return the outcome of a task, or a response that explains why there is none.
    fn fetch<'py>(&self, py: Python<'py>, task_id: &str) -> PyResult<Bound<'py, PyAny>> {
        self.sweep();
        let fetched = self.board().fetch(task_id);
        match fetched {
            Ok(outcome) => Ok(outcome.into_bound(py)),
            Err(notice) => response::notice(py, &notice, task_id),
        }
    }

    /// Return the task to cancel, if there is one, and the response to the request.
    fn cancel<'py>(&self, py: Python<'py>, task_id: &str) -> PyResult<(Option<Py<PyAny>>, Bound<'py, PyAny>)> {
        self.sweep();
        let cancelled = self.board().cancel(task_id).map(|task| task.clone_ref(py));
        match cancelled {
            Ok(task) => Ok((Some(task), response::notice(py, &Notice::Cancelled, task_id)?)),
            Err(notice) => Ok((None, response::notice(py, &notice, task_id)?)),
        }
    }

    /// The response to a wait that timed out.
    #[staticmethod]
    fn still_running<'py>(py: Python<'py>, task_id: &str, seconds: String) -> PyResult<Bound<'py, PyAny>> {
        response::notice(py, &Notice::StillRunning { seconds }, task_id)
    }

    /// The response to a wait whose task was cancelled.
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

    /// List the cancelled tasks that have not ended yet.
    fn leaving<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tasks = copied(py, self.board().leaving());
        dict(py, tasks)
    }

    /// Return an outcome that was not fetched yet, and keep it.
    fn outcome(&self, py: Python<'_>, task_id: &str) -> Option<Py<PyAny>> {
        self.sweep();
        self.board().outcome(task_id).map(|outcome| outcome.clone_ref(py))
    }

    /// List the outcomes that were not fetched yet.
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.sweep();
        let outcomes = copied(py, self.board().finished());
        dict(py, outcomes)
    }

    /// Set the number of outcomes to keep, and the number of seconds.
    fn limit(&self, count: usize, age: f64) -> PyResult<()> {
        let age = if age == f64::INFINITY { Ok(Duration::MAX) } else { Duration::try_from_secs_f64(age) };
        let age = age.map_err(|_| PyValueError::new_err("age must be a non-negative number of seconds"))?;
        let dropped = self.board().limit(Limits { count, age }, self.now());
        drop(dropped);
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let board = match self.board.try_lock() {
            Ok(board) => board,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread that holds the lock uses the board, so it is not garbage.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        board.running().chain(board.leaving()).chain(board.finished()).try_for_each(|(_, object)| visit.call(object))
    }

    fn __clear__(&self) {
        let cleared = std::mem::take(&mut *self.board());
        drop(cleared);
    }
}
