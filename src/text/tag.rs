//! Tags at the start of a text that may be incomplete.

use memchr::memchr2;

use super::LOOKAHEAD;
use super::format::Opening;

/// The result of matching a tag at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagMatch {
    No,
    Unsure,
    /// The tag has this many bytes.
    Yes(usize),
}

/// Matches `<name>` in any case, with or without attributes.
pub(super) fn opening_tag(rest: &str, name: &str) -> TagMatch {
    let start = |length: usize| rest.as_bytes().get(1..=length);
    let Some(written) = start(name.len()) else {
        let partial = &rest.as_bytes()[1..];
        let begins = name.as_bytes()[..partial.len()].eq_ignore_ascii_case(partial);
        return if begins { TagMatch::Unsure } else { TagMatch::No };
    };
    if !written.eq_ignore_ascii_case(name.as_bytes()) {
        return TagMatch::No;
    }
    let after = 1 + name.len();
    match rest.as_bytes().get(after) {
        None => TagMatch::Unsure,
        Some(b'>') => TagMatch::Yes(after + 1),
        Some(b' ' | b'\t' | b'\n' | b'\r') => rest_of_tag(rest, after),
        Some(_) => TagMatch::No,
    }
}

/// Matches the rest of a tag from a byte on.
fn rest_of_tag(rest: &str, from: usize) -> TagMatch {
    match memchr2(b'>', b'<', &rest.as_bytes()[from..rest.len().min(LOOKAHEAD)]) {
        Some(length) if rest.as_bytes()[from + length] == b'>' => TagMatch::Yes(from + length + 1),
        None if rest.len() < LOOKAHEAD => TagMatch::Unsure,
        _ => TagMatch::No,
    }
}

/// The tag name at the start of a text, in the letters of any script.
pub(super) fn name_at(text: &str) -> Option<&str> {
    let mut letters = text.char_indices();
    letters.next().filter(|(_, letter)| letter.is_alphabetic() || *letter == '_')?;
    let is_inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    let end = letters.find(|(_, letter)| !is_inside(*letter)).map_or(text.len(), |(at, _)| at);
    Some(&text[..end])
}

/// Matches `</name>` in any case.
pub(super) fn closing_tag(rest: &str, name: &str) -> TagMatch {
    let bytes = rest.as_bytes();
    if bytes.len() < 2 + name.len() {
        let pattern = ["</", name].concat();
        let begins = pattern.as_bytes()[..bytes.len()].eq_ignore_ascii_case(bytes);
        return if begins { TagMatch::Unsure } else { TagMatch::No };
    }
    if &bytes[..2] != b"</" || !bytes[2..2 + name.len()].eq_ignore_ascii_case(name.as_bytes()) {
        return TagMatch::No;
    }
    let after = 2 + name.len();
    let blanks = bytes[after..].iter().take(LOOKAHEAD).take_while(|byte| byte.is_ascii_whitespace()).count();
    match bytes.get(after + blanks) {
        Some(b'>') => TagMatch::Yes(after + blanks + 1),
        None if blanks < LOOKAHEAD => TagMatch::Unsure,
        _ => TagMatch::No,
    }
}

/// True if a text begins with the opening tag of any element, false for an empty element or other text; `None` if more is needed.
pub(super) fn opens_element(rest: &str) -> Option<bool> {
    if rest.len() < 2 {
        return None;
    }
    if name_at(&rest[1..]).is_none() {
        return Some(false);
    }
    match rest_of_tag(rest, 1) {
        TagMatch::Unsure => None,
        TagMatch::No => Some(false),
        TagMatch::Yes(length) => Some(rest.as_bytes()[length - 2] != b'/'),
    }
}

/// The text after a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After<'t> {
    /// Only blanks have arrived.
    Nothing,
    Text(&'t str),
}

/// Skips blanks. More of them than are looked at count as text, so that the result does not depend on how much has arrived.
pub(super) fn text_after(rest: &str) -> After<'_> {
    let seen = &rest[..super::boundary(rest, LOOKAHEAD)];
    match seen.trim_start() {
        "" if rest.len() < LOOKAHEAD => After::Nothing,
        "" => After::Text(rest),
        text => After::Text(&rest[seen.len() - text.len()..]),
    }
}

/// Matches a tag that begins with this text in any case and ends with `>`.
pub(super) fn tag_starting_with(rest: &str, start: &str) -> TagMatch {
    let length = rest.len().min(start.len());
    if !rest.as_bytes()[..length].eq_ignore_ascii_case(&start.as_bytes()[..length]) {
        return TagMatch::No;
    }
    if rest.len() <= start.len() { TagMatch::Unsure } else { rest_of_tag(rest, start.len()) }
}

/// Matches the tag of a wrapper around calls. Unless the format is certain, the start of a call must follow.
pub(super) fn wrapper(rest: &str, name: &str, call: &str, is_certain: bool) -> Opening {
    match (opening_tag(rest, name), closing_tag(rest, name)) {
        (TagMatch::Yes(length), _) | (_, TagMatch::Yes(length)) if is_certain => Opening::Wrapper(length),
        (TagMatch::Yes(length), _) => match text_after(&rest[length..]) {
            After::Nothing => Opening::Unsure,
            After::Text(text) => {
                let seen = text.len().min(call.len());
                let begins = text.as_bytes()[..seen].eq_ignore_ascii_case(&call.as_bytes()[..seen]);
                match (begins, seen == call.len()) {
                    (true, true) => Opening::Wrapper(length),
                    (true, false) => Opening::Unsure,
                    (false, _) => Opening::No,
                }
            }
        },
        (TagMatch::Unsure, _) => Opening::Unsure,
        (_, TagMatch::Unsure) if is_certain => Opening::Unsure,
        _ => Opening::No,
    }
}
