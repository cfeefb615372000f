//! The `ReAct` format: `Action:` and `Action Input:`, one to a line.

use memchr::{memchr, memchr3};
use serde_json::{Map, Value};

use super::super::LOOKAHEAD;
use super::super::declared_types::{DeclaredType, FindParameters, converted};
use super::values::typed;
use super::{BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, Start, StartKind, boundary, json};
use crate::call::{Repair, RepairKind, ToolCall, repair};

const ACTION: &str = "Action:";
const INPUT: &str = "Action Input:";

/// The starts of the line after an input.
const NEXT_LINES: [&str; 5] = ["Observation:", "Thought:", "Action:", "Final Answer:", "Question:"];

/// A name in one line and the input in the next.
#[derive(Debug)]
pub(super) struct React;

impl CallSyntax for React {
    fn name(&self) -> &'static str {
        "react"
    }

    fn usage(&self) -> &'static str {
        "Write a call in two lines, Action: TOOL and Action Input: {\"KEY\": VALUE}, in valid JSON."
    }

    fn result_prefix(&self) -> Option<&'static str> {
        Some(NEXT_LINES[0])
    }

    fn evidence(&self) -> &'static str {
        "a line Action: and a line Action Input:"
    }

    fn opens(&self, start: Start<'_>) -> Opening {
        if start.kind != StartKind::Line {
            return Opening::No;
        }
        let rest = &start.rest[..boundary(start.rest, LOOKAHEAD)];
        match input_start(rest) {
            InputStart::At(_) => Opening::Yes(self.evidence()),
            InputStart::Unsure if rest.len() < LOOKAHEAD => Opening::Unsure,
            _ => Opening::No,
        }
    }

    fn end_finder(&self, block: &str) -> Box<dyn EndFinder> {
        let at = if let InputStart::At(at) = input_start(block) { at } else { 0 };
        Box::new(InputEnd { at, kind: InputKind::Unknown, line: at, is_inside: true })
    }

    fn read(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let InputStart::At(start) = input_start(block.text) else { return BlockReading::Prose };
        let name = name(block.text);
        let written = block.text[start..].trim();
        let call = if !block.is_closed && (written.is_empty() || is_open_string(written)) {
            block.truncated(self)
        } else if written.is_empty() {
            block.call(self, ToolCall::new(name, Map::new()))
        } else if written.starts_with(['{', '`']) {
            json::arguments(self, block, name, start, &block.text[start..])
        } else {
            self.plain(block, name, written, start, find)
        };
        BlockReading::Calls(vec![call])
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        name(block)
    }

    fn as_dyn(&self) -> &dyn CallSyntax {
        self
    }
}

impl React {
    /// Uses an input that is not an object as the only parameter of the tool.
    fn plain(
        &self,
        block: &CallBlock<'_>,
        name: &str,
        text: &str,
        start: usize,
        find: Option<&FindParameters<'_>>,
    ) -> ToolCall {
        let document = find.and_then(|find| find(name));
        let declared = document.as_deref().map(DeclaredType::root);
        let Some((document, declared, key)) =
            document.as_ref().zip(declared).and_then(|(document, all)| Some((document, all, all.only()?)))
        else {
            return block.unreadable(self, name, "the input is not a JSON object", start);
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

/// True for the start of a JSON string without its end.
fn is_open_string(text: &str) -> bool {
    let (mut is_open, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        is_open ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    is_open && text.starts_with('"')
}

/// The start of the input of an action.
enum InputStart {
    No,
    Unsure,
    At(usize),
}

fn input_start(text: &str) -> InputStart {
    if !text.starts_with(ACTION) {
        return if ACTION.starts_with(text) { InputStart::Unsure } else { InputStart::No };
    }
    let Some(line) = memchr(b'\n', text.as_bytes()) else { return InputStart::Unsure };
    if name(text).is_empty() {
        return InputStart::No;
    }
    let rest = text[line..].trim_start();
    if rest.starts_with(INPUT) {
        return InputStart::At(text.len() - rest.len() + INPUT.len());
    }
    if INPUT.starts_with(rest) { InputStart::Unsure } else { InputStart::No }
}

/// The name after `Action:`.
fn name(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.get(ACTION.len()..).unwrap_or_default().trim().trim_matches(['`', '*', '"', '\'']).trim()
}

/// The kind of an input, which decides where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputKind {
    Unknown,
    /// Text, up to one of `NEXT_LINES`.
    Text,
    /// An object, up to its last brace.
    Object {
        depth: usize,
        is_in_string: bool,
        in_fence: bool,
    },
    /// The rest of an object's last line: the closing mark of a fence, prose, or more of the input.
    AfterObject {
        in_fence: bool,
    },
}

/// The search for the end of an input.
#[derive(Debug)]
struct InputEnd {
    at: usize,
    kind: InputKind,
    /// The start of the line.
    line: usize,
    /// True if this line is known to belong to the input.
    is_inside: bool,
}

impl InputEnd {
    /// Determines the kind of the input; `false` if more text is needed.
    fn begin(&mut self, block: &str) -> bool {
        let rest = &block[self.at..];
        let trimmed = rest.trim_start();
        if trimmed.starts_with('{') {
            self.at += rest.len() - trimmed.len();
            self.kind = InputKind::Object { depth: 0, is_in_string: false, in_fence: false };
            return true;
        }
        if trimmed.starts_with("```") {
            return match memchr(b'\n', trimmed.as_bytes()) {
                None if trimmed.len() < LOOKAHEAD => false,
                None => {
                    self.kind = InputKind::Text;
                    true
                }
                Some(line) => match trimmed[line..].trim_start() {
                    "" if trimmed.len() < LOOKAHEAD => false,
                    body if body.starts_with('{') => {
                        self.at = block.len() - body.len();
                        self.kind = InputKind::Object { depth: 0, is_in_string: false, in_fence: true };
                        true
                    }
                    _ => {
                        self.kind = InputKind::Text;
                        true
                    }
                },
            };
        }
        let is_partial = trimmed.is_empty() || "```".starts_with(trimmed);
        if is_partial && rest.len() < LOOKAHEAD {
            return false;
        }
        self.kind = InputKind::Text;
        true
    }

    /// Searches an object; `true` at its end.
    fn object(&mut self, block: &str, mut depth: usize, mut is_in_string: bool, in_fence: bool) -> bool {
        let bytes = block.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            let found = if is_in_string { memchr::memchr2(b'"', b'\\', rest) } else { memchr3(b'"', b'{', b'}', rest) };
            self.kind = InputKind::Object { depth, is_in_string, in_fence };
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
                self.kind = InputKind::AfterObject { in_fence };
                self.line = self.at;
                return true;
            }
        }
    }

    /// Decides about the text behind an object. What may be more of the arguments belongs to the input, which is refused then.
    fn after_object(&mut self, block: &str, in_fence: bool, is_last: bool) -> BlockEnd {
        let rest = &block[self.at..];
        let trimmed = rest.trim_start();
        if in_fence && trimmed.starts_with("```") {
            return BlockEnd::After { length: block.len() - trimmed.len() + "```".len(), is_closed: true };
        }
        let is_short = rest.len() < LOOKAHEAD && !is_last;
        if is_short && (trimmed.is_empty() || in_fence && "```".starts_with(trimmed)) {
            return BlockEnd::Pending;
        }
        let newline = memchr(b'\n', &block.as_bytes()[self.line..]).map(|length| self.line + length);
        if newline.is_none() && !is_last && !trimmed.is_empty() {
            self.line = block.len();
            return BlockEnd::Pending;
        }
        let same_line = &block[self.at..newline.unwrap_or(block.len())];
        let is_prose = same_line.trim().is_empty() || repair::is_prose(same_line);
        if is_prose && !trimmed.starts_with([',', '"', '}', ']', ':']) {
            return BlockEnd::After { length: self.at, is_closed: true };
        }
        self.kind = InputKind::Text;
        self.line = self.at;
        self.is_inside = true;
        self.text(block, is_last)
    }

    /// The end of an input that has no mark of its end: the model may have been about to write more.
    const fn end_of_text(block: &str) -> BlockEnd {
        BlockEnd::After { length: block.len(), is_closed: false }
    }

    /// Searches text, line by line.
    fn text(&mut self, block: &str, is_last: bool) -> BlockEnd {
        loop {
            let rest = &block[self.line..];
            let is_partial = |word: &&str| word.starts_with(rest) && !is_last;
            if !self.is_inside {
                if NEXT_LINES.iter().any(|word| rest.starts_with(word)) {
                    return BlockEnd::After { length: self.line, is_closed: true };
                }
                if NEXT_LINES.iter().any(is_partial) {
                    return BlockEnd::Pending;
                }
                self.is_inside = true;
            }
            self.at = self.at.max(self.line);
            let Some(length) = memchr(b'\n', &block.as_bytes()[self.at..]) else {
                self.at = block.len();
                return if is_last { Self::end_of_text(block) } else { BlockEnd::Pending };
            };
            self.at += length + 1;
            self.line = self.at;
            self.is_inside = false;
        }
    }
}

impl EndFinder for InputEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> BlockEnd {
        if self.kind == InputKind::Unknown && !self.begin(block) {
            return if is_last && block[self.at..].trim().is_empty() {
                Self::end_of_text(block)
            } else {
                BlockEnd::Pending
            };
        }
        match self.kind {
            InputKind::Unknown | InputKind::Text => self.text(block, is_last),
            InputKind::Object { depth, is_in_string, in_fence } => {
                if !self.object(block, depth, is_in_string, in_fence) {
                    return BlockEnd::Pending;
                }
                self.after_object(block, in_fence, is_last)
            }
            InputKind::AfterObject { in_fence } => self.after_object(block, in_fence, is_last),
        }
    }

    fn done(&self) -> usize {
        // A line is needed from its start until it is known to belong to the input.
        if self.kind == InputKind::Text && !self.is_inside { self.line } else { self.at }
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
        self.line = self.line.saturating_sub(bytes);
    }
}
