//! Unified diffs: the headers of files and hunks stay as long as possible, and hunks are dropped from the end of each file.

use super::{Cut, CutKind, Note, characters, offset, prose};

/// The changes of one file.
struct File<'a> {
    /// The lines before the first hunk.
    header: &'a str,
    hunks: Vec<Hunk<'a>>,
    /// The number of hunks whose lines are shown.
    shown: usize,
    /// The first lines of the hunk after those.
    partial: &'a str,
}

/// A hunk: its line with `@@`, and the lines after it.
struct Hunk<'a> {
    header: &'a str,
    body: &'a str,
}

/// The amount of detail that there is room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The headers of all hunks.
    Hunks,
    /// The headers of all files.
    Files,
}

/// Cuts a diff to at most `limit` characters; none if there is no room for a file.
pub(super) fn cut(text: &str, limit: usize, note: &Note<'_>) -> Option<Cut> {
    let (preamble, mut files) = parse(text);
    let total: usize = files.iter().map(|file| file.hunks.len()).sum();
    let widest = characters(&note.after(&summary(total, total, files.len(), files.len())));
    let room = limit.checked_sub(widest)?;
    // A message before the diff takes a fifth of the room at most.
    let preamble = match prose::shorten(preamble, room / 5) {
        short if short.len() == preamble.len() || short.is_empty() => short,
        short => format!("{short}\n"),
    };
    let room = room - characters(&preamble);
    let cost = |file: &File<'_>, detail: Detail| {
        let headers = file.hunks.iter().filter(|_| detail == Detail::Hunks);
        let headers: usize = headers.map(|hunk| characters(hunk.header)).sum();
        characters(file.header) + headers + characters(&left_out(file.hunks.len(), file.hunks.len(), text.len()))
    };
    let sum = |files: &[File<'_>], detail| files.iter().map(|file| cost(file, detail)).sum::<usize>();
    let detail = [Detail::Hunks, Detail::Files].into_iter().find(|detail| sum(&files, *detail) <= room);
    let all = files.len();
    let mut used = 0;
    if detail.is_none() {
        let fits = |file: &&File<'_>| {
            used += cost(file, Detail::Files);
            used <= room
        };
        let kept = files.iter().take_while(fits).count();
        files.truncate(kept);
        if files.is_empty() {
            return None;
        }
    } else if let Some(detail) = detail {
        let room = room - sum(&files, detail);
        choose(&mut files, room, detail);
    }
    let shown = files.iter().map(|file| file.shown).sum();
    let mut result = preamble;
    for file in &files {
        file.write(detail.unwrap_or(Detail::Files), &mut result);
    }
    result.push_str(&note.after(&summary(shown, total, files.len(), all)));
    Some(Cut { text: result, kind: CutKind::Diff, shown, total, unit: "hunks" })
}

/// Shows the lines of hunks while there is room: the first hunk of each file, then the second of each. The room that is left is for
/// a part of the first hunk that does not fit.
fn choose(files: &mut [File<'_>], mut room: usize, detail: Detail) {
    let header = |hunk: &Hunk<'_>| if detail == Detail::Files { characters(hunk.header) } else { 0 };
    let mut open: Vec<&mut File<'_>> = files.iter_mut().collect();
    while !open.is_empty() {
        open.retain_mut(|file| {
            let Some(hunk) = file.hunks.get(file.shown) else { return false };
            let Some(rest) = room.checked_sub(header(hunk) + characters(hunk.body)) else { return false };
            room = rest;
            file.shown += 1;
            true
        });
    }
    if let Some(file) = files.iter_mut().find(|file| file.shown < file.hunks.len()) {
        let hunk = &file.hunks[file.shown];
        let part = &hunk.body[..offset(hunk.body, room.saturating_sub(header(hunk)))];
        file.partial = &part[..part.rfind('\n').map_or(0, |at| at + 1)];
    }
}

impl File<'_> {
    fn write(&self, detail: Detail, result: &mut String) {
        result.push_str(self.header);
        let (shown, dropped) = self.hunks.split_at(self.shown);
        for hunk in shown {
            result.push_str(hunk.header);
            result.push_str(hunk.body);
        }
        for (at, hunk) in dropped.iter().enumerate() {
            let partial = if at == 0 { self.partial } else { "" };
            if detail == Detail::Hunks || !partial.is_empty() {
                result.push_str(hunk.header);
                result.push_str(partial);
            }
        }
        if !dropped.is_empty() {
            let lines: usize = dropped.iter().map(|hunk| hunk.body.lines().count()).sum();
            result.push_str(&left_out(shown.len(), self.hunks.len(), lines - self.partial.lines().count()));
        }
    }
}

/// The line for the hunks of a file that are left out.
fn left_out(shown: usize, total: usize, lines: usize) -> String {
    format!("[{shown} of {total} hunks, {lines} lines left out]\n")
}

fn summary(shown: usize, hunks: usize, files: usize, all: usize) -> String {
    format!("{shown} of {hunks} hunks in {files} of {all} files")
}

/// Splits a diff into the text before it and its files. Lines that belong to nothing else belong to the hunk before them.
fn parse(text: &str) -> (&str, Vec<File<'_>>) {
    let mut files: Vec<File<'_>> = Vec::new();
    let mut at = 0;
    // The beginning of the current file and of the lines of its last hunk, and the lines that this hunk still has to have.
    let (mut header, mut body, mut old, mut new) = (None, 0, 0_u64, 0_u64);
    let file = |from: usize, to: usize| File { header: &text[from..to], hunks: Vec::new(), shown: 0, partial: "" };
    let mut preamble = None;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let start = at;
        at += line.len();
        if (old > 0 || new > 0) && line.starts_with([' ', '+', '-', '\\', '\n', '\r']) {
            old = old.saturating_sub(u64::from(!line.starts_with(['+', '\\'])));
            new = new.saturating_sub(u64::from(!line.starts_with(['-', '\\'])));
        } else if line.starts_with("diff ") || line.starts_with("Index: ") {
            // A file without hunks, such as a binary one.
            files.extend(header.map(|from| file(from, start)));
            preamble.get_or_insert(start);
            (header, old, new) = (Some(start), 0, 0);
            continue;
        } else if line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ ")) {
            preamble.get_or_insert(start);
            at += lines.next().map_or(0, str::len);
            files.push(file(header.take().unwrap_or(start), at));
            (old, new) = (0, 0);
            continue;
        } else if let (None, Some(counts), Some(file)) = (header, hunk_lines(line), files.last_mut()) {
            (old, new) = counts;
            body = at;
            file.hunks.push(Hunk { header: line, body: "" });
            continue;
        }
        match files.last_mut() {
            Some(file) if header.is_none() => match file.hunks.last_mut() {
                Some(hunk) => hunk.body = &text[body..at],
                None => file.header = &text[at - line.len() - file.header.len()..at],
            },
            // A line of the next header, or of the text before the first file.
            _ => {}
        }
    }
    files.extend(header.map(|from| file(from, text.len())));
    (&text[..preamble.unwrap_or(0)], files)
}

/// The numbers of lines of a hunk before and after, from its header.
fn hunk_lines(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}
