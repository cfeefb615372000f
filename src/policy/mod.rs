//! Policies: rules that allow a call, ask for approval, or deny it.
//!
//! A [`Policy`] decides about a call by its [`CallFacts`], and looks at its [`Arguments`] only where a rule does. Rules that
//! allow are matched narrowly, rules that ask or deny are matched widely, and an invalid rule never allows anything.
//!
//! Read in this order:
//!
//! | module | holds |
//! |---|---|
//! | `decision` | the input and the output: [`CallFacts`], [`Decision`], [`Verdict`] |
//! | `rule` | a [`Rule`], its [`Tier`], and the words of tools that it can name: [`ToolKind`], [`Permission`] |
//! | `argument`, `pattern` | the conditions of a rule on arguments; globs and regular expressions |
//! | `engine` | [`Policy`]: the rules, which can change at any time |
//! | `snapshot` | the decision, by one immutable state of the rules: sorted, indexed, with cached plans |
//! | `explain` | the reasons for a decision, rule by rule |
//! | `check` | names in rules that no tool of a toolkit has |
//! | `file` | policy files: parsing, problems, appending |
//! | `answers` | saved answers in a store |
//! | `approval` | pending calls, answers, signatures and single use |
//! | `audit`, `redact` | the record of decisions, and secrets hidden from it |

mod answers;
mod approval;
mod argument;
mod audit;
mod check;
mod decision;
mod engine;
mod explain;
mod file;
mod pattern;
mod redact;
mod rule;
mod snapshot;

pub use approval::{
    Answer, ApprovalDraft, ApprovalScope, ApprovalStore, Approvals, Choice, Grants, Key, ListPending, Pending,
    Question, Ticket, claimed, rfc3339, unkept,
};
pub use audit::{AUDIT_LOG, AuditLog, AuditRecord, Durability, Ruling, Sink};
pub use check::{KnownTool, RuleProblem};
pub use decision::{Arguments, CallFacts, Cause, Decision, Quick, Shadowed, Verdict};
pub use engine::{AllowCache, Policy, PolicyStamp, ShadowNote};
pub use explain::{Explanation, Failure, RuleOutcome, TriedRule};
pub use file::{Effect, PolicyFile, PolicyProblem, append};
pub use redact::{Redaction, mask};
pub use rule::{MAX_PRIORITY, Origin, Permission, Rule, Tier, ToolKind};

pub use crate::json::{canonical, exact_number, hash};
