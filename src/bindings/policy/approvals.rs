//! `Approvals`, which issues pending calls and accepts one answer to each.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBoolMethods, PyDict, PyMapping, PyString};
use serde_json::Value;

use crate::bindings::into_response::{error_class, error_text};
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::parameters::{Omittable, class_name, optional_bytes, optional_path, optional_seconds};
use crate::bindings::store::{PyStore, PyStoreCall};
use crate::bytes::random_bytes;
use crate::policy::{ApprovalStore, Approvals, Key, ListPending, Pending};
use crate::sync::{read, write};

/// Default number of seconds for which a pending call can be answered.
const HOUR: f64 = 3600.0;

/// Issue pending calls, and accept one answer to each.
#[pyclass(name = "Approvals", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyApprovals {
    core: RwLock<Arc<Approvals>>,
    lifetime: Duration,
    path: Option<PathBuf>,
    store: Option<SharedLedger>,
}

/// The database of answered calls.
enum SharedLedger {
    /// A store of toolcrib.
    Store(Py<PyStore>),
    /// An object of the program, the same as in the core, so that the garbage collector counts one reference.
    Supplied(Arc<SuppliedStore>),
}

/// The fewest bytes of a secret, so that it cannot be guessed.
const SHORTEST_KEY: usize = 32;

/// A store that a program supplies: an object with a method `claim`.
#[derive(Debug)]
struct SuppliedStore(Py<PyAny>);

impl ApprovalStore for SuppliedStore {
    fn claim(&self, key: &str, expires: Timestamp) -> Result<bool, String> {
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of any year are exact enough in a float")]
        let seconds = expires.as_millisecond() as f64 / 1000.0;
        Python::attach(|py| {
            let claimed = self.0.bind(py).call_method1(intern!(py, "claim"), (key, seconds));
            let claimed =
                claimed.map_err(|error| format!("{}: {}", error_class(py, &error), error_text(py, &error)))?;
            // Anything else than a plain yes, such as the coroutine of an asynchronous method, must not let the call run.
            claimed
                .cast::<PyBool>()
                .map(PyBoolMethods::is_true)
                .map_err(|_| format!("`claim` must return True or False, not {}", class_name(&claimed)))
        })
    }
}

impl PyApprovals {
    /// Approvals that end with the process.
    pub(crate) fn in_memory() -> PyResult<Self> {
        let core = Approvals::in_memory(Key::new(random_bytes()?));
        Ok(Self { core: RwLock::new(Arc::new(core)), lifetime: Duration::from_secs_f64(HOUR), path: None, store: None })
    }

    /// Approvals in a store, which has their key.
    pub(crate) fn in_store(store: &Bound<'_, PyStore>) -> PyResult<Self> {
        Self::new(store.py(), None, Omittable(None), Some(store.clone().into_any()), None)
    }

    /// The approvals of this process. Those in memory are replaced in a forked child.
    pub(crate) fn core(&self) -> PyResult<Arc<Approvals>> {
        let core = read(&self.core).clone();
        if !core.is_forked() {
            return Ok(core);
        }
        let key = Key::new(random_bytes()?);
        let mut core = write(&self.core);
        if core.is_forked() {
            *core = Arc::new(core.renewed(key));
        }
        Ok(core.clone())
    }

    /// The time for which a pending call can be answered.
    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }
}

#[pymethods]
impl PyApprovals {
    #[new]
    #[pyo3(
        signature = (path=None, ttl=Omittable(None), *, store=None, key=None),
        text_signature = "(path=None, ttl=3600, *, store=None, key=None)"
    )]
    fn new(
        py: Python<'_>,
        path: Option<&Bound<'_, PyAny>>,
        ttl: Omittable<'_>,
        store: Option<Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (path, key) = (optional_path("path", path)?, optional_bytes("key", key)?);
        let ttl = optional_seconds("ttl", ttl.0.as_ref())?.unwrap_or(HOUR);
        let lifetime = Duration::try_from_secs_f64(ttl).ok().filter(|lifetime| !lifetime.is_zero());
        let lifetime = lifetime.ok_or_else(|| PyValueError::new_err("ttl must be a positive number of seconds"))?;
        let store = store.as_ref().map(SharedLedger::of).transpose()?;
        let core = match (&path, &store) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err("Approvals() takes a `path` or a `store`, not both"));
            }
            (None, Some(SharedLedger::Supplied(store))) => Approvals::in_store(store.clone(), shared_key(key)?),
            (None, Some(SharedLedger::Store(store))) => {
                let (store, random) = (store.get().core().clone(), random_bytes()?);
                let key = match key {
                    Some(_) => shared_key(key)?,
                    None => py.detach(|| Key::in_store(&store, random))?,
                };
                Approvals::in_store(Arc::new(store), key)
            }
            (_, None) if key.is_some() => {
                return Err(PyTypeError::new_err("Approvals() takes a `key` only together with a `store`"));
            }
            (None, None) => Approvals::in_memory(Key::new(random_bytes()?)),
            (Some(path), None) => {
                let key = Key::new(random_bytes()?);
                py.detach(|| Approvals::open(path, key))?
            }
        };
        Ok(Self { core: RwLock::new(Arc::new(core)), lifetime, path, store })
    }

    /// The folder that keeps pending calls across restarts; None if they are kept in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// The number of seconds for which a pending call can be answered.
    #[getter]
    fn ttl(&self) -> f64 {
        self.lifetime.as_secs_f64()
    }

    /// The store that records the answered calls; None if they are recorded in memory or in a folder.
    #[getter]
    fn store(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.store.as_ref().map(|store| store.given().clone_ref(py))
    }

    /// List the calls that wait for an answer, oldest first.
    ///
    /// Only a `Store` of toolcrib keeps them; all processes on it see the same list. Pass one to `Toolkit.resume`.
    ///
    /// Returns:
    ///     The pending values, as in `metadata["pending"]`.
    ///
    /// Raises:
    ///     TypeError: If the approvals are not in a `Store`.
    fn pending(&self) -> PyResult<PyStoreCall> {
        let Some(SharedLedger::Store(store)) = &self.store else {
            return Err(PyTypeError::new_err("only Approvals(store=Store.open(...)) keep a list of pending calls"));
        };
        let list = ListPending { now: Timestamp::now() };
        Ok(PyStoreCall::new(store.get().core(), list, None, |py, _, pending| {
            let values: Vec<Value> = pending.iter().map(Pending::to_value).collect();
            Ok(json::to_python(py, &Value::Array(values))?.unbind())
        }))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.store.as_ref().map_or(Ok(()), |store| visit.call(store.given()))
    }
}

impl SharedLedger {
    fn of(store: &Bound<'_, PyAny>) -> PyResult<Self> {
        match store.cast::<PyStore>() {
            Ok(store) => Ok(Self::Store(store.clone().unbind())),
            Err(_) => Ok(Self::Supplied(Arc::new(checked_store(store)?))),
        }
    }

    /// The object as it was passed.
    fn given(&self) -> &Py<PyAny> {
        match self {
            Self::Store(store) => store.as_any(),
            Self::Supplied(store) => &store.0,
        }
    }
}

/// The store that a program supplies.
fn checked_store(store: &Bound<'_, PyAny>) -> PyResult<SuppliedStore> {
    if store.getattr_opt(intern!(store.py(), "claim"))?.is_some_and(|claim| claim.is_callable()) {
        return Ok(SuppliedStore(store.clone().unbind()));
    }
    Err(PyTypeError::new_err(format!(
        "store must have a method `claim(key, expires)`, and {} has none",
        class_name(store)
    )))
}

/// The key that all processes on a store share.
fn shared_key(key: Option<&[u8]>) -> PyResult<Key> {
    match key {
        Some(key) if key.len() >= SHORTEST_KEY => Ok(Key::of_secret(key)),
        Some(key) => {
            let found = key.len();
            Err(PyValueError::new_err(format!("key must have at least {SHORTEST_KEY} bytes, not {found}")))
        }
        None => Err(PyTypeError::new_err(
            "Approvals() with a `store` needs a `key`: secret bytes that all processes on the store share",
        )),
    }
}

/// The JSON value of a mapping, of JSON text, or of an object with `to_dict`.
pub(crate) fn value_of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return serde_json::from_str(text.to_str()?)
            .map_err(|error| PyValueError::new_err(format!("{what} is not valid JSON: {error}")));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return json::value_from_python(dict);
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let dict = PyDict::new(py);
        dict.update(mapping)?;
        return json::value_from_python(&dict);
    }
    if let Some(to_dict) = object.getattr_opt(intern!(py, "to_dict"))? {
        return json::value_from_python(&to_dict.call0()?);
    }
    let kind = object.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("{what} must be a mapping of JSON values, not {kind}")))
}
