//! `Store`: a database that survives a restart, and the awaitables of its operations.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::Value;

use super::json;
use super::native::PyNativeTool;
use super::parameters::{Omittable, optional_seconds, string, text};
use super::worker::{Completions, Polled, await_itself, completions};
use crate::artifact::{self, Artifacts};
use crate::policy::{AUDIT_LOG, ApprovalStore};
use crate::store::{
    Delete, Entry, Get, KeptLimits, Keys, Operation, Put, Records, Store, TIMEOUT, prepare_fork, renew_after_fork,
    resume_after_fork,
};
use crate::sync::lock;
use crate::{Error, Result};

/// Default number of records that are read at once.
const RECORDS: u64 = 1000;

/// Default number of seconds for which the whole text of a result is kept.
const WEEK: f64 = 604_800.0;

/// Keep data in a database: SQLite in a file, or PostgreSQL for several machines.
#[pyclass(name = "Store", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyStore(Store);

impl PyStore {
    pub(crate) fn core(&self) -> &Store {
        &self.0
    }
}

/// Adds the class, and the functions by which no connection crosses a fork.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStore>()?;
    // Not by `add_function`, which would make it a public name.
    module.setattr("_artifact_tools", wrap_pyfunction!(_artifact_tools, module)?)?;
    let py = module.py();
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

/// The tools for the artifacts in a store.
#[pyfunction]
fn _artifact_tools(store: &Bound<'_, PyStore>) -> Vec<PyNativeTool> {
    let artifacts = Artifacts::new(store.get().0.clone());
    artifact::tools(&artifacts).into_iter().map(Into::into).collect()
}

/// Closes connections. The threads that do never attach, so they do not wait for the lock that this one holds.
#[pyfunction]
#[pyo3(name = "_before_fork")]
fn before_fork() {
    prepare_fork();
}

#[pyfunction]
#[pyo3(name = "_after_fork_in_parent")]
fn after_fork_in_parent() {
    resume_after_fork();
}

#[pyfunction]
#[pyo3(name = "_after_fork_in_child")]
fn after_fork_in_child() {
    renew_after_fork();
}

/// The conversion of a result, for the thread of the event loop.
type Finish = Box<dyn FnOnce(Python<'_>, Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> + Send>;

/// The function that hands an operation over, with the function that receives its result.
type Start = Box<dyn FnOnce(Box<dyn FnOnce(Finish) + Send>) -> Result<()> + Send>;

/// An operation of a store, to be awaited once. It begins when it is awaited, and goes on if the task is cancelled.
#[pyclass(name = "_StoreCall", module = "toolcrib._core", frozen)]
pub(crate) struct PyStoreCall {
    state: Mutex<StoreCallState>,
    /// The object that the result is for.
    owner: Mutex<Option<Py<PyAny>>>,
}

enum StoreCallState {
    Fresh(Start, Store),
    Waiting(Completions<Finish>, Store),
    /// The result is the owner itself.
    Ready,
    Over,
}

impl PyStoreCall {
    /// Makes the awaitable of an operation; `finish` converts its result for the owner.
    pub(crate) fn new<O: Operation>(
        store: &Store,
        operation: O,
        owner: Option<Py<PyAny>>,
        finish: impl FnOnce(Python<'_>, Option<&Bound<'_, PyAny>>, O::Output) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let handle = store.clone();
        let start: Start = Box::new(move |send| {
            let finish =
                |result: Result<O::Output>| -> Finish { Box::new(move |py, owner| finish(py, owner, result?)) };
            handle.submit(operation, move |result| send(finish(result)))
        });
        Self { state: Mutex::new(StoreCallState::Fresh(start, store.clone())), owner: Mutex::new(owner) }
    }

    fn ready(owner: Py<PyAny>) -> Self {
        Self { state: Mutex::new(StoreCallState::Ready), owner: Mutex::new(Some(owner)) }
    }

    fn closing(store: &Store) -> Self {
        let handle = store.clone();
        let start: Start = Box::new(move |send| {
            handle.close_with(move || send(Box::new(|py, _| Ok(py.None()))));
            Ok(())
        });
        Self { state: Mutex::new(StoreCallState::Fresh(start, store.clone())), owner: Mutex::default() }
    }

    /// The conversion of the result, or a waiter of the event loop.
    fn poll(&self, py: Python<'_>) -> PyResult<std::result::Result<Option<Finish>, Py<PyAny>>> {
        // Taken out, because polling may run code of the event loop.
        let (results, store) = match std::mem::replace(&mut *lock(&self.state), StoreCallState::Over) {
            StoreCallState::Fresh(start, store) => {
                let (completer, results) = completions(py)?;
                start(Box::new(move |finish| completer.complete(finish)))?;
                (results, store)
            }
            StoreCallState::Waiting(results, store) => (results, store),
            StoreCallState::Ready => return Ok(Ok(None)),
            StoreCallState::Over => {
                return Err(PyRuntimeError::new_err("the operation of the store was awaited before"));
            }
        };
        match results.poll(py)? {
            Polled::Wait(waiter) => {
                *lock(&self.state) = StoreCallState::Waiting(results, store);
                Ok(Err(waiter))
            }
            Polled::Value(finish) => Ok(Ok(Some(finish))),
            Polled::Ended => Err(store.closed().into()),
        }
    }
}

await_itself!(PyStoreCall);

#[pymethods]
impl PyStoreCall {
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let finish = match self.poll(py)? {
            Err(waiter) => return Ok(waiter),
            Ok(finish) => finish,
        };
        let owner = lock(&self.owner).take();
        let value = match finish {
            Some(finish) => Some(finish(py, owner.as_ref().map(|owner| owner.bind(py)))?),
            None => owner,
        };
        Err(PyStopIteration::new_err((value,)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        // A locked owner is being taken, and is visited in the next collection.
        self.owner.try_lock().map_or(Ok(()), |owner| visit.call(&*owner))
    }

    fn __clear__(&self) {
        let owner = lock(&self.owner).take();
        drop(owner);
    }
}

impl Drop for PyStoreCall {
    fn drop(&mut self) {
        if !matches!(self.state.get_mut(), Ok(StoreCallState::Fresh(..))) {
            return;
        }
        // As for a coroutine: what was never awaited was never saved.
        Python::try_attach(|py| {
            let warning = py.get_type::<PyRuntimeWarning>();
            if let Err(error) = PyErr::warn(py, &warning, c"an operation of a store was never awaited", 1) {
                error.write_unraisable(py, None);
            }
        });
    }
}

#[pymethods]
impl PyStore {
    /// Open a store, and create its file and tables if they do not exist.
    ///
    /// Args:
    ///     url: `"sqlite:crib.db"`, `"sqlite::memory:"`, or `"postgresql://user:password@host:port/database"`.
    ///     timeout: The number of seconds within which an operation has to be done. After that a `StoreError` is raised, and a
    ///         call that waits for its audit record is denied.
    ///
    /// Raises:
    ///     InvalidStoreError: If the URL is invalid.
    ///     StoreError: If the database cannot be opened, or the server does not answer.
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     ForeignFileError: If the file is not a SQLite database.
    ///     NewerFileError: If a newer version of toolcrib made the tables.
    #[staticmethod]
    #[pyo3(signature = (url, *, timeout=Omittable(None)), text_signature = "(url, *, timeout=30)")]
    fn open(py: Python<'_>, url: &Bound<'_, PyAny>, timeout: Omittable<'_>) -> PyResult<Self> {
        let url = text("url", url)?;
        let timeout = optional_seconds("timeout", timeout.0.as_ref())?;
        let timeout = timeout.map_or(Ok(TIMEOUT), Duration::try_from_secs_f64).ok().filter(|limit| !limit.is_zero());
        let timeout = timeout.ok_or_else(|| PyValueError::new_err("timeout must be a positive number of seconds"))?;
        Ok(Self(py.detach(|| Store::open_with_timeout(&url, timeout))?))
    }

    /// The number of seconds within which an operation has to be done.
    #[getter]
    fn timeout(&self) -> f64 {
        self.0.timeout().as_secs_f64()
    }

    /// The URL, without the password.
    #[getter]
    fn url(&self) -> String {
        self.0.url()
    }

    /// True after `close`.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Close the connection, after the operations that have begun.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __aenter__(slf: Py<Self>) -> PyStoreCall {
        PyStoreCall::ready(slf.into_any())
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__(&self, _error: &Bound<'_, PyTuple>) -> PyStoreCall {
        PyStoreCall::closing(&self.0)
    }

    /// Read a value.
    ///
    /// Args:
    ///     space: The name of a set of keys, of your own choice.
    ///     key: The key.
    ///
    /// Returns:
    ///     The value and its version; None if there is none.
    fn get(&self, space: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<PyStoreCall> {
        let (space, key) = (name("space", space)?, name("key", key)?);
        Ok(PyStoreCall::new(&self.0, Get { space, key }, None, |py, _, entry| match entry {
            Some(Entry { value, version }) => {
                Ok((value_from(py, &value)?, version).into_pyobject(py)?.into_any().unbind())
            }
            None => Ok(py.None()),
        }))
    }

    /// Write a value, if its version is the expected one.
    ///
    /// Args:
    ///     space: The name of a set of keys, of your own choice.
    ///     key: The key.
    ///     value: A JSON value.
    ///     version: The version that you have read: 0 if there was no value, None to replace any version.
    ///
    /// Returns:
    ///     The new version.
    ///
    /// Raises:
    ///     VersionConflictError: If the value has another version by now; its `version` is the current one.
    #[pyo3(signature = (space, key, value, *, version))]
    fn put(
        &self,
        space: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        version: Option<u64>,
    ) -> PyResult<PyStoreCall> {
        let (space, key) = (name("space", space)?, name("key", key)?);
        let value = json::value_from_python(value)?.to_string().into_bytes();
        Ok(PyStoreCall::new(&self.0, Put { space, key, value, expected: version }, None, |py, _, version| {
            Ok(version.into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// Remove a value, if its version is the expected one.
    ///
    /// Args:
    ///     space: The name of a set of keys.
    ///     key: The key.
    ///     version: The version that you have read; None to remove any version.
    ///
    /// Returns:
    ///     True if there was a value.
    ///
    /// Raises:
    ///     VersionConflictError: If the value has another version by now.
    #[pyo3(signature = (space, key, *, version))]
    fn delete(&self, space: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>, version: Option<u64>) -> PyResult<PyStoreCall> {
        let (space, key) = (name("space", space)?, name("key", key)?);
        Ok(PyStoreCall::new(&self.0, Delete { space, key, expected: version }, None, |py, _, removed| {
            Ok(removed.into_pyobject(py)?.to_owned().into_any().unbind())
        }))
    }

    /// List the keys of a space, sorted.
    fn keys(&self, space: &Bound<'_, PyAny>) -> PyResult<PyStoreCall> {
        let keys = Keys { space: name("space", space)? };
        Ok(PyStoreCall::new(&self.0, keys, None, |py, _, keys| Ok(PyList::new(py, keys)?.into_any().unbind())))
    }

    /// Read the audit log, oldest record first.
    ///
    /// Args:
    ///     after: The number of the record to begin after.
    ///     limit: The most records to read.
    ///
    /// Returns:
    ///     Pairs of a record's number and the record.
    #[pyo3(signature = (*, after=0, limit=RECORDS), text_signature = "($self, *, after=0, limit=1000)")]
    fn audit(&self, after: u64, limit: u64) -> PyStoreCall {
        let records = Records { space: AUDIT_LOG.to_owned(), after, limit };
        PyStoreCall::new(&self.0, records, None, |py, _, records| {
            let read = records.into_iter().map(|record| Ok((record.number, value_from(py, &record.record)?)));
            Ok(PyList::new(py, read.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        })
    }

    /// Limit the whole texts of results that are kept because a `ResultBudget` has cut them.
    ///
    /// The oldest are removed for new ones, except those that were edited. Each process sets its own limits.
    ///
    /// Args:
    ///     count: The most results.
    ///     bytes: The most bytes of their texts together.
    ///     age: The number of seconds for which a result is kept.
    ///
    /// Raises:
    ///     ValueError: If `age` is not a number that is at least zero.
    #[pyo3(
        signature = (*, count=KeptLimits::default().count, bytes=KeptLimits::default().bytes, age=WEEK),
        text_signature = "($self, *, count=10000, bytes=268435456, age=604800.0)"
    )]
    fn limit_results(&self, count: u64, bytes: u64, age: f64) -> PyResult<()> {
        let age = if age == f64::INFINITY { Ok(Duration::MAX) } else { Duration::try_from_secs_f64(age) };
        let age = age.map_err(|_| PyValueError::new_err("age must be a non-negative number of seconds"))?;
        self.0.limit_results(KeptLimits { count, bytes, age });
        Ok(())
    }

    /// Claim a key, as `Approvals` does for an answered call.
    ///
    /// This blocks until the claim is durable.
    ///
    /// Args:
    ///     key: The key.
    ///     expires: The time in seconds since 1970 from which the key may be forgotten.
    ///
    /// Returns:
    ///     True for the first claim of this key by any process, False for all others.
    fn claim(&self, py: Python<'_>, key: &Bound<'_, PyAny>, expires: f64) -> PyResult<bool> {
        let key = name("key", key)?;
        #[allow(clippy::cast_possible_truncation, reason = "the times of any year fit")]
        let expires = Timestamp::from_millisecond((expires * 1000.0) as i64)
            .map_err(|_| PyValueError::new_err("expires must be a time in seconds since 1970"))?;
        let refused = |reason| Error::StoreFailed { store: self.0.url(), reason };
        Ok(py.detach(|| ApprovalStore::claim(&self.0, &key, expires)).map_err(refused)?)
    }

    fn __repr__(&self) -> String {
        format!("Store('{}')", self.0.url())
    }
}

/// The name of a space or key, which a database can keep only as Unicode.
pub(crate) fn name(what: &'static str, argument: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = string(what, argument)?;
    if let Ok(name) = name.to_str() {
        return Ok(name.to_owned());
    }
    let key = name.to_string_lossy().chars().take(80).collect();
    Err(Error::InvalidStoreKey { what, key, reason: "it contains a lone surrogate" }.into())
}

/// The object of a JSON text in the store.
fn value_from<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let value: Value = serde_json::from_slice(text).map_err(|error| Error::StoreFailed {
        store: "a value".to_owned(),
        reason: format!("it is not JSON: {error}"),
    })?;
    json::to_python(py, &value)
}
