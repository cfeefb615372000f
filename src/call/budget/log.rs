//! Logs: the first and the last lines, and the errors and warnings between them. Similar lines in a row are folded.

use std::sync::LazyLock;

use regex::Regex;

use super::{Cut, CutKind, Note, characters};

/// The words of a line that reports an error, and those of a warning.
static PROBLEMS: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let errors =
        r"(?i)\b(?:error|fatal|panic(?:ked)?|exception|traceback|critical|fail(?:ed|ure)?)\b|Error\b|Exception\b";
    Some([Regex::new(errors).ok()?, Regex::new(r"(?i)\bwarn(?:ing)?\b").ok()?])
});

/// Similar lines in a row: they differ only in digits.
#[derive(Clone, Copy)]
struct Run<'a> {
    first: &'a str,
    last: &'a str,
    lines: usize,
}

impl Run<'_> {
    /// The number of lines that are shown.
    fn shown(&self) -> usize {
        self.lines.min(2)
    }

    fn text(&self) -> String {
        match self.lines {
            1 => format!("{}\n", self.first),
            2 => format!("{}\n{}\n", self.first, self.last),
            lines => format!("{}\n{}{}\n", self.first, gap(lines - 2, "similar lines"), self.last),
        }
    }
}

/// The line for lines that are left out.
fn gap(lines: usize, noun: &str) -> String {
    format!("[… {lines} {noun} …]\n")
}

/// Joins similar lines in a row.
fn runs<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Run<'a>> {
    let mut lines = lines.peekable();
    std::iter::from_fn(move || {
        let first = lines.next()?;
        let mut run = Run { first, last: first, lines: 1 };
        while let Some(line) = lines.next_if(|line| is_similar(first, line)) {
            run.last = line;
            run.lines += 1;
        }
        Some(run)
    })
}

/// True if two lines differ only in digits.
fn is_similar(one: &str, other: &str) -> bool {
    words(one).eq(words(other))
}

/// The parts of a line that are not digits.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty())
}

/// A part of the log in the result: its place, its text, and the number of lines that are shown.
struct Part {
    from: usize,
    to: usize,
    text: String,
    shown: usize,
}

/// The parts of a log that are chosen so far.
struct Selection<'a> {
    text: &'a str,
    parts: Vec<Part>,
    /// The number of their characters.
    used: usize,
}

impl<'a> Selection<'a> {
    /// Adds lines if they fit into `most` characters; `extra` are the characters besides their own.
    fn take(&mut self, run: Run<'a>, extra: usize, most: usize) -> bool {
        let at = |line: &str| line.as_ptr() as usize - self.text.as_ptr() as usize;
        let part =
            Part { from: at(run.first), to: at(run.last) + run.last.len(), text: run.text(), shown: run.shown() };
        let used = self.used + characters(&part.text) + extra;
        if used <= most {
            self.used = used;
            self.parts.push(part);
        }
        used <= most
    }

    /// Adds the last lines of a part of the text. Returns the place where they begin.
    fn take_last(&mut self, from: usize, to: usize, most: usize) -> usize {
        let mut start = to;
        // A part begins at the end of the line before it.
        let lines = self.text[from..to].lines().rev().filter(|line| !line.is_empty());
        for Run { first, last, lines } in runs(lines) {
            if !self.take(Run { first: last, last: first, lines }, 0, most) {
                break;
            }
            start = self.parts.last().map_or(to, |part| part.from);
        }
        start
    }
}

/// Cuts a log to at most `limit` characters; none if there is too little room.
pub(super) fn cut(text: &str, limit: usize, note: &Note<'_>) -> Option<Cut> {
    let total = text.lines().count();
    let widest = characters(&note.after(&shown_of(total, total)));
    let wide_gap = characters(&gap(total, "lines"));
    let room = limit.checked_sub(widest + wide_gap)?;
    let mut chosen = Selection { text, parts: Vec::new(), used: 0 };
    let _ = runs(text.lines()).take_while(|run| chosen.take(*run, 0, room / 4)).count();
    let head_end = chosen.parts.last().map_or(0, |part| part.to);
    let tail_start = chosen.take_last(head_end, text.len(), room * 5 / 8);
    if chosen.parts.is_empty() {
        return None;
    }
    let is_problem = |level: usize, run: &Run<'_>| {
        let found = |level: usize| PROBLEMS.as_ref().is_some_and(|problems| problems[level].is_match(run.first));
        found(level) && (level == 0 || !found(0))
    };
    for level in [0, 1] {
        let problems = runs(text[head_end..tail_start].lines()).filter(|run| is_problem(level, run));
        let _ = problems.take_while(|run| chosen.take(*run, wide_gap, room)).count();
    }
    // The room that is left is for more of the end.
    let before = chosen.parts.iter().map(|part| part.to).filter(|to| *to <= tail_start).max();
    chosen.take_last(before.unwrap_or(0), tail_start, room);
    chosen.parts.sort_unstable_by_key(|part| part.from);
    Some(joined(&chosen.parts, text, total, note))
}

/// The text of the parts, with a line for each gap and the note at the end.
fn joined(parts: &[Part], text: &str, total: usize, note: &Note<'_>) -> Cut {
    let shown = parts.iter().map(|part| part.shown).sum();
    let left_out = |from: usize, to: usize| text[from..to].lines().filter(|line| !line.is_empty()).count();
    let (mut result, mut end) = (String::new(), 0);
    for part in parts {
        match left_out(end, part.from) {
            0 => {}
            lines => result.push_str(&gap(lines, "lines")),
        }
        result.push_str(&part.text);
        end = part.to;
    }
    match left_out(end, text.len()) {
        0 => {}
        lines => result.push_str(&gap(lines, "lines")),
    }
    result.push_str(&note.after(&shown_of(shown, total)));
    Cut { text: result, kind: CutKind::Log, shown, total, unit: "lines" }
}

fn shown_of(shown: usize, total: usize) -> String {
    format!("{shown} of {total} lines")
}
