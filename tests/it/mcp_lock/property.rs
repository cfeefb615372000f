//! The classes of changes are sound, for any two schemas and any value.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use toolcrib::mcp::lock::ChangeClass;
use toolcrib::schema::check::{Checker, Mode};

use super::{change, taking};

const NAMES: [&str; 4] = ["a", "b", "ab", "title"];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

fn scalars() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(2),
        json!(1.0),
        json!(2.5),
        json!(4),
        json!(""),
        json!("a"),
        json!("ab"),
        json!("2020-01-01"),
    ])
}

fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(select(NAMES.to_vec()), inner, 0..4)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn numbers() -> impl Strategy<Value = Value> {
    select(vec![json!(0), json!(1), json!(2), json!(3), json!(1.0), json!(1.5)])
}

fn sizes() -> impl Strategy<Value = Value> {
    (0u64..4).prop_map(Value::from)
}

/// A keyword with a value, whose parts are made of `inner`.
fn keywords(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let list = proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
    let map = proptest::collection::btree_map(select(NAMES.to_vec()), inner.clone(), 0..4);
    let map = map.prop_map(|entries| -> Value { entries.into_iter().map(|(key, it)| (key.to_owned(), it)).collect() });
    let names = || subsequence(NAMES.to_vec(), 0..4).prop_map(Value::from);
    let plain = prop_oneof![
        3 => (Just("type"), prop_oneof![select(TYPES.to_vec()).prop_map(Value::from), subsequence(TYPES.to_vec(), 1..4).prop_map(Value::from)]),
        2 => (Just("enum"), proptest::collection::btree_set(0..12usize, 1..4).prop_map(|at| at.into_iter().map(|at| [json!(null), json!(true), json!(0), json!(1), json!(2), json!(1.0), json!(2.5), json!(4), json!(""), json!("a"), json!("ab"), json!([])][at].clone()).collect())),
        1 => (Just("const"), scalars()),
        2 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), numbers()),
        2 => (select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"]), sizes()),
        1 => (Just("multipleOf"), select(vec![json!(1), json!(2), json!(4), json!(0.5)])),
        1 => (Just("uniqueItems"), any::<bool>().prop_map(Value::from)),
        1 => (Just("pattern"), select(vec![json!("^a"), json!("b$")])),
        1 => (Just("format"), select(vec![json!("date"), json!("uuid")])),
        2 => (select(vec!["description", "title", "default"]), select(vec![json!("x"), json!("y")])),
        2 => (Just("required"), names()),
        1 => (Just("dependentRequired"), names().prop_map(|names| json!({"a": names}))),
        1 => (Just("$ref"), select(vec![json!("#/$defs/one"), json!("#/$defs/two"), json!("#")])),
    ];
    let nested = prop_oneof![
        3 => (Just("properties"), map.clone()),
        2 => (select(vec!["additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems"]), inner.clone()),
        2 => (select(vec!["anyOf", "anyOf", "allOf", "oneOf", "prefixItems"]), list),
        1 => (Just("patternProperties"), inner.clone().prop_map(|schema| json!({"^a": schema}))),
        1 => (Just("dependentSchemas"), inner.prop_map(|schema| json!({"a": schema}))),
    ];
    prop_oneof![3 => plain, 2 => nested].prop_map(|(key, value)| (key.to_owned(), value)).boxed()
}

fn schema_of(keywords: BoxedStrategy<(String, Value)>) -> BoxedStrategy<Value> {
    let object = proptest::collection::vec(keywords, 0..4).prop_map(|it| Value::Object(it.into_iter().collect()));
    prop_oneof![8 => object, 1 => any::<bool>().prop_map(Value::from)].boxed()
}

fn schemas() -> BoxedStrategy<Value> {
    let mut schemas = schema_of(keywords(Just(json!({})).boxed()));
    for _ in 0..2 {
        schemas = schema_of(keywords(schemas));
    }
    schemas
}

/// A schema for the arguments of a tool, with definitions.
fn roots() -> impl Strategy<Value = Value> {
    let properties = proptest::collection::btree_map(select(NAMES.to_vec()), schemas(), 0..4);
    let more = proptest::option::of(keywords(schemas()));
    let draft = proptest::option::weighted(0.2, Just(json!("http://json-schema.org/draft-07/schema#")));
    (properties, more, schemas(), schemas(), draft).prop_map(|(properties, more, one, two, draft)| {
        let properties: Map<String, Value> = properties.into_iter().map(|(key, it)| (key.to_owned(), it)).collect();
        let mut root = json!({"type": "object", "properties": properties, "$defs": {"one": one, "two": two}});
        if let Some(draft) = draft {
            root["$schema"] = draft;
        }
        if let Some((keyword, value)) = more.filter(|(keyword, _)| keyword != "$ref") {
            root[&keyword] = value;
        }
        root
    })
}

/// An edit of a schema at a place.
#[derive(Debug, Clone)]
enum Edit {
    Set(String, Value),
    Remove(Index),
    Replace(Value),
    Optional,
    Grow(Index, Value),
    Shrink(Index),
}

fn edits() -> impl Strategy<Value = (Index, Edit)> {
    let edit = prop_oneof![
        4 => keywords(schemas()).prop_map(|(keyword, value)| Edit::Set(keyword, value)),
        4 => any::<Index>().prop_map(Edit::Remove),
        1 => schemas().prop_map(Edit::Replace),
        1 => Just(Edit::Optional),
        3 => (any::<Index>(), prop_oneof![scalars(), schemas()]).prop_map(|(at, value)| Edit::Grow(at, value)),
        3 => any::<Index>().prop_map(Edit::Shrink),
    ];
    (any::<Index>(), edit)
}

/// The places of all objects and lists in a value.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            found.push(path.to_owned());
            entries.iter().for_each(|(key, value)| places(value, &format!("{path}/{key}"), found));
        }
        Value::Array(items) => {
            found.push(path.to_owned());
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{path}/{index}"), found));
        }
        _ => {}
    }
}

fn edited(root: &Value, edits: &[(Index, Edit)]) -> Value {
    let mut root = root.clone();
    for (at, edit) in edits {
        let mut found = Vec::new();
        places(&root, "", &mut found);
        if found.is_empty() {
            continue;
        }
        let place = root.pointer_mut(at.get(&found).as_str()).expect("a place");
        match (edit, place) {
            (Edit::Set(keyword, value), Value::Object(entries)) => _ = entries.insert(keyword.clone(), value.clone()),
            (Edit::Remove(at), Value::Object(entries)) if !entries.is_empty() => {
                let keys: Vec<String> = entries.keys().cloned().collect();
                let key = at.get(&keys).clone();
                entries.shift_remove(&key);
            }
            (Edit::Replace(schema), place @ Value::Object(_)) => *place = schema.clone(),
            (Edit::Optional, place @ Value::Object(_)) => *place = json!({"anyOf": [place.take(), {"type": "null"}]}),
            (Edit::Grow(at, value), Value::Array(items)) => items.insert(at.index(items.len() + 1), value.clone()),
            (Edit::Shrink(at), Value::Array(items)) if !items.is_empty() => _ = items.remove(at.index(items.len())),
            _ => {}
        }
    }
    root
}

fn accepts(checker: &Checker, value: &Value) -> bool {
    checker.check(value, Mode::Check, &[]).is_ok()
}

#[test]
fn the_cases_have_changes_of_every_class() {
    let mut runner = TestRunner::deterministic();
    let cases = (roots(), proptest::collection::vec(edits(), 1..4));
    let mut found: HashMap<ChangeClass, usize> = HashMap::new();

    for _ in 0..1000 {
        let (before, edits) = cases.new_tree(&mut runner).expect("a case").current();
        let after = edited(&before, &edits);
        if after.is_object() && Checker::compile(&before).is_ok() && Checker::compile(&after).is_ok() {
            let change = change(taking(before), taking(after));
            if let Some(change) = change {
                *found.entry(change.classes[0]).or_default() += 1;
            }
        }
    }

    for class in [ChangeClass::Breaking, ChangeClass::Narrowed, ChangeClass::Widened, ChangeClass::Description] {
        assert!(found.get(&class).is_some_and(|count| *count >= 50), "{found:?}");
    }
}

proptest! {
    // More of them with PROPTEST_CASES.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn arguments_that_were_accepted_are_refused_only_after_a_change_that_says_so(
        before in roots(),
        edits in proptest::collection::vec(edits(), 1..4),
        values in proptest::collection::vec(proptest::collection::btree_map(select(NAMES.to_vec()), values(), 0..4), 16),
    ) {
        let after = edited(&before, &edits);
        prop_assume!(after.is_object());
        let Ok(old) = Checker::compile(&before) else { return Ok(()) };
        let new = Checker::compile(&after);
        let classes = change(taking(before.clone()), taking(after.clone())).map(|it| it.classes).unwrap_or_default();
        let says = |class: ChangeClass| classes.contains(&class) || classes.contains(&ChangeClass::Breaking);

        for value in values {
            let value: Value = value.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let (was, is) = (accepts(&old, &value), new.as_ref().is_ok_and(|new| accepts(new, &value)));
            prop_assert!(!was || is || says(ChangeClass::Narrowed), "{before} -> {after}: {value} {classes:?}");
            prop_assert!(was || !is || says(ChangeClass::Widened), "{before} -> {after}: {value} {classes:?}");
        }
    }

    #[test]
    fn results_are_new_only_after_a_change_that_says_so(
        before in schemas(),
        edits in proptest::collection::vec(edits(), 1..4),
        values in proptest::collection::vec(values(), 16),
    ) {
        let root = |schema: &Value| json!({"anyOf": [schema], "$defs": {"one": {"type": "string"}, "two": {"minimum": 1}}});
        let (before, after) = (root(&before), root(&edited(&before, &edits)));
        let compiled = |schema: &Value| jsonschema::options().should_validate_formats(true).build(schema).ok();
        let (Some(old), Some(new)) = (compiled(&before), compiled(&after)) else { return Ok(()) };
        let returning = |schema: &Value| json!({"name": "send", "inputSchema": {}, "outputSchema": schema});
        let classes = change(returning(&before), returning(&after)).map(|it| it.classes).unwrap_or_default();
        let says = |class: ChangeClass| classes.contains(&class) || classes.contains(&ChangeClass::OutputBreaking);

        for value in values {
            let (was, is) = (old.is_valid(&value), new.is_valid(&value));
            prop_assert!(!was || is || says(ChangeClass::OutputNarrowed), "{before} -> {after}: {value} {classes:?}");
            prop_assert!(was || !is || says(ChangeClass::OutputWidened), "{before} -> {after}: {value} {classes:?}");
        }
    }

    #[test]
    fn a_change_has_a_class_and_is_the_opposite_backwards(before in roots(), edits in proptest::collection::vec(edits(), 1..3)) {
        let after = edited(&before, &edits);
        prop_assume!(after.is_object());
        let forwards = change(taking(before.clone()), taking(after.clone()));
        let backwards = change(taking(after.clone()), taking(before.clone()));

        prop_assert_eq!(forwards.is_some(), backwards.is_some());
        if let (Some(forwards), Some(backwards)) = (forwards, backwards) {
            prop_assert!(!forwards.classes.is_empty() && !forwards.differences.is_empty(), "{} -> {}", before, after);
            prop_assert!(forwards.to_string().len() < 20_000);
            let compiles = Checker::compile(&before).is_ok() && Checker::compile(&after).is_ok();
            let is_opposite = forwards.is(ChangeClass::Widened) == backwards.is(ChangeClass::Narrowed);
            prop_assert!(!compiles || is_opposite, "{} -> {}", before, after);
        }
    }
}
