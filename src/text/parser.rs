//! The incremental parser: splits a message into prose and calls while it arrives, with the same result however it was cut.

use memchr::memrchr;

use super::aside::{Aside, Seen};
use super::declared_types::FindParameters;
use super::format::{
    BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, SYNTAXES, Start, StartKind, syntax_of,
};
use super::prose::{Candidate, Prose};
use super::{MAX_CALL_BYTES, MAX_CALLS, TextFormat, boundary, place_after};
use crate::call::{CallError, Place, ToolCall};

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a piece lives only until it is handed on")]
pub enum TextPiece {
    /// Prose. Neighbouring pieces of it belong together.
    Text(String),
    /// A call; one that could not be parsed has an error.
    Call(ToolCall),
}

/// The format of a message, and a summary of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParseReport {
    /// The name of the format; `None` until a call was seen, unless a format was asked for.
    pub format: Option<&'static str>,
    /// The reason for that format.
    pub why: &'static str,
    /// The place where that was seen.
    pub at: Option<Place>,
    /// The number of calls, including those that cannot be parsed.
    pub calls: usize,
    /// The number of calls in code, quotes, thoughts or comments, which were left in the text.
    pub passed_over: usize,
    /// The number of calls in another format than that of the message, which were left in the text.
    pub other_formats: usize,
    /// The reason why no more calls were looked for.
    pub stopped: Option<&'static str>,
}

/// A parser of one message, which arrives in pieces.
///
/// ```
/// use toolcrib::text::{Parser, TextFormat, TextPiece};
///
/// let mut parser = Parser::new(TextFormat::Xml);
///
/// assert_eq!(parser.feed("Wait. <tool", None), [TextPiece::Text("Wait. ".to_owned())]);
/// assert_eq!(parser.feed("_call><name>ping</name></tool_call>", None).len(), 1);
/// assert_eq!(parser.finish(None), []);
/// ```
#[derive(Debug)]
pub struct Parser {
    format: Option<TextFormat>,
    /// The syntax of the message, once it is certain.
    chosen: Option<&'static dyn CallSyntax>,
    /// The text that has arrived; the bytes before `at` were given out.
    held: String,
    at: usize,
    /// The end of the prose that has been scanned.
    scanned: usize,
    /// The place of `at` in the message.
    place: Place,
    prose: Prose,
    block: Option<OpenBlock>,
    report: ParseReport,
    /// True if no more calls are accepted in this message.
    is_full: bool,
    is_over: bool,
}

/// A block whose end has not arrived.
#[derive(Debug)]
struct OpenBlock {
    end_finder: Box<dyn EndFinder>,
    syntax: &'static dyn CallSyntax,
    start: StartKind,
    /// True if it is too long to be parsed, and only its end is looked for.
    is_skipped: bool,
}

impl Parser {
    /// Makes a parser for one format, or for any.
    #[must_use]
    pub fn new(format: impl Into<Option<TextFormat>>) -> Self {
        let format = format.into();
        let only = format.map(syntax_of);
        let report = ParseReport {
            format: only.map(CallSyntax::name),
            why: if only.is_some() { "it was asked for" } else { "no call has been seen" },
            ..ParseReport::default()
        };
        Self {
            format,
            chosen: only,
            held: String::new(),
            at: 0,
            scanned: 0,
            place: Place { line: 1, column: 1 },
            prose: Prose::new(),
            block: None,
            report,
            is_full: false,
            is_over: false,
        }
    }

    /// The findings so far.
    #[must_use]
    pub fn report(&self) -> &ParseReport {
        &self.report
    }

    /// Adds the next piece of the message and returns the prose and calls that are certain.
    pub fn feed(&mut self, delta: &str, find: Option<&FindParameters<'_>>) -> Vec<TextPiece> {
        if self.is_over {
            *self = Self::new(self.format);
        }
        self.held.push_str(delta);
        self.advance(find, false)
    }

    /// Ends the message and returns the rest of it. The next piece begins another message.
    pub fn finish(&mut self, find: Option<&FindParameters<'_>>) -> Vec<TextPiece> {
        let mut pieces = self.advance(find, true);
        // A block that turns out to be prose may contain another one.
        while let Some(open) = self.block.take() {
            match open.end_finder.second_best().filter(|_| !open.is_skipped) {
                Some(length) => self.read_block(&open, length, true, find, &mut pieces),
                None => self.cut_off(&open, find, &mut pieces),
            }
            pieces.extend(self.advance(find, true));
        }
        self.release(self.held.len(), &mut pieces);
        self.is_over = true;
        self.held.clear();
        self.at = 0;
        pieces
    }

    fn advance(&mut self, find: Option<&FindParameters<'_>>, is_last: bool) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        loop {
            let goes_on = match self.block.take() {
                Some(open) => self.in_block(open, find, is_last, &mut pieces),
                None => self.in_prose(is_last, &mut pieces),
            };
            if !goes_on {
                break;
            }
        }
        // Removed once for each piece that arrives, so that the whole message is copied only once.
        self.prose.remember(&self.held[..self.at]);
        self.held.drain(..self.at);
        self.scanned -= self.at.min(self.scanned);
        self.at = 0;
        pieces
    }

    /// Scans the prose up to the start of a call; `false` if more text is needed.
    fn in_prose(&mut self, is_last: bool, pieces: &mut Vec<TextPiece>) -> bool {
        let (candidate, check) = loop {
            let next = if self.is_full { None } else { self.prose.next(&self.held, self.scanned) };
            let Some(candidate) = next else {
                self.scanned = self.held.len();
                self.release(self.scanned, pieces);
                return false;
            };
            match self.check_start(candidate, is_last) {
                StartCheck::Nothing => self.scanned = self.prose.pass(&self.held, candidate),
                check => break (candidate, check),
            }
        };
        self.scanned = candidate.at;
        self.release(candidate.at, pieces);
        match check {
            StartCheck::Nothing => true,
            StartCheck::Unsure => false,
            StartCheck::Wrapper(length) => {
                self.prose.resume(false);
                self.consume(self.at + length);
                true
            }
            StartCheck::Call(syntax, why) => {
                if self.chosen.is_none() && candidate.kind == StartKind::Tag {
                    self.choose(syntax, why);
                }
                let end_finder = syntax.end_finder(&self.held[self.at..]);
                self.block = Some(OpenBlock { end_finder, syntax, start: candidate.kind, is_skipped: false });
                true
            }
        }
    }

    /// Asks the formats whether a call begins.
    fn check_start(&mut self, candidate: Candidate, is_last: bool) -> StartCheck {
        if let Some(check) = self.check_aside(candidate, is_last) {
            return check;
        }
        let rest = &self.held[candidate.at..];
        if candidate.kind == StartKind::Tag && rest.as_bytes().get(1).is_some_and(|byte| !begins_tag(*byte)) {
            return StartCheck::Nothing;
        }
        if candidate.is_code && self.prose.end_shown(rest, is_last).is_none() {
            return StartCheck::Unsure;
        }
        // The format of the message comes first, because formats share tags.
        let chosen = self.chosen.map(CallSyntax::name);
        let others = SYNTAXES.iter().filter(|syntax| chosen != Some(syntax.name()));
        let mut is_unsure = false;
        for syntax in self.chosen.iter().chain(others) {
            let is_other = chosen.is_some_and(|chosen| chosen != syntax.name());
            let start = Start { rest, kind: candidate.kind, is_certain: chosen.is_some() && !is_other };
            let check = match syntax.opens(start) {
                Opening::No => continue,
                Opening::Unsure => {
                    is_unsure = !is_last;
                    continue;
                }
                // A format that is asked earlier may still turn out to be the right one.
                _ if is_unsure => return StartCheck::Unsure,
                Opening::Wrapper(_) if is_other => return StartCheck::Nothing,
                Opening::Wrapper(length) => StartCheck::Wrapper(length),
                Opening::Yes(why) => StartCheck::Call(*syntax, why),
            };
            let is_code = if candidate.is_doubtful {
                self.prose.is_in_code(rest, candidate, is_last)
            } else {
                Some(candidate.is_code)
            };
            return match is_code {
                None => StartCheck::Unsure,
                Some(is_code) if is_other => {
                    self.report.other_formats += usize::from(!is_code);
                    StartCheck::Nothing
                }
                Some(false) => check,
                Some(true) => {
                    self.prose.pass_shown();
                    self.report.passed_over += 1;
                    StartCheck::Nothing
                }
            };
        }
        if is_unsure { StartCheck::Unsure } else { StartCheck::Nothing }
    }

    /// Handles the starts that are the same in every format: thoughts, comments, results, and a result that the model made up.
    fn check_aside(&mut self, candidate: Candidate, is_last: bool) -> Option<StartCheck> {
        let rest = &self.held[candidate.at..];
        if let Some(aside) = self.prose.aside() {
            return match aside.ends(rest) {
                Seen::Yes(()) => {
                    self.prose.set_aside(None);
                    Some(StartCheck::Nothing)
                }
                Seen::Unsure if !is_last => Some(StartCheck::Unsure),
                _ => (!rest.starts_with('<')).then_some(StartCheck::Nothing),
            };
        }
        if candidate.kind == StartKind::Tag && candidate.may_hide {
            match Aside::begins(rest, self.prose.word_before(&self.held, candidate.at)) {
                // A comment in a quotation is part of the quotation.
                Seen::Yes(Aside::Comment) if candidate.is_code => {}
                Seen::Yes(aside) => {
                    self.prose.set_aside(Some(aside));
                    return Some(StartCheck::Nothing);
                }
                Seen::Unsure if !is_last => return Some(StartCheck::Unsure),
                Seen::Unsure | Seen::No => {}
            }
        }
        let may_be_result = candidate.kind == StartKind::Line && self.report.calls > 0;
        if let Some(prefix) = self.chosen.filter(|_| may_be_result).and_then(CallSyntax::result_prefix) {
            if rest.starts_with(prefix) {
                self.is_full = true;
                self.report.stopped = Some("the model wrote an answer to its own call; what follows is text");
                return Some(StartCheck::Nothing);
            }
            return (prefix.starts_with(rest) && !is_last).then_some(StartCheck::Unsure);
        }
        None
    }

    fn choose(&mut self, syntax: &'static dyn CallSyntax, why: &'static str) {
        self.chosen = Some(syntax);
        self.report.format = Some(syntax.name());
        self.report.why = why;
        self.report.at = Some(self.place);
    }

    /// Looks for the end of a block; `false` if more text is needed.
    fn in_block(
        &mut self,
        mut open: OpenBlock,
        find: Option<&FindParameters<'_>>,
        is_last: bool,
        pieces: &mut Vec<TextPiece>,
    ) -> bool {
        let whole = &self.held[self.at..];
        if open.is_skipped {
            let end = open.end_finder.advance(whole, is_last);
            let length = match end {
                BlockEnd::Pending => open.end_finder.done(),
                BlockEnd::After { length, .. } | BlockEnd::Prose { length } => length,
            };
            self.consume(self.at + length);
            if end == BlockEnd::Pending {
                open.end_finder.forget(length);
                self.block = Some(open);
                return false;
            }
            self.prose.resume(false);
            return true;
        }
        let readable = &whole[..boundary(whole, MAX_CALL_BYTES)];
        let is_whole = readable.len() == whole.len();
        match open.end_finder.advance(readable, is_last && is_whole) {
            BlockEnd::Pending if is_whole => {
                self.block = Some(open);
                false
            }
            BlockEnd::Pending => {
                if let Some(length) = open.end_finder.second_best() {
                    self.read_block(&open, length, true, find, pieces);
                } else if open.syntax.is_only_text(readable) {
                    self.pass_as_prose(&open);
                } else {
                    self.refuse_long_call(&open, pieces);
                    open.is_skipped = true;
                    self.block = Some(open);
                }
                true
            }
            BlockEnd::Prose { .. } => {
                self.pass_as_prose(&open);
                true
            }
            BlockEnd::After { length, is_closed } => {
                self.read_block(&open, length, is_closed, find, pieces);
                true
            }
        }
    }

    fn read_block(
        &mut self,
        open: &OpenBlock,
        length: usize,
        is_closed: bool,
        find: Option<&FindParameters<'_>>,
        pieces: &mut Vec<TextPiece>,
    ) {
        let reading = open.syntax.read(&self.block_of(length, is_closed), find);
        self.accept(open, reading, length, pieces);
    }

    /// Handles a block in which the text ends.
    fn cut_off(&mut self, open: &OpenBlock, find: Option<&FindParameters<'_>>, pieces: &mut Vec<TextPiece>) {
        let length = self.held.len() - self.at;
        if open.is_skipped {
            self.consume(self.held.len());
            return;
        }
        let reading = open.syntax.cut_off(&self.block_of(length, false), find);
        self.accept(open, reading, length, pieces);
    }

    fn block_of(&self, length: usize, is_closed: bool) -> CallBlock<'_> {
        let text = &self.held[self.at..self.at + length];
        CallBlock { text, place: self.place, is_closed, is_guess: self.format.is_none() }
    }

    fn accept(&mut self, open: &OpenBlock, reading: BlockReading, length: usize, pieces: &mut Vec<TextPiece>) {
        let calls = match reading {
            BlockReading::Prose => return self.pass_as_prose(open),
            BlockReading::Calls(calls) => calls,
        };
        if self.chosen.is_none() {
            self.choose(open.syntax, open.syntax.evidence());
        }
        for call in calls {
            self.push_call(open, call, pieces);
        }
        self.consume(self.at + length);
        let is_new_line = self.held.as_bytes()[..self.at].last() == Some(&b'\n');
        self.prose.resume(is_new_line);
    }

    /// Gives out a call, or an error in place of the first call beyond the limit.
    fn push_call(&mut self, open: &OpenBlock, call: ToolCall, pieces: &mut Vec<TextPiece>) {
        if self.is_full {
            return;
        }
        self.report.calls += 1;
        if self.report.calls <= MAX_CALLS {
            pieces.push(TextPiece::Call(call.with_duplicates_listed()));
            return;
        }
        self.is_full = true;
        let what =
            format!("this call and all after it were not run, because one message has more than {MAX_CALLS} of them");
        let how = "Make fewer calls at once, and wait for their results.";
        pieces.push(TextPiece::Call(self.refused(open, &call.name, what, how)));
    }

    fn refuse_long_call(&mut self, open: &OpenBlock, pieces: &mut Vec<TextPiece>) {
        let what = format!("it was not run, because there are more than {MAX_CALL_BYTES} bytes in the call");
        let start = &self.held[self.at..];
        let name = open.syntax.name_in(&start[..boundary(start, MAX_CALL_BYTES)]);
        let call = self.refused(open, name, what, "Make a shorter call.");
        self.push_call(open, call, pieces);
    }

    fn refused(&self, open: &OpenBlock, name: &str, what: String, how: &str) -> ToolCall {
        let error = CallError::new(what, how).at(self.place);
        ToolCall { format: open.syntax.name().into(), ..ToolCall::unreadable(name, error) }
    }

    /// Treats the start of a block as prose and scans the rest of it, which may contain code.
    fn pass_as_prose(&mut self, open: &OpenBlock) {
        let candidate = Candidate::plain(self.at, open.start);
        self.scanned = self.prose.pass(&self.held, candidate);
    }

    /// Gives out the text up to a byte.
    fn release(&mut self, to: usize, pieces: &mut Vec<TextPiece>) {
        if to > self.at {
            let text = &self.held[self.at..to];
            match pieces.last_mut() {
                Some(TextPiece::Text(before)) => before.push_str(text),
                _ => pieces.push(TextPiece::Text(text.to_owned())),
            }
            self.consume(to);
        }
    }

    fn consume(&mut self, to: usize) {
        let text = &self.held[self.at..to];
        // Most pieces are a few characters of one line.
        self.place = match memrchr(b'\n', text.as_bytes()) {
            None => Place { column: self.place.column + text.chars().count(), ..self.place },
            Some(_) => place_after(self.place, text, text.len()),
        };
        self.at = to;
        self.scanned = self.scanned.max(to);
    }
}

/// True if a tag of a known format can begin with this byte. Other tags are rejected early, so that a flood of them is cheap.
fn begins_tag(byte: u8) -> bool {
    matches!(byte, b't' | b'T' | b'f' | b'F' | b'i' | b'I' | b'/')
}

/// The result of asking the formats about a possible start.
enum StartCheck {
    Nothing,
    Unsure,
    Wrapper(usize),
    Call(&'static dyn CallSyntax, &'static str),
}
