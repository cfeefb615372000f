//! Arguments that models write almost right.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod delta;
mod fuzz;
mod names;
mod property;
mod whole;

use serde_json::{Value, json};
use toolcrib::call::RepairKind::{self, *};
use toolcrib::call::repair::{MAX_BYTES, ParsedArguments, read, read_strictly};

fn kinds(reading: &ParsedArguments) -> Vec<RepairKind> {
    reading.repairs.iter().map(|repair| repair.what).collect()
}

#[test]
fn what_models_write_is_mended_and_listed() {
    let cases: Vec<(&str, Value, &[RepairKind])> = vec![
        ("{\"a\": 1,}", json!({"a": 1}), &[Comma]),
        ("{\"a\": [1, 2,],}", json!({"a": [1, 2]}), &[Comma]),
        ("{'a': 'b'}", json!({"a": "b"}), &[Quotes]),
        (
            "{\"a\": True, \"b\": None, \"c\": False}",
            json!({"a": true, "b": null, "c": false}),
            &[Literal, Literal, Literal],
        ),
        ("{\"a\": 1 // one\n, /* two */ \"b\": 2}", json!({"a": 1, "b": 2}), &[Comment]),
        ("{\"a\": 1, # one\n \"b\": 2}", json!({"a": 1, "b": 2}), &[Comment]),
        ("{\"a\": \"x\ny\tz\"}", json!({"a": "x\ny\tz"}), &[Newline]),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1}), &[Fence]),
        ("```\n{\"a\": 1}\n```\n", json!({"a": 1}), &[Fence]),
        ("Here you go: {\"a\": 1}. Done!", json!({"a": 1}), &[Prose]),
        ("Sure:\n```json\n{\"a\": 1,}\n```\nOk?", json!({"a": 1}), &[Fence, Prose, Comma]),
        ("\"{\\\"a\\\": 1}\"", json!({"a": 1}), &[Encoding]),
        ("\"\\\"{\\\\\\\"a\\\\\\\": 1}\\\"\"", json!({"a": 1}), &[Encoding, Encoding]),
        ("{\\\"a\\\": \\\"b\\\"}", json!({"a": "b"}), &[Escape]),
        ("{\"a\": NaN}", json!({"a": null}), &[NotANumber]),
        ("{\"a\": -Infinity}", json!({"a": null}), &[NotANumber]),
        ("{\"a\": \"C:\\dir\\new\"}", json!({"a": "C:\\dir\\new"}), &[Escape]),
        ("{\"a\": \"\\d+\"}", json!({"a": "\\d+"}), &[Escape]),
        ("{a: 1}", json!({"a": 1}), &[Quotes]),
        ("{\"a\" 1}", json!({"a": 1}), &[Colon]),
        ("{\"a\" = 1}", json!({"a": 1}), &[Colon]),
        ("{\"a\": 1 \"b\": 2}", json!({"a": 1, "b": 2}), &[Comma]),
        ("{\"a\": 1}}", json!({"a": 1}), &[Bracket]),
        ("{\u{201c}a\u{201d}: \u{201c}b\u{201d}}", json!({"a": "b"}), &[Quotes]),
        ("{\"a\": \"say \"hi\" now\"}", json!({"a": "say \"hi\" now"}), &[Quotes]),
        ("{'a': 'it\\'s', \"b\": 'say \"x\"'}", json!({"a": "it's", "b": "say \"x\""}), &[Quotes, Quotes]),
        ("{\"a\": \"\"\"x\n\"y\"\n\"\"\"}", json!({"a": "x\n\"y\"\n"}), &[Quotes]),
        ("{\"a\": \"x\",,\"b\": 2}", json!({"a": "x", "b": 2}), &[Comma]),
        ("{'a': 1, , , 'b': 2}", json!({"a": 1, "b": 2}), &[Comma, Quotes]),
        ("\u{feff}{\"a\": 1}", json!({"a": 1}), &[Syntax]),
        ("{\"a\": .5}", json!({"a": 0.5}), &[Number]),
    ];
    for (text, expected, listed) in cases {
        let reading = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));

        assert_eq!(Value::Object(reading.arguments.clone()), expected, "{text}");
        let mut found = kinds(&reading);
        let mut listed = listed.to_vec();
        found.sort_unstable();
        listed.sort_unstable();
        assert_eq!(found, listed, "{text}: {:?}", reading.repairs);
        assert!(!reading.is_truncated && !reading.has_duplicate_keys, "{text}");
    }
}

#[test]
fn what_is_cut_off_is_known_to_be() {
    let texts = [
        "{",
        "{\"a\": 1",
        "{\"a\": \"b",
        "{\"a\": [1, 2",
        "{\"a\": {\"b\": \"c\"",
        "{\"a\": tru",
        "{\"a\": -",
        "{\"a\":",
        "{\"a\": 1,",
        "{\"a\": 1, \"b",
        "{\"a\": 1, \"b\"",
        "{\"a\": }",
        "{'a': 'b",
        "```json\n{\"a\": \"b",
        "{\"a\": \"b\\",
        "{\"a\": \"b\", \"c\": [{\"d\": 1}",
        "{\"a\": \"x\ny",
        "\"{\\\"a\\\": 1",
        "{\"a\": [1, 2}",
        "{\"a\": \"b, \"c\": 1}",
        "{\"a\": \"b}",
        "{\"a\": \"b, \"c\": \"d\"}",
    ];
    for text in texts {
        match read(text) {
            Ok(reading) => assert!(reading.is_truncated, "{text}: {reading:?}"),
            Err(error) => assert!(error.what.contains("JSON"), "{text}: {error}"),
        }
    }
}

#[test]
fn what_cannot_be_read_says_why_where_and_how() {
    for text in ["nonsense", "[1]", "7", "\"text\"", "null", "true", "\0", "{\"a\": 1} {\"a\": 2}", "]", "```"] {
        let error = read(text).expect_err(text);

        assert!(!error.how.is_empty() && error.how.contains("JSON"), "{text}: {error}");
    }
    let error = read_strictly("{\"ä\": 1,\n \"ö\": x}").expect_err("no JSON");
    assert_eq!(error.at.map(|place| (place.line, place.column)), Some((2, 7)));
}

#[test]
fn a_key_that_comes_twice_is_told_of() {
    for text in ["{\"a\": 1, \"a\": 2}", "{'a': {'b': 1, 'b': 1}}", "```\n{\"x\": [{\"a\": 1, \"a\": 2}]}\n```"] {
        assert!(read(text).expect(text).has_duplicate_keys, "{text}");
    }
}

#[test]
fn nothing_is_no_arguments() {
    for text in ["", " \n\t ", "\u{feff}", "{}", " { } "] {
        assert_eq!(read(text).expect("nothing"), ParsedArguments::default());
    }
}

#[test]
fn limits_are_held() {
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_BYTES));
    assert!(read(&long).expect_err("too long").what.contains("bytes"));
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "{'a':".repeat(100_000)] {
        read(&text).expect_err("too deep");
    }
    let deep = format!("{{'a': {}{}}}", "[".repeat(100), "]".repeat(100));
    assert!(read(&deep).is_ok());
}

#[test]
fn the_same_mistake_at_many_places_is_one_entry() {
    let reading = read("{'a': ['b', 'c', 'd']}").expect("it can be mended");

    let [repair] = &reading.repairs[..] else { panic!("{:?}", reading.repairs) };
    assert_eq!(repair.text(), "other quotes were exchanged for those of JSON (4 times)");
}

#[test]
fn a_repair_tells_where_it_is() {
    let reading = read("{\"filter\": {\"tags\": [1, True]}}").expect("it can be mended");

    assert_eq!(reading.repairs[0].at, "filter.tags[1]");
    assert_eq!(reading.repairs[0].text(), "True was read as true");
}

#[test]
fn an_ellipsis_stands_for_something_that_is_missing() {
    for text in ["{\"a\": 1, ...}", "{\"a\": [1, 2, ...]}", "{..., \"a\": 1}"] {
        let reading = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));

        assert!(reading.is_truncated, "{text}: {reading:?}");
    }
    assert!(!read("{\"a\": 'wait ...'}").unwrap().is_truncated);
}
