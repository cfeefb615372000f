//! A JSON object with a name and arguments in a code fence: here the fence is the call.

use memchr::memchr;

use super::json::{calls, first_name, name_of_call};
use super::limits::WINDOW;
use super::opening::{After, after};
use super::{At, Block, Ending, Find, Found, Opening, Reading, Spot, TextFormat};

/// Words behind the mark of a fence that is a call whatever is in it.
const WORDS: [&str; 6] = ["tool_call", "tool-call", "tool_code", "tool_use", "function_call", "tool"];

/// JSON in a fence.
#[derive(Debug)]
pub(super) struct Fenced;

/// A fence that opens a text.
struct Mark<'t> {
    byte: u8,
    length: usize,
    /// The word behind the mark.
    word: &'t str,
    /// The rest, from the second line on.
    body: &'t str,
}

impl<'t> Mark<'t> {
    /// The fence that a text begins with; `None` if its line has not ended.
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

impl TextFormat for Fenced {
    fn word(&self) -> &'static str {
        "fenced"
    }

    fn how(&self) -> &'static str {
        "Write a call as a code fence ```tool_call with {\"name\": \"TOOL\", \"arguments\": {\"KEY\": VALUE}} in it, in \
         valid JSON."
    }

    fn reads_lines(&self) -> bool {
        true
    }

    fn tell_tale(&self) -> &'static str {
        "a code fence with a name and arguments in it"
    }

    fn opens(&self, at: At<'_>) -> Opening {
        if at.spot != Spot::Line || !at.rest.starts_with(['`', '~']) {
            return Opening::No;
        }
        let Some(mark) = Mark::of(&at.rest[..super::boundary(at.rest, WINDOW)]) else {
            let start = &at.rest.as_bytes()[..at.rest.len().min(3)];
            let may_open = b"```".starts_with(start) || b"~~~".starts_with(start);
            return if may_open && at.rest.len() < WINDOW { Opening::Unsure } else { Opening::No };
        };
        // Where nobody asked for it, JSON in a fence is shown.
        if mark.length < 3 || !(mark.is_call() || mark.word == "json" && at.is_certain) {
            return Opening::No;
        }
        if mark.is_call() {
            return Opening::Yes(self.tell_tale());
        }
        match after(mark.body) {
            After::Nothing if at.rest.len() < WINDOW => Opening::Unsure,
            After::Text(text) if text.starts_with(['{', '[']) => Opening::Yes(self.tell_tale()),
            _ => Opening::No,
        }
    }

    fn ending(&self, block: &str) -> Box<dyn Ending> {
        let (byte, length) = Mark::of(block).map_or((b'`', 3), |mark| (mark.byte, mark.length));
        Box::new(FenceEnd { line: 0, at: 0, is_other: true, byte, length })
    }

    fn is_only_text(&self, start: &str) -> bool {
        !Mark::of(start).is_some_and(|mark| mark.is_call())
    }

    fn read(&self, block: &Block<'_>, _: Option<&Find<'_>>) -> Reading {
        let Some(mark) = Mark::of(block.text) else { return Reading::Prose };
        let start = block.text.len() - mark.body.len();
        let body = &mark.body[..mark.body.trim_end().rfind('\n').map_or(0, |line| line + 1)];
        let is_meant = || name_of_call(body).is_some() || looks_like_call(body);
        if !mark.is_call() && (block.is_guess || !is_meant()) {
            return Reading::Prose;
        }
        Reading::Calls(calls(self, block, start, body))
    }

    fn cut_off(&self, block: &Block<'_>) -> Reading {
        let is_call =
            Mark::of(block.text).is_some_and(|mark| mark.is_call() || !block.is_guess && looks_like_call(mark.body));
        if !is_call {
            return Reading::Prose;
        }
        let call = block.unreadable(
            self,
            self.name_in(block.text),
            "it was not run, because the text ends inside of the call",
            0,
        );
        Reading::Calls(vec![crate::call::ToolCall { is_truncated: true, ..call }])
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        Mark::of(block).map_or("", |mark| first_name(mark.body))
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}

/// Whether a text that is no JSON was meant to be a call.
fn looks_like_call(text: &str) -> bool {
    text.contains("\"name\"") && (text.contains("\"arguments\"") || text.contains("\"parameters\""))
}

/// Looks for the line that closes a fence.
#[derive(Debug)]
struct FenceEnd {
    /// Where the line begins.
    line: usize,
    /// Up to here there is no line break.
    at: usize,
    /// Whether this line cannot close it: it is the first, or too long.
    is_other: bool,
    byte: u8,
    length: usize,
}

impl FenceEnd {
    fn closes(&self, line: &str) -> bool {
        let line = if line.len() > WINDOW { "" } else { line.trim() };
        (self.length..=WINDOW).contains(&line.len()) && line.bytes().all(|byte| byte == self.byte)
    }
}

impl Ending for FenceEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> Found {
        loop {
            let end = memchr(b'\n', &block.as_bytes()[self.at..]).map(|length| self.at + length);
            let Some(end) = end.or(is_last.then_some(block.len())) else {
                self.at = block.len();
                return Found::More;
            };
            if !self.is_other && self.closes(&block[self.line..end]) {
                return Found::End { length: end, is_closed: true };
            }
            if end == block.len() {
                self.at = end;
                return Found::More;
            }
            self.is_other = false;
            self.line = end + 1;
            self.at = end + 1;
        }
    }

    fn done(&self) -> usize {
        if self.at - self.line > WINDOW { self.at } else { self.line }
    }

    fn forget(&mut self, bytes: usize) {
        self.is_other |= bytes > self.line;
        self.line = self.line.saturating_sub(bytes);
        self.at -= bytes;
    }
}
