//! The order of keys in a schema, and when two schemas are the same.

use serde_json::{Number, Value};

/// Puts the keys of `schema` into alphabetical order, all the way down.
///
/// Properties keep the order of the signature, and defaults the order they were written in.
pub fn sort_keys(schema: &mut Value) {
    sort_below(schema, "");
}

fn sort_below(value: &mut Value, parent: &str) {
    match value {
        Value::Object(node) => {
            if !matches!(parent, "properties" | "default") && !node.keys().is_sorted() {
                node.sort_keys();
            }
            for (key, inner) in node.iter_mut() {
                sort_below(inner, key);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| sort_below(item, parent)),
        _ => {}
    }
}

/// Keeps one of each group of equal schemas: the place of the first, the text of the last.
#[must_use]
pub fn without_repetition(schemas: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(schemas.len());
    for schema in schemas {
        match kept.iter_mut().find(|other| same(other, &schema)) {
            Some(other) => *other = schema,
            None => kept.push(schema),
        }
    }
    kept
}

/// Whether two schemas are equal, where `1`, `1.0` and `true` are one value and the order of keys does not count.
#[must_use]
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && !(is_whole(a) && is_whole(b))),
        (Value::Bool(flag), Value::Number(number)) | (Value::Number(number), Value::Bool(flag)) => {
            number.as_f64() == Some(f64::from(u8::from(*flag)))
        }
        _ => left == right,
    }
}

/// Whether a number was written without a fraction or an exponent.
#[must_use]
pub fn is_whole(number: &Number) -> bool {
    !number.as_str().contains(['.', 'e', 'E'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_except_in_properties_and_defaults() {
        let mut schema =
            json!({"type": "object", "properties": {"b": {"type": "x", "default": {"z": 1, "a": 2}}, "a": {}}});

        sort_keys(&mut schema);

        assert_eq!(
            schema.to_string(),
            r#"{"properties":{"b":{"default":{"z":1,"a":2},"type":"x"},"a":{}},"type":"object"}"#
        );
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(same(&json!(true), &json!(1)));
        assert!(!same(&json!(1), &json!(2)));
        assert!(!same(&json!(null), &json!(0)));
    }

    #[test]
    fn repetition_keeps_the_first_place() {
        let kept = without_repetition(vec![json!({"m": 1}), json!("x"), json!({"m": 1.0})]);

        assert_eq!(Value::Array(kept).to_string(), r#"[{"m":1.0},"x"]"#);
    }
}
