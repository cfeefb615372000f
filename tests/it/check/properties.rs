//! The laws between the fast check, coercion and the validator, for any schema and any value.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::schema::Node;
use toolcrib::schema::check::{Checker, Mode, render};

use super::{checker, of_x};

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::options().should_validate_formats(false).build(schema).expect("a schema").is_valid(value)
}

/// Values of every kind, with numbers and texts that are near one another.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3i64..6).prop_map(Value::from),
        prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(1 << 53), Just((1 << 53) + 1)].prop_map(Value::from),
        prop_oneof![
            Just("9223372036854775808"),
            Just("-123456789012345678901234567890"),
            Just("1e2"),
            Just("0.10"),
            Just("2.0"),
            Just("1e400")
        ]
        .prop_map(|text| serde_json::from_str(text).expect("a number")),
        prop_oneof![Just(0.0), Just(1.0), Just(2.5), Just(-1.5), Just(1e300), Just(9_007_199_254_740_992.0)]
            .prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just("a"),
            Just("bb"),
            Just("1"),
            Just("2.5"),
            Just("true"),
            Just("null"),
            Just("[1]"),
            Just("{\"a\": \"1\"}"),
            Just("é"),
            Just("-3e2")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(
                prop_oneof![Just("a"), Just("b"), Just("value"), Just("children"), Just("c/d~e")],
                inner,
                0..4
            )
            .prop_map(|entries| Value::Object(
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
        .prop_map(Value::from)
}

/// Schemas of the whole vocabulary, also of what is left to the validator.
fn schemas(everything: bool) -> impl Strategy<Value = Value> {
    let bound = prop_oneof![
        (-3i64..6).prop_map(Value::from),
        prop_oneof![
            Just(0.5),
            Just(2.0),
            Just(1e300),
            Just(-1e300),
            Just(9_223_372_036_854_775_808.0),
            Just(-9_223_372_036_854_775_808.0)
        ]
        .prop_map(Value::from),
        Just(serde_json::from_str("9223372036854775808").expect("a number")),
        Just(serde_json::from_str("0.1000000000000000000001").expect("a number")),
    ];
    let scalar = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        (0i64..3).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(2.5)),
        Just(json!("a")),
        Just(json!("1"))
    ];
    let leaf = prop_oneof![
        3 => type_name().prop_map(|name| json!({"type": name})),
        1 => proptest::sample::subsequence(vec!["null", "boolean", "integer", "number", "string", "array", "object"], 1..4).prop_map(|names| json!({"type": names})),
        1 => (proptest::sample::select(vec!["integer", "number"]), proptest::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), bound).prop_map(|(name, keyword, bound)| json!({"type": name, keyword: bound})),
        1 => (0usize..3, 0usize..3).prop_map(|(least, most)| json!({"type": "string", "minLength": least, "maxLength": most})),
        1 => proptest::collection::vec(scalar.clone(), 1..4).prop_map(|members| json!({"enum": members})),
        1 => scalar.prop_map(|member| json!({"const": member})),
        1 => Just(json!({})),
        1 => any::<bool>().prop_map(Value::from),
        1 => proptest::sample::select(vec!["#/$defs/word", "#/$defs/tree", "#/$defs/json", "#/$defs/loop"]).prop_map(|target| json!({"$ref": target})),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        let plain = prop_oneof![
            (inner.clone(), 0usize..2, any::<bool>()).prop_map(|(items, least, unique)| json!({"type": "array", "items": items, "minItems": least, "uniqueItems": unique})),
            (proptest::collection::vec(inner.clone(), 1..3), inner.clone()).prop_map(|(first, rest)| json!({"type": "array", "prefixItems": first, "items": rest})),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            (inner.clone(), inner.clone(), any::<bool>(), proptest::sample::subsequence(vec!["a", "b", "children"], 0..3)).prop_map(|(a, b, rest, required)| json!({"type": "object", "properties": {"a": a, "b": b}, "required": required, "additionalProperties": rest})),
            (inner.clone(), inner.clone()).prop_map(|(a, rest)| json!({"properties": {"a": a, "c/d~e": rest}, "additionalProperties": rest})),
        ];
        let rest = prop_oneof![
            inner.clone().prop_map(|schema| json!({"not": schema})),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(|branches| json!({"oneOf": branches})),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(|parts| json!({"allOf": parts})),
            (inner.clone(), inner.clone()).prop_map(|(test, then)| json!({"if": test, "then": then})),
            inner.clone().prop_map(|schema| json!({"contains": schema})),
            inner.clone().prop_map(|schema| json!({"patternProperties": {"^a": schema}})),
            Just(json!({"pattern": "^[ab]*$"})),
            Just(json!({"multipleOf": 2})),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| json!({"type": "object", "properties": {"a": one}, "unevaluatedProperties": false, "anyOf": [other]})),
            (inner.clone(), type_name()).prop_map(|(branch, name)| json!({"type": name, "anyOf": [branch], "minProperties": 1})),
            Just(json!({"$id": "https://example.com/inner", "items": {"type": "integer"}})),
        ];
        if everything { prop_oneof![2 => plain, 1 => rest].boxed() } else { plain.boxed() }
    })
}

/// A number, a bound near it, and both written as integers or with an exponent.
fn near_bounds() -> impl Strategy<Value = (Value, Value)> {
    let around = prop_oneof![
        Just(1_i128 << 53),
        Just(1_i128 << 63),
        Just((1_i128 << 63) - 1000),
        Just(1_i128 << 64),
        Just(10_i128.pow(18)),
        any::<i64>().prop_map(i128::from),
    ];
    let number = |as_float: bool, number: i128| {
        #[allow(clippy::cast_precision_loss)]
        let text = if as_float { json!(number as f64).to_string() } else { number.to_string() };
        serde_json::from_str::<Value>(&text).expect("a number")
    };
    (around, -1200_i128..1200, -1200_i128..1200, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        move |(around, one, other, negative, float_bound, float_value)| {
            let sign = if negative { -1 } else { 1 };
            (number(float_bound, sign * (around + one)), number(float_value, sign * (around + other)))
        },
    )
}

/// True if a number is written in a way that the fast check declines.
fn is_declined(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64().is_none(),
        Value::Array(items) => items.iter().any(is_declined),
        Value::Object(entries) => entries.values().any(is_declined),
        _ => false,
    }
}

fn has_bounds_or_unique(schema: &Value) -> bool {
    let text = schema.to_string();
    text.contains("imum\":9223372036854775808,")
        || text.contains("0.1000")
        || text.contains("\"uniqueItems\":true")
        || text.contains("9223372036854775808")
        || text.contains("loop")
}

proptest! {
    // More of them with PROPTEST_CASES.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), ..ProptestConfig::default() })]

    #[test]
    fn what_the_fast_check_accepts_is_valid(schema in schemas(true), values in proptest::collection::vec(values(), 8)) {
        let schema = of_x(&schema);
        let checker: Checker = Checker::of(&Node::from(schema.clone()));
        for value in values {
            let input = json!({"x": value});
            if checker.accepts(&input) {
                prop_assert!(is_valid(&schema, &input), "{schema} {input}");
            }
        }
    }

    #[test]
    fn a_bound_is_compared_to_the_last_digit(
        (bound, value) in near_bounds(),
        keyword in proptest::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
    ) {
        let schema = of_x(&json!({keyword: bound}));
        let checker = checker(&schema);
        let input = json!({"x": value});
        if checker.accepts(&input) {
            prop_assert!(is_valid(&schema, &input), "{schema} {input}");
        }
        prop_assert_eq!(checker.check(&input, Mode::Check, &[]).is_ok(), is_valid(&schema, &input), "{} {}", schema, input);
    }

    #[test]
    fn the_fast_check_accepts_what_is_valid_under_a_plain_schema(schema in schemas(false), values in proptest::collection::vec(values(), 8)) {
        let root = of_x(&schema);
        let checker: Checker = Checker::of(&Node::from(root.clone()));
        for value in values {
            let input = json!({"x": value});
            if !is_declined(&value) && !has_bounds_or_unique(&schema) && is_valid(&root, &input) {
                prop_assert!(checker.accepts(&input), "{schema} {input}");
            }
        }
    }

    #[test]
    fn checked_as_it_is_accepted_means_valid(schema in schemas(true), values in proptest::collection::vec(values(), 4)) {
        let schema = of_x(&schema);
        let checker = checker(&schema);
        for value in values {
            let input = json!({"x": value});
            if input.to_string().contains("e+400") {
                // Valid to JSON Schema, but not a number to compute with.
                continue;
            }
            let accepted = checker.check(&input, Mode::Check, &[]);
            prop_assert_eq!(accepted.is_ok(), is_valid(&schema, &input), "{} {}", schema, input);
            if let Err(problems) = accepted {
                prop_assert!(!problems.is_empty());
            }
        }
    }

    #[test]
    fn coercion_leaves_what_is_valid(schema in schemas(true), values in proptest::collection::vec(values(), 4)) {
        let schema = of_x(&schema);
        let checker: Checker = Checker::of(&Node::from(schema.clone()));
        for value in values {
            let input = json!({"x": value});
            if is_valid(&schema, &input)
                && let Some(coerced) = checker.coerce(&input)
            {
                // The one exception: a float for an integer becomes the integer that it is.
                prop_assert!(jsonschema::json::cmp::equal(&coerced, &input), "{schema} {input} {coerced}");
            }
        }
    }

    #[test]
    fn a_parameter_coerced_by_itself_is_what_the_whole_check_gives(
        schema in schemas(true), values in proptest::collection::vec(values(), 8),
    ) {
        let checker = checker(&of_x(&schema));
        for value in values {
            if let Some(coerced) = checker.by_parameter().and_then(|checks| checks.coerce(0, &value)) {
                let whole = checker.check(&json!({"x": value}), Mode::Coerce, &[]).ok();
                prop_assert_eq!(whole, Some(Some(json!({"x": coerced}))), "{} {}", schema, value);
            }
        }
    }

    #[test]
    fn coercion_is_idempotent(schema in schemas(false), values in proptest::collection::vec(values(), 4)) {
        let schema = of_x(&schema);
        let checker: Checker = Checker::of(&Node::from(schema.clone()));
        for value in values {
            let input = json!({"x": value});
            if let Some(once) = checker.coerce(&input) {
                prop_assert_eq!(checker.coerce(&once), None, "{} {} {}", schema, input, once);
            }
        }
    }

    #[test]
    fn what_coercion_gives_is_valid_or_refused(schema in schemas(true), values in proptest::collection::vec(values(), 4)) {
        let schema = of_x(&schema);
        let checker = checker(&schema);
        for value in values {
            let input = json!({"x": value});
            match checker.check(&input, Mode::Coerce, &[]) {
                Ok(changed) => prop_assert!(is_valid(&schema, &changed.unwrap_or(input))),
                Err(problems) => prop_assert!(!problems.is_empty() && render("f", &problems).len() < 60_000),
            }
        }
    }
}
