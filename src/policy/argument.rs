//! Conditions on the arguments of a call: parsing them, and testing arguments against them.
//!
//! A condition has a path to a value and tests for it. A path is `path.to.field`, `items[0]`, `items[*]` for every item of a
//! list or value of an object, `["a key.with dots"]` for any key, or a JSON pointer such as `/path/to/field`.

use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

use super::file::{Fault, unknown};
use super::pattern::{self, Parsed};
use crate::json::number::Decimal;

/// A condition on the value, or values, at one path in the arguments.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) path: ArgumentPath,
    tests: Tests,
}

#[derive(Debug, Clone)]
enum Tests {
    /// There is no value.
    Absent,
    /// There is a value that passes all tests.
    Present(Box<[Test]>),
}

/// The number of values that have to pass, of those that `[*]` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    /// Any: for a rule that denies or asks.
    Any,
    /// All, and at least one: for a rule that allows, so that one harmless item does not allow the others.
    All,
}

/// A test of one value.
#[derive(Debug, Clone)]
enum Test {
    Equals(Value),
    NotEquals(Value),
    In(Box<[Value]>),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Value),
    Glob(Parsed),
    Matches(Regex),
    Gt(Decimal),
    Ge(Decimal),
    Lt(Decimal),
    Le(Decimal),
    Type(Box<[JsonType]>),
}

const OPERATORS: [&str; 15] = [
    "equals",
    "not_equals",
    "in",
    "prefix",
    "suffix",
    "contains",
    "glob",
    "matches",
    "gt",
    "ge",
    "lt",
    "le",
    "exists",
    "absent",
    "type",
];

string_enum! {
    /// The types of JSON; an integer is also a number.
    enum JsonType {
        Null = "null",
        Boolean = "boolean",
        Integer = "integer",
        Number = "number",
        String = "string",
        Array = "array",
        Object = "object",
    }
}

impl Condition {
    /// Parses a condition: `wanted` is a table of operators, or the value itself.
    pub(super) fn parse(path: &str, wanted: &Value) -> Result<Self, Vec<Fault>> {
        let path =
            ArgumentPath::parse(path).map_err(|reason| vec![Fault::whole(format!("invalid path `{path}`: {reason}"))]);
        let tests = match wanted {
            Value::Object(operators) if operators.is_empty() => {
                Err(vec![Fault::whole("missing condition").suggest("write `{ exists = true }` if any value will do")])
            }
            Value::Object(operators) => Tests::parse(operators),
            value => Ok(Tests::Present([Test::Equals(value.clone())].into())),
        };
        match (path, tests) {
            (Ok(path), Ok(tests)) => Ok(Self { path, tests }),
            (path, tests) => Err([path.err(), tests.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// True if the arguments fulfil it.
    pub(super) fn holds(&self, arguments: &Value, quantifier: Quantifier) -> bool {
        let Tests::Present(tests) = &self.tests else { return self.is_absent(arguments, quantifier) };
        let passes = |seen: Option<&Value>| seen.is_some_and(|value| tests.iter().all(|test| test.holds(value)));
        let (mut some, mut all) = (false, true);
        self.path.visit(arguments, &mut |seen| {
            if passes(seen) {
                some = true;
                quantifier == Quantifier::All
            } else {
                all = false;
                quantifier == Quantifier::Any
            }
        });
        some && (all || quantifier == Quantifier::Any)
    }

    fn is_absent(&self, arguments: &Value, quantifier: Quantifier) -> bool {
        let (mut seen, mut missing) = (false, false);
        self.path.visit(arguments, &mut |value| {
            seen |= value.is_some();
            missing |= value.is_none();
            true
        });
        !seen || (missing && quantifier == Quantifier::Any)
    }
}

impl Tests {
    fn parse(operators: &Map<String, Value>) -> Result<Self, Vec<Fault>> {
        let (mut tests, mut faults, mut is_absent) = (Vec::new(), Vec::new(), false);
        for (operator, operand) in operators {
            match Test::parse(operator, operand) {
                Ok(ParsedTest::Value(test)) => tests.push(test),
                Ok(ParsedTest::Present) => {}
                Ok(ParsedTest::Absent) => is_absent = true,
                Err(fault) => faults.push(fault.under(operator)),
            }
        }
        if is_absent && operators.len() > 1 {
            faults.push(Fault::whole("an absent value cannot have other conditions").suggest("write two rules"));
        }
        match faults.is_empty() {
            true if is_absent => Ok(Self::Absent),
            true => Ok(Self::Present(tests.into())),
            false => Err(faults),
        }
    }
}

enum ParsedTest {
    Value(Test),
    Present,
    Absent,
}

impl Test {
    fn parse(operator: &str, operand: &Value) -> Result<ParsedTest, Fault> {
        let wrong = |wanted: &str| Fault::expected(wanted, type_name(operand));
        let text = || operand.as_str().ok_or_else(|| wrong("a string"));
        let part = || text().and_then(|text| if text.is_empty() { Err(Fault::whole("it is empty")) } else { Ok(text) });
        let number = || operand.as_number().map(Decimal::of).ok_or_else(|| wrong("a number"));
        let flag = || operand.as_bool().ok_or_else(|| wrong("`true` or `false`"));
        Ok(ParsedTest::Value(match operator {
            "equals" => Self::Equals(operand.clone()),
            "not_equals" => Self::NotEquals(operand.clone()),
            "in" => match operand {
                Value::Array(values) if values.is_empty() => return Err(Fault::whole("the list is empty")),
                Value::Array(values) => Self::In(values.as_slice().into()),
                _ => return Err(wrong("a list")),
            },
            "prefix" => Self::Prefix(part()?.into()),
            "suffix" => Self::Suffix(part()?.into()),
            "contains" if operand.as_str() == Some("") => return Err(Fault::whole("it is empty")),
            "contains" => Self::Contains(operand.clone()),
            "glob" => {
                Self::Glob(pattern::parse(text()?).map_err(|reason| Fault::whole(format!("invalid glob: {reason}")))?)
            }
            "matches" => Self::Matches(pattern::regex(text()?).map_err(Fault::whole)?),
            "gt" => Self::Gt(number()?),
            "ge" => Self::Ge(number()?),
            "lt" => Self::Lt(number()?),
            "le" => Self::Le(number()?),
            "exists" => return Ok(if flag()? { ParsedTest::Present } else { ParsedTest::Absent }),
            "absent" => return Ok(if flag()? { ParsedTest::Absent } else { ParsedTest::Present }),
            "type" => Self::Type(types(operand)?),
            other => return Err(unknown("condition", other, &OPERATORS)),
        }))
    }

    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(wanted) => is_same(value, wanted),
            Self::NotEquals(unwanted) => !is_same(value, unwanted),
            Self::In(wanted) => wanted.iter().any(|wanted| is_same(value, wanted)),
            Self::Prefix(part) => value.as_str().is_some_and(|text| text.starts_with(&**part)),
            Self::Suffix(part) => value.as_str().is_some_and(|text| text.ends_with(&**part)),
            Self::Contains(part) => contains(value, part),
            Self::Glob(glob) => value.as_str().is_some_and(|text| glob.is_match(text)),
            Self::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
            Self::Gt(bound) => number(value).is_some_and(|number| number > *bound),
            Self::Ge(bound) => number(value).is_some_and(|number| number >= *bound),
            Self::Lt(bound) => number(value).is_some_and(|number| number < *bound),
            Self::Le(bound) => number(value).is_some_and(|number| number <= *bound),
            Self::Type(types) => types.iter().any(|wanted| wanted.is_of(value)),
        }
    }
}

fn types(operand: &Value) -> Result<Box<[JsonType]>, Fault> {
    let words = match operand {
        Value::String(_) => std::slice::from_ref(operand),
        Value::Array(words) if !words.is_empty() => words,
        _ => return Err(Fault::expected("the name of a type or a list of them", type_name(operand))),
    };
    let parse = |word: &Value| {
        let word = word.as_str().ok_or_else(|| Fault::expected("a string", type_name(word)))?;
        JsonType::parse(word).ok_or_else(|| unknown("type", word, &JsonType::ALL.map(JsonType::as_str)))
    };
    words.iter().map(parse).collect()
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(&**part),
        (Value::Array(items), part) => items.iter().any(|item| is_same(item, part)),
        _ => false,
    }
}

fn number(value: &Value) -> Option<Decimal> {
    value.as_number().map(Decimal::of)
}

/// True if two values are equal: numbers by their value, objects in any order.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || Decimal::of(one) == Decimal::of(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there = |(key, value): (&String, &Value)| other.get(key).is_some_and(|found| is_same(value, found));
            one.len() == other.len() && one.iter().all(is_there)
        }
        (one, other) => one == other,
    }
}

impl JsonType {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.as_number().is_some_and(|number| Decimal::of(number).is_integer()),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// The name of a value's type, in TOML's terms.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// A value on one line, truncated where it gets long.
pub(super) struct Short<'a>(pub(super) &'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 80;
        let text = super::canonical(self.0);
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(formatter, "{}…", &text[..end]),
            None => formatter.write_str(&text),
        }
    }
}

/// The most steps of a path.
const LIMIT: usize = 32;

/// A path to a value, or to several, in the arguments.
#[derive(Debug, Clone)]
pub(super) struct ArgumentPath {
    text: Box<str>,
    steps: Box<[PathStep]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(Box<str>),
    Index(usize),
    /// A token of a JSON pointer: a key in an object, an index in a list.
    Token(Box<str>),
    Every,
}

impl ArgumentPath {
    /// Parses a path; the error is a clause on what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let steps = match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(token).collect::<Result<Vec<_>, _>>()?,
            None => steps(text)?,
        };
        if steps.len() > LIMIT {
            return Err(format!("it has more than {LIMIT} steps"));
        }
        Ok(Self { text: text.into(), steps: steps.into() })
    }

    /// Calls a function with the value at the path, once, or for each branch of `[*]`, until it returns false; with `None` for a
    /// branch that ends before the path does. False if the function returned false.
    pub(super) fn visit<'v>(&self, value: &'v Value, seen: &mut dyn FnMut(Option<&'v Value>) -> bool) -> bool {
        visit(&self.steps, value, seen)
    }

    /// The value at the path for a message: the first, if there are several.
    pub(super) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut first = None;
        self.visit(value, &mut |seen| {
            first = first.or(seen);
            first.is_none()
        });
        first
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn visit<'v>(steps: &[PathStep], value: &'v Value, seen: &mut dyn FnMut(Option<&'v Value>) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return seen(Some(value)) };
    let next = match (step, value) {
        (PathStep::Key(key) | PathStep::Token(key), Value::Object(entries)) => entries.get(&**key),
        (PathStep::Index(index), Value::Array(items)) => items.get(*index),
        (PathStep::Token(part), Value::Array(items)) => index(part).and_then(|index| items.get(index)),
        (PathStep::Every, Value::Array(items)) => return items.iter().all(|item| visit(rest, item, seen)),
        (PathStep::Every, Value::Object(entries)) => return entries.values().all(|value| visit(rest, value, seen)),
        _ => None,
    };
    match next {
        Some(next) => visit(rest, next, seen),
        None => seen(None),
    }
}

fn steps(text: &str) -> Result<Vec<PathStep>, String> {
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
                return Err("expected `path.to.field`, `items[0]`, `items[*]` or `[\"any key\"]`".to_owned());
            }
            steps.push(PathStep::Key(key.into()));
            rest = after;
        }
        let after = rest.strip_prefix('.');
        is_open = after.is_some();
        rest = after.unwrap_or(rest);
    }
    Ok(steps)
}

/// Parses the rest of a step in brackets, and returns what follows it.
fn bracket(inside: &str) -> Result<(PathStep, &str), String> {
    if inside.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let key = strings.next().and_then(Result::ok).ok_or("the key in brackets is not a valid JSON string")?;
        let rest = inside[strings.byte_offset()..].strip_prefix(']').ok_or("a `[` has no `]`")?;
        return Ok((PathStep::Key(key.into()), rest));
    }
    let (what, rest) = inside.split_once(']').ok_or("a `[` has no `]`")?;
    let step = match what {
        "*" => PathStep::Every,
        number => PathStep::Index(
            index(number).ok_or_else(|| format!("expected `[0]`, `[*]` or `[\"a key\"]`, got `[{what}]`"))?,
        ),
    };
    Ok((step, rest))
}

/// Parses a token of a JSON pointer.
fn token(text: &str) -> Result<PathStep, String> {
    let mut token = String::new();
    let mut pieces = text.split('~');
    token.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (letter, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', &piece[1..]),
            Some(b'1') => ('/', &piece[1..]),
            _ => return Err("in a JSON pointer `~` is written `~0`, and `/` in a key `~1`".to_owned()),
        };
        token.push(letter);
        token.push_str(rest);
    }
    Ok(PathStep::Token(token.into()))
}

/// Parses an index of a list; leading zeros are refused, so that each index has one spelling.
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
        ArgumentPath::parse(path).unwrap().visit(value, &mut |seen| {
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
            assert!(ArgumentPath::parse(path).is_err(), "{path}");
        }
        assert!(ArgumentPath::parse(&vec!["a"; 33].join(".")).is_err());
    }
}
