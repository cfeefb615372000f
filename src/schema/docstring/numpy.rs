//! Numpydoc style: titles underlined with as many dashes as they have letters, and the `.. deprecated::` directive.

use super::Candidate;
use super::lines::{Lines, clean, is_space, trim, trim_end, trim_start};

/// The format of a section's body.
#[derive(Clone, Copy)]
enum SectionKind {
    /// Lines that name parameters, with indented text below each.
    Params,
    /// The same for anything else.
    Keyed,
    /// Prompts and prose alternating; each pair is an entry.
    Examples,
    /// One entry, whatever the body contains.
    Whole,
}

struct Heading {
    kind: SectionKind,
    start: usize,
    end: usize,
}

/// Parses the sections of a text; this style never drops out.
pub(super) fn read(text: &str) -> Candidate<'_> {
    let headings = headings(text);
    let mut candidate = Candidate::new(headings.first().map_or(text.len(), |first| first.start));
    let ends = headings.iter().skip(1).map(|next| next.start).chain([text.len()]);
    for (heading, end) in headings.iter().zip(ends) {
        let body = &text[heading.end..end];
        match heading.kind {
            SectionKind::Params => {
                keyed(body, |key, value| {
                    let value = clean(value);
                    let value = trim(&value);
                    candidate.add(name(key), (!value.is_empty()).then(|| value.to_owned().into()));
                });
            }
            SectionKind::Keyed => keyed(body, |_, _| candidate.count()),
            SectionKind::Examples => candidate.entries += examples(body),
            SectionKind::Whole => candidate.count(),
        }
    }
    candidate
}

fn headings(text: &str) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    for (at, line) in Lines::of(text) {
        if headings.last().is_none_or(|last| last.end <= at)
            && let Some((kind, end)) = underlined(text, at, line).or_else(|| deprecation(text, at, line))
        {
            headings.push(Heading { kind, start: at, end });
        }
    }
    headings
}

/// Recognises a title with its underline; blank lines may be between and behind them. The last line ending behind them is
/// left to the body, so that the body begins with a whole line.
fn underlined(text: &str, at: usize, line: &str) -> Option<(SectionKind, usize)> {
    let title = trim_end(line);
    let kind = match title {
        "Parameters" | "Params" | "Arguments" | "Args" | "Other Parameters" | "Other Params" | "Other Arguments"
        | "Other Args" | "Receives" | "Receive" | "Attributes" | "Attribute" => SectionKind::Params,
        "Raises" | "Raise" | "Warns" | "Warn" | "Returns" | "Return" | "Yields" | "Yield" => SectionKind::Keyed,
        "Examples" | "Example" => SectionKind::Examples,
        "Warnings" | "Warning" | "See Also" | "Related" | "Notes" | "Note" | "References" | "Reference" => {
            SectionKind::Whole
        }
        _ => return None,
    };
    let below = trim_start(&text[at + title.len()..]);
    let dashes = below.bytes().take_while(|byte| *byte == b'-').count();
    if dashes != title.len() || !text[..text.len() - below.len()].ends_with('\n') {
        return None;
    }
    let behind = &below[dashes..];
    let body = trim_start(behind);
    let blank = &behind[..behind.len() - body.len()];
    let kept = if body.is_empty() { blank.len() } else { blank.rfind('\n')? };
    Some((kind, text.len() - behind.len() + kept))
}

fn deprecation(text: &str, at: usize, line: &str) -> Option<(SectionKind, usize)> {
    line.strip_prefix("..")?;
    let word = trim_start(&text[at + 2..]);
    let body = trim_start(word.strip_prefix("deprecated")?).strip_prefix("::")?;
    Some((SectionKind::Whole, text.len() - body.len()))
}

/// Visits the lines that are not indented, each with the text below it.
fn keyed<'a>(body: &'a str, mut found: impl FnMut(&'a str, &'a str)) {
    let mut open: Option<(&str, usize)> = None;
    for (at, line) in Lines::of(body) {
        if line.starts_with(|c| !is_space(c))
            && let Some((key, start)) = open.replace((line, at + line.len()))
        {
            found(key, &body[start..at]);
        }
    }
    if let Some((key, start)) = open {
        found(key, &body[start..]);
    }
}

fn name(key: &str) -> &str {
    key.split_once(':').map_or(key, |(name, _)| trim_end(name))
}

/// Counts the entries of an examples section: each is some prompts and the lines up to the next prompt.
fn examples(body: &str) -> usize {
    let indent = |line: &str| line.bytes().take_while(|byte| *byte == b' ').count();
    let margin = body.split('\n').filter(|line| indent(line) < line.len()).map(indent).min().unwrap_or(0);

    let mut turns = 0;
    let mut prompted = false;
    for (at, line) in Lines::of(trim(body)) {
        // The first line was trimmed with the rest of the body.
        let line = if at == 0 { line } else { line.get(margin..).unwrap_or_default() };
        for line in line.strip_suffix('\r').unwrap_or(line).split(breaks_line) {
            let prompt = line.starts_with(">>>");
            if turns == 0 || (prompt && !prompted) {
                turns += 1;
            }
            prompted = prompt;
        }
    }
    if trim(body).is_empty() { 0 } else { turns }
}

/// True for the characters besides `\n` that end a line of an example.
fn breaks_line(c: char) -> bool {
    matches!(c, '\x0b' | '\x0c' | '\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::super::{Style, parse};
    use super::*;

    #[test]
    fn names_and_types_are_separated() {
        let doc = parse(
            "S.\n\nParameters\n----------\na : int, optional\n    A\n    more\n*b\nOther Args\n----------\nc:d\n    C",
        );

        assert_eq!(doc.style, Style::Numpy);
        assert_eq!(doc.param("a"), Some("A\nmore"));
        assert_eq!(doc.params[1], super::super::Param { name: "*b".into(), description: None });
        assert_eq!(doc.param("c"), Some("C"));
    }

    #[test]
    fn an_underline_is_as_long_as_its_title() {
        for (text, entries) in [
            ("Note\n----", 1),
            ("Note\n-----", 0),
            ("Note\n---", 0),
            ("Note  \n \n----  ", 1),
            ("Note\n ----", 0),
            ("Note\n---- x", 0),
            (" Note\n----", 0),
            ("..  deprecated :: 1.0", 1),
            (".. deprecated: 1.0", 0),
        ] {
            assert_eq!(read(text).entries, entries, "{text:?}");
        }
    }

    #[test]
    fn examples_are_counted_by_prompt() {
        for (body, turns) in [
            ("", 0),
            ("\n\n", 0),
            ("\nprose", 1),
            ("\n>>> a\n1\n>>> b\n2", 2),
            ("\n  >>> a\n  >>> b\n  1\n    >>> c", 1),
            ("\n>>> a\r\n>>> b", 1),
            ("\nprose\n>>> a", 2),
            ("\nprose\x0b>>> a", 2),
        ] {
            assert_eq!(examples(body), turns, "{body:?}");
        }
    }
}
