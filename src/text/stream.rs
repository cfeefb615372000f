//! Cuts a message into prose and calls while it comes, the same way however it was cut before.

use memchr::memrchr;

use super::aside::{Aside, Seen};
use super::limits::{CALL_BYTES, CALLS};
use super::prose::{Candidate, Prose};
use super::{At, Block, Ending, Find, Format, Found, Opening, Reading, Report, Spot, TextFormat, boundary, moved};
use crate::call::{CallError, Place, ToolCall};

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a piece lives only until it is handed on")]
pub enum Piece {
    /// Prose. Neighbouring pieces of it belong together.
    Text(String),
    /// A call, or what was meant to be one: then it has an error.
    Call(ToolCall),
}

/// Reads one message of a model, which comes in pieces.
///
/// ```
/// use toolcrib::text::{Format, Parser, Piece};
///
/// let mut parser = Parser::new(Format::Xml);
///
/// assert_eq!(parser.feed("Wait. <tool", None), [Piece::Text("Wait. ".to_owned())]);
/// assert_eq!(parser.feed("_call><name>ping</name></tool_call>", None).len(), 1);
/// assert_eq!(parser.finish(None), []);
/// ```
#[derive(Debug)]
pub struct Parser {
    dialects: &'static [&'static dyn TextFormat],
    /// The one that is certain.
    chosen: Option<&'static dyn TextFormat>,
    is_guess: bool,
    /// What has come and was not given out; the bytes before `at` were.
    held: String,
    at: usize,
    /// Up to here the prose has been followed.
    followed: usize,
    /// Where `at` is in the message.
    place: Place,
    prose: Prose,
    block: Option<Open>,
    report: Report,
    is_full: bool,
    is_over: bool,
    format: Format,
}

/// A block whose end has not come.
#[derive(Debug)]
struct Open {
    ending: Box<dyn Ending>,
    format: &'static dyn TextFormat,
    candidate: Spot,
    /// Whether it is too long to be read, and is only passed over.
    is_skipped: bool,
}

impl Parser {
    /// A reader of one message.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let dialects = format.dialects();
        let only = if let [only] = dialects { Some(*only) } else { None };
        let report = Report {
            format: only.map(TextFormat::word),
            why: if only.is_some() { "it was asked for" } else { "no call has been seen" },
            ..Report::default()
        };
        Self {
            dialects,
            chosen: only,
            is_guess: only.is_none(),
            held: String::new(),
            at: 0,
            followed: 0,
            place: Place { line: 1, column: 1 },
            prose: Prose::new(only.is_some_and(TextFormat::reads_code)),
            block: None,
            report,
            is_full: false,
            is_over: false,
            format,
        }
    }

    /// What has been found out so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the next piece of the message and gives what is certain by now.
    pub fn feed(&mut self, delta: &str, find: Option<&Find<'_>>) -> Vec<Piece> {
        if self.is_over {
            *self = Self::new(self.format);
        }
        self.held.push_str(delta);
        self.go_on(find, false)
    }

    /// Ends the message and gives what is left. The next piece begins another message.
    pub fn finish(&mut self, find: Option<&Find<'_>>) -> Vec<Piece> {
        let mut pieces = self.go_on(find, true);
        // A block that turns out to be prose may have another in it.
        while let Some(open) = self.block.take() {
            match open.ending.second_best().filter(|_| !open.is_skipped) {
                Some(length) => self.read(&open, length, true, find, &mut pieces),
                None => self.cut_off(&open, &mut pieces),
            }
            pieces.extend(self.go_on(find, true));
        }
        self.release(self.held.len(), &mut pieces);
        self.is_over = true;
        self.held.clear();
        self.at = 0;
        pieces
    }

    fn go_on(&mut self, find: Option<&Find<'_>>, is_last: bool) -> Vec<Piece> {
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
        // What was given out is let go of once for each piece that came.
        self.prose.remember(&self.held[..self.at]);
        self.held.drain(..self.at);
        self.followed -= self.at.min(self.followed);
        self.at = 0;
        pieces
    }

    /// Follows the prose up to where a call begins; `false` if more has to come.
    fn in_prose(&mut self, is_last: bool, pieces: &mut Vec<Piece>) -> bool {
        let (candidate, look) = loop {
            let next = if self.is_full { None } else { self.prose.next(&self.held, self.followed, self.wants_lines()) };
            let Some(candidate) = next else {
                self.followed = self.held.len();
                self.release(self.followed, pieces);
                return false;
            };
            match self.look(candidate, is_last) {
                Look::Nothing => self.followed = self.prose.pass(&self.held, candidate),
                look => break (candidate, look),
            }
        };
        self.followed = candidate.at;
        self.release(candidate.at, pieces);
        match look {
            Look::Nothing => true,
            Look::Unsure => false,
            Look::Wrapper(length) => {
                self.prose.resume(false);
                self.consume(self.at + length);
                true
            }
            Look::Call(format, why) => {
                if self.chosen.is_none() && candidate.spot == Spot::Tag {
                    self.choose(format, why);
                }
                let ending = format.ending(&self.held[self.at..]);
                self.block = Some(Open { ending, format, candidate: candidate.spot, is_skipped: false });
                true
            }
        }
    }

    fn wants_lines(&self) -> bool {
        match self.chosen {
            Some(format) => format.reads_lines(),
            None => true,
        }
    }

    /// Asks the formats whether a call begins.
    fn look(&mut self, candidate: Candidate, is_last: bool) -> Look {
        if let Some(look) = self.look_aside(candidate, is_last) {
            return look;
        }
        let rest = &self.held[candidate.at..];
        if candidate.spot == Spot::Tag && rest.as_bytes().get(1).is_some_and(|byte| !begins_tag(*byte)) {
            return Look::Nothing;
        }
        if candidate.is_code && self.prose.end_shown(rest, is_last).is_none() {
            return Look::Unsure;
        }
        let chosen = self.chosen.map(|format| [format]);
        let formats = chosen.as_ref().map_or(self.dialects, |chosen| chosen.as_slice());
        let mut is_unsure = false;
        for format in formats {
            let opening = format.opens(At { rest, spot: candidate.spot, is_certain: self.chosen.is_some() });
            let look = match opening {
                Opening::No => continue,
                Opening::Unsure => {
                    is_unsure = !is_last;
                    continue;
                }
                // Whoever is asked first may still turn out to be right.
                _ if is_unsure => return Look::Unsure,
                Opening::Wrapper(length) => Look::Wrapper(length),
                Opening::Yes(why) => Look::Call(*format, why),
            };
            let is_code = match candidate.is_doubtful {
                true => self.prose.settle(rest, candidate, is_last),
                false => Some(candidate.is_code),
            };
            return match is_code {
                None => Look::Unsure,
                Some(false) => look,
                Some(true) => {
                    self.prose.pass_shown();
                    self.report.passed_over += 1;
                    Look::Nothing
                }
            };
        }
        if is_unsure { Look::Unsure } else { Look::Nothing }
    }

    /// Sees what no format has to be asked about: thoughts and comments, results, and an observation that the model made up.
    fn look_aside(&mut self, candidate: Candidate, is_last: bool) -> Option<Look> {
        let rest = &self.held[candidate.at..];
        if let Some(aside) = self.prose.aside() {
            return match aside.ends(rest) {
                Seen::Yes(()) => {
                    self.prose.hide(None);
                    Some(Look::Nothing)
                }
                Seen::Unsure if !is_last => Some(Look::Unsure),
                _ => (!rest.starts_with('<')).then_some(Look::Nothing),
            };
        }
        let reads_code = self.chosen.is_some_and(TextFormat::reads_code);
        if candidate.spot == Spot::Tag && candidate.may_hide && !reads_code {
            match Aside::begins(rest, self.prose.word_before(&self.held, candidate.at)) {
                // A comment that is quoted is only shown.
                Seen::Yes(Aside::Comment) if candidate.is_code => {}
                Seen::Yes(aside) => {
                    self.prose.hide(Some(aside));
                    return Some(Look::Nothing);
                }
                Seen::Unsure if !is_last => return Some(Look::Unsure),
                Seen::Unsure | Seen::No => {}
            }
        }
        let may_observe = candidate.spot == Spot::Line && self.report.calls > 0;
        if let Some(word) = self.chosen.filter(|_| may_observe).and_then(TextFormat::answer) {
            if rest.starts_with(word) {
                self.is_full = true;
                self.report.stopped = Some("the model wrote an answer to its own call; what follows is text");
                return Some(Look::Nothing);
            }
            return (word.starts_with(rest) && !is_last).then_some(Look::Unsure);
        }
        None
    }

    fn choose(&mut self, format: &'static dyn TextFormat, why: &'static str) {
        self.chosen = Some(format);
        self.report.format = Some(format.word());
        self.report.why = why;
        self.report.at = Some(self.place);
    }

    /// Looks for the end of a block; `false` if more has to come.
    fn in_block(&mut self, mut open: Open, find: Option<&Find<'_>>, is_last: bool, pieces: &mut Vec<Piece>) -> bool {
        let whole = &self.held[self.at..];
        if open.is_skipped {
            let found = open.ending.advance(whole, is_last);
            let length = match found {
                Found::More => open.ending.done(),
                Found::End { length, .. } | Found::Prose { length } => length,
            };
            self.consume(self.at + length);
            if found == Found::More {
                open.ending.forget(length);
                self.block = Some(open);
                return false;
            }
            self.prose.resume(open.format.ends_lines());
            return true;
        }
        let most = if open.format.is_bounded() { CALL_BYTES } else { whole.len() };
        let readable = &whole[..boundary(whole, most)];
        let is_whole = readable.len() == whole.len();
        match open.ending.advance(readable, is_last && is_whole) {
            Found::More if is_whole => {
                self.block = Some(open);
                false
            }
            Found::More => {
                if let Some(length) = open.ending.second_best() {
                    self.read(&open, length, true, find, pieces);
                } else if open.format.is_only_text(readable) {
                    self.pass_as_prose(&open);
                } else {
                    self.give_up(&open, pieces);
                    open.is_skipped = true;
                    self.block = Some(open);
                }
                true
            }
            Found::Prose { .. } => {
                self.pass_as_prose(&open);
                true
            }
            Found::End { length, is_closed } => {
                self.read(&open, length, is_closed, find, pieces);
                true
            }
        }
    }

    fn read(&mut self, open: &Open, length: usize, is_closed: bool, find: Option<&Find<'_>>, pieces: &mut Vec<Piece>) {
        let text = &self.held[self.at..self.at + length];
        let block = Block { text, place: self.place, is_closed, is_guess: self.is_guess };
        let reading = open.format.read(&block, find);
        self.settle(open, reading, length, pieces);
    }

    fn settle(&mut self, open: &Open, reading: Reading, length: usize, pieces: &mut Vec<Piece>) {
        match reading {
            Reading::Prose => self.pass_as_prose(open),
            Reading::Rest => self.release(self.at + length, pieces),
            Reading::Calls(calls) => {
                if self.chosen.is_none() {
                    self.choose(open.format, open.format.tell_tale());
                }
                for call in calls {
                    self.give(open, call, pieces);
                }
                self.consume(self.at + length);
                let is_new_line = self.held.as_bytes()[..self.at].last() == Some(&b'\n');
                self.prose.resume(is_new_line || open.format.ends_lines());
            }
        }
    }

    /// Gives a call out, if there have not been too many.
    fn give(&mut self, open: &Open, call: ToolCall, pieces: &mut Vec<Piece>) {
        if self.is_full {
            return;
        }
        self.report.calls += 1;
        if self.report.calls <= CALLS || !open.format.is_bounded() {
            pieces.push(Piece::Call(call.with_duplicates_listed()));
            return;
        }
        self.is_full = true;
        let what =
            format!("this call and all after it were not run, because one message has more than {CALLS} of them");
        let how = "Make fewer calls at once, and wait for their results.";
        pieces.push(Piece::Call(self.refused(open, &call.name, what, how)));
    }

    fn give_up(&mut self, open: &Open, pieces: &mut Vec<Piece>) {
        let what = format!("it was not run, because there are more than {CALL_BYTES} bytes in the call");
        let start = &self.held[self.at..];
        let name = open.format.name_in(&start[..boundary(start, CALL_BYTES)]);
        let call = self.refused(open, name, what, "Make a shorter call.");
        self.give(open, call, pieces);
    }

    fn refused(&self, open: &Open, name: &str, what: String, how: &str) -> ToolCall {
        let error = CallError::new(what, how).at(self.place);
        ToolCall { format: open.format.word().into(), ..ToolCall::unreadable(name, error) }
    }

    /// The text ends in a block.
    fn cut_off(&mut self, open: &Open, pieces: &mut Vec<Piece>) {
        let length = self.held.len() - self.at;
        if open.is_skipped {
            self.consume(self.held.len());
            return;
        }
        let block = Block { text: &self.held[self.at..], place: self.place, is_closed: false, is_guess: self.is_guess };
        let reading = open.format.cut_off(&block);
        self.settle(open, reading, length, pieces);
    }

    /// Takes what looked like a call for prose, which is now followed: it may have code in it.
    fn pass_as_prose(&mut self, open: &Open) {
        let candidate = Candidate::plain(self.at, open.candidate);
        self.followed = self.prose.pass(&self.held, candidate);
    }

    /// Gives out the text up to a byte.
    fn release(&mut self, to: usize, pieces: &mut Vec<Piece>) {
        if to > self.at {
            let text = &self.held[self.at..to];
            match pieces.last_mut() {
                Some(Piece::Text(before)) => before.push_str(text),
                _ => pieces.push(Piece::Text(text.to_owned())),
            }
            self.consume(to);
        }
    }

    fn consume(&mut self, to: usize) {
        let text = &self.held[self.at..to];
        // Most pieces are a few letters of one line.
        self.place = match memrchr(b'\n', text.as_bytes()) {
            None => Place { column: self.place.column + text.chars().count(), ..self.place },
            Some(_) => moved(self.place, text, text.len()),
        };
        self.at = to;
        self.followed = self.followed.max(to);
    }
}

/// Whether a tag that matters may go on so: a flood of others should cost next to nothing.
fn begins_tag(byte: u8) -> bool {
    matches!(byte, b't' | b'T' | b'f' | b'F' | b'i' | b'I' | b'/')
}

enum Look {
    Nothing,
    Unsure,
    Wrapper(usize),
    Call(&'static dyn TextFormat, &'static str),
}
