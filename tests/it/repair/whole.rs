//! A call runs with all of its arguments or not at all, whatever stands around them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib::call::RepairKind::{self, *};
use toolcrib::call::repair::{ArgumentStream, read};

use super::kinds;
use super::property::any_object;

/// The arguments with which any tool would run; `None` if a tool that changes something would not.
fn accepted(text: &str) -> Option<Map<String, Value>> {
    let parsed = read(text).ok()?;
    (!parsed.is_truncated && !parsed.has_duplicate_keys).then_some(parsed.arguments)
}

#[test]
fn text_behind_the_object_that_may_be_more_of_it_is_refused() {
    for text in [
        r#"{"to": "ann"} "draft": true}"#,
        r#"{"to": "ann"} "draft": true"#,
        r#"{"to": "ann"} draft: true"#,
        "{\"to\": \"ann\"}\nbody: hello",
        r#"{"to": "ann"}, draft=true"#,
        r#"{"to": "ann"}, true"#,
        r#"{"to": "ann"} 7"#,
        r#"{"to": "ann"} "draft""#,
        r#"{"to": "ann"}""#,
        r#"{"to": "ann"} ["draft"]"#,
        r#"{"to": "ann"} {"draft": true}"#,
        "```json\n{\"to\": \"ann\"}\n\"draft\": true\n```",
        "```json\n{\"to\": \"ann\"}\n```\n```json\n{\"draft\": true}\n```",
        r#"Here: {"to": "ann"}: {"draft": true}"#,
        r#""to": "ann", "options": {"draft": true}}"#,
        "[{'to': 'ann'}, {'to': 'bob'}]",
        r#"{"a": {"b": 1}, "d": 4}}, "c": 2}"#,
        r#"{"a": {"b": {}}, "c": 2}}"#,
        r#"{"a": {"b": {}}, "c": 2}} Done."#,
        "```json\n{\"a\": {\"b\": {}}, \"c\": 2}}\n```",
        r#"{"a": {"b": 1}, "c": {}, }, "d": []}"#,
    ] {
        assert_eq!(accepted(text), None, "{text}");
    }
}

#[test]
fn an_empty_string_before_a_missing_bracket_does_not_open_a_quotation() {
    for text in [
        r#"{"a": [{"b": ""  , [" "]]}"#,
        "{\n  \"a\": [\n    {\n      \"b\": \"\"\n    ,\n    [\n      \" \"\n    ]\n  ]\n}",
    ] {
        assert_eq!(accepted(text), None, "{text}");
    }
}

#[test]
fn words_behind_the_object_are_left_out() {
    for text in [
        "{\"a\": 1}. Done!",
        "{\"a\": 1}\nThat's all.",
        "{\"a\": 1}\nNote: it is sent at once.",
        "call({\"a\": 1});",
        "```json\n{\"a\": 1}\n```\nThis sends it.",
    ] {
        assert_eq!(accepted(text), json!({"a": 1}).as_object().cloned(), "{text}");
    }
}

#[test]
fn a_slip_with_one_reading_is_repaired_and_listed() {
    let cases: Vec<(&str, Value, &[RepairKind])> = vec![
        (r#"{"to": "ann"}, "draft": true}"#, json!({"to": "ann", "draft": true}), &[Bracket]),
        ("{'to': 'ann'}, 'draft': True}", json!({"to": "ann", "draft": true}), &[Bracket, Quotes, Literal]),
        (r#"{"to": "ann"}, draft: true}"#, json!({"to": "ann", "draft": true}), &[Bracket, Quotes]),
        (r#"{"a": {"b": 1}}, "c": {"d": 2}}"#, json!({"a": {"b": 1}, "c": {"d": 2}}), &[Bracket]),
        (r#"{"a": {"b": 1}}}"#, json!({"a": {"b": 1}}), &[Bracket]),
        (r#"{"a": [1]}]"#, json!({"a": [1]}), &[Bracket]),
        (r#"{"a": 1}} Done."#, json!({"a": 1}), &[Bracket, Prose]),
        ("```json\n{\"a\": 1}}\n```", json!({"a": 1}), &[Bracket, Fence]),
        (r#"{"a": [1, 2}, "b": 3}"#, json!({"a": [1, 2], "b": 3}), &[Bracket]),
        (r#"{"a": [1, 2}}"#, json!({"a": [1, 2]}), &[Bracket]),
        (r#"{"a": {"b": 1], "c": 2}"#, json!({"a": {"b": 1}, "c": 2}), &[Bracket]),
        (r#"{"a": [{"b": 2]}}"#, json!({"a": [{"b": 2}]}), &[Bracket]),
        (r#"{"a": ["x", True}, "b": "y",}"#, json!({"a": ["x", true], "b": "y"}), &[Bracket, Literal, Comma]),
        (r#"{"a": "say "hi" now", "b": 1}"#, json!({"a": "say \"hi\" now", "b": 1}), &[Quotes]),
        (r#"{"a": "She said "hi", then left", "b": 1}"#, json!({"a": "She said \"hi\", then left", "b": 1}), &[Quotes]),
        (r#"{"a": ""hi" she said"}"#, json!({"a": "\"hi\" she said"}), &[Quotes]),
        (r#"{"a": "she said "hi""}"#, json!({"a": "she said \"hi\""}), &[Quotes]),
        (r#"{"a": "a 5" screen"}"#, json!({"a": "a 5\" screen"}), &[Quotes]),
        (
            "{\"code\": \"print(\"hi\")\nprint(\"x\")\"}",
            json!({"code": "print(\"hi\")\nprint(\"x\")"}),
            &[Quotes, Newline],
        ),
        (r#"{"a": ["one "two" three", "four"]}"#, json!({"a": ["one \"two\" three", "four"]}), &[Quotes]),
        (
            r#"{"to": "ann", "body": "the set {a, b"} is empty", "draft": true}"#,
            json!({"to": "ann", "body": "the set {a, b\"} is empty", "draft": true}),
            &[Quotes],
        ),
        (r#"{"a": "f("x"}"}"#, json!({"a": "f(\"x\"}"}), &[Quotes]),
        (r#"{"a": x y", "b": 1}"#, json!({"a": "x y", "b": 1}), &[Quotes]),
        (r#"{"a" ["x"], "b" {"c" 1}}"#, json!({"a": ["x"], "b": {"c": 1}}), &[Colon]),
        ("```json\n{\"a\": \"say \"hi\" now\"}\n```\nOk?", json!({"a": "say \"hi\" now"}), &[Fence, Prose, Quotes]),
    ];
    for (text, expected, listed) in cases {
        let parsed = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));

        assert_eq!(Value::Object(parsed.arguments.clone()), expected, "{text}");
        let (mut found, mut listed) = (kinds(&parsed), listed.to_vec());
        found.sort_unstable();
        listed.sort_unstable();
        assert_eq!(found, listed, "{text}: {:?}", parsed.repairs);
        assert!(!parsed.is_truncated && !parsed.has_duplicate_keys, "{text}");
    }
}

#[test]
fn a_slip_with_two_readings_is_refused() {
    for text in [
        r#"{"a": "b, "c": "d"}"#,
        r#"{"a": ""hello"}"#,
        r#"{"a": "hello""}"#,
        r#"{"a": ""hello""}"#,
        r#"{"a": "say "hi", "b": "x"}"#,
        r#"{"a": "{"b": 1}"}"#,
        r#"{"a": "x"}"}"#,
        r#"{"a": ["x", "say "y", "z" w"]}"#,
        r#"{"a": [{"b": 1], "c": 2}"#,
        r#"{"a": {"b": [1}, "c": 2}"#,
        r#"{"cc": ["bob": "x@y"]}"#,
        r#"{"a": 05e}"#,
        r#"{"a": 00.}"#,
        r#"{"a": ["x" `y z`, 1]}"#,
        r#"{"a": [" ",fals]e,""]}"#,
        r#"{"a": ".",c"d", "b": true}"#,
        r#"{"a": [it's", 1]}"#,
        r#"{"a": ['in it's", 1]}"#,
        r#"{"a": [10"00, 1]}"#,
        r#"{"a": [""[1] x, y"]}"#,
        r#"{"a": [-2 .5]}"#,
        r#"{"a": [10 000]}"#,
        r#"{"a": [10 500]}"#,
        r#"{"a": [true hi", 1]}"#,
        r#"{"a": {"c:"x"}}"#,
        r#"{"a": {"d: "1", "e": 2}}"#,
        r#"{"a": x\ny"}"#,
        r#"{"a": [x, y"]}"#,
        r#"{"a": x, b: y"}"#,
        r#"{"a": -}"#,
        r#"{"a": 1e}"#,
        r#"{"a": 1e+, "b": 2}"#,
        r#"{"a": \"x\ny"}"#,
    ] {
        assert_eq!(accepted(text), None, "{text}: {:?}", read(text));
    }
}

#[test]
fn a_stream_is_not_complete_with_text_behind_the_object() {
    let mut stream = ArgumentStream::default();
    stream.feed("{\"to\": \"ann\"}\n");
    let before = stream.is_complete();
    stream.feed(" \"draft\": true}");

    assert!(before && !stream.is_complete());
    stream.finish().expect_err("a part of the arguments");
}

/// The places of the closing brackets of a JSON text.
fn closing_brackets(text: &str) -> Vec<usize> {
    let brackets = text.match_indices(['}', ']']).map(|(at, _)| at);
    brackets.filter(|at| !is_in_string(text, *at)).collect()
}

/// True if a place of a JSON text is in a string.
fn is_in_string(text: &str, place: usize) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes().take(place) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    in_string
}

/// True if nothing of one value is missing in another.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|other| holds(other, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            let mut rest = whole.iter();
            part.iter().all(|part| rest.any(|item| holds(item, part)))
        }
        (Value::String(whole), Value::String(part)) => {
            let mut rest = whole.chars();
            part.chars().all(|letter| rest.any(|other| other == letter))
        }
        // A number or a word may have become longer.
        (whole, part) => whole.to_string().len() >= part.to_string().len(),
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_slip_of_a_closing_bracket_loses_nothing(
        object in any_object(), place in any::<prop::sample::Index>(), slip in 0..5usize, is_spaced in any::<bool>(),
    ) {
        let value = Value::Object(object);
        let text = if is_spaced { format!("{value:#}") } else { value.to_string() };
        let places = closing_brackets(&text);
        let at = places[place.index(places.len())];
        let other = if text.as_bytes()[at] == b'}' { "]" } else { "}" };
        let (before, after) = (&text[..at], &text[at + 1..]);
        let slipped = match slip {
            0 => format!("{before}{after}"),
            1 => format!("{before}{other}{after}"),
            2 => format!("{before}{}{}", &text[at..=at], &text[at..]),
            3 => format!("{before}{other}{}", &text[at..]),
            _ => format!("{}{other}{after}", &text[..=at]),
        };

        if let Some(arguments) = accepted(&slipped) {
            prop_assert_eq!(&Value::Object(arguments), &value, "{}", slipped);
        }
    }

    #[test]
    fn a_bracket_too_many_at_the_end_is_left_out_or_not_clear(object in any_object()) {
        let value = Value::Object(object);
        let is_flat = value.as_object().unwrap().values().all(|entry| !entry.is_object());

        let arguments = accepted(&format!("{value}}}"));

        // In a nested object an earlier bracket may be the one.
        prop_assert!(arguments.as_ref() == value.as_object() || arguments.is_none() && !is_flat, "{}", value);
    }

    #[test]
    fn a_bracket_too_many_anywhere_loses_nothing(object in any_object(), place in 0.0..1.0f64, is_brace in any::<bool>()) {
        let value = Value::Object(object);
        let text = value.to_string();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let at = boundary(&text, (place * text.len() as f64) as usize);
        let slipped = format!("{}{}{}", &text[..at], if is_brace { '}' } else { ']' }, &text[at..]);

        // In a string it is text.
        if !is_in_string(&text, at) && let Some(arguments) = accepted(&slipped) {
            prop_assert_eq!(&Value::Object(arguments), &value, "{}", slipped);
        }
    }

    #[test]
    fn a_part_that_comes_twice_loses_nothing(object in any_object(), from in 0.0..1.0f64, size in 1usize..30) {
        let value = Value::Object(object);
        let text = value.to_string();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let start = boundary(&text, (from * text.len() as f64) as usize);
        let end = boundary(&text, (start + size).min(text.len()));
        let end = end.max(start);
        let slipped = format!("{}{}", &text[..end], &text[start..]);

        if serde_json::from_str::<Value>(&slipped).is_err() && let Some(arguments) = accepted(&slipped) {
            prop_assert!(holds(&Value::Object(arguments.clone()), &value), "{} was read as {:?}", slipped, arguments);
        }
    }

    #[test]
    fn a_text_without_its_start_is_never_taken_for_whole(object in any_object(), place in 0.0..1.0f64) {
        let value = Value::Object(object);
        let text = value.to_string();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let start = boundary(&text, 1 + (place * (text.len() - 2) as f64) as usize);

        // A whole object inside is not known to be a part.
        if !text[start..].starts_with('{') && let Some(arguments) = accepted(&text[start..]) {
            prop_assert_eq!(&Value::Object(arguments), &value, "{}", &text[start..]);
        }
    }

    #[test]
    fn two_objects_are_never_one(one in any_object(), other in any_object(), between in "[ ,;\n]{0,3}") {
        prop_assert_eq!(accepted(&format!("{}{between}{}", Value::Object(one), Value::Object(other))), None);
    }

    #[test]
    fn a_quote_without_a_backslash_is_text_or_refused(
        before in "[a-z ,.{}]{0,12}", word in "[a-z ,}]{1,8}", after in "[a-z ,.{}]{0,12}",
    ) {
        let text = format!(r#"{{"a": "{before}"{word}"{after}", "b": true}}"#);

        if let Some(arguments) = accepted(&text) {
            let expected = json!({"a": format!("{before}\"{word}\"{after}"), "b": true});
            prop_assert_eq!(&Value::Object(arguments), &expected, "{}", text);
        }
    }
}
