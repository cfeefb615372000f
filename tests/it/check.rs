//! Arguments held to a schema: what is accepted, coerced and refused, and the laws between the three.

#![allow(clippy::expect_used)]

mod coercion;
mod first;
mod properties;

use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::schema::Node;
use toolcrib::schema::check::{Checker, Mode, Problem, render};

fn checker(schema: &Value) -> Checker {
    Checker::compile(schema).expect("a schema")
}

/// A tool with one parameter `x`.
fn of_x(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": definitions()})
}

fn definitions() -> Value {
    json!({
        "word": {"type": "string", "minLength": 1},
        "tree": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["value"],
            "additionalProperties": false,
        },
        "loop": {"$ref": "#/$defs/loop"},
        "json": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
        ]},
    })
}

fn lines(schema: &Value, input: &Value, mode: Mode) -> Vec<String> {
    let problems = checker(schema).check(input, mode, &[]).expect_err("refused");
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn every_problem_is_listed_with_its_path() {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["r", "w"]},
            "items": {"type": "array", "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}, "name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": false,
            }},
            "tag": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["query"],
    });
    let input = json!({
        "limit": 0,
        "mode": "x",
        "items": [{"name": "a"}, {"price": "cheap", "nam": "b"}, 3],
        "tag": [1],
        "lmit": 5,
    });

    let lines = lines(&schema, &input, Mode::Check);

    assert_eq!(
        lines,
        [
            "lmit: unknown argument (did you mean limit? expected one of: query, limit, mode, items, tag)",
            "query: expected a string, got nothing",
            "limit: expected an integer >= 1, got 0 (an integer)",
            "mode: expected one of \"r\", \"w\", got \"x\" (a string)",
            "items[1].name: expected a string, got nothing",
            "items[1].price: expected a number, got \"cheap\" (a string)",
            "items[1].nam: unknown key (did you mean name? expected one of: price, name)",
            "items[2]: expected an object with name, got 3 (an integer)",
            "tag: expected a string or null, got [1] (an array)",
        ]
    );
}

#[test]
fn an_answer_begins_with_the_tool() {
    let problems = [Problem { path: "a".into(), expected: "b".into(), found: "c".to_owned().into() }];

    assert_eq!(render("f", &problems), "Error: Invalid arguments for tool 'f':\n- a: expected b, got c");
}

#[test]
fn the_branch_that_was_meant_is_explained() {
    let schema = json!({
        "type": "object",
        "properties": {"shape": {"oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}]}},
        "$defs": {
            "circle": {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            "square": {"type": "object", "properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]},
        },
    });

    let lines = lines(&schema, &json!({"shape": {"kind": "square", "a": "wide"}}), Mode::Check);

    assert_eq!(lines, ["shape.a: expected a number, got \"wide\" (a string)"]);
}

#[test]
fn what_only_the_validator_knows_is_placed_where_it_fails() {
    let schema = json!({
        "type": "object",
        "properties": {"codes": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "a": {}, "b": {}},
        "dependentRequired": {"a": ["b"]},
    });

    let pattern = lines(&schema, &json!({"codes": ["ABC", "abc"]}), Mode::Check);
    let dependent = lines(&schema, &json!({"a": 1}), Mode::Check);

    assert_eq!(pattern, ["codes[1]: expected a string matching \"^[A-Z]{3}$\", got \"abc\" (a string)"]);
    assert_eq!(dependent.len(), 1);
    assert!(dependent[0].starts_with("arguments: expected "), "{dependent:?}");
}

#[test]
fn unknown_names_are_refused_unless_the_schema_speaks_of_them() {
    let input = json!({"a": 1, "other": 2});
    let allowed = [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"^oth": {}}}),
    ];
    let refused = [
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}),
    ];

    for schema in allowed {
        assert_eq!(checker(&schema).check(&input, Mode::Check, &[]), Ok(None), "{schema}");
    }
    for schema in refused {
        let lines = lines(&schema, &input, Mode::Check);
        assert!(lines.iter().any(|line| line.starts_with("other: unknown argument")), "{schema} {lines:?}");
    }
}

#[test]
fn a_name_that_is_only_required_is_known() {
    let open = checker(&json!({"type": "object", "properties": {}, "required": ["a"]}));
    let closed =
        checker(&json!({"type": "object", "properties": {}, "required": ["a"], "additionalProperties": false}));
    let arguments = json!({"a": null});

    for hidden in [&[][..], &["b"]] {
        assert_eq!(open.check(&arguments, Mode::Check, hidden), Ok(None), "{hidden:?}");
        assert!(closed.check(&arguments, Mode::Check, hidden).is_err(), "{hidden:?}");
    }
}

#[test]
fn a_hidden_name_does_not_exist() {
    let schema = json!({"type": "object", "properties": {"a": {}, "key": {}}, "additionalProperties": true});

    let problems = checker(&schema).check(&json!({"key": 1}), Mode::Coerce, &["key"]).expect_err("hidden");

    assert_eq!(problems[0].expected.to_string(), "unknown argument (expected one of: a)");
}

/// Definitions that each use the next one twice.
fn doubling() -> Value {
    let definitions: serde_json::Map<String, Value> = (0..60)
        .map(|index| {
            let next = json!({"$ref": format!("#/$defs/d{}", (index + 1).min(59))});
            (
                format!("d{index}"),
                json!({"anyOf": [{"type": "array", "items": next}, next, {"type": "array", "items": next}]}),
            )
        })
        .collect();
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

#[test]
fn the_fast_check_declines_in_time() {
    let checker: Checker = Checker::of(&Node::from(doubling()));

    // Each of sixty definitions leads to the next in three ways: a test of all of them would not come back.
    let accepted = checker.accepts(&json!({"x": 1})) || checker.accepts(&json!({"x": [[[[1]]]]}));

    assert!(!accepted);
}

#[test]
fn what_is_not_a_schema_is_the_developers_mistake() {
    let cases = [
        json!({"type": "object", "properties": {"x": {"type": "strnig"}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "https://example.com/other.json"}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/missing"}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "["}}}),
        doubling(),
        json!(3),
    ];

    for schema in cases {
        let error = Checker::compile(&schema).expect_err("no schema");
        assert!(matches!(&error, Error::InvalidSchema { reason } if !reason.is_empty()), "{schema} {error}");
    }
}

#[test]
fn the_place_of_a_mistake_is_named() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "strnig"}}});

    let error = Checker::compile(&schema).expect_err("no schema").to_string();

    assert!(error.contains("/properties/x/type"), "{error}");
}

#[test]
fn a_pattern_may_look_around() {
    let schema = of_x(&json!({"type": "string", "pattern": "^(?=.*\\d)(?!admin)\\w+$"}));

    let fits = |x: &str| checker(&schema).check(&json!({"x": x}), Mode::Check, &[]).is_ok();

    assert!(fits("user1"));
    assert!(!fits("user"));
    assert!(!fits("admin1"));
}

#[test]
fn a_pattern_that_would_search_for_ever_refuses() {
    let schema = of_x(&json!({"type": "string", "pattern": "^(?=(a+)+$)(a|aa)+\\1b$"}));

    let lines = lines(&schema, &json!({"x": "a".repeat(5_000)}), Mode::Check);

    assert_eq!(lines.len(), 1);
}

#[test]
fn nested_unions_take_no_exponential_time() {
    let mut bad = json!({"kind": "b", "child": "leaf"});
    for _ in 0..60 {
        bad = json!({"kind": "a", "child": bad});
    }
    let branch = |kind: &str| json!({"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}, "kind": {"enum": [kind, "a", "b"]}}, "required": ["kind"]});
    let schema = json!({
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"anyOf": [branch("a"), branch("b"), branch("c")]}},
    });

    // Three ways at each of sixty levels: a search through all of them would not come back.
    let result = checker(&schema).check(&json!({"x": bad}), Mode::Coerce, &[]);

    assert!(result.is_err());
}

#[test]
fn a_value_that_is_too_deep_is_one_problem() {
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }

    let lines = lines(
        &of_x(&json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})),
        &json!({"x": deep}),
        Mode::Coerce,
    );

    assert_eq!(lines, ["arguments: expected at most 128 levels of nesting, got more"]);
}

#[test]
fn problems_are_bounded_whatever_comes() {
    let many: Vec<Value> = (0..50_000).map(|_| json!("x".repeat(200))).collect();

    let problems = checker(&of_x(&json!({"type": "array", "items": {"type": "integer"}})))
        .check(&json!({"x": many}), Mode::Check, &[])
        .expect_err("strings");
    let text = render("f", &problems);

    assert_eq!(problems.len(), 10_000);
    assert!(text.len() < 20_000, "{}", text.len());
}

/// As many integers beyond 64 bits, all with the same `f64`, as a model can send in a megabyte and more: to compare each with each
/// would take hours.
fn large(count: u32) -> Vec<Value> {
    (0..count).map(|index| serde_json::from_str(&format!("1{index:0>40}")).expect("a number")).collect()
}

#[test]
fn items_of_any_kind_and_number_are_distinguished() {
    const COUNT: u32 = 60_000;
    let strings = |count: u32| (0..count).map(|index| json!(format!("{:0>40}", index))).collect::<Vec<_>>();
    let arrays = |items: Vec<Value>| items.into_iter().map(|item| json!([item])).collect::<Vec<_>>();
    let objects = |items: Vec<Value>| items.into_iter().map(|item| json!({"a": item, "b": 1})).collect::<Vec<_>>();
    let fractions: Vec<Value> =
        (0..COUNT).map(|index| serde_json::from_str(&format!("0.{index:0>40}")).expect("a number")).collect();
    let mut mixed = large(COUNT / 4);
    mixed.extend(strings(COUNT / 4));
    mixed.extend(arrays(large(COUNT / 4)));
    mixed.extend(objects(large(COUNT / 4)));
    for items in [large(COUNT), fractions, strings(COUNT), arrays(large(COUNT)), objects(large(COUNT)), mixed] {
        for item in [json!({}), json!(true), json!({"type": ["number", "string", "array", "object"]})] {
            let schema = json!({"type": "object", "properties": {
                "all": {"type": "array", "items": item, "uniqueItems": true},
            }});
            let checker = Checker::compile(&schema).expect("a schema");
            let mut doubled = items.clone();
            doubled.push(items[0].clone());

            assert!(checker.check(&json!({"all": items}), Mode::Check, &[]).is_ok());
            let problems = checker.check(&json!({"all": doubled}), Mode::Check, &[]).expect_err("one item comes twice");
            assert_eq!(problems[0].path, "all");
        }
    }
}

#[test]
fn equal_numbers_are_the_same_item_however_they_are_written() {
    let large = "1000000000000000000000000000000000000000";
    for filler in [0, 40] {
        for (one, other) in [
            ("1", "1.0"),
            ("0", "-0.0"),
            ("100", "1e2"),
            (large, "1e39"),
            ("[1]", "[1.0]"),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 2.0, "a": 1}"#),
        ] {
            let mut items: Vec<Value> = (0..filler).map(|index| json!(format!("filler {index}"))).collect();
            items.extend([one, other].map(|text| serde_json::from_str::<Value>(text).expect("a value")));
            let checker = Checker::compile(&json!({"properties": {"all": {"uniqueItems": true}}})).expect("a schema");

            assert!(checker.check(&json!({"all": items}), Mode::Check, &[]).is_err(), "{one} {other}");
        }
        for (one, other) in [
            ("1", "\"1\""),
            ("1", "true"),
            ("0", "false"),
            ("0", "null"),
            (large, "1000000000000000000000000000000000000001"),
        ] {
            let mut items: Vec<Value> = (0..filler).map(|index| json!(format!("filler {index}"))).collect();
            items.extend([one, other].map(|text| serde_json::from_str::<Value>(text).expect("a value")));
            let checker = Checker::compile(&json!({"properties": {"all": {"uniqueItems": true}}})).expect("a schema");

            assert!(checker.check(&json!({"all": items}), Mode::Check, &[]).is_ok(), "{one} {other}");
        }
    }
}

fn problems_of(schema: &Value, value: &Value) -> Vec<String> {
    match checker(&json!({"type": "object", "properties": {"v": schema}})).check(&json!({"v": value}), Mode::Check, &[])
    {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_text_of_another_format_is_named_with_its_path() {
    for (schema, text, problem) in [
        (
            json!({"type": "string", "format": "date"}),
            "tomorrow",
            "v: expected a date (YYYY-MM-DD), got \"tomorrow\" (a string)",
        ),
        (
            json!({"type": "string", "format": "uri"}),
            "not a url",
            "v: expected a URI (https://example.com/path), got \"not a url\" (a string)",
        ),
        (json!({"format": "ipv4"}), "1.2.3", "v: expected an IPv4 address, got \"1.2.3\" (a string)"),
        (
            json!({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}),
            "x",
            "v: expected a UUID or null, got \"x\" (a string)",
        ),
        (json!({"type": "string", "format": "hostname"}), "-a", "v: expected a host name, got \"-a\" (a string)"),
        (
            json!({"type": ["string", "integer"], "format": "email"}),
            "x",
            "v: expected an email address or an integer, got \"x\" (a string)",
        ),
    ] {
        assert_eq!(problems_of(&schema, &json!(text)), [problem], "{schema}");
    }
}

#[test]
fn a_format_applies_to_strings_and_only_if_it_is_known() {
    for (schema, value) in [
        (json!({"format": "date"}), json!(7)),
        (json!({"type": ["string", "integer"], "format": "email"}), json!(7)),
        (json!({"type": "string", "format": "date"}), json!("2026-11-17")),
        (json!({"type": "string", "format": "duration", "minLength": 3}), json!("P1D")),
        (json!({"type": "string", "format": "path"}), json!("anything")),
        (json!({"type": "string", "format": "my-own"}), json!("anything")),
        (json!({"type": "string", "format": "json-pointer"}), json!("/a/b")),
    ] {
        assert!(problems_of(&schema, &value).is_empty(), "{schema}");
    }
}

#[test]
fn formats_of_an_older_draft_are_asserted() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"id": {"type": "string", "format": "uuid"}, "for": {"type": "string", "format": "duration"}},
    });

    let problems = checker(&schema).check(&json!({"id": "x", "for": "y"}), Mode::Check, &[]).expect_err("two problems");

    assert_eq!(problems.len(), 2);
}

#[test]
fn objects_are_equal_whatever_the_order_of_their_keys() {
    let other = json!({"b": [{"y": 2, "x": 1}], "a": 1});
    for schema in [
        json!({"const": {"a": 1, "b": [{"x": 1, "y": 2}]}}),
        json!({"enum": [0, {"a": 1, "b": [{"x": 1, "y": 2}]}]}),
        json!({"enum": [{"a": 1, "b": [{"x": 1, "y": 2}]}]}),
    ] {
        assert!(problems_of(&schema, &other).is_empty(), "{schema}");
    }
    let unique = json!({"type": "array", "uniqueItems": true});
    assert_eq!(problems_of(&unique, &json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])).len(), 1);
}
