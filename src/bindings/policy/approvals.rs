//! `Approvals`: what makes pending calls, and lets each of them be answered once.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::policy::{Approvals, Key};

/// How long an answer counts if nobody says otherwise, in seconds.
const HOUR: f64 = 3600.0;

/// Make pending calls, and let each of them be answered once.
#[pyclass(name = "Approvals", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyApprovals {
    core: RwLock<Arc<Approvals>>,
    life: Duration,
    path: Option<PathBuf>,
}

pub(crate) fn random<const N: usize>() -> PyResult<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| PyOSError::new_err(format!("the system has no random numbers: {error}")))?;
    Ok(bytes)
}

impl PyApprovals {
    /// Approvals that end with the process.
    pub(crate) fn in_memory() -> PyResult<Self> {
        let core = Approvals::in_memory(Key::new(random()?));
        Ok(Self { core: RwLock::new(Arc::new(core)), life: Duration::from_secs_f64(HOUR), path: None })
    }

    /// The approvals of this process: those in memory do not survive a fork.
    pub(crate) fn core(&self) -> PyResult<Arc<Approvals>> {
        let core = self.core.read().unwrap_or_else(PoisonError::into_inner).clone();
        if !core.is_forked() {
            return Ok(core);
        }
        let key = Key::new(random()?);
        let mut core = self.core.write().unwrap_or_else(PoisonError::into_inner);
        if core.is_forked() {
            *core = Arc::new(core.renewed(key));
        }
        Ok(core.clone())
    }

    /// How long an answer counts.
    pub(crate) fn life(&self) -> Duration {
        self.life
    }
}

#[pymethods]
impl PyApprovals {
    #[new]
    #[pyo3(signature = (path=None, ttl=HOUR), text_signature = "(path=None, ttl=3600)")]
    fn new(py: Python<'_>, path: Option<PathBuf>, ttl: f64) -> PyResult<Self> {
        let life = Duration::try_from_secs_f64(ttl).ok().filter(|life| !life.is_zero());
        let life = life.ok_or_else(|| PyValueError::new_err("ttl must be a positive number of seconds"))?;
        let key = Key::new(random()?);
        let core = match &path {
            None => Approvals::in_memory(key),
            Some(path) => py.detach(|| Approvals::open(path, key))?,
        };
        Ok(Self { core: RwLock::new(Arc::new(core)), life, path })
    }

    /// The folder that survives a restart; None if nothing does.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// After how many seconds an answer does not count any more.
    #[getter]
    fn ttl(&self) -> f64 {
        self.life.as_secs_f64()
    }
}
