//! Lasting approvals: they turn a question into a yes, and nothing else.

use std::fs;

use serde_json::{Value, json};
use toolcrib::policy::{
    CallFacts, Cause, Decision, Failure, Permission, Policy, PolicyFile, Question, Quick, Rule, RuleOutcome, Tier,
};

use super::{decided, decision, policy, rule};
use crate::approval::Place;

fn confirmed(tool: &str) -> CallFacts<'_> {
    CallFacts { permission: Permission::Confirm, ..CallFacts::of(tool) }
}

fn yes(answers: &(impl ToString + ?Sized), tier: &str) -> Value {
    json!({"tool": "make", "caller": "", "answers": answers.to_string(), "decision": "allow", "tier": tier, "id": "yes"})
}

#[test]
fn an_answer_turns_a_question_into_a_yes() {
    let policy = policy(&[yes("permission", "user")], Decision::Allow);

    let verdict = decided(&policy, &confirmed("make"));

    assert_eq!((verdict.decision, verdict.cause.name()), (Decision::Allow, "yes"));
    assert!(matches!(policy.quick(&confirmed("make")), Quick::Fixed(verdict) if verdict.decision == Decision::Allow));
    assert_eq!(decided(&policy, &confirmed("take")).decision, Decision::Ask);
}

#[test]
fn an_answer_is_nothing_beside_a_rule_that_denies() {
    for tier in Tier::ALL {
        let deny = json!({"tool": "make", "decision": "deny", "tier": tier.as_str()});
        for rules in [vec![yes("ask", "admin"), deny.clone()], vec![deny, yes("ask", "admin")]] {
            let policy = policy(&rules, Decision::Allow);

            assert_eq!(decided(&policy, &confirmed("make")).decision, Decision::Deny);
            assert!(matches!(policy.quick(&confirmed("make")), Quick::Fixed(it) if it.decision == Decision::Deny));
        }
    }
    assert_eq!(decided(&policy(&[yes("ask", "admin")], Decision::Deny), &confirmed("make")).decision, Decision::Deny);
}

#[test]
fn an_answer_looks_at_what_the_arguments_make_of_the_call() {
    let rules = [
        yes("ask", "user"),
        json!({"tool": "make", "decision": "deny", "arguments": {"what": "war"}}),
        json!({"tool": "make", "decision": "ask"}),
    ];

    assert_eq!(decision(&rules, &CallFacts::of("make"), &json!({"what": "love"})), Decision::Allow);
    assert_eq!(decision(&rules, &CallFacts::of("make"), &json!({"what": "war"})), Decision::Deny);
    assert!(matches!(policy(&rules, Decision::Allow).quick(&CallFacts::of("make")), Quick::NeedsArguments));
}

#[test]
fn an_answer_is_to_one_question() {
    let ask = json!({"tool": "make", "decision": "ask"});
    let question =
        Question::from(&decided(&policy(std::slice::from_ref(&ask), Decision::Allow), &CallFacts::of("make")).cause);
    let about = |rules: &[Value]| decided(&policy(rules, Decision::Allow), &confirmed("make")).decision;
    let mut named = ask.clone();
    named["id"] = "another-name".into();
    let mut changed = ask.clone();
    changed["priority"] = 1.into();

    assert_eq!(about(&[ask.clone(), yes(&question, "user")]), Decision::Allow);
    assert_eq!(about(&[named, yes(&question, "user")]), Decision::Allow);
    assert_eq!(about(&[ask.clone(), changed, yes(&question, "user")]), Decision::Ask);
    assert_eq!(about(&[ask, yes("permission", "user")]), Decision::Ask);
    assert_eq!(about(&[yes(&question, "user")]), Decision::Ask);
}

#[test]
fn an_answer_is_for_one_caller_or_for_calls_without_one() {
    let policy = policy(&[yes("permission", "user")], Decision::Allow);
    let of_ann = CallFacts { caller: Some("ann"), ..confirmed("make") };

    assert_eq!(decided(&policy, &confirmed("make")).decision, Decision::Allow);
    assert_eq!(decided(&policy, &of_ann).decision, Decision::Ask);
}

#[test]
fn a_rule_can_match_calls_without_a_caller() {
    for (caller, without_caller, of_ann) in [
        (json!(""), Decision::Deny, Decision::Allow),
        (json!(["", "a*"]), Decision::Deny, Decision::Deny),
        (json!("*"), Decision::Allow, Decision::Deny),
    ] {
        let rules = [json!({"caller": caller, "decision": "deny"})];

        assert_eq!(decision(&rules, &CallFacts::of("make"), &json!({})), without_caller);
        assert_eq!(decision(&rules, &CallFacts { caller: Some("ann"), ..CallFacts::of("make") }, &json!({})), of_ann);
    }
}

#[test]
fn an_answer_of_a_weaker_tier_is_none() {
    for (place, tier) in Tier::ALL.iter().enumerate() {
        for (other, asking) in Tier::ALL.iter().enumerate() {
            let ask = json!({"tool": "make", "decision": "ask", "tier": asking.as_str()});
            let policy = policy(&[ask, yes("ask", tier.as_str())], Decision::Allow);

            let is_silenced = decided(&policy, &CallFacts::of("make")).decision == Decision::Allow;

            assert_eq!(is_silenced, place >= other, "{tier} {asking}");
        }
    }
}

#[test]
fn only_a_plain_yes_can_be_an_answer() {
    for (field, value, reason) in [
        ("decision", json!("ask"), "only a rule that allows can be an answer"),
        ("decision", json!("deny"), "only a rule that allows can be an answer"),
        ("shadow", json!(true), "an answer cannot be in shadow mode"),
        ("answers", json!("everything"), "unknown question `everything`"),
        ("answers", json!("rule:12"), "unknown question `rule:12`"),
        ("answers", json!(true), "expected a string, got a boolean"),
    ] {
        let mut fields = yes("ask", "user");
        fields[field] = value;

        let error = Rule::from_value(&fields).expect_err("a malformed rule").to_string();

        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn an_answer_is_read_back_from_the_file_it_was_saved_in() {
    let place = Place::new();
    let path = place.path().join("user.toml");
    let start = || {
        let (policy, problems) = Policy::from_files(vec![PolicyFile::new(Tier::User, &path).optional()], Decision::Ask);
        assert_eq!(problems, []);
        policy.add(rule(&json!({"tool": "make", "decision": "deny", "arguments": {"what": "war"}}))).expect("a rule");
        policy
    };
    start().remember(rule(&yes("default", "user"))).expect("a saved answer");

    let again = start();

    assert!(fs::read_to_string(&path).expect("the file").contains("answers = \"default\""));
    assert_eq!(again.decide(&CallFacts::of("make"), &json!({"what": "love"})).decision, Decision::Allow);
    assert_eq!(again.decide(&CallFacts::of("make"), &json!({"what": "war"})).decision, Decision::Deny);
}

#[test]
fn an_answer_is_explained() {
    let ask = json!({"tool": "make", "decision": "ask", "id": "careful"});
    let deny = json!({"tool": "make", "decision": "deny", "arguments": {"what": "war"}, "id": "never"});
    let policy = policy(&[ask, deny, yes("ask", "user")], Decision::Allow);
    let outcomes = |what: &str| {
        let explanation = policy.explain(&CallFacts::of("make"), &json!({"what": what}));
        explanation.tried.into_iter().map(|tried| tried.outcome).collect::<Vec<_>>()
    };

    let [yes, _, careful] = outcomes("love").try_into().expect("three rules");
    let [no, never, _] = outcomes("war").try_into().expect("three rules");

    assert_eq!((yes, careful), (RuleOutcome::Decides, RuleOutcome::Answered));
    let failure = Failure {
        condition: "answers".to_owned(),
        wanted: "\"ask\"".to_owned(),
        seen: "no question, but deny".to_owned(),
    };
    assert_eq!((no, never), (RuleOutcome::Fails(failure), RuleOutcome::Decides));
    let explanation = policy.explain(&CallFacts::of("make"), &json!({}));
    assert!(matches!(explanation.question, Some(Cause::Rule(rule)) if rule.id() == "careful"));
}
