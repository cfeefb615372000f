//! Calls that come as text: the JSON of any format, or one of the ways to write calls in text.

use serde_json::Value;

use super::{UNDERSTOOD, WireFormat, read_all_with, read_with};
use crate::call::repair::{self, MOST_BYTES};
use crate::call::{CallError, ToolCall};
use crate::json::parse;

/// How the calls in a text are found that is no JSON: the text, and the format if somebody said so. `None` if there are none.
pub type TextReader<'a> = &'a dyn Fn(&str, Option<&str>) -> Option<Vec<ToolCall>>;

/// Reads the one call of a text.
///
/// # Errors
/// When there is none, or more than one: what was seen, and what is understood.
pub fn read_text(text: &str, format: Option<&str>, texts: TextReader<'_>) -> Result<ToolCall, CallError> {
    let wire = format.and_then(WireFormat::parse);
    match parsed(text, format, wire, texts)? {
        Parsed::Json(value, mended) => read_with(&value, wire, texts).map(|call| mended.added_to(call)),
        Parsed::Nothing => Err(nothing(text, format.filter(|_| wire.is_none()))),
        Parsed::Calls(mut calls) => match (calls.pop(), calls.len()) {
            (Some(call), 0) => Ok(call),
            (_, others) => Err(CallError::new(
                format!("{} calls were found where one was expected", others + 1),
                "Read them with `ToolCall.read_all`.",
            )),
        },
    }
}

/// Reads all calls of a text; of prose there are none.
///
/// # Errors
/// When there is something like a call in it that cannot be read.
pub fn read_all_text(text: &str, format: Option<&str>, texts: TextReader<'_>) -> Result<Vec<ToolCall>, CallError> {
    let wire = format.and_then(WireFormat::parse);
    match parsed(text, format, wire, texts)? {
        Parsed::Json(value, mended) => {
            Ok(read_all_with(&value, texts)?.into_iter().map(|call| mended.clone().added_to(call)).collect())
        }
        Parsed::Calls(calls) => Ok(calls),
        Parsed::Nothing => Ok(Vec::new()),
    }
}

enum Parsed {
    Json(Value, Box<repair::Reading>),
    Calls(Vec<ToolCall>),
    /// Neither JSON nor a call.
    Nothing,
}

fn parsed(
    text: &str,
    format: Option<&str>,
    wire: Option<WireFormat>,
    texts: TextReader<'_>,
) -> Result<Parsed, CallError> {
    if text.len() > MOST_BYTES {
        return Err(CallError::new(
            format!("the call has {} bytes, and {MOST_BYTES} are the most", text.len()),
            "Send less, in several calls if need be.",
        ));
    }
    let is_text = format.is_some() && wire.is_none();
    if !is_text && let Ok((value @ (Value::Object(_) | Value::Array(_)), has_duplicate_keys)) = parse::parse(text) {
        return Ok(Parsed::Json(value, Box::new(repair::Reading { has_duplicate_keys, ..repair::Reading::default() })));
    }
    if wire.is_none()
        && let Some(calls) = texts(text, format).filter(|calls| !calls.is_empty())
    {
        return Ok(Parsed::Calls(calls));
    }
    if is_text || !text.contains('{') {
        return Ok(Parsed::Nothing);
    }
    let mut reading = repair::read(text)
        .map_err(|error| CallError::new(format!("this is no tool call: {}", error.what), UNDERSTOOD))?;
    let value = Value::Object(std::mem::take(&mut reading.arguments));
    Ok(Parsed::Json(value, Box::new(reading)))
}

/// What is told where one call was expected.
fn nothing(text: &str, format: Option<&str>) -> CallError {
    let what = match format {
        Some(format) => format!("there is no call of the format `{format}` in the text"),
        None if text.trim().is_empty() => "this is no tool call: the text is empty".to_owned(),
        None => "this is no tool call: there is none in the text".to_owned(),
    };
    CallError::new(what, UNDERSTOOD)
}

impl repair::Reading {
    /// A call with what was mended in the text around it.
    fn added_to(self, mut call: ToolCall) -> ToolCall {
        call.repairs.splice(0..0, self.repairs);
        call.is_truncated |= self.is_truncated;
        call.has_duplicate_keys |= self.has_duplicate_keys;
        call.with_duplicates_listed()
    }
}
