//! The open quotation marks of a paragraph, so that a call between them is known to be a quotation.
//!
//! The neighbours of a mark decide: after a blank it opens, after a word it closes, inside a word it is an apostrophe.
//! In doubt a mark opens rather than closes, because a quoted call must not run. A blank line closes everything.

/// The maximum depth of nested quotations; deeper ones are not counted.
const DEPTH: usize = 32;

/// The maximum length of a word that an apostrophe can begin.
const ELISION: usize = 5;

/// Words that begin with an apostrophe, which is not a quotation mark there. Decades such as `'90s` do, too.
const ELISIONS: [&str; 5] = ["tis", "twas", "em", "til", "cause"];

/// A kind of quotation, by the mark that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteKind {
    /// `"…"`
    Straight,
    /// `'…'`
    Single,
    /// `“…”`
    Curly,
    /// `‘…’`
    CurlySingle,
    /// `„…“`, also closed by `”` and, as keyboards have no other, by `"`
    Low,
    /// `‚…‘`, also closed by `’`
    LowSingle,
    /// `”…”`
    Right,
    /// `«…»`
    Angle,
    /// `»…«`
    AngleInward,
    /// `‹…›`
    SingleAngle,
    /// `›…‹`
    SingleAngleInward,
    /// `「…」`
    Corner,
    /// `『…』`
    WhiteCorner,
}

/// The characters before and after a mark.
#[derive(Debug, Clone, Copy)]
struct Neighbours {
    before: Option<char>,
    after: char,
}

impl Neighbours {
    /// True inside a word.
    fn is_apostrophe(self) -> bool {
        self.before.is_some_and(is_word) && is_word(self.after)
    }

    /// True for an apostrophe at the start of a word, `’90s`.
    fn begins_word(self) -> bool {
        is_word(self.after) && self.before.is_none_or(char::is_whitespace)
    }

    /// True after a blank or an opening character and before one that is neither blank nor closing.
    fn is_left(self) -> bool {
        let opens = self.before.is_none_or(|letter| letter.is_whitespace() || letter == ',' || is_opening(letter));
        opens && !self.after.is_whitespace() && !is_closing(self.after)
    }

    /// True if the mark opens a quotation within one of the same marks. After an ideograph, where no blank can decide, it closes.
    fn is_nested(self) -> bool {
        self.is_left() && !self.before.is_some_and(is_ideograph)
    }

    /// True if the mark can only end a quotation.
    fn is_right(self) -> bool {
        let closes = self.before.is_some_and(|letter| !letter.is_whitespace() && !is_opening(letter));
        closes && (self.after.is_whitespace() || is_closing(self.after))
    }

    /// True after a digit, where the mark stands for inches or feet.
    fn is_measure(self) -> bool {
        self.before.is_some_and(|letter| letter.is_ascii_digit())
    }
}

/// True for letters and digits of scripts that separate words by blanks.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() && !is_ideograph(letter)
}

/// True for scripts that write words without blanks, where a mark can open right after a letter.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{e00}'..='\u{eff}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

fn is_opening(letter: char) -> bool {
    matches!(
        letter,
        '(' | '[' | '{' | '<' | ':' | '=' | '-' | '–' | '—' | '/' | '|' | '\\' | '*' | '_' | '~' | '+' | '“' | '‘'
    ) || is_ideograph(letter)
}

fn is_closing(letter: char) -> bool {
    ".,;:!?)]}…。，、；：！？）】》」』".contains(letter)
}

/// The open quotations, and the mark that is not decided yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotations {
    open: [QuoteKind; DEPTH],
    depth: usize,
    /// A mark whose next character has not arrived, and the character before it.
    pending: Option<(char, Option<char>)>,
    /// The word after a single mark that has just opened.
    word: Option<Word>,
}

/// The beginning of a word.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    letters: [u8; ELISION],
    length: usize,
}

impl Word {
    /// True if the mark before it stands for omitted letters.
    fn is_elision(&self) -> bool {
        let word = &self.letters[..self.length];
        let is_decade = matches!(word, [b'0'..=b'9', b'0'..=b'9'] | [b'0'..=b'9', b'0'..=b'9', b's']);
        is_decade || ELISIONS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
    }
}

impl Quotations {
    pub(super) fn new() -> Self {
        Self { open: [QuoteKind::Straight; DEPTH], depth: 0, pending: None, word: None }
    }

    /// True if the text is between marks.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Closes all of them, as a blank line does.
    pub(super) fn close_all(&mut self) {
        *self = Self::new();
    }

    /// True if the next character decides something, whichever it is.
    pub(super) fn wants_next(&self) -> bool {
        self.pending.is_some() || self.word.is_some()
    }

    /// Decides the pending mark by the next character. Doing it twice changes nothing.
    pub(super) fn peek(&mut self, letter: char) {
        if let Some((mark, before)) = self.pending.take() {
            self.decide(mark, Neighbours { before, after: letter });
        }
        if let Some(word) = self.word.filter(|_| !is_word(letter)) {
            self.word = None;
            if word.is_elision() && letter != '\'' && letter != '’' {
                self.depth -= 1;
            }
        }
    }

    /// Passes a character that was peeked at.
    pub(super) fn pass(&mut self, letter: char, before: Option<char>) {
        if let Some(word) = &mut self.word {
            match (word.letters.get_mut(word.length), u8::try_from(letter)) {
                (Some(slot), Ok(byte)) => {
                    *slot = byte;
                    word.length += 1;
                }
                _ => self.word = None,
            }
        }
        if is_mark(letter) {
            self.pending = Some((letter, before));
        }
    }

    /// Opens or closes a quotation.
    fn decide(&mut self, mark: char, near: Neighbours) {
        match mark {
            '"' | '\u{ff02}' => self.straight(near),
            '\'' if !near.is_apostrophe() => self.single(near),
            '“' if !near.is_left() && self.close(&[QuoteKind::Low]) => {}
            '“' => self.push(QuoteKind::Curly),
            '”' if self.close(&[QuoteKind::Curly, QuoteKind::Low, QuoteKind::Right]) => {}
            '”' if near.is_left() => self.push(QuoteKind::Right),
            '„' => self.push(QuoteKind::Low),
            '‘' if !near.is_left() && self.close(&[QuoteKind::LowSingle]) => {}
            '‘' => self.push_single(QuoteKind::CurlySingle),
            '’' if !near.is_apostrophe() && !near.begins_word() => {
                self.close(&[QuoteKind::CurlySingle, QuoteKind::LowSingle]);
            }
            '‚' => self.push(QuoteKind::LowSingle),
            '«' if !near.is_left() && self.close(&[QuoteKind::AngleInward]) => {}
            '«' => self.push(QuoteKind::Angle),
            '»' if self.close(&[QuoteKind::Angle]) => {}
            '»' if near.is_left() => self.push(QuoteKind::AngleInward),
            '‹' if !near.is_left() && self.close(&[QuoteKind::SingleAngleInward]) => {}
            '‹' => self.push(QuoteKind::SingleAngle),
            '›' if self.close(&[QuoteKind::SingleAngle]) => {}
            '›' if near.is_left() => self.push(QuoteKind::SingleAngleInward),
            '「' | '｢' => self.push(QuoteKind::Corner),
            '『' => self.push(QuoteKind::WhiteCorner),
            '」' | '｣' => {
                self.close(&[QuoteKind::Corner]);
            }
            '』' => {
                self.close(&[QuoteKind::WhiteCorner]);
            }
            _ => {}
        }
    }

    fn straight(&mut self, near: Neighbours) {
        if self.has(QuoteKind::Straight) {
            // A quotation within another in the same marks.
            if near.is_left() {
                self.push(QuoteKind::Straight);
            } else {
                self.close(&[QuoteKind::Straight]);
            }
            return;
        }
        let is_end = !near.is_left() && self.close(&[QuoteKind::Low]);
        if !is_end && !near.is_measure() && !near.is_right() {
            self.push(QuoteKind::Straight);
        }
    }

    fn single(&mut self, near: Neighbours) {
        if self.has(QuoteKind::Single) {
            if near.is_nested() {
                self.push_single(QuoteKind::Single);
            } else {
                self.close(&[QuoteKind::Single]);
            }
        } else if !near.is_measure() && !near.is_right() && !near.before.is_some_and(is_word) {
            self.push_single(QuoteKind::Single);
        }
    }

    fn has(&self, kind: QuoteKind) -> bool {
        self.open[..self.depth].contains(&kind)
    }

    fn push(&mut self, kind: QuoteKind) {
        if let Some(slot) = self.open.get_mut(self.depth) {
            *slot = kind;
            self.depth += 1;
        }
    }

    fn push_single(&mut self, kind: QuoteKind) {
        if self.depth < DEPTH {
            self.push(kind);
            self.word = Some(Word::default());
        }
    }

    /// Closes the last quotation of one of these kinds and those inside it; `false` if there is none.
    fn close(&mut self, kinds: &[QuoteKind]) -> bool {
        let last = self.open[..self.depth].iter().rposition(|open| kinds.contains(open));
        self.depth = last.unwrap_or(self.depth);
        last.is_some()
    }
}

fn is_mark(letter: char) -> bool {
    matches!(
        letter,
        '"' | '\''
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | '‚'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '「'
            | '」'
            | '『'
            | '』'
            | '｢'
            | '｣'
            | '\u{ff02}'
    )
}

/// True if the UTF-8 form of a mark can begin with this byte.
pub(super) const fn may_begin_mark(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | 0xc2 | 0xe2 | 0xe3 | 0xef)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open_after(text: &str) -> bool {
        let mut quotations = Quotations::new();
        let mut before = None;
        for letter in text.chars().chain(['<']) {
            quotations.peek(letter);
            if letter != '<' {
                quotations.pass(letter, before);
            }
            before = Some(letter);
        }
        quotations.is_open()
    }

    #[test]
    fn a_mark_before_a_word_opens_and_one_after_it_closes() {
        for (open, close) in [
            ("\"", "\""),
            ("'", "'"),
            ("“", "”"),
            ("„", "“"),
            ("„", "\""),
            ("”", "”"),
            ("‘", "’"),
            ("‚", "‘"),
            ("«", "»"),
            ("»", "«"),
            ("‹", "›"),
            ("›", "‹"),
            ("「", "」"),
            ("『", "』"),
        ] {
            assert!(is_open_after(&format!("so {open}word")), "{open}");
            assert!(is_open_after(&format!("so {open}word ")), "{open}");
            assert!(!is_open_after(&format!("so {open}word{close} ")), "{open}");
            assert!(!is_open_after(&format!("so {open}word.{close}, ")), "{open}");
            assert!(is_open_after(&format!("so {open}word{close} and {open}")), "{open}");
        }
    }

    #[test]
    fn the_first_bytes_of_the_marks_are_known() {
        for letter in ('\0'..='\u{ffff}').filter(|letter| is_mark(*letter)) {
            assert!(may_begin_mark(letter.to_string().as_bytes()[0]), "{letter}");
        }
    }

    #[test]
    fn an_apostrophe_opens_nothing() {
        for text in
            ["don't ", "the '90s ", "the ‘90s, ", "’tis ", "'em ", "the users' ", "6' ", "rock 'n' roll ", "O’Neil "]
        {
            assert!(!is_open_after(text), "{text}");
        }
        for text in ["'90 ways ", "'90", "'90s"] {
            assert!(!is_open_after(text), "{text}");
        }
        for text in ["'9 ways ", "'1990s ", "'them ", "'90s' is 'a "] {
            assert!(is_open_after(text), "{text}");
        }
    }

    #[test]
    fn quotations_stand_in_one_another() {
        assert!(is_open_after("\"one \"two\" three "));
        assert!(!is_open_after("\"one \"two\" three\" "));
        assert!(is_open_after("“one “two” three "));
        assert!(!is_open_after("“one ‘two” three "));
        assert!(is_open_after(&"“".repeat(DEPTH + 8)));
        assert!(is_open_after(&("“".repeat(DEPTH + 8) + &"” ".repeat(DEPTH - 1))));
    }
}
