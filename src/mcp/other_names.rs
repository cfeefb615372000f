//! The names of other tools and servers, in which look-alikes and mentions are found without a comparison with each of them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::names::{Skeleton, skeletons};

/// The most names with separators that begin with the same word: a hostile server could have thousands.
const MOST_PHRASES: usize = 64;
/// The shortest name that counts as mentioned, in bytes.
const SHORTEST: usize = 3;

/// The names of other tools and servers, for the review of many definitions.
#[derive(Debug, Default)]
pub struct OtherNames<'a> {
    /// Two names for each skeleton: one is left if the other is the name in question.
    alike: HashMap<Skeleton, Vec<&'a str>>,
    /// The names that are one word.
    words: HashSet<&'a str>,
    /// The names with other characters than those of words, by their first words.
    phrases: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> OtherNames<'a> {
    /// Prepares names. A definition may have one of them itself.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut others = Self::default();
        let mut known = HashSet::new();
        for name in names {
            if known.insert(name) {
                others.insert(name);
            }
        }
        others
    }

    fn insert(&mut self, name: &'a str) {
        for skeleton in skeletons(name) {
            let alike = self.alike.entry(skeleton).or_default();
            if alike.len() < 2 {
                alike.push(name);
            }
        }
        let Some((_, first)) = words(name).next().filter(|_| name.len() >= SHORTEST) else { return };
        if first == name {
            self.words.insert(name);
        } else {
            let phrases = self.phrases.entry(first).or_default();
            if phrases.len() < MOST_PHRASES {
                phrases.push(name);
            }
        }
    }

    /// A name that is displayed almost like this one, and is another.
    pub(super) fn look_alike(&self, name: &str) -> Option<&'a str> {
        let alike = skeletons(name).into_iter().filter_map(|skeleton| self.alike.get(&skeleton));
        alike.flatten().copied().find(|other| *other != name)
    }

    /// The places in a text where a name other than `own` stands alone, in their order.
    pub(super) fn mentions<'t>(&'t self, text: &'t str, own: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        words(text).flat_map(move |(start, word)| {
            let is_name = word != own && self.words.contains(word);
            let phrases = self.phrases.get(word).into_iter().flatten().filter(move |phrase| **phrase != own);
            let place = move |phrase: &&str| {
                let (offset, _) = words(phrase).next()?;
                let begin = start.checked_sub(offset)?;
                let stands_alone = |at: &Range<usize>| {
                    let (before, after) = (text[..at.start].chars().next_back(), text[at.end..].chars().next());
                    !before.is_some_and(is_word) && !after.is_some_and(is_word)
                };
                let place = begin..begin + phrase.len();
                text.get(place.clone()).filter(|found| found == phrase).map(|_| place).filter(stands_alone)
            };
            is_name.then(|| start..start + word.len()).into_iter().chain(phrases.filter_map(place))
        })
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

/// The words of a text, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let pieces = text.split_inclusive(|letter| !is_word(letter)).map(move |piece| {
        let start = at;
        at += piece.len();
        (start, piece.trim_end_matches(|letter| !is_word(letter)))
    });
    pieces.filter(|(_, word)| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::is_look_alike;

    fn mentioned<'t>(names: &[&str], text: &'t str) -> Vec<&'t str> {
        OtherNames::new(names.iter().copied()).mentions(text, "own").map(|at| &text[at]).collect()
    }

    #[test]
    fn a_name_is_mentioned_where_it_stands_alone() {
        let names = ["send", "files/read", ".env", "größe", "own", "ok", "", "!!!"];
        let text = "send resend send-all «send», files/read files/reads afiles/read .env x.env größe own ok !!!";

        assert_eq!(mentioned(&names, text), ["send", "send", "files/read", ".env", "größe"]);
    }

    #[test]
    fn many_names_with_the_same_beginning_are_limited() {
        let names: Vec<String> = (0..10_000).map(|number| format!("a.{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        assert_eq!(mentioned(&names, "a.7 a.9999"), ["a.7"]);
    }

    proptest! {
        #[test]
        fn a_look_alike_is_found_if_there_is_one(names in prop::collection::vec("[lI1oO0aа_.-]{1,3}", 1..8)) {
            let others = OtherNames::new(names.iter().map(String::as_str));

            for name in &names {
                let found = others.look_alike(name);

                prop_assert_eq!(found.is_some(), names.iter().any(|other| is_look_alike(name, other)));
                prop_assert!(found.is_none_or(|other| is_look_alike(name, other)));
            }
        }
    }
}
