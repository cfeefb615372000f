//! Paths into arguments, such as `items[2].price`.

use std::fmt::{self, Write as _};

use super::problem::quoted;

/// The longest path, in characters.
const LENGTH: usize = 200;
/// The longest key in a path, in characters.
const KEY: usize = 64;
/// The number of steps that are kept.
const STEPS: usize = 100;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// The entry of a key.
    Key(Box<str>),
    /// The item of an index.
    Index(usize),
}

/// A path into arguments, for example `items[2].price`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ValuePath {
    steps: Vec<PathStep>,
    /// True if steps or parts of keys were left out.
    is_cut: bool,
}

impl ValuePath {
    /// Parses what [`Display`](fmt::Display) writes. Anything else is the name of one entry.
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

    /// True for the path of the arguments as a whole.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The keys of the path, without the indices; `None` if the path is not exact.
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
            if text.chars().count() > LENGTH {
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
        let shown = self.to_string();
        shown == text
    }
}

impl PartialEq<&str> for ValuePath {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

/// A path in a value that is being visited, as a list on the stack; it becomes a [`ValuePath`] only if there is a problem.
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

/// A key, cut to one character more than is kept, so that the cut is noticed.
fn short(key: &str) -> Box<str> {
    let end = key.char_indices().nth(KEY + 1).map_or(key.len(), |(end, _)| end);
    key[..end].into()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn deep(at: &At<'_>, depth: usize) -> ValuePath {
        if depth == 0 { at.into() } else { deep(&at.key("abc"), depth - 1) }
    }

    #[test]
    fn a_path_is_bounded_and_says_so() {
        let long = "k".repeat(1_000_000);
        let place = At::Root;
        let path = ValuePath::from(place.key(&long));

        assert!(path.to_string().len() < 300 && path.keys().is_none());
        let path = deep(&At::Root, 500);
        assert!(path.to_string().ends_with('…') && path.to_string().chars().count() < 210);
        assert!(path.keys().is_none());
    }
}
