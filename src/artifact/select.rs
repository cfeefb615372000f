//! Parts of a content: lines, the value at a JSON path, and the lines that match a regular expression.

use std::fmt::Write;
use std::time::{Duration, Instant};

use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};
use serde_json::{Map, Value, json};

/// The most lines that a search shows.
const MAX_LINES: usize = 200;

/// The most memory of a compiled expression, in bytes.
const MAX_PATTERN: usize = 1 << 18;

/// The number of bytes of a long line that are searched at once, after which the time is looked at.
const SEARCHED: usize = 1 << 16;

/// The number of bytes that are searched twice, so that a match is found that begins in one part and ends in the next.
const OVERLAP: usize = 1 << 12;

/// The number of letters of a line that are shown.
const SHOWN: usize = 2_000;

/// The time for which a search may take: the product of a large expression and a large content can be hours.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// A part of a content, and facts about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selection {
    pub(super) content: String,
    pub(super) about: Map<String, Value>,
}

fn selection(content: String, about: Value) -> Selection {
    let about = match about {
        Value::Object(about) => about,
        _ => Map::new(),
    };
    Selection { content, about }
}

/// The lines from `first` to `last`, from 1, with their ends.
pub(super) fn lines(content: &str, first: Option<u64>, last: Option<u64>) -> Result<Selection, String> {
    let number = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let total = content.lines().count();
    let first = first.map_or(1, number).max(1);
    let last = last.map_or(total, number).min(total);
    if first > total.max(1) {
        return Err(format!("There is no line {first}: the content has {total} lines"));
    }
    if first > last {
        return Err(format!("The first line {first} is after the last line {last}"));
    }
    let part: String = content.split_inclusive('\n').skip(first - 1).take(last - first + 1).collect();
    Ok(selection(part, json!({"lines": [first, last], "total_lines": total})))
}

/// The lines that match, each with its number. Of a long line the part around its first match is shown.
pub(super) fn matching(content: &str, pattern: &str) -> Result<Selection, String> {
    let config = Regex::config().nfa_size_limit(Some(MAX_PATTERN)).hybrid_cache_capacity(MAX_PATTERN);
    let regex = Regex::builder().configure(config).build(pattern).map_err(|error| invalid(&error))?;
    let (started, mut shown, mut count) = (Instant::now(), String::new(), 0);
    for (at, line) in content.lines().enumerate() {
        let overtime = |Overtime| format!("The search takes too long: it has come to line {}", at + 1);
        let Some(place) = first_match(&regex, line, started).map_err(overtime)? else { continue };
        count += 1;
        if count <= MAX_LINES {
            // Writing to a string does not fail.
            let _ = writeln!(shown, "{}: {}", at + 1, around(line, place));
        }
    }
    let about =
        json!({"matching_lines": count, "shown_lines": count.min(MAX_LINES), "total_lines": content.lines().count()});
    Ok(selection(shown, about))
}

fn invalid(error: &BuildError) -> String {
    match error.syntax_error() {
        Some(error) => format!("Invalid regular expression: {error}"),
        None => "Invalid regular expression: it is too large".to_owned(),
    }
}

/// The time for a search is over.
struct Overtime;

/// The byte at which the first match in a line begins.
fn first_match(regex: &Regex, line: &str, started: Instant) -> Result<Option<usize>, Overtime> {
    let boundary = |at: usize| (at..line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
    let mut from = 0;
    loop {
        let to = boundary(from + SEARCHED);
        // The letters around the part are seen, so that it neither begins nor ends the line.
        let found = regex.find(Input::new(line).range(from..to));
        if found.is_some() {
            return Ok(found.map(|found| found.start()));
        }
        if started.elapsed() > SEARCH_TIME {
            return Err(Overtime);
        }
        if to == line.len() {
            return Ok(None);
        }
        from = boundary(to - OVERLAP);
    }
}

/// The letters of a line around a byte, with marks where it goes on.
fn around(line: &str, place: usize) -> String {
    let is_long = line.char_indices().nth(SHOWN).is_some();
    let before = line[..place].char_indices().rev().nth(SHOWN / 2).map_or(0, |(start, _)| start);
    let start = if is_long { before } else { 0 };
    let part = beginning(&line[start..], SHOWN);
    let mark = |is_cut: bool| if is_cut { "[...]" } else { "" };
    format!("{}{part}{}", mark(start > 0), mark(start + part.len() < line.len()))
}

/// The first letters of a text.
fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}

/// A step of a JSON path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Item(usize),
    Items(usize, usize),
    All,
}

/// The value at a path such as `$.items[0].name`, `items[2:5]` or `items[*].id`, as JSON.
pub(super) fn at_path(content: &str, path: &str) -> Result<Selection, String> {
    let value: Value = serde_json::from_str(content).map_err(|error| format!("The content is not JSON: {error}"))?;
    let steps = parse(path).map_err(|reason| format!("Invalid path '{path}': {reason}"))?;
    let mut found = vec![&value];
    let mut is_one = true;
    for step in &steps {
        is_one &= matches!(step, Step::Name(_) | Step::Item(_));
        found = found.into_iter().flat_map(|value| take(value, step)).collect();
    }
    match (is_one, found.as_slice()) {
        (true, [one]) => Ok(selection(one.to_string(), json!({"path": path}))),
        (true, _) => Err(format!("Nothing is at path '{path}'")),
        (false, many) => Ok(selection(json!(many).to_string(), json!({"path": path, "count": many.len()}))),
    }
}

fn take<'v>(value: &'v Value, step: &Step) -> Vec<&'v Value> {
    match (step, value) {
        (Step::Name(name), Value::Object(entries)) => entries.get(name).into_iter().collect(),
        (Step::Item(at), Value::Array(items)) => items.get(*at).into_iter().collect(),
        (Step::Items(from, to), Value::Array(items)) => items.iter().take(*to).skip(*from).collect(),
        (Step::All, Value::Array(items)) => items.iter().collect(),
        (Step::All, Value::Object(entries)) => entries.values().collect(),
        _ => Vec::new(),
    }
}

fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut rest = path.trim().strip_prefix('$').unwrap_or(path.trim());
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let quote = inside.chars().next().filter(|letter| matches!(letter, '"' | '\''));
            if let Some(quote) = quote {
                let end = inside[1..].find(quote).ok_or("a quote is not closed")?;
                steps.push(Step::Name(inside[1..=end].to_owned()));
                rest = inside[end + 2..].strip_prefix(']').ok_or("expected `]` after a name")?;
            } else {
                let (index, after) = inside.split_once(']').ok_or("a bracket is not closed")?;
                let step = item(index.trim());
                steps.push(step.ok_or_else(|| format!("expected a number, a range or `*`, got '{index}'"))?);
                rest = after;
            }
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        match name {
            "" => return Err("a name is missing".to_owned()),
            "*" => steps.push(Step::All),
            name => steps.push(Step::Name(name.to_owned())),
        }
        rest = after;
    }
    Ok(steps)
}

fn item(index: &str) -> Option<Step> {
    if index == "*" {
        return Some(Step::All);
    }
    match index.split_once(':') {
        None => index.parse().ok().map(Step::Item),
        Some((from, to)) => {
            let from = if from.is_empty() { 0 } else { from.parse().ok()? };
            let to = if to.is_empty() { usize::MAX } else { to.parse().ok()? };
            Some(Step::Items(from, to))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let read = |first, last| lines("a\nb\nc", first, last).map(|part| part.content);

        assert_eq!(read(Some(2), Some(2)), Ok("b\n".to_owned()));
        assert_eq!(read(Some(2), None), Ok("b\nc".to_owned()));
        assert_eq!(read(None, Some(9)), Ok("a\nb\nc".to_owned()));
        assert_eq!(read(Some(4), None), Err("There is no line 4: the content has 3 lines".to_owned()));
        assert!(read(Some(3), Some(2)).is_err());
    }

    #[test]
    fn a_path_leads_to_values() {
        let content = r#"{"a": [{"b": 1}, {"b": 2}, {"b": 3}], "x.y": "z"}"#;
        let read = |path| at_path(content, path).map(|part| part.content);

        assert_eq!(read("$.a[1].b"), Ok("2".to_owned()));
        assert_eq!(read("a[1:].b"), Ok("[2,3]".to_owned()));
        assert_eq!(read("a[*].b"), Ok("[1,2,3]".to_owned()));
        assert_eq!(read(r#"["x.y"]"#), Ok("\"z\"".to_owned()));
        assert_eq!(read("a[7]"), Err("Nothing is at path 'a[7]'".to_owned()));
        assert_eq!(read("a[b]"), Err("Invalid path 'a[b]': expected a number, a range or `*`, got 'b'".to_owned()));
    }

    #[test]
    fn matching_lines_have_their_numbers() {
        let found = matching("one\ntwo\nthree\n", "^t").unwrap();

        assert_eq!(found.content, "2: two\n3: three\n");
        assert_eq!(found.about["matching_lines"], 2);
        assert!(matching("", "(").unwrap_err().starts_with("Invalid regular expression"));
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let line = format!("{}x{}", "é".repeat(3_000), "é".repeat(3_000));
        let read = |pattern: &str| matching(&line, pattern).map(|found| found.content);

        let (half, whole) = ("é".repeat(1_000), "é".repeat(2_000));
        assert_eq!(read("^é"), Ok(format!("1: {whole}[...]\n")));
        assert_eq!(read("x"), Ok(format!("1: [...]é{half}x{}[...]\n", "é".repeat(998))));
        assert_eq!(read("é$"), Ok(format!("1: [...]é{half}é\n")));
    }

    #[test]
    fn a_long_line_is_searched_to_its_end() {
        let line = "0123456789 é\t".repeat(100_000) + "needle";
        let count = |pattern: &str| matching(&line, pattern).map(|found| found.about["matching_lines"].clone());

        for pattern in ["needle", "needle$", r"9 é\tneedle", r"\bneedle\b"] {
            assert_eq!(count(pattern), Ok(json!(1)), "{pattern}");
        }
        // The line begins once and ends once, not in each of the parts that are searched.
        for pattern in ["^needle", "^[1-9é\t]", "[^e]$"] {
            assert_eq!(count(pattern), Ok(json!(0)), "{pattern}");
        }
    }

    #[test]
    fn a_match_is_found_wherever_a_long_line_is_divided() {
        for place in SEARCHED - 8..SEARCHED + 2 {
            let line = "é".repeat(place / 2) + &"x".repeat(place % 2) + "needle" + &"é".repeat(SEARCHED);

            let found = matching(&line, "needle").unwrap();

            assert_eq!(found.about["matching_lines"], 1, "{place}");
        }
    }

    #[test]
    fn a_search_that_would_take_hours_ends() {
        let content = "a".repeat(1 << 22);

        // A large expression that needs all of its states at once.
        let ended = matching(&content, "(?:a|aa|aaa){1,400}[b-c]{1,400}$");

        assert_eq!(ended.map(|found| found.about["matching_lines"].clone()), Ok(json!(0)));
    }

    proptest! {
        #[test]
        fn any_path_is_a_value_or_an_error(path in "[$.\\[\\]\"'a*:0-9é]{0,12}") {
            let _ = at_path(r#"{"a": [1, {"a": 2}]}"#, &path);
        }
    }
}
