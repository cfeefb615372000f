//! The Python side of permissions.
//!
//! Read [`permissions`] first: the settings and listeners that a toolkit shares with its tools. [`rules`] is `Policy` with its
//! explanations, [`approvals`] is `Approvals`, [`audit`] the destination of audit records.
//! [`preset_digest`] is the hash by which an approval is bound to the presets of a tool.
#![allow(clippy::doc_markdown, reason = "`help()` shows these comments, and Python's documentation lists bare names")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 prescribes the signatures of special methods")]

mod approvals;
mod audit;
mod permissions;
mod preset_digest;
mod rules;

pub(crate) use approvals::{PyApprovals, value_of};
pub(crate) use audit::AuditSink;
pub(crate) use permissions::PyPermissions;
pub(crate) use preset_digest::presets_hash;
pub(crate) use rules::{PyExplanation, PyPolicy};
