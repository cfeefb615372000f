//! Arguments that arrive piece by piece.

use serde_json::{Value, json};
use toolcrib::call::repair::{ArgumentStream, MAX_BYTES, read};

fn partial(text: &str) -> Value {
    let mut stream = ArgumentStream::default();
    stream.feed(text);
    Value::Object(stream.partial())
}

#[test]
fn what_is_known_so_far_is_shown() {
    let cases = [
        ("", json!({})),
        ("{", json!({})),
        ("{\"a", json!({})),
        ("{\"a\": ", json!({})),
        ("{\"a\": \"Be", json!({"a": "Be"})),
        ("{\"a\": \"B\\", json!({"a": "B"})),
        ("{\"a\": \"\\u00", json!({"a": ""})),
        ("{\"a\": \"\\ud83d", json!({"a": ""})),
        ("{\"a\": \"\\ud83d\\ude00", json!({"a": "😀"})),
        ("{\"a\": 12", json!({})),
        ("{\"a\": 12,", json!({"a": 12})),
        ("{\"a\": [1, {\"b\": tr", json!({"a": [1, {}]})),
        ("{\"a\": [1, {\"b\": true}], \"c", json!({"a": [1, {"b": true}]})),
        ("{\"a\": 1}", json!({"a": 1})),
        ("```json\n{\"a\": \"x", json!({"a": "x"})),
    ];
    for (text, expected) in cases {
        assert_eq!(partial(text), expected, "{text}");
    }
}

#[test]
fn every_cutting_gives_the_same() {
    let text = "{\"name\": \"Zoë 😀 \\ud83d\\ude00 \\\"q\\\"\", \"n\": [-1.5e3, null, {\"x\": {}}], \"t\": true}";
    let whole = read(text).unwrap();

    for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let mut stream = ArgumentStream::default();
        stream.feed(&text[..cut]);
        let before = stream.partial();
        stream.feed(&text[cut..]);

        assert_eq!(stream.finish().unwrap(), whole);
        assert_eq!(stream.partial(), whole.arguments);
        assert!(before.keys().all(|key| whole.arguments.contains_key(key)));
    }
    let mut stream = ArgumentStream::default();
    text.chars().for_each(|letter| stream.feed(letter.encode_utf8(&mut [0; 4])));
    assert_eq!(stream.finish().unwrap(), whole);
    assert!(stream.is_complete());
}

#[test]
fn what_is_no_json_is_mended_in_the_end() {
    let mut stream = ArgumentStream::default();
    stream.feed("{'a': 'b',");
    let before = stream.partial();
    stream.feed(" 'c': True}");

    assert_eq!(Value::Object(before), json!({"a": "b"}));
    assert_eq!(Value::Object(stream.finish().unwrap().arguments), json!({"a": "b", "c": true}));
}

#[test]
fn more_than_the_most_is_counted_and_not_kept() {
    let mut stream = ArgumentStream::default();
    for _ in 0..40 {
        stream.feed(&"é".repeat(MAX_BYTES / 8));
    }

    assert!(stream.text().len() <= MAX_BYTES);
    assert!(stream.finish().unwrap_err().what.contains("bytes"));
}
