//! `Action:` and `Action Input:`, as agents in the style of `ReAct` write it.

use memchr::{memchr, memchr3};
use serde_json::{Map, Value};

use super::declared::{Declared, converted};
use super::json;
use super::limits::WINDOW;
use super::parameters::typed;
use super::{At, Block, Ending, Find, Found, Opening, Reading, Spot, TextFormat};
use crate::call::{Repair, RepairKind, ToolCall};

const ACTION: &str = "Action:";
const INPUT: &str = "Action Input:";

/// What begins the line after an input.
const NEXT: [&str; 5] = ["Observation:", "Thought:", "Action:", "Final Answer:", "Question:"];

/// A name in one line, the input behind it.
#[derive(Debug)]
pub(super) struct React;

impl TextFormat for React {
    fn word(&self) -> &'static str {
        "react"
    }

    fn how(&self) -> &'static str {
        "Write a call in two lines, Action: TOOL and Action Input: {\"KEY\": VALUE}, in valid JSON."
    }

    fn reads_lines(&self) -> bool {
        true
    }

    fn answer(&self) -> Option<&'static str> {
        Some(NEXT[0])
    }

    fn tell_tale(&self) -> &'static str {
        "a line Action: and a line Action Input:"
    }

    fn opens(&self, at: At<'_>) -> Opening {
        if at.spot != Spot::Line {
            return Opening::No;
        }
        let rest = &at.rest[..super::boundary(at.rest, WINDOW)];
        match input(rest) {
            Input::At(_) => Opening::Yes(self.tell_tale()),
            Input::Unsure if rest.len() < WINDOW => Opening::Unsure,
            _ => Opening::No,
        }
    }

    fn ending(&self, block: &str) -> Box<dyn Ending> {
        let at = if let Input::At(at) = input(block) { at } else { 0 };
        Box::new(InputEnd { at, kind: Kind::Unknown, line: at, is_inside: true })
    }

    fn read(&self, block: &Block<'_>, find: Option<&Find<'_>>) -> Reading {
        let Input::At(start) = input(block.text) else { return Reading::Prose };
        let name = name(block.text);
        let written = block.text[start..].trim();
        let call = if written.is_empty() {
            block.call(self, ToolCall::new(name, Map::new()))
        } else if written.starts_with(['{', '`']) {
            json::arguments(self, block, name, start, &block.text[start..])
        } else {
            self.plain(block, name, written, start, find)
        };
        Reading::Calls(vec![call])
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        name(block)
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}

impl React {
    /// An input that is no object is the one parameter that a tool has.
    fn plain(&self, block: &Block<'_>, name: &str, text: &str, start: usize, find: Option<&Find<'_>>) -> ToolCall {
        let document = find.and_then(|find| find(name));
        let declared = document.as_deref().map(Declared::root);
        let Some((document, declared, key)) =
            document.as_ref().zip(declared).and_then(|(document, all)| Some((document, all, all.only()?)))
        else {
            return block.unreadable(self, name, "the input is no JSON object", start);
        };
        let value = match serde_json::from_str(text) {
            Ok(Value::String(text)) => typed(&text, declared.entry(key)),
            Ok(value @ (Value::Number(_) | Value::Array(_)))
                if !declared.entry(key).is_some_and(|own| own.types().is_text()) =>
            {
                value
            }
            _ => typed(text, declared.entry(key)),
        };
        let arguments = Map::from_iter([(key.to_owned(), value)]);
        let repair =
            Repair::new(RepairKind::Name, format!("the input was taken for {key}, the only parameter")).at(key);
        let call = ToolCall { arguments: converted(arguments, document), ..ToolCall::new(name, Map::new()) };
        block.call(self, ToolCall { repairs: vec![repair], ..call })
    }
}

/// Where the input of an action begins.
enum Input {
    No,
    Unsure,
    At(usize),
}

fn input(text: &str) -> Input {
    if !text.starts_with(ACTION) {
        return if ACTION.starts_with(text) { Input::Unsure } else { Input::No };
    }
    let Some(line) = memchr(b'\n', text.as_bytes()) else { return Input::Unsure };
    if name(text).is_empty() {
        return Input::No;
    }
    let rest = text[line..].trim_start();
    if rest.starts_with(INPUT) {
        return Input::At(text.len() - rest.len() + INPUT.len());
    }
    if INPUT.starts_with(rest) { Input::Unsure } else { Input::No }
}

/// The name behind `Action:`.
fn name(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.get(ACTION.len()..).unwrap_or_default().trim().trim_matches(['`', '*', '"', '\'']).trim()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    /// Text, up to the line that begins with what follows an input.
    Text,
    /// An object, up to its last bracket.
    Object {
        depth: usize,
        is_in_string: bool,
        in_fence: bool,
    },
    /// The mark of a fence that closes.
    AfterObject,
}

/// Looks for the end of an input.
#[derive(Debug)]
struct InputEnd {
    at: usize,
    kind: Kind,
    /// Where the line begins.
    line: usize,
    /// Whether this line goes on with the input, whatever its letters.
    is_inside: bool,
}

impl InputEnd {
    /// Sees what the input is; `false` if more has to come.
    fn begin(&mut self, block: &str) -> bool {
        let rest = &block[self.at..];
        let trimmed = rest.trim_start();
        if trimmed.starts_with('{') {
            self.at += rest.len() - trimmed.len();
            self.kind = Kind::Object { depth: 0, is_in_string: false, in_fence: false };
            return true;
        }
        if trimmed.starts_with("```") {
            return match memchr(b'\n', trimmed.as_bytes()) {
                None if trimmed.len() < WINDOW => false,
                None => {
                    self.kind = Kind::Text;
                    true
                }
                Some(line) => match trimmed[line..].trim_start() {
                    "" if trimmed.len() < WINDOW => false,
                    body if body.starts_with('{') => {
                        self.at = block.len() - body.len();
                        self.kind = Kind::Object { depth: 0, is_in_string: false, in_fence: true };
                        true
                    }
                    _ => {
                        self.kind = Kind::Text;
                        true
                    }
                },
            };
        }
        let is_partial = trimmed.is_empty() || "```".starts_with(trimmed);
        if is_partial && rest.len() < WINDOW {
            return false;
        }
        self.kind = Kind::Text;
        true
    }

    /// Follows an object; `true` at its end.
    fn object(&mut self, block: &str, mut depth: usize, mut is_in_string: bool, in_fence: bool) -> bool {
        let bytes = block.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            let found = if is_in_string { memchr::memchr2(b'"', b'\\', rest) } else { memchr3(b'"', b'{', b'}', rest) };
            self.kind = Kind::Object { depth, is_in_string, in_fence };
            let Some(length) = found else {
                self.at = bytes.len();
                return false;
            };
            self.at += length;
            match bytes[self.at] {
                b'"' => is_in_string = !is_in_string,
                b'\\' => {
                    let Some(next) = block[self.at + 1..].chars().next() else { return false };
                    self.at += next.len_utf8();
                }
                b'{' => depth += 1,
                _ => depth -= 1,
            }
            self.at += 1;
            if depth == 0 {
                self.kind = Kind::AfterObject;
                return true;
            }
        }
    }

    /// Follows text, line by line.
    fn text(&mut self, block: &str, is_last: bool) -> Found {
        loop {
            let rest = &block[self.line..];
            let is_partial = |word: &&str| word.starts_with(rest) && !is_last;
            if !self.is_inside {
                if NEXT.iter().any(|word| rest.starts_with(word)) {
                    return Found::End { length: self.line, is_closed: true };
                }
                if NEXT.iter().any(is_partial) {
                    return Found::More;
                }
                self.is_inside = true;
            }
            self.at = self.at.max(self.line);
            let Some(length) = memchr(b'\n', &block.as_bytes()[self.at..]) else {
                self.at = block.len();
                return if is_last { Found::End { length: block.len(), is_closed: true } } else { Found::More };
            };
            self.at += length + 1;
            self.line = self.at;
            self.is_inside = false;
        }
    }
}

impl Ending for InputEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> Found {
        if self.kind == Kind::Unknown && !self.begin(block) {
            return if is_last && block[self.at..].trim().is_empty() {
                Found::End { length: block.len(), is_closed: true }
            } else {
                Found::More
            };
        }
        match self.kind {
            Kind::Unknown | Kind::Text => self.text(block, is_last),
            Kind::Object { depth, is_in_string, in_fence } => {
                if !self.object(block, depth, is_in_string, in_fence) {
                    return Found::More;
                }
                if in_fence { self.advance(block, is_last) } else { Found::End { length: self.at, is_closed: true } }
            }
            Kind::AfterObject => {
                let rest = &block[self.at..];
                let trimmed = rest.trim_start();
                if trimmed.starts_with("```") {
                    return Found::End { length: block.len() - trimmed.len() + "```".len(), is_closed: true };
                }
                if "```".starts_with(trimmed) && rest.len() < WINDOW && !is_last {
                    return Found::More;
                }
                Found::End { length: self.at, is_closed: true }
            }
        }
    }

    fn done(&self) -> usize {
        // A line is looked at from its beginning until it is known to be no end.
        if self.kind == Kind::Text && !self.is_inside { self.line } else { self.at }
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
        self.line = self.line.saturating_sub(bytes);
    }
}
