//! Every cell of group × view × rules × permission × default × headless × approval, against an oracle.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib::policy::{
    ApprovalDraft, ApprovalScope, Approvals, CallFacts, Decision, Grants, Key, Pending, Permission, Policy, Question,
    ToolKind,
};
use toolcrib::registry::{Filter, Registry, View};

use super::policy;
use crate::registry::add;

const TOOL: &str = "send";
const SCHEMA: [u8; 32] = [1; 32];
const CALLER: Option<&str> = Some("ann");

const FACTS: ApprovalScope<'static> =
    ApprovalScope { tool: TOOL, schema_hash: SCHEMA, presets_hash: [2; 32], caller: CALLER, session: None };

/// Sets of rules, and what each says about the call if it says anything. The call is of the tool `send` of server `post`,
/// in the groups `mail` and `work`, with tag `net` and kind `execute`, by caller `ann`, with the argument `to = "bob"`.
fn sets() -> Vec<(Option<Decision>, Vec<Value>)> {
    use Decision::{Allow, Ask, Deny};
    let one = |decision: &str, more: Value| {
        let mut rule = json!({"decision": decision});
        for (key, value) in more.as_object().expect("fields") {
            rule[key] = value.clone();
        }
        rule
    };
    vec![
        (None, vec![]),
        (Some(Allow), vec![one("allow", json!({"tool": "send"}))]),
        (Some(Ask), vec![one("ask", json!({"tool": "s*d"}))]),
        (Some(Deny), vec![one("deny", json!({"tool": "*"}))]),
        // Among equals deny wins, then ask.
        (Some(Deny), vec![one("allow", json!({"tool": "send"})), one("deny", json!({"group": "work"}))]),
        (Some(Ask), vec![one("allow", json!({"tool": "send"})), one("ask", json!({"tag": "net"}))]),
        // Priority goes before strictness, and tier before priority.
        (Some(Allow), vec![one("deny", json!({"tool": "*"})), one("allow", json!({"tool": "send", "priority": 1}))]),
        (
            Some(Deny),
            vec![
                one("deny", json!({"kind": "execute", "tier": "admin"})),
                one("allow", json!({"tool": "send", "tier": "user", "priority": 999})),
            ],
        ),
        // Arguments that fit, and that do not.
        (
            Some(Allow),
            vec![
                one("allow", json!({"tool": "send", "arguments": {"to": "bob"}, "priority": 1})),
                one("deny", json!({"tool": "send"})),
            ],
        ),
        (
            Some(Deny),
            vec![
                one("allow", json!({"tool": "send", "arguments": {"to": "eve"}, "priority": 1})),
                one("deny", json!({"server": "post"})),
            ],
        ),
        // Rules about others.
        (
            None,
            vec![
                one("deny", json!({"tool": "sеnd"})),
                one("deny", json!({"caller": "an"})),
                one("allow", json!({"server": "post2"})),
                one("deny", json!({"group": "mai"})),
            ],
        ),
        // In shadow mode a rule changes nothing.
        (None, vec![one("deny", json!({"tool": "send", "shadow": true, "tier": "admin"}))]),
        (
            Some(Ask),
            vec![
                one("allow", json!({"tool": "send", "shadow": true, "priority": 9})),
                one("ask", json!({"args_pattern": "\"to\":\"bob\""})),
            ],
        ),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    NoView,
    Shown,
    OtherGroup,
    Excluded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    None,
    ForTheRun,
    ForTheRunOfAnother,
    ForAnotherQuestion,
    Given,
    Used,
    Late,
    OfOtherArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NotAvailable,
    Denied,
    Waits,
    Runs,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    is_on: bool,
    sight: Sight,
    said: Option<Decision>,
    permission: Permission,
    default: Decision,
    is_headless: bool,
    approval: Approval,
}

/// The expected outcome, by the sentences of the guide.
fn oracle(cell: Cell) -> End {
    if !cell.is_on || matches!(cell.sight, Sight::OtherGroup | Sight::Excluded) {
        return End::NotAvailable;
    }
    let own = if cell.permission == Permission::Confirm { Decision::Ask } else { Decision::Allow };
    match cell.said.unwrap_or(if own > cell.default { own } else { cell.default }) {
        Decision::Allow => End::Runs,
        Decision::Deny => End::Denied,
        Decision::Ask => match cell.approval {
            Approval::ForTheRun | Approval::Given => End::Runs,
            Approval::Used | Approval::Late | Approval::OfOtherArguments => End::Denied,
            Approval::None | Approval::ForTheRunOfAnother | Approval::ForAnotherQuestion if cell.is_headless => {
                End::Denied
            }
            Approval::None | Approval::ForTheRunOfAnother | Approval::ForAnotherQuestion => End::Waits,
        },
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn subject(permission: Permission) -> CallFacts<'static> {
    CallFacts {
        tool: TOOL,
        server: Some("post"),
        groups: &["mail", "work"],
        tags: &["net"],
        kind: ToolKind::Execute,
        permission,
        caller: CALLER,
    }
}

/// The origin of the question, if there is one.
fn asked(policy: &Policy, permission: Permission) -> Question {
    Question::from(&policy.decide(&subject(permission), &json!({"to": "bob"})).cause)
}

/// The parts of the core in the order in which a call passes them.
fn through(
    policy: &Policy,
    registry: &Registry<u32>,
    cell: Cell,
    grants: &Grants,
    approvals: &Approvals,
    pending: Option<&Pending>,
) -> End {
    let view = match cell.sight {
        Sight::NoView => None,
        Sight::Shown => Some(View::from(Filter::of_groups(["mail"]))),
        Sight::OtherGroup => Some(View::from(Filter::of_groups(["web"]))),
        Sight::Excluded => {
            let exclude = [Box::from(TOOL)].into_iter().collect();
            Some(View::from(Filter { exclude, ..Filter::default() }))
        }
    };
    let Ok(tool) = registry.admit(TOOL, view.as_ref()) else { return End::NotAvailable };
    let verdict = policy.decide(&CallFacts { tool: &tool.name, ..subject(cell.permission) }, &json!({"to": "bob"}));
    let now = if cell.approval == Approval::Late { at(100) } else { at(1) };
    match verdict.decision {
        Decision::Allow => End::Runs,
        Decision::Deny => End::Denied,
        Decision::Ask if grants.allows(TOOL, SCHEMA, CALLER, Question::from(&verdict.cause)) => End::Runs,
        Decision::Ask => match pending {
            Some(pending) if approvals.claim(pending, &FACTS, now).is_ok() => End::Runs,
            Some(_) => End::Denied,
            None if verdict.decision == Decision::Ask && cell.is_headless => match verdict.decision.headless() {
                Decision::Deny => End::Denied,
                Decision::Allow | Decision::Ask => End::Waits,
            },
            None => End::Waits,
        },
    }
}

/// An approval in the state that a cell asks for.
fn approval(state: Approval, number: u32, question: Question) -> (Grants, Approvals, Option<Pending>) {
    let (grants, approvals) = (Grants::default(), Approvals::in_memory(Key::new([7; 32])));
    let mut nonce = [0; 16];
    nonce[..4].copy_from_slice(&number.to_be_bytes());
    let draft =
        ApprovalDraft { call_id: "c", arguments: &json!({"to": "bob"}), scope: FACTS, life: Duration::from_secs(60) };
    let mut pending = approvals.ask(&draft, at(0), nonce).expect("a pending call");
    match state {
        Approval::None => return (grants, approvals, None),
        Approval::ForTheRun => {
            grants.allow(TOOL, SCHEMA, CALLER, question);
            return (grants, approvals, None);
        }
        Approval::ForTheRunOfAnother => {
            grants.allow(TOOL, SCHEMA, None, question);
            return (grants, approvals, None);
        }
        Approval::ForAnotherQuestion => {
            grants.allow(TOOL, SCHEMA, CALLER, Question::Rule([0; 16]));
            return (grants, approvals, None);
        }
        Approval::Given | Approval::Late => {}
        Approval::Used => approvals.claim(&pending, &FACTS, at(1)).expect("the first use"),
        Approval::OfOtherArguments => pending.arguments = json!({"to": "eve"}),
    }
    (grants, approvals, Some(pending))
}

#[test]
fn every_cell_of_the_table_is_as_the_oracle_says() {
    let mut cells = 0;
    for (said, rules) in sets() {
        for default in Decision::ALL {
            let policy = policy(&rules, default);
            for is_on in [true, false] {
                let mut registry = Registry::default();
                registry.create_group("mail", "", is_on, None).expect("a new group");
                registry.create_group("web", "", true, None).expect("a new group");
                add(&mut registry, TOOL, "mail", 1);
                for sight in [Sight::NoView, Sight::Shown, Sight::OtherGroup, Sight::Excluded] {
                    for permission in [Permission::Auto, Permission::Confirm] {
                        for is_headless in [false, true] {
                            for state in [
                                Approval::None,
                                Approval::ForTheRun,
                                Approval::ForTheRunOfAnother,
                                Approval::ForAnotherQuestion,
                                Approval::Given,
                                Approval::Used,
                                Approval::Late,
                                Approval::OfOtherArguments,
                            ] {
                                let cell =
                                    Cell { is_on, sight, said, permission, default, is_headless, approval: state };
                                let question = asked(&policy, permission);
                                let (grants, approvals, pending) = approval(state, cells, question);

                                let end = through(&policy, &registry, cell, &grants, &approvals, pending.as_ref());

                                assert_eq!(end, oracle(cell), "{cell:?} {rules:?}");
                                cells += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(cells > 8_000, "{cells}");
}
