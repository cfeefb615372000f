//! Walking a text line by line, knowing where each line starts, and cutting it at single bytes.

use std::iter;

use memchr::{Memchr, memchr, memchr_iter};

/// The lines of a text with their offsets. Only `\n` ends a line; whatever else looks like a line break is content.
pub(super) struct Lines<'a> {
    text: &'a str,
    breaks: Memchr<'a>,
    next: Option<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, breaks: memchr_iter(b'\n', text.as_bytes()), next: Some(0) }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next?;
        let end = self.breaks.next();
        self.next = end.map(|end| end + 1);
        Some((at, &self.text[at..end.unwrap_or(self.text.len())]))
    }
}

/// Cuts a text in two at the first occurrence of an ASCII character, which is in neither part.
pub(super) fn cut(text: &str, wanted: u8) -> Option<(&str, &str)> {
    find(text, wanted).map(|at| (&text[..at], &text[at + 1..]))
}

/// Finds the first occurrence of an ASCII character, eight bytes at a time: reading a docstring is mostly looking for
/// line endings, and `str::find` is made for any character in longer texts.
#[inline]
pub(super) fn find(text: &str, wanted: u8) -> Option<usize> {
    debug_assert!(wanted.is_ascii());
    memchr(wanted, text.as_bytes())
}

/// Cuts a text into fields, each from a line that begins with `marker` to the next such line.
pub(super) fn fields(text: &str, marker: u8) -> impl Iterator<Item = &str> {
    let mut starts =
        Lines::of(text).filter(move |(_, line)| line.as_bytes().first() == Some(&marker)).map(|(at, _)| at).peekable();
    iter::from_fn(move || {
        let start = starts.next()?;
        let end = starts.peek().copied().unwrap_or(text.len());
        Some(&text[start..end])
    })
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
    fn a_byte_is_found_wherever_it_is() {
        for length in 0..40 {
            for at in 0..length {
                let text = format!("{}:{}:", "\u{7f}é"[..1].repeat(at), "甲;9".repeat(length));

                assert_eq!(find(&text, b':'), Some(at));
                assert_eq!(find(&text, b'\n'), None);
                assert_eq!(cut(&text, b':'), text.split_once(':'));
            }
        }
    }
}
