//! Lines, whitespace and indentation as Python sees them: the parts of a docstring reader that all styles share.

use std::borrow::Cow;
use std::iter;
use std::ops::BitOr;

use memchr::memchr;

/// The lines of a text with their offsets. Only `\n` ends a line; other line breaks are content.
pub(super) struct Lines<'a> {
    text: &'a str,
    next: Option<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, next: Some(0) }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next?;
        let rest = &self.text[at..];
        let length = find(rest, b'\n');
        self.next = length.map(|length| at + length + 1);
        Some((at, &rest[..length.unwrap_or(rest.len())]))
    }
}

/// Splits a text at the first occurrence of an ASCII character, which is in neither part.
pub(super) fn cut(text: &str, wanted: u8) -> Option<(&str, &str)> {
    find(text, wanted).map(|at| (&text[..at], &text[at + 1..]))
}

/// Finds the first occurrence of an ASCII character. Parsing a docstring is mostly a search for colons and line endings that are
/// a few bytes away, where blocks that the compiler vectorizes are faster than `memchr`, which has to be called.
#[inline]
pub(super) fn find(text: &str, wanted: u8) -> Option<usize> {
    find_byte(text.as_bytes(), wanted)
}

fn find_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    debug_assert!(wanted.is_ascii());
    let has_none = |block: &&[u8; 16]| !block.iter().map(|byte| *byte == wanted).fold(false, bool::bitor);
    let (blocks, rest) = bytes.as_chunks::<16>();
    let passed = blocks.iter().take_while(has_none).count();
    let (words, rest) = blocks.get(passed).map_or(rest, <[u8; 16]>::as_slice).as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = find_in_word(*word, wanted) {
            return Some(16 * passed + 8 * index + at);
        }
    }
    rest.iter().position(|byte| *byte == wanted).map(|at| 16 * passed + 8 * words.len() + at)
}

#[inline]
fn find_in_word(word: [u8; 8], wanted: u8) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // A byte that is equal becomes zero, and the lowest bit below marks the first zero byte.
    let difference = u64::from_le_bytes(word) ^ (ONES * u64::from(wanted));
    let zeros = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

/// Splits a text into fields, each from a line that begins with `marker` to the next such line.
pub(super) fn fields(text: &str, marker: u8) -> impl Iterator<Item = &str> {
    let mut starts =
        Lines::of(text).filter(move |(_, line)| line.as_bytes().first() == Some(&marker)).map(|(at, _)| at).peekable();
    iter::from_fn(move || {
        let start = starts.next()?;
        let end = starts.peek().copied().unwrap_or(text.len());
        Some(&text[start..end])
    })
}

const TAB_STOP: usize = 8;

/// True for whitespace as Python defines it: that of Unicode, and four old separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Removes whitespace at both ends.
pub(super) fn trim(text: &str) -> &str {
    trim_end(trim_start(text))
}

/// Removes whitespace at the start.
pub(super) fn trim_start(text: &str) -> &str {
    let text = &text[leading_spaces(text.as_bytes())..];
    if starts_visibly(text) { text } else { text.trim_start_matches(is_space) }
}

/// Removes whitespace at the end.
pub(super) fn trim_end(text: &str) -> &str {
    if text.as_bytes().last().is_some_and(u8::is_ascii_graphic) { text } else { text.trim_end_matches(is_space) }
}

/// Counts the spaces at the start. Nearly all whitespace is spaces, and words are cheaper than characters.
#[inline]
fn leading_spaces(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8]);
        if difference != 0 {
            return 8 * index + difference.trailing_zeros() as usize / 8;
        }
    }
    8 * words.len() + rest.iter().take_while(|byte| **byte == b' ').count()
}

fn starts_visibly(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_graphic)
}

/// A docstring as Python's `inspect.cleandoc` leaves it, with the places of its lines: tabs are expanded, the indentation that all
/// lines after the first share is removed, and so are empty lines at both ends.
#[derive(Default)]
pub(crate) struct Cleaned<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) lines: Vec<Line>,
}

/// The place of a line in its text.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(super) start: usize,
    /// The offset of the first character that is not whitespace, or the end.
    pub(super) content: usize,
    pub(super) end: usize,
}

impl Line {
    #[inline]
    fn between(text: &str, start: usize, end: usize) -> Self {
        let line = &text.as_bytes()[start..end];
        let spaces = leading_spaces(line);
        let content = match line.get(spaces) {
            None => end,
            Some(byte) if byte.is_ascii_graphic() => start + spaces,
            Some(_) => end - text[start..end].trim_start_matches(is_space).len(),
        };
        Self { start, content, end }
    }

    /// The line itself.
    #[inline]
    pub(super) fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    #[inline]
    pub(super) fn has_content(self) -> bool {
        self.content < self.end
    }

    /// True for a line that begins with content.
    #[inline]
    pub(super) fn is_flush(self) -> bool {
        self.start == self.content && self.has_content()
    }
}

impl<'a> Cleaned<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        if memchr(b'\t', text.as_bytes()).is_none() {
            return Self::without_tabs(text);
        }
        let expanded = expand_tabs(text);
        let Cleaned { text, lines } = Cleaned::without_tabs(&expanded);
        Self { text: Cow::Owned(text.into_owned()), lines }
    }

    fn without_tabs(text: &'a str) -> Self {
        let Some((_, below)) = cut(text, b'\n') else {
            let text = trim_start(text);
            return Self { text: Cow::Borrowed(text), lines: vec![Line { start: 0, content: 0, end: text.len() }] };
        };
        let mut margins = Lines::of(below).filter_map(|(_, line)| indentation(line));
        // The first line with content nearly always has the smallest one; if not, that fails.
        let likely = margins.next().unwrap_or(0);
        let cleaned = Self::without_margin(text, likely);
        cleaned.or_else(|| Self::without_margin(text, margins.min()?)).unwrap_or_default()
    }

    /// Removes so many characters from each line but the first. Fails if a line with content has less whitespace.
    fn without_margin(text: &str, margin: usize) -> Option<Self> {
        let (mut cleaned, mut lines) = (String::with_capacity(text.len()), Vec::with_capacity(32));
        let is_ascii = text.is_ascii();
        for (start, line) in Lines::of(text) {
            let line = Line::between(text, start, start + line.len());
            let width = line.content - start;
            let removed = if start == 0 {
                Some(width)
            } else if is_ascii {
                (margin <= width).then_some(margin)
            } else {
                text[start..line.content].char_indices().map(|(at, _)| at).chain([width]).nth(margin)
            };
            let removed = match removed {
                Some(removed) => removed,
                None if line.has_content() => return None,
                None => width,
            };
            if cleaned.is_empty() {
                lines.clear(); // only empty lines so far
            } else {
                cleaned.push('\n');
            }
            let from = start + removed;
            let at = cleaned.len();
            cleaned.push_str(&text[from..line.end]);
            lines.push(Line { start: at, content: at + line.content - from, end: cleaned.len() });
        }
        while let Some(last) = lines.pop_if(|line| line.start == line.end) {
            cleaned.truncate(last.start.saturating_sub(1));
        }
        Some(Self { text: Cow::Owned(cleaned), lines })
    }
}

/// The same, without the places.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    Cleaned::of(text).text
}

/// Cleans a description whose first line follows a name, so that its indentation does not count.
pub(super) fn clean_below_first(text: &str) -> Cow<'_, str> {
    let Some((first, rest)) = cut(text, b'\n') else {
        return Cow::Borrowed(text);
    };
    match (first, clean(rest)) {
        ("", rest) => rest,
        (first, rest) if rest.is_empty() => Cow::Borrowed(first),
        (first, rest) => Cow::Owned([first, "\n", &rest].concat()),
    }
}

/// Counts the characters before the content of a line. A line without content does not count.
fn indentation(line: &str) -> Option<usize> {
    let content = trim_start(line);
    (!content.is_empty()).then(|| line[..line.len() - content.len()].chars().count())
}

fn expand_tabs(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len() + 64);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let width = TAB_STOP - column % TAB_STOP;
                expanded.extend(std::iter::repeat_n(' ', width));
                column += width;
            }
            '\n' | '\r' => {
                expanded.push(c);
                column = 0;
            }
            _ => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_their_offsets() {
        let lines: Vec<_> = Lines::of("é\n\nb\r\n").collect();

        assert_eq!(lines, [(0, "é"), (3, ""), (4, "b\r"), (7, "")]);
    }

    #[test]
    fn a_field_runs_to_the_next_marker_at_a_line_start() {
        let found: Vec<_> = fields(":a: x\n  :y\n:b: z", b':').collect();

        assert_eq!(found, [":a: x\n  :y\n", ":b: z"]);
    }

    #[test]
    fn a_byte_is_found_at_any_place() {
        for length in 0..40 {
            for at in 0..length {
                let text = format!("{}:{}:", "\u{7f}é"[..1].repeat(at), "甲;9".repeat(length));

                assert_eq!(find(&text, b':'), Some(at));
                assert_eq!(find(&text, b'\n'), None);
                assert_eq!(cut(&text, b':'), text.split_once(':'));
            }
        }
    }

    #[test]
    fn the_first_line_does_not_count_for_the_margin() {
        assert_eq!(clean("  One\n    two\n      three\n"), "One\ntwo\n  three");
    }

    #[test]
    fn only_empty_lines_are_dropped_at_the_ends() {
        assert_eq!(clean("\n\n     \n    x\n\n"), " \nx");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(clean("a\tb\n\tc\n        d\te\r\tf"), "a       b\nc\nd       e\r        f");
    }

    #[test]
    fn a_margin_is_counted_in_characters() {
        assert_eq!(clean("S\n\u{3000}\u{3000}a\n  b\n\u{a0}"), "S\na\nb");
    }

    #[test]
    fn old_separators_are_whitespace() {
        assert_eq!(trim("\x1c a\x1f\u{85}"), "a");
    }

    #[test]
    fn lines_below_the_first_are_cleaned_on_their_own() {
        assert_eq!(clean_below_first("a\n      b\n      c"), "a\nb\nc");
        assert_eq!(clean_below_first("\n    b\n     c"), "b\nc");
        assert_eq!(clean_below_first("a \n    \n"), "a ");
    }
}
