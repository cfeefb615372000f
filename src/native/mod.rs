//! Tools written in Rust, and the driver that runs them on tokio.
//!
//! Read it in this order: [`NativeTool`] is an async function or a stream with its schema, [`ToolContext`] is what it is
//! told about its call, [`Run`] is one execution of it; [`Toolkit`] is the path of a call for programs without Python;
//! [`Runtime`] is the tokio runtime of a host that has none, such as a Python process.

mod context;
mod run;
mod runtime;
mod schema;
mod tool;
pub mod tools;

pub use context::ToolContext;
pub use run::{Failure, Run, ToolError};
pub use runtime::{Delivery, Room, Runtime, ShutDown, Task};
pub use tool::{Json, NativeTool};
