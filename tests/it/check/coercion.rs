//! What becomes of a value that is not of its declared type.

use serde_json::{Value, json};
use toolcrib::schema::check::Mode;

use super::{checker, of_x};

#[test]
fn values_are_coerced_by_their_declared_type_only() {
    let integer = json!({"type": "integer"});
    let number = json!({"type": "number"});
    let boolean = json!({"type": "boolean"});
    let string = json!({"type": "string"});
    let optional = |schema: &Value| json!({"anyOf": [schema, {"type": "null"}]});
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    let cases = [
        (&integer, json!("42"), Some(json!(42))),
        (&integer, json!(" -7 "), Some(json!(-7))),
        (&integer, json!("+007"), Some(json!(7))),
        (&integer, json!("-0"), Some(json!(0))),
        (&integer, json!(42.0), Some(json!(42))),
        (&integer, json!(42.5), None),
        (&integer, json!("42.0"), None),
        (&integer, json!("4_2"), None),
        (&integer, json!("٤٢"), None),
        (&integer, json!(""), None),
        (&integer, json!(true), None),
        (&integer, json!(null), None),
        (&integer, json!([1]), None),
        (&integer, json!("9".repeat(5000)), None),
        (&number, json!("1.5"), Some(json!(1.5))),
        (&number, json!("-3e2"), Some(json!(-300.0))),
        (&number, json!("42"), Some(json!(42))),
        (&number, json!("nan"), None),
        (&number, json!("inf"), None),
        (&number, json!("1e999"), None),
        (&number, json!("1."), None),
        (&boolean, json!("TRUE"), Some(json!(true))),
        (&boolean, json!("false"), Some(json!(false))),
        (&boolean, json!(0), Some(json!(false))),
        (&boolean, json!(1), Some(json!(true))),
        (&boolean, json!(2), None),
        (&boolean, json!("yes"), None),
        (&boolean, json!("1"), None),
        (&boolean, json!(1.0), None),
        (&string, json!(42), Some(json!("42"))),
        (&string, json!(1.0), Some(json!("1.0"))),
        (&string, json!(true), Some(json!("true"))),
        (&string, json!(null), None),
        (&string, json!([]), None),
        (&optional(&integer), json!("5"), Some(json!(5))),
        (&optional(&integer), json!(""), Some(json!(null))),
        (&optional(&integer), json!("None"), Some(json!(null))),
        (&optional(&integer), json!("nil"), None),
        (&numbers, json!("[1, \"2\"]"), Some(json!([1, 2]))),
        (&numbers, json!(["1", 2, "3"]), Some(json!([1, 2, 3]))),
        (&numbers, json!("{}"), None),
        (&numbers, json!("[1"), None),
        (
            &json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            json!("{\"n\": \"1\"}"),
            Some(json!({"n": 1})),
        ),
        (
            &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"n": "1"}),
            Some(json!({"n": 1})),
        ),
        (
            &json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}),
            json!([1, "2"]),
            Some(json!(["1", 2])),
        ),
        (&json!({"enum": [1, 2, 3]}), json!("2"), Some(json!(2))),
        (&json!({"enum": ["1", "2"]}), json!(2), Some(json!("2"))),
        (&json!({"enum": ["1", 1.0]}), json!(true), None),
        (&json!({"type": ["string", "integer"]}), json!(42.0), Some(json!(42))),
        (&json!({"const": true}), json!("True"), Some(json!(true))),
        (&json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), json!(true), Some(json!("true"))),
        (&json!({"type": ["integer", "boolean"]}), json!("true"), Some(json!(true))),
        (
            &json!({"$ref": "#/$defs/tree"}),
            json!({"value": "1", "children": [{"value": "2"}]}),
            Some(json!({"value": 1, "children": [{"value": 2}]})),
        ),
    ];

    for (schema, value, coerced) in cases {
        let result = checker(&of_x(schema)).check(&json!({"x": value}), Mode::Coerce, &[]);
        match coerced {
            Some(coerced) => {
                assert_eq!(result, Ok(Some(json!({"x": coerced}))), "{schema} {value}");
            }
            None => assert!(result.is_err(), "{schema} {value} {result:?}"),
        }
    }
}

#[test]
fn what_fits_is_left_as_it_is() {
    let cases = [
        (json!({"type": "string"}), json!("42")),
        (json!({"type": "string"}), json!("null")),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!("null")),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), json!("42")),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^4"}]}), json!("42")),
        (json!({"type": "number"}), json!(1)),
        (json!({}), json!({"any": ["thing"]})),
    ];

    for (schema, value) in cases {
        assert_eq!(
            checker(&of_x(&schema)).check(&json!({"x": value}), Mode::Coerce, &[]),
            Ok(None),
            "{schema} {value}"
        );
    }
}
