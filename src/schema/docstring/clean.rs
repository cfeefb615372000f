//! Removing the indentation that a docstring owes to the code around it, as Python's `inspect.cleandoc` does.

use std::borrow::Cow;

use super::lines::{Lines, cut, find};

const TAB_STOP: usize = 8;

/// Tells whether Python counts a character as whitespace: Unicode does, or it is one of four old separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Removes whitespace at both ends.
pub(super) fn trim(text: &str) -> &str {
    trim_end(trim_start(text))
}

/// Removes whitespace at the start.
pub(super) fn trim_start(text: &str) -> &str {
    let text = &text[spaces(text)..];
    if starts_visibly(text) { text } else { text.trim_start_matches(is_space) }
}

/// Removes whitespace at the end.
pub(super) fn trim_end(text: &str) -> &str {
    if text.as_bytes().last().is_some_and(u8::is_ascii_graphic) { text } else { text.trim_end_matches(is_space) }
}

/// Counts the blanks at the start: nearly all whitespace is blanks, and bytes are cheaper than characters.
fn spaces(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b' ').count()
}

fn starts_visibly(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_graphic)
}

/// Returns the text with tabs expanded, the indentation that all lines after the first share removed, and no empty
/// lines at the ends.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if find(text, b'\t').is_some() {
        return Cow::Owned(dedent(&expand_tabs(text)).into_owned());
    }
    dedent(text)
}

/// Cleans a description whose first line stands behind a name and says nothing about the indentation of the others.
pub(super) fn clean_below_first(text: &str) -> String {
    let Some((first, rest)) = cut(text, b'\n') else {
        return text.to_owned();
    };
    match (first, clean(rest)) {
        ("", rest) => rest.into_owned(),
        (first, rest) if rest.is_empty() => first.to_owned(),
        (first, rest) => [first, "\n", &rest].concat(),
    }
}

fn dedent(text: &str) -> Cow<'_, str> {
    let Some((first, below)) = cut(text, b'\n') else {
        return Cow::Borrowed(trim_start(text));
    };
    // The first line with content nearly always has the margin of all; if it has not, that is noticed on the way.
    let likely = Lines::of(below).find_map(|(_, line)| indentation(line)).unwrap_or(0);
    let cleaned = join_without_margin(first, below, likely).or_else(|| {
        let margin = Lines::of(below).filter_map(|(_, line)| indentation(line)).min()?;
        join_without_margin(first, below, margin)
    });
    Cow::Owned(cleaned.unwrap_or_default())
}

/// Puts lines together again without their margin, unless one with content has less of it.
fn join_without_margin(first: &str, below: &str, margin: usize) -> Option<String> {
    let mut cleaned = String::with_capacity(first.len() + below.len() + 1);
    cleaned.push_str(trim_start(first));
    for (_, line) in Lines::of(below) {
        if !cleaned.is_empty() {
            cleaned.push('\n');
        }
        let indented = line.as_bytes().get(..margin).is_some_and(|start| start.iter().all(|byte| *byte == b' '));
        if indented {
            cleaned.push_str(&line[margin..]);
        } else if indentation(line).is_none_or(|indentation| indentation >= margin) {
            cleaned.push_str(line.char_indices().nth(margin).map_or("", |(at, _)| &line[at..]));
        } else {
            return None;
        }
    }
    cleaned.truncate(cleaned.trim_end_matches('\n').len());
    Some(cleaned)
}

/// Counts the characters before the content of a line; a line without content has no say.
fn indentation(line: &str) -> Option<usize> {
    let spaces = spaces(line);
    let rest = &line[spaces..];
    if starts_visibly(rest) {
        return Some(spaces);
    }
    let content = rest.trim_start_matches(is_space);
    let others = rest[..rest.len() - content.len()].chars().count();
    (!content.is_empty()).then_some(spaces + others)
}

fn expand_tabs(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len() + 64);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let width = TAB_STOP - column % TAB_STOP;
                expanded.extend(std::iter::repeat_n(' ', width));
                column += width;
            }
            '\n' | '\r' => {
                expanded.push(c);
                column = 0;
            }
            _ => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_no_say_in_the_margin() {
        assert_eq!(clean("  One\n    two\n      three\n"), "One\ntwo\n  three");
    }

    #[test]
    fn only_empty_lines_are_dropped_at_the_ends() {
        assert_eq!(clean("\n\n     \n    x\n\n"), " \nx");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(clean("a\tb\n\tc\n        d\te\r\tf"), "a       b\nc\nd       e\r        f");
    }

    #[test]
    fn a_margin_is_counted_in_characters() {
        assert_eq!(clean("S\n\u{3000}\u{3000}a\n  b\n\u{a0}"), "S\na\nb");
    }

    #[test]
    fn old_separators_are_whitespace() {
        assert_eq!(trim("\x1c a\x1f\u{85}"), "a");
    }

    #[test]
    fn lines_below_the_first_are_cleaned_on_their_own() {
        assert_eq!(clean_below_first("a\n      b\n      c"), "a\nb\nc");
        assert_eq!(clean_below_first("\n    b\n     c"), "b\nc");
        assert_eq!(clean_below_first("a \n    \n"), "a ");
    }
}
