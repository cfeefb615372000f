//! Problems with arguments as data: the place, what was expected, what was found. They become text in one place.

use std::{borrow::Cow, fmt, fmt::Write as _};

use super::subject::{Kind, Subject};

/// How many problems are listed.
pub(super) const LISTED: usize = 50;

/// The longest rendering of a value, in characters.
const FOUND: usize = 80;
/// The longest path, in characters.
const PATH: usize = 200;
/// The longest key in a path, in characters.
const KEY: usize = 64;
/// How many steps of a path are kept.
const STEPS: usize = 100;

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, for example `items[2].price`; the root is shown as `arguments`.
    pub path: ValuePath,
    /// What should be there.
    pub expected: Expected,
    /// What is there.
    pub found: Found,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, found } = self;
        let root = if path.is_root() { "arguments" } else { "" };
        write!(formatter, "{root}{path}: expected {expected}, got {found}")
    }
}

/// The value that a place should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// A value, described by a phrase such as `an integer >= 1`.
    Value(Cow<'static, str>),
    /// A known name in the place of one that is not.
    Name {
        /// The thing that has the name: `argument` or `key`.
        noun: &'static str,
        /// The known name that was probably meant.
        near: Option<String>,
        /// Known names; not all if there are many.
        known: Vec<String>,
        /// How many known names are left out.
        more: usize,
    },
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(phrase) => formatter.write_str(phrase),
            Self::Name { noun, known, .. } if known.is_empty() => {
                write!(formatter, "no such {noun} (there are none)")
            }
            Self::Name { noun, near, known, more } => {
                write!(formatter, "no such {noun} (")?;
                if let Some(near) = near {
                    write!(formatter, "did you mean {near}? ")?;
                }
                write!(formatter, "known: {}", known.join(", "))?;
                if *more > 0 {
                    write!(formatter, ", … ({more} more)")?;
                }
                formatter.write_str(")")
            }
        }
    }
}

impl From<&'static str> for Expected {
    fn from(phrase: &'static str) -> Self {
        Self::Value(Cow::Borrowed(phrase))
    }
}

impl From<String> for Expected {
    fn from(phrase: String) -> Self {
        Self::Value(Cow::Owned(phrase))
    }
}

/// The thing that is in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A phrase that shows no value: `nothing`, `another key`.
    Fixed(&'static str),
    /// A value of JSON.
    Value {
        /// Its kind as a phrase: `a string`.
        kind: &'static str,
        /// A short rendering.
        shown: String,
    },
    /// Something that JSON cannot hold, by what it is called.
    Other(String),
    /// A value that must not be shown, with its kind if it has one of JSON.
    Hidden(Option<&'static str>),
}

impl Found {
    /// No value.
    pub const NOTHING: Self = Self::Fixed("nothing");

    /// A short rendering of a value with its kind.
    pub fn of<S: Subject>(value: &S) -> Self {
        let kind = match value.kind() {
            Kind::Null => return Self::Fixed("null"),
            Kind::Other => return Self::Other(clean(&value.other_name(), FOUND).into_owned()),
            Kind::Bool => "a boolean",
            Kind::Int => "an integer",
            Kind::Float => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        };
        let mut text = Short { text: String::new(), room: FOUND };
        text.value(value, 0);
        Self::Value { kind, shown: text.text }
    }

    /// The same without the value.
    #[must_use]
    pub fn hidden(self) -> Self {
        match self {
            Self::Fixed(_) | Self::Hidden(_) => self,
            Self::Value { kind, .. } => Self::Hidden(Some(kind)),
            Self::Other(_) => Self::Hidden(None),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(phrase) => formatter.write_str(phrase),
            Self::Value { kind, shown } => write!(formatter, "{shown} ({kind})"),
            Self::Other(name) => formatter.write_str(name),
            Self::Hidden(Some(kind)) => write!(formatter, "{HIDDEN} ({kind})"),
            Self::Hidden(None) => formatter.write_str(HIDDEN),
        }
    }
}

impl From<String> for Found {
    fn from(name: String) -> Self {
        Self::Other(name)
    }
}

/// Shown in place of a value that may be a secret.
pub const HIDDEN: &str = "***";

/// The reply that tells a model what to change.
#[must_use]
pub fn render(tool: &str, problems: &[Problem]) -> String {
    let mut text = format!("Error: Invalid arguments for tool '{tool}':");
    for problem in problems.iter().take(LISTED) {
        let _ = write!(text, "\n- {problem}");
    }
    if problems.len() > LISTED {
        let _ = write!(text, "\n- and {} more", problems.len() - LISTED);
    }
    text
}

/// A text that stops growing when it is long enough.
struct Short {
    text: String,
    room: usize,
}

impl Short {
    fn push(&mut self, piece: &str) -> bool {
        for character in piece.chars() {
            if self.room == 0 {
                return false;
            }
            self.room -= 1;
            if self.room == 0 {
                self.text.push('…');
                return false;
            }
            self.text.push(character);
        }
        true
    }

    fn value<S: Subject>(&mut self, value: &S, depth: usize) -> bool {
        match value.kind() {
            Kind::Null => self.push("null"),
            Kind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            Kind::Int => match value.digits(FOUND) {
                Some(digits) => self.push(&digits),
                None => self.push("a very large one"),
            },
            Kind::Float => match value.float() {
                Some(float) => self.push(&float_text(float)),
                None => self.push("a very exact one"),
            },
            Kind::String => self.push(&quoted(&value.lossy_text(), FOUND)),
            Kind::Other => self.push(&clean(&value.other_name(), FOUND)),
            Kind::Array | Kind::Object if depth > 3 => self.push("…"),
            Kind::Array => {
                let mut first = true;
                self.push("[")
                    && value.every_item(|item| {
                        let separated = std::mem::take(&mut first) || self.push(", ");
                        separated && self.value(item, depth + 1)
                    })
                    && self.push("]")
            }
            Kind::Object => {
                let mut first = true;
                self.push("{")
                    && value.every_entry(|key, entry| {
                        let separated = std::mem::take(&mut first) || self.push(", ");
                        let key = key.map_or(Cow::Borrowed("?"), |key| Cow::Owned(quoted(key, FOUND)));
                        separated && self.push(&key) && self.push(": ") && self.value(entry, depth + 1)
                    })
                    && self.push("}")
            }
        }
    }
}

/// A text in quotes on one line, cut to about `most` characters.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let mut out = String::from('"');
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ => escape(character, &mut out),
        }
    }
    out.push('"');
    out
}

/// A text on one line, cut to about `most` characters.
pub(super) fn clean(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        escape(character, &mut out);
    }
    Cow::Owned(out)
}

/// Control characters, and the marks that reorder or hide text, are written out.
fn escape(character: char, out: &mut String) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        _ if character.is_control() => {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        _ => out.push(character),
    }
}

/// The shortest text of a finite number, as Python writes it: `1.0`, `1e-05`, `1.5e+16`.
pub(super) fn float_text(float: f64) -> String {
    let text = format!("{float:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// To the entry of a key.
    Key(Box<str>),
    /// To the item of an index.
    Index(usize),
}

/// A place in arguments, for example `items[2].price`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ValuePath {
    steps: Vec<PathStep>,
    /// True if the place is deeper than the steps say, or a key is longer than shown.
    is_cut: bool,
}

impl ValuePath {
    /// Reads what [`Display`](fmt::Display) writes. Anything else is the name of one entry.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|| Self { steps: vec![PathStep::Key(text.into())], is_cut: true })
    }

    fn read(text: &str) -> Option<Self> {
        let mut path = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']')?;
                path.steps.push(PathStep::Index(index.parse().ok()?));
                rest = after;
                continue;
            }
            let begin = if path.steps.is_empty() { rest } else { rest.strip_prefix('.')? };
            let end = begin.find(['.', '[', '"', '…']).unwrap_or(begin.len());
            let (key, after) = begin.split_at(end);
            if key.is_empty() || after.starts_with(['"', '…']) {
                return None;
            }
            path.steps.push(PathStep::Key(key.into()));
            rest = after;
        }
        Some(path)
    }

    fn push(&mut self, step: PathStep) {
        if self.steps.len() >= STEPS {
            self.is_cut = true;
            return;
        }
        self.steps.push(match step {
            PathStep::Key(key) if key.chars().nth(KEY).is_some() => {
                self.is_cut = true;
                PathStep::Key(short(&key))
            }
            step => step,
        });
    }

    /// True for the place of all arguments together.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The keys on the way, without the indices; none if the path is not exact.
    #[must_use]
    pub fn keys(&self) -> Option<impl Iterator<Item = &str>> {
        let key = |step: &'_ PathStep| matches!(step, PathStep::Key(_));
        (!self.is_cut).then(|| {
            self.steps.iter().filter(move |step| key(step)).map(|step| match step {
                PathStep::Key(key) => &**key,
                PathStep::Index(_) => "",
            })
        })
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (place, step) in self.steps.iter().enumerate() {
            if text.chars().count() > PATH {
                return write!(formatter, "{text}…");
            }
            let _ = match step {
                PathStep::Index(index) => write!(text, "[{index}]"),
                PathStep::Key(key) if is_plain(key) && place == 0 => write!(text, "{key}"),
                PathStep::Key(key) if is_plain(key) => write!(text, ".{key}"),
                PathStep::Key(key) if place == 0 => write!(text, "{}", quoted(key, KEY)),
                PathStep::Key(key) => write!(text, "[{}]", quoted(key, KEY)),
            };
        }
        formatter.write_str(&text)?;
        if self.steps.len() >= STEPS { formatter.write_str("…") } else { Ok(()) }
    }
}

fn is_plain(key: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '$');
    !key.is_empty() && key.len() <= KEY && key.chars().all(is_plain)
}

impl From<&str> for ValuePath {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl From<String> for ValuePath {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

impl From<&String> for ValuePath {
    fn from(text: &String) -> Self {
        Self::parse(text)
    }
}

impl PartialEq<str> for ValuePath {
    fn eq(&self, text: &str) -> bool {
        self.to_string() == text
    }
}

impl PartialEq<&str> for ValuePath {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

/// A place in a value that is being walked through; it becomes a [`ValuePath`] only where there is something to say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl<'a> At<'a> {
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        At::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        At::Index(self, index)
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, At::Root)
    }
}

impl FromIterator<PathStep> for ValuePath {
    fn from_iter<I: IntoIterator<Item = PathStep>>(steps: I) -> Self {
        let mut path = Self::default();
        for step in steps {
            path.push(step);
        }
        path
    }
}

impl From<At<'_>> for ValuePath {
    fn from(at: At<'_>) -> Self {
        Self::from(&at)
    }
}

impl From<&At<'_>> for ValuePath {
    fn from(at: &At<'_>) -> Self {
        let mut steps = Vec::new();
        let mut place = *at;
        loop {
            place = match place {
                At::Root => break,
                At::Key(outer, key) => {
                    steps.push(PathStep::Key(short(key)));
                    *outer
                }
                At::Index(outer, index) => {
                    steps.push(PathStep::Index(index));
                    *outer
                }
            };
        }
        steps.into_iter().rev().collect()
    }
}

/// A key with no more of it than is kept, and one character more if that is not all.
fn short(key: &str) -> Box<str> {
    let end = key.char_indices().nth(KEY + 1).map_or(key.len(), |(end, _)| end);
    key[..end].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(value: &serde_json::Value) -> String {
        Found::of(value).to_string()
    }

    #[test]
    fn an_answer_has_one_line_for_each_problem() {
        let problem = Problem { path: "a".into(), expected: "an integer".into(), found: Found::NOTHING };

        let text = render("f", &[problem.clone(), problem]);

        let line = "- a: expected an integer, got nothing";
        assert_eq!(text, format!("Error: Invalid arguments for tool 'f':\n{line}\n{line}"));
    }

    #[test]
    fn an_answer_is_bounded_and_says_what_was_left_out() {
        let problem = Problem { path: "a".into(), expected: "b".into(), found: Found::Fixed("c") };

        let text = render("f", &vec![problem; 70]);

        assert_eq!(text.lines().count(), 1 + 50 + 1);
        assert!(text.ends_with("\n- and 20 more"));
    }

    #[test]
    fn values_are_shown_with_their_kind() {
        assert_eq!(found(&json!("a\"b\n\u{7}")), "\"a\\\"b\\n\\u0007\" (a string)");
        assert_eq!(found(&json!(null)), "null");
        assert_eq!(found(&json!([1, "x", {"k": [true]}])), "[1, \"x\", {\"k\": [true]}] (an array)");
        assert_eq!(found(&json!([[[[[[1]]]]]])), "[[[[…]]]] (an array)");
    }

    #[test]
    fn values_are_cut() {
        let long = found(&json!("x".repeat(1_000_000)));
        let wide = found(&json!(vec![0; 100_000]));

        assert!(long.chars().count() < 100 && long.ends_with("… (a string)"), "{long}");
        assert!(wide.chars().count() < 100, "{wide}");
    }

    #[test]
    fn floats_read_as_in_python() {
        let cases =
            [(1.0, "1.0"), (1.5, "1.5"), (1e16, "1e+16"), (1e-5, "1e-05"), (0.0001, "0.0001"), (-2.5e300, "-2.5e+300")];
        for (float, text) in cases {
            assert_eq!(float_text(float), text);
        }
    }

    #[test]
    fn paths_read_like_code() {
        let (items, item) = (At::Root.key("items"), At::Root);
        let (second, odd) = (items.index(2), item.key("a"));

        assert_eq!(ValuePath::from(second.key("price")), *"items[2].price");
        assert_eq!(ValuePath::from(odd.key("b c")), *"a[\"b c\"]");
        assert_eq!(ValuePath::from(At::Root.key("b c")), *"\"b c\"");
    }

    #[test]
    fn plain_paths_are_read_as_they_were_written() {
        for text in ["", "a", "items[2].price", "a.b.c", "a[0][1]", "ß-$.x"] {
            let path = ValuePath::parse(text);

            assert!(path == *text && path.keys().is_some(), "{text}");
        }
        for text in ["a..b", ".a", "a[x]", "a[\"b c\"]", "a…", "[", "a]b["] {
            assert!(ValuePath::parse(text).keys().is_none(), "{text}");
        }
    }

    #[test]
    fn a_path_is_bounded_and_says_so() {
        let long = "k".repeat(1_000_000);
        let place = At::Root;
        let path = ValuePath::from(place.key(&long));

        assert!(path.to_string().len() < 300 && path.keys().is_none());
        fn deep(at: &At<'_>, depth: usize) -> ValuePath {
            if depth == 0 { at.into() } else { deep(&at.key("abc"), depth - 1) }
        }
        let path = deep(&At::Root, 500);
        assert!(path.to_string().ends_with('…') && path.to_string().chars().count() < 210);
        assert!(path.keys().is_none());
    }
}
