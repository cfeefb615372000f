//! Where in the arguments a condition looks.
//!
//! `path.to.field`, `items[0]`, `items[*]` for every item of a list or value of an object, `["a key.with dots"]` for
//! any key, or a JSON pointer such as `/path/to/field`.

use std::fmt;

use serde_json::Value;

/// More steps than arguments have levels that a person would name.
const LIMIT: usize = 32;

/// A way through the arguments.
#[derive(Debug, Clone)]
pub(super) struct Path {
    text: Box<str>,
    steps: Box<[Step]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(Box<str>),
    Index(usize),
    /// A part of a JSON pointer, which is a key or an index by what it meets.
    Part(Box<str>),
    Every,
}

impl Path {
    /// Reads a path; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let steps = match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(part).collect::<Result<Vec<_>, _>>()?,
            None => steps(text)?,
        };
        if steps.len() > LIMIT {
            return Err(format!("it has more than {LIMIT} steps"));
        }
        Ok(Self { text: text.into(), steps: steps.into() })
    }

    /// Shows what is there to a function, until it has seen enough: once, or for each branch of `[*]`; nothing for a
    /// branch that ends before the path does. False if the function had enough.
    pub(super) fn visit<'v>(&self, value: &'v Value, seen: &mut dyn FnMut(Option<&'v Value>) -> bool) -> bool {
        visit(&self.steps, value, seen)
    }

    /// What is there, for a person: the first of it, if it is in several places.
    pub(super) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut first = None;
        self.visit(value, &mut |seen| {
            first = first.or(seen);
            first.is_none()
        });
        first
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn visit<'v>(steps: &[Step], value: &'v Value, seen: &mut dyn FnMut(Option<&'v Value>) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return seen(Some(value)) };
    let next = match (step, value) {
        (Step::Key(key) | Step::Part(key), Value::Object(entries)) => entries.get(&**key),
        (Step::Index(index), Value::Array(items)) => items.get(*index),
        (Step::Part(part), Value::Array(items)) => index(part).and_then(|index| items.get(index)),
        (Step::Every, Value::Array(items)) => return items.iter().all(|item| visit(rest, item, seen)),
        (Step::Every, Value::Object(entries)) => return entries.values().all(|value| visit(rest, value, seen)),
        _ => None,
    };
    match next {
        Some(next) => visit(rest, next, seen),
        None => seen(None),
    }
}

fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    let mut is_open = true;
    while is_open || !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = bracket(inside)?;
            steps.push(step);
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if key.is_empty() || key.contains(']') || !is_open {
                return Err("write `path.to.field`, `items[0]`, `items[*]` or `[\"any key\"]`".to_owned());
            }
            steps.push(Step::Key(key.into()));
            rest = after;
        }
        let after = rest.strip_prefix('.');
        is_open = after.is_some();
        rest = after.unwrap_or(rest);
    }
    Ok(steps)
}

/// Reads the rest of a step in brackets, and gives what follows it.
fn bracket(inside: &str) -> Result<(Step, &str), String> {
    if inside.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let key = strings.next().and_then(Result::ok).ok_or("the key in brackets is no JSON string")?;
        let rest = inside[strings.byte_offset()..].strip_prefix(']').ok_or("a `[` has no `]`")?;
        return Ok((Step::Key(key.into()), rest));
    }
    let (what, rest) = inside.split_once(']').ok_or("a `[` has no `]`")?;
    let step = match what {
        "*" => Step::Every,
        number => {
            Step::Index(index(number).ok_or_else(|| format!("`[{what}]` is none of `[0]`, `[*]` and `[\"a key\"]`"))?)
        }
    };
    Ok((step, rest))
}

fn part(text: &str) -> Result<Step, String> {
    let mut part = String::new();
    let mut pieces = text.split('~');
    part.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (letter, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', &piece[1..]),
            Some(b'1') => ('/', &piece[1..]),
            _ => return Err("in a JSON pointer `~` is written `~0`, and `/` in a key `~1`".to_owned()),
        };
        part.push(letter);
        part.push_str(rest);
    }
    Ok(Step::Part(part.into()))
}

/// Reads a place in a list, in its one spelling.
fn index(text: &str) -> Option<usize> {
    let is_plain = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(path: &str, value: &Value) -> Vec<Option<Value>> {
        let mut all = Vec::new();
        Path::parse(path).unwrap().visit(value, &mut |seen| {
            all.push(seen.cloned());
            true
        });
        all
    }

    #[test]
    fn a_path_leads_to_what_it_names() {
        let value = json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3, "": 4, "a/b": 5, "m~n": 6, "0": 7, "list": []});

        for (path, expected) in [
            ("a.b[0]", vec![Some(json!(1))]),
            ("a.b[1].c", vec![Some(json!(2))]),
            ("a.b[*]", vec![Some(json!(1)), Some(json!({"c": 2}))]),
            ("a.b[*].c", vec![None, Some(json!(2))]),
            ("a[*][1].c", vec![Some(json!(2))]),
            (r#"["x.y"]"#, vec![Some(json!(3))]),
            (r#"[""]"#, vec![Some(json!(4))]),
            (r#"a["b"][0]"#, vec![Some(json!(1))]),
            ("/a/b/0", vec![Some(json!(1))]),
            ("/a~1b", vec![Some(json!(5))]),
            ("/m~0n", vec![Some(json!(6))]),
            ("/0", vec![Some(json!(7))]),
            ("/", vec![Some(json!(4))]),
            ("/a/b/01", vec![None]),
            ("list[*]", vec![]),
            ("missing[*].x", vec![None]),
            ("a.b.c", vec![None]),
        ] {
            assert_eq!(seen(path, &value), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in
            ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[-1]", "a[01]", "a[x]", "a]b", "a[0]b", r#"["a"#, "/~2"]
        {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        assert!(Path::parse(&vec!["a"; 33].join(".")).is_err());
    }
}
