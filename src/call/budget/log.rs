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

/// Cuts a log to at most `limit` characters; none if there is too little room.
pub(super) fn cut(text: &str, limit: usize, note: &Note<'_>) -> Option<Cut> {
    let total = text.lines().count();
    let widest = characters(&note.after(&shown_of(total, total)));
    let wide_gap = characters(&gap(total, "lines"));
    let room = limit.checked_sub(widest + wide_gap)?;
    let mut parts: Vec<Part> = Vec::new();
    let place = |run: &Run<'_>| {
        let at = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        let (one, other) = (at(run.first), at(run.last));
        if one <= other { (one, other + run.last.len()) } else { (other, one + run.first.len()) }
    };
    let part = |run: Run<'_>| {
        let (from, to) = place(&run);
        Part { from, to, text: run.text(), shown: run.shown() }
    };
    let mut used = 0;
    let mut take = |parts: &mut Vec<Part>, run: Run<'_>, extra: usize, most: usize| {
        let part = part(run);
        let size = characters(&part.text) + extra;
        let fits = used + size <= most;
        if fits {
            used += size;
            parts.push(part);
        }
        fits
    };
    for run in runs(text.lines()) {
        if !take(&mut parts, run, 0, room / 4) {
            break;
        }
    }
    let head_end = parts.last().map_or(0, |part| part.to);
    let head = parts.len();
    for run in runs(text[head_end..].lines().rev()) {
        let run = Run { first: run.last, last: run.first, lines: run.lines };
        // An empty line that is left of the head.
        if run.first.is_empty() && place(&run).0 == head_end {
            break;
        }
        if !take(&mut parts, run, 0, room * 5 / 8) {
            break;
        }
    }
    if parts.is_empty() {
        return None;
    }
    let tail_start = parts[head..].last().map_or(text.len(), |part| part.from);
    if let Some(problems) = &*PROBLEMS
        && head_end < tail_start
    {
        for (level, problem) in problems.iter().enumerate() {
            let middle = runs(text[head_end..tail_start].lines());
            let found =
                middle.filter(|run| problem.is_match(run.first) && (level == 0 || !problems[0].is_match(run.first)));
            for run in found {
                if !take(&mut parts, run, wide_gap, room) {
                    break;
                }
            }
        }
    }
    parts.sort_unstable_by_key(|part| part.from);
    Some(joined(&parts, text, total, note))
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
