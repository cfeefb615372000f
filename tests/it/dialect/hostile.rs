//! Schemas made to be expensive, and arguments that are not what was asked for.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib::provider::Dialect;

use super::encode;
use super::provider::refuses;

fn is_bounded(schema: &Value) {
    for dialect in Dialect::ALL {
        let encoded = encode(dialect, schema);

        if matches!(dialect, Dialect::OpenAiStrict | Dialect::Gemini) {
            assert_eq!(refuses(dialect, &encoded.schema), None);
            assert!(encoded.schema.to_string().len() < 3_000_000, "{}", encoded.schema.to_string().len());
            assert!(encoded.report.len() <= 1_000);
        }
    }
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn ten_thousand_properties() {
    let properties: Map<String, Value> = (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let schema = object(&Value::Object(properties));

    is_bounded(&schema);

    let strict = encode(Dialect::OpenAiStrict, &schema);
    assert_eq!(strict.report[0].what, "structure");
    let sample = json!({"p1": "a"});
    assert_eq!(strict.codec.decode(strict.codec.encode_value(&sample)).unwrap(), sample);
}

#[test]
fn definitions_that_double() {
    let definitions: Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", (n + 1) % 60)});
            (format!("d{n}"), object(&json!({"a": next, "b": next, "c": {"type": "array", "items": next}})))
        })
        .collect();

    is_bounded(&json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
}

#[test]
fn unions_and_merges_that_multiply() {
    let definitions: Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", (n + 1) % 40)});
            let more = object(&json!({format!("f{n}"): next}));
            (format!("d{n}"), json!({"anyOf": [next, more, {"type": "null"}], "allOf": [next, more]}))
        })
        .collect();

    is_bounded(&json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
}

#[test]
fn depth() {
    let deep = (0..120).fold(json!({"type": "string"}), |inner, n| match n % 4 {
        0 => object(&json!({"x": inner})),
        1 => json!({"type": "array", "items": inner}),
        2 => json!({"anyOf": [inner, {"type": "integer"}]}),
        _ => json!({"allOf": [inner]}),
    });

    is_bounded(&object(&json!({"x": deep})));
}

#[test]
fn long_texts_and_enumerations() {
    let long = "x".repeat(1_000_000);
    let values: Vec<String> = (0..5_000).map(|n| format!("value {n}")).collect();
    let part = json!({"type": "string", "enum": values, "description": long});
    let parts: Vec<Value> = (0..20_000).map(|_| json!({"$ref": "#/$defs/part"})).collect();
    let schema = json!({
        "type": "object",
        "properties": {"x": {"anyOf": parts}},
        "$defs": {"part": part},
    });

    is_bounded(&schema);
}

#[test]
fn schemas_that_go_in_circles() {
    for circle in [
        json!({"$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}]}),
        json!({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/gone"}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"properties": {"a": {"$ref": "#/$defs/a", "minProperties": 1}}}),
    ] {
        is_bounded(&json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": circle}}));
        is_bounded(&json!({"$ref": "#/$defs/a", "$defs": {"a": circle}}));
    }
}

#[test]
fn what_is_no_schema() {
    for schema in [
        json!(null),
        json!([]),
        json!(false),
        json!({"type": 3, "properties": []}),
        json!({"type": "object", "properties": {"x": 1, "y": false, "z": null}, "required": [1, "gone"]}),
        json!({"type": ["array", "nothing"], "items": [1], "prefixItems": {}}),
        json!({"anyOf": []}),
        json!({"enum": []}),
        json!({"type": "string"}),
    ] {
        is_bounded(&schema);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"{}\\[]{0,6}".prop_map(Value::from),
        Just(json!("[[1]]")),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let keys = prop::sample::select(vec!["key", "value", "choice", "item_1", "x", "more", "labels", "arguments"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((keys, inner), 0..4)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_model_sends_is_read_or_refused(sent in any_json(), seed in any::<u64>(), shape in super::shape::parameters()) {
        let _ = seed;
        for dialect in [Dialect::OpenAiStrict, Dialect::Gemini] {
            let codec = encode(dialect, &shape.document()).codec;

            let read = codec.decode(sent.clone());

            if let Err(problem) = read {
                prop_assert!(!problem.to_string().starts_with(": ") && !problem.expected.to_string().is_empty());
            }
        }
    }

    #[test]
    fn any_json_is_encoded_as_a_schema_that_is_taken(schema in any_json()) {
        let schema = json!({"type": "object", "properties": {"x": schema}});
        for dialect in [Dialect::OpenAiStrict, Dialect::Gemini] {
            let encoded = encode(dialect, &schema);

            prop_assert_eq!(refuses(dialect, &encoded.schema), None);
        }
    }
}
