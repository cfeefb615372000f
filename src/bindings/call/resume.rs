//! Calls that wait for somebody's answer as plain data, and the calls that go on with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::approval::{Reply, answered_by, checked_edit};
use super::case::Case;
use super::freeze::Frozen;
use super::python::{attached, object};
use super::request::block;
use super::state::{Early, Origin, State, Step};
use crate::Error;
use crate::bindings::json;
use crate::bindings::note::Decided;
use crate::bindings::policy::value_of;
use crate::bindings::response;
use crate::bindings::tool::PyTool;
use crate::bindings::value::error_text;
use crate::call::Answer;
use crate::policy::{ApprovalScope, Choice, Pending, Ruling, Verdict};

/// Nothing has happened.
const FRESH: u8 = 0;
/// The pending call is used up, and the tool may run.
const CLAIMED: u8 = 1;
/// The tool has run, or is running.
const USED: u8 = 2;

/// A pending call and the answer to it.
pub(super) struct Resumption {
    pending: Pending,
    choice: Choice,
    edited: Option<Value>,
    by: Option<String>,
    reason: Option<String>,
    stage: AtomicU8,
}

impl Resumption {
    pub(super) fn is_to_claim(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == FRESH
    }

    /// Whether this is what lets a tool run.
    pub(super) fn is_for(&self, tool: &str) -> bool {
        self.stage.load(Ordering::Relaxed) == CLAIMED && self.pending.tool == tool
    }

    /// The edited arguments as Python objects.
    fn edited<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let edited = self.edited.as_ref().map(|edited| json::to_python(py, edited)).transpose()?;
        Ok(edited.and_then(|edited| edited.cast_into::<PyDict>().ok()))
    }

    /// Refuses edited arguments that do not fit, while the pending call can still be answered otherwise.
    fn check_edit(&self, py: Python<'_>, tool: &PyTool) -> PyResult<()> {
        let Some(edited) = self.edited(py)? else { return Ok(()) };
        let frozen = Frozen::again(py, &tool.plan, self.pending.arguments.clone());
        match checked_edit(tool, &edited, &frozen)? {
            Ok(_) => Ok(()),
            Err(found) => {
                Err(Error::InvalidAnswer { expected: "`arguments` that fit the tool's schema", found }.into())
            }
        }
    }

    fn advance(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The stream that goes on with a pending call. Whether that may be is decided by its first step.
pub(crate) fn resumed<'py>(
    origin: &Bound<'py, PyAny>,
    pending: &Bound<'py, PyAny>,
    answer: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyAny>>,
    by: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = origin.py();
    let pending = Pending::from_value(&read_pending(pending)?)?;
    let module = py.import(intern!(py, "toolcrib._approver"))?;
    let reply = module.call_method1(intern!(py, "reply_to_resume"), (answer, arguments, by))?;
    let Reply { choice, edited, by, reason } = Reply::read(&reply)?;
    let edited = edited.map(|edited| json::from_python(&edited).map(Value::from)).transpose()?;
    let input = json::to_python(py, edited.as_ref().unwrap_or(&pending.arguments))?;
    let request = block(PyString::new(py, &pending.tool).as_any(), &input)?;
    request.set_item(intern!(py, "id"), &pending.id)?;
    let state = State::stream(Origin::of(origin)?, request.into_any());
    let (id, tool) = (pending.id.clone(), Some(pending.tool.clone()));
    let resumption = Resumption { pending, choice, edited, by, reason, stage: AtomicU8::new(FRESH) };
    let caller = state.caller(py);
    state.join(Some(Arc::new(Case { id, tool, caller, resumption: Some(resumption) })));
    object::new(py, state)
}

/// The JSON of what should be a pending call; whatever cannot be read is none.
fn read_pending(pending: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = pending.py();
    value_of(pending, "a pending call").map_err(|cause| {
        if !cause.is_instance_of::<PyException>(py) {
            return cause;
        }
        let (field, expected) = ("$".to_owned(), "the JSON object that a pending response has");
        let found = format!("what cannot be read ({})", error_text(py, &cause));
        let error = PyErr::from(Error::InvalidPending { field, expected, found });
        error.set_cause(py, Some(cause));
        error
    })
}

/// What an approval of a call of a tool is good for.
fn facts<'a>(py: Python<'_>, tool: &'a PyTool, caller: Option<&'a str>) -> ApprovalScope<'a> {
    let presets_hash = tool.presets_hash(py);
    ApprovalScope { tool: &tool.name, schema_hash: tool.schema_hash(), presets_hash, caller, session: None }
}

impl State {
    /// Ends the call with a pending value, with which it can be resumed later.
    pub(super) fn pend<'py>(&self, py: Python<'py>, tool: &PyTool, frozen: &Frozen, verdict: &Verdict) -> Early<'py> {
        let case = self.case(py);
        let made = tool.desk.get().approvals(py).and_then(|approvals| {
            let facts = facts(py, tool, case.caller.as_deref());
            let pending = approvals.get().ask(&case.id, &frozen.sent, facts)?;
            Ok((json::to_python(py, &pending.to_value())?, pending.id))
        });
        let (pending, id) = match made {
            Ok(made) => made,
            Err(error) => return error.into(),
        };
        let decided = Decided { outcome: Ruling::Pending, ..Decided::by_rule(verdict) };
        if let Err(error) = self.note_decision(py, tool, &decided, &frozen.whole) {
            return self.deny_unaudited(py, tool, &error);
        }
        self.tell_request(py, tool, frozen, verdict, Some(&id));
        let answer = Answer::Pending { tool: tool.name.to_string() };
        let metadata = PyDict::new(py);
        let response = metadata
            .set_item(intern!(py, "pending"), pending)
            .and_then(|()| response::answer_with(py, &answer, Some(metadata.into_any())));
        self.finish(py);
        Early::Step(response.map_or_else(Step::Raise, Step::Chunk))
    }

    /// Uses the pending value of a resumed call up before anything runs.
    #[inline]
    pub(super) fn claim_approval<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        match self.cold.get() {
            Some(cold) if cold.is_to_claim() => attached(py, |py| self.claim(py)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn claim<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(case) = self.known_case() else { return Ok(()) };
        let Some(resumption) = case.resumption.as_ref() else { return Ok(()) };
        let tool = self.find_admitted(py, &resumption.pending.tool)?;
        let tool = tool.get();
        let approvals = tool.desk.get().approvals(py)?;
        resumption.check_edit(py, tool)?;
        let facts = facts(py, tool, case.caller.as_deref());
        approvals.get().claim(py, &resumption.pending, &facts)?;
        resumption.advance(FRESH, CLAIMED);
        if resumption.choice.is_yes() { Ok(()) } else { Err(self.decline(py, tool, resumption)) }
    }

    /// The answer was no.
    fn decline<'py>(&self, py: Python<'py>, tool: &PyTool, resumption: &Resumption) -> Early<'py> {
        let frozen = Frozen::again(py, &tool.plan, resumption.pending.arguments.clone());
        let verdict = self.verdict_on(py, tool, &frozen);
        let by = resumption.by.as_deref().unwrap_or("resume");
        let decided = Decided { by: Some(by), ..answered_by(&verdict, resumption.choice) };
        if resumption.choice != Choice::Cancel {
            let reason = resumption.reason.clone().unwrap_or_else(|| "whoever was asked did not agree".to_owned());
            return self.turn_down(py, tool, &frozen.whole, &decided, reason);
        }
        tool.desk.get().grants().cancel_all();
        let desk = tool.desk.clone_ref(py);
        let cancelled = py
            .import(intern!(py, "toolcrib._approver"))
            .and_then(|module| module.call_method1(intern!(py, "cancel_all"), (desk,)));
        if let Err(error) = cancelled {
            error.write_unraisable(py, None);
        }
        self.cancel(py, tool, &frozen, &decided)
    }

    /// The arguments that were approved, whatever middlewares made of the request on its way.
    pub(super) fn decide_resumed<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        case: &Case,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        let Some(resumption) = case.resumption.as_ref().filter(|it| it.advance(CLAIMED, USED)) else {
            return Err(Early::Step(self.end_of_stream(py)));
        };
        let frozen = Frozen::again(py, &tool.plan, resumption.pending.arguments.clone());
        let verdict = self.verdict_on(py, tool, &frozen);
        let by = resumption.by.as_deref().unwrap_or("resume");
        let decided = Decided { by: Some(by), ..answered_by(&verdict, resumption.choice) };
        let edited = resumption.edited(py)?;
        let frozen = self.edited(py, tool, frozen, edited.as_ref(), &decided)?;
        self.permit_approved(py, tool, &frozen, &decided, resumption.choice, &verdict)
    }
}
