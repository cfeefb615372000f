//! Tables: the header, the first rows and the last ones.

use std::collections::VecDeque;

use super::kind::SAMPLE;
use super::{Cut, CutKind, Note, characters};

/// A text that is a table.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// The lines before the rows, with their ends.
    header: &'a str,
    body: &'a str,
    /// True if a line break inside of quotation marks is a part of a row.
    is_quoted: bool,
}

/// The least number of rows by which values with separators are known as a table.
const LEAST_ROWS: usize = 3;

impl<'a> Table<'a> {
    /// Finds a Markdown table that is the whole text.
    pub(super) fn markdown(text: &'a str) -> Option<Self> {
        let mut lines = text.split_inclusive('\n');
        let (names, rule) = (lines.next()?, lines.next()?);
        let is_rule = rule.contains('-') && rule.trim().chars().all(|letter| matches!(letter, '|' | '-' | ':' | ' '));
        let header = &text[..names.len() + rule.len()];
        let body = &text[header.len()..];
        let is_row = |line: &str| line.contains('|') || line.trim().is_empty();
        let is_table = names.contains('|') && rule.contains('|') && is_rule && body.lines().all(is_row);
        is_table.then_some(Self { header, body, is_quoted: false })
    }

    /// Finds rows of values that are separated by commas, semicolons or tabs, all of the same number.
    pub(super) fn separated(text: &'a str) -> Option<Self> {
        let first = Rows { rest: text, is_quoted: true }.next()?;
        let separator = ['\t', ';', ','].into_iter().find(|separator| fields(first, *separator) > 1)?;
        let rows = Rows { rest: text, is_quoted: true }.take(SAMPLE).filter(|row| !row.trim().is_empty());
        let (mut count, wanted) = (0, fields(first, separator));
        for row in rows {
            count += 1;
            // The last one of the sample may be cut.
            if fields(row, separator) != wanted {
                return None;
            }
        }
        (count > LEAST_ROWS).then(|| Self { header: first, body: &text[first.len()..], is_quoted: true })
    }

    fn rows(&self) -> Rows<'a> {
        Rows { rest: self.body, is_quoted: self.is_quoted }
    }
}

/// The number of values in a row.
fn fields(row: &str, separator: char) -> usize {
    let mut is_inside = false;
    let separators = row.chars().filter(|letter| {
        is_inside ^= *letter == '"';
        *letter == separator && !is_inside
    });
    separators.count() + 1
}

/// The rows of a table, with their line ends.
struct Rows<'a> {
    rest: &'a str,
    is_quoted: bool,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let mut is_inside = false;
        let end = self.rest.bytes().position(|byte| {
            is_inside ^= byte == b'"' && self.is_quoted;
            byte == b'\n' && !is_inside
        });
        // A quotation mark that is never closed belongs to its line.
        let end = end.or_else(|| self.rest.find('\n')).map_or(self.rest.len(), |at| at + 1);
        let (row, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(row)
    }
}

/// Cuts a table to at most `limit` characters; none if there is no room for a row.
pub(super) fn cut(table: &Table<'_>, limit: usize, note: &Note<'_>) -> Option<Cut> {
    let is_row = |row: &&str| !row.trim().is_empty();
    let total = table.rows().filter(is_row).count();
    let widest = characters(&note.after(&shown_of(total, total))) + 1;
    let room = limit.checked_sub(characters(table.header) + widest)?;
    let mut rows = table.rows().filter(is_row).peekable();
    let (mut head, mut used, mut shown) = (String::from(table.header), 0, 0);
    let most = room - room / 3;
    while let Some(row) = rows.next_if(|row| used + characters(row) <= most) {
        used += characters(row);
        shown += 1;
        head.push_str(row);
    }
    if shown == 0 {
        return None;
    }
    let mut tail = VecDeque::new();
    for row in rows {
        let size = characters(row);
        used += size;
        tail.push_back((row, size));
        while used > room
            && let Some((_, size)) = tail.pop_front()
        {
            used -= size;
        }
    }
    shown += tail.len();
    let note = note.after(&shown_of(shown, total));
    let tail: String = tail.into_iter().map(|(row, _)| row).collect();
    let text = format!("{head}{note}\n{tail}");
    let text = if tail.is_empty() { text.trim_end().to_owned() } else { text };
    Some(Cut { text, kind: CutKind::Table, shown, total, unit: "rows" })
}

fn shown_of(shown: usize, total: usize) -> String {
    format!("{total} rows, {shown} shown")
}
