//! Text without a structure: its beginning and its end, at the ends of lines, sentences or words.

use super::{Cut, CutKind, Note, characters, offset, offset_from_end};

/// The mark of a text that is cut without room for a note.
const ELLIPSIS: char = '…';

/// Cuts a text to at most `limit` characters.
pub(super) fn cut(text: &str, limit: usize, note: &Note<'_>) -> Cut {
    let total = characters(text);
    let of = |text: String, shown: usize| Cut { text, kind: CutKind::Text, shown, total, unit: "characters" };
    let widest = characters(&note.after(&shown_of(total, total)));
    // Two line breaks around the note.
    let Some(room) = limit.checked_sub(widest + 2).filter(|room| *room > 0) else {
        let short = shorten(text, limit);
        let shown = characters(&short).saturating_sub(1);
        return of(short, shown);
    };
    let head = head(text, room - room / 3);
    let tail = tail(&text[head.len()..], room - characters(head));
    let shown = characters(head) + characters(tail);
    let note = note.after(&shown_of(shown, total));
    let before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let after = if tail.is_empty() { "" } else { "\n" };
    of(format!("{head}{before}{note}{after}{tail}"), shown)
}

fn shown_of(shown: usize, total: usize) -> String {
    format!("{shown} of {total} characters")
}

/// The beginning of a text with a mark at its end, in at most `limit` characters; the text itself if it fits.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let end = offset(text, limit);
    if end == text.len() {
        return text.to_owned();
    }
    match limit.checked_sub(1) {
        None => String::new(),
        Some(room) => format!("{}{ELLIPSIS}", &text[..whole_letters(text, offset(text, room))]),
    }
}

/// The beginning of a text, in at most `room` characters.
pub(super) fn head(text: &str, room: usize) -> &str {
    let end = offset(text, room);
    if end == text.len() {
        return text;
    }
    // A break is looked for in the last quarter, so that little room is lost.
    let from = offset(text, room - room / 4);
    let window = &text[from..end];
    let line = window.rfind('\n').map(|at| at + 1);
    let found = line.or_else(|| sentence_end(window)).or_else(|| window.rfind(' ').map(|at| at + 1));
    &text[..found.map_or_else(|| whole_letters(text, end), |at| from + at)]
}

/// The end of a text, in at most `room` characters.
fn tail(text: &str, room: usize) -> &str {
    let start = offset_from_end(text, room);
    if start == 0 {
        return text;
    }
    let to = offset_from_end(text, room - room / 4);
    let window = &text[start..to];
    let line = window.find('\n').map(|at| at + 1);
    let found = line.or_else(|| sentence_start(window)).or_else(|| window.find(' ').map(|at| at + 1));
    let mut start = start + found.unwrap_or(0);
    if found.is_none() {
        while let Some(letter) = text[start..].chars().next().filter(|letter| joins_before(*letter)) {
            start += letter.len_utf8();
        }
    }
    &text[start..]
}

/// The end of the last sentence.
fn sentence_end(text: &str) -> Option<usize> {
    let mut ends = text.char_indices().filter(|(at, letter)| ends_sentence(text, *at, *letter));
    ends.next_back().map(|(at, letter)| at + letter.len_utf8())
}

/// The start of the second sentence.
fn sentence_start(text: &str) -> Option<usize> {
    let (at, letter) = text.char_indices().find(|(at, letter)| ends_sentence(text, *at, *letter))?;
    let rest = &text[at + letter.len_utf8()..];
    Some(text.len() - rest.trim_start().len())
}

fn ends_sentence(text: &str, at: usize, letter: char) -> bool {
    match letter {
        '.' | '!' | '?' => text[at + 1..].starts_with(char::is_whitespace),
        '。' | '！' | '？' => true,
        _ => false,
    }
}

/// The end of the last whole letter up to `end`: marks that join the letter before them, and line breaks of two characters, are
/// not split.
fn whole_letters(text: &str, end: usize) -> usize {
    let next = text[end..].chars().next();
    let joins = |next: char, before: &str| {
        joins_before(next) || before.ends_with('\u{200D}') || next == '\n' && before.ends_with('\r')
    };
    let (mut end, mut next) = (end, next);
    // A long row of marks is split after all.
    for _ in 0..8 {
        let Some(letter) = next.filter(|letter| joins(*letter, &text[..end])) else { return end };
        let Some(before) = text[..end].chars().next_back() else { return end };
        (end, next) = (end - before.len_utf8(), Some(before));
        if letter == '\n' {
            return end;
        }
    }
    end
}

/// True for the marks that change the letter before them.
fn joins_before(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36F}' | '\u{200D}' | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}')
}
