//! Sub-agents: agents that another agent calls as a tool.
//!
//! Read in this order:
//!
//! - `input`: the inputs of an agent, and the JSON Schema that the calling model is shown;
//! - `template`: prompts with `${name}` in them;
//! - `definition`: an agent as data, and its prompt for given inputs;
//! - `file`: definitions in Markdown files.

mod definition;
mod file;
mod input;
mod template;

pub use definition::{
    AgentDefinition, AgentLimits, AgentMessage, AgentOutput, AgentParts, AgentPrompt, DEFAULT_QUERY, LIMIT_TIME,
    LIMIT_TURNS,
};
pub use file::{AGENT_FILE_LIMIT, AgentFile, AgentFolder, FileProblem};
pub use input::{AgentInput, InputType, Inputs, schema_of_inputs};
pub use template::Template;
