//! Where in a message a call could begin: not in code fences, not in inline code, not in quotes, not in thoughts or comments.
//!
//! Markdown is followed as far as a model writes it, byte by byte, so that it does not matter how the text was cut.

use memchr::{memchr, memchr2, memchr3};

use super::Spot;

/// How far a line has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Only blanks and markers of lists so far.
    Start,
    /// The bullet of a list, if a blank follows.
    Bullet,
    /// The number of a list, if a dot or a bracket follows.
    Number,
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
}

/// Quotation marks that a call may stand between, to be shown.
const MARKS: [(char, &str); 7] = [('"', "\""), ('\'', "'"), ('“', "”"), ('„', "“"), ('‘', "’"), ('«', "»"), ('»', "«")];

/// Follows the text between calls.
#[derive(Debug)]
pub(super) struct Prose {
    line: Line,
    fence: Option<Fence>,
    /// The length of the mark that inline code began with.
    code: Option<usize>,
    /// Whether a call stands in that code, so that it does not end with the line.
    code_goes_on: bool,
    is_quoted: bool,
    /// The mark that ends a quotation with a call in it.
    quote: Option<&'static str>,
    /// What ends the thought or the comment that the text is in.
    hidden: Option<&'static str>,
    /// The last two letters before the text at hand, the last of them first.
    before: [Option<char>; 2],
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
    /// The mark that ends the quotation which began right before it.
    pub(super) quote: Option<&'static str>,
}

impl Candidate {
    /// A place in the open.
    pub(super) fn plain(at: usize, spot: Spot) -> Self {
        Self { at, spot, is_code: false, quote: None }
    }
}

impl Prose {
    /// Follows a text from its beginning; if it is plain, code and quotes are like any other text.
    pub(super) fn new(is_plain: bool) -> Self {
        Self {
            line: Line::Start,
            fence: None,
            code: None,
            code_goes_on: false,
            is_quoted: false,
            quote: None,
            hidden: None,
            before: [None; 2],
            is_plain,
        }
    }

    /// Keeps what has to be known of a text that is let go of.
    pub(super) fn remember(&mut self, text: &str) {
        self.before = self.letters_before(text);
    }

    fn letters_before(&self, text: &str) -> [Option<char>; 2] {
        let mut letters = text.chars().rev().map(Some).chain(self.before);
        [letters.next().flatten(), letters.next().flatten()]
    }

    /// What ends the thought or the comment that the text is in.
    pub(super) fn hidden(&self) -> Option<&'static str> {
        self.hidden
    }

    /// Begins a thought or a comment, or ends it: then nothing in it matters any more.
    pub(super) fn hide(&mut self, end: Option<&'static str>) {
        *self = Self { line: Line::Middle, hidden: end, before: self.before, ..Self::new(self.is_plain) };
    }

    /// Whether a place is the first of its line.
    pub(super) fn begins_line(&self, text: &str, at: usize) -> bool {
        matches!(self.letters_before(&text[..at])[0], None | Some('\n'))
    }

    /// The mark that ends a quotation which begins right before a place.
    fn quotation(&self, text: &str, at: usize) -> Option<&'static str> {
        let [mark, before] = self.letters_before(&text[..at]);
        let (mark, end) = MARKS.into_iter().find(|(known, _)| Some(*known) == mark)?;
        // A mark behind a word or a full stop ends a quotation.
        let is_free = before.is_none_or(|letter| letter.is_whitespace() || "([{:=-–—,;".contains(letter));
        (is_free || matches!(mark, '“' | '„' | '‘' | '«')).then_some(end)
    }

    /// The next place where a call could begin, from a byte on; everything before it has been followed.
    pub(super) fn next(&mut self, text: &str, from: usize, wants_lines: bool) -> Option<Candidate> {
        let bytes = text.as_bytes();
        if self.is_plain {
            let at = from + memchr(b'<', &bytes[from..])?;
            return Some(Candidate::plain(at, Spot::Tag));
        }
        if self.hidden.is_some() {
            let at = from + memchr2(b'<', b'-', &bytes[from..])?;
            return Some(Candidate { is_code: true, ..Candidate::plain(at, Spot::Tag) });
        }
        let mut at = from;
        while let Some(byte) = bytes.get(at) {
            match self.line {
                Line::Start if wants_lines && self.is_first_letter(*byte) => {
                    return Some(Candidate::plain(at, Spot::Line));
                }
                Line::Middle => {
                    at = self.skip(bytes, at);
                    if bytes.get(at) == Some(&b'<') {
                        let is_code = self.fence.is_some() || self.is_quoted || self.code.is_some();
                        let quote = if is_code { None } else { self.quote.or_else(|| self.quotation(text, at)) };
                        return Some(Candidate { at, spot: Spot::Tag, is_code: is_code || quote.is_some(), quote });
                    }
                }
                _ => {}
            }
            if self.quote.is_some_and(|end| bytes[at..].starts_with(end.as_bytes()))
                && self.letters_before(&text[..at])[0] == Some('>')
            {
                self.quote = None;
            }
            at = self.step(bytes, at);
        }
        None
    }

    /// Goes over a place where no call began.
    pub(super) fn pass(&mut self, text: &str, candidate: Candidate) -> usize {
        if candidate.spot == Spot::Tag || self.is_plain {
            candidate.at + 1
        } else {
            self.step(text.as_bytes(), candidate.at)
        }
    }

    /// Goes over a call that is only shown.
    pub(super) fn pass_shown(&mut self, candidate: Candidate) {
        self.quote = candidate.quote;
        self.code_goes_on |= self.code.is_some();
    }

    /// Goes on behind a call.
    pub(super) fn resume(&mut self, is_new_line: bool) {
        self.line = if is_new_line { Line::Start } else { Line::Middle };
    }

    fn is_first_letter(&self, byte: u8) -> bool {
        self.fence.is_none()
            && self.code.is_none()
            && !self.is_quoted
            && self.quote.is_none()
            && !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'>')
    }

    /// The next byte in the middle of a line that matters.
    fn skip(&self, bytes: &[u8], from: usize) -> usize {
        let rest = &bytes[from..];
        if self.quote.is_some() {
            return from;
        }
        let found = if self.fence.is_some() || self.is_quoted {
            memchr2(b'\n', b'<', rest)
        } else {
            memchr3(b'\n', b'<', b'`', rest)
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
                    b' ' | b'\t' | b'\r' => Line::Start,
                    b'`' | b'~' => Line::Run { mark: byte, length: 1, is_first: true },
                    _ if self.fence.is_some() => Line::Middle,
                    b'>' => {
                        self.is_quoted = true;
                        Line::Middle
                    }
                    b'-' | b'*' | b'+' => Line::Bullet,
                    b'0'..=b'9' => Line::Number,
                    _ => Line::Middle,
                };
                // A tag that the line begins with could begin a call.
                if byte == b'<' { at } else { at + 1 }
            }
            Line::Bullet | Line::Number => {
                self.line = match (self.line, byte) {
                    (Line::Bullet, b' ' | b'\t') => Line::Start,
                    (Line::Number, b'0'..=b'9') => Line::Number,
                    (Line::Number, b'.' | b')') => Line::Bullet,
                    _ => Line::Middle,
                };
                if self.line == Line::Middle { at } else { at + 1 }
            }
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
                    self.code = Some(length);
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
                if byte == b'`' && self.fence.is_none() && !self.is_quoted {
                    self.line = Line::Run { mark: byte, length: 1, is_first: false };
                }
                at + 1
            }
        }
    }

    fn end_run(&mut self, mark: u8, length: usize, is_first: bool) {
        self.line = Line::Middle;
        match self.fence {
            Some(fence) if is_first && fence.mark == mark && length >= fence.length => self.line = Line::AfterFence,
            None if is_first && length >= 3 && self.code.is_none() => self.line = Line::Info { mark, length },
            None if mark == b'`' => match self.code {
                None => self.code = Some(length),
                Some(open) if open == length => {
                    self.code = None;
                    self.code_goes_on = false;
                }
                Some(_) => {}
            },
            _ => {}
        }
    }

    fn end_line(&mut self) {
        let is_blank = self.line == Line::Start;
        if let Line::Run { mark, length, is_first } = self.line {
            self.end_run(mark, length, is_first);
        }
        match self.line {
            Line::Info { mark, length } => self.fence = Some(Fence { mark, length }),
            Line::AfterFence => self.fence = None,
            _ => {}
        }
        if is_blank {
            self.quote = None;
        }
        if is_blank || !self.code_goes_on {
            self.code = None;
            self.code_goes_on = false;
        }
        self.is_quoted = false;
        self.line = Line::Start;
    }
}
