//! The place of a quotation in a text: exact, then without regard to spaces and look-alike letters, then approximate.
//!
//! A place is never guessed: where two places fit equally well, or the ends of the best one are uncertain, the quotation is
//! refused together with the lines of the candidates.

use std::fmt;
use std::ops::Range;

use memchr::memmem;

use super::approximate::{Nearest, Search};
use super::fold::{self, Folded};

/// The largest part of the quotation that may differ.
const LIMIT: f64 = 0.3;

/// The part from which on there is no likeness to speak of.
const UNLIKE: f64 = 0.7;

/// The number of letters of the quotation in a message.
const SHOWN: usize = 50;

/// The number of candidates in a message.
const CANDIDATES: usize = 5;

/// The number of ends of one occurrence, so many of which only texts of few different letters have.
const ENDS: usize = 64;

string_enum! {
    /// The likeness by which a place was found.
    pub enum MatchType {
        /// The text is the quotation.
        Exact = "exact",
        /// The text differs in spaces, line ends, quotes, dashes or the form of letters only.
        Normalized = "normalized",
        /// The text differs by a few edits.
        Fuzzy = "fuzzy",
    }
}

/// The place of a quotation.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// Its bytes.
    pub span: Range<usize>,
    /// The likeness.
    pub kind: MatchType,
    /// One minus the edits per letter of the quotation.
    pub similarity: f64,
}

/// The reason why a quotation has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// It has several.
    Repeated {
        /// The quotation.
        text: String,
        /// The number of places.
        count: usize,
        /// The lines of the first ones, from 1.
        lines: Vec<usize>,
    },
    /// Nothing is like it.
    Missing {
        /// The quotation.
        text: String,
    },
    /// The most similar place is not similar enough.
    Different {
        /// The number of edits.
        distance: usize,
        /// The line of the place, from 1.
        line: usize,
    },
    /// Several places are equally similar, or parts of one place.
    Ambiguous {
        /// The quotation.
        text: String,
        /// The number of edits of each.
        distance: usize,
        /// The lines of the first ones, from 1.
        lines: Vec<usize>,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = |text: &str| text.chars().take(SHOWN).collect::<String>();
        match self {
            Self::Repeated { text, count, .. } => {
                write!(formatter, "Text '{}...' appears {count} times (must be unique)", start(text))
            }
            Self::Missing { text } => write!(formatter, "Failed to find matching text '{}...'", start(text)),
            Self::Different { distance, .. } => {
                write!(formatter, "Best match difference is too large (edit distance: {distance})")
            }
            Self::Ambiguous { text, distance, lines } => {
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                let (word, lines) = (if lines.len() == 1 { "line" } else { "lines" }, lines.join(", "));
                write!(
                    formatter,
                    "Text '{}...' has several equally similar places, at {word} {lines} (edit distance: {distance}): \
                     quote the text exactly, or more of it",
                    start(text)
                )
            }
        }
    }
}

impl Mismatch {
    /// The lines of the places that come into question.
    #[must_use]
    pub fn lines(&self) -> &[usize] {
        match self {
            Self::Repeated { lines, .. } | Self::Ambiguous { lines, .. } => lines,
            Self::Different { line, .. } => std::slice::from_ref(line),
            Self::Missing { .. } => &[],
        }
    }
}

/// Finds the only place of a quotation in a text.
///
/// # Errors
///
/// The reason why there is none, or more than one.
pub fn find(text: &str, quotation: &str) -> Result<Match, Mismatch> {
    match exact(text, quotation) {
        Occurrences::One(span) => return Ok(Match { span, kind: MatchType::Exact, similarity: 1.0 }),
        Occurrences::Many { count, starts } => return Err(repeated(text, quotation, count, &starts)),
        Occurrences::None => {}
    }
    match normalized(text, quotation) {
        Occurrences::One(span) => Ok(Match { span, kind: MatchType::Normalized, similarity: 1.0 }),
        Occurrences::Many { count, starts } => Err(repeated(text, quotation, count, &starts)),
        Occurrences::None => approximate(text, quotation),
    }
}

fn repeated(text: &str, quotation: &str, count: usize, starts: &[usize]) -> Mismatch {
    let lines = starts.iter().map(|start| line_of(text, *start)).collect();
    Mismatch::Repeated { text: quotation.to_owned(), count, lines }
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

enum Occurrences {
    None,
    One(Range<usize>),
    Many { count: usize, starts: Vec<usize> },
}

impl Occurrences {
    fn of(mut spans: impl Iterator<Item = Range<usize>>) -> Self {
        let Some(first) = spans.next() else { return Self::None };
        let mut starts = vec![first.start];
        let mut count = 1;
        for span in spans {
            count += 1;
            if starts.len() < CANDIDATES {
                starts.push(span.start);
            }
        }
        if count == 1 { Self::One(first) } else { Self::Many { count, starts } }
    }
}

fn exact(text: &str, quotation: &str) -> Occurrences {
    if quotation.is_empty() {
        // As Python counts: before each letter, and at the end.
        return match text.chars().count() {
            0 => Occurrences::One(0..0),
            letters => Occurrences::Many { count: letters + 1, starts: Vec::new() },
        };
    }
    let finder = memmem::Finder::new(quotation);
    let spans = |from: usize| {
        let found = finder.find_iter(&text.as_bytes()[from..]);
        found.map(move |at| from + at..from + at + quotation.len())
    };
    match Occurrences::of(spans(0)) {
        Occurrences::One(span) => match spans(span.start + 1).next() {
            // It overlaps the first one, so it was not counted.
            Some(other) => Occurrences::Many { count: 2, starts: vec![span.start, other.start] },
            None => Occurrences::One(span),
        },
        other => other,
    }
}

fn normalized(text: &str, quotation: &str) -> Occurrences {
    if text.len().max(quotation.len()) > fold::LONGEST {
        return Occurrences::None;
    }
    let (letters, quotation) = (Folded::text_of(text), Folded::text_of(quotation));
    let finder = memmem::Finder::new(&quotation);
    // There are letters that stand for eighteen, and the places of a text of them would take a hundred times its memory.
    let is_inflated = letters.len() > 2 * text.len();
    if quotation.trim().is_empty() || is_inflated || finder.find(letters.as_bytes()).is_none() {
        return Occurrences::None;
    }
    drop(letters);
    let folded = Folded::of(text);
    let mut from = 0;
    let spans = std::iter::from_fn(|| {
        while let Some(at) = finder.find(&folded.text.as_bytes()[from..]) {
            let start = from + at;
            match folded.original(start..start + quotation.len()) {
                Some(span) => {
                    from = start + quotation.len();
                    return Some(span);
                }
                None => from = start + folded.text[start..].chars().next().map_or(1, char::len_utf8),
            }
        }
        None
    });
    Occurrences::of(spans)
}

fn approximate(text: &str, quotation: &str) -> Result<Match, Mismatch> {
    let missing = || Mismatch::Missing { text: quotation.to_owned() };
    let fold = |text: &str| text.chars().map(|letter| fold::one(letter).unwrap_or(letter)).collect::<Vec<char>>();
    let (letters, pattern) = (fold(text), fold(quotation));
    let search = Search::new(&pattern, &letters).ok_or_else(missing)?;
    let nearest = search.nearest().ok_or_else(missing)?;
    #[allow(clippy::cast_precision_loss, reason = "lengths of texts in memory")]
    let part = nearest.distance as f64 / pattern.len() as f64;
    if part > UNLIKE {
        return Err(missing());
    }
    let places = Places { text, letters: &letters, pattern: &pattern, search: &search, nearest: &nearest };
    if part > LIMIT {
        return Err(Mismatch::Different { distance: nearest.distance, line: places.lines()[0] });
    }
    match places.only() {
        Some(span) => Ok(Match { span: places.bytes(span), kind: MatchType::Fuzzy, similarity: 1.0 - part }),
        None => {
            Err(Mismatch::Ambiguous { text: quotation.to_owned(), distance: nearest.distance, lines: places.lines() })
        }
    }
}

/// The most similar places.
struct Places<'a> {
    text: &'a str,
    letters: &'a [char],
    pattern: &'a [char],
    search: &'a Search,
    nearest: &'a Nearest,
}

/// One of them, in letters: its edits, and how well its edges fit between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    start: usize,
    end: usize,
    distance: usize,
    fit: (u8, u8),
}

impl Places<'_> {
    /// The one place that the quotation must mean.
    ///
    /// An edit at an edge of the quotation can be undone in two ways: by a letter more, or a letter less, of the text. The
    /// way counts whose edge is that of a line or a word. If the best place cuts a word, and one more edit gives a
    /// place that does not, both are possible.
    fn only(&self) -> Option<Range<usize>> {
        let best = self.nearest.distance;
        let first = self.nearest.ends.iter().find(|(_, distance)| *distance == best)?.0;
        let last = self.nearest.ends.iter().rfind(|(_, distance)| *distance == best)?.0;
        let last_start = self.search.starts(last, best).iter().map(|(start, _)| *start).max()?;
        if last_start >= first {
            return None;
        }
        let near = self.nearest.ends.iter().filter(|(end, _)| (last_start..=last + self.pattern.len()).contains(end));
        let ends: Vec<usize> = near.map(|(end, _)| *end).collect();
        if ends.len() > ENDS {
            return None;
        }
        let places: Vec<Place> = ends.into_iter().flat_map(|end| self.ending_at(end)).collect();
        let fit = |place: &Place| place.fit.0 + place.fit.1;
        let chosen = *places.iter().filter(|place| place.distance == best).max_by_key(|place| fit(place))?;
        let is_uncertain = places.iter().any(|place| {
            let fits_better = (chosen.fit.0 == 0 && place.fit.0 > 0) || (chosen.fit.1 == 0 && place.fit.1 > 0);
            let is_as_good = place.distance == best && fit(place) == fit(&chosen);
            *place != chosen && (is_as_good || fits_better)
        });
        (!is_uncertain).then_some(chosen.start..chosen.end)
    }

    /// The places that end after a letter, with at most one edit more than the best.
    fn ending_at(&self, end: usize) -> impl Iterator<Item = Place> {
        let starts = self.search.starts(end, self.nearest.distance + 1);
        starts.into_iter().map(move |(start, distance)| {
            let before = start.checked_sub(1).map(|at| self.letters[at]);
            let after = self.letters.get(end).copied();
            let (first, last) = (self.pattern[0], self.pattern[self.pattern.len() - 1]);
            let fit = (fit(before, self.letters[start], first), fit(after, self.letters[end - 1], last));
            Place { start, end, distance, fit }
        })
    }

    /// The lines of the first places.
    fn lines(&self) -> Vec<usize> {
        let Nearest { distance, ends } = self.nearest;
        let mut lines: Vec<usize> = Vec::new();
        let mut after = 0;
        for (end, _) in ends.iter().filter(|(_, other)| other == distance) {
            if lines.is_empty() || *end >= after {
                let start = end.saturating_sub(self.pattern.len());
                lines.push(self.letters[..start].iter().filter(|letter| **letter == '\n').count() + 1);
                after = end + self.pattern.len().saturating_sub(distance + 1);
            }
            if lines.len() == CANDIDATES {
                break;
            }
        }
        lines.dedup();
        lines
    }

    /// The bytes of a range of letters.
    fn bytes(&self, range: Range<usize>) -> Range<usize> {
        let mut offsets = self.text.char_indices().map(|(at, _)| at).chain([self.text.len()]);
        let start = offsets.nth(range.start).unwrap_or_default();
        let end = offsets.nth(range.len() - 1).unwrap_or(self.text.len());
        start..end
    }
}

/// The likelihood that a quotation with the letter `quoted` at its edge has this edge between two letters, the outer and the
/// inner one: at a line, at a word, at a sign, inside of a word.
fn fit(outer: Option<char>, inner: char, quoted: char) -> u8 {
    match outer {
        _ if inner.is_whitespace() => {
            if quoted.is_whitespace() {
                3
            } else {
                0
            }
        }
        None | Some('\n') => 3,
        Some(outer) if outer.is_whitespace() => 2,
        Some(outer) if outer.is_alphanumeric() != inner.is_alphanumeric() => 1,
        Some(_) => 0,
    }
}
