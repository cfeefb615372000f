//! A scanner for the places in a message where a call can begin: not in code fences, inline code, quotes, thoughts or comments.
//!
//! It reads the Markdown that models write, byte by byte, so that the result does not depend on how the text was cut.

use memchr::{memchr, memchr2, memchr3};

use super::MAX_CALL_BYTES;
use super::aside::Aside;
use super::format::StartKind;
use super::quotation::{Quotations, may_begin_mark};
use super::tag::{TagMatch, closing_tag};

/// The elements that hold calls.
const CALLS: [&str; 4] = ["tool_call", "function", "invoke", "function_calls"];

/// The maximum indentation of the line that closes a fence, beyond that of the line that opened it.
const INDENT: usize = 3;

/// The state of the scanner within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Only blanks and markers of lists so far.
    Start,
    /// The bullet of a list, if a blank follows.
    Bullet { mark: u8 },
    /// The number of a list, if a dot or a bracket follows.
    Number,
    /// A horizontal rule, if it is long enough.
    Rule { mark: u8, length: usize },
    /// After the `>` of a block quote: only blanks, or the mark of a fence.
    Quoted { mark: u8, length: usize },
    /// A run of backticks or tildes.
    Run { mark: u8, length: usize, is_first: bool },
    /// The info string of a fence that opens.
    Info { mark: u8, length: usize },
    /// The text after the mark of a fence that may close.
    AfterFence,
    /// After the start of the line.
    Middle,
}

/// A code fence that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

/// Inline code that is open.
#[derive(Debug, Clone, Copy)]
struct InlineCode {
    /// The length of its opening mark.
    length: usize,
    /// The quotations before it: quotation marks in code do not count.
    quotations: Quotations,
    /// True if it began in an earlier line, so that it is code only if it is closed in this paragraph.
    is_older: bool,
    /// True if it is known to be code.
    is_certain: bool,
}

/// The state of a block quote.
#[derive(Debug, Clone, Copy, Default)]
struct BlockQuote {
    /// The line begins with its mark.
    is_marked: bool,
    /// The line continues a paragraph of the quote, with or without a mark.
    is_open: bool,
    /// The quote is in a code fence of its own.
    is_fenced: bool,
}

/// A search for the end of inline code.
#[derive(Debug, Clone, Copy, Default)]
struct CodeEndSearch {
    at: usize,
    run: usize,
    is_blank: bool,
    /// True if the call in it has ended: only then does a blank line end the paragraph.
    is_behind_call: bool,
}

/// The scanner of the text between calls.
#[derive(Debug)]
pub(super) struct Prose {
    line: Line,
    /// The column of the first character of the line.
    indent: usize,
    fence: Option<Fence>,
    code: Option<InlineCode>,
    search: Option<CodeEndSearch>,
    block_quote: BlockQuote,
    quotations: Quotations,
    /// True inside a call between quotation marks, in which quotation marks do not count.
    is_in_shown: bool,
    aside: Option<Aside>,
    /// The last character before the text at hand.
    before: Option<char>,
    /// The last one that is not blank.
    visible: Option<char>,
}

/// A place where a call can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) at: usize,
    pub(super) kind: StartKind,
    /// True if it is in code or in a quotation.
    pub(super) is_code: bool,
    /// True if that depends on inline code being closed later.
    pub(super) is_doubtful: bool,
    /// True if a thought or an echoed result can begin there.
    pub(super) may_hide: bool,
}

impl Candidate {
    /// A place outside of code and quotations.
    pub(super) fn plain(at: usize, kind: StartKind) -> Self {
        Self { at, kind, is_code: false, is_doubtful: false, may_hide: false }
    }
}

impl Prose {
    /// Starts at the beginning of a message.
    pub(super) fn new() -> Self {
        Self {
            line: Line::Start,
            indent: 0,
            fence: None,
            code: None,
            search: None,
            block_quote: BlockQuote::default(),
            quotations: Quotations::new(),
            is_in_shown: false,
            aside: None,
            before: None,
            visible: None,
        }
    }

    /// Keeps the last characters of a text that is removed.
    pub(super) fn remember(&mut self, text: &str) {
        self.visible = self.visible_before(text);
        self.before = self.letter_before(text);
    }

    fn letter_before(&self, text: &str) -> Option<char> {
        text.chars().next_back().or(self.before)
    }

    /// The last character of a text that is not blank.
    fn visible_before(&self, text: &str) -> Option<char> {
        text.trim_end_matches([' ', '\t']).chars().next_back().or(self.visible)
    }

    /// The last character before a place in its line that is not blank.
    pub(super) fn word_before(&self, text: &str, at: usize) -> Option<char> {
        self.visible_before(&text[..at]).filter(|letter| *letter != '\n')
    }

    /// The thought, comment or result that the text is in.
    pub(super) fn aside(&self) -> Option<Aside> {
        self.aside
    }

    /// Begins or ends such an element. Quotations and code that were open before stay open.
    pub(super) fn set_aside(&mut self, aside: Option<Aside>) {
        self.aside = aside;
        self.line = Line::Middle;
    }

    /// Scans from a byte to the next place where a call can begin.
    pub(super) fn next(&mut self, text: &str, from: usize) -> Option<Candidate> {
        let bytes = text.as_bytes();
        let mut at = from;
        if let Some(aside) = self.aside {
            let found = match aside {
                Aside::Mention(_) => memchr2(b'<', b'\n', &bytes[at..]),
                _ => memchr2(b'<', b'-', &bytes[at..]),
            };
            at += found?;
            if bytes[at] != b'\n' {
                return Some(Candidate { is_code: true, ..Candidate::plain(at, StartKind::Tag) });
            }
            self.set_aside(None);
        }
        while let Some(byte) = bytes.get(at).copied() {
            if self.quotations.wants_next()
                && let Some(letter) = text[at..].chars().next()
            {
                self.quotations.peek(letter);
            }
            match self.line {
                Line::Start if self.is_first_letter(byte) => {
                    let is_doubtful = self.code.is_some() && !matches!(byte, b'`' | b'~');
                    return Some(Candidate { is_doubtful, ..Candidate::plain(at, StartKind::Line) });
                }
                Line::Middle => {
                    at = self.skip(bytes, at);
                    if bytes.get(at) == Some(&b'<') {
                        return Some(self.tag_at(at));
                    }
                }
                _ => {}
            }
            at = self.follow(text, at);
        }
        None
    }

    fn tag_at(&self, at: usize) -> Candidate {
        let is_doubtful = self.code.is_some_and(|code| code.is_older && !code.is_certain);
        let is_inside = self.fence.is_some() || self.block_quote.is_marked || self.code.is_some() && !is_doubtful;
        let is_quoted = match self.code {
            Some(code) if is_doubtful => code.quotations.is_open() && self.quotations.is_open(),
            _ => self.quotations.is_open(),
        };
        let is_code = is_inside || is_quoted || self.block_quote.is_open;
        Candidate { at, kind: StartKind::Tag, is_code, is_doubtful: is_doubtful && !is_code, may_hide: !is_inside }
    }

    /// Scans one character. Returns the same place if the character has to be read again in the new state.
    fn follow(&mut self, text: &str, at: usize) -> usize {
        let reads_marks = self.reads_marks();
        let next = self.step(text.as_bytes(), at);
        if next == at {
            return at;
        }
        let next = (next..text.len()).find(|next| text.is_char_boundary(*next)).unwrap_or(text.len());
        let may_matter = may_begin_mark(text.as_bytes()[at]) || self.quotations.wants_next();
        if may_matter
            && reads_marks
            && let Some(letter) = text[at..next].chars().next()
        {
            self.quotations.pass(letter, self.letter_before(&text[..at]));
        }
        next
    }

    fn reads_marks(&self) -> bool {
        let is_prose = !matches!(self.line, Line::Info { .. } | Line::AfterFence);
        is_prose && self.fence.is_none() && !self.block_quote.is_marked && !self.is_in_shown
    }

    /// Passes a place where no call began.
    pub(super) fn pass(&mut self, text: &str, candidate: Candidate) -> usize {
        if candidate.kind == StartKind::Tag { candidate.at + 1 } else { self.follow(text, candidate.at) }
    }

    /// Passes a call in code or in a quotation, which is shown and not made.
    pub(super) fn pass_shown(&mut self) {
        if let Some(aside) = &mut self.aside {
            *aside = aside.with_call();
        } else if let Some(code) = &mut self.code {
            code.is_certain = true;
        } else {
            self.is_in_shown = self.quotations.is_open();
        }
    }

    /// Checks whether a call between quotation marks ends at a tag; `None` if more text is needed.
    pub(super) fn end_shown(&mut self, rest: &str, is_last: bool) -> Option<()> {
        if self.is_in_shown {
            let is_end = ends_call(rest, is_last)?;
            self.is_in_shown = !is_end;
        }
        Some(())
    }

    /// Decides by the text that follows whether a doubtful place is in code; `None` if more text is needed.
    pub(super) fn is_in_code(&mut self, rest: &str, candidate: Candidate, is_last: bool) -> Option<bool> {
        let Some(code) = self.code else { return Some(false) };
        let mut search = self
            .search
            .take()
            .unwrap_or(CodeEndSearch { is_behind_call: candidate.kind == StartKind::Line, ..CodeEndSearch::default() });
        match search.advance(rest, code.length, is_last) {
            None => {
                self.search = Some(search);
                None
            }
            Some(true) => Some(true),
            Some(false) => {
                self.code = None;
                Some(self.quotations.is_open())
            }
        }
    }

    /// Continues after a call.
    pub(super) fn resume(&mut self, is_new_line: bool) {
        self.line = if is_new_line { Line::Start } else { Line::Middle };
        self.indent = 0;
    }

    fn is_first_letter(&self, byte: u8) -> bool {
        let is_quoted = self.code.map_or(self.quotations, |code| code.quotations).is_open();
        self.fence.is_none()
            && self.code.is_none_or(|code| !code.is_certain)
            && !is_quoted
            && (!self.block_quote.is_open || matches!(byte, b'`' | b'~'))
            && !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'>')
    }

    /// The next relevant byte in the middle of a line.
    fn skip(&self, bytes: &[u8], from: usize) -> usize {
        let rest = &bytes[from..];
        let found = if self.quotations.wants_next() {
            Some(0)
        } else if self.fence.is_some() || self.block_quote.is_marked {
            memchr2(b'\n', b'<', rest)
        } else if self.is_in_shown {
            memchr3(b'\n', b'<', b'`', rest)
        } else {
            rest.iter().position(|byte| RELEVANT[usize::from(*byte)])
        };
        found.map_or(bytes.len(), |length| from + length)
    }

    /// Scans one byte. Returns the same place if the byte has to be read again in the new state.
    fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        let Some(byte) = bytes.get(at).copied() else { return at };
        if byte == b'\n' {
            self.end_line();
            return at + 1;
        }
        match self.line {
            Line::Start => {
                self.line = match byte {
                    b' ' | b'\t' | b'\r' => {
                        self.indent += if byte == b'\t' { 4 - self.indent % 4 } else { 1 };
                        Line::Start
                    }
                    b'`' | b'~' => Line::Run { mark: byte, length: 1, is_first: true },
                    _ if self.fence.is_some() => Line::Middle,
                    b'>' => {
                        self.block_quote.is_marked = true;
                        Line::Quoted { mark: 0, length: 0 }
                    }
                    b'-' | b'*' | b'+' => Line::Bullet { mark: byte },
                    b'0'..=b'9' => Line::Number,
                    b'#' => {
                        self.block_quote.is_open = false;
                        Line::Middle
                    }
                    _ => Line::Middle,
                };
                // A tag at the start of the line can begin a call.
                if byte == b'<' { at } else { at + 1 }
            }
            Line::Bullet { .. } | Line::Number => {
                self.line = match (self.line, byte) {
                    (Line::Bullet { mark }, b' ' | b'\t') => {
                        // A new list item does not continue the paragraph before it; a number may.
                        self.block_quote.is_open &= mark == 0;
                        Line::Start
                    }
                    (Line::Bullet { mark }, _) if mark == byte && matches!(byte, b'-' | b'*') => {
                        Line::Rule { mark, length: 2 }
                    }
                    (Line::Number, b'0'..=b'9') => Line::Number,
                    (Line::Number, b'.' | b')') => Line::Bullet { mark: 0 },
                    _ => Line::Middle,
                };
                self.indent += if self.line == Line::Start { 2 } else { 1 };
                if self.line == Line::Middle { at } else { at + 1 }
            }
            Line::Rule { mark, length } => {
                match byte {
                    _ if byte == mark => self.line = Line::Rule { mark, length: length + 1 },
                    b' ' | b'\t' | b'\r' => {}
                    _ => {
                        self.line = Line::Middle;
                        return at;
                    }
                }
                at + 1
            }
            Line::Quoted { mark, length } => self.step_quoted(byte, mark, length, at),
            Line::Run { mark, length, is_first } => {
                if byte == mark {
                    self.line = Line::Run { mark, length: length + 1, is_first };
                    return at + 1;
                }
                self.end_run(mark, length, is_first);
                at
            }
            Line::Info { length, mark } => {
                let marks = if mark == b'`' { memchr2(b'\n', b'`', &bytes[at..]) } else { memchr(b'\n', &bytes[at..]) };
                let at = marks.map_or(bytes.len(), |length| at + length);
                if bytes.get(at) == Some(&b'`') {
                    self.open_code(length);
                    self.line = Line::Middle;
                }
                at
            }
            Line::AfterFence => {
                if !matches!(byte, b' ' | b'\t' | b'\r') {
                    self.line = Line::Middle;
                    return at;
                }
                at + 1
            }
            Line::Middle => {
                let is_prose = self.fence.is_none() && !self.block_quote.is_marked && !self.is_in_shown;
                if byte == b'`' && is_prose {
                    self.line = Line::Run { mark: byte, length: 1, is_first: false };
                }
                at + 1
            }
        }
    }

    /// Scans the start of a line of a block quote, to know whether a paragraph follows.
    fn step_quoted(&mut self, byte: u8, mark: u8, length: usize, at: usize) -> usize {
        match byte {
            b' ' | b'\t' | b'\r' | b'>' if length == 0 => return at + 1,
            b'`' | b'~' if length == 0 || byte == mark => {
                self.line = Line::Quoted { mark: byte, length: length + 1 };
                if length == 2 {
                    self.block_quote.is_fenced = !self.block_quote.is_fenced;
                    self.block_quote.is_open = false;
                    self.line = Line::Middle;
                }
                return at + 1;
            }
            _ => {}
        }
        self.block_quote.is_open = !self.block_quote.is_fenced && byte != b'#';
        self.line = Line::Middle;
        at
    }

    fn open_code(&mut self, length: usize) {
        self.code = Some(InlineCode { length, quotations: self.quotations, is_older: false, is_certain: false });
    }

    fn end_run(&mut self, mark: u8, length: usize, is_first: bool) {
        self.line = Line::Middle;
        let is_older = self.code.is_none_or(|code| code.is_older && !code.is_certain);
        match self.fence {
            Some(fence) => {
                let closes = is_first && fence.mark == mark && length >= fence.length;
                if closes && self.indent <= fence.indent + INDENT {
                    self.line = Line::AfterFence;
                }
            }
            None if is_first && length >= 3 && is_older => self.line = Line::Info { mark, length },
            None if mark == b'`' => match self.code {
                None => self.open_code(length),
                Some(open) if open.length == length => {
                    self.code = None;
                    self.quotations = open.quotations;
                }
                Some(_) => {}
            },
            None => {}
        }
    }

    fn end_line(&mut self) {
        let is_blank = self.line == Line::Start;
        if let Line::Run { mark, length, is_first } = self.line {
            self.end_run(mark, length, is_first);
        }
        match self.line {
            Line::Info { mark, length } => {
                self.fence = Some(Fence { mark, length, indent: self.indent });
                // A fence ends the paragraph: an unclosed mark before it was not code.
                self.code = None;
                self.block_quote.is_open = false;
            }
            Line::AfterFence => self.fence = None,
            Line::Rule { length, .. } if length >= 3 => self.block_quote.is_open = false,
            Line::Quoted { .. } => self.block_quote.is_open = false,
            _ => {}
        }
        if is_blank && self.fence.is_none() {
            self.quotations.close_all();
            self.is_in_shown = false;
            self.code = None;
            self.block_quote.is_open = false;
        }
        if let Some(code) = &mut self.code {
            code.is_older = true;
        }
        self.block_quote.is_fenced &= self.block_quote.is_marked;
        self.block_quote.is_marked = false;
        self.indent = 0;
        self.line = Line::Start;
    }
}

impl CodeEndSearch {
    /// Continues the search for the mark that closes inline code; `false` if the paragraph ends without it.
    fn advance(&mut self, rest: &str, length: usize, is_last: bool) -> Option<bool> {
        let bytes = rest.as_bytes();
        while let Some(byte) = bytes.get(self.at).copied() {
            if byte != b'`' && self.run == length {
                return Some(true);
            }
            match byte {
                b'`' => self.run += 1,
                b'\n' if self.is_blank && self.is_behind_call => return Some(false),
                b'<' if !self.is_behind_call => self.is_behind_call = ends_call(&rest[self.at..], is_last)?,
                _ => {}
            }
            if byte != b'`' {
                self.run = 0;
            }
            self.is_blank = byte == b'\n' || self.is_blank && matches!(byte, b' ' | b'\t' | b'\r');
            self.at += 1;
            // Text that is too long for a call is not searched.
            if self.at > MAX_CALL_BYTES {
                return Some(true);
            }
        }
        is_last.then_some(self.run == length)
    }
}

/// Checks whether a text begins with the closing tag of a call; `None` if more text is needed.
fn ends_call(rest: &str, is_last: bool) -> Option<bool> {
    let mut is_unsure = false;
    for name in CALLS {
        match closing_tag(rest, name) {
            TagMatch::Yes(_) => return Some(true),
            TagMatch::Unsure => is_unsure = true,
            TagMatch::No => {}
        }
    }
    (is_last || !is_unsure).then_some(false)
}

/// The relevant bytes in prose.
const RELEVANT: [bool; 256] = {
    let mut relevant = [false; 256];
    let mut byte = 0u8;
    loop {
        relevant[byte as usize] = matches!(byte, b'\n' | b'<' | b'`') || may_begin_mark(byte);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    relevant
};
