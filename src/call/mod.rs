//! What happens between a model's request and the answers to it.

mod answer;
mod background;
mod behaviour;
mod event;
mod hub;
mod notice;
mod queue;
pub mod render;
pub mod repair;
mod tool_call;
pub mod wire;

pub use answer::{Answer, Code};
pub use background::{Board, ID_LETTERS, Limits, task_id};
pub use behaviour::{ArgumentMode, ErrorMode, RunIn};
pub use event::{Event, EventKind, Kinds};
pub use hub::{EventHub, Listener, Waker};
pub use notice::Notice;
pub use tool_call::{CallError, Place, Repair, RepairKind, ToolCall};
