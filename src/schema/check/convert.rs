//! The rules by which a single value becomes another type. Nothing else is guessed.

use serde_json::{Number, Value};

use super::{
    coerce::Rebuild,
    kinds::Kinds,
    problem::float_text,
    subject::{Integer, Kind, Subject},
};
use crate::schema::strict;

/// The most digits that are read as an integer or written as text, as in Python: more take quadratic time.
const DIGITS: usize = 4300;

/// The one member that a coercion reaches.
pub(super) fn to_member<S: Rebuild>(value: &S, members: &[Value]) -> Option<S> {
    if members.iter().any(|member| same(value, member)) {
        return None;
    }
    let mut reached = members.iter().filter(|member| {
        let name = match member.kind() {
            Kind::Null => "null",
            Kind::Bool => "boolean",
            Kind::Int => "integer",
            Kind::Float => "number",
            Kind::String => "string",
            Kind::Array | Kind::Object | Kind::Other => return false,
        };
        scalar(value, name).is_some_and(|scalar| same(&scalar, member))
    });
    let member = reached.next()?;
    if reached.next().is_some() { None } else { value.build(member) }
}

/// Whether a value is a scalar and the same as a member.
fn same<S: Subject>(value: &S, member: &Value) -> bool {
    match (value.kind(), member.kind()) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Bool, Kind::Bool) => value.is_true() == member.is_true(),
        (Kind::Int, Kind::Int) => match (value.integer(), member.integer()) {
            (Integer::Small(one), Integer::Small(other)) => one == other,
            (one, other) => one == other && value.digits(DIGITS) == member.digits(DIGITS),
        },
        (Kind::String, Kind::String) => value.text() == member.text(),
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => {
            let float = |digits: Option<String>| digits.and_then(|digits| digits.parse::<f64>().ok());
            let one = value.float().or_else(|| float(value.digits(DIGITS)));
            let other = member.float().or_else(|| float(member.digits(DIGITS)));
            one.is_some() && one == other
        }
        _ => false,
    }
}

/// The first declared type that a value which is of none of them can be coerced to.
pub(super) fn to_type<S: Rebuild>(value: &S, declared: &Value) -> Option<S> {
    let names: Vec<&str> = match declared {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let kind = value.kind();
    let is_of = |name: &str| Kinds::named(name).is_some_and(|kinds| kinds.has(kind));
    if names.iter().any(|name| is_of(name)) {
        return None;
    }
    // Already an integer to JSON Schema, so that it becomes none of the others.
    if kind == Kind::Float && names.contains(&"integer") && value.float().is_some_and(|float| float.fract() == 0.0) {
        return value.build(&scalar(value, "integer")?);
    }
    names.iter().find_map(|name| value.build(&scalar(value, name).or_else(|| container(value, name))?))
}

/// A scalar as another type, by the rules that every type has.
fn scalar<S: Subject>(value: &S, name: &str) -> Option<Value> {
    match (name, value.kind()) {
        ("integer", Kind::String) => integer_text(value.text()?.trim()).map(Value::Number),
        ("integer", Kind::Float) => {
            // Beyond, a float stands for many integers.
            let exact = |float: &f64| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
            let float = value.float().filter(exact)?;
            #[allow(clippy::cast_possible_truncation)]
            Some(Value::from(float as i64))
        }
        ("number", Kind::String) => number_text(value.text()?.trim()).map(Value::Number),
        ("boolean", Kind::String) => match value.text()? {
            text if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
            text if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
            _ => None,
        },
        ("boolean", Kind::Int) => match value.integer() {
            Integer::Small(0) => Some(Value::Bool(false)),
            Integer::Small(1) => Some(Value::Bool(true)),
            _ => None,
        },
        ("string", Kind::Bool) => Some(Value::from(if value.is_true() { "true" } else { "false" })),
        ("string", Kind::Int) => value.digits(DIGITS).map(Value::String),
        ("string", Kind::Float) => value.float().map(|float| Value::String(float_text(float))),
        ("null", Kind::String) => {
            let text = value.text()?;
            let is_null = text.is_empty() || text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none");
            is_null.then_some(Value::Null)
        }
        _ => None,
    }
}

/// JSON text of an array or an object.
fn container<S: Subject>(value: &S, name: &str) -> Option<Value> {
    let opening = match name {
        "array" => '[',
        "object" => '{',
        _ => return None,
    };
    if value.kind() != Kind::String {
        return None;
    }
    let text = value.text()?.trim();
    if !text.starts_with(opening) {
        return None;
    }
    // A key that comes twice does not say which value is meant.
    strict::parse(text).ok().and_then(|(value, has_duplicates)| if has_duplicates { None } else { Some(value) })
}

/// Decimal digits with or without a sign.
fn integer_text(text: &str) -> Option<Number> {
    let (minus, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = match digits.trim_start_matches('0') {
        "" => return Some(Number::from(0)),
        digits => digits,
    };
    if minus { format!("-{digits}").parse().ok() } else { digits.parse().ok() }
}

/// Decimal digits with a fraction, an exponent, both or neither; finite.
fn number_text(text: &str) -> Option<Number> {
    if let Some(integer) = integer_text(text) {
        return Some(integer);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > DIGITS || !digits(whole) || !fraction.is_none_or(digits) || !exponent.is_none_or(digits) {
        return None;
    }
    Number::from_f64(text.parse::<f64>().ok()?)
}
