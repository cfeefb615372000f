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
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    debug_assert!(wanted.is_ascii());
    let bytes = text.as_bytes();
    let has_none = |block: &&[u8; 16]| !block.iter().map(|byte| *byte == wanted).fold(false, bool::bitor);
    let passed = 16 * bytes.as_chunks::<16>().0.iter().take_while(has_none).count();
    let (words, rest) = bytes[passed..].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        // A byte that is equal becomes zero, and the lowest bit below marks the first zero byte.
        let difference = u64::from_le_bytes(*word) ^ (ONES * u64::from(wanted));
        let zeros = difference.wrapping_sub(ONES) & !difference & HIGH_BITS;
        if zeros != 0 {
            return Some(passed + 8 * index + zeros.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == wanted).map(|at| passed + 8 * words.len() + at)
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
    let text = &text[spaces(text)..];
    if starts_visibly(text) { text } else { text.trim_start_matches(is_space) }
}

/// Removes whitespace at the end.
pub(super) fn trim_end(text: &str) -> &str {
    if text.as_bytes().last().is_some_and(u8::is_ascii_graphic) { text } else { text.trim_end_matches(is_space) }
}

/// Counts the spaces at the start. Nearly all whitespace is spaces, and bytes are cheaper than characters.
fn spaces(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b' ').count()
}

fn starts_visibly(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_graphic)
}

/// Cleans a docstring as Python's `inspect.cleandoc` does: expands tabs, removes the indentation that all lines after the first
/// share, and removes empty lines at both ends.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if memchr(b'\t', text.as_bytes()).is_some() {
        return Cow::Owned(dedent(&expand_tabs(text)).into_owned());
    }
    dedent(text)
}

/// Cleans a description whose first line follows a name, so that its indentation does not count.
pub(super) fn clean_below_first(text: &str) -> String {
    let Some((first, rest)) = cut(text, b'\n') else {
        return text.to_owned();
    };
    match (first, clean(rest)) {
        ("", rest) => rest.into_owned(),
        (first, rest) if rest.is_empty() => first.to_owned(),
        (first, rest) => [first, "\n", &rest].concat(),
    }
}

fn dedent(text: &str) -> Cow<'_, str> {
    let Some((first, below)) = cut(text, b'\n') else {
        return Cow::Borrowed(trim_start(text));
    };
    // The first line with content nearly always has the smallest margin; if not, the join below finds out.
    let likely = Lines::of(below).find_map(|(_, line)| indentation(line)).unwrap_or(0);
    let cleaned = join_without_margin(first, below, likely).or_else(|| {
        let margin = Lines::of(below).filter_map(|(_, line)| indentation(line)).min()?;
        join_without_margin(first, below, margin)
    });
    Cow::Owned(cleaned.unwrap_or_default())
}

/// Joins lines without their margin. Fails if a line with content has less of it.
fn join_without_margin(first: &str, below: &str, margin: usize) -> Option<String> {
    let mut cleaned = String::with_capacity(first.len() + below.len() + 1);
    cleaned.push_str(trim_start(first));
    for (_, line) in Lines::of(below) {
        if !cleaned.is_empty() {
            cleaned.push('\n');
        }
        let indented = line.as_bytes().get(..margin).is_some_and(|start| start.iter().all(|byte| *byte == b' '));
        if indented {
            cleaned.push_str(&line[margin..]);
        } else if indentation(line).is_none_or(|indentation| indentation >= margin) {
            cleaned.push_str(line.char_indices().nth(margin).map_or("", |(at, _)| &line[at..]));
        } else {
            return None;
        }
    }
    cleaned.truncate(cleaned.trim_end_matches('\n').len());
    Some(cleaned)
}

/// Counts the characters before the content of a line. A line without content does not count.
fn indentation(line: &str) -> Option<usize> {
    let spaces = spaces(line);
    let rest = &line[spaces..];
    if starts_visibly(rest) {
        return Some(spaces);
    }
    let content = rest.trim_start_matches(is_space);
    let others = rest[..rest.len() - content.len()].chars().count();
    (!content.is_empty()).then_some(spaces + others)
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
