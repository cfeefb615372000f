//! The audit sink of a toolkit: a file, a store, a function, or an object with `write`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::store::PyStore;
use crate::policy::{AuditLog, AuditRecord, Durability, Sink};

/// The destination of audit records.
pub(crate) enum AuditSink {
    /// A file that is appended to durably, with the path as it was set.
    File(Arc<AuditLog>, Py<PyAny>),
    /// A store, as it was set.
    Store(Py<PyStore>),
    /// A function that is called with a dictionary.
    Function(Py<PyAny>),
    /// An object whose `write` is called with a line.
    Writer(Py<PyAny>),
}

impl AuditSink {
    /// The sink for a path, a function or a writer.
    pub(crate) fn of(sink: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = sink.py();
        if let Ok(path) = sink.extract::<PathBuf>() {
            let log = py.detach(|| AuditLog::open(&path, Durability::Synced))?;
            return Ok(Self::File(Arc::new(log), sink.clone().unbind()));
        }
        if let Ok(store) = sink.cast::<PyStore>() {
            return Ok(Self::Store(store.clone().unbind()));
        }
        if sink.getattr_opt(intern!(py, "write"))?.is_some_and(|write| write.is_callable()) {
            return Ok(Self::Writer(sink.clone().unbind()));
        }
        if sink.is_callable() {
            return Ok(Self::Function(sink.clone().unbind()));
        }
        let kind = sink.get_type().qualname()?;
        Err(PyTypeError::new_err(format!(
            "audit must be a path, a `Store`, a function or an object with `write`, not {kind}"
        )))
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::File(log, given) => Self::File(log.clone(), given.clone_ref(py)),
            Self::Store(store) => Self::Store(store.clone_ref(py)),
            Self::Function(function) => Self::Function(function.clone_ref(py)),
            Self::Writer(writer) => Self::Writer(writer.clone_ref(py)),
        }
    }

    /// The object as it was set.
    pub(crate) fn given(&self) -> &Py<PyAny> {
        match self {
            Self::Store(store) => store.as_any(),
            Self::File(_, given) | Self::Function(given) | Self::Writer(given) => given,
        }
    }

    /// Records a decision. After an error the call must not run.
    pub(crate) fn record(&self, py: Python<'_>, record: &AuditRecord<'_>) -> PyResult<()> {
        match self {
            Self::File(log, _) => Ok(py.detach(|| log.append(record))?),
            Self::Store(store) => {
                let store = store.get().core();
                Ok(py.detach(|| store.record(record))?)
            }
            Self::Function(function) => {
                function.call1(py, (json::to_python(py, &record.to_value())?,))?;
                Ok(())
            }
            Self::Writer(writer) => {
                writer.call_method1(py, intern!(py, "write"), (format!("{}\n", record.to_line()),))?;
                match writer.bind(py).getattr_opt(intern!(py, "flush"))? {
                    Some(flush) => flush.call0().map(drop),
                    None => Ok(()),
                }
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.given())
    }
}
