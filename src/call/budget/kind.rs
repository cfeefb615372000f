//! The structure of a text, by its content alone. A text that only looks like one of these is cut at line ends, which does no
//! harm.

use std::sync::LazyLock;

use regex::Regex;

use super::json::{is_document, is_document_per_line};
use super::table::Table;

/// The structure of a text.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Json,
    JsonLines,
    Diff,
    Table(Table<'a>),
    Log,
    Text,
}

/// The number of lines from which a structure is guessed.
pub(super) const SAMPLE: usize = 100;

/// The least number of lines of a log.
const LEAST_LOG: usize = 6;

/// Finds the structure of a text.
pub(super) fn of(text: &str) -> Kind<'_> {
    if is_document(text) {
        Kind::Json
    } else if is_document_per_line(text) {
        Kind::JsonLines
    } else if is_diff(text) {
        Kind::Diff
    } else if let Some(table) = Table::markdown(text) {
        Kind::Table(table)
    } else if is_log(text) {
        Kind::Log
    } else if let Some(table) = Table::separated(text) {
        Kind::Table(table)
    } else {
        Kind::Text
    }
}

/// True if the first lines have the names of a file before and after, and a hunk.
fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().take(SAMPLE).skip_while(|line| !line.starts_with("--- "));
    lines.next().is_some()
        && lines.next().is_some_and(|line| line.starts_with("+++ "))
        && lines.next().is_some_and(|line| line.starts_with("@@ -"))
}

/// A line that begins with a time or a level.
static LOGGED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let times = r"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d|\d{10}";
    let levels = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|[IWEDF]\d{4})\b";
    Regex::new(&format!(r"^[\s\[(<]*(?:{times}|(?i:{levels}))")).ok()
});

/// True if most of the first lines begin with a time or a level.
fn is_log(text: &str) -> bool {
    let Some(pattern) = &*LOGGED else { return false };
    let (mut lines, mut logged) = (0_usize, 0_usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE) {
        lines += 1;
        // A time is at the beginning, and a line may be the whole text.
        let start = line.char_indices().nth(64).map_or(line, |(at, _)| &line[..at]);
        logged += usize::from(pattern.is_match(start));
    }
    lines >= LEAST_LOG && logged * 2 > lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> &'static str {
        match of(text) {
            Kind::Json => "json",
            Kind::JsonLines => "json lines",
            Kind::Diff => "diff",
            Kind::Table(_) => "table",
            Kind::Log => "log",
            Kind::Text => "text",
        }
    }

    #[test]
    fn a_structure_is_known_by_its_content() {
        assert_eq!(name(" {\"a\": [1, 2]}\n"), "json");
        assert_eq!(name("{\"a\": 1}\n{\"a\": 2}\n"), "json lines");
        assert_eq!(name("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), "diff");
        assert_eq!(name("| a | b |\n|---|:-:|\n| 1 | 2 |\n"), "table");
        assert_eq!(name("id,name,age\n1,Ann,3\n2,\"B, ob\",4\n3,Cid,5\n"), "table");
        assert_eq!(name("id\tname\n1\tAnn\n2\tBob\n3\tCid\n"), "table");
        assert_eq!(name(&"2026-01-02 10:00:00 INFO ready\n".repeat(9)), "log");
        assert_eq!(name(&"[INFO] ready\n".repeat(9)), "log");
    }

    #[test]
    fn anything_else_is_text() {
        assert_eq!(name("{\"a\": [1, 2}"), "text");
        assert_eq!(name("[1, 2] and more"), "text");
        assert_eq!(name("--- not a diff\n"), "text");
        assert_eq!(name("One sentence, with a comma.\nAnother one, and another, too.\nNo comma.\nThe end.\n"), "text");
        assert_eq!(name(""), "text");
    }
}
