//! Arguments that were mended: whether the tool may run with them, and how the response tells of it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::input::Input;
use super::rare::Rare;
use super::state::{State, Step};
use crate::bindings::response::PyToolResponse;
use crate::bindings::tool_call::repairs_to_python;
use crate::call::Answer;
use crate::call::repair::{RepairMode, explanation};

impl State {
    /// Why the tool does not run with these arguments, if they are not certainly what was meant.
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    #[inline]
    pub(super) unsafe fn doubt(&self, input: &impl Input) -> Option<Answer> {
        let rare = self.rare.get()?;
        // SAFETY: as for the caller.
        unsafe { self.doubt_in(rare, input) }
    }

    #[cold]
    unsafe fn doubt_in(&self, rare: &Rare, input: &impl Input) -> Option<Answer> {
        // SAFETY: as for `doubt`.
        let tool = unsafe { self.tool() };
        let mended = rare.mended.borrow();
        if mended.repairs.is_empty() && !mended.is_truncated && !mended.has_duplicate_keys {
            return None;
        }
        let doubt = if tool.is_read_only() { None } else { mended.doubt() };
        if let Some(doubt) = doubt {
            let reason = format!("{doubt} The tool '{}' has not run.", tool.name);
            return Some(Answer::BadCall { reason });
        }
        let repairs = mended.repairs.clone();
        drop(mended);
        match tool.plan.repair() {
            RepairMode::On => None,
            // Reading text has seen to it that nothing is mended then; a call may have been read by somebody else.
            RepairMode::Off if repairs.iter().all(|repair| repair.what == crate::call::RepairKind::Duplicate) => None,
            RepairMode::Explain | RepairMode::Off => {
                let explained = Python::attach(|py| tool.plan.explained(&input.to_dict(py)?, repairs.clone()));
                // Without the arguments it can still be told what has to be mended.
                let (text, more) = explained.unwrap_or_else(|_| (explanation(&tool.name, &repairs, None), Vec::new()));
                rare.mended.borrow_mut().repairs.extend(more);
                Some(Answer::InvalidArguments { text })
            }
        }
    }

    /// A step with what was mended told in its response: the first one of a call, and every one of a call that only gives
    /// its last.
    ///
    /// # Safety
    /// The thread is attached; what the step has is owned.
    #[inline]
    pub(super) unsafe fn with_repairs(&self, rare: &Rare, step: Step) -> Step {
        match step {
            // SAFETY: as for the caller.
            Step::Chunk(response) if !rare.mended.borrow().repairs.is_empty() => unsafe {
                Python::attach(|py| {
                    let response = Bound::from_owned_ptr(py, response);
                    let repairs = if self.single {
                        rare.mended.borrow().repairs.clone()
                    } else {
                        std::mem::take(&mut rare.mended.borrow_mut().repairs)
                    };
                    let told =
                        repairs_to_python(py, &repairs).and_then(|repairs| with_repairs(&response, repairs.as_any()));
                    Step::Chunk(
                        told.unwrap_or_else(|error| {
                            // The response is worth more than the list.
                            error.write_unraisable(py, Some(&response));
                            response
                        })
                        .into_ptr(),
                    )
                })
            },
            step => step,
        }
    }
}

/// A copy of a response, which may be the tool's to use again, with a list in its metadata.
fn with_repairs<'py>(response: &Bound<'py, PyAny>, repairs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = response.py();
    if !response.is_instance_of::<PyToolResponse>() {
        return Ok(response.clone());
    }
    let copy = py.import(intern!(py, "copy"))?.call_method1(intern!(py, "copy"), (response,))?;
    let before = response.getattr(intern!(py, "metadata"))?;
    let metadata = if let Ok(metadata) = before.cast::<PyDict>() {
        metadata.copy()?
    } else {
        let metadata = PyDict::new(py);
        if !before.is_none() {
            metadata.set_item(intern!(py, "value"), before)?;
        }
        metadata
    };
    metadata.set_item(intern!(py, "repairs"), repairs)?;
    copy.setattr(intern!(py, "metadata"), metadata)?;
    Ok(copy)
}
