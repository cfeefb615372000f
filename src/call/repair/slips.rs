//! Slips that have exactly one reading: quotes inside a string without a backslash, a closing bracket of the wrong kind, and a
//! closing bracket too many.
//!
//! The text is read as JSON up to its last bracket, with the slips as the only licence. A reading that needs to guess, because the same
//! text can be arguments in two ways, is none: the call is refused then.

use memchr::memchr;

use super::RepairList;
use super::extract::{end_of_comment, end_of_string, is_prose};
use crate::call::RepairKind;

/// The maximum number of places where the object may end that are tried.
const MAX_ENDS: usize = 16;
/// The maximum number of surplus brackets that are tried, and the maximum size of the text.
const MAX_SURPLUS: usize = 64;
const MAX_SURPLUS_BYTES: usize = 1 << 16;
/// The maximum length of a key that a quote is tested for.
const MAX_KEY: usize = 256;

/// The result of a search for slips.
pub(super) enum Slips {
    /// There are none that this module knows.
    None,
    /// There is one reading.
    Corrected {
        object: String,
        /// True if there is prose behind the object.
        had_prose: bool,
    },
    /// There is more than one reading, or none.
    Ambiguous,
}

/// Corrects the slips in a text that begins with an object. `has_more` is true if text behind the object may be a part of it.
pub(super) fn correct(text: &str, has_more: bool, list: &mut RepairList) -> Slips {
    let mut scanner = Scanner::new(text);
    let end = scanner.object();
    if let Some(end) = end {
        let after = text[end..].trim();
        if !after.starts_with(is_closing) && (after.is_empty() || is_prose(after)) {
            return match scanner.corrected(end, list) {
                Some(object) => Slips::Corrected { object, had_prose: !after.is_empty() },
                None => Slips::None,
            };
        }
    } else if !has_more {
        return Slips::None;
    }
    match without_surplus_bracket(text) {
        Some((object, had_prose)) => {
            list.add(RepairKind::Bracket, "", "a closing bracket too many was left out");
            Slips::Corrected { object, had_prose }
        }
        None => Slips::Ambiguous,
    }
}

/// True if a text can stand behind the object.
fn is_blank_or_prose(after: &str) -> bool {
    after.trim().chars().all(is_closing) || is_prose(after)
}

fn is_closing(letter: char) -> bool {
    matches!(letter, '}' | ']')
}

/// The text without the only closing bracket, or run of equal ones at its end, that can be left out; also true if there is prose behind
/// the object.
fn without_surplus_bracket(text: &str) -> Option<(String, bool)> {
    if text.len() > MAX_SURPLUS_BYTES {
        return None;
    }
    let mut readings = closing_brackets(text)?.into_iter().filter_map(|at| {
        // Tokens that the bracket separates stay apart.
        let shorter = format!("{} {}", &text[..at], &text[at + 1..]);
        let mut scanner = Scanner::new(&shorter);
        // With a comma before a bracket, that bracket may be the surplus one just as well.
        let end = scanner.object().filter(|_| scanner.slips.is_empty() && !scanner.has_trailing_comma)?;
        let after = shorter[end..].trim();
        // More than one is left out only at the end.
        let is_at_end = |letter: char| is_closing(letter) || letter.is_whitespace();
        let is_blank = after.is_empty() || after.chars().all(is_closing) && shorter[at..].chars().all(is_at_end);
        let is_end = is_blank || end > at && !after.starts_with(is_closing) && is_prose(after);
        is_end.then(|| (shorter[..end].to_owned(), !is_blank))
    });
    match (readings.next(), readings.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The closing brackets outside of strings, each run of equal ones as its first; `None` if there are too many.
fn closing_brackets(text: &str) -> Option<Vec<usize>> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut before) = (Vec::new(), 0, b' ');
    while let Some(byte) = bytes.get(at).copied() {
        if byte == b'"' {
            at = end_of_string(bytes, at);
            before = byte;
            continue;
        }
        if matches!(byte, b'}' | b']') && before != byte {
            found.push(at);
            if found.len() > MAX_SURPLUS {
                return None;
            }
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        at += 1;
    }
    Some(found)
}

/// The syntax that comes next.
#[derive(Clone, Copy)]
enum Expected {
    Key,
    Colon,
    Value,
    CommaOrEnd,
}

/// A reader of JSON that notes the slips.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The closing brackets of everything that is open.
    open: Vec<u8>,
    /// The slips in their order: quotes that lack a backslash, and brackets of the wrong kind.
    slips: Vec<Slip>,
    /// True if a comma stands before a closing bracket.
    has_trailing_comma: bool,
    /// The number of possible ends of the object so far.
    ends: usize,
    /// The number of bytes that may still be skipped in comments, some of which are looked at more than once.
    budget: usize,
}

/// A slip at a byte of the text.
#[derive(Clone, Copy)]
enum Slip {
    Quote(usize),
    Bracket {
        at: usize,
        /// The bracket that closes what is open.
        right: u8,
    },
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Self {
        let (open, slips) = (Vec::new(), Vec::new());
        Self { text, at: 0, open, slips, has_trailing_comma: false, ends: 0, budget: 4 * text.len() }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Reads the object and returns its end; `None` if the text is not an object, apart from the slips.
    fn object(&mut self) -> Option<usize> {
        let mut expected = Expected::Value;
        loop {
            self.at = self.skip_ignored(self.at);
            let byte = self.byte(self.at)?;
            expected = match (expected, byte) {
                (Expected::Value, b'{' | b'[') => {
                    self.open.push(if byte == b'{' { b'}' } else { b']' });
                    self.at += 1;
                    if byte == b'{' { Expected::Key } else { Expected::Value }
                }
                // An empty container, or a comma after the last value.
                (Expected::Key | Expected::CommaOrEnd | Expected::Value, b'}' | b']') => {
                    if self.close(byte)? {
                        return Some(self.at);
                    }
                    Expected::CommaOrEnd
                }
                (Expected::Key, b'"' | b'\'') => {
                    self.at = end_of_string(self.text.as_bytes(), self.at);
                    Expected::Colon
                }
                (Expected::Key, _) => self.word().map(|()| Expected::Colon)?,
                (Expected::Colon, b':') => {
                    self.at += 1;
                    Expected::Value
                }
                (Expected::Value, b'"') => self.string().map(|()| Expected::CommaOrEnd)?,
                (Expected::Value, b'\'') => {
                    self.at = end_of_string(self.text.as_bytes(), self.at);
                    Expected::CommaOrEnd
                }
                (Expected::Value, _) => self.word().map(|()| Expected::CommaOrEnd)?,
                (Expected::CommaOrEnd, b',') => {
                    self.at += 1;
                    self.has_trailing_comma |= matches!(self.next_byte(self.at), Some(b'}' | b']'));
                    if self.open.last() == Some(&b'}') { Expected::Key } else { Expected::Value }
                }
                (Expected::Colon | Expected::CommaOrEnd, _) => return None,
            };
        }
    }

    /// Closes a container; true if it was the last one.
    fn close(&mut self, byte: u8) -> Option<bool> {
        let right = self.open.pop()?;
        if right != byte {
            self.slips.push(Slip::Bracket { at: self.at, right });
        }
        self.at += 1;
        Some(self.open.is_empty())
    }

    /// Reads a number, a literal or a key without quotes.
    fn word(&mut self) -> Option<()> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.' | b'$');
        let length = self.text.as_bytes()[self.at..].iter().take_while(|byte| is_word(byte)).count();
        self.at += length;
        (length > 0).then_some(())
    }

    /// Reads the string of a value; `None` if it has no end, or more than one reading.
    fn string(&mut self) -> Option<()> {
        let start = self.at + 1;
        // A string in three quotes is read elsewhere.
        if self.text[start..].starts_with("\"\"") {
            return None;
        }
        let (mut at, mut quotes) = (start, Vec::new());
        loop {
            match self.byte(at)? {
                b'\\' => at += 1,
                b'"' if self.closes(at)? => break,
                b'"' => quotes.push(at),
                _ => {}
            }
            at += 1;
        }
        self.at = at + 1;
        if !quotes.is_empty() && !self.is_quotation(start, at, &quotes) {
            return None;
        }
        self.slips.extend(quotes.into_iter().map(Slip::Quote));
        Some(())
    }

    /// Decides whether a quote closes the string of a value, from the text behind it; `None` if there are too many possible ends.
    fn closes(&mut self, quote: usize) -> Option<bool> {
        let next = self.skip_ignored(quote + 1);
        match self.byte(next) {
            Some(b',') => {
                let after = self.skip_ignored(next + 1);
                Some(match self.byte(after) {
                    Some(b'}' | b']') => true,
                    Some(_) if self.open.last() == Some(&b'}') => self.is_key(after),
                    Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9') => true,
                    Some(_) => ["true", "false", "null", "True", "False", "None"]
                        .iter()
                        .any(|word| self.text.as_bytes()[after..].starts_with(word.as_bytes())),
                    None => false,
                })
            }
            Some(b'}' | b']') => {
                let (mut depth, mut at) = (self.open.len(), next);
                while depth > 0 && matches!(self.byte(at), Some(b'}' | b']')) {
                    depth -= 1;
                    at = self.skip_ignored(at + 1);
                }
                if depth > 0 {
                    return Some(self.byte(at) == Some(b','));
                }
                self.ends += 1;
                (self.ends <= MAX_ENDS).then(|| is_blank_or_prose(&self.text[at..]))
            }
            _ => Some(false),
        }
    }

    /// True if a key with its colon begins here.
    fn is_key(&mut self, at: usize) -> bool {
        let bytes = &self.text.as_bytes()[at..];
        let bytes = &bytes[..bytes.len().min(MAX_KEY)];
        let end = if bytes.first() == Some(&b'"') {
            let end = end_of_string(bytes, 0);
            if end == bytes.len() { 0 } else { end }
        } else {
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        };
        end > 0 && self.next_byte(at + end) == Some(b':')
    }

    /// True if the quotes in a string can only be a part of its text: pairs around words, or a single one behind a number or
    /// before a bracket.
    fn is_quotation(&mut self, start: usize, end: usize, quotes: &[usize]) -> bool {
        if quotes.iter().any(|at| self.next_byte(at + 1) == Some(b':')) {
            return false;
        }
        let bytes = self.text.as_bytes();
        let before = |at: usize| if at == start { b' ' } else { bytes[at - 1] };
        let after = |at: usize| if at + 1 == end { b' ' } else { bytes[at + 1] };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let is_opener = |byte: u8| byte.is_ascii_whitespace() || b"([{<=,:;+-/!|&~".contains(&byte);
        match *quotes {
            [first, last] if first == start && last + 1 == end => false,
            [only] => {
                let is_inch = before(only).is_ascii_digit() && after(only).is_ascii_whitespace();
                let is_bracket = !is_opener(before(only)) && b"}])".contains(&after(only));
                (is_inch || is_bracket) && bytes[only + 1..end].iter().any(u8::is_ascii_alphanumeric)
            }
            _ => {
                quotes.len().is_multiple_of(2)
                    && quotes.chunks_exact(2).all(|pair| {
                        // The quote closes an empty string then.
                        let next = bytes[pair[0] + 1..end].iter().find(|byte| !byte.is_ascii_whitespace());
                        let is_boundary = next.is_none_or(|next| b",:]}".contains(next));
                        let opens = !is_boundary && (is_opener(before(pair[0])) || is_word(after(pair[0])));
                        let closes = !is_opener(before(pair[1])) || !is_word(after(pair[1]));
                        opens && closes
                    })
            }
        }
    }

    /// The position of the next byte that is neither blank nor in a comment.
    fn skip_ignored(&mut self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        loop {
            let end = match bytes.get(at..).unwrap_or_default() {
                [byte, ..] if byte.is_ascii_whitespace() => {
                    at += 1;
                    continue;
                }
                [b'/', b'/' | b'*', ..] => end_of_comment(bytes, at),
                [b'#', ..] => memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length),
                _ => return at,
            };
            let Some(budget) = self.budget.checked_sub(end - at) else { return bytes.len() };
            self.budget = budget;
            at = end;
        }
    }

    fn next_byte(&mut self, at: usize) -> Option<u8> {
        let next = self.skip_ignored(at);
        self.byte(next)
    }

    /// The object with its slips corrected; `None` if there are none.
    fn corrected(&self, end: usize, list: &mut RepairList) -> Option<String> {
        if self.slips.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(end + self.slips.len());
        let mut copied = 0;
        for slip in &self.slips {
            match *slip {
                Slip::Quote(at) => {
                    out.push_str(&self.text[copied..at]);
                    out.push_str("\\\"");
                    copied = at + 1;
                    list.add(RepairKind::Quotes, "", "a quote inside a string was escaped");
                }
                Slip::Bracket { at, right } => {
                    out.push_str(&self.text[copied..at]);
                    out.push(char::from(right));
                    copied = at + 1;
                    list.add(RepairKind::Bracket, "", "a closing bracket of the wrong kind was exchanged");
                }
            }
        }
        out.push_str(&self.text[copied..end]);
        Some(out)
    }
}
