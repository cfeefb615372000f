//! The names of definitions: short where they are unique, with their module where they are not.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::order::same;

/// Where references to definitions begin.
pub const PREFIX: &str = "#/$defs/";

/// The names one definition could have, the best first.
///
/// A reference looks like `module.Outer.Name:id[arg:id,…]`: the identities keep two types of the same name apart and
/// are never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    choices: [String; 6],
}

impl Names {
    /// Works out the names for `reference`, the `occurrence`-th one that is equal but for its identities.
    #[must_use]
    pub fn of(reference: &str, occurrence: usize) -> Self {
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
    #[must_use]
    pub fn short_of(reference: &str) -> String {
        normal(&components(reference).into_iter().map(without_path).collect::<String>())
    }

    /// The name that no other definition has.
    #[must_use]
    pub fn unique(&self) -> &str {
        &self.choices[5]
    }

    /// The name with its module, without an occurrence: two types that share it need counting.
    #[must_use]
    pub fn full_of(reference: &str) -> String {
        normal(&components(reference).concat())
    }
}

/// Splits at brackets and commas, keeping them, and drops the identity of each piece.
fn components(reference: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = reference;
    while let Some(at) = rest.find(['[', ']', ',']) {
        parts.push(without_identity(&rest[..at]));
        parts.push(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    parts.push(without_identity(rest));
    parts
}

fn without_identity(part: &str) -> &str {
    part.rsplit_once(':').map_or(part, |(name, _)| name)
}

/// Leaves only the last segment of every dotted path.
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

/// Gives each definition the best name that stands for one schema only, and follows it in every reference.
///
/// `definitions` come under their unique names; `schema` is renamed along with them.
pub fn shorten(definitions: Vec<(Names, Value)>, schema: &mut Value) -> Map<String, Value> {
    let (names, mut bodies): (Vec<Names>, Vec<Value>) = definitions.into_iter().unzip();
    let mut chosen = vec![5; names.len()];
    // Each round can make two definitions equal that differed in the name of a third, so it ends after as many rounds.
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
    names.iter().zip(chosen).zip(bodies).map(|((name, best), body)| (name.choices[best].clone(), body)).collect()
}

/// Renames references by `names`; tells whether there was anything to rename.
fn rename(value: &mut Value, names: &HashMap<String, String>) -> bool {
    let mut changed = false;
    match value {
        Value::Object(node) => {
            for (key, inner) in node.iter_mut() {
                if key == "$ref"
                    && let Value::String(reference) = inner
                {
                    if let Some(name) = reference.strip_prefix(PREFIX).and_then(|name| names.get(name)) {
                        let new = format!("{PREFIX}{name}");
                        changed |= new != *reference;
                        *reference = new;
                    }
                } else {
                    changed |= rename(inner, names);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                changed |= rename(item, names);
            }
        }
        _ => {}
    }
    changed
}

/// Adds foreign `definitions` to ours and renames what `schema` refers to where a name is taken by something else.
pub fn adopt(ours: &mut Map<String, Value>, mut definitions: Map<String, Value>, schema: &mut Value) {
    let mut renamed: HashMap<String, String> = HashMap::new();
    for (name, body) in &definitions {
        if ours.get(name).is_some_and(|own| !same(own, body)) {
            let mut number = 2;
            while ours.contains_key(&format!("{name}__{number}"))
                || definitions.contains_key(&format!("{name}__{number}"))
            {
                number += 1;
            }
            let free = format!("{name}__{number}");
            renamed.insert(name.clone(), free);
        }
    }
    if !renamed.is_empty() {
        rename(schema, &renamed);
        definitions.values_mut().for_each(|body| {
            rename(body, &renamed);
        });
    }
    for (name, body) in definitions {
        ours.insert(renamed.get(&name).cloned().unwrap_or(name), body);
    }
}

/// The names of the definitions that `value` refers to.
pub fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(node) => {
            for (key, inner) in node {
                match inner {
                    // Examples are values, not schemas, even where they look like one.
                    Value::Array(_) if key == "examples" => {}
                    Value::String(reference) if key == "$ref" => {
                        found.extend(reference.strip_prefix(PREFIX).map(str::to_owned));
                    }
                    _ => references(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_gives_a_short_and_a_full_name() {
        let names = Names::of("pkg.mod.Outer.<locals>.Box:140[int:94,pkg.Point:95]", 1);

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
        let a = Names::of("a.X:1", 1);
        let b = Names::of("b.X:2", 1);
        let mut schema = json!({"p": {"$ref": format!("{PREFIX}{}", a.unique())}});

        let definitions = shorten(vec![(a, json!({"type": "string"})), (b, json!({"type": "integer"}))], &mut schema);

        assert_eq!(Value::Object(definitions), json!({"a__X": {"type": "string"}, "b__X": {"type": "integer"}}));
        assert_eq!(schema, json!({"p": {"$ref": "#/$defs/a__X"}}));
    }

    #[test]
    fn equal_types_of_one_name_become_one() {
        let mut schema = json!({});

        let definitions = shorten(
            vec![
                (Names::of("a.X:1", 1), json!({"type": "string"})),
                (Names::of("b.X:2", 1), json!({"type": "string"})),
            ],
            &mut schema,
        );

        assert_eq!(Value::Object(definitions), json!({"X": {"type": "string"}}));
    }

    #[test]
    fn an_adopted_definition_gives_way() {
        let mut ours = Map::new();
        ours.insert("X".to_owned(), json!({"type": "string"}));
        let mut schema = json!({"$ref": "#/$defs/X"});
        let mut theirs = Map::new();
        theirs.insert("X".to_owned(), json!({"type": "integer"}));

        adopt(&mut ours, theirs, &mut schema);

        assert_eq!(schema, json!({"$ref": "#/$defs/X__2"}));
        assert_eq!(Value::Object(ours), json!({"X": {"type": "string"}, "X__2": {"type": "integer"}}));
    }
}
