//! The Python side of who may do what: `Policy`, `Approvals`, and where decisions are noted.

mod approvals;
mod explanation;
mod preset_digest;
mod reading;
mod rules;
mod sink;

pub(crate) use approvals::PyApprovals;
pub(crate) use explanation::PyExplanation;
pub(crate) use preset_digest::presets_hash;
pub(crate) use reading::{_read_answer, value_of};
pub(crate) use rules::PyPolicy;
pub(crate) use sink::Sink;
