//! How often a schema refers to its own parts, all told.
//!
//! Definitions that use one another twice each double the work at every step: thirty of them are a billion looks at one value. What
//! refers to itself is not counted, because the judge remembers it.

use std::collections::HashMap;

use serde_json::Value;

use super::phrase::pointer;

/// The most parts that a schema may unfold into.
const PARTS: u64 = 10_000_000;
/// How deep references are followed.
const DEPTH: usize = 400;

/// Whether a schema unfolds into more parts than anybody has patience for.
pub(super) fn is_excessive(root: &Value) -> bool {
    let mut known = HashMap::new();
    weigh(root, root, &mut known, 0) > PARTS
}

fn weigh(root: &Value, value: &Value, known: &mut HashMap<String, u64>, depth: usize) -> u64 {
    if depth > DEPTH {
        return u64::MAX;
    }
    let mut weight: u64 = 1;
    let mut add = |more: u64| weight = weight.saturating_add(more);
    match value {
        Value::Array(items) => items.iter().for_each(|item| add(weigh(root, item, known, depth + 1))),
        Value::Object(entries) => {
            for (key, entry) in entries {
                // Definitions weigh where they are referred to.
                if !matches!(key.as_str(), "$defs" | "definitions") {
                    add(weigh(root, entry, known, depth + 1));
                }
            }
            if let Some(pointer) = pointer(entries) {
                if !known.contains_key(&pointer) {
                    known.insert(pointer.clone(), 1);
                    let weight = root.pointer(&pointer).map_or(1, |target| weigh(root, target, known, depth + 1));
                    known.insert(pointer.clone(), weight);
                }
                add(known.get(&pointer).copied().unwrap_or(1));
            }
        }
        _ => {}
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn definitions_that_double_are_excessive() {
        let definitions: Map<String, Value> = (0..40)
            .map(|index| {
                let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
                (format!("d{index}"), json!({"anyOf": [next, next]}))
            })
            .collect();

        assert!(is_excessive(&json!({"$ref": "#/$defs/d0", "$defs": definitions})));
    }

    #[test]
    fn recursion_is_not() {
        let tree = json!({"anyOf": [{"$ref": "#/$defs/tree"}, {"items": {"$ref": "#/$defs/tree"}}]});

        assert!(!is_excessive(&json!({"properties": {"x": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}})));
    }
}
