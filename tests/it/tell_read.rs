//! What models are told to write is read as it is meant: every example that is shown, in every format.

#![allow(clippy::expect_used)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib::schema::{Document, Node};
use toolcrib::text::instructions::{ToolDescription, instructions, write_call};
use toolcrib::text::{TextFormat, parse};

/// The example of a tool, as its instructions show it.
fn example(format: TextFormat, name: &str, document: &Document) -> String {
    let text = instructions(format, &[ToolDescription { name, description: "", parameters: document }]);
    let (_, after) = text.split_once("\nExample:\n").expect("an example");
    after.split_once("\n\n## Guidelines").expect("guidelines").0.to_owned()
}

/// The only call of a text by its name and arguments.
fn read(text: &str, format: impl Into<Option<TextFormat>>, name: &str, document: &Arc<Document>) -> Value {
    let find = |wanted: &str| (wanted == name).then(|| Arc::clone(document));
    let calls = parse(text, format, Some(&find));
    assert_eq!(calls.len(), 1, "{text}: {calls:?}");
    assert_eq!(calls[0].error, None, "{text}");
    json!({"name": calls[0].name, "arguments": calls[0].arguments})
}

fn order() -> Value {
    json!({
        "type": "object",
        "required": ["items", "address"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "string", "default": "02134"}}},
            "speed": {"type": "string", "enum": ["slow", "fast"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "prices": {"type": "object", "additionalProperties": {"type": "number"}},
            "gift": {"type": "boolean", "default": false},
            "note": {"type": "string", "default": ""},
            "code": {"type": "string", "default": "if a < b && c: return [x[0]]"},
            "version": {"type": "string", "default": "1.10"},
            "retries": {"type": "integer", "default": 0},
            "weight": {"type": "number"},
            "agent": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "max-results": {"type": "integer"},
            "two words": {"type": "string"},
        },
        "$defs": {"Item": {"type": "object", "properties": {"part": {"type": "string"}, "pieces": {"type": "integer"}}}},
    })
}

fn expected() -> Value {
    json!({
        "items": [{"part": "your_part_here", "pieces": 123}],
        "address": {"street": "your_street_here", "zip": "02134"},
        "speed": "slow",
        "tags": ["value1", "value2"],
        "sizes": [123],
        "grid": [[1.5]],
        "prices": {"key": 1.5},
        "gift": false,
        "note": "",
        "code": "if a < b && c: return [x[0]]",
        "version": "1.10",
        "retries": 0,
        "weight": 1.5,
        "agent": "your_agent_here",
        "max-results": 123,
        "two words": "your_two_words_here",
    })
}

#[test]
fn every_example_is_read_as_the_call_that_it_shows() {
    let document = Arc::new(Document::new(&Node::from(order())));
    for format in TextFormat::ALL {
        let text = example(format, "send_order", &document);

        for format in [Some(format), TextFormat::AUTO] {
            let call = read(&text, format, "send_order", &document);

            assert_eq!(call, json!({"name": "send_order", "arguments": expected()}), "{format:?}: {text}");
        }
    }
}

#[test]
fn a_call_without_arguments_is_read_as_one() {
    let document = Arc::new(Document::new(&Node::from(json!({"type": "object", "properties": {}}))));
    for format in TextFormat::ALL {
        let text = example(format, "ping", &document);

        assert_eq!(read(&text, format, "ping", &document), json!({"name": "ping", "arguments": {}}), "{text}");
    }
}

/// Texts as they come in arguments: code, markup, what ends sections and fences.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "[a-z 0-9.,:;{}\\[\\]\"'\\\\]{0,8}",
        Just("]]>".to_owned()),
        Just("</tool_call>".to_owned()),
        Just("</parameter>".to_owned()),
        Just("<a & b>".to_owned()),
        Just("```".to_owned()),
        Just("line\nAction: x\nAction Input: {}".to_owned()),
        Just("é☃".to_owned()),
    ];
    prop::collection::vec(pieces, 0..5).prop_map(|pieces| pieces.concat().trim().to_owned())
}

proptest! {
    #[test]
    fn any_text_that_is_written_in_a_call_is_read_again(text in text(), items in prop::collection::vec(text(), 1..4)) {
        let schema = json!({"type": "object", "properties": {
            "t": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"}}});
        let document = Arc::new(Document::new(&Node::from(schema)));
        let arguments = json!({"t": text, "l": items, "o": {"k": text}});
        let entries: Map<String, Value> = arguments.as_object().expect("an object").clone();

        for format in TextFormat::ALL {
            let written = write_call(format, "t", &entries);

            prop_assert_eq!(&read(&written, format, "t", &document), &json!({"name": "t", "arguments": arguments}), "{}", written);
        }
    }
}
