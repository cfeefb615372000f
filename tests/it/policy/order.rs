//! The order of rules: by tier, then by priority, and among equals the strictest.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::policy::{CallFacts, Cause, Decision, Permission, Policy, Quick, Tier};

use super::{decided, policy, rule};

#[derive(Debug, Clone)]
struct Drawn {
    tool: &'static str,
    tier: Tier,
    priority: u16,
    decision: Decision,
    is_shadow: bool,
}

impl Drawn {
    fn fields(&self) -> Value {
        json!({
            "tool": self.tool, "tier": self.tier.as_str(), "priority": self.priority,
            "decision": self.decision.as_str(), "shadow": self.is_shadow,
        })
    }

    fn is_about(&self, tool: &str) -> bool {
        match self.tool {
            "*" => true,
            "git_*" => tool.starts_with("git_"),
            "*_push" => tool.ends_with("_push"),
            "*t_*" => tool.contains("t_"),
            exact => exact == tool,
        }
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let tool = prop::sample::select(vec!["*", "git_*", "*_push", "*t_*", "git_push", "hg_push", "ls"]);
    let priority = prop::sample::select(vec![0, 1, 500, 999]);
    let tier = prop::sample::select(Tier::ALL.to_vec());
    let decision = prop::sample::select(Decision::ALL.to_vec());
    let is_shadow = prop::bool::weighted(0.2);
    (tool, tier, priority, decision, is_shadow).prop_map(|(tool, tier, priority, decision, is_shadow)| Drawn {
        tool,
        tier,
        priority,
        decision,
        is_shadow,
    })
}

/// The expected decision, without sorting or indexes: the greatest of the rules that match the call.
fn expected<'a>(rules: impl Iterator<Item = &'a Drawn>, tool: &str, confirm: bool, default: Decision) -> Decision {
    let greatest =
        rules.filter(|rule| rule.is_about(tool)).max_by_key(|rule| (rule.tier, rule.priority, rule.decision));
    let floor = if confirm { default.max(Decision::Ask) } else { default };
    greatest.map_or(floor, |rule| rule.decision)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_strictest_of_the_first_decides(
        rules in prop::collection::vec(drawn(), 0..12),
        tool in prop::sample::select(vec!["git_push", "hg_push", "ls", "git_log"]),
        confirm in any::<bool>(),
        default in prop::sample::select(Decision::ALL.to_vec()),
    ) {
        let fields: Vec<_> = rules.iter().map(Drawn::fields).collect();
        let policy = policy(&fields, default);
        let permission = if confirm { Permission::Confirm } else { Permission::Auto };
        let subject = CallFacts { permission, ..CallFacts::of(tool) };

        let verdict = decided(&policy, &subject);
        let again = policy.quick(&subject);

        let live = expected(rules.iter().filter(|rule| !rule.is_shadow), tool, confirm, default);
        let all = expected(rules.iter(), tool, confirm, default);
        prop_assert_eq!(verdict.decision, live);
        prop_assert_eq!(verdict.shadowed.as_ref().map(|shadowed| shadowed.decision), (live != all).then_some(all));
        prop_assert!(matches!(again, Quick::Fixed(again) if again.decision == live));
        policy.set_shadow(true);
        let shadow = decided(&policy, &subject);
        prop_assert_eq!(shadow.decision, if confirm { Decision::Ask } else { Decision::Allow });
        let would_be = shadow.shadowed.as_ref().map_or(shadow.decision, |shadowed| shadowed.decision);
        prop_assert_eq!(would_be, all);
    }

    #[test]
    fn the_order_in_which_rules_come_makes_no_difference(
        rules in prop::collection::vec(drawn(), 0..8).prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
    ) {
        let (one, other) = rules;
        let of = |rules: &[Drawn]| policy(&rules.iter().map(Drawn::fields).collect::<Vec<_>>(), Decision::Ask);
        let added = policy(&[], Decision::Ask);
        for drawn in &other {
            added.add(rule(&drawn.fields())).expect("a new rule");
        }

        for tool in ["git_push", "hg_push", "ls"] {
            let expected = decided(&of(&one), &CallFacts::of(tool)).decision;
            prop_assert_eq!(decided(&of(&other), &CallFacts::of(tool)).decision, expected);
            prop_assert_eq!(decided(&added, &CallFacts::of(tool)).decision, expected);
        }
    }
}

#[test]
fn a_stronger_tier_goes_before_any_priority_of_a_weaker_one() {
    for (at, stronger) in Tier::ALL.into_iter().enumerate().skip(1) {
        let weaker = Tier::ALL[at - 1];
        let policy = policy(
            &[
                json!({"tool": "x", "decision": "deny", "tier": weaker.as_str(), "priority": 999}),
                json!({"tool": "x", "decision": "allow", "tier": stronger.as_str(), "priority": 0}),
            ],
            Decision::Deny,
        );

        assert_eq!(decided(&policy, &CallFacts::of("x")).decision, Decision::Allow);
    }
}

#[test]
fn of_equal_rules_the_first_that_came_is_named() {
    let policy = policy(
        &[json!({"id": "one", "tool": "x", "decision": "deny"}), json!({"id": "two", "tool": "*", "decision": "deny"})],
        Decision::Allow,
    );

    let verdict = decided(&policy, &CallFacts::of("x"));

    assert!(matches!(verdict.cause, Cause::Rule(rule) if rule.id() == "one"));
}

#[test]
fn rules_are_shared_without_being_moved() {
    fn is_shared<T: Send + Sync + 'static>() {}

    is_shared::<Policy>();
}
