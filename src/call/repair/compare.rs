//! Finds out what was mended, by walking through a text and its mended form side by side.
//!
//! The crate that mends says what came out, but not what it did. What it wrote is JSON, so that leads the way: whatever
//! the other text has in the place of a token tells what was wrong there.

use super::cursor::Cursor;
use super::cut::end_of_comment;
use super::list::List;
use crate::call::{Change, RepairKind};
use crate::schema::check::{PathStep, ValuePath};

/// Compares a text with its mended form, and adds the differences to the list. True if a bracket, a closing quote or a value
/// is missing, so that the text may be only a part of what was meant.
pub(super) fn compare(broken: &str, mended: &str, list: &mut List) -> bool {
    let mut walk = Walk { broken: Cursor(broken), mended: Cursor(mended), list, path: Vec::new(), is_partial: false };
    if walk.run().is_none() {
        let (before, after) = ("the text from here on".to_owned(), shortened(walk.mended.0.trim()));
        walk.list.push(RepairKind::Syntax, walk.place(), Change::ReadAs { before, after });
        walk.is_partial |= !is_balanced(broken);
    }
    walk.is_partial
}

/// How the broken text begins a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    /// With a backslash before the quote.
    Escaped,
    Missing,
}

enum Step {
    Key(String),
    Index(usize),
}

struct Walk<'a, 'l> {
    broken: Cursor<'a>,
    mended: Cursor<'a>,
    list: &'l mut List,
    path: Vec<Step>,
    is_partial: bool,
}

impl Walk<'_, '_> {
    /// `None` where the two can no longer be matched.
    fn run(&mut self) -> Option<()> {
        loop {
            self.mended.skip_space();
            self.skip_ignored();
            let Some(next) = self.mended.peek() else { return self.rest() };
            match next {
                '{' | '[' => {
                    if !self.broken.take_if(if next == '{' { "{" } else { "[" }) {
                        return None;
                    }
                    self.mended.next();
                    self.path.push(if next == '{' { Step::Key(String::new()) } else { Step::Index(0) });
                }
                '}' | ']' => self.closing(next)?,
                ',' => self.comma(),
                ':' => self.colon(),
                '"' => self.string()?,
                _ => self.scalar()?,
            }
        }
    }

    /// Space and comments, which only the broken text has.
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
                // It stands for something that nobody knows.
                self.is_partial = true;
                self.note(RepairKind::Syntax, "an ellipsis was left out");
                self.broken.take_if(",");
            } else {
                return;
            }
        }
    }

    fn closing(&mut self, bracket: char) -> Option<()> {
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
        self.mended.next();
        Some(())
    }

    fn comma(&mut self) {
        self.mended.next();
        if !self.broken.take_if(",") {
            if !self.broken.take_if(";") {
                self.is_partial |= self.broken.0.is_empty();
            }
            self.note(RepairKind::Comma, "a missing comma was put in");
        }
        while self.skipped_comma() {
            self.note(RepairKind::Comma, "a comma too many was left out");
        }
        match self.path.last_mut() {
            Some(Step::Index(index)) => *index += 1,
            Some(Step::Key(key)) => key.clear(),
            None => {}
        }
    }

    fn skipped_comma(&mut self) -> bool {
        self.skip_ignored();
        self.broken.take_if(",")
    }

    fn colon(&mut self) {
        self.mended.next();
        if self.broken.take_if(":") {
            return;
        }
        self.is_partial |= self.broken.0.is_empty();
        let _ = self.broken.take_if("=>") || self.broken.take_if("=");
        self.note(RepairKind::Colon, "a missing colon was put in");
    }

    fn string(&mut self) -> Option<()> {
        let is_key = matches!(self.path.last(), Some(Step::Key(key)) if key.is_empty());
        self.mended.next();
        let quote = self.opening_quote()?;
        let mut text = String::new();
        loop {
            let (wanted, is_escaped) = self.mended.next_unescaped()?;
            if wanted == '"' && !is_escaped {
                break;
            }
            if is_key {
                text.push(wanted);
            }
            self.character(wanted)?;
        }
        self.closing_quote(quote);
        if is_key && let Some(Step::Key(key)) = self.path.last_mut() {
            *key = text;
        }
        Some(())
    }

    /// Takes the quote that begins a string.
    fn opening_quote(&mut self) -> Option<Quote> {
        let quote = match self.broken.peek()? {
            '"' => Quote::Plain,
            '\\' if self.broken.0.starts_with("\\\"") => {
                self.broken.skip(1);
                self.note(RepairKind::Escape, "a backslash before a quote was left out");
                Quote::Escaped
            }
            '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{b4}' => {
                self.note(RepairKind::Quotes, "other quotes were exchanged for those of JSON");
                Quote::Plain
            }
            '/' | '{' | '[' | '}' | ']' | ',' | ':' => return None,
            _ => {
                self.note(RepairKind::Quotes, "missing quotes were put in");
                return Some(Quote::Missing);
            }
        };
        self.broken.next();
        Some(quote)
    }

    /// Takes one character out of the broken text, however it is written there.
    fn character(&mut self, wanted: char) -> Option<()> {
        let before = self.broken;
        let found = self.broken.next()?;
        if found == wanted && found != '\\' {
            match found {
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
        // A backslash that stands for itself, or one that was dropped.
        self.broken = before;
        self.broken.next();
        if wanted == '\\' || self.broken.next() == Some(wanted) {
            self.note(RepairKind::Escape, "a backslash that begins no escape was escaped");
            return Some(());
        }
        None
    }

    fn closing_quote(&mut self, quote: Quote) {
        if quote == Quote::Escaped && self.broken.take_if("\\\"") {
            return;
        }
        match self.broken.peek() {
            Some('"') => {}
            _ if quote == Quote::Missing => return,
            Some('\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{b4}') => {}
            _ => {
                // Where the string was to end, and whether all of it is there, nobody knows.
                self.is_partial = true;
                return self.note(RepairKind::Quotes, "a missing closing quote was put in");
            }
        }
        self.broken.next();
    }

    fn scalar(&mut self) -> Option<()> {
        let wanted = self.mended.token();
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
            word if word.starts_with(|first: char| first.is_ascii_digit() || first == '.') || found == "-" => {
                self.is_partial |= self.broken.0.is_empty();
                (RepairKind::Number, read(shortened(found)))
            }
            _ => return None,
        };
        self.note_change(what, change);
        Some(())
    }

    /// What is left when the mended text is at its end.
    fn rest(&mut self) -> Option<()> {
        loop {
            self.skip_ignored();
            match self.broken.next() {
                None => return Some(()),
                Some('}' | ']') => self.note(RepairKind::Bracket, "a bracket that closes nothing was left out"),
                Some(',') => self.note(RepairKind::Comma, "a comma after the last value was left out"),
                Some(';' | '`' | '"' | '\'') => self.note(RepairKind::Syntax, "what follows the object was left out"),
                Some(_) => return None,
            }
        }
    }

    fn place(&self) -> ValuePath {
        let named = self.path.iter().filter(|step| !matches!(step, Step::Key(key) if key.is_empty()));
        named
            .map(|step| match step {
                Step::Key(key) => PathStep::Key(key.as_str().into()),
                Step::Index(index) => PathStep::Index(*index),
            })
            .collect()
    }

    fn note(&mut self, what: RepairKind, text: &'static str) {
        self.note_change(what, Change::Said(text.into()));
    }

    fn note_change(&mut self, what: RepairKind, change: Change) {
        if !self.list.counts(what, &change) {
            let place = self.place();
            self.list.push(what, place, change);
        }
    }
}

/// Whether every bracket that is opened outside of strings is closed.
fn is_balanced(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0i64, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    depth <= 0 && !in_string
}

fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
