//! Who may do what: rules that allow a call, ask somebody about it, or deny it.
//!
//! A [`Policy`] decides about a [`CallFacts`], and looks at its [`Arguments`] only where a rule does. What opens is read
//! narrowly, what closes is read widely, and what cannot be read opens nothing.

mod answer;
mod approval;
mod audit;
mod condition;
mod decision;
mod engine;
mod example;
mod explain;
mod fault;
mod fields;
mod file;
mod glob;
mod grant;
mod hex;
mod index;
mod key;
mod kind;
mod ledger;
mod loading;
mod matcher;
mod moment;
mod path;
mod pattern;
mod pending;
mod problem;
mod question;
mod read;
mod redact;
mod rule;
mod snapshot;
mod subject;
mod test;
mod tier;
mod toml;
mod write;

pub use answer::{Answer, Choice};
pub use approval::{ApprovalScope, Approvals, Draft};
pub use audit::{AuditLog, Durability, Record, Ruling, Sink};
pub use decision::{Cause, Decision, Quick, Shadowed, Verdict};
pub use engine::{AllowCache, Policy, ShadowNote, Stamp};
pub use explain::{Explanation, Failure, Outcome, Tried};
pub use file::Source;
pub use grant::{Grants, Ticket};
pub use hex::hex;
pub use key::Key;
pub use kind::{Kind, Permission};
pub use moment::rfc3339;
pub use pending::Pending;
pub use problem::{Effect, Problem};
pub use question::Question;
pub use redact::Redaction;
pub use rule::{MAX_PRIORITY, Origin, Rule};
pub use subject::{Arguments, CallFacts};
pub use tier::Tier;
pub use write::append;

pub use crate::json::{canonical, hash};
