//! The fenced format: a JSON object with a name and arguments in a code fence.

use memchr::memchr;

use super::super::LOOKAHEAD;
use super::super::declared_types::FindParameters;
use super::super::tag::{After, text_after};
use super::json::{calls, first_name, is_complete, name_of_call};
use super::{BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, Start, StartKind, boundary};
use crate::call::{Repair, RepairKind};

/// The info strings of a fence that is a call, whatever it contains.
const WORDS: [&str; 6] = ["tool_call", "tool-call", "tool_code", "tool_use", "function_call", "tool"];

/// A code fence with the JSON of a call.
#[derive(Debug)]
pub(super) struct Fenced;

/// The opening of a fence.
struct FenceOpening<'t> {
    byte: u8,
    length: usize,
    /// The info string.
    word: &'t str,
    /// The text from the second line on.
    body: &'t str,
}

impl<'t> FenceOpening<'t> {
    /// The fence at the start of a text; `None` if its line has not ended.
    fn of(text: &'t str) -> Option<Self> {
        let byte = *text.as_bytes().first()?;
        let length = text.bytes().take_while(|other| *other == byte).count();
        let line = memchr(b'\n', text.as_bytes())?;
        Some(Self { byte, length, word: text[length..line].trim(), body: &text[line + 1..] })
    }

    fn is_call(&self) -> bool {
        WORDS.contains(&self.word)
    }
}

impl CallSyntax for Fenced {
    fn name(&self) -> &'static str {
        "fenced"
    }

    fn usage(&self) -> &'static str {
        "Write a call as a code fence ```tool_call with {\"name\": \"TOOL\", \"arguments\": {\"KEY\": VALUE}} in it, in \
         valid JSON."
    }

    fn evidence(&self) -> &'static str {
        "a code fence with a name and arguments in it"
    }

    fn opens(&self, start: Start<'_>) -> Opening {
        if start.kind != StartKind::Line || !start.rest.starts_with(['`', '~']) {
            return Opening::No;
        }
        let Some(fence) = FenceOpening::of(&start.rest[..boundary(start.rest, LOOKAHEAD)]) else {
            let marks = &start.rest.as_bytes()[..start.rest.len().min(3)];
            let may_open = b"```".starts_with(marks) || b"~~~".starts_with(marks);
            return if may_open && start.rest.len() < LOOKAHEAD { Opening::Unsure } else { Opening::No };
        };
        // Unless this format is certain, JSON in a fence is an example and not a call.
        if fence.length < 3 || !(fence.is_call() || fence.word == "json" && start.is_certain) {
            return Opening::No;
        }
        if fence.is_call() {
            return Opening::Yes(self.evidence());
        }
        match text_after(fence.body) {
            After::Nothing if start.rest.len() < LOOKAHEAD => Opening::Unsure,
            After::Text(text) if text.starts_with(['{', '[']) => Opening::Yes(self.evidence()),
            _ => Opening::No,
        }
    }

    fn end_finder(&self, block: &str) -> Box<dyn EndFinder> {
        let (byte, length) = FenceOpening::of(block).map_or((b'`', 3), |fence| (fence.byte, fence.length));
        Box::new(FenceEnd { line: 0, at: 0, is_other: true, byte, length })
    }

    fn is_only_text(&self, start: &str) -> bool {
        !FenceOpening::of(start).is_some_and(|fence| fence.is_call())
    }

    fn read(&self, block: &CallBlock<'_>, _: Option<&FindParameters<'_>>) -> BlockReading {
        let Some(fence) = FenceOpening::of(block.text) else { return BlockReading::Prose };
        let start = block.text.len() - fence.body.len();
        let body = &fence.body[..fence.body.trim_end().rfind('\n').map_or(0, |line| line + 1)];
        let is_meant = || name_of_call(body).is_some() || looks_like_call(body);
        if !fence.is_call() && (block.is_guess || !is_meant()) {
            return BlockReading::Prose;
        }
        BlockReading::Calls(calls(self, block, start, body))
    }

    fn cut_off(&self, block: &CallBlock<'_>, _: Option<&FindParameters<'_>>) -> BlockReading {
        let Some(fence) = FenceOpening::of(block.text) else { return BlockReading::Prose };
        if !fence.is_call() && (block.is_guess || !looks_like_call(fence.body)) {
            return BlockReading::Prose;
        }
        let body = fence.body.trim_end().trim_end_matches(char::from(fence.byte));
        if !is_complete(body) {
            return BlockReading::Calls(vec![block.truncated(self)]);
        }
        let mut calls = calls(self, block, block.text.len() - fence.body.len(), body);
        for call in calls.iter_mut().filter(|call| call.error.is_none()) {
            call.repairs.push(Repair::new(RepairKind::Fence, "the end of the code fence was missing"));
        }
        BlockReading::Calls(calls)
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        FenceOpening::of(block).map_or("", |fence| first_name(fence.body))
    }

    fn as_dyn(&self) -> &dyn CallSyntax {
        self
    }
}

/// True if a text that is not valid JSON was probably meant as a call.
fn looks_like_call(text: &str) -> bool {
    text.contains("\"name\"") && (text.contains("\"arguments\"") || text.contains("\"parameters\""))
}

/// The search for the line that closes a fence.
#[derive(Debug)]
struct FenceEnd {
    /// The start of the line.
    line: usize,
    /// The end of the text that has been searched.
    at: usize,
    /// True if this line cannot close the fence, because it is the first one or too long.
    is_other: bool,
    byte: u8,
    length: usize,
}

impl FenceEnd {
    fn closes(&self, line: &str) -> bool {
        let line = if line.len() > LOOKAHEAD { "" } else { line.trim() };
        (self.length..=LOOKAHEAD).contains(&line.len()) && line.bytes().all(|byte| byte == self.byte)
    }
}

impl EndFinder for FenceEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> BlockEnd {
        loop {
            let end = memchr(b'\n', &block.as_bytes()[self.at..]).map(|length| self.at + length);
            let Some(end) = end.or(is_last.then_some(block.len())) else {
                self.at = block.len();
                return BlockEnd::Pending;
            };
            if !self.is_other && self.closes(&block[self.line..end]) {
                return BlockEnd::After { length: end, is_closed: true };
            }
            if end == block.len() {
                self.at = end;
                return BlockEnd::Pending;
            }
            self.is_other = false;
            self.line = end + 1;
            self.at = end + 1;
        }
    }

    fn done(&self) -> usize {
        if self.at - self.line > LOOKAHEAD { self.at } else { self.line }
    }

    fn forget(&mut self, bytes: usize) {
        self.is_other |= bytes > self.line;
        self.line = self.line.saturating_sub(bytes);
        self.at -= bytes;
    }
}
