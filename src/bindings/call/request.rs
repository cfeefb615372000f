//! What a request says about itself before it is read in earnest, for the span that tells of it.

use std::borrow::Cow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use super::state::State;
use crate::bindings::tool_call::PyToolCall;
use crate::trace::ToolSpan;

/// What a request says about itself before it is read in earnest.
pub(super) struct Request {
    name: Option<String>,
    id: Option<String>,
}

impl Request {
    /// Looks at a call that has not started.
    pub(super) fn of(py: Python<'_>, state: &State) -> Self {
        let text = |object: Option<Bound<'_, PyAny>>| {
            let text = object?.cast_into::<PyString>().ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        if state.single {
            return Self { name: text(state.call.bound(py)), id: None };
        }
        let entry = |key| block(py, state).and_then(|block| block.get_item(key).ok().flatten());
        Self { name: text(entry(intern!(py, "name"))), id: text(entry(intern!(py, "id"))) }
    }

    /// The name of the tool and the id of the call, as far as the request has them.
    pub(super) fn into_parts(self) -> (Option<String>, Option<String>) {
        (self.name, self.id)
    }

    /// The span that tells of it, with what the model was told about the tool.
    pub(super) fn described(&self, py: Python<'_>, state: &State) -> ToolSpan<'_> {
        let description = self.name.as_deref().and_then(|name| {
            if state.toolkit.get().is_null() {
                return state.tool_called_by_itself(py)?.get().schema.description();
            }
            // SAFETY: the slot is filled.
            unsafe { state.toolkit(py) }.get().description(name)
        });
        ToolSpan::new(self.name.as_deref(), self.id.as_deref(), description.map(Cow::Owned))
    }

    /// What the model sent. Presets are no part of it.
    pub(super) fn arguments<'py>(py: Python<'py>, state: &State) -> Option<Bound<'py, PyAny>> {
        if !state.single {
            return block(py, state)?.get_item(intern!(py, "input")).ok()?;
        }
        let arguments = PyDict::new(py);
        if let (Some(names), Some(values)) = (state.last.bound(py), state.pending.bound(py)) {
            for (name, value) in names.try_iter().ok()?.zip(values.try_iter().ok()?) {
                arguments.set_item(name.ok()?, value.ok()?).ok()?;
            }
        }
        Some(arguments.into_any())
    }
}

/// The request as a dict. One that only behaves like a dict is read once, here, and is a dict from then on; one in the
/// format of a provider is read too, and is a call from then on.
fn block<'py>(py: Python<'py>, state: &State) -> Option<Bound<'py, PyDict>> {
    let request = state.request_for_layers(py).ok()?;
    if let Ok(call) = request.cast::<PyToolCall>() {
        let block = call.get().to_block(py).ok()?;
        if call.get().call.name.is_empty() {
            block.del_item(intern!(py, "name")).ok()?;
        }
        return Some(block);
    }
    let request = match request.cast_into::<PyDict>() {
        Ok(block) => return Some(block),
        Err(error) => error.into_inner(),
    };
    let block = PyDict::new(py);
    // What is wrong with it is told when it is read in earnest.
    block.update(request.cast::<PyMapping>().ok()?).ok()?;
    state.call.set(block.clone().into_any().into_ptr());
    Some(block)
}
