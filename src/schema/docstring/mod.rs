//! What a Python docstring says about a function and its parameters.
//!
//! Four styles are understood: reST, Google, numpydoc and Epydoc. Nobody says which one a docstring is written in, so
//! every style that could apply reads it, and the one that finds the most entries (parameters, returns, raises,
//! examples and the like) is believed. On a tie the order above decides. A style that meets something it cannot
//! read drops out. Text without entries in any style is all description.

mod clean;
mod epydoc;
mod google;
mod lines;
mod numpy;
mod rest;

use clean::trim;
use lines::{Lines, cut};

/// What a docstring says, as far as a tool's schema needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docstring {
    /// The first line.
    pub short: Option<String>,
    /// Whatever else precedes the first entry.
    pub long: Option<String>,
    /// The documented parameters and attributes, in the order of the text; a name may appear twice.
    pub params: Vec<Param>,
    /// The style that was believed.
    pub style: Style,
}

/// One documented parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name as written, stars included.
    pub name: String,
    /// The text about it; empty where Google and reST show a colon with nothing behind it.
    pub description: Option<String>,
}

/// A convention for writing docstrings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `:param name: text`
    Rest,
    /// `Args:` and an indented `name (type): text`
    Google,
    /// `Parameters` underlined with dashes
    Numpy,
    /// `@param name: text`
    Epydoc,
}

/// Reads a docstring; any text has an answer.
///
/// ```
/// let doc = toolcrib::schema::docstring::parse("Add.\n\n    Args:\n        a (int): The first.\n    ");
///
/// assert_eq!(doc.short.as_deref(), Some("Add."));
/// assert_eq!(doc.param("a"), Some("The first."));
/// ```
#[must_use]
pub fn parse(text: &str) -> Docstring {
    let text = clean::clean(text);
    let marks = Marks::of(&text);
    let readings = [
        (Style::Rest, marks.rest.map(|at| rest::read(&text, at))),
        (Style::Google, marks.google.map(|at| google::read(&text, at))),
        (Style::Numpy, marks.numpy.then(|| Some(numpy::read(&text)))),
        (Style::Epydoc, marks.epydoc.map(|at| epydoc::read(&text, at))),
    ];

    let mut best: Option<(Style, Reading)> = None;
    for (style, reading) in readings {
        // A style without a mark sees prose only; one that answers `None` has dropped out.
        if let Some(reading) = reading.unwrap_or(Some(Reading::new(text.len())))
            && best.as_ref().is_none_or(|(_, best)| reading.entries > best.entries)
        {
            best = Some((style, reading));
        }
    }
    let (style, reading) = best.unwrap_or((Style::Rest, Reading::new(text.len())));

    let (short, long) = match cut(&text[..reading.prose], b'\n') {
        Some((short, long)) => (short, trim(long)),
        None => (&text[..reading.prose], ""),
    };
    Docstring { short: filled(short), long: filled(long), params: reading.params, style }
}

impl Docstring {
    /// Returns what a model is told about the function: the short description and, if wanted, the long one below it.
    #[must_use]
    pub fn description(&self, include_long: bool) -> Option<String> {
        let long = self.long.as_deref().filter(|_| include_long);
        match (self.short.as_deref(), long) {
            (Some(short), Some(long)) => Some([short, long].join("\n")),
            (one, other) => one.or(other).map(str::to_owned),
        }
        .filter(|text| !text.is_empty())
    }

    /// Returns the text about one parameter. Where the name appears twice the later entry counts, even if it is bare.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().rfind(|param| param.name == name)?.description.as_deref()
    }
}

/// What one style makes of a text.
struct Reading {
    /// Where the description ends and the entries begin.
    prose: usize,
    /// How many entries of any kind were found.
    entries: usize,
    params: Vec<Param>,
}

impl Reading {
    fn new(prose: usize) -> Self {
        Self { prose, entries: 0, params: Vec::new() }
    }

    /// Counts an entry of a kind that no schema needs.
    fn count(&mut self) {
        self.entries += 1;
    }

    fn add(&mut self, name: &str, description: Option<String>) {
        self.entries += 1;
        self.params.push(Param { name: name.to_owned(), description });
    }
}

/// Where each style could begin, found in one walk so that the others need not read the text at all.
#[derive(Default)]
struct Marks {
    rest: Option<usize>,
    google: Option<usize>,
    /// Numpydoc sections begin at the title above the line that gives them away, so only its presence is noted.
    numpy: bool,
    epydoc: Option<usize>,
}

impl Marks {
    fn of(text: &str) -> Self {
        let mut marks = Self::default();
        for (at, line) in Lines::of(text) {
            match line.as_bytes().first() {
                Some(b':') => _ = marks.rest.get_or_insert(at),
                Some(b'@') => _ = marks.epydoc.get_or_insert(at),
                Some(b'-' | b'.') => marks.numpy = true,
                Some(b'A'..=b'Y') if marks.google.is_none() && google::title(line).is_some() => {
                    marks.google = Some(at);
                }
                _ => {}
            }
        }
        marks
    }
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_with_the_most_entries_is_believed() {
        let doc = parse("S.\n\n:param a: rest\n\nArgs:\n    b: one\n    c: two\n");

        assert_eq!(doc.style, Style::Google);
        assert_eq!(doc.long.as_deref(), Some(":param a: rest"));
    }

    #[test]
    fn a_tie_goes_to_the_earlier_style() {
        let doc = parse("S.\n\nArgs:\n    a: A\n\n:param b: B\n");

        assert_eq!(doc.style, Style::Rest);
        assert_eq!(doc.param("b"), Some("B"));
    }

    #[test]
    fn a_style_that_cannot_read_the_text_drops_out() {
        let doc = parse("S.\n\nArgs:\n    a: A\n\n:broken\n");

        assert_eq!(doc.style, Style::Google);
        assert_eq!(doc.param("a"), Some("A"));
    }

    #[test]
    fn text_without_entries_is_all_description() {
        let doc = parse("One.\n\n  Two.\n");

        assert_eq!((doc.short.as_deref(), doc.long.as_deref()), (Some("One."), Some("Two.")));
        assert_eq!((doc.params.len(), doc.style), (0, Style::Rest));
    }

    #[test]
    fn descriptions_are_joined_with_one_newline() {
        let doc = parse("Short.\n\nLong.");

        assert_eq!(doc.description(true).as_deref(), Some("Short.\nLong."));
        assert_eq!(doc.description(false).as_deref(), Some("Short."));
        assert_eq!(parse(" \n\n").description(true), None);
    }

    #[test]
    fn the_later_of_two_entries_counts() {
        let doc = parse(":param a: one\n:param a: two");

        assert_eq!(doc.params.len(), 2);
        assert_eq!(doc.param("a"), Some("two"));
        assert_eq!(doc.param("b"), None);
    }
}
