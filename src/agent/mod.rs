//! Sub-agents: agents that another agent calls as a tool, as data and as the rules of a run, without a model.
//!
//! A tool that is an agent runs a loop of its own: it opens a session for the loop, the loop calls a model and tools, and
//! the last result of the loop is the result of the tool. Read in this order, first the agent:
//!
//! - `input`: the inputs of an agent, and the JSON Schema that the calling model is shown;
//! - `template`: prompts with `${name}` in them;
//! - `definition`: an agent as data, and its prompt for given inputs;
//! - `file`: definitions in Markdown files;
//!
//! then its run:
//!
//! - `lineage`: the path of callers that led to a run, the limit of its depth, and the refusal of cycles;
//! - `budget`: the turns, calls and tokens that all runs of a tree share;
//! - `completion`: the tool `complete_task`, by which an agent ends its run, and its rules;
//! - `outcome`: the reasons for the end of a run, the texts for its events, and the subject of a model's thought.

mod budget;
mod completion;
mod definition;
mod file;
mod input;
mod lineage;
mod outcome;
mod template;

pub use budget::{Budget, BudgetLimits, BudgetUse, Exhausted};
pub use completion::{COMPLETE_TASK, Completion, CompletionProblem, DUPLICATE_COMPLETION, completion_text};
pub use definition::{
    AgentDefinition, AgentLimits, AgentMessage, AgentOutput, AgentParts, AgentPrompt, DEFAULT_QUERY, LIMIT_TIME,
    LIMIT_TURNS,
};
pub use file::{AGENT_FILE_LIMIT, AgentFile, AgentFolder, FileProblem};
pub use input::{AgentInput, InputType, Inputs, schema_of_inputs};
pub use lineage::{Lineage, Refusal, TreeLimits};
pub use outcome::{
    Activity, Outcome, Termination, Thought, activity_event, failure_text, run_description, unauthorized_text,
};
pub use template::Template;
