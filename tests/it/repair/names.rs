//! Names that are almost right, and JSON text where a list belongs.

use serde_json::{Value, json};
use toolcrib::call::RepairKind;
use toolcrib::call::repair::{ParameterNames, repair_names};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city_name": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "filter": {"$ref": "#/$defs/Filter"},
        },
        "$defs": {"Filter": {"type": "object", "properties": {"max_results": {"type": "integer"}}}},
    })
}

fn mended(arguments: &Value) -> Option<Value> {
    repair_names(arguments, &schema(), ParameterNames::default()).map(|(value, _)| value)
}

#[test]
fn case_and_separators_do_not_matter() {
    for name in ["cityName", "CityName", "city-name", "City_Name", "CITY_NAME", "city name", "cityname"] {
        assert_eq!(mended(&json!({name: "Bern"})), Some(json!({"city_name": "Bern"})), "{name}");
    }
    assert_eq!(mended(&json!({"filter": {"maxResults": 3}})), Some(json!({"filter": {"max_results": 3}})));
}

#[test]
fn a_misspelling_is_not_mended() {
    for name in ["citi_name", "city", "cityNames", "сity_name"] {
        assert_eq!(mended(&json!({name: "Bern"})), None, "{name}");
    }
}

#[test]
fn two_for_one_place_are_left_alone() {
    assert_eq!(mended(&json!({"cityName": "Bern", "city_name": "Basel"})), None);
    assert_eq!(mended(&json!({"cityName": "Bern", "CityName": "Basel"})), None);
}

#[test]
fn an_alias_stands_for_its_parameter() {
    let aliases = [(Box::from("town"), Box::from("city_name")), (Box::from("key"), Box::from("api_key"))];
    let names = ParameterNames { aliases: &aliases, hidden: &[Box::from("api_key")] };

    let (value, repairs) = repair_names(&json!({"town": "Bern"}), &schema(), names).unwrap();

    assert_eq!(value, json!({"city_name": "Bern"}));
    assert_eq!((repairs[0].what, repairs[0].at.to_string()), (RepairKind::Alias, "city_name".to_owned()));
    assert_eq!(repair_names(&json!({"key": "x"}), &schema(), names), None);
}

#[test]
fn a_hidden_name_is_never_written_nor_moved() {
    let hidden = [Box::from("Days"), Box::from("secret")];
    let names = ParameterNames { aliases: &[], hidden: &hidden };

    for name in ["Days", "DAYS", "Secret", "secret"] {
        assert_eq!(repair_names(&json!({name: 1}), &schema(), names), None, "{name}");
    }
}

#[test]
fn broken_json_text_becomes_the_list_it_is() {
    let (value, repairs) = repair_names(&json!({"tags": "['a', 'b',]"}), &schema(), ParameterNames::default()).unwrap();

    assert_eq!(value, json!({"tags": ["a", "b"]}));
    assert_eq!(repairs[0].what, RepairKind::Encoding);
    assert!(repairs.iter().all(|repair| repair.at == "tags"));
    assert_eq!(mended(&json!({"filter": "{maxResults: 3}"})), Some(json!({"filter": {"max_results": 3}})));
}

#[test]
fn text_that_may_mean_anything_stays_text() {
    for text in ["['a', 'b'", "['a'], 'x': 1", "[", "['a', {'b': 1, 'b': 2}]"] {
        assert_eq!(mended(&json!({"tags": text})), None, "{text}");
    }
    assert_eq!(mended(&json!({"city_name": "['a']"})), None);
}
