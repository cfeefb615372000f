//! toolcrib keeps the tools of LLM agents, tells models about them, decides who may call them, and runs them.
//!
//! One path leads from a request to its answers:
//!
//! ```text
//! register   callable ─▶ signature + docstring ─▶ JSON Schema ─▶ Tool in a Registry
//! describe   Registry ─▶ active groups ∩ view ─▶ schemas
//! call       ToolCall ─▶ find ─▶ admit (group, view) ─▶ arguments (presets, coerce, check) ─▶ run ─▶ postprocess
//!                 ─▶ ToolStream
//! ```
//!
//! The core in this crate is data and decisions. The feature `python` adds the extension module that the Python
//! package `toolcrib` is made of.

#[cfg(feature = "python")]
mod bindings;
pub mod call;
pub mod error;
pub mod native;
pub mod policy;
pub mod registry;
pub mod schema;
pub mod skill;
pub mod store;
pub mod text;
pub mod trace;

pub use error::{Error, Result};
