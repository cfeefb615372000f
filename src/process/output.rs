//! The output of a program: decoded as UTF-8, and kept in a limited space.

use std::fmt::Write;

/// Bytes of a text that is not long.
const SHORT_BYTES: usize = 4096;

/// Decodes the bytes of a buffer and removes them from it. Bytes that are not UTF-8 become U+FFFD.
///
/// The beginning of a character whose rest may follow stays in the buffer, unless the output has ended.
pub(super) fn decode(buffer: &mut Vec<u8>, has_ended: bool, mut sink: impl FnMut(&str)) {
    let (mut at, mut rest) = (0, 0);
    for chunk in buffer.utf8_chunks() {
        if !chunk.valid().is_empty() {
            sink(chunk.valid());
        }
        let invalid = chunk.invalid();
        at += chunk.valid().len() + invalid.len();
        if invalid.is_empty() {
            continue;
        }
        // Only the last bytes can be the beginning of a character.
        let is_at_end = !has_ended && at == buffer.len();
        if is_at_end && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none()) {
            rest = invalid.len();
        } else {
            sink("\u{fffd}");
        }
    }
    buffer.drain(..buffer.len() - rest);
}

/// The head and the tail of a text.
#[derive(Debug)]
pub(super) struct Excerpt {
    /// The largest number of bytes of the head, and of the tail.
    half: usize,
    head: String,
    /// Up to twice as long as needed, so that it is seldom moved.
    tail: String,
    omitted: u64,
}

impl Excerpt {
    /// An excerpt of a text that is still empty.
    pub(super) fn new(limit: usize) -> Self {
        Self { half: limit / 2, head: String::new(), tail: String::new(), omitted: 0 }
    }

    /// Adds text at the end.
    pub(super) fn push(&mut self, mut text: &str) {
        // The tail is empty as long as the head has room, except for a character that did not fit.
        if self.tail.is_empty() && self.omitted == 0 {
            let (head, rest) = text.split_at(floor(text, self.half - self.head.len()));
            reserve(&mut self.head, head.len(), self.half);
            self.head.push_str(head);
            text = rest;
        }
        reserve(&mut self.tail, text.len(), 2 * self.half + text.len());
        self.tail.push_str(text);
        if self.tail.len() > 2 * self.half {
            self.trim();
        }
    }

    /// Shortens the tail to its limit.
    fn trim(&mut self) {
        let mut cut = self.tail.len().saturating_sub(self.half);
        while !self.tail.is_char_boundary(cut) {
            cut += 1;
        }
        self.omitted += cut as u64;
        self.tail.drain(..cut);
    }

    /// The largest number of bytes of the text so far.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Appends the text to another one, with the number of omitted bytes in place of the middle, and returns that number.
    pub(super) fn append_to(mut self, text: &mut String) -> u64 {
        self.trim();
        text.push_str(&self.head);
        if self.omitted > 0 {
            // Writing to a string does not fail.
            let _ = write!(text, "\n[{} bytes omitted]\n", self.omitted);
        }
        text.push_str(&self.tail);
        self.omitted
    }
}

/// Makes room for more text: little by little at first, then at once for the longest text that it can become. A large text that
/// grows step by step leaves free memory of every size behind.
fn reserve(text: &mut String, more: usize, longest: usize) {
    if text.len() + more > SHORT_BYTES && text.len() + more > text.capacity() {
        text.reserve_exact(longest.saturating_sub(text.len()));
    }
}

/// The last boundary of a character that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excerpt(limit: usize, pieces: &[&str]) -> (String, u64) {
        let mut excerpt = Excerpt::new(limit);
        for piece in pieces {
            excerpt.push(piece);
        }
        let mut text = String::new();
        let omitted = excerpt.append_to(&mut text);
        (text, omitted)
    }

    #[test]
    fn a_text_up_to_the_limit_is_kept() {
        assert_eq!(excerpt(8, &["abc", "", "defgh"]), ("abcdefgh".to_owned(), 0));
    }

    #[test]
    fn a_longer_text_loses_its_middle() {
        assert_eq!(excerpt(8, &["abcdefghi"]), ("abcd\n[1 bytes omitted]\nfghi".to_owned(), 1));
    }

    proptest! {
        #[test]
        fn pieces_decode_to_the_text_of_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in ".*", cut in 0_usize..64) {
            let whole = [text.as_bytes(), &bytes].concat();
            let (mut buffer, mut decoded) = (Vec::new(), String::new());

            for piece in whole.chunks(cut + 1) {
                buffer.extend_from_slice(piece);
                decode(&mut buffer, false, |text| decoded.push_str(text));
                prop_assert!(buffer.len() < 4);
            }
            decode(&mut buffer, true, |text| decoded.push_str(text));

            prop_assert_eq!(decoded, String::from_utf8_lossy(&whole));
        }

        #[test]
        fn an_excerpt_has_the_head_the_tail_and_the_number_of_the_rest(pieces in proptest::collection::vec(".{0,9}", 0..20), limit in 2_usize..40) {
            let whole = pieces.concat();

            let (text, omitted) = excerpt(limit, &pieces.iter().map(String::as_str).collect::<Vec<_>>());

            if omitted == 0 {
                prop_assert_eq!(text, whole);
            } else {
                let note = format!("\n[{omitted} bytes omitted]\n");
                let at = text.find(&note).unwrap();
                let (head, tail) = (&text[..at], &text[at + note.len()..]);
                prop_assert!(whole.starts_with(head) && whole.ends_with(tail));
                prop_assert_eq!(head.len() as u64 + tail.len() as u64 + omitted, whole.len() as u64);
                prop_assert!(head.len() <= limit / 2 && tail.len() <= limit / 2);
            }
        }
    }
}
