//! The admission of calls, and the tools that were admitted last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::PyToolkit;
use crate::bindings::call::python::interpreter::GilCell;
use crate::bindings::tool::PyTool;
use crate::call::{ErrorMode, Reply};
use crate::registry::{Denial, View};

/// The number of tools that are remembered.
const REMEMBERED: usize = 8;

/// The tools that were admitted last, each with the object that is its name. A program that calls a tool again mostly has the
/// same object as its name, and is spared the lock of the registry and the hash of the name.
pub(super) struct RecentlyAdmitted {
    /// The revision of the registry, which changes with everything that decides about an admission.
    revision: Arc<AtomicU64>,
    tools: GilCell<RecentTools>,
}

#[derive(Default)]
struct RecentTools {
    /// The revision at which they were admitted.
    revision: u64,
    places: [Option<(Py<PyString>, Py<PyTool>)>; REMEMBERED],
}

impl RecentlyAdmitted {
    pub(super) fn new(revision: Arc<AtomicU64>) -> Self {
        Self { revision, tools: GilCell::default() }
    }

    #[inline]
    fn find<'py>(&self, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyTool>> {
        let (py, revision) = (name.py(), self.revision.load(Ordering::Relaxed));
        self.tools.with(py, |tools| {
            let (known, tool) = tools.places[place_of(name)].as_ref()?;
            (known.is(name) && tools.revision == revision).then(|| tool.bind(py).clone())
        })
    }

    fn remember(&self, name: &Bound<'_, PyString>, tool: &Bound<'_, PyTool>, revision: u64) {
        let entry = (name.clone().unbind(), tool.clone().unbind());
        let forgotten = self.tools.with(name.py(), |tools| {
            let others = if tools.revision == revision { None } else { Some(std::mem::take(&mut tools.places)) };
            tools.revision = revision;
            (tools.places[place_of(name)].replace(entry), others)
        });
        drop(forgotten);
    }

    /// Lets go of all tools, one of which may be about to be removed.
    pub(super) fn forget(&self, py: Python<'_>) {
        let tools = self.tools.with(py, std::mem::take);
        drop(tools);
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let tools = |tools: &RecentTools| tools.places.iter().flatten().try_for_each(|(_, tool)| visit.call(tool));
        self.tools.visit(visit, tools).unwrap_or(Ok(()))
    }
}

/// The place of a tool, by the address of its name.
fn place_of(name: &Bound<'_, PyString>) -> usize {
    (name.as_ptr() as usize >> 5) % REMEMBERED
}

impl PyToolkit {
    /// Finds the tool of a call, if it was admitted before under the same object as its name, and nothing has changed since.
    #[inline]
    pub(crate) fn recently_admitted<'py>(&self, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyTool>> {
        self.recent.find(name)
    }

    /// Finds the tool of a call, if one of its groups is active, and remembers it.
    pub(crate) fn admit_named<'py>(
        &self,
        name: &Bound<'py, PyString>,
        text: &str,
    ) -> Result<Bound<'py, PyTool>, Reply> {
        // Read before the search: a change meanwhile is seen next time.
        let revision = self.recent.revision.load(Ordering::Relaxed);
        let tool = self.admit(name.py(), text)?;
        self.recent.remember(name, &tool, revision);
        Ok(tool)
    }

    /// Finds the tool of a call, if one of its groups is active.
    pub(crate) fn admit<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Reply> {
        let denial = match self.registry().admit(name, None) {
            Ok(tool) => return Ok(tool.body.bind(py).clone()),
            Err(denial) => denial,
        };
        Err(self.refusal(name, &denial, None))
    }

    /// Finds the tool of a call through a view.
    pub(crate) fn admit_in<'py>(&self, py: Python<'py>, name: &str, view: &View) -> Result<Bound<'py, PyTool>, Reply> {
        let denial = match self.registry().admit(name, Some(view)) {
            Ok(tool) => return Ok(tool.body.bind(py).clone()),
            Err(denial) => denial,
        };
        Err(self.refusal(name, &denial, Some(view)))
    }

    /// The reply to a call that is not admitted, with the name that was probably meant. AgentScope's texts are kept to the
    /// letter.
    #[cold]
    fn refusal(&self, name: &str, denial: &Denial, view: Option<&View>) -> Reply {
        let reply = Reply::refusing(name, denial);
        if self.is_compatible() { reply } else { reply.suggesting(self.registry().similar(name, view)) }
    }

    /// True if the toolkit behaves as AgentScope's, which is silent about most mistakes.
    pub(crate) fn is_compatible(&self) -> bool {
        self.behaviour().errors == ErrorMode::Compat
    }
}
