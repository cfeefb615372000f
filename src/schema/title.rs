//! The removal of titles, which say nothing that a name does not.

use super::tree::Node;

/// Deletes the titles of `schema`, of its properties, its items and its definitions.
///
/// Titles inside `anyOf` and `prefixItems` stay: there they are the only name a part has.
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
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn titles_go_and_a_property_of_that_name_stays() {
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
    fn what_is_no_object_is_left_alone() {
        let mut schema = Node::from(json!({"additionalProperties": true, "items": false}));

        remove_titles(&mut schema);

        assert_eq!(Value::from(schema), json!({"additionalProperties": true, "items": false}));
    }
}
