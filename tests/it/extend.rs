//! The merge of models into parameters, held to what AgentScope makes of the same.

#![allow(clippy::expect_used)]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib::Error;
use toolcrib::schema::extend;
use toolcrib::schema::extend::{added, loosen};

const CASES: &str = include_str!("../data/extended_cases.json");

#[test]
fn every_recorded_model_is_merged_as_agentscope_does() {
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the cases are JSON");

    for case in &cases {
        let tool = case["tool"].as_str().expect("a name");
        let merged = extend(&case["parameters"], tool, case["model"].clone());

        match case.get("error").and_then(Value::as_str) {
            Some(text) => assert_eq!(merged.expect_err("a conflict").to_string(), text, "{}", case["name"]),
            None => assert_eq!(merged.expect("no conflict"), case["merged"], "{}", case["name"]),
        }
    }
}

#[test]
fn a_definition_of_the_same_content_is_kept_as_it_was() {
    let point = |title: &str| json!({"title": title, "type": "object"});
    let own = json!({"properties": {}, "$defs": {"Point": point("Own")}});
    let model = json!({"properties": {"a": {"$ref": "#/$defs/Point"}}, "$defs": {"Point": point("Other")}});

    let merged = extend(&own, "f", model).expect("the same but for titles");

    assert_eq!(merged["$defs"]["Point"], point("Own"));
}

#[test]
fn a_refused_merge_says_which_tool() {
    let own = json!({"properties": {"a": {}}});

    let error = extend(&own, "f", json!({"properties": {"a": {}}})).expect_err("a conflict");

    assert_eq!(error, Error::FieldConflict { tool: "f".to_owned(), field: "a".to_owned() });
}

fn object(names: Vec<String>) -> Value {
    let required: Vec<Value> = names.iter().step_by(2).map(|name| json!(name)).collect();
    let properties: Map<String, Value> = names.into_iter().map(|name| (name, json!({"type": "string"}))).collect();
    json!({"properties": properties, "required": required, "type": "object"})
}

proptest! {
    #[test]
    fn for_any_names_a_merge_has_all_of_them_or_is_refused(
        own in prop::collection::vec("[a-e]{1,2}", 0..6),
        fields in prop::collection::vec("[a-e]{1,2}", 0..6),
    ) {
        let (own, model) = (object(own), object(fields));
        let has = |schema: &Value, name: &str| schema["properties"].get(name).is_some();
        let names = |schema: &Value| schema["properties"].as_object().expect("an object").clone();

        match extend(&own, "f", model.clone()) {
            Err(Error::FieldConflict { field, .. }) => prop_assert!(has(&own, &field) && has(&model, &field)),
            Err(error) => prop_assert!(false, "{error}"),
            Ok(merged) => {
                let wanted: Vec<String> = names(&own).keys().chain(names(&model).keys()).cloned().collect();
                prop_assert_eq!(names(&merged).keys().cloned().collect::<Vec<_>>(), wanted);
                prop_assert!(added(&merged, &own).all(|name| has(&model, name)));
                prop_assert_eq!(loosen(&merged, &own)["properties"].as_object().map(Map::len), Some(names(&merged).len()));
            }
        }
    }
}
