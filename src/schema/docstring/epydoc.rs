//! Epydoc style: fields such as `@param x: text`, each beginning with an at sign at the start of a line.

use std::collections::HashMap;

use super::Reading;
use super::clean::{clean_below_first, trim, trim_start};
use super::lines::fields;

/// Whether a name stands between a keyword and its colon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Required,
    Allowed,
    Absent,
}

/// A keyword with its colon, wherever in a field it was found.
struct Tag<'a> {
    keyword: &'static str,
    name: Option<&'a str>,
    description: &'a str,
}

/// What is known about a name. A result goes by the name `return`, which a parameter may have as well.
#[derive(Default)]
struct Subject {
    /// Its place among the parameters, if its first mention made it one.
    param: Option<usize>,
    /// Whether it is said to be yielded rather than returned.
    yielded: Option<bool>,
}

/// Reads the fields of a text whose first one is at `start`, unless one has no recognisable tag or the text both
/// returns and yields.
pub(super) fn read(text: &str, start: usize) -> Option<Reading> {
    let mut reading = Reading::new(start);
    let mut subjects: HashMap<&str, Subject> = HashMap::new();
    for field in fields(&text[start..], b'@') {
        let param = find(field, &["param", "keyword", "type"], Name::Required)
            .or_else(|| find(field, &["var"], Name::Required));
        if let Some(tag) = param {
            let name = tag.name?;
            let subject = subjects.entry(name).or_insert_with(|| {
                reading.add(name, None);
                Subject { param: Some(reading.params.len() - 1), yielded: None }
            });
            describe(&mut reading, subject, &tag);
        } else if find(field, &["raise"], Name::Allowed).is_some() {
            reading.count();
        } else if let Some(tag) = find(field, &["return", "rtype", "yield", "ytype"], Name::Absent) {
            let subject = subjects.entry("return").or_insert_with(|| {
                reading.count();
                Subject::default()
            });
            let yielded = tag.keyword.starts_with('y');
            if *subject.yielded.get_or_insert(yielded) != yielded {
                return None;
            }
            describe(&mut reading, subject, &tag);
        } else if is_reserved(first_tag(field)?) {
            return None;
        } else {
            reading.count();
        }
    }
    Some(reading)
}

/// Notes the description of a parameter; a later one replaces it.
fn describe(reading: &mut Reading, subject: &Subject, tag: &Tag<'_>) {
    if let Some(param) = subject.param
        && !tag.keyword.contains("type")
    {
        reading.params[param].description = Some(clean_below_first(trim(tag.description)));
    }
}

/// Finds the first of some keywords that is followed by a colon, in the middle of words and lines too.
fn find<'a>(field: &'a str, keywords: &[&'static str], wanted: Name) -> Option<Tag<'a>> {
    (0..field.len()).find_map(|at| {
        let keyword = *keywords.iter().find(|keyword| field.as_bytes()[at..].starts_with(keyword.as_bytes()))?;
        let rest = &field[at + keyword.len()..];
        let (name, rest) = match word(rest) {
            Some((name, rest)) if wanted != Name::Absent => (Some(name), rest),
            _ if wanted == Name::Required => return None,
            _ => (None, rest),
        };
        Some(Tag { keyword, name, description: rest.strip_prefix(':')? })
    })
}

/// Takes whitespace and a word, with the question mark that may end it, off the start of a text.
fn word(text: &str) -> Option<(&str, &str)> {
    let start = trim_start(text);
    if start.len() == text.len() || !start.starts_with(is_letter) {
        return None;
    }
    let length = identifier(start);
    let length = length + usize::from(start[length..].starts_with('?'));
    Some(start.split_at(length))
}

/// Tells whether a word may begin so: the range from one alphabet of ASCII to the other, and what lies between them.
fn is_letter(c: char) -> bool {
    matches!(c, 'A'..='z')
}

/// Measures the run of letters and digits at the start of a text.
fn identifier(text: &str) -> usize {
    text.find(|c: char| !is_letter(c) && !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Finds the first words that a colon follows, and returns the first of them, which is longer than a letter.
fn first_tag(field: &str) -> Option<&str> {
    let mut rest = field;
    loop {
        rest = &rest[rest.find(is_letter)?..];
        let (keyword, mut behind) = rest.split_at(identifier(rest));
        if keyword.len() > 1 {
            // Without a colon behind the last word, none of the words before it has one either.
            while let Some((_, next)) = word(behind) {
                behind = next;
            }
            if behind.starts_with(':') {
                return Some(keyword);
            }
        }
        rest = behind;
    }
}

/// Tells whether a keyword has a form of its own that the field failed to follow.
fn is_reserved(keyword: &str) -> bool {
    matches!(keyword, "param" | "ivar" | "cvar" | "var" | "keyword" | "type" | "return" | "rtype" | "yield" | "ytype")
}

#[cfg(test)]
mod tests {
    use super::super::{Style, parse};
    use super::*;

    #[test]
    fn the_first_mention_places_a_parameter_and_the_last_describes_it() {
        let doc = parse("S.\n\n@type a: int\n@param b: B\n@param a: A\n@param a: AA\n@ivar c: C");

        let names: Vec<_> = doc.params.iter().map(|param| param.name.as_str()).collect();
        assert_eq!((doc.style, names), (Style::Epydoc, vec!["a", "b", "c"]));
        assert_eq!(doc.param("a"), Some("AA"));
    }

    #[test]
    fn a_bare_type_describes_nothing() {
        let doc = parse("S.\n\n@type a: int");

        assert_eq!((doc.params.len(), doc.param("a")), (1, None));
    }

    #[test]
    fn returning_and_yielding_spoil_the_style() {
        assert!(read("@return: a\n@yield: b", 0).is_none());
        assert!(read("@return: a\n@rtype: b", 0).is_some_and(|reading| reading.entries == 1));
    }

    #[test]
    fn a_keyword_of_the_style_keeps_its_form() {
        assert!(read("@param a b: c", 0).is_none());
        assert!(read("@return a: c", 0).is_none());
        assert!(read("@author", 0).is_none());
        assert!(read("@author: me", 0).is_some());
    }

    #[test]
    fn the_first_tag_is_found_behind_words_that_fail() {
        assert_eq!(first_tag("@a foo? 9bar baz: x"), Some("bar"));
        assert_eq!(first_tag("@see also x?: y"), Some("see"));
        assert_eq!(first_tag("@a: b"), None);
    }
}
