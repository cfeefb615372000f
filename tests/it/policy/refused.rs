//! Invalid rules and their error messages.

use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::policy::Rule;

/// The error message for an invalid rule.
fn refusal(fields: &Value) -> String {
    match Rule::from_value(fields).expect_err("an invalid rule") {
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
        "invalid rule `r`: `decision`: unknown decision `no` (expected `allow`, `ask` or `deny`); `priority`: \
         expected a whole number from 0 to 999, got -1; `tool`: expected a string or a list of strings, got a number"
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
        r#"`match`: the rule does not match example 1, {"arguments":{"command":"git  push"}}"#
    );
    assert_eq!(
        refusal(&with(json!({"not_match": ["x", {"arguments": {"command": "git pushy"}}]}))),
        r#"`not_match`: the rule matches example 2, {"arguments":{"command":"git pushy"}}"#
    );
    assert_eq!(
        refusal(&with(json!({"match": [{"argument": {}}]}))),
        "`match`: example 1: unknown field `argument` (did you mean `arguments`?)"
    );
    assert_eq!(refusal(&with(json!({"match": 1}))), "`match`: expected a list of calls, got a number");
}

#[test]
fn an_example_of_a_rule_about_globs_says_which_tool_is_called() {
    let fields = json!({"tool": "git__*", "decision": "deny", "match": [{"arguments": {}}]});

    assert_eq!(refusal(&fields), "`match`: example 1: missing field `tool`");
}

#[test]
fn a_rule_tells_what_it_was_made_from() {
    let fields =
        json!({"id": "r", "tier": "user", "tool": ["a", "b*"], "decision": "ask", "arguments": {"x": {"gt": 1}}});

    assert_eq!(Rule::from_value(&fields).expect("a rule").to_value(), fields);
}
