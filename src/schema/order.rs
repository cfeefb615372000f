//! The order of keys in a schema, and when two schemas are the same.

use serde_json::Number;

use super::tree::Node;

/// Puts the keys of `schema` into alphabetical order, all the way down.
///
/// Properties keep the order of the signature, and defaults the order they were written in.
pub fn sort_keys(schema: &mut Node) {
    sort_below(schema, "");
}

fn sort_below(value: &mut Node, parent: &str) {
    match value {
        Node::Object(node) => {
            if !matches!(parent, "properties" | "default") {
                node.sort_keys();
            }
            for (key, inner) in node.as_mut_slice() {
                // Most values have nothing below them.
                if matches!(inner, Node::Object(_) | Node::Array(_)) {
                    sort_below(inner, key);
                }
            }
        }
        Node::Array(items) => items.iter_mut().for_each(|item| sort_below(item, parent)),
        _ => {}
    }
}

/// Keeps one of each group of equal schemas: the place of the first, the text of the last.
#[must_use]
pub fn without_repetition(schemas: Vec<Node>) -> Vec<Node> {
    let mut kept: Vec<Node> = Vec::with_capacity(schemas.len());
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
pub fn same(left: &Node, right: &Node) -> bool {
    match (left, right) {
        (Node::Object(a), Node::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (Node::Array(a), Node::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Node::Number(a), Node::Number(b)) => a == b || (a.as_f64() == b.as_f64() && !(is_whole(a) && is_whole(b))),
        (Node::Bool(flag), Node::Number(number)) | (Node::Number(number), Node::Bool(flag)) => {
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
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keys_are_sorted_except_in_properties_and_defaults() {
        let mut schema = Node::from(
            json!({"type": "object", "properties": {"b": {"type": "x", "default": {"z": 1, "a": 2}}, "a": {}}}),
        );

        sort_keys(&mut schema);

        assert_eq!(
            Value::from(schema).to_string(),
            r#"{"properties":{"b":{"default":{"z":1,"a":2},"type":"x"},"a":{}},"type":"object"}"#
        );
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let same = |one: Value, other: Value| same(&one.into(), &other.into());

        assert!(same(json!({"a": [1]}), json!({"a": [1.0]})));
        assert!(same(json!(true), json!(1)));
        assert!(!same(json!(1), json!(2)));
        assert!(!same(json!(null), json!(0)));
    }

    #[test]
    fn repetition_keeps_the_first_place() {
        let kept = without_repetition([json!({"m": 1}), json!("x"), json!({"m": 1.0})].map(Node::from).into());

        assert_eq!(Value::from(Node::Array(kept)).to_string(), r#"[{"m":1.0},"x"]"#);
    }
}
