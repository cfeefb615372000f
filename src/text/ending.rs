//! The end of a block of tags: behind its closing tag, wherever that does not stand in CDATA.

use memchr::{memchr, memmem};

use super::opening::{Tag, closing_tag, opens_element, tag};
use super::token::{CDATA, CDATA_END};
use super::{Ending, Found, boundary};

const NAME: &str = "tool_call";

/// Looks for `</tool_call>`.
#[derive(Debug, Default)]
pub(super) struct TagEnd {
    /// Up to here everything is known.
    at: usize,
    is_in_data: bool,
    /// How many elements are open.
    depth: usize,
    /// How many blocks stand in values of this one.
    nested: usize,
    has_elements: bool,
}

impl TagEnd {
    /// Begins behind the opening tag.
    pub(super) fn new(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Skips a CDATA section; `false` if its end has not come.
    fn skip_data(&mut self, block: &str) -> bool {
        if let Some(length) = memmem::find(&block.as_bytes()[self.at..], CDATA_END.as_bytes()) {
            self.at += length + CDATA_END.len();
            self.is_in_data = false;
            return true;
        }
        // The end may have begun.
        self.at = self.at.max(boundary(block, block.len().saturating_sub(CDATA_END.len() - 1)));
        false
    }

    /// Looks at a `<`; `None` if more has to come.
    fn look(&mut self, rest: &str, is_last: bool) -> Option<Found> {
        let is_markup = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'/' | b'_') || !byte.is_ascii();
        if rest.as_bytes().get(1).is_some_and(|byte| !is_markup(*byte)) {
            self.at += 1;
            return Some(Found::More);
        }
        if CDATA.starts_with(&rest[..boundary(rest, CDATA.len())]) && rest.len() > 1 {
            if rest.len() < CDATA.len() && !is_last {
                return None;
            }
            self.is_in_data = rest.len() >= CDATA.len();
            self.at += CDATA.len().min(rest.len());
            return Some(Found::More);
        }
        match closing_tag(rest, NAME) {
            Tag::Unsure => return None,
            Tag::Yes(length) if self.nested == 0 => {
                return Some(Found::End { length: self.at + length, is_closed: true });
            }
            Tag::Yes(length) => {
                self.nested -= 1;
                self.at += length;
                return Some(Found::More);
            }
            Tag::No => {}
        }
        match tag(rest, NAME) {
            Tag::Unsure => return None,
            Tag::Yes(_) if !self.has_elements => return Some(Found::Prose { length: self.at }),
            Tag::Yes(_) if self.depth == 0 => return Some(Found::End { length: self.at, is_closed: false }),
            Tag::Yes(length) => {
                self.nested += 1;
                self.at += length;
                return Some(Found::More);
            }
            Tag::No => {}
        }
        if rest.as_bytes().get(1) == Some(&b'/') {
            self.depth = self.depth.saturating_sub(1);
        } else {
            let opens = opens_element(rest)?;
            self.depth += usize::from(opens);
            self.has_elements |= opens;
        }
        self.at += 1;
        Some(Found::More)
    }
}

impl Ending for TagEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> Found {
        loop {
            if self.is_in_data && !self.skip_data(block) {
                return Found::More;
            }
            let Some(length) = memchr(b'<', &block.as_bytes()[self.at..]) else {
                self.at = block.len();
                return Found::More;
            };
            self.at += length;
            match self.look(&block[self.at..], is_last) {
                Some(Found::More) => {}
                Some(found) => return found,
                None => return Found::More,
            }
        }
    }

    fn done(&self) -> usize {
        self.at
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
    }
}
