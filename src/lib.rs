//! The tool layer of LLM agents: keeps tools, describes them to models, decides who may call them, and runs them.
//!
//! One path leads from a request to its responses. Every kind of tool and every interface of the crate uses it:
//!
//! ```text
//! register   function ─▶ parameters ─▶ JSON Schema ─▶ Tool in a Registry
//! describe   Registry ─▶ active groups ∩ view ─▶ schemas in a provider's dialect
//! call       wire format or text ─▶ ToolCall
//!               │
//!               ├─ find          the tool of that name                       or respond: unknown tool
//!               ├─ admit         its group is active, the view includes it   or respond: not available
//!               ├─ arguments     presets, repair, coerce, check              or respond: invalid arguments
//!               ├─ permission    allow, ask the approver, deny               or respond: denied, pending
//!               ├─ run           the tool's own code                         or respond: failed, timeout, interrupted
//!               ▼
//!            ToolStream          the responses
//! ```
//!
//! [`call`] has this path as decisions without I/O. Two drivers carry them out: [`native`] runs tools that are written in
//! Rust on tokio, and the feature `python` adds the extension module of the Python package `toolcrib`, which runs Python
//! functions on their event loop. The other modules are the parts of the path: [`registry`], [`schema`], [`policy`],
//! [`text`], [`agent`], [`skill`], [`store`], [`trace`] and [`json`]. [`mcp`] joins other programs to it. `files` has the
//! tools for files, `process` those that run programs.
//!
//! A program without Python registers a native tool, is asked for approval, and streams the responses:
//!
//! ```
//! use futures_util::{StreamExt, stream};
//! use toolcrib::prelude::*;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Mail {
//!     /// The addresses to write to.
//!     to: Vec<String>,
//! }
//!
//! /// The approver; a user interface would ask a person.
//! async fn approve(request: ApprovalRequest) -> Choice {
//!     if request.arguments["to"][0] == "ann@example.com" { Choice::Once } else { Choice::No }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> toolcrib::Result<()> {
//! let send = NativeTool::streaming("send", "Sends mails.", |_: ToolContext, mail: Mail| {
//!     stream::iter(mail.to).map(|to| Ok::<_, ToolError>(format!("sent to {to}")))
//! });
//! let toolkit = Toolkit::new().with_approver(approve);
//! toolkit.register(send.with_permission(Permission::Confirm))?;
//!
//! let call = |to: &[&str]| ToolCall::new("send", [("to".to_owned(), to.into())].into_iter().collect());
//! let mut responses = toolkit.call(call(&["ann@example.com", "bob@example.com"]));
//! while let Some(response) = responses.next().await {
//!     assert!(response.text().starts_with("sent to "));
//! }
//!
//! let denied: Vec<ToolResponse> = toolkit.call(call(&["eve@example.com"])).collect().await;
//! assert_eq!(denied[0].code, Some(Code::Denied));
//! # Ok(())
//! # }
//! ```
//!
//! `examples/native_tool.rs` is a longer program, with a wire format and a cancellation.

#[macro_use]
mod string_enum;

pub mod agent;
pub mod artifact;
#[cfg(feature = "python")]
mod bindings;
mod bytes;
pub mod call;
pub mod error;
#[cfg(unix)]
pub mod files;
mod front_matter;
pub mod json;
pub mod mcp;
pub mod native;
mod near;
pub mod policy;
#[cfg(unix)]
pub mod process;
pub mod provider;
pub mod registry;
pub mod schema;
pub mod skill;
pub mod store;
mod sync;
pub mod text;
pub mod trace;

pub use error::{Error, Result};

/// The types that a program with native tools uses: `use toolcrib::prelude::*;`.
pub mod prelude {
    pub use crate::call::{ApprovalRequest, ChunkMode, ChunkRule, Code, ResultBudget, ToolCall, ToolResponse};
    pub use crate::native::{Json, NativeTool, ToolContext, ToolError, ToolStream, Toolkit};
    pub use crate::policy::{Answer, Choice, Decision, Pending, Permission, Policy, Rule, ToolKind};
    pub use crate::registry::Filter;
    pub use crate::{Error, Result};
}
