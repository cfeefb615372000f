//! The first problem of a value, in the words of ajv 8 with the formats of ajv-formats.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::schema::check::Checker;

fn problem(schema: &Value, value: &Value) -> Option<String> {
    Checker::compile(schema).expect("a schema").first_problem(value, "params")
}

/// The problem of a value under the key `a`.
fn of_entry(schema: &Value, value: &Value) -> String {
    problem(&json!({"type": "object", "properties": {"a": schema}}), &json!({"a": value})).unwrap_or_default()
}

#[test]
fn the_cases_have_these_problems() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gemini_cases.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).expect("the cases")).expect("JSON");
    for case in file["validate"].as_array().expect("a list") {
        let found = problem(&file["validate_schema"], &case["params"]);

        assert_eq!(found.as_deref(), case["error"].as_str(), "{case}");
    }
}

#[test]
fn each_keyword_has_its_message() {
    let cases = [
        (json!({"type": "integer"}), json!(1.5), "must be integer"),
        (json!({"type": "integer"}), json!(true), "must be integer"),
        (json!({"type": ["string", "null"]}), json!(1), "must be string,null"),
        (json!({"maximum": 3}), json!(4), "must be <= 3"),
        (json!({"minimum": 1.5}), json!(1), "must be >= 1.5"),
        (json!({"exclusiveMaximum": 3}), json!(3), "must be < 3"),
        (json!({"exclusiveMinimum": 3}), json!(3), "must be > 3"),
        (json!({"multipleOf": 2}), json!(3), "must be multiple of 2"),
        (json!({"maxLength": 1}), json!("ab"), "must NOT have more than 1 characters"),
        (json!({"minLength": 2}), json!("\u{1f600}"), "must NOT have fewer than 2 characters"),
        (json!({"pattern": "^a+$"}), json!("b"), "must match pattern \"^a+$\""),
        (json!({"format": "date"}), json!("x"), "must match format \"date\""),
        (json!({"const": 1}), json!(2), "must be equal to constant"),
        (json!({"enum": ["a", "b"]}), json!("c"), "must be equal to one of the allowed values"),
        (json!({"not": {"type": "string"}}), json!("c"), "must NOT be valid"),
        (json!({"maxItems": 1}), json!([1, 2]), "must NOT have more than 1 items"),
        (json!({"minItems": 1}), json!([]), "must NOT have fewer than 1 items"),
        (json!({"maxProperties": 1}), json!({"x": 1, "y": 2}), "must NOT have more than 1 properties"),
        (json!({"minProperties": 1}), json!({}), "must NOT have fewer than 1 properties"),
        (json!({"required": ["x", "y"]}), json!({"z": 1}), "must have required property 'x'"),
        (
            json!({"properties": {}, "additionalProperties": false}),
            json!({"x": 1}),
            "must NOT have additional properties",
        ),
        (
            json!({"dependentRequired": {"x": ["y"]}}),
            json!({"x": 1}),
            "must have property y when property x is present",
        ),
        (
            json!({"if": {"type": "string"}, "then": {"maxLength": 1}}),
            json!("ab"),
            "must NOT have more than 1 characters",
        ),
        (json!({"contains": {"type": "string"}}), json!([1, 2]), "must contain at least 1 valid item(s)"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"xy": 1}),
            "must NOT have more than 1 characters, params/a property name must be valid",
        ),
        (json!({"prefixItems": [true], "items": false}), json!([1, 2]), "must NOT have more than 1 items"),
        (json!(false), json!(1), "boolean schema is false"),
    ];
    for (schema, value, message) in cases {
        assert_eq!(of_entry(&schema, &value), format!("params/a {message}"), "{schema}");
    }
    assert_eq!(of_entry(&json!({"items": false}), &json!([1])), "params/a/0 boolean schema is false");
}

#[test]
fn only_the_first_problem_counts() {
    let schema = json!({
        "type": "object",
        "properties": {"b": {"type": "integer", "minimum": 1}, "a": {"type": "string", "maxLength": 1, "pattern": "x"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });

    let order = [
        (json!({"c": 1}), "params must have required property 'a'"),
        (json!({"a": 1, "b": 0, "c": 1}), "params must NOT have additional properties"),
        (json!({"a": 1, "b": "0"}), "params/b must be integer"),
        (json!({"a": "yy", "b": 0}), "params/b must be >= 1"),
        (json!({"a": "yy", "b": 1}), "params/a must NOT have more than 1 characters"),
        (json!({"a": "y", "b": 1}), "params/a must match pattern \"x\""),
    ];
    for (value, message) in order {
        assert_eq!(problem(&schema, &value).as_deref(), Some(message), "{value}");
    }
}

#[test]
fn a_union_reports_its_branches_first() {
    let any = json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]});
    let one = json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]});

    assert_eq!(
        of_entry(&any, &json!(1)),
        "params/a must be string, params/a must be >= 3, params/a must match a schema in anyOf"
    );
    assert_eq!(
        of_entry(&one, &json!(1.5)),
        "params/a must be integer, params/a must be >= 3, params/a must match exactly one schema in oneOf"
    );
    assert_eq!(of_entry(&one, &json!(4)), "params/a must match exactly one schema in oneOf");
    assert_eq!(of_entry(&json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}), &json!(4)), "params/a must be <= 3");
}

#[test]
fn a_branch_reports_all_that_ajv_collects_in_it() {
    let then = json!({"anyOf": [{"if": {"type": "string"}, "then": {"maxLength": 1}}]});
    let typed = json!({"anyOf": [{"type": "boolean", "enum": [true]}, {"type": "boolean", "minimum": 5}]});
    let contains = json!({"anyOf": [{"contains": {"type": "string"}}]});

    assert_eq!(
        of_entry(&then, &json!("ab")),
        "params/a must NOT have more than 1 characters, params/a must match \"then\" schema, \
         params/a must match a schema in anyOf"
    );
    assert_eq!(
        of_entry(&typed, &json!(3)),
        "params/a must be boolean, params/a must be equal to one of the allowed values, params/a must be boolean, \
         params/a must match a schema in anyOf"
    );
    assert_eq!(
        of_entry(&contains, &json!([1])),
        "params/a/0 must be string, params/a must contain at least 1 valid item(s), params/a must match a schema in anyOf"
    );
}

#[test]
fn a_reference_with_references_reports_its_first_problem() {
    let definitions = json!({
        "tree": {"type": "string", "enum": ["x"], "not": {"$ref": "#/$defs/leaf"}},
        "leaf": {"type": "integer", "enum": [1]},
    });
    let problem_of = |schema: &Value, value: &Value| {
        let schema = json!({"type": "object", "properties": {"a": schema}, "$defs": definitions});
        problem(&schema, &json!({"a": value})).unwrap_or_default()
    };

    assert_eq!(
        problem_of(&json!({"anyOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/leaf"}]}), &json!(true)),
        "params/a must be string, params/a must be integer, params/a must be equal to one of the allowed values, \
         params/a must match a schema in anyOf"
    );
    assert_eq!(
        problem_of(&json!({"if": {}, "then": {"$ref": "#/$defs/tree"}}), &json!(true)),
        "params/a must be string, params/a must match \"then\" schema"
    );
}

#[test]
fn equal_items_are_named_as_ajv_finds_them() {
    let plain = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true});
    let any = json!({"type": "array", "uniqueItems": true});

    let message = |pair: &str| format!("params/a must NOT have duplicate items (items ## {pair} are identical)");
    assert_eq!(of_entry(&plain, &json!([1, 2, 1])), message("2 and 0"));
    assert_eq!(of_entry(&any, &json!([1, 2, 1])), message("0 and 2"));
    assert_eq!(of_entry(&any, &json!([{"x": 1}, {"x": 1.0}])), message("0 and 1"));
}

#[test]
fn a_path_is_a_pointer() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}});

    assert_eq!(problem(&schema, &json!({"a/b~": ["x", 1]})).as_deref(), Some("params/a~1b~0/1 must be string"));
}

#[test]
fn references_are_followed() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/tree"}},
        "$defs": {"tree": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["children"],
        }},
    });

    let found = problem(&schema, &json!({"tree": {"children": [{"children": []}, {}]}}));

    assert_eq!(found.as_deref(), Some("params/tree/children/1 must have required property 'children'"));
}

#[test]
fn any_other_keyword_still_refuses() {
    let schema = json!({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": false});

    assert_eq!(problem(&schema, &json!({"b": 1})).as_deref(), Some("params must match its schema"));
}

#[test]
fn keywords_for_any_value_come_before_those_of_a_type() {
    let schema = json!({"type": "array", "items": {"type": "string"}, "enum": [["a"]]});
    let text = json!({"type": "string", "minLength": 3, "enum": ["abc"]});

    assert_eq!(of_entry(&schema, &json!("a")), "params/a must be equal to one of the allowed values");
    assert_eq!(of_entry(&text, &json!("x")), "params/a must be equal to one of the allowed values");
    assert_eq!(of_entry(&text, &json!(1)), "params/a must be equal to one of the allowed values");
    assert_eq!(of_entry(&json!({"type": "array", "enum": [["a"]]}), &json!("a")), "params/a must be array");
}
