//! Calls with one tag for each parameter: `<function=…>` with `<parameter=…>`, as Llama 3 and Qwen3-Coder write it, and
//! `<invoke name="…">` with `<parameter name="…">`.

use memchr::memchr;
use serde_json::{Map, Value};

use super::super::declared_types::{DeclaredType, FindParameters, converted};
use super::super::tag::{TagMatch, closing_tag, opening_tag, tag_starting_with, wrapper};
use super::elements::{Flaw, attribute, unquoted};
use super::json::{self, JsonEnd};
use super::values::typed;
use super::{BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, Start, StartKind};
use crate::call::{Repair, RepairKind, ToolCall};

/// A format of this kind.
#[derive(Debug)]
pub(super) struct Tagged {
    /// The name of the format, which is also the name of a call's tag.
    name: &'static str,
    /// The start of a call's tag.
    call: &'static str,
    /// The name of the wrapper around calls.
    wrapper: &'static str,
    /// The reason why a call begins.
    evidence: &'static str,
    usage: &'static str,
}

pub(super) const FUNCTION: Tagged = Tagged {
    name: "function",
    call: "<function=",
    wrapper: "tool_call",
    evidence: "a tag <function=…>",
    usage: "Write a call as <function=TOOL><parameter=KEY>VALUE</parameter></function>, with every tag closed.",
};

pub(super) const INVOKE: Tagged = Tagged {
    name: "invoke",
    call: "<invoke ",
    wrapper: "function_calls",
    evidence: "a tag <invoke name=…>",
    usage: "Write a call as <invoke name=\"TOOL\"><parameter name=\"KEY\">VALUE</parameter></invoke>, with every tag closed.",
};

impl CallSyntax for Tagged {
    fn name(&self) -> &'static str {
        self.name
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn opens(&self, start: Start<'_>) -> Opening {
        if start.kind != StartKind::Tag {
            return Opening::No;
        }
        match tag_starting_with(start.rest, self.call) {
            TagMatch::Yes(_) => Opening::Yes(self.evidence),
            TagMatch::Unsure => Opening::Unsure,
            TagMatch::No => wrapper(start.rest, self.wrapper, self.call, start.is_certain),
        }
    }

    fn end_finder(&self, block: &str) -> Box<dyn EndFinder> {
        Box::new(TaggedEnd::new(self, block))
    }

    fn read(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let TagMatch::Yes(start) = tag_starting_with(block.text, self.call) else {
            return BlockReading::Calls(Vec::new());
        };
        let name = self.name_in(block.text);
        let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
        let inner = &block.text[start..end.max(start)];
        if name.is_empty() {
            return BlockReading::Calls(vec![block.unreadable(self, "", "the call has no name", 0)]);
        }
        let call = if inner.trim_start().starts_with('{') {
            json::arguments(self, block, name, start, inner)
        } else {
            let document = find.and_then(|find| find(name));
            let declared = document.as_deref().map(DeclaredType::root);
            let mut reader = ParameterReader { inner, declared, call: ToolCall::new(name, Map::new()) };
            match reader.arguments() {
                Ok(arguments) => {
                    reader.call.arguments = match &document {
                        Some(document) => converted(arguments, document),
                        None => Value::Object(arguments),
                    };
                    block.call(self, reader.call)
                }
                Err(flaw) => block.unreadable(self, name, flaw.what, start + flaw.at),
            }
        };
        BlockReading::Calls(json::note_missing_closing_tag(vec![call], block, self.name))
    }

    fn cut_off(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let block = CallBlock { text: json::without_partial_tag(block.text, self.name), ..*block };
        match tag_starting_with(block.text, self.call) {
            // The brackets show that nothing is missing but the closing tag.
            TagMatch::Yes(start) if json::is_complete(&block.text[start..]) => self.read(&block, find),
            _ => BlockReading::Calls(vec![block.truncated(self)]),
        }
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        let TagMatch::Yes(length) = tag_starting_with(block, self.call) else { return "" };
        named(&block[..length]).unwrap_or_default()
    }

    fn as_dyn(&self) -> &dyn CallSyntax {
        self
    }
}

/// The name in a tag: after its equals sign, or in its attribute `name`.
fn named(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix('<')?.strip_suffix('>')?;
    if let Some((before, value)) = inside.split_once('=')
        && !before.contains(char::is_whitespace)
    {
        return Some(unquoted(value.trim()));
    }
    let mut rest = inside.trim_start_matches(|letter: char| !letter.is_whitespace());
    while let Some((key, value, after)) = attribute(rest.trim_start()) {
        if key == "name" {
            return Some(value.trim());
        }
        rest = after;
    }
    None
}

/// Matches the opening tag of a parameter.
fn opens_parameter(rest: &str) -> TagMatch {
    match tag_starting_with(rest, "<parameter=") {
        TagMatch::No => tag_starting_with(rest, "<parameter "),
        found => found,
    }
}

/// The parser of a call's parameters.
struct ParameterReader<'t, 's> {
    inner: &'t str,
    declared: Option<DeclaredType<'s>>,
    call: ToolCall,
}

/// The tags of all parameters.
struct ParameterTags<'t> {
    /// Opening tags: first byte, first byte of the value, name.
    opens: Vec<(usize, usize, &'t str)>,
    /// Closing tags: first byte, first byte after.
    closes: Vec<(usize, usize)>,
}

impl<'t> ParameterTags<'t> {
    fn of(text: &'t str) -> Self {
        let mut tags = ParameterTags { opens: Vec::new(), closes: Vec::new() };
        let mut at = 0;
        while let Some(length) = memchr(b'<', &text.as_bytes()[at..]) {
            at += length;
            let rest = &text[at..];
            if let TagMatch::Yes(length) = opens_parameter(rest)
                && let Some(name) = named(&rest[..length])
            {
                tags.opens.push((at, at + length, name));
            } else if let TagMatch::Yes(length) = closing_tag(rest, "parameter") {
                tags.closes.push((at, at + length));
            }
            at += 1;
        }
        tags
    }
}

impl ParameterReader<'_, '_> {
    fn arguments(&mut self) -> Result<Map<String, Value>, Flaw> {
        let tags = ParameterTags::of(self.inner);
        let mut arguments = Map::new();
        let (mut at, mut open, mut close) = (0, 0, 0);
        while let Some((start, value, name)) = tags.opens.get(open).copied() {
            self.refuse_text(at, start)?;
            close += tags.closes[close..].partition_point(|(place, _)| *place < value);
            let next = tags.opens.get(open + 1).copied();
            let closing = tags.closes.get(close).copied();
            let (end, after) = match (closing, next) {
                (Some((end, _)), Some((next, _, other))) if next < end => {
                    // Either the closing tag is missing, or the value contains such a tag.
                    match self.declared.map(|declared| declared.has_property(other)) {
                        Some(true) => self.note_unclosed(name, next),
                        Some(false) => (end, closing.map_or(end, |(_, after)| after)),
                        None => return Err(Flaw::new(format!("the parameter {name} is not closed"), start)),
                    }
                }
                (Some((end, after)), _) => (end, after),
                (None, Some((next, _, _))) => self.note_unclosed(name, next),
                (None, None) => self.note_unclosed(name, self.inner.len()),
            };
            let value = self.value(name, &self.inner[value..end]);
            self.call.has_duplicate_keys |= arguments.insert(name.to_owned(), value).is_some();
            at = after;
            open += tags.opens[open..].partition_point(|(place, _, _)| *place < after);
        }
        self.refuse_text(at, self.inner.len())?;
        Ok(arguments)
    }

    fn note_unclosed(&mut self, name: &str, end: usize) -> (usize, usize) {
        let repair = Repair::new(RepairKind::Tag, format!("the closing tag of the parameter {name} was missing"));
        self.call.repairs.push(repair.at(name));
        (end, end)
    }

    fn refuse_text(&self, from: usize, to: usize) -> Result<(), Flaw> {
        match self.inner[from..to].find(|letter: char| !letter.is_whitespace()) {
            Some(at) => Err(Flaw::new("there is text outside of the parameters", from + at)),
            None => Ok(()),
        }
    }

    fn value(&self, name: &str, text: &str) -> Value {
        let own = self.declared.map(|declared| declared.entry(name).unwrap_or(declared.nothing()));
        typed(unwrapped(text), own)
    }
}

/// The text without one line break at each end, which only separates it from the tags. A value that begins behind its tag ends before
/// the closing one, and a line break at its end is a part of it.
fn unwrapped(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')) else { return text };
    inner.strip_suffix("\r\n").or_else(|| inner.strip_suffix('\n')).unwrap_or(inner)
}

/// The search for the closing tag of a call, outside of its parameters.
#[derive(Debug)]
struct TaggedEnd {
    name: &'static str,
    call: &'static str,
    wrapper: &'static str,
    at: usize,
    /// Set if the arguments are JSON.
    json: Option<JsonEnd>,
    has_begun: bool,
    is_in_parameter: bool,
    /// The end of the first closing tag inside a parameter: the right one if that is never closed.
    in_parameter: Option<usize>,
}

impl TaggedEnd {
    fn new(format: &Tagged, block: &str) -> Self {
        let Tagged { name, call, wrapper, .. } = *format;
        let at = if let TagMatch::Yes(length) = tag_starting_with(block, call) { length } else { 0 };
        Self { name, call, wrapper, at, json: None, has_begun: false, is_in_parameter: false, in_parameter: None }
    }

    /// Handles a `<`; `None` if more text is needed.
    fn step(&mut self, rest: &str) -> Option<BlockEnd> {
        let tags = [
            closing_tag(rest, self.name),
            closing_tag(rest, "parameter"),
            opens_parameter(rest),
            tag_starting_with(rest, self.call),
            opening_tag(rest, self.wrapper),
            closing_tag(rest, self.wrapper),
        ];
        let is_unsure = tags.contains(&TagMatch::Unsure);
        let at = self.at;
        let end = |length| BlockEnd::After { length, is_closed: true };
        match tags {
            [TagMatch::Yes(length), ..] if self.is_in_parameter => {
                self.in_parameter.get_or_insert(at + length);
            }
            [TagMatch::Yes(length), ..] => return Some(end(at + length)),
            [_, TagMatch::Yes(_), ..] => {
                self.is_in_parameter = false;
                self.in_parameter = None;
            }
            [_, _, TagMatch::Yes(_), ..] => self.is_in_parameter = true,
            [_, _, _, TagMatch::Yes(_), _, _]
            | [_, _, _, _, TagMatch::Yes(_), _]
            | [_, _, _, _, _, TagMatch::Yes(_)] => match self.in_parameter {
                Some(length) => return Some(end(length)),
                None if self.is_in_parameter => {}
                None => return Some(BlockEnd::After { length: at, is_closed: false }),
            },
            _ if is_unsure => return None,
            _ => {}
        }
        self.at += 1;
        Some(BlockEnd::Pending)
    }
}

impl EndFinder for TaggedEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> BlockEnd {
        if !self.has_begun {
            let blanks = block[self.at..].len() - block[self.at..].trim_start().len();
            self.at += blanks;
            let Some(first) = block.as_bytes().get(self.at) else { return BlockEnd::Pending };
            self.has_begun = true;
            self.json = (*first == b'{').then(|| JsonEnd::new(self.at, self.name));
        }
        if let Some(json) = &mut self.json {
            return json.advance(block, is_last);
        }
        while let Some(length) = memchr(b'<', &block.as_bytes()[self.at..]) {
            self.at += length;
            match self.step(&block[self.at..]) {
                Some(BlockEnd::Pending) => {}
                Some(end) => return end,
                None => return BlockEnd::Pending,
            }
        }
        self.at = block.len();
        BlockEnd::Pending
    }

    fn done(&self) -> usize {
        self.json.as_ref().map_or(self.at, |json| json.at)
    }

    fn forget(&mut self, bytes: usize) {
        match &mut self.json {
            Some(json) => json.forget(bytes),
            None => self.at -= bytes,
        }
    }

    fn second_best(&self) -> Option<usize> {
        self.json.as_ref().map_or(self.in_parameter, JsonEnd::second_best)
    }
}
