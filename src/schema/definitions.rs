//! Definitions and the references to them: a definition has a short name where that is unique, and else one with its module.

use std::collections::HashMap;

use super::normalize::same;
use crate::json::{Entries, Node};

/// The beginning of every reference to a definition.
pub(crate) const PREFIX: &str = "#/$defs/";

/// The candidate names of one definition, the best first.
///
/// A reference looks like `module.Outer.Name:id[arg:id,…]`: the ids distinguish two types of the same name and
/// are never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefinitionNames {
    choices: [String; 6],
}

impl DefinitionNames {
    /// The names for `reference`, the `occurrence`-th one that is equal except for its ids.
    pub(super) fn of(reference: &str, occurrence: usize) -> Self {
        let short = Self::short_of(reference);
        let full = Self::full_of(reference);
        Self {
            choices: [
                short.clone(),
                format!("{short}-Input"),
                full.clone(),
                format!("{full}-Input"),
                format!("{full}__{occurrence}"),
                format!("{full}-Input__{occurrence}"),
            ],
        }
    }

    /// The name without its module.
    pub(super) fn short_of(reference: &str) -> String {
        normal(&components(reference).into_iter().map(without_path).collect::<String>())
    }

    /// The name that is unique in any case.
    pub(super) fn unique(&self) -> &str {
        &self.choices[5]
    }

    /// The name with its module. Types that share it are distinguished by their occurrence.
    pub(super) fn full_of(reference: &str) -> String {
        normal(&components(reference).concat())
    }
}

/// Splits at brackets and commas, keeping them, and removes the id of each part.
fn components(reference: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = reference;
    while let Some(at) = rest.find(['[', ']', ',']) {
        parts.push(without_id(&rest[..at]));
        parts.push(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    parts.push(without_id(rest));
    parts
}

fn without_id(part: &str) -> &str {
    part.rsplit_once(':').map_or(part, |(name, _)| name)
}

/// Keeps only the last segment of every dotted path.
fn without_path(part: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut path = false;
    for segment in part.split('.') {
        if path && !segment.is_empty() {
            shown.pop();
        }
        shown.push(segment);
        path = !segment.is_empty();
    }
    shown.join(".")
}

fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '.' => normal.push_str("__"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => normal.push(character),
            _ => normal.push('_'),
        }
    }
    normal
}

/// Gives each definition its best name that stands for one schema only, and updates all references.
///
/// `definitions` come under their unique names; `schema` is renamed along with them.
pub(super) fn shorten(definitions: Vec<(DefinitionNames, Node)>, schema: &mut Node) -> Entries {
    let (names, mut bodies): (Vec<DefinitionNames>, Vec<Node>) = definitions.into_iter().unzip();
    let mut chosen = vec![5; names.len()];
    // Each round can make two definitions equal that differed in the name of a third, so the number of rounds is bounded.
    for _ in 0..=names.len() {
        let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            for choice in &name.choices {
                let group = groups.entry(choice).or_default();
                if !group.contains(&index) {
                    group.push(index);
                }
            }
        }
        let one_schema = |choice: &str| {
            let group = &groups[choice];
            group.iter().all(|index| same(&bodies[*index], &bodies[group[0]]))
        };
        let mut renamed: HashMap<String, String> = HashMap::new();
        let mut changed = false;
        for (index, name) in names.iter().enumerate() {
            let best = name.choices.iter().position(|choice| one_schema(choice)).unwrap_or(5);
            changed |= chosen[index] != best;
            chosen[index] = best;
            for choice in &name.choices[best..] {
                renamed.insert(choice.clone(), name.choices[best].clone());
            }
        }
        for body in &mut bodies {
            changed |= rename(body, &renamed);
        }
        rename(schema, &renamed);
        if !changed {
            break;
        }
    }
    // Equal definitions may have come to share a name.
    let mut shortened = Entries::with_capacity(names.len());
    shortened.extend(
        names.iter().zip(chosen).zip(bodies).map(|((name, best), body)| (name.choices[best].clone().into(), body)),
    );
    shortened
}

/// Renames references by `names`. Returns true if one changed.
fn rename(value: &mut Node, names: &HashMap<String, String>) -> bool {
    let mut changed = false;
    match value {
        Node::Object(node) => {
            for (key, inner) in node.iter_mut() {
                if key == "$ref"
                    && let Node::String(reference) = inner
                {
                    if let Some(name) = reference.strip_prefix(PREFIX).and_then(|name| names.get(name)) {
                        let new = format!("{PREFIX}{name}");
                        changed |= new != *reference;
                        *reference = new.into();
                    }
                } else {
                    changed |= rename(inner, names);
                }
            }
        }
        Node::Array(items) => {
            for item in items {
                changed |= rename(item, names);
            }
        }
        _ => {}
    }
    changed
}

/// Adds foreign `definitions` to ours, renaming those whose name is taken by another schema, also in `schema`.
pub(crate) fn adopt(ours: &mut Entries, mut definitions: Entries, schema: &mut Node) {
    let mut renamed: HashMap<String, String> = HashMap::new();
    for (name, body) in definitions.iter() {
        if ours.get(name).is_some_and(|own| !same(own, body)) {
            let mut number = 2;
            while ours.contains_key(&format!("{name}__{number}"))
                || definitions.contains_key(&format!("{name}__{number}"))
            {
                number += 1;
            }
            let free = format!("{name}__{number}");
            renamed.insert(name.to_owned(), free);
        }
    }
    if !renamed.is_empty() {
        rename(schema, &renamed);
        definitions.values_mut().for_each(|body| {
            rename(body, &renamed);
        });
    }
    for (name, body) in definitions {
        ours.insert(renamed.get(&*name).cloned().map_or(name, Into::into), body);
    }
}

/// Collects the names of the definitions that `value` refers to.
pub(super) fn references(value: &Node, found: &mut Vec<String>) {
    match value {
        Node::Object(node) => {
            for (key, inner) in node.iter() {
                match inner {
                    // Examples are values, not schemas, even if they look like one.
                    Node::Array(_) if key == "examples" => {}
                    Node::String(reference) if key == "$ref" => {
                        found.extend(reference.strip_prefix(PREFIX).map(str::to_owned));
                    }
                    _ => references(inner, found),
                }
            }
        }
        Node::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_reference_gives_a_short_and_a_full_name() {
        let names = DefinitionNames::of("pkg.mod.Outer.<locals>.Box:140[int:94,pkg.Point:95]", 1);

        assert_eq!(names.choices[0], "Box_int_Point_");
        assert_eq!(names.choices[2], "pkg__mod__Outer___locals___Box_int_pkg__Point_");
    }

    #[test]
    fn dots_without_a_name_stay() {
        assert_eq!(without_path("..."), "...");
        assert_eq!(without_path("a.b..c"), "b..c");
        assert_eq!(without_path("a.b."), "b.");
    }

    #[test]
    fn different_types_of_one_name_get_their_module() {
        let a = DefinitionNames::of("a.X:1", 1);
        let b = DefinitionNames::of("b.X:2", 1);
        let mut schema = Node::from(json!({"p": {"$ref": format!("{PREFIX}{}", a.unique())}}));

        let definitions =
            shorten(vec![(a, json!({"type": "string"}).into()), (b, json!({"type": "integer"}).into())], &mut schema);

        assert_eq!(
            Value::from(Node::Object(definitions)),
            json!({"a__X": {"type": "string"}, "b__X": {"type": "integer"}})
        );
        assert_eq!(Value::from(schema), json!({"p": {"$ref": "#/$defs/a__X"}}));
    }

    #[test]
    fn equal_types_of_one_name_become_one() {
        let mut schema = Node::from(json!({}));

        let definitions = shorten(
            vec![
                (DefinitionNames::of("a.X:1", 1), json!({"type": "string"}).into()),
                (DefinitionNames::of("b.X:2", 1), json!({"type": "string"}).into()),
            ],
            &mut schema,
        );

        assert_eq!(Value::from(Node::Object(definitions)), json!({"X": {"type": "string"}}));
    }

    #[test]
    fn an_adopted_definition_is_renamed() {
        let mut ours = Entries::new();
        ours.insert("X", json!({"type": "string"}).into());
        let mut schema = Node::from(json!({"$ref": "#/$defs/X"}));
        let mut theirs = Entries::new();
        theirs.insert("X", json!({"type": "integer"}).into());

        adopt(&mut ours, theirs, &mut schema);

        assert_eq!(Value::from(schema), json!({"$ref": "#/$defs/X__2"}));
        assert_eq!(Value::from(Node::Object(ours)), json!({"X": {"type": "string"}, "X__2": {"type": "integer"}}));
    }
}
