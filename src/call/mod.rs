//! The path of a call, from a model's request to the responses to it, as decisions without I/O.
//!
//! Read [`path`] (the stages in their order), then [`tool_call`](ToolCall) (the request), `arguments` and `permission` (the two largest
//! stages), and `prepared` (the stages for JSON); the rest are the types that these use: replies, responses, chunks, budgets of
//! results, modes, events, background tasks, repairs.

mod arguments;
mod background;
mod budget;
mod chunk;
mod event;
mod modes;
pub mod path;
mod permission;
mod prepared;
pub mod repair;
mod reply;
mod response;
mod tool_call;

pub use arguments::{Accepted, ArgumentRules, Presets, ReadRepairs};
pub use background::{Board, ID_LETTERS, Limits, Notice, task_id};
pub use budget::{
    Cut, CutKind, CutReport, CutResult, KeepWhole, ResultBudget, STRUCTURED_CONTENT, Spending, TokenCounter, WholeText,
    estimate_tokens,
};
pub use chunk::{ChunkMode, ChunkRule, WholeResult};
pub use event::{Event, EventHub, EventKind, Kinds, Listener, Waker};
pub use modes::{ArgumentMode, Behaviour, ErrorMode, ErrorSource, RepairMode, RunIn};
pub use permission::{
    ApprovalRequest, CallInfo, CheckedArguments, Decided, DecidedBy, Deferred, Host, Next, Outlook, PermissionStage,
    Permissions, Resumption, Route, Standing, ToolFacts, Unfit, Waiting,
};
pub use prepared::{Path, Prepared, Profile};
pub use reply::{Code, Reply, failed_too_often};
pub use response::{LateMetadata, ToolResponse};
pub use tool_call::{CallError, Change, Place, Repair, RepairKind, ToolCall};
