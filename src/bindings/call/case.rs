//! What all layers of one call share: who it is for, and the name it goes by wherever it is told of.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use pyo3::prelude::*;

use super::request::Peeked;
use super::resume::Resumption;
use super::state::State;

/// How much is told of a name or an id that a model made up, in characters.
const LONGEST_NAME: usize = 256;

/// One call, through all of its layers. It holds no Python objects, so that the layers may share it.
pub(crate) struct Case {
    /// The id that the model gave the call, or one that was made up.
    pub(crate) id: String,
    /// The tool that the request names, if it names one.
    pub(crate) tool: Option<String>,
    /// Who calls.
    pub(crate) caller: Option<Arc<str>>,
    /// The pending call that this one goes on with.
    pub(super) resumption: Option<Resumption>,
}

impl Case {
    /// Looks at a call that has not started.
    fn of(py: Python<'_>, state: &State) -> Self {
        let Peeked { name, id } = Peeked::of(py, state);
        let id = id.filter(|id| !id.is_empty()).map_or_else(made_up_id, cut);
        Self { id, tool: name.map(cut), caller: state.caller(py), resumption: None }
    }
}

impl Case {
    /// Whether an answer that was given before lets a tool run.
    pub(super) fn is_granted(&self, tool: &str) -> bool {
        self.resumption.as_ref().is_some_and(|resumption| resumption.is_for(tool))
    }
}

fn cut(text: String) -> String {
    if text.chars().nth(LONGEST_NAME).is_none() { text } else { text.chars().take(LONGEST_NAME).collect() }
}

/// An id that no other call has. Nothing depends on nobody being able to guess it.
fn made_up_id() -> String {
    let bits = || RandomState::new().hash_one((SystemTime::now(), std::process::id()));
    format!("call_{:016x}{:08x}", bits(), bits() >> 32)
}

impl State {
    /// What is shared by the layers of this call; made when it is first asked for.
    pub(super) fn case(&self, py: Python<'_>) -> Arc<Case> {
        if let Some(case) = self.known_case() {
            return case;
        }
        let case = Arc::new(Case::of(py, self));
        self.cold().case.replace(Some(case.clone()));
        case
    }

    /// The same, if it was asked for before.
    pub(super) fn known_case(&self) -> Option<Arc<Case>> {
        self.cold.get().and_then(|cold| cold.case.borrow().clone())
    }

    /// Makes this stream a layer of a call that began elsewhere.
    pub(super) fn join(&self, case: Option<Arc<Case>>) {
        if case.is_some() {
            self.cold().case.replace(case);
        }
    }
}
