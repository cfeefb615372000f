//! Schemas in the dialects of providers, and the way back.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile;
mod property;
mod provider;
mod shape;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::provider::Dialect;
use toolcrib::schema::dialect::{Encoded, Loss};
use toolcrib::schema::{Document, Node};

pub(crate) fn encode(dialect: Dialect, parameters: &Value) -> Encoded {
    dialect.encode(&Arc::new(Document::new(&Node::from(parameters.clone()))))
}

/// The schema of one required parameter.
fn one(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}, "required": ["x"]})
}

fn encode_one(dialect: Dialect, schema: &Value) -> (Value, Encoded) {
    let encoded = encode(dialect, &one(schema));
    (encoded.schema["properties"]["x"].clone(), encoded)
}

#[test]
fn a_dialect_is_found_by_its_name() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::parse(dialect.name()), Some(dialect));
    }
    assert_eq!(Dialect::parse("OpenAI"), None);
}

#[test]
fn what_may_be_left_out_is_null_in_strict_mode() {
    let parameters = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 5, "description": "How many"}},
    });

    let encoded = encode(Dialect::OpenAiStrict, &parameters);

    assert_eq!(
        encoded.schema,
        json!({
            "type": "object",
            "properties": {
                "n": {"type": ["integer", "null"], "description": "How many. Default: 5. null leaves it out."},
            },
            "required": ["n"],
            "additionalProperties": false,
        })
    );
    assert_eq!(encoded.codec.decode(json!({"n": null})).unwrap(), json!({}));
    assert_eq!(encoded.codec.decode(json!({"n": 7})).unwrap(), json!({"n": 7}));
    assert_eq!(encoded.report, []);
}

#[test]
fn a_null_value_differs_from_one_that_leaves_out() {
    let parameters = json!({
        "type": "object",
        "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}},
    });

    let codec = encode(Dialect::OpenAiStrict, &parameters).codec;

    assert_eq!(codec.decode(json!({"n": null})).unwrap(), json!({}));
    assert_eq!(codec.decode(json!({"n": {"value": null}})).unwrap(), json!({"n": null}));
    assert_eq!(codec.decode(json!({"n": {"value": 3}})).unwrap(), json!({"n": 3}));
    assert_eq!(codec.encode_value(&json!({})), json!({"n": null}));
    assert_eq!(codec.encode_value(&json!({"n": null})), json!({"n": {"value": null}}));
}

#[test]
fn null_and_nothing_are_the_same_where_null_is_the_default() {
    let parameters = json!({
        "type": "object",
        "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}},
    });

    let encoded = encode(Dialect::OpenAiStrict, &parameters);

    assert_eq!(encoded.schema["properties"]["n"], json!({"type": ["integer", "null"]}));
    assert_eq!(encoded.codec.decode(json!({"n": null})).unwrap(), json!({}));
}

#[test]
fn a_map_is_a_list_of_entries() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});

    let (schema, encoded) = encode_one(Dialect::Gemini, &map);

    assert_eq!(schema["type"], "array");
    assert_eq!(schema["items"]["properties"], json!({"key": {"type": "string"}, "value": {"type": "integer"}}));
    let sent = json!({"x": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]});
    assert_eq!(encoded.codec.decode(sent).unwrap(), json!({"x": {"a": 1, "b": 2}}));
    // A model that sends a map all the same is understood.
    assert_eq!(encoded.codec.decode(json!({"x": {"a": 1}})).unwrap(), json!({"x": {"a": 1}}));
}

#[test]
fn a_map_that_cannot_be_read_is_a_problem_for_the_model() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let (_, encoded) = encode_one(Dialect::OpenAiStrict, &map);

    let twice = encoded.codec.decode(json!({"x": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]})).unwrap_err();
    let other = encoded.codec.decode(json!({"x": [{"name": "a"}]})).unwrap_err();

    assert_eq!(
        twice.to_string().rsplit_once(", got").map(|(said, _)| said),
        Some("x[1]: expected a key that has not been given before")
    );
    assert_eq!(
        other.to_string().rsplit_once(", got").map(|(said, _)| said),
        Some("x[0]: expected an object with `key`, a string, and `value`")
    );
}

#[test]
fn places_that_differ_are_fields_and_others_stay_a_list() {
    let mixed = json!({
        "type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2,
    });
    let point = json!({
        "type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2,
    });

    let (mixed, encoded) = encode_one(Dialect::OpenAiStrict, &mixed);
    let (point, _) = encode_one(Dialect::OpenAiStrict, &point);

    assert_eq!(mixed["properties"], json!({"item_1": {"type": "string"}, "item_2": {"type": "integer"}}));
    assert_eq!(encoded.codec.decode(json!({"x": {"item_1": "a", "item_2": 1}})).unwrap(), json!({"x": ["a", 1]}));
    assert_eq!(point, json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}));
}

#[test]
fn choices_that_look_alike_are_named() {
    let union = json!({"anyOf": [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "array", "items": {"type": "object", "properties": {"key": {}, "value": {}}}},
    ]});

    let (schema, encoded) = encode_one(Dialect::OpenAiStrict, &union);

    let labels: Vec<&Value> =
        schema["anyOf"].as_array().unwrap().iter().map(|it| &it["properties"]["choice"]["enum"][0]).collect();
    assert_eq!(labels, ["object", "array"]);
    let sent = json!({"x": {"choice": "object", "value": [{"key": "a", "value": 1}]}});
    assert_eq!(encoded.codec.decode(sent.clone()).unwrap(), json!({"x": {"a": 1}}));
    assert_eq!(encoded.codec.encode_value(&json!({"x": {"a": 1}})), sent);
}

#[test]
fn choices_that_differ_stay_as_they_are() {
    let union = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "n": {"type": "string"}}, "required": ["kind"]},
    ]});

    let (schema, encoded) = encode_one(Dialect::OpenAiStrict, &union);

    let kinds: Vec<&Value> = schema["anyOf"].as_array().unwrap().iter().map(|choice| &choice["type"]).collect();
    assert_eq!(kinds, ["string", "array", "object", "object"]);
    assert_eq!(encoded.codec.decode(json!({"x": {"kind": "b", "n": null}})).unwrap(), json!({"x": {"kind": "b"}}));
}

#[test]
fn recursion_is_kept_where_there_are_references_and_is_text_in_the_end_where_there_are_none() {
    let node = json!({
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
        "required": ["value", "next"],
    });
    let parameters = json!({
        "type": "object", "properties": {"x": {"$ref": "#/$defs/Node"}}, "required": ["x"], "$defs": {"Node": node},
    });
    let sample = (0..5).fold(Value::Null, |next, value| json!({"value": value, "next": next}));
    let sample = json!({"x": sample});

    let strict = encode(Dialect::OpenAiStrict, &parameters);
    let gemini = encode(Dialect::Gemini, &parameters);

    assert_eq!(strict.schema["properties"]["x"], json!({"$ref": "#/$defs/Node"}));
    assert_eq!(strict.report, []);
    assert_eq!(gemini.report.iter().map(|loss| &*loss.what).collect::<Vec<_>>(), ["recursion"]);
    let shown = gemini.schema.to_string();
    let description = shown.split("Written as JSON text that fits this JSON Schema: ").nth(1).expect("the schema");
    assert!(description.contains(r##"$ref\":\"#/$defs/Node\""##), "{shown}");
    assert!(description.contains(r#"$defs\":{\"Node\":{\"type\":\"object\""#), "{shown}");
    for codec in [strict.codec, gemini.codec] {
        assert_eq!(codec.decode(codec.encode_value(&sample)).unwrap(), sample);
    }
}

#[test]
fn a_keyword_that_a_dialect_lacks_is_described_and_reported() {
    let text = json!({"type": "string", "minLength": 3, "format": "uri", "description": "Where"});

    let (schema, encoded) = encode_one(Dialect::OpenAiStrict, &text);

    assert_eq!(schema, json!({"type": "string", "description": "Where. At least 3 characters. Format: uri."}));
    assert_eq!(
        encoded.report[0],
        Loss {
            path: "x".to_owned(),
            what: "minLength".to_owned(),
            instead: "in the description: At least 3 characters.".to_owned(),
        }
    );
    assert_eq!(encoded.report.len(), 2);
}

#[test]
fn values_that_are_no_texts_are_listed_as_texts_where_nothing_else_can_be() {
    let (schema, encoded) = encode_one(Dialect::Gemini, &json!({"enum": [1, "1", true, "", "a", null]}));

    assert_eq!(schema, json!({"type": "string", "enum": ["1", "\"1\"", "true", "\"\"", "a"], "nullable": true}));
    for value in [json!(1), json!("1"), json!(true), json!(""), json!("a"), json!(null)] {
        let arguments = json!({"x": value});
        assert_eq!(encoded.codec.decode(encoded.codec.encode_value(&arguments)).unwrap(), arguments);
    }
}

#[test]
fn a_root_that_composes_becomes_plain() {
    let condition = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    let union = json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object", "properties": {"b": {}}}], "$defs": {"A": one(&json!({}))}});

    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let said = encode(dialect, &condition);
        let wrapped = encode(dialect, &union);

        assert_eq!(said.schema.get("anyOf"), None);
        assert_eq!(said.report[0].what, "anyOf");
        assert!(said.codec.is_same());
        assert_eq!(wrapped.schema["properties"]["arguments"]["anyOf"][0]["$ref"], "#/properties/arguments/$defs/A");
        assert_eq!(wrapped.codec.decode(json!({"arguments": {"b": 1}})).unwrap(), json!({"b": 1}));
        assert!(jsonschema::is_valid(&wrapped.schema, &wrapped.codec.encode_value(&json!({"x": 1}))));
    }
    assert_eq!(encode(Dialect::Mcp, &condition).schema, condition);
}

#[test]
fn names_that_are_not_accepted_come_back() {
    let parameters = json!({
        "type": "object",
        "properties": {"filter[x]": {"type": "string"}, "ok": {"type": "string"}},
        "required": ["filter[x]"],
    });

    for dialect in [Dialect::Anthropic, Dialect::Gemini, Dialect::OpenAiStrict] {
        let encoded = encode(dialect, &parameters);

        let names: Vec<&String> = encoded.schema["properties"].as_object().unwrap().keys().collect();
        assert!(names[0].starts_with("filter_x__"), "{names:?}");
        assert_eq!(encoded.schema["required"][0], **names[0]);
        let sent = json!({names[0]: "a"});
        assert_eq!(encoded.codec.decode(sent).unwrap(), json!({"filter[x]": "a"}));
    }
}

#[test]
fn an_empty_tool_has_no_parameters() {
    for dialect in Dialect::ALL {
        for parameters in [json!({"type": "object", "properties": {}}), json!({}), json!({"type": "object"})] {
            let encoded = encode(dialect, &parameters);

            assert_eq!(encoded.schema["type"], "object");
            assert_eq!(encoded.schema["properties"], json!({}), "{dialect:?}");
            assert_eq!(encoded.codec.decode(json!({})).unwrap(), json!({}));
        }
    }
}

#[test]
fn an_ordinary_tool_has_the_same_parameters_everywhere() {
    let parameters = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What"}, "limit": {"type": "integer"}},
        "required": ["query", "limit"],
    });

    for dialect in Dialect::ALL {
        let encoded = encode(dialect, &parameters);

        assert_eq!(encoded.schema["properties"], parameters["properties"], "{dialect:?}");
        assert!(encoded.codec.is_same());
        assert_eq!(encoded.report, []);
    }
}

#[test]
fn an_open_object_without_properties_takes_any_entry() {
    let parameters = json!({
        "type": "object",
        "properties": {"inputs": {"type": "object", "properties": {}}},
        "required": ["inputs"],
    });
    for dialect in [Dialect::OpenAiStrict, Dialect::Gemini] {
        let encoded = encode(dialect, &parameters);

        assert_eq!(encoded.schema["properties"]["inputs"]["type"], "string", "{dialect:?}");
        assert_eq!(encoded.schema["properties"]["inputs"].get("enum"), None, "{dialect:?}");
        let sent = json!({"inputs": "{\"version\": \"1.2\", \"dry\": true}"});
        let expected = json!({"inputs": {"version": "1.2", "dry": true}});
        assert_eq!(encoded.codec.decode(sent).unwrap(), expected, "{dialect:?}");
    }
}

#[test]
fn keywords_of_older_drafts_are_written_in_those_of_2020() {
    let parameters = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "point": {"type": "array", "items": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2},
            "closed": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
            "open": {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
        },
        "dependencies": {"point": ["open"], "open": {"required": ["closed"]}},
    });
    for dialect in [Dialect::OpenAi, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Mcp] {
        let schema = encode(dialect, &parameters).schema;

        let properties = &schema["properties"];
        assert_eq!(schema.get("$schema"), None, "{dialect:?}");
        assert_eq!(properties["point"]["prefixItems"], json!([{"type": "number"}, {"type": "number"}]), "{dialect:?}");
        assert_eq!(properties["point"]["items"], json!(false), "{dialect:?}");
        assert_eq!(properties["closed"]["items"], json!(false), "{dialect:?}");
        assert_eq!(properties["closed"].get("additionalItems"), None, "{dialect:?}");
        assert_eq!(properties["open"]["items"], json!({"type": "integer"}), "{dialect:?}");
        assert_eq!(schema["dependentRequired"], json!({"point": ["open"]}), "{dialect:?}");
        assert_eq!(schema["dependentSchemas"], json!({"open": {"required": ["closed"]}}), "{dialect:?}");
    }
}

#[test]
fn dependencies_of_older_drafts_are_reported() {
    let parameters = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"card": {"type": "string"}, "address": {"type": "string"}},
        "dependencies": {"card": ["address"]},
    });
    for dialect in [Dialect::OpenAiStrict, Dialect::Gemini] {
        let encoded = encode(dialect, &parameters);

        assert!(encoded.report.iter().any(|loss| loss.what == "dependencies"), "{dialect:?}: {:?}", encoded.report);
        assert!(encoded.schema.to_string().contains("`dependencies`"), "{dialect:?}: {}", encoded.schema);
    }
}
