//! ArtifactFlow's strict path: a block that is well-formed XML, read as Python's `xml.etree` reads it.
//!
//! Only what the grammar of calls looks at is kept, so that nothing grows with the depth but the names of what is open.

use std::collections::HashSet;

use memchr::{memchr, memchr2, memchr3, memmem};

use super::letters::{begins_name, continues_name};

const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";

/// The block is not well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotXml;

type Result<T> = std::result::Result<T, NotXml>;

/// What a well-formed block says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plain {
    /// The leading text of the first `name`.
    pub(super) name: Option<String>,
    /// The elements of the first `params`, in order.
    pub(super) params: Vec<Param>,
}

/// One element of `params`.
#[derive(Debug, PartialEq)]
pub(super) struct Param {
    pub(super) tag: String,
    /// The leading text.
    pub(super) text: String,
    /// The leading text of each child.
    pub(super) items: Vec<String>,
}

/// Reads what stands between the outer tags.
pub(super) fn read(inner: &str) -> Result<Plain> {
    if has_forbidden(inner) {
        return Err(NotXml);
    }
    let mut reader = Reader {
        text: inner,
        at: 0,
        open: Vec::new(),
        prefixes: Vec::new(),
        plain: Plain::default(),
        within: Within::default(),
        capture: Capture::Nothing,
    };
    reader.content()?;
    if reader.open.is_empty() { Ok(reader.plain) } else { Err(NotXml) }
}

/// Whether there is a character that XML does not know, also not as data.
fn has_forbidden(text: &str) -> bool {
    let is_control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    text.as_bytes().iter().any(is_control) || text.contains(['\u{fffe}', '\u{ffff}'])
}

struct Open<'t> {
    raw: &'t str,
    /// How many prefixes there were before it.
    prefixes: usize,
}

/// Which of the elements that count has been seen, and is being read.
#[derive(Default)]
struct Within {
    seen_name: bool,
    seen_params: bool,
    in_params: bool,
}

/// What character data is added to.
#[derive(Clone, Copy, PartialEq)]
enum Capture {
    Nothing,
    Name,
    Param,
    Item,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    open: Vec<Open<'t>>,
    /// What prefixes stand for; the default has an empty one.
    prefixes: Vec<(&'t str, String)>,
    plain: Plain,
    within: Within,
    capture: Capture,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn content(&mut self) -> Result<()> {
        while self.at < self.text.len() {
            let rest = self.rest();
            let length = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
            self.data(&rest[..length])?;
            self.at += length;
            if self.at < self.text.len() {
                self.markup()?;
            }
        }
        Ok(())
    }

    fn data(&mut self, chunk: &str) -> Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        if memmem::find(chunk.as_bytes(), b"]]>").is_some() {
            return Err(NotXml);
        }
        decode(chunk, self.target(), Ends::Lines)
    }

    fn target(&mut self) -> Option<&mut String> {
        match self.capture {
            Capture::Nothing => None,
            Capture::Name => self.plain.name.as_mut(),
            Capture::Param => self.plain.params.last_mut().map(|param| &mut param.text),
            Capture::Item => self.plain.params.last_mut().and_then(|param| param.items.last_mut()),
        }
    }

    fn markup(&mut self) -> Result<()> {
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix("</") {
            self.close(after)
        } else if let Some(after) = rest.strip_prefix("<![CDATA[") {
            let length = memmem::find(after.as_bytes(), b"]]>").ok_or(NotXml)?;
            if let Some(target) = self.target() {
                push_lines(target, &after[..length], "\n");
            }
            self.at += "<![CDATA[".len() + length + "]]>".len();
            Ok(())
        } else if let Some(after) = rest.strip_prefix("<!--") {
            // Two hyphens end a comment, and nothing else may follow them.
            let length = memmem::find(after.as_bytes(), b"--").ok_or(NotXml)?;
            self.at += "<!--".len() + length + "-->".len();
            if after[length..].starts_with("-->") { Ok(()) } else { Err(NotXml) }
        } else if let Some(after) = rest.strip_prefix("<?") {
            self.instruction(after)
        } else {
            self.start()
        }
    }

    fn instruction(&mut self, after: &str) -> Result<()> {
        let target = simple_name(after).ok_or(NotXml)?;
        let rest = &after[target.len()..];
        let is_parted = rest.starts_with("?>") || rest.starts_with(is_space);
        let length = memmem::find(rest.as_bytes(), b"?>").ok_or(NotXml)?;
        if !is_parted || target.eq_ignore_ascii_case("xml") {
            return Err(NotXml);
        }
        self.at += "<?".len() + target.len() + length + "?>".len();
        Ok(())
    }

    fn close(&mut self, after: &'t str) -> Result<()> {
        let open = self.open.pop().ok_or(NotXml)?;
        let rest = after.strip_prefix(open.raw).ok_or(NotXml)?.trim_start_matches(is_space);
        if !rest.starts_with('>') {
            return Err(NotXml);
        }
        self.at = self.text.len() - rest.len() + 1;
        self.end(open.prefixes);
        Ok(())
    }

    fn end(&mut self, prefixes: usize) {
        self.prefixes.truncate(prefixes);
        self.capture = Capture::Nothing;
        if self.open.is_empty() {
            self.within.in_params = false;
        }
    }

    fn start(&mut self) -> Result<()> {
        let after = &self.rest()[1..];
        let raw = qualified_name(after).ok_or(NotXml)?;
        let prefixes = self.prefixes.len();
        let mut attributes: Vec<(&'t str, String)> = Vec::new();
        let mut rest = &after[raw.len()..];
        let is_empty = loop {
            let trimmed = rest.trim_start_matches(is_space);
            if let Some(after) = trimmed.strip_prefix('>') {
                rest = after;
                break false;
            }
            if let Some(after) = trimmed.strip_prefix("/>") {
                rest = after;
                break true;
            }
            if trimmed.len() == rest.len() {
                return Err(NotXml);
            }
            let (name, value, after) = attribute(trimmed)?;
            attributes.push((name, value));
            rest = after;
        };
        self.bind(&mut attributes)?;
        self.check_attributes(&attributes)?;
        let tag = self.expanded(raw, true)?;
        self.at = self.text.len() - rest.len();
        self.note(tag);
        if is_empty {
            self.end(prefixes);
        } else {
            self.open.push(Open { raw, prefixes });
        }
        Ok(())
    }

    /// Takes the attributes that bind prefixes out, and binds them.
    fn bind(&mut self, attributes: &mut Vec<(&'t str, String)>) -> Result<()> {
        if !attributes.iter().any(|(name, _)| name.starts_with("xmlns")) {
            return Ok(());
        }
        let mut bound: HashSet<&str> = HashSet::new();
        for (name, uri) in std::mem::take(attributes) {
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) if rest.starts_with(':') => &rest[1..],
                _ => {
                    attributes.push((name, uri));
                    continue;
                }
            };
            let is_reserved = match prefix {
                "xmlns" => true,
                "xml" => uri != XML_NAMESPACE,
                _ => uri == XML_NAMESPACE || uri == XMLNS_NAMESPACE,
            };
            // The brace is what parts the two in a tag's name.
            let is_undeclared = uri.is_empty() && !prefix.is_empty();
            if is_reserved || is_undeclared || uri.contains('}') || !bound.insert(prefix) {
                return Err(NotXml);
            }
            self.prefixes.push((prefix, uri));
        }
        Ok(())
    }

    fn check_attributes(&self, attributes: &[(&'t str, String)]) -> Result<()> {
        if let [(name, _)] = attributes {
            return self.expanded(name, false).map(drop);
        }
        let mut seen = HashSet::with_capacity(attributes.len());
        for (name, _) in attributes {
            if !seen.insert(self.expanded(name, false)?) {
                return Err(NotXml);
            }
        }
        Ok(())
    }

    /// A name as `xml.etree` spells it: `{namespace}name`.
    fn expanded(&self, raw: &'t str, is_element: bool) -> Result<std::borrow::Cow<'t, str>> {
        let (prefix, local) = raw.split_once(':').unwrap_or(("", raw));
        if prefix == "xml" {
            return Ok(format!("{{{XML_NAMESPACE}}}{local}").into());
        }
        let bound = self.prefixes.iter().rev().find(|(own, _)| *own == prefix).map(|(_, uri)| uri.as_str());
        match (prefix, bound) {
            ("", _) if !is_element => Ok(local.into()),
            ("", None | Some("")) => Ok(local.into()),
            (_, Some(uri)) => Ok(format!("{{{uri}}}{local}").into()),
            (_, None) => Err(NotXml),
        }
    }

    /// Looks at an element that opens: which of those that count it is depends on the depth.
    fn note(&mut self, tag: std::borrow::Cow<'t, str>) {
        self.capture = Capture::Nothing;
        match (self.open.len(), &*tag) {
            (0, "name") if !self.within.seen_name => {
                self.within.seen_name = true;
                self.plain.name = Some(String::new());
                self.capture = Capture::Name;
            }
            (0, "params") if !self.within.seen_params => {
                self.within.seen_params = true;
                self.within.in_params = true;
            }
            (1, _) if self.within.in_params => {
                self.plain.params.push(Param { tag: tag.into_owned(), text: String::new(), items: Vec::new() });
                self.capture = Capture::Param;
            }
            (2, _) if self.within.in_params => {
                if let Some(param) = self.plain.params.last_mut() {
                    param.items.push(String::new());
                    self.capture = Capture::Item;
                }
            }
            _ => {}
        }
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

/// The name without a colon that a text begins with.
fn simple_name(text: &str) -> Option<&str> {
    let mut letters = text.char_indices();
    letters.next().filter(|(_, letter)| begins_name(*letter))?;
    let end = letters.find(|(_, letter)| !continues_name(*letter)).map_or(text.len(), |(at, _)| at);
    Some(&text[..end])
}

/// The name with at most one prefix that a text begins with.
fn qualified_name(text: &str) -> Option<&str> {
    let first = simple_name(text)?;
    match text[first.len()..].strip_prefix(':') {
        None => Some(first),
        Some(rest) => simple_name(rest).map(|local| &text[..=first.len() + local.len()]),
    }
}

/// The attribute that a text begins with: its name, its value, and what follows.
fn attribute(text: &str) -> Result<(&str, String, &str)> {
    let name = qualified_name(text).ok_or(NotXml)?;
    let rest = text[name.len()..].trim_start_matches(is_space).strip_prefix('=').ok_or(NotXml)?;
    let rest = rest.trim_start_matches(is_space);
    let quote = *rest.as_bytes().first().filter(|byte| matches!(byte, b'"' | b'\'')).ok_or(NotXml)?;
    let length = memchr2(quote, b'<', &rest.as_bytes()[1..]).ok_or(NotXml)?;
    if rest.as_bytes()[1 + length] != quote {
        return Err(NotXml);
    }
    let mut value = String::new();
    decode(&rest[1..=length], Some(&mut value), Ends::Blanks)?;
    Ok((name, value, &rest[length + 2..]))
}

/// What the end of a line becomes.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// A line feed, as in text.
    Lines,
    /// A blank, as in attributes.
    Blanks,
}

/// Adds character data to a text, its references replaced.
fn decode(chunk: &str, mut target: Option<&mut String>, ends: Ends) -> Result<()> {
    let mut rest = chunk;
    while let Some(length) = memchr(b'&', rest.as_bytes()) {
        let (letter, size) = reference(&rest[length..]).ok_or(NotXml)?;
        if let Some(target) = target.as_deref_mut() {
            push_ends(target, &rest[..length], ends);
            target.push(letter);
        }
        rest = &rest[length + size..];
    }
    if let Some(target) = target {
        push_ends(target, rest, ends);
    }
    Ok(())
}

/// The character that a reference stands for, and how long it is; five have names, the others numbers.
pub(super) fn reference(text: &str) -> Option<(char, usize)> {
    if !text.starts_with('&') {
        return None;
    }
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let end = text.as_bytes().iter().skip(1).take_while(|byte| is_inside(byte)).count() + 1;
    if text.as_bytes().get(end) != Some(&b';') {
        return None;
    }
    let letter = match &text[1..end] {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let number = name.strip_prefix('#')?;
            let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let letter = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
            let is_known = matches!(letter, '\t' | '\n' | '\r' | ' '..) && !matches!(letter, '\u{fffe}' | '\u{ffff}');
            is_known.then_some(letter)?
        }
    };
    Some((letter, end + 1))
}

fn push_ends(target: &mut String, text: &str, ends: Ends) {
    match ends {
        Ends::Lines => push_lines(target, text, "\n"),
        Ends::Blanks if memchr3(b'\t', b'\n', b'\r', text.as_bytes()).is_none() => target.push_str(text),
        Ends::Blanks => push_lines(target, &text.replace(['\t', '\n'], " "), " "),
    }
}

/// Adds a text, each carriage return with the line feed after it replaced.
pub(super) fn push_lines(target: &mut String, text: &str, end: &str) {
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        target.push_str(&rest[..at]);
        target.push_str(end);
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    target.push_str(rest);
}
