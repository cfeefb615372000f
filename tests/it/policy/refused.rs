//! Rules that cannot be used, and what is said about them.

use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::policy::Rule;

/// What is said about a rule that cannot be used.
fn refusal(fields: &Value) -> String {
    match Rule::from_value(fields).expect_err("a rule that cannot be used") {
        Error::InvalidRule { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_mistake_is_named_with_its_field_and_what_to_do() {
    let cases: Value = serde_json::from_str(include_str!("../../data/policy/refused.json")).expect("JSON");

    for case in cases.as_array().expect("cases") {
        assert_eq!(refusal(&case["rule"]), case["reason"], "{case}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let error =
        Rule::from_value(&json!({"id": "r", "tool": 1, "decision": "no", "priority": -1})).expect_err("a bad rule");

    assert_eq!(
        error.to_string(),
        "rule `r` cannot be used: `decision`: there is no decision `no` (there are `allow`, `ask` and `deny`); `priority`: \
         it has to be a whole number from 0 to 999, and is -1; `tool`: it has to be a string or a list of strings, and is a number"
    );
}

#[test]
fn examples_are_checked_when_a_rule_is_made() {
    let with = |examples: Value| {
        let mut fields = json!({"tool": "shell", "arguments": {"command": {"prefix": "git push"}}, "decision": "ask"});
        for (key, value) in examples.as_object().expect("examples") {
            fields[key] = value.clone();
        }
        fields
    };
    let right = with(json!({
        "match": [{"arguments": {"command": "git push -f"}}, {"tool": "shell", "arguments": {"command": "git push"}}],
        "not_match": ["other", {"arguments": {"command": "git log"}}, {}],
    }));

    assert!(Rule::from_value(&right).is_ok());
    assert_eq!(
        refusal(&with(json!({"match": [{"arguments": {"command": "git  push"}}]}))),
        r#"`match`: the rule is not about example 1, {"arguments":{"command":"git  push"}}"#
    );
    assert_eq!(
        refusal(&with(json!({"not_match": ["x", {"arguments": {"command": "git pushy"}}]}))),
        r#"`not_match`: the rule is about example 2, {"arguments":{"command":"git pushy"}}"#
    );
    assert_eq!(
        refusal(&with(json!({"match": [{"argument": {}}]}))),
        "`match`: example 1: there is no field `argument` (did you mean `arguments`?)"
    );
    assert_eq!(refusal(&with(json!({"match": 1}))), "`match`: it has to be a list of calls, and is a number");
}

#[test]
fn an_example_of_a_rule_about_globs_says_which_tool_is_called() {
    let fields = json!({"tool": "git__*", "decision": "deny", "match": [{"arguments": {}}]});

    assert_eq!(refusal(&fields), "`match`: example 1: it has to say which `tool` is called");
}

#[test]
fn a_rule_tells_what_it_was_made_from() {
    let fields =
        json!({"id": "r", "tier": "user", "tool": ["a", "b*"], "decision": "ask", "arguments": {"x": {"gt": 1}}});

    assert_eq!(Rule::from_value(&fields).expect("a rule").to_value(), fields);
}
