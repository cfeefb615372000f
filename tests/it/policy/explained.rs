//! Explanations of decisions, and shadow mode.

use serde_json::json;
use toolcrib::policy::{CallFacts, Cause, Decision, Failure, Permission, RuleOutcome};

use super::{decided, policy};

#[test]
fn every_rule_is_told_in_the_order_tried_with_what_came_of_it() {
    let policy = policy(
        &[
            json!({"id": "rest", "tool": "*", "decision": "ask"}),
            json!({"id": "no-rm", "tool": "shell", "arguments": {"command": {"prefix": "rm"}}, "decision": "deny", "priority": 50}),
            json!({"id": "git", "tool": "git__*", "decision": "allow", "priority": 90}),
            json!({"id": "ls", "tool": "shell", "arguments": {"command": "ls"}, "decision": "allow", "priority": 60}),
            json!({"id": "bob", "caller": "bob", "decision": "deny", "tier": "admin"}),
        ],
        Decision::Allow,
    );

    let explanation = policy.explain(&CallFacts::of("shell"), &json!({"command": "rm -rf /"}));

    let told: Vec<_> = explanation.tried.iter().map(|tried| (tried.rule.id(), tried.outcome.clone())).collect();
    let fails = |condition: &str, wanted: &str, seen: &str| {
        RuleOutcome::Fails(Failure { condition: condition.into(), wanted: wanted.into(), seen: seen.into() })
    };
    assert_eq!(
        told,
        [
            ("bob", fails("caller", "\"bob\"", "none")),
            ("git", fails("tool", "\"git__*\"", "\"shell\"")),
            ("ls", fails("arguments.command", "\"ls\"", "\"rm -rf /\"")),
            ("no-rm", RuleOutcome::Decides),
            ("rest", RuleOutcome::Matches),
        ]
    );
    assert_eq!(explanation.verdict.decision, Decision::Deny);
    assert_eq!(
        explanation.to_string(),
        "`shell`: deny, because rule `no-rm` denies it\n   \
         1. deny by `bob` (admin 0): does not match: `caller` is \"bob\", the call has none\n   \
         2. allow by `git` (default 90): does not match: `tool` is \"git__*\", the call has \"shell\"\n   \
         3. allow by `ls` (default 60): does not match: `arguments.command` is \"ls\", the call has \"rm -rf /\"\n   \
         4. deny by `no-rm` (default 50): decides\n   \
         5. ask by `rest` (default 0): matches too\n   \
         then the tool's own permission\n   \
         then the default, allow"
    );
}

#[test]
fn what_holds_without_a_rule_is_told_too() {
    let policy = policy(&[json!({"tool": "other", "decision": "deny"})], Decision::Allow);
    let confirmed = CallFacts { permission: Permission::Confirm, ..CallFacts::of("mail") };

    let asked = policy.explain(&confirmed, &json!({}));
    let allowed = policy.explain(&CallFacts::of("mail"), &json!({}));

    assert!(asked.to_string().contains("then the tool's own permission: decides"));
    assert!(allowed.to_string().ends_with("then the default, allow: decides"));
}

#[test]
fn a_long_value_is_cut_where_it_is_told() {
    let policy = policy(&[json!({"tool": "t", "arguments": {"x": 1}, "decision": "deny"})], Decision::Allow);

    let explanation = policy.explain(&CallFacts::of("t"), &json!({"x": "é".repeat(10_000)}));

    assert!(explanation.to_string().len() < 500);
}

#[test]
fn a_rule_in_shadow_mode_only_tells_what_it_would_do() {
    let policy = policy(
        &[
            json!({"id": "new", "tool": "shell", "arguments": {"command": {"contains": "rm"}}, "decision": "deny", "shadow": true, "priority": 9}),
            json!({"id": "old", "tool": "shell", "decision": "ask"}),
        ],
        Decision::Allow,
    );

    let caught = policy.decide(&CallFacts::of("shell"), &json!({"command": "rm x"}));
    let passed = policy.decide(&CallFacts::of("shell"), &json!({"command": "ls"}));

    assert_eq!(caught.decision, Decision::Ask);
    let shadowed = caught.shadowed.expect("what it would do");
    assert_eq!((shadowed.decision, shadowed.cause.name()), (Decision::Deny, "new"));
    assert_eq!(shadowed.reason(), "rule `new` denies it");
    assert_eq!(passed.decision, Decision::Ask);
    assert!(passed.shadowed.is_none());
}

#[test]
fn a_policy_in_shadow_mode_allows_what_no_tool_wants_to_be_confirmed() {
    let policy = policy(&[json!({"id": "no", "tool": "rm", "decision": "deny"})], Decision::Deny);
    let confirmed = CallFacts { permission: Permission::Confirm, ..CallFacts::of("mail") };
    policy.set_shadow(true);

    let by_rule = decided(&policy, &CallFacts::of("rm"));
    let by_default = decided(&policy, &CallFacts::of("ls"));
    let asked = decided(&policy, &confirmed);

    assert_eq!(
        [&by_rule, &by_default, &asked].map(|verdict| verdict.decision),
        [Decision::Allow, Decision::Allow, Decision::Ask]
    );
    assert_eq!(by_rule.shadowed.expect("a rule in shadow").cause.name(), "no");
    assert!(matches!(by_default.shadowed.expect("a default in shadow").cause, Cause::Default));
    assert_eq!(asked.shadowed.expect("a default in shadow").decision, Decision::Deny);
    let text = policy.explain(&CallFacts::of("rm"), &json!({})).to_string();
    assert!(text.contains("in shadow mode: it would be deny by `no`") && text.contains("would decide"), "{text}");
}
