//! Normal form of schemas: the order of keys, equality, and no titles.

use crate::json::Node;
use crate::json::number::is_integer_text;

/// Sorts the keys of `schema` alphabetically, at all levels.
///
/// Properties keep the order of the signature, and defaults the order they were written in.
pub(crate) fn sort_keys(schema: &mut Node) {
    sort_below(schema, "");
}

fn sort_below(value: &mut Node, parent: &str) {
    match value {
        Node::Object(node) => {
            if !matches!(parent, "properties" | "default") {
                node.sort_keys();
            }
            for (key, inner) in node.as_mut_slice() {
                // Most values are scalars.
                if matches!(inner, Node::Object(_) | Node::Array(_)) {
                    sort_below(inner, key);
                }
            }
        }
        Node::Array(items) => items.iter_mut().for_each(|item| sort_below(item, parent)),
        _ => {}
    }
}

/// Removes duplicates: of each group of equal schemas, the last is kept in the place of the first.
pub(super) fn without_repetition(schemas: Vec<Node>) -> Vec<Node> {
    let mut kept: Vec<Node> = Vec::with_capacity(schemas.len());
    for schema in schemas {
        match kept.iter_mut().find(|other| same(other, &schema)) {
            Some(other) => *other = schema,
            None => kept.push(schema),
        }
    }
    kept
}

/// True if two schemas are equal, where `1`, `1.0` and `true` are one value and the order of keys does not count.
pub(crate) fn same(left: &Node, right: &Node) -> bool {
    match (left, right) {
        (Node::Object(a), Node::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (Node::Array(a), Node::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Node::Number(a), Node::Number(b)) => {
            let are_integers = || is_integer_text(a.as_str()) && is_integer_text(b.as_str());
            a == b || (a.as_f64() == b.as_f64() && !are_integers())
        }
        (Node::Bool(flag), Node::Number(number)) | (Node::Number(number), Node::Bool(flag)) => {
            number.as_f64() == Some(f64::from(u8::from(*flag)))
        }
        _ => left == right,
    }
}

/// Removes the titles of `schema`, of its properties, its items and its definitions. They repeat what the names say.
///
/// Titles inside `anyOf` and `prefixItems` stay: there they are the only name of a part.
pub fn remove_titles(schema: &mut Node) {
    let Node::Object(node) = schema else { return };
    node.remove("title");
    for group in ["properties", "$defs"] {
        if let Some(Node::Object(members)) = node.get_mut(group) {
            members.values_mut().for_each(remove_titles);
        }
    }
    for part in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(part) {
            remove_titles(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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

    #[test]
    fn titles_are_removed_and_a_property_of_that_name_stays() {
        let mut schema = Node::from(json!({
            "title": "T",
            "properties": {"title": {"title": "Title", "type": "string"}},
            "$defs": {"D": {"title": "D", "items": {"title": "I"}, "additionalProperties": {"title": "A"}}},
        }));

        remove_titles(&mut schema);

        assert_eq!(
            Value::from(schema),
            json!({
                "properties": {"title": {"type": "string"}},
                "$defs": {"D": {"items": {}, "additionalProperties": {}}},
            })
        );
    }

    #[test]
    fn titles_of_alternatives_and_places_stay() {
        let before =
            Node::from(json!({"anyOf": [{"title": "A"}], "prefixItems": [{"title": "B"}], "items": [{"title": "C"}]}));
        let mut after = before.clone();

        remove_titles(&mut after);

        assert_eq!(after, before);
    }

    #[test]
    fn a_schema_that_is_not_an_object_is_left_alone() {
        let mut schema = Node::from(json!({"additionalProperties": true, "items": false}));

        remove_titles(&mut schema);

        assert_eq!(Value::from(schema), json!({"additionalProperties": true, "items": false}));
    }
}
