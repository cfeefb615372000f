//! What is wrong with an argument, in words for the model that sent it.

use std::{borrow::Cow, fmt::Write as _};

use super::subject::{Kind, Subject};
use crate::json::invisible::{Escaped, is_invisible};

/// How many problems are listed.
pub(super) const LISTED: usize = 50;

/// The longest rendering of a value, in characters.
const FOUND: usize = 80;
/// The longest path, in characters.
const PATH: usize = 200;

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, for example `items[2].price`.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// The answer that tells a model what to change.
#[must_use]
pub fn render(tool: &str, problems: &[Problem]) -> String {
    let mut text = format!("Error: Invalid arguments for tool '{tool}':");
    for Problem { path, expected, found } in problems.iter().take(LISTED) {
        let _ = write!(text, "\n- {path}: expected {expected}, got {found}");
    }
    if problems.len() > LISTED {
        let _ = write!(text, "\n- and {} more", problems.len() - LISTED);
    }
    text
}

/// A short rendering of a value with its kind.
pub(crate) fn found<S: Subject>(value: &S) -> String {
    let kind = match value.kind() {
        Kind::Null => return "null".to_owned(),
        Kind::Other => return clean(&value.other_name(), FOUND).into_owned(),
        Kind::Bool => "a boolean",
        Kind::Int => "an integer",
        Kind::Float => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    };
    let mut text = Short { text: String::new(), room: FOUND };
    text.value(value, 0);
    format!("{} ({kind})", text.text)
}

/// A text that stops growing when it is long enough.
struct Short {
    text: String,
    room: usize,
}

impl Short {
    fn push(&mut self, piece: &str) -> bool {
        for character in piece.chars() {
            if self.room == 0 {
                return false;
            }
            self.room -= 1;
            if self.room == 0 {
                self.text.push('…');
                return false;
            }
            self.text.push(character);
        }
        true
    }

    fn value<S: Subject>(&mut self, value: &S, depth: usize) -> bool {
        match value.kind() {
            Kind::Null => self.push("null"),
            Kind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            Kind::Int => match value.digits(FOUND) {
                Some(digits) => self.push(&digits),
                None => self.push("a very large one"),
            },
            Kind::Float => match value.float() {
                Some(float) => self.push(&float_text(float)),
                None => self.push("a very exact one"),
            },
            Kind::String => self.push(&quoted(&value.lossy_text(), FOUND)),
            Kind::Other => self.push(&clean(&value.other_name(), FOUND)),
            Kind::Array | Kind::Object if depth > 3 => self.push("…"),
            Kind::Array => {
                let mut first = true;
                self.push("[")
                    && value.every_item(|item| {
                        let separated = std::mem::take(&mut first) || self.push(", ");
                        separated && self.value(item, depth + 1)
                    })
                    && self.push("]")
            }
            Kind::Object => {
                let mut first = true;
                self.push("{")
                    && value.every_entry(|key, entry| {
                        let separated = std::mem::take(&mut first) || self.push(", ");
                        let key = key.map_or(Cow::Borrowed("?"), |key| Cow::Owned(quoted(key, FOUND)));
                        separated && self.push(&key) && self.push(": ") && self.value(entry, depth + 1)
                    })
                    && self.push("}")
            }
        }
    }
}

/// A text in quotes on one line, cut to about `most` characters.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let mut out = String::from('"');
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ => escape(character, &mut out),
        }
    }
    out.push('"');
    out
}

/// A text on one line, cut to about `most` characters.
pub(super) fn clean(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        escape(character, &mut out);
    }
    Cow::Owned(out)
}

/// Control characters, and the marks that reorder or hide text, are written out.
fn escape(character: char, out: &mut String) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_invisible(character) => {
            let _ = write!(out, "{}", Escaped(character));
        }
        _ => out.push(character),
    }
}

/// The shortest text of a finite number, as Python writes it: `1.0`, `1e-05`, `1.5e+16`.
pub(super) fn float_text(float: f64) -> String {
    let text = format!("{float:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The path of an entry of the value at `path`.
pub(crate) fn entry_path(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key.len() <= 64
        && key.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '$'));
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (true, false) => quoted(key, 64),
        (false, true) => bounded(path, format_args!(".{key}")),
        (false, false) => bounded(path, format_args!("[{}]", quoted(key, 64))),
    }
}

/// The path of an item of the value at `path`.
pub(crate) fn item_path(path: &str, index: usize) -> String {
    bounded(path, format_args!("[{index}]"))
}

fn bounded(path: &str, step: std::fmt::Arguments<'_>) -> String {
    if path.chars().count() > PATH {
        return if path.ends_with('…') { path.to_owned() } else { format!("{path}…") };
    }
    format!("{path}{step}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_has_one_line_for_each_problem() {
        let problem = Problem { path: "a".into(), expected: "an integer".into(), found: "nothing".into() };

        let text = render("f", &[problem.clone(), problem]);

        let line = "- a: expected an integer, got nothing";
        assert_eq!(text, format!("Error: Invalid arguments for tool 'f':\n{line}\n{line}"));
    }

    #[test]
    fn an_answer_is_bounded_and_says_what_was_left_out() {
        let problem = Problem { path: "a".into(), expected: "b".into(), found: "c".into() };

        let text = render("f", &vec![problem; 70]);

        assert_eq!(text.lines().count(), 1 + 50 + 1);
        assert!(text.ends_with("\n- and 20 more"));
    }

    #[test]
    fn values_are_shown_with_their_kind() {
        assert_eq!(found(&json!("a\"b\n\u{7}")), "\"a\\\"b\\n\\u0007\" (a string)");
        assert_eq!(found(&json!(null)), "null");
        assert_eq!(found(&json!([1, "x", {"k": [true]}])), "[1, \"x\", {\"k\": [true]}] (an array)");
        assert_eq!(found(&json!([[[[[[1]]]]]])), "[[[[…]]]] (an array)");
    }

    #[test]
    fn values_are_cut() {
        let long = found(&json!("x".repeat(1_000_000)));
        let wide = found(&json!(vec![0; 100_000]));

        assert!(long.chars().count() < 100 && long.ends_with("… (a string)"), "{long}");
        assert!(wide.chars().count() < 100, "{wide}");
    }

    #[test]
    fn floats_read_as_in_python() {
        let cases =
            [(1.0, "1.0"), (1.5, "1.5"), (1e16, "1e+16"), (1e-5, "1e-05"), (0.0001, "0.0001"), (-2.5e300, "-2.5e+300")];
        for (float, text) in cases {
            assert_eq!(float_text(float), text);
        }
    }

    #[test]
    fn paths_read_like_code() {
        let path = entry_path(&item_path(&entry_path("", "items"), 2), "price");

        assert_eq!(path, "items[2].price");
        assert_eq!(entry_path("a", "b c"), "a[\"b c\"]");
    }
}
