//! The state of toolkits, sessions and roles in a file, or in an entry of a store.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyInt;
use pyo3::{PyClass, PyTypeCheck};
use serde_json::Value;

use super::parameters::{class_name, wrong_type};
use super::store::{PyStore, PyStoreCall, name};
use super::toolkit::PyToolkit;
use crate::store::{self, Disk, Entry, FileFormat, Get, Put, SavedVersions, Store};
use crate::{Error, Result};

/// A class whose state can be saved.
pub(crate) trait SavedState: PyClass<Frozen = True> + Sync {
    /// The format of the state.
    const FORMAT: &'static FileFormat;

    /// The versions that an object has seen in stores.
    fn versions(&self) -> &SavedVersions;

    /// Replaces a file.
    fn write_file(path: &Path, state: &Value) -> Result<()> {
        store::save(&Disk, path, Self::FORMAT, state)
    }

    /// Reads a file.
    fn read_file(path: &Path) -> Result<Value> {
        Ok(store::load(&Disk, path, Self::FORMAT)?.value)
    }
}

/// The place that `save` and `load` name: a file, or an entry of a store.
pub(crate) enum Place {
    File(PathBuf),
    Entry(Store, String),
}

impl Place {
    /// Reads a path, or a store with a key; `own_key` is the key if none is given.
    pub(crate) fn of(
        place: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        own_key: Option<&str>,
    ) -> PyResult<Self> {
        let key = key.map(|key| name("key", key)).transpose()?;
        if let Ok(store) = place.cast::<PyStore>() {
            let key = key.or_else(|| own_key.map(str::to_owned));
            let key = key.ok_or_else(|| PyTypeError::new_err("missing `key`: a store has many entries"))?;
            return Ok(Self::Entry(store.get().core().clone(), key));
        }
        if key.is_some() {
            return Err(PyTypeError::new_err("unexpected `key`: only an entry of a `Store` has one"));
        }
        match place.extract() {
            Ok(path) => Ok(Self::File(path)),
            Err(_) => Err(wrong_type("path", "a path or a `Store`", place)),
        }
    }

    /// The same for a toolkit and its sessions: without a path it is an entry of the toolkit's store, by default that of `own_key`.
    pub(crate) fn of_toolkit(
        toolkit: &Bound<'_, PyToolkit>,
        place: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        own_key: Option<&str>,
    ) -> PyResult<Self> {
        if let Some(place) = place {
            return Self::of(place, key, own_key);
        }
        let Some(store) = toolkit.get().store(toolkit.py()) else {
            return Err(PyTypeError::new_err(
                "missing `path`: expected a path or a `Store`, as the toolkit has no store",
            ));
        };
        Self::of(store.bind(toolkit.py()), key, own_key)
    }

    /// Saves the state of an object. An entry must have the expected version, by default the one that the object has seen last; the
    /// awaitable gives the new one. A file has no version.
    pub(crate) fn save<S: SavedState>(
        self,
        owner: &Bound<'_, S>,
        state: &Value,
        expected: Option<u64>,
    ) -> PyResult<Option<PyStoreCall>> {
        match self {
            Self::File(path) => {
                owner.py().detach(|| S::write_file(&path, state))?;
                Ok(None)
            }
            Self::Entry(store, key) => {
                let expected = Some(expected.unwrap_or_else(|| owner.get().versions().get(&store, &key)));
                let value = S::FORMAT.seal(&shown(&store, &key), state)?;
                let put = Put { space: S::FORMAT.name.to_owned(), key: key.clone(), value, expected };
                let handle = store.clone();
                let finish = move |py: Python<'_>, owner: Option<&Bound<'_, PyAny>>, version: u64| {
                    if let Some(owner) = owner.and_then(|owner| owner.cast::<S>().ok()) {
                        owner.get().versions().set(&store, &key, version);
                    }
                    Ok(version.into_pyobject(py)?.into_any().unbind())
                };
                Ok(Some(PyStoreCall::new(&handle, put, Some(owner.clone().into_any().unbind()), finish)))
            }
        }
    }

    /// Loads a state of the class `S`, and returns the result of `restore`, which is called with the owner: for an entry, an
    /// awaitable of it.
    pub(crate) fn load<'py, S: SavedState, O: PyTypeCheck>(
        self,
        owner: &Bound<'py, O>,
        restore: impl FnOnce(&Bound<'_, O>, LoadedState) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = owner.py();
        match self {
            Self::File(path) => {
                let value = py.detach(|| S::read_file(&path))?;
                let restored = restore(owner, LoadedState { value, place: path, entry: None })?;
                Ok(restored.into_bound(py))
            }
            Self::Entry(store, key) => {
                let (name, handle) = (S::FORMAT.name, store.clone());
                let get = Get { space: name.to_owned(), key: key.clone() };
                let finish = move |py: Python<'_>, owner: Option<&Bound<'_, PyAny>>, entry: Option<Entry>| {
                    let missing = || Error::MissingEntry { store: store.url(), what: name, key: key.clone() };
                    let Entry { value, version } = entry.ok_or_else(missing)?;
                    let place = shown(&store, &key);
                    let value = S::FORMAT.open(&place, &value)?.value;
                    match owner {
                        Some(owner) => {
                            restore(owner.cast()?, LoadedState { value, place, entry: Some((store, key, version)) })
                        }
                        None => Ok(py.None()),
                    }
                };
                let call = PyStoreCall::new(&handle, get, Some(owner.clone().into_any().unbind()), finish);
                Ok(Bound::new(py, call)?.into_any())
            }
        }
    }
}

/// The name of an entry in messages.
fn shown(store: &Store, key: &str) -> PathBuf {
    format!("{}#{key}", store.url()).into()
}

/// A state that was loaded.
pub(crate) struct LoadedState {
    pub(crate) value: Value,
    /// The name of the place in messages.
    pub(crate) place: PathBuf,
    /// The entry of a store with its version.
    entry: Option<(Store, String, u64)>,
}

impl LoadedState {
    /// The version of the entry; a file has none.
    pub(crate) fn version(&self) -> Option<u64> {
        self.entry.as_ref().map(|(_, _, version)| *version)
    }

    /// Notes that an object has this version.
    pub(crate) fn seen_by(&self, object: &impl SavedState) {
        if let Some((store, key, version)) = &self.entry {
            object.versions().set(store, key, *version);
        }
    }
}

/// Reads the version that a save must find.
pub(crate) fn expected_version(version: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let read = |version: &Bound<'_, PyAny>| {
        let number = version.cast::<PyInt>().ok().and_then(|number| number.extract().ok());
        number.ok_or_else(|| {
            PyTypeError::new_err(format!("version must be an integer from 0, not {}", class_name(version)))
        })
    };
    version.map(read).transpose()
}
