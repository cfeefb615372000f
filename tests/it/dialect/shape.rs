//! Schemas as rich as those of annotated functions, with values that satisfy them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The parts of a generated schema.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Any,
    Free,
    Null,
    Bool,
    Integer { least: i64, exclusive: bool },
    Number,
    Text(usize),
    Listed(Vec<Value>),
    List { items: Box<Shape>, least: usize, unique: bool },
    Tuple { places: Vec<Shape>, least: usize, rest: Option<Box<Shape>> },
    Map { values: Box<Shape>, pattern: bool },
    Union(Vec<Shape>),
    Nullable(Box<Shape>),
    Record { fields: Vec<Field>, others: Option<Box<Shape>>, closed: bool },
    Reference(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    name: String,
    shape: Shape,
    presence: u8,
    described: bool,
}

const NAMES: [&str; 14] = [
    "a",
    "b",
    "c",
    "kind",
    "key",
    "value",
    "choice",
    "item_1",
    "more",
    "additional_properties",
    "arguments",
    "a b",
    "größe[]",
    "$ref",
];

const DEFINITIONS: [&str; 5] = ["Tree", "Chain", "Json", "Expression", "Point"];

/// Texts of different limits, each with values that fit.
const TEXTS: [(&str, [&str; 2]); 5] = [
    (r#"{"type": "string"}"#, ["", "{\"a\": 1}"]),
    (r#"{"type": "string", "pattern": "^[a-z]+$"}"#, ["abc", "null"]),
    (r#"{"type": "string", "format": "date"}"#, ["2024-01-01", "1999-12-31"]),
    (r#"{"type": "string", "format": "binary", "maxLength": 9}"#, ["42", "true"]),
    (r#"{"type": "string", "minLength": 2, "examples": ["xy"]}"#, ["choice", "\"q\""]),
];

/// Definitions that refer to themselves in the ways that types do.
pub(crate) fn definitions() -> Value {
    json!({
        "Tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
            },
            "required": ["name"],
        },
        "Chain": {
            "type": "object",
            "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "next": {"anyOf": [{"$ref": "#/$defs/Chain"}, {"type": "null"}]},
            },
            "required": ["labels"],
        },
        "Json": {"anyOf": [
            {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"},
            {"type": "array", "items": {"$ref": "#/$defs/Json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
        ]},
        "Expression": {"anyOf": [
            {"type": "integer"},
            {
                "type": "object",
                "properties": {
                    "operator": {"enum": ["+", "-"], "type": "string"},
                    "left": {"$ref": "#/$defs/Expression", "description": "The left side"},
                    "right": {"$ref": "#/$defs/Expression"},
                },
                "required": ["operator", "left", "right"],
                "additionalProperties": false,
            },
        ]},
        "Point": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
    })
}

pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let listed = prop::collection::vec(
        prop_oneof![
            Just(json!(1)),
            Just(json!("1")),
            Just(json!("a")),
            Just(json!("")),
            Just(json!(true)),
            Just(json!(null)),
            Just(json!(2.5)),
            Just(json!([1])),
            Just(json!({"a": "b"})),
        ],
        1..5,
    );
    let leaf = prop_oneof![
        Just(Shape::Any),
        Just(Shape::Free),
        Just(Shape::Null),
        Just(Shape::Bool),
        (-5..5i64, any::<bool>()).prop_map(|(least, exclusive)| Shape::Integer { least, exclusive }),
        Just(Shape::Number),
        (0..TEXTS.len()).prop_map(Shape::Text),
        listed.prop_map(|mut values| {
            let mut unique: Vec<Value> = Vec::new();
            values.retain(|value| {
                !unique.contains(value) && {
                    unique.push(value.clone());
                    true
                }
            });
            Shape::Listed(values)
        }),
        (0..DEFINITIONS.len()).prop_map(Shape::Reference),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            (boxed.clone(), 0..2usize, any::<bool>()).prop_map(|(items, least, unique)| Shape::List {
                items,
                least,
                unique
            }),
            (prop::collection::vec(inner.clone(), 1..4), 0..4usize, prop::option::of(boxed.clone()))
                .prop_map(|(places, least, rest)| Shape::Tuple { least: least.min(places.len()), places, rest }),
            (boxed.clone(), any::<bool>()).prop_map(|(values, pattern)| Shape::Map { values, pattern }),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Shape::Union),
            boxed.clone().prop_map(Shape::Nullable),
            (fields(inner, 1..4), prop::option::of(boxed), any::<bool>())
                .prop_map(|(fields, others, closed)| { Shape::Record { fields, others, closed } }),
        ]
    })
}

fn fields(inner: impl Strategy<Value = Shape>, size: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Field>> {
    let field = (prop::sample::select(&NAMES[..]), inner, 0..4u8, any::<bool>());
    prop::collection::vec(field, size).prop_map(|fields| {
        let mut named: Vec<Field> = Vec::new();
        for (name, shape, presence, described) in fields {
            if !named.iter().any(|field| field.name == name) {
                named.push(Field { name: name.to_owned(), shape, presence, described });
            }
        }
        named
    })
}

/// The parameters of a tool.
pub(crate) fn parameters() -> impl Strategy<Value = Shape> {
    fields(shape(), 0..5).prop_map(|fields| Shape::Record { fields, others: None, closed: false })
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

impl Shape {
    /// The whole document.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.schema();
        let text = document.to_string();
        let Value::Object(all) = definitions() else { unreachable!("an object was written") };
        let used: Map<String, Value> =
            all.into_iter().filter(|(name, _)| text.contains(&format!("#/$defs/{name}\""))).collect();
        if !used.is_empty() {
            document["$defs"] = Value::Object(used);
        }
        document
    }

    fn schema(&self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Free => json!({"type": "object", "additionalProperties": true}),
            Self::Null => json!({"type": "null"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Integer { least, exclusive: true } => json!({"type": "integer", "exclusiveMinimum": least}),
            Self::Integer { least, .. } => json!({"type": "integer", "minimum": least, "multipleOf": 1}),
            Self::Number => json!({"type": "number", "maximum": 1000.5}),
            Self::Text(index) => serde_json::from_str(TEXTS[*index].0).unwrap(),
            Self::Listed(values) if values.len() == 1 => json!({"const": values[0]}),
            Self::Listed(values) => json!({"enum": values}),
            Self::List { items, least, unique } => {
                let mut schema = json!({"type": "array", "items": items.schema(), "minItems": least});
                if *unique {
                    schema["uniqueItems"] = json!(true);
                }
                schema
            }
            Self::Tuple { places, least, rest } => {
                let places: Vec<Value> = places.iter().map(Shape::schema).collect();
                let mut schema = json!({"type": "array", "prefixItems": places, "minItems": least});
                match rest {
                    Some(rest) => schema["items"] = rest.schema(),
                    None => schema["maxItems"] = json!(places.len()),
                }
                schema
            }
            Self::Map { values, pattern: true } => {
                json!({"type": "object", "patternProperties": {"^k": values.schema()}, "additionalProperties": false})
            }
            Self::Map { values, .. } => json!({"type": "object", "additionalProperties": values.schema()}),
            Self::Union(shapes) => json!({"anyOf": shapes.iter().map(Shape::schema).collect::<Vec<_>>()}),
            Self::Nullable(shape) => json!({"anyOf": [shape.schema(), {"type": "null"}]}),
            Self::Reference(index) => json!({"$ref": format!("#/$defs/{}", DEFINITIONS[*index])}),
            Self::Record { fields, others, closed } => {
                let mut properties = Map::new();
                let mut required = Vec::new();
                for field in fields {
                    let mut schema = field.shape.schema();
                    match field.presence {
                        0 | 1 => required.push(field.name.clone()),
                        2 => {}
                        _ => schema["default"] = field.default(),
                    }
                    if field.described {
                        schema["description"] = json!("What it is for");
                    }
                    properties.insert(field.name.clone(), schema);
                }
                let mut schema = json!({"type": "object", "properties": properties});
                if !required.is_empty() {
                    schema["required"] = json!(required);
                }
                match (others, closed) {
                    (Some(others), _) => schema["additionalProperties"] = others.schema(),
                    (None, true) => schema["additionalProperties"] = json!(false),
                    (None, false) => {}
                }
                schema
            }
        }
    }

    /// A value that satisfies the schema.
    pub(crate) fn sample(&self, dice: &mut Dice, depth: usize) -> Value {
        let below = depth + 1;
        let some = |dice: &mut Dice| if depth > 4 { 0 } else { dice.roll(3) };
        match self {
            Self::Any => anything(dice),
            Self::Free => json!({"a": anything(dice), "b c": [1]}),
            Self::Null => Value::Null,
            Self::Bool => json!(dice.roll(2) == 0),
            Self::Integer { least, .. } => json!(least + 1 + i64::try_from(dice.roll(9)).unwrap()),
            Self::Number => json!([0, -3, 7][dice.roll(3)]),
            Self::Text(index) => json!(TEXTS[*index].1[dice.roll(2)]),
            Self::Listed(values) => values[dice.roll(values.len())].clone(),
            Self::List { items, least, unique } => {
                let mut list: Vec<Value> = Vec::new();
                for _ in 0..(least + some(dice)) {
                    let item = items.sample(dice, below);
                    if !unique || !list.contains(&item) {
                        list.push(item);
                    }
                }
                Value::Array(list)
            }
            Self::Tuple { places, least, rest } => {
                let count = least + dice.roll(places.len() - least + 1);
                let mut list: Vec<Value> = places[..count].iter().map(|place| place.sample(dice, below)).collect();
                if let Some(rest) = rest.as_ref().filter(|_| count == places.len()) {
                    list.extend((0..some(dice)).map(|_| rest.sample(dice, below)));
                }
                Value::Array(list)
            }
            Self::Map { values, .. } => {
                let keys = ["k1", "key", "k b"];
                (0..some(dice)).map(|index| (keys[index].to_owned(), values.sample(dice, below))).collect()
            }
            Self::Union(shapes) => shapes[dice.roll(shapes.len())].sample(dice, below),
            Self::Nullable(shape) => {
                if dice.roll(3) == 0 {
                    Value::Null
                } else {
                    shape.sample(dice, below)
                }
            }
            Self::Record { fields, others, .. } => {
                let mut record = Map::new();
                for field in fields {
                    if field.presence < 2 || dice.roll(2) == 0 {
                        let value = field.shape.sample(dice, below);
                        // Where `null` is the default, it and nothing are the same.
                        if field.presence < 3 || !value.is_null() || !field.default().is_null() {
                            record.insert(field.name.clone(), value);
                        }
                    }
                }
                if let Some(others) = others {
                    for name in ["other", "o t"].into_iter().take(some(dice)) {
                        record.insert(name.to_owned(), others.sample(dice, below));
                    }
                }
                Value::Object(record)
            }
            Self::Reference(index) => referred(DEFINITIONS[*index], dice, depth),
        }
    }
}

impl Field {
    fn default(&self) -> Value {
        if self.described { Value::Null } else { self.shape.sample(&mut Dice(self.name.len() as u64), 5) }
    }
}

fn anything(dice: &mut Dice) -> Value {
    let values =
        [json!(null), json!(1), json!("text"), json!("42"), json!([1, {"a": null}]), json!({"k": "v"}), json!(true)];
    values[dice.roll(values.len())].clone()
}

fn referred(name: &str, dice: &mut Dice, depth: usize) -> Value {
    let is_end = depth > 7 || dice.roll(2) == 0;
    let again = |dice: &mut Dice| referred(name, dice, depth + 1);
    match name {
        "Tree" if is_end => json!({"name": "leaf"}),
        "Tree" => json!({"name": "node", "children": [again(dice), again(dice)]}),
        "Chain" if is_end => json!({"labels": {}}),
        "Chain" if dice.roll(3) == 0 => json!({"labels": {"a": "b"}, "next": null}),
        "Chain" => json!({"labels": {"key": "value"}, "next": again(dice)}),
        "Json" if is_end => [json!(null), json!("s"), json!(1.5), json!(false)][dice.roll(4)].clone(),
        "Json" => {
            if dice.roll(2) == 0 {
                json!([again(dice), []])
            } else {
                json!({"k": again(dice), "": {}})
            }
        }
        "Expression" if is_end => json!(dice.roll(100)),
        "Expression" => json!({"operator": "+", "left": again(dice), "right": again(dice)}),
        _ => json!([dice.roll(10), "north"]),
    }
}
