//! Arguments that JSON cannot hold, which no dialect can be brought back from: the model is told where and why.

use crate::schema::check::{At, Expected, Found, Integer, Kind, Problem, Subject, ValuePath};

/// How deep arguments may be nested.
const DEEPEST: usize = 128;

/// The most digits of an integer; Python itself reads no more.
const DIGITS: usize = 4300;

/// The first part of the arguments that JSON cannot hold: text with a lone surrogate, a number that is none, a value that is
/// nested too deep. For arguments that could not be converted; if none of that is the reason, the arguments as a whole are.
#[must_use]
pub fn unreadable<S: Subject>(arguments: &S) -> Problem {
    in_value(arguments, &At::Root, None, 0).unwrap_or_else(|| Problem {
        path: ValuePath::default(),
        expected: "values that JSON can hold".into(),
        found: Found::Fixed("another value"),
    })
}

/// The problem in a value; `parameter` is the first key on the way to it.
fn in_value<S: Subject>(value: &S, at: &At<'_>, parameter: Option<&str>, depth: usize) -> Option<Problem> {
    let problem = |expected: Expected| Some(Problem { path: at.into(), expected, found: Found::of(value) });
    match value.kind() {
        Kind::String if value.text().is_none() => problem("text without lone surrogates".into()),
        Kind::Int if !matches!(value.integer(), Integer::Small(_)) && value.digits(DIGITS).is_none() => {
            problem(format!("an integer of at most {DIGITS} digits").into())
        }
        Kind::Other => problem("a value that JSON can hold".into()),
        Kind::Array if depth < DEEPEST => {
            let (mut index, mut first) = (0, None);
            value.every_item(|item| {
                first = in_value(item, &at.index(index), parameter, depth + 1);
                index += 1;
                first.is_none()
            });
            first
        }
        Kind::Object if depth < DEEPEST => in_entries(value, at, parameter, depth + 1),
        Kind::Array | Kind::Object => Some(Problem {
            // The whole path would be of no use to the model.
            path: parameter.map_or_else(ValuePath::default, |name| At::Root.key(name).into()),
            expected: format!("at most {DEEPEST} levels of nesting").into(),
            found: Found::Fixed("more"),
        }),
        _ => None,
    }
}

fn in_entries<S: Subject>(value: &S, at: &At<'_>, parameter: Option<&str>, depth: usize) -> Option<Problem> {
    let mut first = None;
    value.every_entry(|key, entry| {
        first = match key {
            Some(key) => in_value(entry, &at.key(key), parameter.or(Some(key)), depth),
            None => Some(Problem {
                path: at.into(),
                expected: "names that are plain strings".into(),
                found: Found::Fixed("another name"),
            }),
        };
        first.is_none()
    });
    first
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_place_is_named_where_json_ends() {
        let large: Value = serde_json::from_str(&format!("{{\"a\": [0, {}]}}", "9".repeat(DIGITS + 1))).unwrap();
        let infinite: Value = serde_json::from_str("{\"a\": {\"b c\": 1e999}}").unwrap();
        let deep = (0..DEEPEST).fold(json!(1), |inner, _| json!([inner]));

        assert_eq!(unreadable(&large).path, "a[1]");
        assert_eq!(unreadable(&infinite).path, "a[\"b c\"]");
        assert_eq!(unreadable(&json!({"x": 1, "deep": [deep]})).path, "deep");
        assert!(unreadable(&json!({"x": 1})).path.is_root());
    }
}
