//! A call that was read from text before its tool was known, read again as the tool declares its values.

use pyo3::prelude::*;

use super::PyToolCall;
use crate::bindings::text::finding;
use crate::call::ToolCall;
use crate::text::{Format, parse};

/// The same call with its values as the tools declare them. One that was made by hand, or says something else than its
/// text, stays as it is.
pub(crate) fn declared<'py>(
    call: &Bound<'py, PyToolCall>,
    tools: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyToolCall>> {
    let Some(tools) = tools else { return Ok(call.clone()) };
    match read_again(&call.get().call, tools)? {
        Some(again) if again != call.get().call => Bound::new(call.py(), PyToolCall { call: again }),
        _ => Ok(call.clone()),
    }
}

fn read_again(call: &ToolCall, tools: &Bound<'_, PyAny>) -> PyResult<Option<ToolCall>> {
    let format = Format::parse(&call.format).filter(|format| has_no_types(*format));
    let (Some(format), Some(raw), None) = (format, call.raw.as_deref(), &call.error) else { return Ok(None) };
    let guessed = parse(raw, format, None);
    let is_same = |guess: &ToolCall| guess.name == call.name && guess.arguments == call.arguments;
    let Some(index) = guessed.iter().position(is_same) else { return Ok(None) };
    let declared = finding(Some(tools), |find| parse(raw, format, find))?;
    if declared.len() != guessed.len() {
        return Ok(None);
    }
    Ok(declared.into_iter().nth(index).map(|again| ToolCall {
        id: call.id.clone(),
        is_truncated: again.is_truncated || call.is_truncated,
        has_duplicate_keys: again.has_duplicate_keys || call.has_duplicate_keys,
        ..again
    }))
}

/// Whether the values of a format are only text, so that somebody has to know what they are.
const fn has_no_types(format: Format) -> bool {
    matches!(format, Format::Xml | Format::Function | Format::Invoke | Format::React)
}
