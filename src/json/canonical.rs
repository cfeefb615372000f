//! The canonical text of a JSON value: what a signature covers, what a log hashes, and what conditions are matched against.
//!
//! Two values have the same text exactly when no tool could tell them apart:
//!
//! - the keys of an object are sorted by code point, whatever order they came in; there is no whitespace, and nothing is folded or
//!   normalized, so look-alike letters stay different;
//! - an integer (a number without fraction and exponent) keeps all of its digits, and is another value than the float of
//!   its size: `1` is not `1.0`, because a tool may treat them differently;
//! - any other number is written by its exact decimal value, never rounded: `1.0`, `1.00` and `1e0` are `1.0`, and
//!   `-0.0` is not `0.0`. This is why RFC 8785 is not used: it rounds numbers to `f64`;
//! - strings escape quotes, backslashes and control characters as `serde_json` does, and nothing else.
//!
//! The writer keeps its own stack, so the depth of a value is not limited.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::number::write_canonical;
use super::text::push_string;

/// A container that is being written, with the parts that are still to come.
enum OpenContainer<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(std::vec::IntoIter<(&'a String, &'a Value)>),
}

/// Writes the canonical text of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    let mut next = Some(value);
    while let Some(value) = next {
        open.extend(begin(&mut text, value));
        next = advance(&mut text, &mut open);
    }
    text
}

/// Hashes the canonical text of a value with SHA-256.
#[must_use]
pub fn hash(value: &Value) -> [u8; 32] {
    Sha256::digest(canonical(value).as_bytes()).into()
}

/// Writes a scalar, or the opening of a container.
fn begin<'a>(text: &mut String, value: &'a Value) -> Option<OpenContainer<'a>> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_canonical(text, number.as_str()),
        Value::String(string) => push_string(text, string),
        Value::Array(items) => {
            text.push('[');
            return Some(OpenContainer::Array(items.iter()));
        }
        Value::Object(entries) => {
            text.push('{');
            return Some(OpenContainer::Object(sorted(entries).into_iter()));
        }
    }
    None
}

/// Moves on to the next part, closing the containers that have none left.
fn advance<'a>(text: &mut String, open: &mut Vec<OpenContainer<'a>>) -> Option<&'a Value> {
    loop {
        // A string ends in a quote, so these end a text only where nothing was written after them.
        let is_first = text.ends_with(['[', '{']);
        let (key, value, end) = match open.last_mut()? {
            OpenContainer::Array(items) => (None, items.next(), ']'),
            OpenContainer::Object(entries) => match entries.next() {
                Some((key, value)) => (Some(key), Some(value), '}'),
                None => (None, None, '}'),
            },
        };
        let Some(value) = value else {
            text.push(end);
            open.pop();
            continue;
        };
        if !is_first {
            text.push(',');
        }
        if let Some(key) = key {
            push_string(text, key);
            text.push(':');
        }
        return Some(value);
    }
}

fn sorted(entries: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    // The order of UTF-8 bytes is that of code points.
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn text_of(json: &str) -> String {
        canonical(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn keys_stand_in_the_order_of_their_code_points() {
        let text = text_of(r#"{"b": 1, "a": {"😀": 1, "ﬀ": 2, "": 3}, "B": [{"y": null, "x": true}]}"#);

        assert_eq!(text, r#"{"B":[{"x":true,"y":null}],"a":{"":3,"ﬀ":2,"😀":1},"b":1}"#);
    }

    #[test]
    fn a_number_has_one_text() {
        for (same, expected) in [
            (&["1.0", "1.00", "1e0", "10e-1", "0.1e1", "0.01E+2"][..], "1.0"),
            (&["0.0", "0e9", "0.000", "0e-400"], "0.0"),
            (&["-0.0", "-0e1"], "-0.0"),
            (&["150.0", "1.5e2", "15e1"], "150.0"),
            (&["0.015", "1.5e-2"], "0.015"),
            (&["1e30", "1.0e+30"], "1.0e30"),
            (&["1e-30", "0.1e-29"], "1.0e-30"),
            (&["1.5e-20", "0.15e-19"], "1.5e-20"),
            (&["1"], "1"),
            (&["-0"], "-0"),
        ] {
            for number in same {
                assert_eq!(text_of(number), expected, "{number}");
            }
        }
    }

    #[test]
    fn numbers_that_a_tool_could_tell_apart_differ() {
        let numbers = [
            "1",
            "1.0",
            "1.0000000000000000000000000000001",
            "1e400",
            "1e401",
            "-0",
            "0",
            "0.0",
            "-0.0",
            "9007199254740993",
            "9007199254740993.0",
            "9007199254740992.0",
            "1e99999999999999999999999",
            "1e99999999999999999999998",
        ];

        let mut texts = numbers.map(text_of).to_vec();
        texts.sort();
        texts.dedup();

        assert_eq!(texts.len(), numbers.len());
    }

    #[test]
    fn a_string_is_escaped_as_serde_json_does() {
        let all: String = ('\0'..='\u{2ff}').chain(['\u{2028}', '😀', '"', '\\']).collect();

        assert_eq!(canonical(&json!(all)), serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn a_value_may_be_deep() {
        let mut value = Value::Null;
        for _ in 0..2_000 {
            value = Value::Array(vec![value]);
        }

        assert_eq!(canonical(&value).len(), 4_004);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn the_text_is_json_of_the_same_text(value in any_value()) {
            let text = canonical(&value);

            prop_assert_eq!(text_of(&text), text);
        }

        #[test]
        fn a_float_is_read_back_as_it_was(float in any::<f64>().prop_filter("finite", |float| float.is_finite())) {
            let text = canonical(&json!(float));

            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), float.to_bits());
            prop_assert_eq!(text_of(&format!("{float:e}")), text_of(&format!("{float:?}")));
        }
    }
}
