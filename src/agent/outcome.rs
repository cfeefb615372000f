//! The end of a run: its reason, the texts for the caller's model, and the events on the way there.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value, json};

string_enum! {
    /// The reason for the end of a run.
    pub enum Termination {
        /// The agent has completed its task.
        Goal = "GOAL",
        /// The time limit.
        Timeout = "TIMEOUT",
        /// The limit of turns.
        MaxTurns = "MAX_TURNS",
        /// The limit of tokens.
        MaxTokens = "MAX_TOKENS",
        /// The budget of the whole tree of agents is used up.
        Budget = "BUDGET",
        /// The user has stopped it.
        Aborted = "ABORTED",
        /// An error of the model function or the loop.
        Error = "ERROR",
        /// The model has stopped without completing the task.
        NoCompletion = "ERROR_NO_COMPLETE_TASK_CALL",
    }
}

impl Termination {
    /// True if the agent gets one more turn to complete its task.
    #[must_use]
    pub const fn is_recoverable(self) -> bool {
        matches!(self, Self::Timeout | Self::MaxTurns | Self::NoCompletion)
    }

    /// The result of a run that ends for this reason without one.
    ///
    /// `limit` is the limit that was reached: minutes, turns or tokens.
    #[must_use]
    pub fn final_text(self, limit: Option<f64>) -> String {
        let number = |limit: f64| format!("{}", (limit * 100.0).round() / 100.0);
        match (self, limit) {
            (Self::Timeout, Some(minutes)) => format!("Agent timed out after {} minutes.", number(minutes)),
            (Self::MaxTurns, Some(turns)) => format!("Agent reached max turns limit ({}).", number(turns)),
            (Self::MaxTokens, Some(tokens)) => format!("Agent reached max tokens limit ({}).", number(tokens)),
            _ => "Agent execution was terminated before completion.".to_owned(),
        }
    }
}

string_enum! {
    /// The kind of an event that a run emits.
    pub enum Activity {
        /// The run has begun.
        Start = "START",
        /// A tool is called: `name` and `args`.
        ToolCallStart = "TOOL_CALL_START",
        /// A tool reports progress: `name` and `text`.
        ToolCallProgress = "TOOL_CALL_PROGRESS",
        /// A call is over: `name` and `output`.
        ToolCallEnd = "TOOL_CALL_END",
        /// A part of the model's thoughts: `text`.
        ThoughtChunk = "THOUGHT_CHUNK",
        /// An error: `error`, `context` and perhaps `name`.
        Error = "ERROR",
    }
}

impl Activity {
    /// The text of an event for people.
    #[must_use]
    pub fn text(self, data: &Map<String, Value>) -> String {
        let field = |key: &str| match data.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        match self {
            Self::Start => field("text"),
            Self::ToolCallStart => format!("🤖🔧 {}", field("name")),
            Self::ToolCallProgress => format!("🤖🔧 {}: {}", field("name"), field("text")),
            Self::ToolCallEnd => format!("🤖✅ {}", field("name")),
            Self::ThoughtChunk => format!("🤖💭 {}", field("text")),
            Self::Error => format!("🤖❌ {}", field("error")),
        }
    }
}

/// An event of an agent as data, as it is in the metadata of progress. A loop may emit other kinds than [`Activity`] has.
#[must_use]
pub fn activity_event(kind: &str, path: &[Arc<str>], data: &Map<String, Value>) -> Value {
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    json!({"agent": path.last(), "path": path, "type": kind, "data": data})
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The reason. That of an interruption stays if the agent has completed its task in the recovery turn.
    pub termination: Termination,
    /// True if the agent was interrupted and has completed its task in the recovery turn.
    pub is_recovered: bool,
    /// The result as text, if there is one.
    pub result: Option<String>,
}

impl Outcome {
    /// True if the agent has completed its task, in time or in the recovery turn.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.termination == Termination::Goal || self.is_recovered
    }

    /// The text for the model that called the agent.
    #[must_use]
    pub fn wrapped(&self, agent: &str, final_text: &str) -> String {
        let reason = self.termination.as_str();
        let interrupted = if self.is_recovered {
            " (interrupted: the result was given in a recovery turn and may be incomplete)"
        } else {
            ""
        };
        let result = self.result.as_deref().unwrap_or(final_text);
        format!("Subagent '{agent}' finished.\nTermination Reason: {reason}{interrupted}\nResult:\n{result}")
    }
}

/// The text for the caller's model if a run fails with an error.
#[must_use]
pub fn failure_text(agent: &str, error: &str) -> String {
    format!("Subagent '{agent}' failed. Error: {error}")
}

/// The answer to a call of a tool that an agent does not have.
#[must_use]
pub fn unauthorized_text(tool: &str) -> String {
    let shown: String = tool.chars().take(100).collect();
    format!("Unauthorized tool call: '{shown}' is not available to this agent.")
}

/// The most characters of an input, and of all of them, in the description of a run.
const LONGEST_INPUT: usize = 50;
const LONGEST_DESCRIPTION: usize = 200;

/// One line that describes a run to people: the agent and its inputs, each shortened.
#[must_use]
pub fn run_description(agent: &str, inputs: &Map<String, Value>) -> String {
    let mut shown = String::new();
    for (name, value) in inputs {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text: String = text.chars().take(LONGEST_INPUT).collect();
        let separator = if shown.is_empty() { "" } else { ", " };
        let _ = write!(shown, "{separator}{name}: {text}");
        if shown.len() > LONGEST_DESCRIPTION * 4 {
            break;
        }
    }
    let all = format!("Running subagent '{agent}' with inputs: {{ {shown} }}");
    all.chars().take(LONGEST_DESCRIPTION).collect()
}

/// A thought of a model, split at its first text in bold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thought<'a> {
    /// The text between the first pair of `**`, without blanks around it; empty if there is none.
    pub subject: &'a str,
    before: &'a str,
    after: &'a str,
}

const BOLD: &str = "**";

impl<'a> Thought<'a> {
    /// Parses a thought.
    ///
    /// ```
    /// use toolcrib::agent::Thought;
    ///
    /// let thought = Thought::parse("**Planning** I will look");
    ///
    /// assert_eq!((thought.subject, thought.description().as_str()), ("Planning", "I will look"));
    /// ```
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let bold = text.split_once(BOLD).and_then(|(before, rest)| Some((before, rest.split_once(BOLD)?)));
        match bold {
            Some((before, (subject, after))) => Self { subject: subject.trim(), before, after },
            None => Self { subject: "", before: text, after: "" },
        }
    }

    /// The rest of the thought.
    #[must_use]
    pub fn description(&self) -> String {
        format!("{}{}", self.before, self.after).trim().to_owned()
    }
}
