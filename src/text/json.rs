//! Calls and arguments that are written as JSON, and the end of a block that holds it.

use memchr::{memchr2, memchr3};
use serde_json::{Map, Value};

use super::opening::{Tag, closing_tag, tag};
use super::{Block, Ending, Found, TextFormat, shifted};
use crate::call::{CallError, Repair, RepairKind, ToolCall, repair, wire};
use crate::json::parse;

const CUT: &str = "it was not run, because the JSON is not complete";

/// What may stand beside the name of a call without being its arguments.
const BESIDES: [&str; 5] = ["name", "id", "type", "call_id", "tool_call_id"];

/// The words for arguments.
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "params", "input"];

/// Reads a call, or a list of them, from a part of a block.
pub(super) fn calls(format: &dyn TextFormat, block: &Block<'_>, start: usize, text: &str) -> Vec<ToolCall> {
    match parse::parse(text.trim()) {
        Ok((Value::Array(items), is_double)) => {
            items.iter().map(|item| whole(format, block, start, item, is_double)).collect()
        }
        Ok((value, is_double)) => vec![whole(format, block, start, &value, is_double)],
        Err(_) => vec![match mended(format, block, first_name(text), start, text) {
            Ok(mut reading) => {
                let value = Value::Object(std::mem::take(&mut reading.arguments));
                let mut call = whole(format, block, start, &value, reading.has_duplicate_keys);
                call.repairs.splice(0..0, reading.repairs);
                call
            }
            Err(call) => *call,
        }],
    }
}

/// Reads the arguments of a call from a part of a block.
pub(super) fn arguments(format: &dyn TextFormat, block: &Block<'_>, name: &str, start: usize, text: &str) -> ToolCall {
    match mended(format, block, name, start, text) {
        Ok(reading) => {
            let call = ToolCall {
                repairs: reading.repairs,
                has_duplicate_keys: reading.has_duplicate_keys,
                ..ToolCall::new(name, reading.arguments)
            };
            block.call(format, call)
        }
        Err(call) => *call,
    }
}

/// The object of a text, which is whole.
fn mended(
    format: &dyn TextFormat,
    block: &Block<'_>,
    name: &str,
    start: usize,
    text: &str,
) -> Result<repair::Reading, Box<ToolCall>> {
    match repair::read(text) {
        Ok(reading) if reading.is_truncated => {
            let call = block.unreadable(format, name, CUT, start);
            Err(Box::new(ToolCall { is_truncated: true, ..call }))
        }
        Ok(reading) => Ok(reading),
        Err(error) => Err(Box::new(refused(format, block, name, start, error))),
    }
}

fn refused(format: &dyn TextFormat, block: &Block<'_>, name: &str, start: usize, error: CallError) -> ToolCall {
    let mut call = block.unreadable(format, name, error.what, start);
    if let (Some(own), Some(within)) = (&mut call.error, error.at) {
        own.at = Some(shifted(block.place_of(start), within));
    }
    call
}

fn whole(format: &dyn TextFormat, block: &Block<'_>, start: usize, value: &Value, is_double: bool) -> ToolCall {
    if let Some(call) = loses_arguments(value) {
        return block.unreadable(format, call, "the arguments do not stand in \"arguments\"", start);
    }
    match wire::read(value, None) {
        Ok(call) if call.is_truncated => {
            ToolCall { is_truncated: true, ..block.unreadable(format, &call.name, CUT, start) }
        }
        Ok(ToolCall { error: Some(error), name, .. }) => refused(format, block, &name, start, error),
        Ok(call) => {
            let has_duplicate_keys = call.has_duplicate_keys || is_double;
            block.call(format, ToolCall { has_duplicate_keys, ..call })
        }
        Err(error) => {
            let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
            refused(format, block, name, start, error)
        }
    }
}

/// The name of a call that has something, but not under a word for arguments.
fn loses_arguments(value: &Value) -> Option<&str> {
    let entries = value.as_object()?;
    let name = entries.get("name")?.as_str()?;
    let has_others = entries.keys().any(|key| !BESIDES.contains(&key.as_str()));
    (has_others && !has_arguments(entries)).then_some(name)
}

fn has_arguments(entries: &Map<String, Value>) -> bool {
    ARGUMENTS.iter().any(|word| entries.contains_key(*word))
}

/// The name that the object of a text begins with, if it is there as a whole.
pub(super) fn first_name(text: &str) -> &str {
    let start = text.trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, '[' | '{' | '`'));
    let rest = start.strip_prefix("\"name\"").or_else(|| start.strip_prefix("'name'"));
    let value = rest.and_then(|rest| rest.trim_start().strip_prefix(':')).map(str::trim_start);
    let Some((quote @ ('"' | '\''), rest)) = value.and_then(|value| Some((value.chars().next()?, value.get(1..)?)))
    else {
        return "";
    };
    rest.split_once(quote).map_or("", |(name, _)| if name.contains('\\') { "" } else { name })
}

/// The name of the call that a text is, if it is nothing but a name with arguments.
pub(super) fn name_of_call(text: &str) -> Option<String> {
    let value = match parse::parse(text.trim()) {
        Ok((value, _)) => value,
        Err(_) => Value::Object(repair::read(text).ok().filter(|reading| !reading.is_truncated)?.arguments),
    };
    let value = if let Value::Array(items) = &value { items.first()? } else { &value };
    let entries = value.as_object().filter(|entries| has_arguments(entries))?;
    let is_other = |key: &String| !BESIDES.contains(&key.as_str()) && !ARGUMENTS.contains(&key.as_str());
    let name = entries.get("name")?.as_str()?;
    (!entries.keys().any(is_other)).then(|| name.to_owned())
}

/// Says that the closing tag was missing, if it was.
pub(super) fn closed(mut calls: Vec<ToolCall>, block: &Block<'_>, name: &str) -> Vec<ToolCall> {
    for call in calls.iter_mut().filter(|call| !block.is_closed && call.error.is_none()) {
        call.repairs.push(Repair::new(RepairKind::Tag, format!("the closing tag of <{name}> was missing")));
    }
    calls
}

/// Looks for a closing tag that does not stand in a string.
#[derive(Debug)]
pub(super) struct JsonEnd {
    pub(super) at: usize,
    name: &'static str,
    is_in_string: bool,
    /// The first closing tag that stands in a string: the right one, if the string is never closed.
    in_string: Option<usize>,
}

impl JsonEnd {
    pub(super) fn new(at: usize, name: &'static str) -> Self {
        Self { at, name, is_in_string: false, in_string: None }
    }
}

impl Ending for JsonEnd {
    fn advance(&mut self, block: &str, _: bool) -> Found {
        let bytes = block.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            let found = if self.is_in_string { memchr3(b'"', b'\\', b'<', rest) } else { memchr2(b'"', b'<', rest) };
            let Some(length) = found else {
                self.at = bytes.len();
                return Found::More;
            };
            self.at += length;
            match bytes[self.at] {
                b'"' => self.is_in_string = !self.is_in_string,
                b'\\' => {
                    // What it escapes must have come; whole letters are not looked into.
                    let Some(next) = block[self.at + 1..].chars().next() else { return Found::More };
                    self.at += next.len_utf8();
                }
                _ => match closing_tag(&block[self.at..], self.name) {
                    Tag::Unsure => return Found::More,
                    Tag::Yes(length) if self.is_in_string => {
                        self.in_string.get_or_insert(self.at + length);
                    }
                    Tag::Yes(length) => return Found::End { length: self.at + length, is_closed: true },
                    Tag::No if self.is_in_string => {}
                    Tag::No => match tag(&block[self.at..], self.name) {
                        Tag::Unsure => return Found::More,
                        Tag::Yes(_) => return Found::End { length: self.at, is_closed: false },
                        Tag::No => {}
                    },
                },
            }
            self.at += 1;
        }
    }

    fn done(&self) -> usize {
        self.at
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
    }

    fn second_best(&self) -> Option<usize> {
        self.in_string
    }
}
