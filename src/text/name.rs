//! Names of others as names of elements.

use std::borrow::Cow;

/// The name of the element for a key: the key itself wherever it can be one, otherwise the nearest that can.
#[must_use]
pub fn element_name(key: &str) -> Cow<'_, str> {
    if key.starts_with(begins_name) && key.chars().all(continues_name) {
        return Cow::Borrowed(key);
    }
    let mut name: String =
        key.chars().map(|character| if continues_name(character) { character } else { '_' }).collect();
    if !name.starts_with(begins_name) {
        name.insert(0, '_');
    }
    Cow::Owned(name)
}

/// What XML lets a name begin with, as far as it is a letter or a digit of some script.
fn begins_name(character: char) -> bool {
    let is_listed = matches!(character,
        'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
        | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}');
    character == '_' || (is_listed && character.is_alphanumeric())
}

fn continues_name(character: char) -> bool {
    begins_name(character) || matches!(character, '-' | '.' | '0'..='9')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_becomes_a_name() {
        let cases = [
            ("title", "title"),
            ("max-results", "max-results"),
            ("größe", "größe"),
            ("标题", "标题"),
            ("two words", "two_words"),
            ("1st", "_1st"),
            ("", "_"),
            ("a><b", "a__b"),
            ("$ref", "_ref"),
            ("a\n", "a_"),
        ];

        for (key, expected) in cases {
            assert_eq!(element_name(key), expected);
        }
    }
}
