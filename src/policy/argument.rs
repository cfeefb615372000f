//! Conditions on the arguments of a call: parsing them, and testing arguments against them.
//!
//! A condition has a path to a value and tests for it. A path is `path.to.field`, `items[0]`, `items[*]` for every item of a
//! list or value of an object, `["a key.with dots"]` for any key, or a JSON pointer such as `/path/to/field`.

use std::cmp::Ordering;
use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

use super::file::{Fault, unknown};
use super::pattern::{self, Parsed};
use crate::json::number::Decimal;
use crate::schema::shape::{Entry, Shape};

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

/// The width of a rule: which of the values that `[*]` leads to have to pass, and whether a number may be written as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Any of them, in either form: for a rule that denies or asks.
    Wide,
    /// All, and at least one, as they are: for a rule that allows, so that one harmless item does not allow the others.
    Narrow,
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
    pub(super) fn holds(&self, arguments: &Value, width: Width) -> bool {
        let Tests::Present(tests) = &self.tests else { return self.is_absent(arguments, width) };
        let passes = |seen: Option<&Value>| seen.is_some_and(|value| tests.iter().all(|test| test.holds(value, width)));
        let (mut some, mut all) = (false, true);
        self.path.visit(arguments, &mut |seen| {
            if passes(seen) {
                some = true;
                width == Width::Narrow
            } else {
                all = false;
                width == Width::Wide
            }
        });
        some && (all || width == Width::Wide)
    }

    /// The values that the argument is compared with as a whole.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Value> {
        let tests = match &self.tests {
            Tests::Present(tests) => &**tests,
            Tests::Absent => &[],
        };
        tests.iter().flat_map(|test| match test {
            Test::Equals(operand) | Test::NotEquals(operand) => std::slice::from_ref(operand),
            Test::In(operands) => operands,
            _ => &[],
        })
    }

    fn is_absent(&self, arguments: &Value, width: Width) -> bool {
        let (mut seen, mut missing) = (false, false);
        self.path.visit(arguments, &mut |value| {
            seen |= value.is_some();
            missing |= value.is_none();
            true
        });
        !seen || (missing && width == Width::Wide)
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

    fn holds(&self, value: &Value, width: Width) -> bool {
        let text = |passes: &dyn Fn(&str) -> bool| match value {
            Value::String(text) => passes(text),
            Value::Number(number) if width == Width::Wide => passes(number.as_str()),
            _ => false,
        };
        let compared = |passes: fn(Ordering) -> bool, bound: &Decimal| match (Numeric::of(value), width) {
            (Some(number), Width::Wide) => number.compare(bound).is_none_or(passes),
            (Some(Numeric::Exact(number)), Width::Narrow) if value.is_number() => passes(number.cmp(bound)),
            _ => false,
        };
        match self {
            Self::Equals(wanted) => equals(value, wanted, width),
            Self::NotEquals(unwanted) => !equals(value, unwanted, width.other()),
            Self::In(wanted) => wanted.iter().any(|wanted| equals(value, wanted, width)),
            Self::Prefix(part) => text(&|text| text.starts_with(&**part)),
            Self::Suffix(part) => text(&|text| text.ends_with(&**part)),
            Self::Contains(part) => match (value, part) {
                (Value::Array(items), part) => items.iter().any(|item| equals(item, part, width)),
                (_, Value::String(part)) => text(&|text| text.contains(&**part)),
                _ => false,
            },
            Self::Glob(glob) => text(&|text| glob.is_match(text)),
            Self::Matches(regex) => text(&|text| regex.is_match(text)),
            Self::Gt(bound) => compared(Ordering::is_gt, bound),
            Self::Ge(bound) => compared(Ordering::is_ge, bound),
            Self::Lt(bound) => compared(Ordering::is_lt, bound),
            Self::Le(bound) => compared(Ordering::is_le, bound),
            Self::Type(types) => types.iter().any(|wanted| wanted.is_of(value)),
        }
    }
}

impl Width {
    fn other(self) -> Self {
        match self {
            Self::Wide => Self::Narrow,
            Self::Narrow => Self::Wide,
        }
    }
}

/// A number, also one that is written as text, as programs read it.
enum Numeric {
    Exact(Decimal),
    /// A fraction that has no exact decimal form, such as `1/3`.
    Fraction(Decimal, Decimal),
    Infinite {
        is_negative: bool,
    },
    /// A text that some program may read as a number, and others may not: it is neither above nor below any other.
    Unordered,
}

impl Numeric {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Exact(Decimal::of(number))),
            Value::String(text) => Self::parse(text.trim()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(number) = Decimal::parse(text) {
            return Some(Self::Exact(number));
        }
        if let Some((above, below)) = text.split_once('/') {
            let (above, below) = (Decimal::parse(above)?, Decimal::parse(below)?);
            let is_fraction = below > Decimal::of(&0.into());
            return Some(if is_fraction { Self::Fraction(above, below) } else { Self::Unordered });
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        match unsigned.to_ascii_lowercase().as_str() {
            "inf" | "infinity" => Some(Self::Infinite { is_negative: text.starts_with('-') }),
            "nan" | "snan" => Some(Self::Unordered),
            // Digits of other scripts, which Python reads as numbers, too.
            _ => {
                let is_part = |letter: char| letter.is_numeric() || "+-._eE/".contains(letter);
                let has_digits = unsigned.chars().any(|letter| !letter.is_ascii() && letter.is_numeric());
                (has_digits && unsigned.chars().all(is_part)).then_some(Self::Unordered)
            }
        }
    }

    /// The order of the number and another one, if there is any.
    fn compare(&self, other: &Decimal) -> Option<Ordering> {
        match self {
            Self::Exact(number) => Some(number.cmp(other)),
            Self::Fraction(above, below) => Some(above.cmp(&other.times(below))),
            Self::Infinite { is_negative: true } => Some(Ordering::Less),
            Self::Infinite { is_negative: false } => Some(Ordering::Greater),
            Self::Unordered => None,
        }
    }
}

/// True if two values are equal. In the wide sense a number and a text of this number are.
fn equals(one: &Value, other: &Value, width: Width) -> bool {
    let is_number_and_text = one.is_number() && other.is_string() || one.is_string() && other.is_number();
    if width == Width::Narrow || !is_number_and_text {
        return is_same(one, other);
    }
    match (Numeric::of(one), Numeric::of(other)) {
        (Some(Numeric::Exact(exact)), Some(number)) | (Some(number), Some(Numeric::Exact(exact))) => {
            number.compare(&exact) == Some(Ordering::Equal)
        }
        _ => false,
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

    /// The name, if the path leads to a whole argument.
    pub(super) fn single(&self) -> Option<&str> {
        match &*self.steps {
            [PathStep::Key(name) | PathStep::Token(name)] => Some(name),
            _ => None,
        }
    }

    /// The first name on the path that a schema does not have, and the names that it has there.
    pub(super) fn undeclared<'s>(&self, shape: &Shape<'s>) -> Option<(String, Vec<&'s str>)> {
        let mut inner = None;
        for step in &self.steps {
            let shape: &Shape<'s> = inner.as_ref().unwrap_or(shape);
            let (is_object, is_array) = (shape.allows("object"), shape.allows("array"));
            inner = match step {
                PathStep::Key(name) | PathStep::Token(name) if is_object => match shape.entry(name) {
                    Entry::Declared(entry) => Some(entry),
                    Entry::Undeclared => return Some((name.to_string(), shape.names())),
                    Entry::Unknown => return None,
                },
                PathStep::Index(_) | PathStep::Token(_) | PathStep::Every if is_array => Some(shape.items()?),
                PathStep::Every if is_object => return None,
                // A text or number has no parts, a list no names.
                PathStep::Key(name) | PathStep::Token(name) => return Some((name.to_string(), Vec::new())),
                PathStep::Index(index) => return Some((format!("[{index}]"), Vec::new())),
                PathStep::Every => return Some(("[*]".to_owned(), Vec::new())),
            };
        }
        None
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

    fn holds(test: &Value, value: &Value, width: Width) -> bool {
        let condition = Condition::parse("x", test).unwrap();
        condition.holds(&json!({"x": value}), width)
    }

    #[test]
    fn a_number_as_text_does_not_get_past_a_rule_that_denies() {
        for (test, value, wide, narrow) in [
            (json!({"gt": 100}), json!(500), true, true),
            (json!({"gt": 100}), json!("500"), true, false),
            (json!({"gt": 100}), json!(" 5_00.0e0 "), true, false),
            (json!({"gt": 100}), json!("50"), false, false),
            (json!({"gt": 100}), json!("1000/3"), true, false),
            (json!({"gt": 333.33}), json!("1000/3"), true, false),
            (json!({"gt": 333.34}), json!("1000/3"), false, false),
            (json!({"lt": 0}), json!("-1/3"), true, false),
            (json!({"gt": 100}), json!("1/0"), true, false),
            (json!({"gt": 100}), json!("Infinity"), true, false),
            (json!({"gt": 100}), json!("-inf"), false, false),
            (json!({"lt": 100}), json!("NaN"), true, false),
            (json!({"gt": 100}), json!("５００"), true, false),
            (json!({"gt": 100}), json!("a text"), false, false),
            (json!({"gt": 100}), json!(true), false, false),
            (json!(500), json!("5e2"), true, false),
            (json!("500"), json!(500.0), true, false),
            (json!("500"), json!("5e2"), false, false),
            (json!({"in": ["1", "2"]}), json!(2), true, false),
            (json!({"not_equals": "500"}), json!(500), true, false),
            (json!({"not_equals": 500}), json!("501"), true, true),
            (json!({"contains": 5}), json!(["5"]), true, false),
            (json!({"prefix": "5"}), json!(500), true, false),
            (json!({"glob": "5*"}), json!(500), true, false),
            (json!({"matches": "^5"}), json!(500), true, false),
            (json!({"contains": "00"}), json!(500), true, false),
        ] {
            assert_eq!(holds(&test, &value, Width::Wide), wide, "{test} {value}");
            assert_eq!(holds(&test, &value, Width::Narrow), narrow, "{test} {value}");
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
