//! Where in a message a call could begin: not in code fences, not in inline code, not in quotes, not in thoughts or comments.
//!
//! Markdown is followed as far as a model writes it, byte by byte, so that it does not matter how the text was cut.

use memchr::{memchr, memchr2, memchr3};

use super::Spot;
use super::aside::Aside;
use super::limits::CALL_BYTES;
use super::opening::{Tag, closing_tag};
use super::quotation::{Quotations, may_begin_mark};

/// The elements that calls are written in.
const CALLS: [&str; 4] = ["tool_call", "function", "invoke", "function_calls"];

/// How many blanks may stand before the mark that closes a fence, beyond those before the mark that opened it.
const INDENT: usize = 3;

/// How far a line has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Only blanks and markers of lists so far.
    Start,
    /// The bullet of a list, if a blank follows.
    Bullet { mark: u8 },
    /// The number of a list, if a dot or a bracket follows.
    Number,
    /// A line of one letter that parts paragraphs, if it is long enough.
    Rule { mark: u8, length: usize },
    /// Behind the mark of a block quote: only blanks, or the mark of a fence.
    Quoted { mark: u8, length: usize },
    /// A run of backticks or tildes.
    Run { mark: u8, length: usize, is_first: bool },
    /// What stands behind the mark of a fence that opens.
    Info { mark: u8, length: usize },
    /// What stands behind the mark of a fence that could close.
    AfterFence,
    /// Anything.
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
struct Code {
    /// The length of the mark that it began with.
    length: usize,
    /// The quotations before it: marks in code are no marks.
    quotations: Quotations,
    /// Whether it began in a line before, so that it is code only if it is closed in this paragraph.
    is_older: bool,
    /// Whether it is known to be code.
    is_certain: bool,
}

/// A block quote.
#[derive(Debug, Clone, Copy, Default)]
struct BlockQuote {
    /// The line begins with its mark.
    is_marked: bool,
    /// The line goes on with a paragraph of the quote, with or without a mark.
    is_open: bool,
    /// The quote is in a fence of its own.
    is_fenced: bool,
}

/// A look ahead for the end of inline code.
#[derive(Debug, Clone, Copy, Default)]
struct Search {
    at: usize,
    run: usize,
    is_blank: bool,
    /// Whether the call in it has ended: only then a blank line ends the paragraph.
    is_behind_call: bool,
}

/// Follows the text between calls.
#[derive(Debug)]
pub(super) struct Prose {
    line: Line,
    /// The column of the first letter of the line.
    indent: usize,
    fence: Option<Fence>,
    code: Option<Code>,
    search: Option<Search>,
    block_quote: BlockQuote,
    quotations: Quotations,
    /// Whether the text is in a call that stands between quotation marks; marks in it are no marks.
    is_in_shown: bool,
    aside: Option<Aside>,
    /// The last letter before the text at hand.
    before: Option<char>,
    /// The last one that is no blank.
    visible: Option<char>,
    /// Whether nothing of this counts.
    is_plain: bool,
}

/// A place where a call could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) at: usize,
    pub(super) spot: Spot,
    /// Whether it stands in code or in a quote.
    pub(super) is_code: bool,
    /// Whether that is so only if inline code is closed later.
    pub(super) is_doubtful: bool,
    /// Whether a thought or an echoed result could begin there.
    pub(super) may_hide: bool,
}

impl Candidate {
    /// A place in the open.
    pub(super) fn plain(at: usize, spot: Spot) -> Self {
        Self { at, spot, is_code: false, is_doubtful: false, may_hide: false }
    }
}

impl Prose {
    /// Follows a text from its beginning; if it is plain, code and quotes are like any other text.
    pub(super) fn new(is_plain: bool) -> Self {
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
            is_plain,
        }
    }

    /// Keeps what has to be known of a text that is let go of.
    pub(super) fn remember(&mut self, text: &str) {
        self.visible = self.visible_before(text);
        self.before = self.letter_before(text);
    }

    fn letter_before(&self, text: &str) -> Option<char> {
        text.chars().next_back().or(self.before)
    }

    /// The last letter before the end of a text that is no blank.
    fn visible_before(&self, text: &str) -> Option<char> {
        text.trim_end_matches([' ', '\t']).chars().next_back().or(self.visible)
    }

    /// The last letter before a place in its line.
    pub(super) fn word_before(&self, text: &str, at: usize) -> Option<char> {
        self.visible_before(&text[..at]).filter(|letter| *letter != '\n')
    }

    /// The thought, the comment or the result that the text is in.
    pub(super) fn aside(&self) -> Option<Aside> {
        self.aside
    }

    /// Begins such an element, or ends it: what was open before it still is.
    pub(super) fn hide(&mut self, aside: Option<Aside>) {
        self.aside = aside;
        self.line = Line::Middle;
    }

    /// The next place where a call could begin, from a byte on; everything before it has been followed.
    pub(super) fn next(&mut self, text: &str, from: usize, wants_lines: bool) -> Option<Candidate> {
        let bytes = text.as_bytes();
        if self.is_plain {
            let at = from + memchr(b'<', &bytes[from..])?;
            return Some(Candidate::plain(at, Spot::Tag));
        }
        let mut at = from;
        if let Some(aside) = self.aside {
            let found = match aside {
                Aside::Mention(_) => memchr2(b'<', b'\n', &bytes[at..]),
                _ => memchr2(b'<', b'-', &bytes[at..]),
            };
            at += found?;
            if bytes[at] != b'\n' {
                return Some(Candidate { is_code: true, ..Candidate::plain(at, Spot::Tag) });
            }
            self.hide(None);
        }
        while let Some(byte) = bytes.get(at).copied() {
            if self.quotations.wants_next()
                && let Some(letter) = text[at..].chars().next()
            {
                self.quotations.see(letter);
            }
            match self.line {
                Line::Start if wants_lines && self.is_first_letter(byte) => {
                    let is_doubtful = self.code.is_some() && !matches!(byte, b'`' | b'~');
                    return Some(Candidate { is_doubtful, ..Candidate::plain(at, Spot::Line) });
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
        Candidate { at, spot: Spot::Tag, is_code, is_doubtful: is_doubtful && !is_code, may_hide: !is_inside }
    }

    /// Follows one letter, or looks at it as part of something else: then the same place is given back.
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

    /// Goes over a place where no call began.
    pub(super) fn pass(&mut self, text: &str, candidate: Candidate) -> usize {
        if candidate.spot == Spot::Tag || self.is_plain { candidate.at + 1 } else { self.follow(text, candidate.at) }
    }

    /// Goes over a call that is only shown.
    pub(super) fn pass_shown(&mut self) {
        if let Some(aside) = &mut self.aside {
            *aside = aside.with_call();
        } else if let Some(code) = &mut self.code {
            code.is_certain = true;
        } else {
            self.is_in_shown = self.quotations.is_open();
        }
    }

    /// Sees whether a call between quotation marks ends at a tag; `None` if more has to come.
    pub(super) fn end_shown(&mut self, rest: &str, is_last: bool) -> Option<()> {
        if self.is_in_shown {
            let is_end = ends_call(rest, is_last)?;
            self.is_in_shown = !is_end;
        }
        Some(())
    }

    /// Decides whether a doubtful place is in code, by what follows; `None` if more has to come.
    pub(super) fn settle(&mut self, rest: &str, candidate: Candidate, is_last: bool) -> Option<bool> {
        let Some(code) = self.code else { return Some(false) };
        let mut search =
            self.search.take().unwrap_or(Search { is_behind_call: candidate.spot == Spot::Line, ..Search::default() });
        match search.go_on(rest, code.length, is_last) {
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

    /// Goes on behind a call.
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

    /// The next byte in the middle of a line that matters.
    fn skip(&self, bytes: &[u8], from: usize) -> usize {
        let rest = &bytes[from..];
        let found = if self.quotations.wants_next() {
            Some(0)
        } else if self.fence.is_some() || self.block_quote.is_marked {
            memchr2(b'\n', b'<', rest)
        } else if self.is_in_shown {
            memchr3(b'\n', b'<', b'`', rest)
        } else {
            rest.iter().position(|byte| MATTERS[usize::from(*byte)])
        };
        found.map_or(bytes.len(), |length| from + length)
    }

    /// Follows one byte; where it is looked at again as part of something else, the same place is given back.
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
                // A tag that the line begins with could begin a call.
                if byte == b'<' { at } else { at + 1 }
            }
            Line::Bullet { .. } | Line::Number => {
                self.line = match (self.line, byte) {
                    (Line::Bullet { mark }, b' ' | b'\t') => {
                        // A new item of a list is not part of the paragraph before it; a number could be.
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

    /// Follows the beginning of a line of a block quote, to know whether a paragraph goes on behind it.
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
        self.code = Some(Code { length, quotations: self.quotations, is_older: false, is_certain: false });
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
                // A fence ends the paragraph: a mark that was not closed was none.
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

impl Search {
    /// Looks on for the mark that closes inline code: `false` if the paragraph ends without it.
    fn go_on(&mut self, rest: &str, length: usize, is_last: bool) -> Option<bool> {
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
            // What is too long to be a call is not looked through.
            if self.at > CALL_BYTES {
                return Some(true);
            }
        }
        is_last.then_some(self.run == length)
    }
}

/// Sees whether the closing tag of a call begins a text; `None` if more has to come.
fn ends_call(rest: &str, is_last: bool) -> Option<bool> {
    let mut is_unsure = false;
    for name in CALLS {
        match closing_tag(rest, name) {
            Tag::Yes(_) => return Some(true),
            Tag::Unsure => is_unsure = true,
            Tag::No => {}
        }
    }
    (is_last || !is_unsure).then_some(false)
}

/// The bytes that matter in prose.
const MATTERS: [bool; 256] = {
    let mut matters = [false; 256];
    let mut byte = 0u8;
    loop {
        matters[byte as usize] = matches!(byte, b'\n' | b'<' | b'`') || may_begin_mark(byte);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    matters
};
