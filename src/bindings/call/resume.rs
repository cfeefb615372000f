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
use super::python::object;
use super::start::{Refusal, block};
use super::state::{State, Step};
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
    counter: &Bound<'py, PyAny>,
    pending: &Bound<'py, PyAny>,
    answer: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyAny>>,
    by: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = counter.py();
    let pending = Pending::from_value(&read_pending(pending)?)?;
    let module = py.import(intern!(py, "toolcrib._approver"))?;
    let reply = module.call_method1(intern!(py, "reply_to_resume"), (answer, arguments, by))?;
    let Reply { choice, edited, by, reason } = Reply::read(&reply)?;
    let edited = edited.map(|edited| json::from_python(&edited).map(Value::from)).transpose()?;
    let input = json::to_python(py, edited.as_ref().unwrap_or(&pending.arguments))?;
    let request = block(PyString::new(py, &pending.tool).as_any(), &input)?;
    request.set_item(intern!(py, "id"), &pending.id)?;
    let state = State::stream(counter.clone().into_ptr(), request.into_any().into_ptr());
    let (id, tool) = (pending.id.clone(), Some(pending.tool.clone()));
    let resumption = Resumption { pending, choice, edited, by, reason, stage: AtomicU8::new(FRESH) };
    let caller = state.caller(py);
    state.join(Some(Arc::new(Case { id, tool, caller, resumption: Some(resumption) })));
    // SAFETY: the thread is attached; the object is owned or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, object::new(state)) }
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
    /// Ends the call with what it takes to go on later.
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    pub(super) unsafe fn pend(&self, py: Python<'_>, frozen: &Frozen, verdict: &Verdict) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            let tool = self.tool();
            let case = self.case(py);
            let made = tool.desk.get().approvals(py).and_then(|approvals| {
                let facts = facts(py, tool, case.caller.as_deref());
                let pending = approvals.get().ask(&case.id, &frozen.sent, facts)?;
                Ok((json::to_python(py, &pending.to_value())?, pending.id))
            });
            let (pending, id) = match made {
                Ok(made) => made,
                Err(error) => return self.refuse(Refusal::Raise(error)),
            };
            let decided = Decided { outcome: Ruling::Pending, ..Decided::by_rule(verdict) };
            if let Err(error) = self.note_decision(py, &decided, &frozen.whole) {
                return self.unaccounted(py, &error);
            }
            self.tell_request(py, frozen, verdict, Some(&id));
            let answer = Answer::Pending { tool: tool.name.to_string() };
            let metadata = PyDict::new(py);
            let response = metadata
                .set_item(intern!(py, "pending"), pending)
                .and_then(|()| response::answer_with(py, &answer, Some(metadata.into_any())));
            self.finish();
            match response {
                Ok(response) => Step::Chunk(response.into_ptr()),
                Err(error) => self.raise(py, error),
            }
        }
    }

    /// Uses the pending call up before anything runs. None if the call may go on.
    ///
    /// # Safety
    /// The thread is attached; the phase is `Ready`.
    #[cold]
    pub(super) unsafe fn claim(&self) -> Option<Step> {
        // SAFETY: as for the caller; `resumed` has filled `toolkit`.
        Python::attach(|py| unsafe {
            let case = self.known_case()?;
            let resumption = case.resumption.as_ref()?;
            let tool = match self.admitted_tool(py, &resumption.pending.tool) {
                Ok(tool) => tool,
                Err(answer) => return Some(self.refuse(Refusal::Answer(answer))),
            };
            let approvals = match tool.get().desk.get().approvals(py) {
                Ok(approvals) => approvals,
                Err(error) => return Some(self.refuse(Refusal::Raise(error))),
            };
            if let Err(error) = resumption.check_edit(py, tool.get()) {
                return Some(self.refuse(Refusal::Raise(error)));
            }
            let facts = facts(py, tool.get(), case.caller.as_deref());
            if let Err(error) = approvals.get().claim(py, &resumption.pending, &facts) {
                return Some(self.refuse(Refusal::Raise(error)));
            }
            resumption.advance(FRESH, CLAIMED);
            if resumption.choice.is_yes() {
                return None;
            }
            self.tool.set(tool.into_ptr());
            Some(self.decline(py, resumption))
        })
    }

    /// The answer was no.
    unsafe fn decline(&self, py: Python<'_>, resumption: &Resumption) -> Step {
        // SAFETY: as for `pend`.
        unsafe {
            let frozen = Frozen::again(py, &self.tool().plan, resumption.pending.arguments.clone());
            let verdict = self.verdict_on(py, &frozen);
            let by = resumption.by.as_deref().unwrap_or("resume");
            let decided = Decided { by: Some(by), ..answered_by(&verdict, resumption.choice) };
            if resumption.choice != Choice::Cancel {
                let reason = resumption.reason.clone().unwrap_or_else(|| "whoever was asked did not agree".to_owned());
                return self.turn_down(py, &frozen.whole, &decided, reason);
            }
            self.tool().desk.get().grants().cancel_all();
            let desk = self.tool().desk.clone_ref(py);
            let cancelled = py
                .import(intern!(py, "toolcrib._approver"))
                .and_then(|module| module.call_method1(intern!(py, "cancel_all"), (desk,)));
            if let Err(error) = cancelled {
                error.write_unraisable(py, None);
            }
            self.cancel(py, &frozen, &decided)
        }
    }

    /// Runs the tool with what was approved, whatever middlewares made of the request on its way.
    ///
    /// # Safety
    /// As for `pend`.
    pub(super) unsafe fn judge_resumed(&self, py: Python<'_>, case: &Case) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            let Some(resumption) = case.resumption.as_ref().filter(|it| it.advance(CLAIMED, USED)) else {
                return self.end_of_stream();
            };
            let tool = self.tool();
            let frozen = Frozen::again(py, &tool.plan, resumption.pending.arguments.clone());
            let verdict = self.verdict_on(py, &frozen);
            let by = resumption.by.as_deref().unwrap_or("resume");
            let decided = Decided { by: Some(by), ..answered_by(&verdict, resumption.choice) };
            let edited = match resumption.edited(py) {
                Ok(edited) => edited,
                Err(error) => return self.refuse(Refusal::Raise(error)),
            };
            match self.edited(py, frozen, edited.as_ref(), &decided) {
                Ok(frozen) => self.run_approved(py, &frozen, &decided, resumption.choice, &verdict),
                Err(step) => step,
            }
        }
    }
}
