//! The elements of a block, also where closing tags were forgotten, and the text that they hold.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr2};

use super::limits::DEPTH;
use super::number::strip;
use super::strict::{push_lines, reference};
use super::token::{Kind, Token};

/// What is wrong with a block, and at which of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) what: String,
    pub(super) at: usize,
}

impl Flaw {
    pub(super) fn new(what: impl Into<String>, at: usize) -> Self {
        Self { what: what.into(), at }
    }
}

/// One element. Its tokens are those between `open` and `close`, both of them outside.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) children: Vec<usize>,
    /// Whether the closing tag was forgotten.
    pub(super) is_unclosed: bool,
    /// Whether everything inside is text, tags too.
    pub(super) is_text: bool,
}

/// Says what may stand where; it is asked only when a tag can be understood in two ways.
pub(super) trait Expect {
    /// Whether everything inside of an element is text.
    fn is_text(&self, path: &[&str], name: &str) -> bool;

    /// Whether an element belongs there, as far as that is known.
    fn belongs(&self, path: &[&str], name: &str) -> Option<bool>;
}

/// A block with its elements.
pub(super) struct Tree<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<Token<'t>>,
    pub(super) elements: Vec<Element>,
    /// The elements that are in no other.
    pub(super) roots: Vec<usize>,
}

/// For every opening tag the closing one that belongs to it if no other name is looked at.
pub(super) fn mates(tokens: &[Token<'_>]) -> Vec<Option<u32>> {
    let mut mates = vec![None; tokens.len()];
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => open.entry(token.closes_as).or_default().push(at),
            Kind::Close => {
                if let Some(start) = open.get_mut(token.name).and_then(Vec::pop) {
                    mates[start] = u32::try_from(at).ok();
                }
            }
            Kind::Empty | Kind::Data | Kind::Comment => {}
        }
    }
    mates
}

impl<'t> Tree<'t> {
    /// Puts the tokens of a text together.
    pub(super) fn build(
        text: &'t str,
        tokens: Vec<Token<'t>>,
        mates: &[Option<u32>],
        expect: &dyn Expect,
    ) -> Result<Self, Flaw> {
        let mut tree = Tree { text, tokens, elements: Vec::new(), roots: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        let mut path: Vec<&str> = Vec::new();
        let mut at = 0;
        while at < tree.tokens.len() {
            let token = tree.tokens[at];
            match token.kind {
                Kind::Open | Kind::Empty => {
                    if open.len() >= DEPTH {
                        return Err(Flaw::new(format!("the tags are nested more than {DEPTH} deep"), token.start));
                    }
                    let mate = mates.get(at).copied().flatten().map(|mate| mate as usize);
                    let is_text = token.kind == Kind::Open && mate.is_some() && expect.is_text(&path, token.name);
                    let close = if is_text { mate.unwrap_or(at) } else { at };
                    let element = tree.add(&open, Element::new(at, close, is_text));
                    // A tag that has said its value need not be closed.
                    let has_content = token.kind == Kind::Open && (token.value.is_none() || mate.is_some());
                    if is_text {
                        at = close;
                    } else if has_content {
                        open.push(element);
                        path.push(token.name);
                    }
                }
                Kind::Close => tree.close(&mut open, &mut path, at, expect)?,
                Kind::Data | Kind::Comment => {}
            }
            at += 1;
        }
        while let Some(element) = open.pop() {
            path.pop();
            tree.end_unclosed(element, open.last().copied(), &path, at, expect)?;
        }
        Ok(tree)
    }

    fn add(&mut self, open: &[usize], element: Element) -> usize {
        let index = self.elements.len();
        self.elements.push(element);
        self.siblings(open.last().copied()).push(index);
        index
    }

    fn siblings(&mut self, parent: Option<usize>) -> &mut Vec<usize> {
        match parent {
            Some(parent) => &mut self.elements[parent].children,
            None => &mut self.roots,
        }
    }

    fn close(
        &mut self,
        open: &mut Vec<usize>,
        path: &mut Vec<&'t str>,
        at: usize,
        expect: &dyn Expect,
    ) -> Result<(), Flaw> {
        let token = self.tokens[at];
        let closes = |element: &usize| self.open_token(*element).closes_as == token.name;
        let Some(place) = open.iter().rposition(closes) else {
            return Err(match open.last() {
                Some(element) => {
                    let expected = self.open_token(*element).closes_as;
                    Flaw::new(format!("</{}> stands where </{expected}> is expected", token.name), token.start)
                }
                None => Flaw::new(format!("</{}> closes nothing", token.name), token.start),
            });
        };
        while open.len() > place + 1 {
            let Some(element) = open.pop() else { break };
            path.pop();
            self.end_unclosed(element, open.last().copied(), path, at, expect)?;
        }
        if let Some(element) = open.pop() {
            path.pop();
            self.elements[element].close = at;
        }
        Ok(())
    }

    /// Ends an element at a tag that is not its own. What follows its text is not inside of it, but comes after it.
    fn end_unclosed(
        &mut self,
        element: usize,
        parent: Option<usize>,
        path: &[&str],
        at: usize,
        expect: &dyn Expect,
    ) -> Result<(), Flaw> {
        let token = *self.open_token(element);
        let this = &mut self.elements[element];
        this.is_unclosed = true;
        this.close = at;
        let Some(first) = this.children.first().copied() else { return Ok(()) };
        let first = self.elements[first].open;
        let inside = self.elements[element].open + 1..first;
        let has_data = self.tokens[inside.clone()].iter().any(|token| token.kind == Kind::Data);
        if !has_data && strip(self.gap(inside.start, inside.end)).is_empty() {
            return Ok(());
        }
        let may_follow = |child: &usize| {
            let name = self.open_token(*child).name;
            expect.belongs(path, name).unwrap_or(has_data || name == token.name)
        };
        if !self.elements[element].children.iter().all(may_follow) {
            return Err(Flaw::new(format!("<{}> is not closed", token.name), token.start));
        }
        self.elements[element].close = first;
        let children = std::mem::take(&mut self.elements[element].children);
        self.siblings(parent).extend(children);
        Ok(())
    }

    /// The opening tag of an element.
    pub(super) fn open_token(&self, element: usize) -> &Token<'t> {
        &self.tokens[self.elements[element].open]
    }

    /// The text between two neighbouring tokens that comes before the second, or all there is between both.
    fn gap(&self, from: usize, to: usize) -> &'t str {
        let start = from.checked_sub(1).map_or(0, |before| self.tokens[before].end);
        let end = self.tokens.get(to).map_or(self.text.len(), |token| token.start);
        &self.text[start..end]
    }

    /// Where an element begins in the text.
    pub(super) fn start(&self, element: usize) -> usize {
        self.open_token(element).start
    }

    /// Whether there is text beside the children of an element, or of the whole block.
    pub(super) fn has_loose_text(&self, element: Option<usize>) -> bool {
        let (mut at, end, children) = match element {
            Some(element) => {
                let element = &self.elements[element];
                (element.open + 1, element.close, &element.children)
            }
            None => (0, self.tokens.len(), &self.roots),
        };
        let mut children = children.iter().map(|child| &self.elements[*child]).peekable();
        // The text before the tag that ends an unclosed element is still its own.
        let mut is_own = true;
        loop {
            if is_own && !strip(self.gap(at, at)).is_empty() {
                return true;
            }
            is_own = true;
            if at >= end {
                return false;
            }
            if let Some(child) = children.next_if(|child| child.open == at) {
                at = child.after();
                is_own = !child.is_unclosed;
            } else if self.tokens[at].kind == Kind::Data && !strip(self.tokens[at].name).is_empty() {
                return true;
            } else {
                at += 1;
            }
        }
    }

    /// The text of an element without children, and what was found in it.
    pub(super) fn text_of(&self, element: usize) -> Held<'t> {
        let Element { open, close, is_text, .. } = self.elements[element];
        let mut held = Held { text: Cow::Borrowed(""), data: None, has_stray: false };
        if close == open {
            return held;
        }
        for at in open + 1..=close {
            held.push_gap(self.gap(at, at));
            let Some(token) = self.tokens.get(at).filter(|_| at < close) else { break };
            match token.kind {
                Kind::Data => held.push_data(token.name),
                _ if is_text => held.push(&self.text[token.start..token.end]),
                _ => {}
            }
        }
        held
    }
}

impl Element {
    fn new(open: usize, close: usize, is_text: bool) -> Self {
        Self { open, close, children: Vec::new(), is_unclosed: false, is_text }
    }

    /// The first token that is no longer its own.
    fn after(&self) -> usize {
        if self.is_unclosed { self.close } else { self.close + 1 }
    }
}

/// The text that an element holds.
#[derive(Debug)]
pub(super) struct Held<'t> {
    text: Cow<'t, str>,
    /// Which part of it comes from CDATA, where blanks were meant.
    data: Option<(usize, usize)>,
    /// Whether a bare `&` or `<` was in it.
    pub(super) has_stray: bool,
}

impl<'t> Held<'t> {
    fn push(&mut self, text: &'t str) {
        if memchr(b'\r', text.as_bytes()).is_some() {
            push_lines(self.text.to_mut(), text, "\n");
        } else if self.text.is_empty() {
            self.text = Cow::Borrowed(text);
        } else {
            self.text.to_mut().push_str(text);
        }
    }

    fn push_data(&mut self, text: &'t str) {
        let start = self.text.len();
        self.push(text);
        self.data = Some((self.data.map_or(start, |(first, _)| first), self.text.len()));
    }

    fn push_gap(&mut self, text: &'t str) {
        let mut rest = text;
        while let Some(at) = memchr2(b'&', b'<', rest.as_bytes()) {
            if let Some((letter, size)) = reference(&rest[at..]) {
                self.push(&rest[..at]);
                self.text.to_mut().push(letter);
                rest = &rest[at + size..];
            } else {
                self.has_stray = true;
                self.push(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
        self.push(rest);
    }

    /// The text without blanks around it.
    pub(super) fn stripped(&self) -> &str {
        strip(&self.text)
    }

    /// The text as it was meant: blanks around it count only inside of CDATA.
    pub(super) fn meant(self) -> String {
        let Some((first, last)) = self.data else { return strip(&self.text).to_owned() };
        let before = self.text[..first].trim_start_matches(super::number::is_blank);
        let after = self.text[last..].trim_end_matches(super::number::is_blank);
        if before.len() == first && after.len() == self.text.len() - last {
            return self.text.into_owned();
        }
        [before, &self.text[first..last], after].concat()
    }
}
