//! Google style: a title with a colon alone on its line, and an indented body.

use super::Candidate;
use super::lines::{Cleaned, Line, clean, clean_below_first, cut, find, trim_end, trim_start};

/// The format of a section's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Entries that describe parameters.
    Params,
    /// Entries that describe something else.
    Entries,
    /// One entry, whatever the body contains.
    Whole,
}

struct Section<'a> {
    title: &'a str,
    kind: SectionKind,
    body: &'a [Line],
}

/// Recognises a section title and the kind of its body.
pub(super) fn title(line: &str) -> Option<(&str, SectionKind)> {
    let title = line.trim_end_matches([' ', '\r', '\x0b', '\x0c']).strip_suffix(':')?;
    let kind = match title {
        "Arguments" | "Args" | "Parameters" | "Params" | "Attributes" => SectionKind::Params,
        "Raises" | "Exceptions" | "Except" => SectionKind::Entries,
        "Example" | "Examples" | "Returns" | "Yields" => SectionKind::Whole,
        _ => return None,
    };
    Some((title, kind))
}

/// Parses the sections of a text whose first title is line `first`. Fails if a section has no entries or an entry has no colon.
pub(super) fn read<'a>(text: &'a Cleaned<'_>, first: usize) -> Option<Candidate<'a>> {
    read_with(text, first, |_| true)
}

/// The same for a text that [`read`] fails on: a line at the indent of the entries that does not begin like one continues the entry above it.
pub(super) fn read_wrapped<'a>(text: &'a Cleaned<'_>, first: usize) -> Option<Candidate<'a>> {
    read_with(text, first, begins_entry)
}

fn read_with<'a>(
    Cleaned { text, lines }: &'a Cleaned<'_>,
    first: usize,
    begins: fn(&str) -> bool,
) -> Option<Candidate<'a>> {
    let mut candidate = Candidate::new(lines[first].start);
    for section in sections(text, &lines[first..]) {
        if section.kind == SectionKind::Whole {
            candidate.count();
        } else {
            read_entries(text, &section, begins, &mut candidate)?;
        }
    }
    Some(candidate)
}

/// True for a line with a name, perhaps a type in parentheses, and a colon.
fn begins_entry(line: &str) -> bool {
    let Some((before, _)) = cut(line, b':') else { return false };
    let name = find(before, b'(').map_or(before, |at| &before[..at]);
    let name = trim_end(name).trim_start_matches('*');
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.'))
}

/// Finds the sections. A body ends at the first line that is not indented, without the empty lines around it; text between
/// there and the next title is dropped. A title that comes again replaces the body but keeps the place of the first.
fn sections<'a>(text: &'a str, lines: &'a [Line]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::with_capacity(4);
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        next += 1;
        if !line.is_flush() {
            continue;
        }
        let Some((title, kind)) = title(line.of(text)) else { continue };
        let below = &lines[next..];
        let length = below.iter().position(|line| line.is_flush()).unwrap_or(below.len());
        next += length;
        let body = without_empty_ends(&below[..length]);
        match sections.iter_mut().find(|section| section.title == title) {
            Some(section) => section.body = body,
            None => sections.push(Section { title, kind, body }),
        }
    }
    sections
}

fn without_empty_ends(lines: &[Line]) -> &[Line] {
    let is_filled = |line: &Line| line.start < line.end;
    let first = lines.iter().position(is_filled).unwrap_or(lines.len());
    let end = lines.iter().rposition(is_filled).map_or(first, |last| last + 1);
    &lines[first..end]
}

/// Splits a body into entries at the lines indented exactly like the first one that may begin an entry, and parses them.
fn read_entries<'a>(
    text: &'a str,
    section: &Section<'_>,
    begins: fn(&str) -> bool,
    candidate: &mut Candidate<'a>,
) -> Option<()> {
    let (mut blank_since, end) = (section.body.first()?.start, section.body.last()?.end);
    // Blank lines may precede the first entry; then they are part of the prefix that every entry must have.
    let indent = &text[blank_since..section.body.iter().find(|line| line.has_content())?.content];
    let mut open: Option<Line> = None;
    for line in section.body.iter().filter(|line| line.has_content()) {
        if let Some(entry_at) = line.content.checked_sub(indent.len())
            && entry_at >= blank_since
            && (entry_at == line.start || starts_line(text, entry_at))
            && text.as_bytes()[entry_at..line.content] == *indent.as_bytes()
            && (open.is_none() || begins(&text[line.content..line.end]))
            && let Some(previous) = open.replace(*line)
        {
            read_entry(section.kind, &text[previous.content..entry_at], previous, candidate)?;
        }
        blank_since = line.end + 1;
    }
    let last = open?;
    read_entry(section.kind, &text[last.content..end], last, candidate)
}

fn starts_line(text: &str, at: usize) -> bool {
    text.as_bytes()[at - 1] == b'\n'
}

/// Parses an entry whose first line is known.
fn read_entry<'a>(kind: SectionKind, entry: &'a str, first: Line, candidate: &mut Candidate<'a>) -> Option<()> {
    let entry = entry.trim_end_matches('\n');
    let (before, description) = cut(entry, b':')?;
    if kind == SectionKind::Entries {
        candidate.count();
        return Some(());
    }

    let length = first.end - first.content;
    let description = description.strip_prefix(' ').unwrap_or(description);
    let description = if entry.len() <= length { description.into() } else { clean_below_first(description) };
    if before.len() < length {
        candidate.add(bare_name(before, before.len()), Some(description));
    } else if let Some((first, rest)) = cut(before, b'\n') {
        // A name broken over lines is joined without anything between its first two parts.
        let name = [first, &clean(rest)].concat();
        let name = bare_name(&name, find(&name, b'\n').unwrap_or(name.len())).to_owned();
        candidate.add(name, Some(description));
    }
    Some(())
}

/// Removes the type in parentheses from a name whose first line ends at `first_line`. The first parentheses with something between
/// them, all on one line, end the name; where they follow more than one line of name, it is left as it is.
fn bare_name(before: &str, first_line: usize) -> &str {
    // The next line can still contribute one parenthesis, since any whitespace may be beside it.
    let reach = match &before[first_line..] {
        "" => first_line,
        below => before.len().min(before.len() - trim_start(below).len() + 1),
    };
    let last_close = before.bytes().take(reach).rposition(|byte| byte == b')');
    let mut from = 0;
    while let Some(at) = find(&before[from..], b'(').map(|at| from + at).filter(|at| *at < reach) {
        let inside = before.len() - trim_start(&before[at + 1..]).len();
        let closed = if inside < first_line {
            last_close.is_some_and(|close| close > inside)
        } else {
            closes_on_its_line(&before[inside..])
        };
        if at > 0 && closed {
            return trim_end(&before[..at]);
        }
        from = at + 1;
    }
    before
}

/// True if a closing parenthesis follows the first character with no line ending before it, apart from whitespace.
fn closes_on_its_line(inside: &str) -> bool {
    let mut rest = inside.chars();
    rest.next().is_some() && rest.as_str().split_once(')').is_some_and(|(inside, _)| !trim_end(inside).contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_title_is_alone_on_its_line_with_its_colon() {
        assert_eq!(title("Args: \r"), Some(("Args", SectionKind::Params)));
        assert_eq!(title("Args"), None);
        assert_eq!(title("args:"), None);
        assert_eq!(title("Args: x"), None);
    }

    #[test]
    fn a_type_is_taken_off_the_name() {
        let bare_name = |before: &'static str| bare_name(before, before.find('\n').unwrap_or(before.len()));

        assert_eq!(bare_name("a (int, optional)"), "a");
        assert_eq!(bare_name("**kw(dict)"), "**kw");
        assert_eq!(bare_name("a ()"), "a ()");
        assert_eq!(bare_name("a () (int)"), "a");
        assert_eq!(bare_name("(int)"), "(int)");
        assert_eq!(bare_name("a (b\nc)"), "a (b\nc)");
    }

    #[test]
    fn continuation_lines_lose_their_own_indentation() {
        let doc = parse("S.\n\nArgs:\n    a: one\n        two\n          three\n        four\n    b:\n        B\n");

        assert_eq!(doc.param("a"), Some("one\ntwo\n  three\nfour"));
        assert_eq!(doc.param("b"), Some("B"));
    }

    #[test]
    fn a_section_that_comes_again_replaces_the_first() {
        let doc = parse("Args:\n    a: A\n    b: B\nAttributes:\n    c: C\nArgs:\n    d: D\n");

        let names: Vec<_> = doc.params.iter().map(|param| &*param.name).collect();
        assert_eq!(names, ["d", "c"]);
    }

    #[test]
    fn a_wrapped_line_at_the_indent_of_the_entries_continues_one() {
        let text = "S.\n\nArgs:\n    a (int): The first\n    of all.\n    b: B\n\nReturns:\n    Text\n";

        let cleaned = Cleaned::of(text);
        let (wrapped, plain) = (cleaned.read(true), cleaned.read(false));

        assert_eq!(wrapped.param("a"), Some("The first\nof all."));
        assert_eq!(wrapped.param("b"), Some("B"));
        assert_eq!((wrapped.long, plain.params.len()), (None, 0));
    }

    #[test]
    fn an_entry_without_a_colon_rules_out_the_style() {
        let doc = parse("S.\n\nArgs:\n    a: A\n    oops\n");

        assert_eq!(doc.params, []);
        assert_eq!(doc.long.as_deref(), Some("Args:\n    a: A\n    oops"));
    }

    #[test]
    fn text_after_a_section_is_lost() {
        let doc = parse("S.\n\nArgs:\n    a: A\n\nLate.\n    b: B\n");

        assert_eq!((doc.params.len(), doc.long), (1, None));
    }
}
