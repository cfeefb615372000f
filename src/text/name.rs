//! Names of others as names of elements.

use std::borrow::Cow;

use super::letters::{begins_name, continues_name};

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
            ("xml:lang", "xml_lang"),
            ("a\n", "a_"),
        ];

        for (key, expected) in cases {
            assert_eq!(element_name(key), expected);
        }
    }
}
