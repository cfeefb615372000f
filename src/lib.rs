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
//! package `toolcrib` is made of. A Rust program runs tools of its own with [`native`]:
//!
//! ```
//! use futures_util::StreamExt;
//! use toolcrib::call::{ApprovalRequest, ToolCall};
//! use toolcrib::native::{NativeTool, ToolContext, Toolkit};
//! use toolcrib::policy::{Choice, Permission};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Mail {
//!     /// The address to write to.
//!     to: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> toolcrib::Result<()> {
//! let send = NativeTool::new("send", "Sends a mail.", |_: ToolContext, mail: Mail| async move {
//!     Ok(format!("sent to {}", mail.to))
//! });
//! let toolkit = Toolkit::new().with_approver(|request: ApprovalRequest| async move {
//!     if request.arguments["to"] == "ann@example.com" { Choice::Once } else { Choice::No }
//! });
//! toolkit.register(send.with_permission(Permission::Confirm))?;
//! assert_eq!(toolkit.schemas()[0]["function"]["name"], "send");
//!
//! let call = |to: &str| ToolCall::new("send", [("to".to_owned(), to.into())].into_iter().collect());
//! let responses: Vec<_> = toolkit.call(call("ann@example.com")).collect().await;
//! assert_eq!(responses[0].text(), "sent to ann@example.com");
//!
//! let responses: Vec<_> = toolkit.call(call("bob@example.com")).collect().await;
//! assert_eq!(responses[0].code.map(|code| code.as_str()), Some("denied"));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "python")]
mod bindings;
pub mod call;
pub mod error;
pub mod json;
pub mod native;
pub mod policy;
pub mod provider;
pub mod registry;
pub mod schema;
pub mod skill;
pub mod store;
pub mod text;
pub mod trace;

pub use error::{Error, Result};
