//! Who may do what: rules that allow a call, ask somebody about it, or deny it.

mod answer;
mod approval;
mod audit;
mod canonical;
mod decimal;
mod grant;
mod hex;
mod key;
mod kind;
mod ledger;
mod moment;
mod pending;

pub use answer::{Answer, Choice};
pub use approval::{Approvals, Draft, Facts};
pub use audit::{AuditLog, Durability, Record, Sink, mask};
pub use canonical::{canonical, hash};
pub use grant::{Grants, Ticket};
pub use hex::hex;
pub use key::Key;
pub use kind::{Kind, Permission};
pub use moment::rfc3339;
pub use pending::Pending;
