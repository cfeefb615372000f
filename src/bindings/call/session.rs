//! Limits and counts of a session: of the calls that run, and of the failures in a row of each tool.

use std::cell::Cell;
use std::sync::Arc;

use pyo3::prelude::*;

use super::cold::Cold;
use super::python::attached;
use super::state::{Early, Phase, State, Step};
use super::task;
use crate::bindings::foreign_response::code_of;
use crate::bindings::response;
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::call::{Code, Reply, failed_too_often};
use crate::registry::{LimitReached, Session};

/// An attempt to call a tool whose failures are counted.
pub(super) struct Attempt {
    session: Arc<Session>,
    tool: Arc<str>,
    /// True if the response delivered last is a failure; none if it says nothing about the tool.
    failed: Cell<Option<bool>>,
}

/// Counts a call that is about to run, unless a limit of its session is reached.
#[inline(always)]
pub(super) fn count_call<'py>(view: &PyToolkitView, tool: &PyTool) -> Result<(), Early<'py>> {
    let Some(session) = view.session() else { return Ok(()) };
    session.count_call().map_err(|limit| Reply::LimitExceeded { tool: tool.name.to_string(), limit }.into())
}

impl State {
    /// Remembers the tool of a call in a session that limits retries.
    #[inline(always)]
    pub(super) fn begin_attempt(&self, view: &PyToolkitView, tool: &PyTool) {
        if let Some(session) = view.session().filter(|session| session.counts_failures()) {
            let attempt = Attempt { session: session.clone(), tool: tool.name.clone(), failed: Cell::new(None) };
            self.cold().attempt.replace(Some(attempt));
        }
    }

    /// Counts the result of an attempt with the last step of its call. The failure after which the tool may not be called
    /// again says so.
    #[cold]
    pub(super) fn count_result<'py>(&self, py: Python<'py>, cold: &Cold, step: Step<'py>) -> Step<'py> {
        if matches!(step, Step::Suspend(_)) {
            return step;
        }
        attached(py, |py| self.count_attempt(py, cold, step))
    }

    fn count_attempt<'py>(&self, py: Python<'py>, cold: &Cold, step: Step<'py>) -> Step<'py> {
        let Some(attempt) = cold.attempt.take() else { return step };
        match &step {
            Step::Chunk(response) => attempt.failed.set(Code::is_failure(code_of(response).as_deref())),
            Step::Raise(error) => {
                let is_cancelled = task::is_cancellation(py, error).unwrap_or(false);
                attempt.failed.set((!is_cancelled).then_some(true));
            }
            Step::Value(_) | Step::Suspend(_) | Step::End => {}
        }
        let is_over =
            matches!(step, Step::End | Step::Raise(_)) || matches!(self.phase.get(), Phase::Done | Phase::Cancelled);
        if !is_over {
            cold.attempt.replace(Some(attempt));
            return step;
        }
        let limit = attempt.failed.get().and_then(|failed| attempt.session.count_result(&attempt.tool, failed));
        match (step, limit) {
            (Step::Chunk(response), Some(LimitReached::Retries(failures))) => {
                let text = failed_too_often(&attempt.tool, failures);
                Step::Chunk(response::with_text(&response, &text).unwrap_or_else(|error| {
                    // The response is worth more than the advice.
                    error.write_unraisable(py, Some(&response));
                    response
                }))
            }
            (step, _) => step,
        }
    }
}
