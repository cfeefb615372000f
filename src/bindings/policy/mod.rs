//! The Python side of permissions: `Policy`, `Approvals`, answers, the audit, and the settings that a toolkit shares with its tools.

mod approvals;
mod audit;
mod explanation;
mod permissions;
mod preset_digest;
mod reading;
mod rules;

pub(crate) use approvals::{PyApprovals, random};
pub(crate) use audit::Sink;
pub(crate) use explanation::PyExplanation;
pub(crate) use permissions::{PyPermissions, ToolView};
pub(crate) use preset_digest::presets_hash;
pub(crate) use reading::{answer_of, value_of};
pub(crate) use rules::PyPolicy;
