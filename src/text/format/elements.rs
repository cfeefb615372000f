//! The elements of a block: its tags, CDATA sections and comments, put together into a tree.
//!
//! Everything else is text, also where XML would refuse it, and closing tags may be missing: models forget both.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr2, memchr3, memmem};

use super::super::MAX_DEPTH;
use super::super::escape::{push_with_line_feeds, reference};
use super::super::tag::name_at;
use super::values::{is_blank, strip};

pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

/// Tags that name their parameter elsewhere: `<parameter=city>`, `<param name="city">`.
const GENERIC: [&str; 5] = ["parameter", "param", "argument", "arg", "parameters"];

/// The name of the attribute that holds a value.
pub(super) const VALUE: &str = "value";

/// Attributes that describe a value and do not hold it.
const DESCRIPTIVE: [&str; 14] = [
    "name",
    "type",
    "id",
    "format",
    "encoding",
    "lang",
    "language",
    "mime",
    "mimetype",
    "string",
    "required",
    "description",
    "nil",
    "null",
];

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `<name>`
    Open,
    /// `<name/>`
    Empty,
    /// `</name>`
    Close,
    /// A CDATA section.
    Data,
    /// A comment or a processing instruction, which is ignored.
    Comment,
}

/// A piece of markup. The text is between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    /// The name of the element; for CDATA, its content.
    pub(super) name: &'t str,
    /// The name of its closing tag.
    pub(super) closes_as: &'t str,
    /// The text after an equals sign in the tag.
    pub(super) value: Option<&'t str>,
    /// The attribute that may hold its value: key and text.
    pub(super) attribute: Option<(&'t str, &'t str)>,
    /// True if the tag was not written in the usual way.
    pub(super) is_repaired: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Token<'t> {
    fn new(kind: TokenKind, name: &'t str, start: usize, end: usize) -> Self {
        Self { kind, name, closes_as: name, value: None, attribute: None, is_repaired: false, start, end }
    }
}

/// The position of a CDATA section that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnclosedData(pub(super) usize);

/// Finds all markup of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, UnclosedData> {
    let mut found = Vec::new();
    let mut at = 0;
    // If one of these does not end, no later one does.
    let (mut comments_end, mut instructions_end) = (true, true);
    while let Some(length) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + length;
        let rest = &text[start..];
        let token = if let Some(data) = rest.strip_prefix(CDATA) {
            let length = memmem::find(data.as_bytes(), CDATA_END.as_bytes()).ok_or(UnclosedData(start))?;
            let end = start + CDATA.len() + length + CDATA_END.len();
            Some(Token::new(TokenKind::Data, &data[..length], start, end))
        } else if rest.starts_with("<!--") && comments_end {
            let end = memmem::find(rest.as_bytes(), b"-->");
            comments_end = end.is_some();
            end.map(|end| Token::new(TokenKind::Comment, "", start, start + end + "-->".len()))
        } else if rest.starts_with("<?") && instructions_end {
            let end = memmem::find(rest.as_bytes(), b"?>");
            instructions_end = end.is_some();
            end.map(|end| Token::new(TokenKind::Comment, "", start, start + end + "?>".len()))
        } else if let Some(after) = rest.strip_prefix("</") {
            closing(after, start)
        } else {
            opening(rest, start)
        };
        at = token.as_ref().map_or(start + 1, |token| token.end);
        found.extend(token);
    }
    Ok(found)
}

fn closing(after: &str, start: usize) -> Option<Token<'_>> {
    let trimmed = after.trim_start();
    let name = name_at(trimmed)?;
    let mut rest = trimmed[name.len()..].trim_start();
    // `</parameter=city>` closes what `<parameter=city>` opened.
    if rest.starts_with('=') {
        rest = &rest[memchr2(b'>', b'<', rest.as_bytes())?..];
    }
    if !rest.starts_with('>') {
        return None;
    }
    let end = start + "</".len() + (after.len() - rest.len()) + 1;
    Some(Token::new(TokenKind::Close, name, start, end))
}

fn opening(tag: &str, start: usize) -> Option<Token<'_>> {
    let name = name_at(&tag[1..])?;
    let mut rest = &tag[1 + name.len()..];
    if let Some(value) = rest.trim_start().strip_prefix('=') {
        return with_equals(tag, name, value, start);
    }
    let (mut named, mut value_attribute) = (None, None);
    let (kind, rest) = loop {
        let trimmed = rest.trim_start();
        if let Some(after) = trimmed.strip_prefix('>') {
            break (TokenKind::Open, after);
        }
        if let Some(after) = trimmed.strip_prefix("/>") {
            break (TokenKind::Empty, after);
        }
        if trimmed.len() == rest.len() {
            return None;
        }
        let (key, value, after) = attribute(trimmed)?;
        if key == "name" {
            named = Some(value);
        }
        value_attribute = pick_value(value_attribute, key, value);
        rest = after;
    };
    let mut token = Token::new(kind, name, start, start + tag.len() - rest.len());
    token.attribute = value_attribute;
    if let Some(named) = named.filter(|_| GENERIC.contains(&name)) {
        token.name = named;
        token.is_repaired = true;
    }
    Some(token)
}

/// Keeps the attribute that may hold a value: the one of that name, or else the first that does not describe it.
fn pick_value<'t>(picked: Option<(&'t str, &'t str)>, key: &'t str, value: &'t str) -> Option<(&'t str, &'t str)> {
    let describes = DESCRIPTIVE.contains(&key) || key.contains(':') || key.starts_with("xml");
    if key == VALUE || picked.is_none() && !describes { Some((key, value)) } else { picked }
}

/// The attribute at the start of a text: key, value and the rest.
pub(super) fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let key = name_at(text)?;
    let rest = text[key.len()..].trim_start().strip_prefix('=')?.trim_start();
    let quote = *rest.as_bytes().first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let length = memchr2(quote, b'<', &rest.as_bytes()[1..])?;
    if rest.as_bytes()[1 + length] != quote {
        return None;
    }
    Some((key, &rest[1..=length], &rest[length + 2..]))
}

/// A tag with an equals sign after its name: `<city=Oslo>`, `<parameter=city>`, `<city=<![CDATA[Oslo]]></city>`.
fn with_equals<'t>(tag: &'t str, name: &'t str, value: &'t str, start: usize) -> Option<Token<'t>> {
    let after_sign = start + tag.len() - value.len();
    let mut token = Token::new(TokenKind::Open, name, start, after_sign);
    token.is_repaired = true;
    if value.trim_start().starts_with(CDATA) {
        return Some(token);
    }
    let length = memchr3(b'>', b'<', b'\n', value.as_bytes())?;
    match value.as_bytes()[length] {
        b'>' => {
            token.end = after_sign + length + 1;
            let mut written = value[..length].trim();
            if let Some(before) = written.strip_suffix('/') {
                token.kind = TokenKind::Empty;
                written = before.trim_end();
            }
            let written = unquoted(written);
            if GENERIC.contains(&name) {
                token.name = written;
            } else {
                token.value = Some(written);
            }
            Some(token)
        }
        b'<' if value[length..].starts_with("</") => Some(token),
        _ => None,
    }
}

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

/// A problem in a block, and its position.
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
    /// True if the closing tag is missing.
    pub(super) is_unclosed: bool,
    /// True if everything inside is text, including tags.
    pub(super) is_text: bool,
}

/// Knowledge about the tool, for tags that can be understood in two ways.
pub(super) trait TagHints {
    /// True if everything inside an element is text.
    fn is_text(&self, path: &[&str], name: &str) -> bool;

    /// True if an element belongs there; `None` if that is not known.
    fn belongs(&self, path: &[&str], name: &str) -> Option<bool>;
}

/// The elements of a block.
pub(super) struct Tree<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<Token<'t>>,
    pub(super) elements: Vec<Element>,
    /// The outermost elements.
    pub(super) roots: Vec<usize>,
}

/// The closing tag for each opening tag, if tags of other names are ignored.
pub(super) fn closing_tags(tokens: &[Token<'_>]) -> Vec<Option<u32>> {
    let mut closings = vec![None; tokens.len()];
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Open => open.entry(token.closes_as).or_default().push(at),
            TokenKind::Close => {
                if let Some(start) = open.get_mut(token.name).and_then(Vec::pop) {
                    closings[start] = u32::try_from(at).ok();
                }
            }
            TokenKind::Empty | TokenKind::Data | TokenKind::Comment => {}
        }
    }
    closings
}

impl<'t> Tree<'t> {
    /// Builds the tree of a text from its tokens.
    pub(super) fn build(
        text: &'t str,
        tokens: Vec<Token<'t>>,
        closings: &[Option<u32>],
        hints: &dyn TagHints,
    ) -> Result<Self, Flaw> {
        let mut tree = Tree { text, tokens, elements: Vec::new(), roots: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        let mut path: Vec<&str> = Vec::new();
        let mut at = 0;
        while at < tree.tokens.len() {
            let token = tree.tokens[at];
            match token.kind {
                TokenKind::Open | TokenKind::Empty => {
                    if open.len() >= MAX_DEPTH {
                        return Err(Flaw::new(format!("the tags are nested more than {MAX_DEPTH} deep"), token.start));
                    }
                    let closing = closings.get(at).copied().flatten().map(|closing| closing as usize);
                    let is_text =
                        token.kind == TokenKind::Open && closing.is_some() && hints.is_text(&path, token.name);
                    let close = if is_text { closing.unwrap_or(at) } else { at };
                    let element = tree.add(&open, Element::new(at, close, is_text));
                    // A tag that contains its value need not be closed.
                    let has_content = token.kind == TokenKind::Open && (token.value.is_none() || closing.is_some());
                    if is_text {
                        at = close;
                    } else if has_content {
                        open.push(element);
                        path.push(token.name);
                    }
                }
                TokenKind::Close => tree.close(&mut open, &mut path, at, hints)?,
                TokenKind::Data | TokenKind::Comment => {}
            }
            at += 1;
        }
        while let Some(element) = open.pop() {
            path.pop();
            tree.end_unclosed(element, open.last().copied(), &path, at, hints)?;
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
        hints: &dyn TagHints,
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
            self.end_unclosed(element, open.last().copied(), path, at, hints)?;
        }
        if let Some(element) = open.pop() {
            path.pop();
            self.elements[element].close = at;
        }
        Ok(())
    }

    /// Ends an element at the tag of another one. The elements after its text become its siblings.
    fn end_unclosed(
        &mut self,
        element: usize,
        parent: Option<usize>,
        path: &[&str],
        at: usize,
        hints: &dyn TagHints,
    ) -> Result<(), Flaw> {
        let token = *self.open_token(element);
        let this = &mut self.elements[element];
        this.is_unclosed = true;
        this.close = at;
        let Some(first) = this.children.first().copied() else { return Ok(()) };
        let first = self.elements[first].open;
        let inside = self.elements[element].open + 1..first;
        let has_data = self.tokens[inside.clone()].iter().any(|token| token.kind == TokenKind::Data);
        if !has_data && strip(self.gap(inside.start, inside.end)).is_empty() {
            return Ok(());
        }
        let may_follow = |child: &usize| {
            let name = self.open_token(*child).name;
            hints.belongs(path, name).unwrap_or(has_data || name == token.name)
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

    /// The text between the token before `from` and the token `to`.
    fn gap(&self, from: usize, to: usize) -> &'t str {
        let start = from.checked_sub(1).map_or(0, |before| self.tokens[before].end);
        let end = self.tokens.get(to).map_or(self.text.len(), |token| token.start);
        &self.text[start..end]
    }

    /// The position of an element in the text.
    pub(super) fn start(&self, element: usize) -> usize {
        self.open_token(element).start
    }

    /// True if there is text between the children of an element, or of the whole block.
    pub(super) fn has_loose_text(&self, element: Option<usize>) -> bool {
        let (mut at, end, children) = match element {
            Some(element) => {
                let element = &self.elements[element];
                (element.open + 1, element.close, &element.children)
            }
            None => (0, self.tokens.len(), &self.roots),
        };
        let mut children = children.iter().map(|child| &self.elements[*child]).peekable();
        // The text before the tag that ends an unclosed element belongs to that element.
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
            } else if self.tokens[at].kind == TokenKind::Data && !strip(self.tokens[at].name).is_empty() {
                return true;
            } else {
                at += 1;
            }
        }
    }

    /// The text of an element without children.
    pub(super) fn text_of(&self, element: usize) -> ElementText<'t> {
        let Element { open, close, is_text, .. } = self.elements[element];
        let mut held = ElementText { text: Cow::Borrowed(""), data: None, has_stray: false };
        if close == open {
            return held;
        }
        for at in open + 1..=close {
            held.push_gap(self.gap(at, at));
            let Some(token) = self.tokens.get(at).filter(|_| at < close) else { break };
            match token.kind {
                TokenKind::Data => held.push_data(token.name),
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

    /// The first token after the element.
    fn after(&self) -> usize {
        if self.is_unclosed { self.close } else { self.close + 1 }
    }
}

/// The text that an element holds.
#[derive(Debug)]
pub(super) struct ElementText<'t> {
    text: Cow<'t, str>,
    /// The part of it that comes from CDATA, where blanks are significant.
    data: Option<(usize, usize)>,
    /// True if there was a bare `&` or `<` in it.
    pub(super) has_stray: bool,
}

impl<'t> ElementText<'t> {
    fn push(&mut self, text: &'t str) {
        if memchr(b'\r', text.as_bytes()).is_some() {
            push_with_line_feeds(self.text.to_mut(), text);
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

    /// The text as a string value: blanks around it are kept only inside CDATA.
    pub(super) fn into_string(self) -> String {
        let Some((first, last)) = self.data else { return strip(&self.text).to_owned() };
        let before = self.text[..first].trim_start_matches(is_blank);
        let after = self.text[last..].trim_end_matches(is_blank);
        if before.len() == first && after.len() == self.text.len() - last {
            return self.text.into_owned();
        }
        [before, &self.text[first..last], after].concat()
    }
}
