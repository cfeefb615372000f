//! Policies: decisions, the order of rules, and reasons.

#![allow(clippy::expect_used)]

mod answers;
mod arguments;
mod explained;
mod files;
mod order;
mod refused;
mod table;

use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::policy::{CallFacts, Cause, Decision, Permission, Policy, Quick, Rule, ToolKind, Verdict};

/// A rule that is right.
fn rule(fields: &Value) -> Rule {
    Rule::from_value(fields).expect("a rule")
}

fn policy(rules: &[Value], default: Decision) -> Policy {
    Policy::new(rules.iter().map(rule).collect(), default).expect("a policy")
}

/// The verdict on a call without arguments.
fn decided(policy: &Policy, subject: &CallFacts<'_>) -> Verdict {
    policy.decide(subject, &json!({}))
}

fn decision(rules: &[Value], subject: &CallFacts<'_>, arguments: &Value) -> Decision {
    policy(rules, Decision::Allow).decide(subject, arguments).decision
}

#[test]
fn a_policy_without_rules_does_what_its_default_says() {
    for default in Decision::ALL {
        let verdict = decided(&policy(&[], default), &CallFacts::of("shell"));

        assert_eq!(verdict.decision, default);
        assert!(matches!(verdict.cause, Cause::Default));
    }
}

#[test]
fn a_tool_that_wants_to_be_confirmed_asks_unless_a_rule_says_otherwise() {
    let subject = CallFacts { permission: Permission::Confirm, ..CallFacts::of("mail") };
    let allowed = json!({"tool": "mail", "decision": "allow"});

    assert_eq!(decision(&[], &subject, &json!({})), Decision::Ask);
    assert_eq!(decision(&[allowed], &subject, &json!({})), Decision::Allow);
    assert_eq!(decided(&policy(&[], Decision::Deny), &subject).decision, Decision::Deny);
}

#[test]
fn every_condition_of_a_rule_has_to_be_met() {
    let fields = json!({
        "tool": ["git__*", "shell"], "server": "git", "group": "dev*", "tag": ["danger", "slow"],
        "kind": ["execute", "edit"], "caller": "agent-?", "decision": "deny",
    });
    let subject = CallFacts {
        tool: "git__push",
        server: Some("git"),
        groups: &["basic", "devops"],
        tags: &["slow"],
        kind: ToolKind::Execute,
        permission: Permission::Auto,
        caller: Some("agent-7"),
    };
    let others = [
        CallFacts { tool: "git_push", ..subject },
        CallFacts { server: None, ..subject },
        CallFacts { server: Some("git2"), ..subject },
        CallFacts { groups: &["basic"], ..subject },
        CallFacts { groups: &[], ..subject },
        CallFacts { tags: &["quick"], ..subject },
        CallFacts { kind: ToolKind::Read, ..subject },
        CallFacts { caller: None, ..subject },
        CallFacts { caller: Some("agent-77"), ..subject },
    ];

    assert_eq!(decision(std::slice::from_ref(&fields), &subject, &json!({})), Decision::Deny);
    for other in others {
        assert_eq!(decision(std::slice::from_ref(&fields), &other, &json!({})), Decision::Allow, "{other:?}");
    }
}

#[test]
fn a_rule_about_a_server_is_not_about_tools_that_are_named_like_its_tools() {
    let by_server = json!({"server": "github", "decision": "allow"});
    let spoofed = CallFacts { server: Some("evil"), ..CallFacts::of("github__push") };
    let local = CallFacts::of("github__push");
    let policy = policy(&[by_server], Decision::Deny);

    assert_eq!(decided(&policy, &spoofed).decision, Decision::Deny);
    assert_eq!(decided(&policy, &local).decision, Decision::Deny);
    assert_eq!(decided(&policy, &CallFacts { server: Some("github"), ..local }).decision, Decision::Allow);
}

#[test]
fn a_name_that_only_looks_the_same_is_another_one() {
    let named = policy(&[json!({"tool": ["shell", "café", "read_file"], "decision": "allow"})], Decision::Deny);
    let alike = [
        "ѕhell",
        "shel\u{217c}",
        "Shell",
        "SHELL",
        "shell ",
        " shell",
        "shell\u{200b}",
        "sh\u{ad}ell",
        "shell\0",
        "ｓhell",
        "cafe\u{301}",
        "read\u{5f}\u{200d}file",
        "read＿file",
        "read_fi\u{fb01}e",
        "read_ﬁle",
        "\u{202e}llehs",
        "",
    ];

    assert_eq!(decided(&named, &CallFacts::of("café")).decision, Decision::Allow);
    for name in alike {
        assert_eq!(decided(&named, &CallFacts::of(name)).decision, Decision::Deny, "{name:?}");
    }
}

#[test]
fn what_is_decided_without_arguments_is_what_is_decided_with_them() {
    let policy = policy(
        &[
            json!({"tool": "shell", "arguments": {"command": "ls"}, "decision": "allow", "priority": 5}),
            json!({"tool": "shell", "decision": "deny"}),
            json!({"tool": "read*", "decision": "ask"}),
        ],
        Decision::Allow,
    );

    assert!(matches!(policy.quick(&CallFacts::of("shell")), Quick::NeedsArguments));
    assert!(matches!(policy.quick(&CallFacts::of("read")), Quick::Fixed(verdict) if verdict.decision == Decision::Ask));
    assert!(matches!(policy.quick(&CallFacts::of("x")), Quick::Fixed(verdict) if verdict.decision == Decision::Allow));
}

#[test]
fn arguments_are_asked_for_only_when_a_rule_looks_at_them() {
    let policy = policy(
        &[
            json!({"tool": "shell", "decision": "deny", "priority": 1}),
            json!({"tool": "*", "arguments": {"x": 1}, "decision": "deny"}),
        ],
        Decision::Allow,
    );
    let asked = std::cell::Cell::new(0);
    let arguments = || {
        std::cell::LazyCell::new(|| {
            asked.set(asked.get() + 1);
            json!({"x": 1})
        })
    };

    assert_eq!(policy.decide(&CallFacts::of("shell"), &arguments()).decision, Decision::Deny);
    assert_eq!(asked.get(), 0);
    assert_eq!(policy.decide(&CallFacts::of("other"), &arguments()).decision, Decision::Deny);
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_change_is_seen_by_the_next_decision() {
    let policy = policy(&[], Decision::Allow);
    let subject = CallFacts::of("shell");
    let before = policy.revision();
    assert_eq!(decided(&policy, &subject).decision, Decision::Allow);

    let added = policy.add(rule(&json!({"tool": "shell", "decision": "deny"}))).expect("a new rule");

    assert_eq!(decided(&policy, &subject).decision, Decision::Deny);
    assert!(policy.revision() > before);
    assert_eq!(policy.remove(added.id()).map(|rule| rule.id().to_owned()), Some(added.id().to_owned()));
    assert_eq!(decided(&policy, &subject).decision, Decision::Allow);
    assert!(policy.remove(added.id()).is_none());
}

#[test]
fn more_calls_than_are_remembered_are_decided_right() {
    let policy = policy(&[json!({"tool": "t*7", "decision": "deny"})], Decision::Allow);

    for round in 0..2 {
        for number in 0..10_000 {
            let name = format!("t{number}");
            let expected = if name.ends_with('7') { Decision::Deny } else { Decision::Allow };
            assert_eq!(decided(&policy, &CallFacts::of(&name)).decision, expected, "{name} {round}");
        }
    }
}

#[test]
fn ids_are_unique_and_made_where_none_is_given() {
    let policy =
        policy(&[json!({"tool": "a", "decision": "ask"}), json!({"tool": "b", "decision": "ask"})], Decision::Allow);
    policy.add(rule(&json!({"id": "rule-3", "tool": "c", "decision": "ask"}))).expect("a new id");
    let made = policy.add(rule(&json!({"tool": "d", "decision": "ask"}))).expect("a made id");

    let refused = policy.add(rule(&json!({"id": "rule-3", "tool": "c", "decision": "ask"}))).expect_err("a taken id");

    assert_eq!(refused, Error::DuplicateRule { id: "rule-3".to_owned() });
    assert_eq!(made.id(), "rule-4");
    assert_eq!(policy.rules().len(), 4);
    assert!(policy.rule("rule-1").is_some());
}

#[test]
fn without_an_approver_asking_is_denying() {
    assert_eq!(Decision::ALL.map(Decision::headless), [Decision::Allow, Decision::Deny, Decision::Deny]);
}

#[test]
fn a_reason_is_the_rules_own_or_says_who_decided() {
    let policy = policy(
        &[
            json!({"id": "no-rm", "tool": "rm", "decision": "deny", "reason": "use the trash tool"}),
            json!({"id": "no-mv", "tool": "mv", "decision": "deny"}),
        ],
        Decision::Allow,
    );

    assert_eq!(decided(&policy, &CallFacts::of("rm")).reason(), "use the trash tool");
    assert_eq!(decided(&policy, &CallFacts::of("mv")).reason(), "rule `no-mv` denies it");
}

#[test]
fn threads_decide_while_others_change_the_rules() {
    let policy = policy(&[json!({"tool": "open", "decision": "allow", "tier": "admin"})], Decision::Deny);

    std::thread::scope(|scope| {
        for number in 0..4 {
            let policy = &policy;
            scope.spawn(move || {
                for round in 0..200 {
                    if number == 0 {
                        let id = format!("r{round}");
                        policy.add(rule(&json!({"id": id, "tool": "closed", "decision": "deny"}))).expect("a new id");
                        policy.remove(&id);
                    }
                    assert_eq!(decided(policy, &CallFacts::of("open")).decision, Decision::Allow);
                    assert_eq!(decided(policy, &CallFacts::of("closed")).decision, Decision::Deny);
                }
            });
        }
    });
    assert_eq!(policy.rules().len(), 1);
}
