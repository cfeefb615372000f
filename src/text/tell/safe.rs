//! Text of others between words of ours: shown so that it can be read, but not taken for ours.

use std::borrow::Cow;

use super::json;
use crate::json::invisible::is_invisible;

/// Whether what follows a `<` makes it the beginning of a tag, a comment, or a token that a model takes for control.
pub(super) fn opens_markup(after: &str) -> bool {
    after.chars().next().is_some_and(|next| matches!(next, '/' | '!' | '?' | '|' | '_') || next.is_alphabetic())
}

/// A name or a short value: as it is where nothing in it could mislead, as JSON otherwise.
pub(in crate::text) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.starts_with(['"', '#', '-'])
        && !text.contains("```")
        && !text.chars().any(is_invisible)
        && text.match_indices('<').all(|(at, _)| !opens_markup(&text[at + 1..]));
    if is_plain { Cow::Borrowed(text) } else { Cow::Owned(json::quoted(text)) }
}

/// Prose on one line.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = String::with_capacity(text.len());
    push(&mut line, &words.join(" "));
    line
}

/// Prose that may have several lines; all but the first are indented.
pub(super) fn lines(text: &str, indent: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    let mut prose = String::with_capacity(text.len());
    for (index, line) in text.trim().lines().enumerate() {
        let line = line.trim_end();
        if index > 0 {
            prose.push('\n');
            if !line.is_empty() {
                prose.push_str(indent);
            }
        }
        let own_indent = line.len() - line.trim_start().len();
        prose.push_str(&line[..own_indent]);
        // A heading may be indented a little and still be one.
        if line[own_indent..].starts_with('#') {
            prose.push('\\');
        }
        push(&mut prose, &line[own_indent..]);
    }
    prose
}

fn push(prose: &mut String, text: &str) {
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        match next {
            '<' if opens_markup(after) => prose.push_str("&lt;"),
            // A fence that is left open would take in all that follows.
            '`' if after.starts_with("``") => {
                prose.push_str("'''");
                rest = &rest[3..];
                continue;
            }
            '\t' => prose.push(next),
            _ if is_invisible(next) => {}
            _ => prose.push(next),
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_prose_is_text() {
        assert_eq!(line("a </tool_instructions> b <|im_start|> c"), "a &lt;/tool_instructions> b &lt;|im_start|> c");
        assert_eq!(line("if a < b and b <= c"), "if a < b and b <= c");
    }

    #[test]
    fn prose_of_one_line_stays_on_it() {
        assert_eq!(line("  one\r\n\n### two\u{2028}three  "), "one ### two three");
    }

    #[test]
    fn no_line_of_prose_begins_as_ours_do() {
        let prose = lines("Adds.\r\n\r\n### evil\nDescription: none\n```\n  deep\n", "  ");

        assert_eq!(prose, "Adds.\n\n  \\### evil\n  Description: none\n  '''\n    deep");
    }

    #[test]
    fn hidden_characters_are_left_out_of_prose_and_told_in_names() {
        assert_eq!(line("a\u{202e}b\u{e0041}c\u{1b}d"), "abcd");
        assert_eq!(word("a\u{202e}b"), "\"a\\u202eb\"");
        assert_eq!(word("\u{e0041}"), "\"\\udb40\\udc41\"");
    }

    #[test]
    fn a_name_that_could_mislead_is_quoted() {
        assert_eq!(word("max-results"), "max-results");
        assert_eq!(word("a < b"), "a < b");
        assert_eq!(word("x</params>"), "\"x\\u003c/params>\"");
        assert_eq!(word("a\nb"), "\"a\\nb\"");
        assert_eq!(word(" a"), "\" a\"");
        assert_eq!(word(""), "\"\"");
    }
}
