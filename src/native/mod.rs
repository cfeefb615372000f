//! Tools written in Rust, and the driver that runs them on tokio.
//!
//! Read it in this order: [`NativeTool`] is an async function or a stream with its schema, [`ToolContext`] is what it is
//! told about its call, [`Run`] is one execution of it; [`Toolkit`] has the tools of a program without Python, [`ToolStream`]
//! is the path of one call there; [`Runtime`] is the tokio runtime of a host that has none, such as a Python process;
//! [`tools`] come with the crate.

mod context;
mod host;
mod run;
mod runtime;
mod schema;
mod stream;
mod tool;
mod toolkit;
pub mod tools;

pub use context::ToolContext;
pub use run::{Failure, Run, ToolError};
pub use runtime::{Delivery, Room, Runtime, ShutDown, Task};
pub use stream::ToolStream;
pub use tool::{Json, NativeTool};
pub use toolkit::Toolkit;
