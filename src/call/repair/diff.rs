//! The list of repairs, from a comparison of a text with its repaired form.
//!
//! The crate that repairs the text returns the result, but not what it changed. The result is JSON, so the comparison goes
//! through its tokens: whatever the broken text has in place of a token shows what was wrong there.

use super::RepairList;
use super::extract::end_of_comment;
use crate::call::{Change, RepairKind};
use crate::schema::check::{PathStep, ValuePath};

/// Compares a text with its repaired form and lists the differences. True if a bracket, a closing quote or a value is missing,
/// so that the text may be truncated; `None` if a difference cannot be explained.
pub(super) fn compare(broken: &str, repaired: &str, list: &mut RepairList) -> Option<bool> {
    let mut comparison = Comparison {
        broken: Cursor(broken),
        repaired: Cursor(repaired),
        list,
        path: Vec::new(),
        is_partial: false,
        last: Token::Other,
        lacks_colon: false,
    };
    comparison.run()?;
    Some(comparison.is_partial)
}

/// The opening quote of a string in the broken text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpeningQuote {
    Plain,
    /// Single or curly quotes, in which a double quote is text.
    Other,
    /// With a backslash before the quote.
    Escaped,
    Missing,
}

/// A token that decides what may follow it without a comma or a colon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A string in double quotes.
    Quoted,
    /// A text without quotes.
    Bare,
    Other,
}

/// A step of the path to the current value.
enum OpenStep {
    Key(String),
    Index(usize),
}

struct Comparison<'a, 'l> {
    broken: Cursor<'a>,
    repaired: Cursor<'a>,
    list: &'l mut RepairList,
    path: Vec<OpenStep>,
    is_partial: bool,
    last: Token,
    /// True if the colon before the value is missing.
    lacks_colon: bool,
}

impl Comparison<'_, '_> {
    /// Returns `None` if the two texts can no longer be matched.
    fn run(&mut self) -> Option<()> {
        loop {
            self.repaired.skip_space();
            self.skip_ignored();
            let Some(next) = self.repaired.peek() else { return self.rest() };
            match next {
                '{' | '[' => {
                    if !self.broken.take_if(if next == '{' { "{" } else { "[" }) {
                        return None;
                    }
                    self.repaired.next();
                    (self.last, self.lacks_colon) = (Token::Other, false);
                    self.path.push(if next == '{' { OpenStep::Key(String::new()) } else { OpenStep::Index(0) });
                }
                '}' | ']' => self.closing(next)?,
                ',' => self.comma()?,
                ':' => self.colon()?,
                '"' => self.string()?,
                _ => self.scalar()?,
            }
        }
    }

    /// Skips space and comments, which only the broken text has.
    fn skip_ignored(&mut self) {
        loop {
            self.broken.skip_space();
            let rest = self.broken.0;
            if rest.starts_with('#') || rest.starts_with("//") || rest.starts_with("/*") {
                let end = if rest.starts_with('#') {
                    rest.find('\n').unwrap_or(rest.len())
                } else {
                    end_of_comment(rest.as_bytes(), 0)
                };
                self.broken.skip(end);
                self.note(RepairKind::Comment, "a comment was left out");
            } else if self.broken.take_if("...") {
                // Something was left out.
                self.is_partial = true;
                self.note(RepairKind::Syntax, "an ellipsis was left out");
                self.broken.take_if(",");
            } else {
                return;
            }
        }
    }

    fn closing(&mut self, bracket: char) -> Option<()> {
        self.last = Token::Other;
        self.path.pop();
        while self.broken.take_if(",") {
            self.note(RepairKind::Comma, "a comma after the last value was left out");
            self.skip_ignored();
        }
        match self.broken.peek() {
            Some(found) if found == bracket => {
                self.broken.next();
            }
            None => {
                self.is_partial = true;
                self.note(RepairKind::Closed, "what was open at the end was closed");
            }
            Some('}' | ']' | '"' | ',') => {
                self.is_partial = true;
                self.note(RepairKind::Bracket, "a missing closing bracket was put in");
            }
            Some(_) => return None,
        }
        self.repaired.next();
        Some(())
    }

    fn comma(&mut self) -> Option<()> {
        self.repaired.next();
        if !self.broken.take_if(",") {
            if !self.broken.take_if(";") {
                self.is_partial |= self.broken.0.is_empty();
                // Without quotes, the text on either side may be a part of the other.
                if self.last == Token::Bare || !self.begins_clearly() {
                    return None;
                }
            }
            self.note(RepairKind::Comma, "a missing comma was put in");
        }
        while self.skipped_comma() {
            self.note(RepairKind::Comma, "a comma too many was left out");
        }
        match self.path.last_mut() {
            Some(OpenStep::Index(index)) => *index += 1,
            Some(OpenStep::Key(key)) => key.clear(),
            None => {}
        }
        Some(())
    }

    /// True if the next token begins with a quote or a bracket, or if there is none. Other quotes may be text behind a string.
    fn begins_clearly(&self) -> bool {
        let is_clear = |next| matches!(next, '"' | '{' | '[') || (is_other_quote(next) && self.last != Token::Quoted);
        self.broken.peek().is_none_or(is_clear)
    }

    fn skipped_comma(&mut self) -> bool {
        self.skip_ignored();
        self.broken.take_if(",")
    }

    fn colon(&mut self) -> Option<()> {
        self.repaired.next();
        if self.broken.take_if(":") {
            return Some(());
        }
        self.is_partial |= self.broken.0.is_empty();
        let is_written = self.broken.take_if("=>") || self.broken.take_if("=");
        // A word without quotes and colon may as well be a part of the text before it.
        if self.last == Token::Bare && !is_written {
            return None;
        }
        self.lacks_colon = !is_written;
        self.note(RepairKind::Colon, "a missing colon was put in");
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let is_key = matches!(self.path.last(), Some(OpenStep::Key(key)) if key.is_empty());
        self.repaired.next();
        let quote = self.opening_quote()?;
        let lacks_colon = std::mem::take(&mut self.lacks_colon);
        if lacks_colon && quote == OpeningQuote::Missing {
            return None; // a quote may be missing, and not the colon
        }
        let start = self.broken;
        let mut text = String::new();
        loop {
            let (wanted, is_escaped) = self.repaired.next_unescaped()?;
            if wanted == '"' && !is_escaped {
                break;
            }
            if is_key {
                text.push(wanted);
            }
            self.character(wanted, quote)?;
        }
        if quote == OpeningQuote::Missing && self.broken.peek() == Some('"') && !self.lacks_quote_only(start, is_key) {
            return None;
        }
        self.closing_quote(quote);
        self.last = match quote {
            OpeningQuote::Plain => Token::Quoted,
            OpeningQuote::Missing => Token::Bare,
            OpeningQuote::Other | OpeningQuote::Escaped => Token::Other,
        };
        if is_key && let Some(OpenStep::Key(key)) = self.path.last_mut() {
            *key = text;
        }
        Some(())
    }

    /// True if a text without an opening quote that ends with a closing one lacks nothing else: it is the value of a key in quotes.
    /// Elsewhere the quote may belong before what precedes it, and a backslash may be an escape or itself.
    fn lacks_quote_only(&self, start: Cursor<'_>, is_key: bool) -> bool {
        let text = &start.0[..start.0.len() - self.broken.0.len()];
        let is_value = matches!(self.path.last(), Some(OpenStep::Key(_))) && !is_key;
        is_value && self.last != Token::Bare && !text.contains('\\')
    }

    /// Reads the opening quote of a string.
    fn opening_quote(&mut self) -> Option<OpeningQuote> {
        let quote = match self.broken.peek()? {
            '"' => OpeningQuote::Plain,
            '\\' if self.broken.0.starts_with("\\\"") => {
                self.broken.skip(1);
                self.note(RepairKind::Escape, "a backslash before a quote was left out");
                OpeningQuote::Escaped
            }
            other if is_other_quote(other) => {
                self.note(RepairKind::Quotes, "other quotes were exchanged for those of JSON");
                OpeningQuote::Other
            }
            '/' | '{' | '[' | '}' | ']' | ',' | ':' => return None,
            _ => {
                self.note(RepairKind::Quotes, "missing quotes were put in");
                return Some(OpeningQuote::Missing);
            }
        };
        self.broken.next();
        Some(quote)
    }

    /// Reads one character of the broken text, in any notation.
    fn character(&mut self, wanted: char, quote: OpeningQuote) -> Option<()> {
        let before = self.broken;
        let found = self.broken.next()?;
        if found == wanted && found != '\\' {
            match found {
                // Those with one reading were escaped before.
                '"' if quote != OpeningQuote::Other => return None,
                '"' => self.note(RepairKind::Quotes, "a quote inside a string was escaped"),
                _ if found < ' ' => self.note(RepairKind::Newline, "a line break or tab inside a string was escaped"),
                _ => {}
            }
            return Some(());
        }
        if found != '\\' {
            return None;
        }
        if self.broken.escape() == Some(wanted) {
            return Some(());
        }
        // A backslash that stands for itself, or one that was dropped where it does not begin an escape.
        self.broken = before;
        self.broken.next();
        let is_dropped =
            |next: Option<char>| next == Some(wanted) && !matches!(wanted, 'b' | 'f' | 'n' | 'r' | 't' | 'u');
        if wanted == '\\' || is_dropped(self.broken.next()) {
            self.note(RepairKind::Escape, "a backslash that begins no escape was escaped");
            return Some(());
        }
        None
    }

    fn closing_quote(&mut self, quote: OpeningQuote) {
        if quote == OpeningQuote::Escaped && self.broken.take_if("\\\"") {
            return;
        }
        match self.broken.peek() {
            Some('"') => {}
            _ if quote == OpeningQuote::Missing => return,
            Some(other) if is_other_quote(other) => {}
            _ => {
                // The string may be truncated.
                self.is_partial = true;
                return self.note(RepairKind::Quotes, "a missing closing quote was put in");
            }
        }
        self.broken.next();
    }

    fn scalar(&mut self) -> Option<()> {
        (self.last, self.lacks_colon) = (Token::Other, false);
        let wanted = self.repaired.token();
        if wanted.is_empty() {
            return None;
        }
        let before = self.broken;
        let found = self.broken.token();
        if found == wanted {
            return Some(());
        }
        let folded = found.to_ascii_lowercase();
        let read = |before: String| Change::ReadAs { before, after: wanted.to_owned() };
        let (what, change) = match folded.trim_start_matches(['-', '+']) {
            "" if wanted == "null" => {
                self.broken = before;
                self.is_partial = true;
                (RepairKind::Syntax, Change::Said("a missing value was read as null".into()))
            }
            "nan" | "inf" | "infinity" => {
                (RepairKind::NotANumber, Change::Said(format!("{found} became {wanted}").into()))
            }
            "true" | "false" | "none" | "null" | "undefined" | "nil" => (RepairKind::Literal, read(found.to_owned())),
            _ if completed_number(found) == wanted => {
                self.is_partial |= self.broken.0.is_empty();
                (RepairKind::Number, read(shortened(found)))
            }
            _ => return None,
        };
        self.note_change(what, change);
        Some(())
    }

    /// Reads the rest of the broken text after the end of the repaired one.
    fn rest(&mut self) -> Option<()> {
        loop {
            self.skip_ignored();
            match self.broken.next() {
                None => return Some(()),
                Some(',') => self.note(RepairKind::Comma, "a comma after the last value was left out"),
                Some(';' | '`' | '\'') => self.note(RepairKind::Syntax, "what follows the object was left out"),
                Some(_) => return None,
            }
        }
    }

    fn place(&self) -> ValuePath {
        let named = self.path.iter().filter(|step| !matches!(step, OpenStep::Key(key) if key.is_empty()));
        named
            .map(|step| match step {
                OpenStep::Key(key) => PathStep::Key(key.as_str().into()),
                OpenStep::Index(index) => PathStep::Index(*index),
            })
            .collect()
    }

    fn note(&mut self, what: RepairKind, text: &'static str) {
        self.note_change(what, Change::Said(text.into()));
    }

    fn note_change(&mut self, what: RepairKind, change: Change) {
        if !self.list.count_again(what, &change) {
            let place = self.place();
            self.list.push(what, place, change);
        }
    }
}

/// A number with the zero that JSON wants beside its point, and without its plus.
fn completed_number(found: &str) -> String {
    let (sign, digits) = match found.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", found.strip_prefix('+').unwrap_or(found)),
    };
    let (before, after) =
        (if digits.starts_with('.') { "0" } else { "" }, if digits.ends_with('.') { "0" } else { "" });
    [sign, before, digits, after].concat()
}

/// True for a quote that models write in place of the one of JSON.
const fn is_other_quote(letter: char) -> bool {
    matches!(letter, '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{b4}')
}

fn shortened(text: &str) -> String {
    const MAX_LENGTH: usize = 80;
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The rest of a text that is almost JSON.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn peek(self) -> Option<char> {
        self.0.chars().next()
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    }

    fn take_if(&mut self, prefix: &str) -> bool {
        let is_there = self.0.starts_with(prefix);
        if is_there {
            self.skip(prefix.len());
        }
        is_there
    }

    /// Reads one character of a JSON string; true if it is written as an escape.
    fn next_unescaped(&mut self) -> Option<(char, bool)> {
        match self.next()? {
            '\\' => Some((self.escape()?, true)),
            plain => Some((plain, false)),
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = self.unit()?;
                if (0xD800..0xDC00).contains(&high) && self.take_if("\\u") {
                    let low = self.unit()?;
                    char::decode_utf16([high, low]).next()?.ok()?
                } else {
                    char::from_u32(u32::from(high))?
                }
            }
            other => other,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.0.get(..4)?;
        self.skip(4);
        u16::from_str_radix(digits, 16).ok()
    }

    /// Reads a number or a word.
    fn token(&mut self) -> &'a str {
        let end = self.0.find(|letter: char| letter.is_whitespace() || ",:{}[]\"'/#".contains(letter));
        self.skip(end.unwrap_or(self.0.len()))
    }
}
