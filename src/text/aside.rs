//! Elements in which nothing is a call: thoughts, comments, and results that the model repeats.

use super::LOOKAHEAD;
use super::tag::{TagMatch, closing_tag, opening_tag};

/// The names of elements that hold thoughts, and of those that hold the result of a call.
const NAMES: [&str; 9] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "tool_result",
    "tool_response",
    "function_results",
    "observation",
];

const COMMENT: &str = "<!--";
const COMMENT_END: &str = "-->";

/// An element that the text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    /// A comment, up to `-->`.
    Comment,
    /// An element, up to its closing tag.
    Element(&'static str),
    /// A tag that prose mentions, or an element: it ends with the line unless it is closed later.
    Mention(&'static str),
}

/// A decision that may need more text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen<T> {
    No,
    /// More text decides.
    Unsure,
    Yes(T),
}

impl Aside {
    /// Checks whether a text begins with such an element. `before` is the last character before it that is not blank.
    pub(super) fn begins(rest: &str, before: Option<char>) -> Seen<Self> {
        if COMMENT.starts_with(rest) || rest.starts_with(COMMENT) {
            return if rest.len() < COMMENT.len() { Seen::Unsure } else { Seen::Yes(Self::Comment) };
        }
        // Most tags begin with other letters.
        if !matches!(rest.as_bytes().get(1), Some(b't' | b'T' | b'r' | b'R' | b'f' | b'F' | b'o' | b'O')) {
            return Seen::No;
        }
        let mut is_unsure = false;
        for name in NAMES {
            match opening_tag(rest, name) {
                TagMatch::No => {}
                TagMatch::Unsure => is_unsure = true,
                TagMatch::Yes(length) => return Self::of(name, &rest[length..], before),
            }
        }
        if is_unsure { Seen::Unsure } else { Seen::No }
    }

    /// Distinguishes an element from a tag that a sentence mentions: with a word before it, and a blank or punctuation after it.
    fn of(name: &'static str, after: &str, before: Option<char>) -> Seen<Self> {
        if !before.is_some_and(char::is_alphanumeric) {
            return Seen::Yes(Self::Element(name));
        }
        let next = after.trim_start_matches([' ', '\t']);
        match next.chars().next() {
            None if after.len() < LOOKAHEAD => Seen::Unsure,
            Some(letter) if next.len() == after.len() && !".,;:!?)]/'\"”’»`*".contains(letter) => {
                Seen::Yes(Self::Element(name))
            }
            Some('\n' | '\r' | '<') => Seen::Yes(Self::Element(name)),
            _ => Seen::Yes(Self::Mention(name)),
        }
    }

    /// Checks whether a text begins with the end of the element.
    pub(super) fn ends(self, rest: &str) -> Seen<()> {
        match self {
            Self::Comment if rest.starts_with(COMMENT_END) => Seen::Yes(()),
            Self::Comment if COMMENT_END.starts_with(rest) => Seen::Unsure,
            Self::Comment => Seen::No,
            Self::Element(name) | Self::Mention(name) => match closing_tag(rest, name) {
                TagMatch::No => Seen::No,
                TagMatch::Unsure => Seen::Unsure,
                TagMatch::Yes(_) => Seen::Yes(()),
            },
        }
    }

    /// The same after a call was seen in it, which makes a mention an element.
    pub(super) fn with_call(self) -> Self {
        if let Self::Mention(name) = self { Self::Element(name) } else { self }
    }
}
