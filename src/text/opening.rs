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

/// What comes after a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After<'t> {
    /// Only blanks so far.
    Nothing,
    /// This.
    Text(&'t str),
}

/// Looks behind blanks; too many of them are text, however much has come behind them.
pub(super) fn after(rest: &str) -> After<'_> {
    let seen = &rest[..super::boundary(rest, WINDOW)];
    match seen.trim_start() {
        "" if rest.len() < WINDOW => After::Nothing,
        "" => After::Text(rest),
        text => After::Text(&rest[seen.len() - text.len()..]),
    }
}

/// Looks for a tag that begins with these letters, of any case, and ends with `>`.
pub(super) fn tag_with(rest: &str, start: &str) -> Tag {
    let length = rest.len().min(start.len());
    if !rest.as_bytes()[..length].eq_ignore_ascii_case(&start.as_bytes()[..length]) {
        return Tag::No;
    }
    if rest.len() <= start.len() { Tag::Unsure } else { end_of(rest, start.len()) }
}

/// Sees whether a wrapper is around calls of a format: only if one of them follows, unless the format is certain.
pub(super) fn wrapper(rest: &str, name: &str, call: &str, is_certain: bool) -> super::Opening {
    use super::Opening;
    match (tag(rest, name), closing_tag(rest, name)) {
        (Tag::Yes(length), _) | (_, Tag::Yes(length)) if is_certain => Opening::Wrapper(length),
        (Tag::Yes(length), _) => match after(&rest[length..]) {
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
        (Tag::Unsure, _) => Opening::Unsure,
        (_, Tag::Unsure) if is_certain => Opening::Unsure,
        _ => Opening::No,
    }
}
