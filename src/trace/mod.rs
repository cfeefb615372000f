//! What a trace says about the call of a tool, in the words of OpenTelemetry's conventions for generative AI: the name and
//! the attributes of its span, and how it ended.

mod outcome;
mod span;
mod watch;

pub use outcome::Outcome;
pub use span::{ToolSpan, key};
pub use watch::{Watch, is_watched};
