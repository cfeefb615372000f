//! Problems with arguments as data: the path, the expected and the found value. They are rendered as text in one place.

use std::{borrow::Cow, fmt, fmt::Write as _};

use super::path::ValuePath;
use super::value::{JsonLike, ValueKind};
use crate::json::invisible::{Escaped, is_invisible};

/// The most problems that are listed.
const LISTED: usize = 50;

/// The longest rendering of a value, in characters.
const FOUND: usize = 80;

/// One problem of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path, for example `items[2].price`; the root is shown as `arguments`.
    pub path: ValuePath,
    /// The expected value or name.
    pub expected: Expected,
    /// The value that was found.
    pub found: Found,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, found } = self;
        let root = if path.is_root() { "arguments" } else { "" };
        match expected {
            Expected::Value(_) => write!(formatter, "{root}{path}: expected {expected}, got {found}"),
            Expected::Name(_) => write!(formatter, "{root}{path}: {expected}"),
        }
    }
}

/// The value or the name that is expected in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// A value, described by a phrase such as `an integer >= 1`.
    Value(Cow<'static, str>),
    /// A known name in place of an unknown one.
    Name(Box<UnknownName>),
}

/// An unknown name and the known ones. Boxed in [`Expected`], so that problems stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The thing that has the name: `argument`, `key` or `field`.
    pub noun: &'static str,
    /// The known name that was probably meant.
    pub near: Option<String>,
    /// Known names; not all if there are many.
    pub known: Vec<String>,
    /// The number of known names that are left out.
    pub more: usize,
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(phrase) => formatter.write_str(phrase),
            Self::Name(name) => name.fmt(formatter),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, near, known, more } = self;
        if known.is_empty() {
            return write!(formatter, "unknown {noun} (no {noun}s are expected)");
        }
        write!(formatter, "unknown {noun} (")?;
        if let Some(near) = near {
            write!(formatter, "did you mean {near}? ")?;
        }
        write!(formatter, "expected one of: {}", known.join(", "))?;
        if *more > 0 {
            write!(formatter, ", … ({more} more)")?;
        }
        formatter.write_str(")")
    }
}

impl From<&'static str> for Expected {
    fn from(phrase: &'static str) -> Self {
        Self::Value(Cow::Borrowed(phrase))
    }
}

impl From<String> for Expected {
    fn from(phrase: String) -> Self {
        Self::Value(Cow::Owned(phrase))
    }
}

/// The value that was found in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A phrase that shows no value: `nothing`, `another key`.
    Fixed(&'static str),
    /// A JSON value.
    Value {
        /// Its kind as a phrase: `a string`.
        kind: &'static str,
        /// A short rendering.
        shown: String,
    },
    /// A value that is not JSON, by its description.
    Other(String),
    /// A value that must not be shown, with its kind if it is JSON.
    Hidden(Option<&'static str>),
}

impl Found {
    /// No value.
    pub const NOTHING: Self = Self::Fixed("nothing");

    /// A short rendering of a value with its kind.
    pub fn of<S: JsonLike>(value: &S) -> Self {
        let kind = match value.kind() {
            ValueKind::Null => return Self::Fixed("null"),
            ValueKind::Other => return Self::Other(clean(&value.other_name(), FOUND).into_owned()),
            ValueKind::Bool => "a boolean",
            ValueKind::Int => "an integer",
            ValueKind::Float => "a number",
            ValueKind::String => "a string",
            ValueKind::Array => "an array",
            ValueKind::Object => "an object",
        };
        let mut text = ShortText { text: String::new(), room: FOUND };
        text.value(value, 0);
        Self::Value { kind, shown: text.text }
    }

    /// The same without the value.
    #[must_use]
    pub fn hidden(self) -> Self {
        match self {
            Self::Fixed(_) | Self::Hidden(_) => self,
            Self::Value { kind, .. } => Self::Hidden(Some(kind)),
            Self::Other(_) => Self::Hidden(None),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(phrase) => formatter.write_str(phrase),
            Self::Value { kind, shown } => write!(formatter, "{shown} ({kind})"),
            Self::Other(name) => formatter.write_str(name),
            Self::Hidden(Some(kind)) => write!(formatter, "{HIDDEN} ({kind})"),
            Self::Hidden(None) => formatter.write_str(HIDDEN),
        }
    }
}

impl From<String> for Found {
    fn from(name: String) -> Self {
        Self::Other(name)
    }
}

/// Shown in place of a value that may be a secret.
pub const HIDDEN: &str = "***";

/// The response that lists the problems for the model.
#[must_use]
pub fn render(tool: &str, problems: &[Problem]) -> String {
    let mut text = format!("Error: Invalid arguments for tool '{tool}':");
    for problem in problems.iter().take(LISTED) {
        let _ = write!(text, "\n- {problem}");
    }
    if problems.len() > LISTED {
        let _ = write!(text, "\n- and {} more", problems.len() - LISTED);
    }
    text
}

/// A string that stops growing at a length.
struct ShortText {
    text: String,
    room: usize,
}

impl ShortText {
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

    fn value<S: JsonLike>(&mut self, value: &S, depth: usize) -> bool {
        match value.kind() {
            ValueKind::Null => self.push("null"),
            ValueKind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            ValueKind::Int => match value.digits(FOUND) {
                Some(digits) => self.push(&digits),
                None => self.push("a very large one"),
            },
            ValueKind::Float => match value.float() {
                Some(float) => self.push(&float_text(float)),
                None => self.push("a very exact one"),
            },
            ValueKind::String => self.push(&quoted(&value.lossy_text(), FOUND)),
            ValueKind::Other => self.push(&clean(&value.other_name(), FOUND)),
            ValueKind::Array | ValueKind::Object if depth > 3 => self.push("…"),
            ValueKind::Array => {
                let mut first = true;
                self.push("[")
                    && value.every_item(|item| {
                        let separated = std::mem::take(&mut first) || self.push(", ");
                        separated && self.value(item, depth + 1)
                    })
                    && self.push("]")
            }
            ValueKind::Object => {
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

/// A string in quotes on one line, cut to about `most` characters.
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

/// A string on one line, cut to about `most` characters.
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

/// Escapes control characters and invisible characters.
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

/// The shortest text of a finite float, as Python writes it: `1.0`, `1e-05`, `1.5e+16`.
pub(super) fn float_text(float: f64) -> String {
    let text = format!("{float:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(value: &serde_json::Value) -> String {
        Found::of(value).to_string()
    }

    #[test]
    fn a_response_has_one_line_for_each_problem() {
        let problem = Problem { path: "a".into(), expected: "an integer".into(), found: Found::NOTHING };

        let text = render("f", &[problem.clone(), problem]);

        let line = "- a: expected an integer, got nothing";
        assert_eq!(text, format!("Error: Invalid arguments for tool 'f':\n{line}\n{line}"));
    }

    #[test]
    fn a_response_is_bounded_and_counts_what_was_left_out() {
        let problem = Problem { path: "a".into(), expected: "b".into(), found: Found::Fixed("c") };

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
}
