//! The quotation marks of a paragraph: which of them are open, so that a call between them is known to be a quotation.
//!
//! A mark is read by its neighbours, as typesetters do: one behind a blank opens, one behind a word closes, one inside of a word is an
//! apostrophe. In doubt a mark opens rather than closes, because a call that is quoted must not run. A blank line closes everything.

/// The most quotations that are told apart; deeper ones count as the deepest.
const DEPTH: usize = 32;

/// The longest word that an apostrophe may begin.
const ELISION: usize = 5;

/// Words that begin with an apostrophe, which is not a mark there; so do decades, `'90s`.
const ELISIONS: [&str; 5] = ["tis", "twas", "em", "til", "cause"];

/// A kind of quotation, by the mark that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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

/// The place of a mark between its neighbours.
#[derive(Debug, Clone, Copy)]
struct Place {
    before: Option<char>,
    after: char,
}

impl Place {
    /// Inside of a word.
    fn is_apostrophe(self) -> bool {
        self.before.is_some_and(is_word) && is_word(self.after)
    }

    /// Behind a blank or what opens, and before what is no blank.
    fn is_left(self) -> bool {
        let opens = self.before.is_none_or(|letter| letter.is_whitespace() || letter == ',' || is_opening(letter));
        opens && !self.after.is_whitespace() && !is_closing(self.after)
    }

    /// Where a mark opens a quotation in one of the same marks. Between ideographs there are no blanks to tell: there it closes.
    fn is_nested(self) -> bool {
        self.is_left() && !self.before.is_some_and(is_ideograph)
    }

    /// Where a mark can only be the end of a quotation that began elsewhere.
    fn is_right(self) -> bool {
        let closes = self.before.is_some_and(|letter| !letter.is_whitespace() && !is_opening(letter));
        closes && (self.after.is_whitespace() || is_closing(self.after))
    }

    /// Inches and feet.
    fn is_measure(self) -> bool {
        self.before.is_some_and(|letter| letter.is_ascii_digit())
    }
}

/// Letters and digits of scripts that part their words by blanks.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() && !is_ideograph(letter)
}

/// Scripts that write words without blanks between them, where a mark begins right behind a letter.
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

/// The quotations that are open, and what is not known yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotations {
    open: [Kind; DEPTH],
    depth: usize,
    /// A mark whose next letter has not come, and the letter before it.
    pending: Option<(char, Option<char>)>,
    /// The word behind a single mark that has just opened.
    word: Option<Word>,
}

/// The beginning of a word.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    letters: [u8; ELISION],
    length: usize,
}

impl Word {
    /// Whether the mark before it stands for letters that are left out.
    fn is_elision(&self) -> bool {
        let word = &self.letters[..self.length];
        let is_decade = matches!(word, [b'0'..=b'9', b'0'..=b'9'] | [b'0'..=b'9', b'0'..=b'9', b's']);
        is_decade || ELISIONS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
    }
}

impl Quotations {
    pub(super) fn new() -> Self {
        Self { open: [Kind::Straight; DEPTH], depth: 0, pending: None, word: None }
    }

    /// True if the text is between marks.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Ends all of them, as a blank line does.
    pub(super) fn close_all(&mut self) {
        *self = Self::new();
    }

    /// True if the next letter matters, whichever it is.
    pub(super) fn wants_next(&self) -> bool {
        self.pending.is_some() || self.word.is_some()
    }

    /// Sees which letter comes next. To see it again changes nothing.
    pub(super) fn see(&mut self, letter: char) {
        if let Some((mark, before)) = self.pending.take() {
            self.settle(mark, Place { before, after: letter });
        }
        if let Some(word) = self.word.filter(|_| !is_word(letter)) {
            self.word = None;
            if word.is_elision() && letter != '\'' && letter != '’' {
                self.depth -= 1;
            }
        }
    }

    /// Goes over a letter that was seen.
    pub(super) fn pass(&mut self, letter: char, before: Option<char>) {
        if let Some(word) = &mut self.word {
            match (word.letters.get_mut(word.length), u8::try_from(letter)) {
                (Some(place), Ok(byte)) => {
                    *place = byte;
                    word.length += 1;
                }
                _ => self.word = None,
            }
        }
        if is_mark(letter) {
            self.pending = Some((letter, before));
        }
    }

    /// Decides what a mark does.
    fn settle(&mut self, mark: char, place: Place) {
        match mark {
            '"' | '\u{ff02}' => self.straight(place),
            '\'' => {
                if !place.is_apostrophe() {
                    self.single(place);
                }
            }
            '“' if !place.is_left() && self.close(&[Kind::Low]) => {}
            '“' => self.push(Kind::Curly),
            '”' if self.close(&[Kind::Curly, Kind::Low, Kind::Right]) => {}
            '”' if place.is_left() => self.push(Kind::Right),
            '„' => self.push(Kind::Low),
            '‘' if !place.is_left() && self.close(&[Kind::LowSingle]) => {}
            '‘' => self.push_single(Kind::CurlySingle),
            '’' if !place.is_apostrophe() && !self.begins_word(place) => {
                self.close(&[Kind::CurlySingle, Kind::LowSingle]);
            }
            '‚' => self.push(Kind::LowSingle),
            '«' if !place.is_left() && self.close(&[Kind::AngleInward]) => {}
            '«' => self.push(Kind::Angle),
            '»' if self.close(&[Kind::Angle]) => {}
            '»' if place.is_left() => self.push(Kind::AngleInward),
            '‹' if !place.is_left() && self.close(&[Kind::SingleAngleInward]) => {}
            '‹' => self.push(Kind::SingleAngle),
            '›' if self.close(&[Kind::SingleAngle]) => {}
            '›' if place.is_left() => self.push(Kind::SingleAngleInward),
            '「' | '｢' => self.push(Kind::Corner),
            '『' => self.push(Kind::WhiteCorner),
            '」' | '｣' => {
                self.close(&[Kind::Corner]);
            }
            '』' => {
                self.close(&[Kind::WhiteCorner]);
            }
            _ => {}
        }
    }

    fn straight(&mut self, place: Place) {
        if self.has(Kind::Straight) {
            // A quotation that holds another in the same marks.
            if place.is_left() {
                self.push(Kind::Straight)
            } else {
                _ = self.close(&[Kind::Straight])
            }
            return;
        }
        let is_end = !place.is_left() && self.close(&[Kind::Low]);
        if !is_end && !place.is_measure() && !place.is_right() {
            self.push(Kind::Straight);
        }
    }

    fn single(&mut self, place: Place) {
        if self.has(Kind::Single) {
            if place.is_nested() { self.push_single(Kind::Single) } else { _ = self.close(&[Kind::Single]) }
        } else if !place.is_measure() && !place.is_right() && !place.before.is_some_and(is_word) {
            self.push_single(Kind::Single);
        }
    }

    /// An apostrophe that a word begins with, `’90s`.
    fn begins_word(&self, place: Place) -> bool {
        is_word(place.after) && place.before.is_none_or(char::is_whitespace)
    }

    fn has(&self, kind: Kind) -> bool {
        self.open[..self.depth].contains(&kind)
    }

    fn push(&mut self, kind: Kind) {
        if let Some(place) = self.open.get_mut(self.depth) {
            *place = kind;
            self.depth += 1;
        }
    }

    fn push_single(&mut self, kind: Kind) {
        if self.depth < DEPTH {
            self.push(kind);
            self.word = Some(Word::default());
        }
    }

    /// Ends the last quotation of one of these kinds, with those inside of it; `false` if there is none.
    fn close(&mut self, kinds: &[Kind]) -> bool {
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

/// True if a mark could begin with this byte.
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
            quotations.see(letter);
            if letter != '<' {
                quotations.pass(letter, before);
            }
            before = Some(letter);
        }
        quotations.is_open()
    }

    #[test]
    fn a_mark_before_a_word_opens_and_one_behind_it_closes() {
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
