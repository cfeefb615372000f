//! For any object: mangled in a way that is listed, it is mended to what it was; and no text makes anything panic.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};
use toolcrib::call::repair::{ArgumentStream, read, read_strictly};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        any_text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(any_key(), inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Text as arguments have it: words, code, line breaks, quotes, any Unicode.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", "[ -~\n\t]{0,20}", "\\PC{0,8}", Just("if a < b:\n    print(\"{x}\")\n".to_owned())]
}

fn any_key() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-zA-Z0-9_]{0,10}"
}

pub(super) fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(any_key(), any_value(), 1..6).prop_map(|entries| entries.into_iter().collect())
}

#[derive(Debug, Clone, Copy)]
enum Mangling {
    TrailingCommas,
    SingleQuotes,
    PythonLiterals,
    Comments,
    RawNewlines,
    Fence,
    Prose,
    Encoded,
    BareKeys,
}

const MANGLINGS: [Mangling; 9] = [
    Mangling::TrailingCommas,
    Mangling::SingleQuotes,
    Mangling::PythonLiterals,
    Mangling::Comments,
    Mangling::RawNewlines,
    Mangling::Fence,
    Mangling::Prose,
    Mangling::Encoded,
    Mangling::BareKeys,
];

fn mangled(object: &Map<String, Value>, mangling: Mangling) -> String {
    let mut text = String::new();
    write(&mut text, &Value::Object(object.clone()), mangling);
    match mangling {
        Mangling::Fence => format!("```json\n{text}\n```"),
        Mangling::Prose => format!("I will call it with these arguments:\n{text}\nThat should do."),
        Mangling::Encoded => serde_json::to_string(&text).unwrap(),
        _ => text,
    }
}

fn write(out: &mut String, value: &Value, mangling: Mangling) {
    let comma = if matches!(mangling, Mangling::TrailingCommas) { "," } else { "" };
    let comment = if matches!(mangling, Mangling::Comments) { " // it's a \"note\"\n" } else { "" };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(out, item, mangling);
                out.push_str(comment);
            }
            out.push_str(if items.is_empty() { "" } else { comma });
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                match mangling {
                    Mangling::BareKeys => out.push_str(key),
                    _ => string(out, key, mangling),
                }
                out.push_str(": ");
                write(out, entry, mangling);
                out.push_str(comment);
            }
            out.push_str(if entries.is_empty() { "" } else { comma });
            out.push('}');
        }
        Value::String(text) => string(out, text, mangling),
        Value::Null if matches!(mangling, Mangling::PythonLiterals) => out.push_str("None"),
        Value::Bool(true) if matches!(mangling, Mangling::PythonLiterals) => out.push_str("True"),
        Value::Bool(false) if matches!(mangling, Mangling::PythonLiterals) => out.push_str("False"),
        other => write!(out, "{other}").unwrap(),
    }
}

fn string(out: &mut String, text: &str, mangling: Mangling) {
    let written = serde_json::to_string(text).unwrap();
    match mangling {
        Mangling::SingleQuotes => {
            let inside = written[1..written.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
            write!(out, "'{inside}'").unwrap();
        }
        Mangling::RawNewlines => {
            // Only line breaks that are escapes: a backslash before an `n` may be the second of two.
            let mut rest = written.as_str();
            while let Some(at) = rest.find('\\') {
                let (before, escape) = rest.split_at(at);
                out.push_str(before);
                match &escape[..2] {
                    "\\n" => out.push('\n'),
                    "\\t" => out.push('\t'),
                    other => out.push_str(other),
                }
                rest = &escape[2..];
            }
            out.push_str(rest);
        }
        _ => out.push_str(&written),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mangled_and_mended_is_what_it_was(object in any_object(), index in 0..MANGLINGS.len()) {
        let text = mangled(&object, MANGLINGS[index]);

        let reading = read(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;

        prop_assert_eq!(Value::Object(reading.arguments), Value::Object(object), "{}", text);
        prop_assert!(!reading.is_truncated, "{}", text);
        prop_assert_eq!(reading.repairs.is_empty(), read_strictly(&text).is_ok(), "{}", text);
    }

    #[test]
    fn strict_json_is_never_changed(object in any_object()) {
        let text = Value::Object(object.clone()).to_string();

        let reading = read(&text).unwrap();

        prop_assert_eq!(reading.arguments, object);
        prop_assert!(reading.repairs.is_empty());
    }

    #[test]
    fn a_text_that_is_cut_off_is_never_taken_for_whole(object in any_object(), place in 0.0..1.0f64) {
        let text = Value::Object(object).to_string();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let mut end = 1 + (place * (text.len() - 2) as f64) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }

        if let Ok(reading) = read(&text[..end]) {
            prop_assert!(reading.is_truncated, "{}", &text[..end]);
        }
    }

    #[test]
    fn the_partial_object_is_a_part_of_the_whole(object in any_object(), size in 1usize..20) {
        let text = Value::Object(object.clone()).to_string();
        let mut stream = ArgumentStream::default();
        let letters: Vec<char> = text.chars().collect();

        for piece in letters.chunks(size) {
            stream.feed(&piece.iter().collect::<String>());
            prop_assert!(stream.partial().keys().all(|key| object.contains_key(key)));
        }

        prop_assert_eq!(stream.partial(), object.clone());
        prop_assert_eq!(stream.finish().unwrap().arguments, object);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\"':,\\\\/*#`nutfN0-9a \n\u{201c}é-]{0,60}") {
        let mut stream = ArgumentStream::default();
        stream.feed(&text);
        let _ = (read(&text), stream.partial(), stream.finish());
    }
}
