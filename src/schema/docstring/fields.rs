//! The two field styles: reST with `:param int x: text`, and Epydoc with `@param x: text`.

use std::collections::{HashMap, HashSet};

use super::Candidate;
use super::lines::{clean_below_first, fields, is_space, trim, trim_start};

/// Parses reST fields, the first of which is at `start`. Fails if a field has no second colon, no keyword, or more
/// words than its keyword takes.
pub(super) fn read_rest(text: &str, start: usize) -> Option<Candidate<'_>> {
    let mut candidate = Candidate::new(start);
    let mut returns = false;
    let mut return_types = HashSet::new();
    for field in fields(&text[start..], b':') {
        let (words, description) = field.trim_start_matches(':').split_once(':')?;
        let mut words = words.split(is_space).filter(|word| !word.is_empty());
        let keyword = words.next()?;
        let (first, second, third) = (words.next(), words.next(), words.next());
        match keyword {
            "type" if first.is_some() && second.is_none() => {}
            "rtype" if second.is_none() => _ = return_types.insert(first),
            "param" | "parameter" | "arg" | "argument" | "attribute" | "key" | "keyword" => {
                if third.is_some() {
                    return None;
                }
                candidate.add(second.or(first)?, Some(clean_below_first(trim(description))));
            }
            "return" | "returns" | "yield" | "yields" => {
                if second.is_some() {
                    return None;
                }
                returns = true;
                candidate.count();
            }
            "raises" | "raise" | "except" | "exception" if second.is_some() => return None,
            _ => candidate.count(),
        }
    }
    // The type of a result that has no description is an entry of its own.
    if !returns {
        candidate.entries += return_types.len();
    }
    Some(candidate)
}

/// The rule for a name between a keyword and its colon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameRule {
    Required,
    Allowed,
    Absent,
}

/// A keyword with its colon, found anywhere in a field.
struct EpydocTag<'a> {
    keyword: &'static str,
    name: Option<&'a str>,
    description: &'a str,
}

/// A name that was mentioned. A result has the name `return`, which a parameter may have as well.
#[derive(Default)]
struct Mention {
    /// Its place among the parameters, if its first mention made it one.
    param: Option<usize>,
    /// True if it is yielded, false if it is returned.
    yielded: Option<bool>,
}

/// Parses Epydoc fields, the first of which is at `start`. Fails if a field has no recognisable tag or the text both
/// returns and yields.
pub(super) fn read_epydoc(text: &str, start: usize) -> Option<Candidate<'_>> {
    let mut candidate = Candidate::new(start);
    let mut mentions: HashMap<&str, Mention> = HashMap::new();
    for field in fields(&text[start..], b'@') {
        let param = find_tag(field, &["param", "keyword", "type"], NameRule::Required)
            .or_else(|| find_tag(field, &["var"], NameRule::Required));
        if let Some(tag) = param {
            let name = tag.name?;
            let mention = mentions.entry(name).or_insert_with(|| {
                candidate.add(name, None);
                Mention { param: Some(candidate.params.len() - 1), yielded: None }
            });
            describe(&mut candidate, mention, &tag);
        } else if find_tag(field, &["raise"], NameRule::Allowed).is_some() {
            candidate.count();
        } else if let Some(tag) = find_tag(field, &["return", "rtype", "yield", "ytype"], NameRule::Absent) {
            let mention = mentions.entry("return").or_insert_with(|| {
                candidate.count();
                Mention::default()
            });
            let yielded = tag.keyword.starts_with('y');
            if *mention.yielded.get_or_insert(yielded) != yielded {
                return None;
            }
            describe(&mut candidate, mention, &tag);
        } else if is_reserved(first_tag(field)?) {
            return None;
        } else {
            candidate.count();
        }
    }
    Some(candidate)
}

/// Sets the description of a parameter; a later one replaces it.
fn describe<'a>(candidate: &mut Candidate<'a>, mention: &Mention, tag: &EpydocTag<'a>) {
    if let Some(param) = mention.param
        && !tag.keyword.contains("type")
    {
        candidate.params[param].description = Some(clean_below_first(trim(tag.description)));
    }
}

/// Finds the first of some keywords that is followed by a colon, in the middle of words and lines too.
fn find_tag<'a>(field: &'a str, keywords: &[&'static str], wanted: NameRule) -> Option<EpydocTag<'a>> {
    (0..field.len()).find_map(|at| {
        let keyword = *keywords.iter().find(|keyword| field.as_bytes()[at..].starts_with(keyword.as_bytes()))?;
        let rest = &field[at + keyword.len()..];
        let (name, rest) = match word(rest) {
            Some((name, rest)) if wanted != NameRule::Absent => (Some(name), rest),
            _ if wanted == NameRule::Required => return None,
            _ => (None, rest),
        };
        Some(EpydocTag { keyword, name, description: rest.strip_prefix(':')? })
    })
}

/// Splits whitespace and a word, with the question mark that may end it, from the start of a text.
fn word(text: &str) -> Option<(&str, &str)> {
    let start = trim_start(text);
    if start.len() == text.len() || !start.starts_with(is_letter) {
        return None;
    }
    let length = identifier(start);
    let length = length + usize::from(start[length..].starts_with('?'));
    Some(start.split_at(length))
}

/// True for the characters of a word: the range from `A` to `z`, including the punctuation between the two alphabets.
fn is_letter(c: char) -> bool {
    matches!(c, 'A'..='z')
}

/// Measures the run of letters and digits at the start of a text.
fn identifier(text: &str) -> usize {
    text.find(|c: char| !is_letter(c) && !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Finds the first words that are followed by a colon, and returns the first of them that is longer than a letter.
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

/// True for a keyword with a form of its own, which the field does not have.
fn is_reserved(keyword: &str) -> bool {
    matches!(keyword, "param" | "ivar" | "cvar" | "var" | "keyword" | "type" | "return" | "rtype" | "yield" | "ytype")
}

#[cfg(test)]
mod tests {
    use super::super::{Style, parse};
    use super::*;

    #[test]
    fn a_type_may_precede_the_name() {
        let doc = parse("S.\n\n:param a: A\n:param int b: B\n:type a: str");

        assert_eq!((doc.param("a"), doc.param("b")), (Some("A"), Some("B")));
        assert_eq!(doc.params.len(), 2);
    }

    #[test]
    fn a_description_runs_to_the_next_field() {
        let doc = parse("S.\n\n:param a: one\n    two\n\n    three\n:returns: x");

        assert_eq!(doc.param("a"), Some("one\ntwo\n\nthree"));
    }

    #[test]
    fn too_many_words_rule_out_the_style() {
        for field in [":param a b c: d", ":returns a b: c", ":raises a b: c", ":param: a", ":param a", ": : a"] {
            let text = format!("S.\n\nArgs:\n    x: X\n{field}");

            let doc = parse(&text);

            assert_eq!(doc.style, Style::Google, "{field}");
        }
    }

    #[test]
    fn a_lone_return_type_is_an_entry() {
        let google = "Args:\n    x: X\n    y: Y";

        let lone = parse(&format!("{google}\n\n:rtype: int\n:rtype b: int\n:rtype: str"));
        let described = parse(&format!("{google}\n\n:rtype: int\n:rtype b: int\n:return: it"));

        assert_eq!((lone.style, described.style), (Style::Rest, Style::Google));
    }

    #[test]
    fn a_text_of_types_only_keeps_its_description() {
        let doc = parse("S.\n\n:type a: int");

        assert_eq!((doc.short.as_deref(), doc.long, doc.params.len()), (Some("S."), None, 0));
    }

    #[test]
    fn the_first_mention_places_a_parameter_and_the_last_describes_it() {
        let doc = parse("S.\n\n@type a: int\n@param b: B\n@param a: A\n@param a: AA\n@ivar c: C");

        let names: Vec<_> = doc.params.iter().map(|param| &*param.name).collect();
        assert_eq!((doc.style, names), (Style::Epydoc, vec!["a", "b", "c"]));
        assert_eq!(doc.param("a"), Some("AA"));
    }

    #[test]
    fn a_bare_type_describes_nothing() {
        let doc = parse("S.\n\n@type a: int");

        assert_eq!((doc.params.len(), doc.param("a")), (1, None));
    }

    #[test]
    fn returning_and_yielding_rule_out_the_style() {
        assert!(read_epydoc("@return: a\n@yield: b", 0).is_none());
        assert!(read_epydoc("@return: a\n@rtype: b", 0).is_some_and(|candidate| candidate.entries == 1));
    }

    #[test]
    fn a_keyword_of_the_style_keeps_its_form() {
        assert!(read_epydoc("@param a b: c", 0).is_none());
        assert!(read_epydoc("@return a: c", 0).is_none());
        assert!(read_epydoc("@author", 0).is_none());
        assert!(read_epydoc("@author: me", 0).is_some());
    }

    #[test]
    fn the_first_tag_is_found_behind_words_that_fail() {
        assert_eq!(first_tag("@a foo? 9bar baz: x"), Some("bar"));
        assert_eq!(first_tag("@see also x?: y"), Some("see"));
        assert_eq!(first_tag("@a: b"), None);
    }
}
