//! Calls in any source: the JSON of a provider, a message with text, or text in one of the text formats.

use serde_json::Value;

use super::{FindParameters, TextFormat, format, parse};
use crate::call::repair::{self, MAX_BYTES, ParsedArguments};
use crate::call::{CallError, ToolCall};
use crate::json::parse;
use crate::provider::{self, SUPPORTED, WireFormat};

/// A format of calls, in JSON or in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFormat {
    /// JSON of a provider.
    Wire(WireFormat),
    /// Text; [`TextFormat::AUTO`] for any text format.
    Text(Option<TextFormat>),
}

impl CallFormat {
    /// The format of this name; `auto` is any text format.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match (WireFormat::parse(name), name) {
            (Some(format), _) => Some(Self::Wire(format)),
            (None, "auto") => Some(Self::Text(TextFormat::AUTO)),
            (None, _) => TextFormat::parse(name).map(|format| Self::Text(Some(format))),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Wire(format) => format.as_str(),
            Self::Text(Some(format)) => format.as_str(),
            Self::Text(None) => "auto",
        }
    }
}

/// Reads the only call in a JSON value, which may be in the text of a message.
///
/// # Errors
/// As for [`provider::read`].
pub fn read_value(
    value: &Value,
    format: Option<CallFormat>,
    find: Option<&FindParameters<'_>>,
) -> Result<ToolCall, CallError> {
    let wire = if let Some(CallFormat::Wire(wire)) = format { Some(wire) } else { None };
    provider::read_with(value, wire, &|text| text_calls(text, format, find))
}

/// Reads all calls in a JSON value, including those in the text of messages that have no others.
///
/// # Errors
/// As for [`provider::read_all`].
pub fn read_all_value(
    value: &Value,
    format: Option<CallFormat>,
    find: Option<&FindParameters<'_>>,
) -> Result<Vec<ToolCall>, CallError> {
    provider::read_all_with(value, &|text| text_calls(text, format, find))
}

/// Reads the only call in a text.
///
/// # Errors
/// If there is no call, or more than one.
pub fn read_text(
    text: &str,
    format: Option<CallFormat>,
    find: Option<&FindParameters<'_>>,
) -> Result<ToolCall, CallError> {
    match parse_source(text, format, find)? {
        Source::Json(value, parsed) => match refused(&value) {
            Some(call) => Ok(call),
            None => read_value(&value, format, find).map(|call| with_outer_repairs(call, *parsed)),
        },
        Source::Calls(calls) => provider::only_call(calls)?.ok_or_else(|| no_call(text, format)),
        Source::Prose => Err(no_call(text, format)),
    }
}

/// Reads all calls in a text; none in prose.
///
/// # Errors
/// If there is something like a call in it that cannot be parsed.
pub fn read_all_text(
    text: &str,
    format: Option<CallFormat>,
    find: Option<&FindParameters<'_>>,
) -> Result<Vec<ToolCall>, CallError> {
    match parse_source(text, format, find)? {
        Source::Json(value, parsed) => {
            let calls = match &value {
                Value::Array(items) if items.iter().any(|item| refused(item).is_some()) => items
                    .iter()
                    .map(|item| refused(item).map_or_else(|| read_value(item, None, find), Ok))
                    .collect::<Result<_, _>>()?,
                _ => refused(&value).map_or_else(|| read_all_value(&value, None, find), |call| Ok(vec![call]))?,
            };
            Ok(calls.into_iter().map(|call| with_outer_repairs(call, (*parsed).clone())).collect())
        }
        Source::Calls(calls) => Ok(calls),
        Source::Prose => Ok(Vec::new()),
    }
}

fn text_calls(text: &str, format: Option<CallFormat>, find: Option<&FindParameters<'_>>) -> Vec<ToolCall> {
    match format {
        None => parse(text, TextFormat::AUTO, find),
        Some(CallFormat::Text(format)) => parse(text, format, find),
        Some(CallFormat::Wire(_)) => Vec::new(),
    }
}

/// The content of a text.
enum Source {
    /// JSON, with the repairs that it needed.
    Json(Value, Box<ParsedArguments>),
    Calls(Vec<ToolCall>),
    Prose,
}

fn parse_source(
    text: &str,
    format: Option<CallFormat>,
    find: Option<&FindParameters<'_>>,
) -> Result<Source, CallError> {
    if text.len() > MAX_BYTES {
        return Err(CallError::new(
            format!("the call has {} bytes, and {MAX_BYTES} are the most", text.len()),
            "Send less, in several calls if need be.",
        ));
    }
    let is_text_format = matches!(format, Some(CallFormat::Text(_)));
    if !is_text_format
        && let Ok((value @ (Value::Object(_) | Value::Array(_)), has_duplicate_keys)) = parse::parse(text)
    {
        let parsed = ParsedArguments { has_duplicate_keys, ..ParsedArguments::default() };
        return Ok(Source::Json(value, Box::new(parsed)));
    }
    let calls = text_calls(text, format, find);
    if !calls.is_empty() {
        return Ok(Source::Calls(calls));
    }
    if is_text_format || !text.contains('{') {
        return Ok(Source::Prose);
    }
    let mut parsed =
        repair::read(text).map_err(|error| CallError::new(format!("not a tool call: {}", error.what), SUPPORTED))?;
    let value = Value::Object(std::mem::take(&mut parsed.arguments));
    Ok(Source::Json(value, Box::new(parsed)))
}

fn no_call(text: &str, format: Option<CallFormat>) -> CallError {
    let what = match format {
        Some(format @ CallFormat::Text(_)) => format!("no call of the format `{}` in the text", format.name()),
        _ if text.trim().is_empty() => "not a tool call: the text is empty".to_owned(),
        _ => "not a tool call: there is none in the text".to_owned(),
    };
    CallError::new(what, SUPPORTED)
}

/// A call that a model wrote with a part of its arguments beside the others, which never runs.
fn refused(value: &Value) -> Option<ToolCall> {
    let (name, key) = format::key_beside_arguments(value)?;
    Some(ToolCall::unreadable(name, CallError::new(format::beside_arguments(key), SUPPORTED)))
}

/// The call with the repairs of the text around it.
fn with_outer_repairs(mut call: ToolCall, parsed: ParsedArguments) -> ToolCall {
    call.repairs.splice(0..0, parsed.repairs);
    call.is_truncated |= parsed.is_truncated;
    call.has_duplicate_keys |= parsed.has_duplicate_keys;
    call.with_duplicates_listed()
}
