//! reST style: fields such as `:param int x: text`, each beginning with a colon at the start of a line.

use std::collections::HashSet;

use super::Reading;
use super::clean::{clean_below_first, is_space, trim};
use super::lines::fields;

/// Reads the fields of a text whose first one is at `start`, unless one has no second colon, no keyword, or more
/// words than its keyword takes.
pub(super) fn read(text: &str, start: usize) -> Option<Reading> {
    let mut reading = Reading::new(start);
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
                reading.add(second.or(first)?, Some(clean_below_first(trim(description))));
            }
            "return" | "returns" | "yield" | "yields" => {
                if second.is_some() {
                    return None;
                }
                returns = true;
                reading.count();
            }
            "raises" | "raise" | "except" | "exception" if second.is_some() => return None,
            _ => reading.count(),
        }
    }
    // The type of a result that nothing else describes is an entry of its own.
    if !returns {
        reading.entries += return_types.len();
    }
    Some(reading)
}

#[cfg(test)]
mod tests {
    use super::super::{Style, parse};

    #[test]
    fn a_type_may_stand_before_the_name() {
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
    fn too_many_words_spoil_the_style() {
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
}
