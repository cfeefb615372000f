//! Calls as JSON: the Hermes format, and the parsing of JSON that the other formats share.

use memchr::{memchr2, memchr3};
use serde_json::{Map, Value};

use super::super::declared_types::FindParameters;
use super::super::tag::{After, TagMatch, closing_tag, opening_tag, text_after};
use super::{BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, Start, StartKind, place_within};
use crate::call::repair::{self, ParsedArguments};
use crate::call::{CallError, Repair, RepairKind, ToolCall};
use crate::json::parse;
use crate::provider;

const OUTER: &str = "tool_call";

/// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen write it.
#[derive(Debug)]
pub(super) struct Hermes;

impl CallSyntax for Hermes {
    fn name(&self) -> &'static str {
        "hermes"
    }

    fn usage(&self) -> &'static str {
        "Write a call as <tool_call>{\"name\": \"TOOL\", \"arguments\": {\"KEY\": VALUE}}</tool_call>, in valid JSON."
    }

    fn opens(&self, start: Start<'_>) -> Opening {
        const WHY: &str = "a <tool_call> with JSON in it";
        if start.kind != StartKind::Tag {
            return Opening::No;
        }
        match opening_tag(start.rest, OUTER) {
            TagMatch::No => Opening::No,
            TagMatch::Unsure => Opening::Unsure,
            TagMatch::Yes(length) => match text_after(&start.rest[length..]) {
                After::Nothing => Opening::Unsure,
                After::Text(rest) if rest.starts_with(['{', '[', '`']) => Opening::Yes(WHY),
                // Tags are a call in the wrong format; with prose after it the tag is only mentioned.
                After::Text(rest) if start.is_certain && rest.starts_with('<') => Opening::Yes(WHY),
                After::Text(_) => Opening::No,
            },
        }
    }

    fn end_finder(&self, block: &str) -> Box<dyn EndFinder> {
        Box::new(JsonEnd::new(outer_tag(block), OUTER))
    }

    fn read(&self, block: &CallBlock<'_>, _: Option<&FindParameters<'_>>) -> BlockReading {
        let start = outer_tag(block.text);
        let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
        let inner = &block.text[start..end];
        if !inner.contains(char::is_alphanumeric) {
            return BlockReading::Prose;
        }
        BlockReading::Calls(note_missing_closing_tag(calls(self, block, start, inner), block, OUTER))
    }

    fn cut_off(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let block = CallBlock { text: without_partial_tag(block.text, OUTER), ..*block };
        if is_complete(&block.text[outer_tag(block.text)..]) {
            return self.read(&block, find);
        }
        BlockReading::Calls(vec![block.truncated(self)])
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        first_name(&block[outer_tag(block)..])
    }

    fn as_dyn(&self) -> &dyn CallSyntax {
        self
    }
}

/// The length of the opening tag.
fn outer_tag(block: &str) -> usize {
    if let TagMatch::Yes(length) = opening_tag(block, OUTER) { length } else { 0 }
}

/// True if a text is one complete JSON object or list, so that only a closing tag can be missing behind it.
pub(super) fn is_complete(text: &str) -> bool {
    let text = text.trim();
    text.ends_with(['}', ']']) && parse::parse(text).is_ok()
}

/// The text without the start of a closing tag at its end.
pub(super) fn without_partial_tag<'t>(text: &'t str, name: &str) -> &'t str {
    match text.rfind('<') {
        Some(at) if format!("</{name}>").starts_with(&text[at..]) => &text[..at],
        _ => text,
    }
}

const INCOMPLETE: &str = "it was not run, because the JSON is not complete";

/// Keys beside the name of a call that are not its arguments.
const OTHER_KEYS: [&str; 6] = ["name", "id", "type", "call_id", "tool_call_id", "toolUseId"];

/// The keys for arguments.
const ARGUMENT_KEYS: [&str; 5] = ["arguments", "parameters", "args", "params", "input"];

/// Parses a call, or a list of them, from a part of a block.
pub(super) fn calls(syntax: &dyn CallSyntax, block: &CallBlock<'_>, start: usize, text: &str) -> Vec<ToolCall> {
    match parse::parse(text.trim()) {
        Ok((Value::Array(items), has_duplicates)) => {
            items.iter().map(|item| read_call(syntax, block, start, item, has_duplicates)).collect()
        }
        Ok((value, has_duplicates)) => vec![read_call(syntax, block, start, &value, has_duplicates)],
        Err(_) => vec![match parse_object(syntax, block, first_name(text), start, text) {
            Ok(mut parsed) => {
                let value = Value::Object(std::mem::take(&mut parsed.arguments));
                let mut call = read_call(syntax, block, start, &value, parsed.has_duplicate_keys);
                call.repairs.splice(0..0, parsed.repairs);
                call
            }
            Err(call) => *call,
        }],
    }
}

/// Parses the arguments of a call from a part of a block.
pub(super) fn arguments(
    syntax: &dyn CallSyntax,
    block: &CallBlock<'_>,
    name: &str,
    start: usize,
    text: &str,
) -> ToolCall {
    match parse_object(syntax, block, name, start, text) {
        Ok(parsed) => {
            let call = ToolCall {
                repairs: parsed.repairs,
                has_duplicate_keys: parsed.has_duplicate_keys,
                ..ToolCall::new(name, parsed.arguments)
            };
            block.call(syntax, call)
        }
        Err(call) => *call,
    }
}

/// Parses the object of a text; a truncated one is an unreadable call.
fn parse_object(
    syntax: &dyn CallSyntax,
    block: &CallBlock<'_>,
    name: &str,
    start: usize,
    text: &str,
) -> Result<ParsedArguments, Box<ToolCall>> {
    match repair::read(text) {
        Ok(parsed) if parsed.is_truncated => {
            let call = block.unreadable(syntax, name, INCOMPLETE, start);
            Err(Box::new(ToolCall { is_truncated: true, ..call }))
        }
        Ok(parsed) => Ok(parsed),
        Err(error) => Err(Box::new(refused(syntax, block, name, start, error))),
    }
}

fn refused(syntax: &dyn CallSyntax, block: &CallBlock<'_>, name: &str, start: usize, error: CallError) -> ToolCall {
    let mut call = block.unreadable(syntax, name, error.what, start);
    if let (Some(own), Some(within)) = (&mut call.error, error.at) {
        own.at = Some(place_within(block.place_of(start), within));
    }
    call
}

fn read_call(
    syntax: &dyn CallSyntax,
    block: &CallBlock<'_>,
    start: usize,
    value: &Value,
    has_duplicates: bool,
) -> ToolCall {
    if let Some(call) = name_without_arguments(value) {
        return block.unreadable(syntax, call, "the arguments do not stand in \"arguments\"", start);
    }
    if let Some((call, stray)) = key_beside_arguments(value) {
        return block.unreadable(syntax, call, beside_arguments(stray), start);
    }
    match provider::read(value, None) {
        Ok(call) if call.is_truncated => {
            ToolCall { is_truncated: true, ..block.unreadable(syntax, &call.name, INCOMPLETE, start) }
        }
        Ok(ToolCall { error: Some(error), name, .. }) => refused(syntax, block, &name, start, error),
        Ok(call) => {
            let has_duplicate_keys = call.has_duplicate_keys || has_duplicates;
            block.call(syntax, ToolCall { has_duplicate_keys, ..call })
        }
        Err(error) => {
            let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
            refused(syntax, block, name, start, error)
        }
    }
}

/// The name of a call whose arguments are not under one of the keys for them.
fn name_without_arguments(value: &Value) -> Option<&str> {
    let entries = value.as_object()?;
    let name = entries.get("name")?.as_str()?;
    let has_others = entries.keys().any(|key| !OTHER_KEYS.contains(&key.as_str()));
    (has_others && !has_arguments(entries)).then_some(name)
}

/// The name of a call and a key beside its arguments, which may have been meant as one of them. The items of providers have keys of
/// their own.
pub(in crate::text) fn key_beside_arguments(value: &Value) -> Option<(&str, &str)> {
    let entries = value.as_object()?;
    if let Some(inner) = ["function", "function_call", "functionCall"].iter().find_map(|key| entries.get(*key)) {
        return key_beside_arguments(inner);
    }
    let name = entries.get("name")?.as_str().filter(|_| has_arguments(entries))?;
    let kind = entries.get("type").and_then(Value::as_str).unwrap_or_default();
    if provider::CallType::of(kind) != provider::CallType::Plain {
        return None;
    }
    let is_known = |key: &&String| OTHER_KEYS.contains(&key.as_str()) || ARGUMENT_KEYS.contains(&key.as_str());
    entries.keys().find(|key| !is_known(key)).map(|key| (name, key.as_str()))
}

/// The problem of a key beside the arguments.
pub(in crate::text) fn beside_arguments(key: &str) -> String {
    format!("`{key}` stands beside the arguments and not among them")
}

fn has_arguments(entries: &Map<String, Value>) -> bool {
    ARGUMENT_KEYS.iter().any(|word| entries.contains_key(*word))
}

/// The name at the start of the object in a text, if it is complete.
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

/// The name of the call in a text, if that is only a name with arguments.
pub(super) fn name_of_call(text: &str) -> Option<String> {
    let value = match parse::parse(text.trim()) {
        Ok((value, _)) => value,
        Err(_) => Value::Object(repair::read(text).ok().filter(|parsed| !parsed.is_truncated)?.arguments),
    };
    let value = if let Value::Array(items) = &value { items.first()? } else { &value };
    let entries = value.as_object().filter(|entries| has_arguments(entries))?;
    let is_other = |key: &String| !OTHER_KEYS.contains(&key.as_str()) && !ARGUMENT_KEYS.contains(&key.as_str());
    let name = entries.get("name")?.as_str()?;
    (!entries.keys().any(is_other)).then(|| name.to_owned())
}

/// Lists a missing closing tag among the repairs.
pub(super) fn note_missing_closing_tag(mut calls: Vec<ToolCall>, block: &CallBlock<'_>, name: &str) -> Vec<ToolCall> {
    for call in calls.iter_mut().filter(|call| !block.is_closed && call.error.is_none()) {
        call.repairs.push(Repair::new(RepairKind::Tag, format!("the closing tag of <{name}> was missing")));
    }
    calls
}

/// The search for a closing tag outside of JSON strings.
#[derive(Debug)]
pub(super) struct JsonEnd {
    pub(super) at: usize,
    name: &'static str,
    is_in_string: bool,
    /// The end of the first closing tag inside a string: the right one if the string is never closed.
    in_string: Option<usize>,
}

impl JsonEnd {
    pub(super) fn new(at: usize, name: &'static str) -> Self {
        Self { at, name, is_in_string: false, in_string: None }
    }
}

impl EndFinder for JsonEnd {
    fn advance(&mut self, block: &str, _: bool) -> BlockEnd {
        let bytes = block.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            let found = if self.is_in_string { memchr3(b'"', b'\\', b'<', rest) } else { memchr2(b'"', b'<', rest) };
            let Some(length) = found else {
                self.at = bytes.len();
                return BlockEnd::Pending;
            };
            self.at += length;
            match bytes[self.at] {
                b'"' => self.is_in_string = !self.is_in_string,
                b'\\' => {
                    // The escaped character must have arrived.
                    let Some(next) = block[self.at + 1..].chars().next() else { return BlockEnd::Pending };
                    self.at += next.len_utf8();
                }
                _ => match closing_tag(&block[self.at..], self.name) {
                    TagMatch::Unsure => return BlockEnd::Pending,
                    TagMatch::Yes(length) if self.is_in_string => {
                        self.in_string.get_or_insert(self.at + length);
                    }
                    TagMatch::Yes(length) => return BlockEnd::After { length: self.at + length, is_closed: true },
                    TagMatch::No if self.is_in_string => {}
                    TagMatch::No => match opening_tag(&block[self.at..], self.name) {
                        TagMatch::Unsure => return BlockEnd::Pending,
                        TagMatch::Yes(_) => return BlockEnd::After { length: self.at, is_closed: false },
                        TagMatch::No => {}
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
