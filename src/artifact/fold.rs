//! Letters and spaces in a form in which look-alikes are equal, with the way back to the original text.

use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

use crate::json::invisible::is_invisible;

/// The letter that stands for all letters that look like it: quotes, dashes, spaces, and what Unicode calls compatible.
///
/// `None` for a letter that stands for several, such as a ligature.
pub(super) fn one(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return Some(letter);
    }
    match letter {
        '‘' | '’' | '‚' | '‛' | '′' | '‵' | 'ʼ' => Some('\''),
        '“' | '”' | '„' | '‟' | '″' | '‶' => Some('"'),
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' | '－' => Some('-'),
        '\u{2028}' | '\u{2029}' | '\u{85}' => Some('\n'),
        _ if letter.is_whitespace() => Some(' '),
        _ => {
            let (mut first, mut rest) = (None, 0);
            decompose_compatible(letter, |part| {
                if first.is_none() {
                    first = Some(part);
                } else {
                    rest += 1;
                }
            });
            first.filter(|_| rest == 0)
        }
    }
}

/// The longest text that can be folded, in bytes: its places fit into 32 bits, even if every letter stands for eleven.
pub(super) const LONGEST: usize = 1 << 28;

/// A text in which runs of spaces are one space, spaces at the ends of lines are gone, line ends are `\n`, and look-alikes
/// are equal.
#[derive(Default)]
pub(super) struct Folded {
    /// The letters.
    pub(super) text: String,
    /// For each letter the bytes of the original text that it stands for, and its place in `text`.
    letters: Vec<Letter>,
    /// True if the last letter is a run of spaces that may go on.
    is_run: bool,
}

/// Small, because there is one for each letter of a text.
#[derive(Debug, Clone, Copy)]
struct Letter {
    at: u32,
    start: u32,
    end: u32,
    class: u8,
}

impl Folded {
    /// Folds a text of at most [`LONGEST`] bytes.
    pub(super) fn of(text: &str) -> Self {
        Self::fold::<true>(text)
    }

    /// The letters without the way back, which takes a tenth of the time and memory.
    pub(super) fn text_of(text: &str) -> String {
        Self::fold::<false>(text).text
    }

    fn fold<const HAS_PLACES: bool>(text: &str) -> Self {
        let places = if HAS_PLACES { text.len() } else { 0 };
        let mut folded = Self { letters: Vec::with_capacity(places), ..Self::default() };
        folded.text.reserve(text.len());
        // Marks wait for the end of their run, because they have an order.
        let mut marks: Vec<(char, Letter)> = Vec::new();
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            let start = at;
            if !HAS_PLACES && is_plain(text.as_bytes()[start]) {
                let bytes = text.as_bytes()[start..].iter();
                at += bytes.take_while(|byte| is_plain(**byte)).count();
                folded.add_marks::<HAS_PLACES>(&mut marks);
                folded.text.push_str(&text[start..at]);
                folded.is_run = false;
                continue;
            }
            at += letter.len_utf8();
            let (start, end) = (number(start), number(at));
            let mut push = |part: char| {
                let class = if part.is_ascii() { 0 } else { canonical_combining_class(part) };
                let place = Letter { at: 0, start, end, class };
                if class != 0 {
                    return marks.push((part, place));
                }
                folded.add_marks::<HAS_PLACES>(&mut marks);
                folded.add::<HAS_PLACES>(part, place);
            };
            match one(letter) {
                Some('\t') => push(' '),
                Some(letter) if !letter.is_ascii() && is_invisible(letter) => {}
                Some(letter) => push(letter),
                None => decompose_compatible(letter, |part| push(one(part).unwrap_or(part))),
            }
        }
        folded.add_marks::<HAS_PLACES>(&mut marks);
        folded
    }

    /// Adds the marks after a letter in their canonical order.
    fn add_marks<const HAS_PLACES: bool>(&mut self, marks: &mut Vec<(char, Letter)>) {
        marks.sort_by_key(|(_, letter)| letter.class);
        for (mark, place) in marks.drain(..) {
            self.add::<HAS_PLACES>(mark, place);
        }
    }

    /// Adds a letter, or makes the last one longer: a run of spaces, and the line end after it.
    fn add<const HAS_PLACES: bool>(&mut self, letter: char, place: Letter) {
        let is_space = matches!(letter, ' ' | '\r');
        let ends_line = matches!(letter, '\r' | '\n');
        if self.is_run && (is_space || letter == '\n') {
            if let Some(last) = self.letters.last_mut() {
                last.end = place.end;
            }
            if ends_line {
                self.text.pop();
                self.text.push('\n');
            }
        } else {
            if HAS_PLACES {
                self.letters.push(Letter { at: number(self.text.len()), ..place });
            }
            self.text.push(if ends_line { '\n' } else { letter });
        }
        self.is_run = is_space;
    }

    /// The bytes of the original text that a range of `text` stands for; none if it begins or ends inside of a letter.
    pub(super) fn original(&self, range: Range<usize>) -> Option<Range<usize>> {
        let index = |at: usize| self.letters.partition_point(|letter| letter.at < number(at));
        let (first, after) = (index(range.start), index(range.end));
        let (head, tail) = (self.letters.get(first)?, self.letters.get(after.checked_sub(1)?)?);
        let is_cut_before = first.checked_sub(1).is_some_and(|before| self.letters[before].end > head.start);
        let is_cut_after = self.letters.get(after).is_some_and(|next| next.start < tail.end || next.class != 0);
        (!is_cut_before && !is_cut_after).then_some(head.start as usize..tail.end as usize)
    }
}

/// True for a letter that is folded to itself whatever is beside it.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// A place in a text of at most [`LONGEST`] bytes.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str) -> String {
        Folded::of(text).text
    }

    #[test]
    fn look_alikes_are_equal() {
        assert_eq!(fold("“It’s”\u{a0}– a\tb…"), "\"It's\" - a b...");
        assert_eq!(fold("ﬁ Ａ é"), fold("fi A e\u{301}"));
        assert_eq!(fold("e\u{301}\u{323}"), fold("e\u{323}\u{301}"));
        assert_eq!(fold("a\u{200b}b"), "ab");
    }

    #[test]
    fn spaces_count_once_and_not_at_the_end_of_a_line() {
        assert_eq!(fold("a \t b  \r\n  c \rd\u{2028}e "), "a b\n c\nd\ne ");
    }

    #[test]
    fn a_range_leads_back_to_whole_letters() {
        let text = "x  ﬁ\r\ny";
        let folded = Folded::of(text);

        let of = |part: &str| folded.text.find(part).map(|at| folded.original(at..at + part.len()));

        assert_eq!(of("fi").flatten().map(|range| &text[range]), Some("ﬁ"));
        assert_eq!(of("f"), Some(None), "half of a ligature");
        assert_eq!(of("i\n"), Some(None));
        assert_eq!(of(" fi\n").flatten().map(|range| &text[range]), Some("  ﬁ\r\n"));
    }

    proptest! {
        #[test]
        fn the_letters_are_the_same_without_places(text in "[a-c ﬁé\u{301}\u{323}\u{200b}\u{a0}\t\r\n’]{0,24}|.*") {
            prop_assert_eq!(Folded::text_of(&text), Folded::of(&text).text);
        }
    }
}
