//! Invisible characters, and those that change how the text around them is displayed: one table for all output.
//!
//! Responses to models, the audit log and prompts show untrusted text. A hidden character there could carry words that a person does not
//! see and a model reads, reorder the line, or break it in two.

use std::fmt::{self, Write as _};

/// The invisible characters besides controls, as first and last of each range.
///
/// These are the marks of direction (U+061C, U+200E–F, U+202A–E, U+2066–9 and the deprecated U+206A–F), the separators of lines
/// (U+2028–9), zero-width characters (soft hyphen, joiners, fillers, U+200B–D, U+2060–4, U+FEFF), annotation marks (U+FFF9–B), and all
/// of U+E0000–E0FFF, where whole texts can be written in tags and in the variation selectors of ideographs. Of the other variation
/// selectors U+FE0E and U+FE0F are left out: they choose between text and emoji, ordinary text is full of them, and escaping them
/// would show `❤\ufe0f` for a heart.
const INVISIBLE: [(char, char); 17] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0d}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// True for control characters, including line breaks and tabs, and for invisible characters.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    let after = INVISIBLE.partition_point(|(first, _)| *first <= character);
    character.is_control() || after > 0 && INVISIBLE[after - 1].1 >= character
}

/// A character in JSON escapes, for example `\u202e` or `\udb40\udc41`.
#[derive(Debug, Clone, Copy)]
pub struct Escaped(pub char);

impl fmt::Display for Escaped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(formatter, "\\u{unit:04x}"))
    }
}

/// A text with invisible characters escaped.
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(text, is_invisible)
}

/// A text with everything but ASCII escaped, so that look-alikes differ.
#[must_use]
pub fn spelled(text: &str) -> String {
    escaped(text, |letter| !matches!(letter, ' '..='~'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        if is_escaped(letter) {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", Escaped(letter));
        } else {
            shown.push(letter);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn visible_characters_are_not_in_the_table() {
        for character in "aé ~\u{a0}€中文あ한❤\u{fe0f}😀क्षिفا".chars() {
            assert!(!is_invisible(character), "{character:?}");
        }
    }

    #[test]
    fn invisible_characters_are_in_the_table() {
        let hidden = "\0\u{1b}\u{7f}\u{85}\u{ad}\u{61c}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\
                      \u{2060}\u{2064}\u{2066}\u{2069}\u{206a}\u{206f}\u{feff}\u{fff9}\u{fffb}\u{e0000}\u{e0041}\u{e007f}\u{e0100}";
        for character in hidden.chars() {
            assert!(is_invisible(character), "{character:?}");
        }
    }

    #[test]
    fn an_escape_is_that_of_json() {
        for character in ['\u{202e}', '\u{e0041}', '\0'] {
            let text: String = serde_json::from_str(&format!("\"{}\"", Escaped(character))).unwrap();

            assert_eq!(text, character.to_string());
        }
    }
}
