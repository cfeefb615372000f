//! Calls whose arguments are one tag each with raw text inside: what `<function=…>` and `<invoke name="…">` share.

use memchr::memchr;
use serde_json::{Map, Value};

use super::declared::{Declared, Find, Types, converted};
use super::json::{self, JsonEnd};
use super::number::{guess, strip};
use super::opening::{Tag, closing_tag, tag, tag_with};
use super::token::{attribute, unquoted};
use super::tree::Flaw;
use super::{Block, Ending, Found, TextFormat};
use crate::call::{Repair, RepairKind, ToolCall};

/// How a format of this kind spells its tags.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    /// What the tag of a call is called.
    pub(super) name: &'static str,
    /// What the tag of a call begins with.
    pub(super) call: &'static str,
    /// What is around calls.
    pub(super) wrapper: &'static str,
}

/// What a tag names: behind its equals sign, or in its attribute `name`.
pub(super) fn named(tag: &str) -> Option<&str> {
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

/// The tool's name in the tag that a block begins with.
pub(super) fn name_in(spelling: Spelling, block: &str) -> &str {
    let Tag::Yes(length) = tag_with(block, spelling.call) else { return "" };
    named(&block[..length]).unwrap_or_default()
}

/// Whether a parameter opens.
fn opens_parameter(rest: &str) -> Tag {
    match tag_with(rest, "<parameter=") {
        Tag::No => tag_with(rest, "<parameter "),
        found => found,
    }
}

/// Reads the call of a block.
pub(super) fn read(
    format: &dyn TextFormat,
    spelling: Spelling,
    block: &Block<'_>,
    find: Option<&Find<'_>>,
) -> Vec<ToolCall> {
    let Tag::Yes(start) = tag_with(block.text, spelling.call) else { return Vec::new() };
    let name = named(&block.text[..start]).unwrap_or_default();
    let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
    let inner = &block.text[start..end.max(start)];
    if name.is_empty() {
        return vec![block.unreadable(format, "", "the call has no name", 0)];
    }
    let call = if inner.trim_start().starts_with('{') {
        json::arguments(format, block, name, start, inner)
    } else {
        let document = find.and_then(|find| find(name));
        let mut reader =
            Reader { inner, declared: document.as_deref().map(Declared::root), call: ToolCall::new(name, Map::new()) };
        match reader.arguments() {
            Ok(arguments) => {
                reader.call.arguments = match &document {
                    Some(document) => converted(arguments, document),
                    None => Value::Object(arguments),
                };
                block.call(format, reader.call)
            }
            Err(flaw) => block.unreadable(format, name, flaw.what, start + flaw.at),
        }
    };
    json::closed(vec![call], block, spelling.name)
}

struct Reader<'t, 's> {
    inner: &'t str,
    declared: Option<Declared<'s>>,
    call: ToolCall,
}

/// A parameter's tags.
struct Marks<'t> {
    /// Where parameters open: first byte, first byte of the value, name.
    opens: Vec<(usize, usize, &'t str)>,
    /// Where they close: first byte, first byte after.
    closes: Vec<(usize, usize)>,
}

impl<'t> Marks<'t> {
    fn of(text: &'t str) -> Self {
        let mut marks = Marks { opens: Vec::new(), closes: Vec::new() };
        let mut at = 0;
        while let Some(length) = memchr(b'<', &text.as_bytes()[at..]) {
            at += length;
            let rest = &text[at..];
            if let Tag::Yes(length) = opens_parameter(rest)
                && let Some(name) = named(&rest[..length])
            {
                marks.opens.push((at, at + length, name));
            } else if let Tag::Yes(length) = closing_tag(rest, "parameter") {
                marks.closes.push((at, at + length));
            }
            at += 1;
        }
        marks
    }
}

impl Reader<'_, '_> {
    fn arguments(&mut self) -> Result<Map<String, Value>, Flaw> {
        let marks = Marks::of(self.inner);
        let mut arguments = Map::new();
        let (mut at, mut open, mut close) = (0, 0, 0);
        while let Some((start, value, name)) = marks.opens.get(open).copied() {
            self.no_text(at, start)?;
            close += marks.closes[close..].partition_point(|(place, _)| *place < value);
            let next = marks.opens.get(open + 1).copied();
            let closing = marks.closes.get(close).copied();
            let (end, after) = match (closing, next) {
                (Some((end, _)), Some((next, _, other))) if next < end => {
                    // Either the tag was forgotten, or a value shows how such tags look.
                    match self.declared.map(|declared| declared.names_it(other)) {
                        Some(true) => self.forgotten(name, next),
                        Some(false) => (end, closing.map_or(end, |(_, after)| after)),
                        None => return Err(Flaw::new(format!("the parameter {name} is not closed"), start)),
                    }
                }
                (Some((end, after)), _) => (end, after),
                (None, Some((next, _, _))) => self.forgotten(name, next),
                (None, None) => self.forgotten(name, self.inner.len()),
            };
            let value = self.value(name, &self.inner[value..end]);
            self.call.has_duplicate_keys |= arguments.insert(name.to_owned(), value).is_some();
            at = after;
            open += marks.opens[open..].partition_point(|(place, _, _)| *place < after);
        }
        self.no_text(at, self.inner.len())?;
        Ok(arguments)
    }

    fn forgotten(&mut self, name: &str, end: usize) -> (usize, usize) {
        let repair = Repair::new(RepairKind::Tag, format!("the closing tag of the parameter {name} was missing"));
        self.call.repairs.push(repair.at(name));
        (end, end)
    }

    fn no_text(&self, from: usize, to: usize) -> Result<(), Flaw> {
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

/// The text without the line breaks that only set it off.
fn unwrapped(text: &str) -> &str {
    let inner = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    inner.strip_suffix("\r\n").or_else(|| inner.strip_suffix('\n')).unwrap_or(inner)
}

/// A raw text as what is declared; guessed if nothing is known.
pub(super) fn typed(text: &str, declared: Option<Declared<'_>>) -> Value {
    let stripped = strip(text);
    let types = declared.map_or(Types::ANY, Declared::types);
    let opens = |letter: char, of: Types| stripped.starts_with(letter) && (types.has(of) || types == Types::ANY);
    if (opens('[', Types::ARRAY) || opens('{', Types::OBJECT))
        && let Ok(parsed) = serde_json::from_str(stripped)
    {
        return parsed;
    }
    match declared {
        None => guess(stripped),
        Some(declared) if types.has(Types::STRING) && !declared.is_listed() || types == Types::ANY => Value::from(text),
        Some(_) => Value::from(stripped),
    }
}

/// Looks for the closing tag of a call, where it does not stand in a parameter.
#[derive(Debug)]
pub(super) struct ParametersEnd {
    spelling: Spelling,
    at: usize,
    /// Set once it is known that the arguments are JSON.
    json: Option<JsonEnd>,
    has_begun: bool,
    is_in_parameter: bool,
    /// The first closing tag that stands in a parameter: the right one, if that is never closed.
    in_parameter: Option<usize>,
}

impl ParametersEnd {
    pub(super) fn new(spelling: Spelling, block: &str) -> Self {
        let at = if let Tag::Yes(length) = tag_with(block, spelling.call) { length } else { 0 };
        Self { spelling, at, json: None, has_begun: false, is_in_parameter: false, in_parameter: None }
    }

    /// Looks at a `<`; `None` if more has to come.
    fn look(&mut self, rest: &str) -> Option<Found> {
        let tags = [
            closing_tag(rest, self.spelling.name),
            closing_tag(rest, "parameter"),
            opens_parameter(rest),
            tag_with(rest, self.spelling.call),
            tag(rest, self.spelling.wrapper),
            closing_tag(rest, self.spelling.wrapper),
        ];
        let is_unsure = tags.contains(&Tag::Unsure);
        let at = self.at;
        let end = |length| Found::End { length, is_closed: true };
        match tags {
            [Tag::Yes(length), ..] if self.is_in_parameter => {
                self.in_parameter.get_or_insert(at + length);
            }
            [Tag::Yes(length), ..] => return Some(end(at + length)),
            [_, Tag::Yes(_), ..] => {
                self.is_in_parameter = false;
                self.in_parameter = None;
            }
            [_, _, Tag::Yes(_), ..] => self.is_in_parameter = true,
            [_, _, _, Tag::Yes(_), _, _] | [_, _, _, _, Tag::Yes(_), _] | [_, _, _, _, _, Tag::Yes(_)] => {
                match self.in_parameter {
                    Some(length) => return Some(end(length)),
                    None if self.is_in_parameter => {}
                    None => return Some(Found::End { length: at, is_closed: false }),
                }
            }
            _ if is_unsure => return None,
            _ => {}
        }
        self.at += 1;
        Some(Found::More)
    }
}

impl Ending for ParametersEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> Found {
        if !self.has_begun {
            let blanks = block[self.at..].len() - block[self.at..].trim_start().len();
            self.at += blanks;
            let Some(first) = block.as_bytes().get(self.at) else { return Found::More };
            self.has_begun = true;
            self.json = (*first == b'{').then(|| JsonEnd::new(self.at, self.spelling.name));
        }
        if let Some(json) = &mut self.json {
            return json.advance(block, is_last);
        }
        while let Some(length) = memchr(b'<', &block.as_bytes()[self.at..]) {
            self.at += length;
            match self.look(&block[self.at..]) {
                Some(Found::More) => {}
                Some(found) => return found,
                None => return Found::More,
            }
        }
        self.at = block.len();
        Found::More
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
