//! How large an encoded schema is, by what providers count.

use serde_json::Value;

use super::rules::Rules;

#[derive(Default)]
struct Measure {
    properties: usize,
    listed: usize,
    characters: usize,
    nesting: usize,
}

/// Whether a schema is within the limits of a dialect.
pub(super) fn fits(schema: &Value, rules: &Rules) -> bool {
    let mut measure = Measure::default();
    measure.schema(schema, 0);
    measure.properties <= rules.properties
        && measure.listed <= rules.listed
        && measure.characters <= rules.characters
        && measure.nesting <= rules.depth
}

impl Measure {
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Value::Object(map) = schema else { return };
        let is_container = map.contains_key("properties") || map.contains_key("items");
        let depth = depth + usize::from(is_container);
        self.nesting = self.nesting.max(depth);
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    self.properties += properties.len();
                    for (name, property) in properties {
                        self.characters += name.chars().count();
                        self.schema(property, depth);
                    }
                }
                ("$defs", Value::Object(definitions)) => {
                    for (name, definition) in definitions {
                        self.characters += name.chars().count();
                        self.schema(definition, 0);
                    }
                }
                ("items", schema) => self.schema(schema, depth),
                ("anyOf", Value::Array(choices)) => choices.iter().for_each(|choice| self.schema(choice, depth)),
                ("enum", Value::Array(values)) => {
                    self.listed += values.len();
                    self.characters += values.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
                }
                _ => {}
            }
        }
    }
}
