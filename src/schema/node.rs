//! The pieces that schemas are put together from.

use super::tree::{Entries, Node};

use super::order::{is_whole, without_repetition};

pub(super) fn literal(values: &[Node]) -> Node {
    let mut schema = match values {
        [only] => object([("const", only.clone())]),
        several => object([("enum", Node::Array(several.to_vec()))]),
    };
    if let Some(kind) = common_kind(values) {
        schema.insert("type", Node::from(kind));
    }
    Node::Object(schema)
}

pub(super) fn enumeration(values: &[Node], description: Option<&str>) -> Node {
    let mut schema = Entries::new();
    if let Some(description) = description {
        schema.insert("description", Node::from(description.to_owned()));
    }
    schema.insert("enum", Node::Array(values.to_vec()));
    if let Some(kind) = common_kind(values).filter(|kind| *kind != "null") {
        schema.insert("type", Node::from(kind));
    }
    Node::Object(schema)
}

/// The type that all of `values` have, if they have one in common.
pub(super) fn common_kind(values: &[Node]) -> Option<&'static str> {
    let mut kinds = values.iter().map(|value| match value {
        Node::Null => Some("null"),
        Node::Bool(_) => Some("boolean"),
        Node::Number(number) if is_whole(number) => Some("integer"),
        Node::Number(_) => Some("number"),
        Node::String(_) => Some("string"),
        Node::Array(_) => Some("array"),
        Node::Object(_) => None,
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

pub(super) fn any_of(schemas: Vec<Node>) -> Node {
    let mut members = Vec::with_capacity(schemas.len());
    for schema in schemas {
        match schema {
            Node::Object(mut node) if node.len() == 1 && node.contains_key("anyOf") => match node.remove("anyOf") {
                Some(Node::Array(inner)) => members.extend(inner),
                other => members.extend(other),
            },
            other => members.push(other),
        }
    }
    let mut members = without_repetition(members);
    if members.len() == 1 { members.swap_remove(0) } else { one("anyOf", Node::Array(members)) }
}

pub(super) fn typed(kind: &'static str) -> Node {
    one("type", Node::from(kind))
}

pub(super) fn formatted(format: &'static str) -> Node {
    Node::Object(object([("format", Node::from(format)), ("type", Node::from("string"))]))
}

pub(super) fn one(key: &'static str, value: Node) -> Node {
    Node::Object(object([(key, value)]))
}

pub(super) fn object<const N: usize>(entries: [(&'static str, Node); N]) -> Entries {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

pub(super) fn into_object(schema: Node) -> Entries {
    match schema {
        Node::Object(node) => node,
        _ => Entries::new(),
    }
}

pub(super) fn insert(schema: &mut Node, key: &'static str, value: Node) {
    if let Node::Object(node) = schema {
        node.insert(key, value);
    }
}

pub(super) fn overwrite(schema: &mut Node, keys: &Entries) {
    if let Node::Object(node) = schema {
        node.overwrite(keys);
    }
}
