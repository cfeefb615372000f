//! The tags, CDATA sections and comments of a block, in one pass: what is none of them is text, whatever XML says about it.

use memchr::{memchr, memchr2, memchr3, memmem};

pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

/// Tags that say in another place which parameter they hold: `<parameter=city>`, `<param name="city">`.
const GENERIC: [&str; 5] = ["parameter", "param", "argument", "arg", "parameters"];

/// The attribute that holds a value by its name.
pub(super) const VALUE: &str = "value";

/// Attributes that say what a value is, and not the value.
const ABOUT: [&str; 14] = [
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

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `<name>`
    Open,
    /// `<name/>`
    Empty,
    /// `</name>`
    Close,
    /// A CDATA section.
    Data,
    /// A comment or an instruction, which says nothing.
    Comment,
}

/// A piece of markup; text is what stands between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    /// What the element is called.
    pub(super) name: &'t str,
    /// What its closing tag is called.
    pub(super) closes_as: &'t str,
    /// What was written behind an equals sign in the tag.
    pub(super) value: Option<&'t str>,
    /// The attribute that could hold its value: key and text.
    pub(super) said: Option<(&'t str, &'t str)>,
    /// Whether the tag was not written as tags are.
    pub(super) is_mended: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Token<'t> {
    fn new(kind: Kind, name: &'t str, start: usize, end: usize) -> Self {
        Self { kind, name, closes_as: name, value: None, said: None, is_mended: false, start, end }
    }
}

/// The CDATA section that begins at a byte does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenData(pub(super) usize);

/// Finds all markup of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, OpenData> {
    let mut found = Vec::new();
    let mut at = 0;
    // Once one of these is known not to end, no other of its kind does.
    let (mut comments_end, mut instructions_end) = (true, true);
    while let Some(length) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + length;
        let rest = &text[start..];
        let token = if let Some(data) = rest.strip_prefix(CDATA) {
            let length = memmem::find(data.as_bytes(), CDATA_END.as_bytes()).ok_or(OpenData(start))?;
            let end = start + CDATA.len() + length + CDATA_END.len();
            Some(Token::new(Kind::Data, &data[..length], start, end))
        } else if rest.starts_with("<!--") && comments_end {
            let end = memmem::find(rest.as_bytes(), b"-->");
            comments_end = end.is_some();
            end.map(|end| Token::new(Kind::Comment, "", start, start + end + "-->".len()))
        } else if rest.starts_with("<?") && instructions_end {
            let end = memmem::find(rest.as_bytes(), b"?>");
            instructions_end = end.is_some();
            end.map(|end| Token::new(Kind::Comment, "", start, start + end + "?>".len()))
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

/// The name that a text begins with, in whatever letters.
pub(super) fn name_at(text: &str) -> Option<&str> {
    let mut letters = text.char_indices();
    letters.next().filter(|(_, letter)| letter.is_alphabetic() || *letter == '_')?;
    let is_inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    let end = letters.find(|(_, letter)| !is_inside(*letter)).map_or(text.len(), |(at, _)| at);
    Some(&text[..end])
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
    Some(Token::new(Kind::Close, name, start, end))
}

fn opening(tag: &str, start: usize) -> Option<Token<'_>> {
    let name = name_at(&tag[1..])?;
    let mut rest = &tag[1 + name.len()..];
    if let Some(value) = rest.trim_start().strip_prefix('=') {
        return with_equals(tag, name, value, start);
    }
    let (mut named, mut said) = (None, None);
    let (kind, rest) = loop {
        let trimmed = rest.trim_start();
        if let Some(after) = trimmed.strip_prefix('>') {
            break (Kind::Open, after);
        }
        if let Some(after) = trimmed.strip_prefix("/>") {
            break (Kind::Empty, after);
        }
        if trimmed.len() == rest.len() {
            return None;
        }
        let (key, value, after) = attribute(trimmed)?;
        if key == "name" {
            named = Some(value);
        }
        said = may_be_value(said, key, value);
        rest = after;
    };
    let mut token = Token::new(kind, name, start, start + tag.len() - rest.len());
    token.said = said;
    if let Some(named) = named.filter(|_| GENERIC.contains(&name)) {
        token.name = named;
        token.is_mended = true;
    }
    Some(token)
}

/// The attribute that could hold a value: one called so, or else the first that says nothing about it.
fn may_be_value<'t>(said: Option<(&'t str, &'t str)>, key: &'t str, value: &'t str) -> Option<(&'t str, &'t str)> {
    let is_about = ABOUT.contains(&key) || key.contains(':') || key.starts_with("xml");
    if key == VALUE || said.is_none() && !is_about { Some((key, value)) } else { said }
}

/// The attribute that a text begins with: key, value and what follows.
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

/// A tag with an equals sign behind its name: `<city=Oslo>`, `<parameter=city>`, `<city=<![CDATA[Oslo]]></city>`.
fn with_equals<'t>(tag: &'t str, name: &'t str, value: &'t str, start: usize) -> Option<Token<'t>> {
    let after_sign = start + tag.len() - value.len();
    let mut token = Token::new(Kind::Open, name, start, after_sign);
    token.is_mended = true;
    if value.trim_start().starts_with(CDATA) {
        return Some(token);
    }
    let length = memchr3(b'>', b'<', b'\n', value.as_bytes())?;
    match value.as_bytes()[length] {
        b'>' => {
            token.end = after_sign + length + 1;
            let mut written = value[..length].trim();
            if let Some(before) = written.strip_suffix('/') {
                token.kind = Kind::Empty;
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

pub(super) fn unquoted(text: &str) -> &str {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}
