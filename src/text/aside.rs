//! Elements in which nothing is a call: thoughts, comments, and results that the model only repeats.

use super::limits::WINDOW;
use super::opening::{Tag, closing_tag, tag};

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
    /// A tag that prose speaks of, or an element: certain is only that it does not go on in the next line unless it is closed later.
    Mention(&'static str),
}

/// An answer that may need more text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen<T> {
    No,
    /// More text decides.
    Unsure,
    Yes(T),
}

impl Aside {
    /// Sees whether an element begins where a text does. `before` is the last letter of the line that is no blank.
    pub(super) fn begins(rest: &str, before: Option<char>) -> Seen<Self> {
        if COMMENT.starts_with(rest) || rest.starts_with(COMMENT) {
            return if rest.len() < COMMENT.len() { Seen::Unsure } else { Seen::Yes(Self::Comment) };
        }
        // Most tags are others.
        if !matches!(rest.as_bytes().get(1), Some(b't' | b'T' | b'r' | b'R' | b'f' | b'F' | b'o' | b'O')) {
            return Seen::No;
        }
        let mut is_unsure = false;
        for name in NAMES {
            match tag(rest, name) {
                Tag::No => {}
                Tag::Unsure => is_unsure = true,
                Tag::Yes(length) => return Self::of(name, &rest[length..], before),
            }
        }
        if is_unsure { Seen::Unsure } else { Seen::No }
    }

    /// Tells an element from a tag that is named in a sentence: a word stands before it, and a blank or a full stop behind.
    fn of(name: &'static str, after: &str, before: Option<char>) -> Seen<Self> {
        if !before.is_some_and(char::is_alphanumeric) {
            return Seen::Yes(Self::Element(name));
        }
        let next = after.trim_start_matches([' ', '\t']);
        match next.chars().next() {
            None if after.len() < WINDOW => Seen::Unsure,
            Some(letter) if next.len() == after.len() && !".,;:!?)]/'\"”’»`*".contains(letter) => {
                Seen::Yes(Self::Element(name))
            }
            Some('\n' | '\r' | '<') => Seen::Yes(Self::Element(name)),
            _ => Seen::Yes(Self::Mention(name)),
        }
    }

    /// Sees whether it ends where a text begins.
    pub(super) fn ends(self, rest: &str) -> Seen<()> {
        match self {
            Self::Comment if rest.starts_with(COMMENT_END) => Seen::Yes(()),
            Self::Comment if COMMENT_END.starts_with(rest) => Seen::Unsure,
            Self::Comment => Seen::No,
            Self::Element(name) | Self::Mention(name) => match closing_tag(rest, name) {
                Tag::No => Seen::No,
                Tag::Unsure => Seen::Unsure,
                Tag::Yes(_) => Seen::Yes(()),
            },
        }
    }

    /// The same, once a call was seen in it: then it is no mention.
    pub(super) fn with_call(self) -> Self {
        if let Self::Mention(name) = self { Self::Element(name) } else { self }
    }
}
