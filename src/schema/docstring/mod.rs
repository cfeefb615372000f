//! A parser of Python docstrings: the description of a function and of its parameters.
//!
//! Four styles are supported: reST, Google, numpydoc and Epydoc. A docstring does not declare its style, so every style that could
//! apply parses it, and the one that finds the most entries (parameters, returns, raises, examples and the like) wins. On a tie
//! the order above decides. A style that meets something it cannot parse drops out. Text without entries in any style is all
//! description.
//!
//! Read in this order: [`parse`], which chooses the style; `google`, `numpy` and `fields` (reST and Epydoc), one parser each;
//! `lines`, the whitespace rules of Python that they share.

mod fields;
mod google;
mod lines;
mod numpy;

use std::borrow::Cow;

pub(crate) use lines::Cleaned;
use lines::{cut, trim};

/// The parts of a docstring that a tool's schema needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docstring<'a> {
    /// The first line.
    pub short: Option<Cow<'a, str>>,
    /// The rest of the text before the first entry.
    pub long: Option<Cow<'a, str>>,
    /// The documented parameters and attributes, in the order of the text; a name may appear twice.
    pub params: Vec<Param<'a>>,
    /// The style that was chosen.
    pub style: Style,
}

/// One documented parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// The name as written, stars included.
    pub name: Cow<'a, str>,
    /// Its description; empty where Google and reST have a colon with nothing behind it.
    pub description: Option<Cow<'a, str>>,
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

/// Parses a docstring. Any text is valid.
///
/// ```
/// let doc = toolcrib::schema::docstring::parse("Add.\n\n    Args:\n        a (int): The first.\n    ");
///
/// assert_eq!(doc.short.as_deref(), Some("Add."));
/// assert_eq!(doc.param("a"), Some("The first."));
/// ```
#[must_use]
pub fn parse(text: &str) -> Docstring<'static> {
    Cleaned::of(text).read(false).into_owned()
}

impl Cleaned<'_> {
    /// Parses the docstring; the parts are borrowed. With `may_wrap` it also reads a Google section in which a wrapped line is not
    /// indented, where `docstring_parser`, and therefore [`parse`], finds no parameters at all.
    pub(crate) fn read(&self, may_wrap: bool) -> Docstring<'_> {
        let text = &*self.text;
        let marks = StyleMarks::of(self);
        let candidates = [
            (Style::Rest, marks.rest.map(|at| fields::read_rest(text, at))),
            (Style::Google, marks.google.map(|at| google::read(self, at))),
            (Style::Numpy, marks.numpy.then(|| Some(numpy::read(text)))),
            (Style::Epydoc, marks.epydoc.map(|at| fields::read_epydoc(text, at))),
        ];

        let mut best: Option<(Style, Candidate)> = None;
        for (style, candidate) in candidates {
            // A style without a mark sees prose only; one that returns `None` has dropped out.
            if let Some(candidate) = candidate.unwrap_or(Some(Candidate::new(text.len())))
                && best.as_ref().is_none_or(|(_, best)| candidate.entries > best.entries)
            {
                best = Some((style, candidate));
            }
        }
        if may_wrap
            && best.as_ref().is_none_or(|(_, best)| best.entries == 0)
            && let Some(wrapped) = marks.google.and_then(|at| google::read_wrapped(self, at))
        {
            best = Some((Style::Google, wrapped));
        }
        let (style, candidate) = best.unwrap_or((Style::Rest, Candidate::new(text.len())));

        let (short, long) = match cut(&text[..candidate.prose], b'\n') {
            Some((short, long)) => (short, trim(long)),
            None => (&text[..candidate.prose], ""),
        };
        Docstring { short: non_empty(short), long: non_empty(long), params: candidate.params, style }
    }
}

impl Docstring<'_> {
    fn into_owned(self) -> Docstring<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let param = |param: Param<'_>| Param { name: owned(param.name), description: param.description.map(owned) };
        Docstring {
            short: self.short.map(owned),
            long: self.long.map(owned),
            params: self.params.into_iter().map(param).collect(),
            style: self.style,
        }
    }

    /// Returns the description that models are shown: the short one and, with `include_long`, the long one below it.
    #[must_use]
    pub fn description(&self, include_long: bool) -> Option<String> {
        let long = self.long.as_deref().filter(|_| include_long);
        match (self.short.as_deref(), long) {
            (Some(short), Some(long)) => Some([short, long].join("\n")),
            (one, other) => one.or(other).map(str::to_owned),
        }
        .filter(|text| !text.is_empty())
    }

    /// Returns the description of one parameter. If the name appears twice the later entry counts, even without a description.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().rfind(|param| param.name == name)?.description.as_deref()
    }
}

/// The result of parsing a text in one style.
struct Candidate<'a> {
    /// The offset at which the description ends and the entries begin.
    prose: usize,
    /// The number of entries of any kind.
    entries: usize,
    params: Vec<Param<'a>>,
}

impl<'a> Candidate<'a> {
    fn new(prose: usize) -> Self {
        Self { prose, entries: 0, params: Vec::new() }
    }

    /// Counts an entry that schemas do not need.
    fn count(&mut self) {
        self.entries += 1;
    }

    fn add(&mut self, name: impl Into<Cow<'a, str>>, description: Option<Cow<'a, str>>) {
        self.entries += 1;
        if self.params.is_empty() {
            self.params.reserve(8);
        }
        self.params.push(Param { name: name.into(), description });
    }
}

/// The offsets at which each style could begin, found in one pass so that styles without one need not parse the text.
#[derive(Default)]
struct StyleMarks {
    rest: Option<usize>,
    /// The number of the line.
    google: Option<usize>,
    /// Numpydoc sections begin at the title above the line that reveals them, so only its presence is recorded.
    numpy: bool,
    epydoc: Option<usize>,
}

impl StyleMarks {
    fn of(Cleaned { text, lines }: &Cleaned<'_>) -> Self {
        let mut marks = Self::default();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.is_flush()) {
            match text.as_bytes()[line.start] {
                b':' => _ = marks.rest.get_or_insert(line.start),
                b'@' => _ = marks.epydoc.get_or_insert(line.start),
                b'-' | b'.' => marks.numpy = true,
                b'A'..=b'Y' if marks.google.is_none() && google::title(line.of(text)).is_some() => {
                    marks.google = Some(number);
                }
                _ => {}
            }
        }
        marks
    }
}

fn non_empty(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_with_the_most_entries_wins() {
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
    fn a_style_that_cannot_parse_the_text_drops_out() {
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
