//! Tools written in Rust, and the driver that runs them on tokio.
//!
//! Read it in this order:
//!
//! 1. `tool`: [`NativeTool`], an async function or a stream with its schema, and the [`ToolContext`] that it receives;
//!    `schema` generates the schema of its parameters;
//! 2. `run`: [`Run`], one execution of a tool, with its errors and panics;
//! 3. `toolkit`: [`Toolkit`], the tools of a program without Python;
//! 4. `stream`: [`ToolStream`], the path of one call there; `host` is the clock, audit and approver of its permission stage;
//! 5. `runtime`: [`Runtime`], the tokio runtime for a host that has none, such as a Python process;
//! 6. [`tools`]: the tools that come with the crate.

mod host;
pub(crate) mod run;
mod runtime;
mod schema;
mod stream;
mod tool;
mod toolkit;
pub mod tools;

pub use run::{Failure, Run, ToolError};
pub use runtime::{Delivery, QueueSlot, Runtime, ShutDown, Task};
pub use stream::ToolStream;
pub use tool::{Json, NativeTool, ToolContext};
pub use toolkit::Toolkit;
