//! Sees whether an outer tag begins where a text does, even if only a part of it has come.

use memchr::memchr2;

use super::limits::WINDOW;
use super::token::name_at;

/// Whether an opening tag begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    No,
    Unsure,
    /// So many bytes are the tag.
    Yes(usize),
}

/// Looks for `<name>`, in letters of any case, with or without attributes.
pub(super) fn tag(rest: &str, name: &str) -> Tag {
    let start = |length: usize| rest.as_bytes().get(1..=length);
    let Some(written) = start(name.len()) else {
        let partial = &rest.as_bytes()[1..];
        let begins = name.as_bytes()[..partial.len()].eq_ignore_ascii_case(partial);
        return if begins { Tag::Unsure } else { Tag::No };
    };
    if !written.eq_ignore_ascii_case(name.as_bytes()) {
        return Tag::No;
    }
    let after = 1 + name.len();
    match rest.as_bytes().get(after) {
        None => Tag::Unsure,
        Some(b'>') => Tag::Yes(after + 1),
        Some(b' ' | b'\t' | b'\n' | b'\r') => end_of(rest, after),
        Some(_) => Tag::No,
    }
}

/// The end of a tag whose first bytes have been seen.
pub(super) fn end_of(rest: &str, from: usize) -> Tag {
    match memchr2(b'>', b'<', &rest.as_bytes()[from..rest.len().min(WINDOW)]) {
        Some(length) if rest.as_bytes()[from + length] == b'>' => Tag::Yes(from + length + 1),
        None if rest.len() < WINDOW => Tag::Unsure,
        _ => Tag::No,
    }
}

/// Looks for `</name>`, in letters of any case.
pub(super) fn closing_tag(rest: &str, name: &str) -> Tag {
    let bytes = rest.as_bytes();
    if bytes.len() < 2 + name.len() {
        let pattern = ["</", name].concat();
        let begins = pattern.as_bytes()[..bytes.len()].eq_ignore_ascii_case(bytes);
        return if begins { Tag::Unsure } else { Tag::No };
    }
    if &bytes[..2] != b"</" || !bytes[2..2 + name.len()].eq_ignore_ascii_case(name.as_bytes()) {
        return Tag::No;
    }
    let after = 2 + name.len();
    let blanks = bytes[after..].iter().take(WINDOW).take_while(|byte| byte.is_ascii_whitespace()).count();
    match bytes.get(after + blanks) {
        Some(b'>') => Tag::Yes(after + blanks + 1),
        None if blanks < WINDOW => Tag::Unsure,
        _ => Tag::No,
    }
}

/// How an element that is not looked for changes the depth: by one, or not at all if it is empty or no tag.
pub(super) fn opens_element(rest: &str) -> Option<bool> {
    if rest.len() < 2 {
        return None;
    }
    if name_at(&rest[1..]).is_none() {
        return Some(false);
    }
    match end_of(rest, 1) {
        Tag::Unsure => None,
        Tag::No => Some(false),
        Tag::Yes(length) => Some(rest.as_bytes()[length - 2] != b'/'),
    }
}
