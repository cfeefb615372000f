//! Tools written in Rust, and the driver that runs them on tokio.
//!
//! Read it in this order:
//!
//! 1. `tool`: [`NativeTool`], an async function or a stream with its schema, and the [`ToolContext`] that it receives;
//!    `schema` generates the schema of its parameters;
//! 2. `question`: [`Question`], which a tool asks its host while it runs; `log`: [`Logger`], the messages that it logs;
//! 3. `run`: [`Run`], one execution of a tool, with its errors and panics;
//! 4. `toolkit`: [`Toolkit`], the tools of a program without Python;
//! 5. `stream`: [`ToolStream`], the path of one call there; `host` is the clock, audit and approver of its permission stage;
//! 6. `runtime`: [`Runtime`], the tokio runtime for a host that has none, such as a Python process;
//! 7. [`tools`]: the tools that come with the crate.

mod host;
mod log;
mod question;
pub(crate) mod run;
mod runtime;
mod schema;
mod stream;
mod tool;
mod toolkit;
pub mod tools;

pub use log::{LogLevel, Logger};
pub use question::{Asker, Question, Unanswered};
pub use run::{Failure, Run, ToolError};
pub use runtime::{Delivery, QueueSlot, Runtime, ShutDown, Task};
pub use stream::ToolStream;
pub use tool::{Json, NativeTool, ToolContext};
pub use toolkit::Toolkit;
