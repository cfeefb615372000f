//! Sub-agents: the rules of a run, without a model and without I/O.
//!
//! A tool that is an agent runs a loop of its own: it opens a session for the loop, the loop calls a model and tools, and
//! the last result of the loop is the result of the tool. Read in this order:
//!
//! - `lineage`: the path of callers that led to a run, the limit of its depth, and the refusal of cycles;
//! - `budget`: the turns, calls and tokens that all runs of a tree share;
//! - `completion`: the tool `complete_task`, by which an agent ends its run, and its rules;
//! - `outcome`: the reasons for the end of a run, and their texts;
//! - `thought`: the subject of a model's thought.

mod budget;
mod completion;
mod lineage;
mod outcome;
mod thought;

pub use budget::{Budget, BudgetLimits, BudgetUse, Exhausted};
pub use completion::{COMPLETE_TASK, Completion, CompletionProblem, DUPLICATE_COMPLETION, completion_text};
pub use lineage::{Lineage, Refusal, TreeLimits};
pub use outcome::{Activity, Outcome, Termination, activity_event, failure_text, run_description, unauthorized_text};
pub use thought::Thought;
