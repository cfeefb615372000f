//! Artifacts: versioned texts that agents write together.
//!
//! Read in this order: `matching` (the place of a quotation in a text), with `fold` (look-alike letters) and `approximate`
//! (edit distance); `artifacts` ([`Artifacts`] in a store, which also keeps the whole text of results that are cut); `select`
//! (parts of a content); `tools` (the native tools).

mod approximate;
mod artifacts;
mod fold;
mod matching;
mod select;
mod tools;

pub use artifacts::{Artifact, Artifacts, MAX_CONTENT, Refusal, Update, UpdateType};
pub use matching::{Match, MatchType, Mismatch, find};
pub use tools::{TOOL_NAMES, tool, tools};
