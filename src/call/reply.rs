//! The replies that toolcrib itself gives in the stream, with their fixed texts: one table.

use super::modes::ErrorSource;
use crate::agent::{Refusal, Termination, failure_text};
use crate::registry::{Denial, LimitReached};

/// The longest name of a tool that a reply repeats, in characters: the model made it up.
const LONGEST_NAME: usize = 100;

/// The reason why a call did not go well, as a word that programs compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The request itself cannot be read.
    BadCall,
    /// No tool has the name.
    UnknownTool,
    /// The tool's groups are switched off.
    InactiveGroup,
    /// The view does not show the tool, or there is none of that name.
    ToolNotAvailable,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// The tool raised.
    Failed,
    /// The call was cancelled.
    Interrupted,
    /// The tool took longer than it may.
    Timeout,
    /// A rule or an approver denied the call, or the tool is quarantined.
    Denied,
    /// The call waits for approval.
    Pending,
    /// The approver cancelled every call that waited for approval.
    Cancelled,
    /// A limit of the session is reached.
    LimitExceeded,
    /// No worker thread is free.
    Busy,
    /// No task has the id.
    UnknownTask,
    /// The task is not over.
    TaskRunning,
    /// The task is over.
    TaskFinished,
}

impl Code {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadCall => "bad_call",
            Self::UnknownTool => "unknown_tool",
            Self::InactiveGroup => "inactive_group",
            Self::ToolNotAvailable => "tool_not_available",
            Self::InvalidArguments => "invalid_arguments",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::Pending => "pending",
            Self::Cancelled => "cancelled",
            Self::LimitExceeded => "limit_exceeded",
            Self::Busy => "busy",
            Self::UnknownTask => "unknown_task",
            Self::TaskRunning => "task_running",
            Self::TaskFinished => "task_finished",
        }
    }

    /// True for the code of a decision about permission, which is not an error of the call.
    #[must_use]
    pub fn is_about_permission(code: &str) -> bool {
        [Self::Denied, Self::Pending, Self::Cancelled].iter().any(|known| known.as_str() == code)
    }

    /// True if a last response with this code is a failure of the tool or of its arguments, and false if it is a success;
    /// none if the tool had no part in it, as in a call that was denied or cancelled.
    #[must_use]
    pub fn is_failure(code: Option<&str>) -> Option<bool> {
        let failures = [Self::Failed, Self::Timeout, Self::InvalidArguments];
        match code {
            None => Some(false),
            Some(code) => failures.iter().any(|known| known.as_str() == code).then_some(true),
        }
    }
}

/// A reply that does not come from the tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The request itself cannot be read.
    BadCall {
        /// The mistake, and the right form.
        reason: String,
    },
    /// No tool has the name.
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// A name like it, of a tool that the caller may see.
        similar: Option<String>,
    },
    /// The tool's group is switched off.
    InactiveGroup {
        /// The tool's name.
        tool: String,
        /// The group's name.
        group: String,
    },
    /// The tool is quarantined until its definition is accepted.
    Quarantined {
        /// The tool's name.
        tool: String,
        /// The reason; may be empty.
        reason: String,
    },
    /// The view does not show the tool, or there is none of that name: the reply does not say which.
    NotAvailable {
        /// The name that was asked for.
        tool: String,
        /// A name like it, of a tool that the caller may see.
        similar: Option<String>,
    },
    /// The arguments do not fit; the text lists every problem.
    InvalidArguments {
        /// The whole text.
        text: String,
    },
    /// The tool raised.
    Failed {
        /// The message of the error.
        message: String,
    },
    /// The tool raised an exception, and this text describes it.
    Raised {
        /// The whole text.
        text: String,
    },
    /// An MCP server answered with an error.
    McpFailed {
        /// The message of the error.
        message: String,
    },
    /// The tool raised in the background, not at once but while it streamed or was postprocessed.
    FailedInBackground {
        /// The message of the error.
        message: String,
    },
    /// The call was cancelled.
    Interrupted,
    /// The call was cancelled in the background, while the tool streamed.
    InterruptedInBackground,
    /// The tool took longer than it may.
    Timeout {
        /// The tool's name.
        tool: String,
        /// The time limit.
        seconds: f64,
    },
    /// A rule or an approver denied the call.
    Denied {
        /// The tool's name.
        tool: String,
        /// The reason; may be empty.
        reason: String,
    },
    /// The call waits for approval.
    Pending {
        /// The tool's name.
        tool: String,
    },
    /// The approver cancelled every call that waited for approval.
    Cancelled {
        /// The tool's name.
        tool: String,
    },
    /// A limit of the session is reached.
    LimitExceeded {
        /// The tool's name.
        tool: String,
        /// The limit.
        limit: LimitReached,
    },
    /// No worker thread is free, and none will be soon.
    Busy {
        /// The tool's name.
        tool: String,
    },
    /// An agent may not be called here.
    AgentRefused(Refusal),
    /// The run of an agent failed with an error.
    AgentFailed {
        /// The name of the agent.
        agent: String,
        /// The message of the error.
        message: String,
    },
    /// The run of an agent took longer than it may.
    AgentTimeout {
        /// The time limit.
        seconds: f64,
    },
}

impl Reply {
    /// The reply to a call that the registry does not admit.
    #[must_use]
    pub fn refusing(tool: &str, denial: &Denial) -> Self {
        let tool = short(tool);
        match denial {
            Denial::Unknown => Self::UnknownTool { name: tool, similar: None },
            Denial::Inactive(group) => Self::InactiveGroup { tool, group: group.name().to_owned() },
            Denial::Quarantined(reason) => Self::Quarantined { tool, reason: reason.to_string() },
            Denial::OutOfView => Self::NotAvailable { tool, similar: None },
        }
    }

    /// The reply with the name that was probably meant, if it is about an unknown name.
    #[must_use]
    pub fn suggesting(mut self, name: Option<&str>) -> Self {
        if let Self::UnknownTool { similar, .. } | Self::NotAvailable { similar, .. } = &mut self {
            *similar = name.map(short);
        }
        self
    }

    /// The reply to an exception of a class with a message: `KeyError: 'k'`.
    #[must_use]
    pub fn raised(class: &str, message: &str) -> Self {
        let text = if message.is_empty() { class.to_owned() } else { [class, ": ", message].concat() };
        Self::Raised { text }
    }

    /// The reply to a failure that must not be described.
    #[must_use]
    pub fn undescribed(tool: &str) -> Self {
        Self::Raised { text: format!("Error: The tool '{}' failed.", short(tool)) }
    }

    /// The reply to an error of a tool, or of what works on its responses.
    #[must_use]
    pub fn failed(message: String, source: ErrorSource, in_background: bool) -> Self {
        match source {
            ErrorSource::Stream | ErrorSource::Postprocess if in_background => Self::FailedInBackground { message },
            ErrorSource::Function | ErrorSource::Stream | ErrorSource::Postprocess => Self::Failed { message },
        }
    }

    /// True if the caller has no tool of the name in the request.
    #[must_use]
    pub fn names_no_tool(&self) -> bool {
        matches!(self, Self::UnknownTool { .. } | Self::NotAvailable { .. })
    }

    /// The code of the reply.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::BadCall { .. } => Code::BadCall,
            Self::UnknownTool { .. } => Code::UnknownTool,
            Self::InactiveGroup { .. } => Code::InactiveGroup,
            Self::NotAvailable { .. } => Code::ToolNotAvailable,
            Self::InvalidArguments { .. } => Code::InvalidArguments,
            Self::Failed { .. }
            | Self::Raised { .. }
            | Self::McpFailed { .. }
            | Self::FailedInBackground { .. }
            | Self::AgentFailed { .. } => Code::Failed,
            Self::Interrupted | Self::InterruptedInBackground => Code::Interrupted,
            Self::Timeout { .. } | Self::AgentTimeout { .. } => Code::Timeout,
            Self::Denied { .. } | Self::Quarantined { .. } => Code::Denied,
            Self::Pending { .. } => Code::Pending,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::LimitExceeded { .. } | Self::AgentRefused(_) => Code::LimitExceeded,
            Self::Busy { .. } => Code::Busy,
        }
    }

    /// The text that the model reads, without a copy of one that is ready.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::InvalidArguments { text } | Self::Raised { text } => text,
            other => other.text(),
        }
    }

    /// The text that the model reads.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::BadCall { reason } => format!("Error: Invalid tool call: {reason}"),
            Self::UnknownTool { name, similar: None } => {
                format!("FunctionNotFoundError: Cannot find the function named {}", short(name))
            }
            Self::UnknownTool { name, similar: Some(similar) } => format!(
                "FunctionNotFoundError: Cannot find the function named {}. Did you mean '{similar}'?",
                short(name)
            ),
            Self::InactiveGroup { tool, group } => format!(
                "FunctionInactiveError: The function '{tool}' is in the inactive group '{group}'. \
                 Activate the tool group by calling 'reset_equipped_tools' first to use this tool."
            ),
            Self::Quarantined { tool, reason } => {
                let clause = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                format!("Error: The tool '{tool}' is quarantined and did not run{clause}")
            }
            Self::NotAvailable { tool, similar: None } => {
                format!("Error: The tool '{}' is not available.", short(tool))
            }
            Self::NotAvailable { tool, similar: Some(similar) } => {
                format!("Error: The tool '{}' is not available. Did you mean '{similar}'?", short(tool))
            }
            Self::InvalidArguments { text } | Self::Raised { text } => text.clone(),
            Self::Failed { message } => format!("Error: {message}"),
            Self::McpFailed { message } => format!("Error occurred when calling MCP tool: {message}"),
            Self::FailedInBackground { message } => format!("Error during async execution: {message}"),
            Self::Interrupted => {
                "<system-info>The tool call has been interrupted by the user.</system-info>".to_owned()
            }
            Self::InterruptedInBackground => {
                "<system-info>The tool call has been cancelled by the user.</system-info>".to_owned()
            }
            Self::Timeout { tool, seconds } => {
                format!("Error: The tool '{tool}' did not finish within {seconds} seconds.")
            }
            Self::Denied { tool, reason } if reason.is_empty() => {
                format!("Error: The call of '{tool}' was denied and did not run.")
            }
            Self::Denied { tool, reason } => {
                format!("Error: The call of '{tool}' was denied and did not run: {reason}")
            }
            Self::Pending { tool } => {
                format!("The call of '{tool}' is waiting for approval and has not run yet.")
            }
            Self::Cancelled { tool } => {
                format!(
                    "Error: The call of '{tool}' was cancelled, with all that waited for approval, and did not run."
                )
            }
            Self::LimitExceeded { tool, limit } => match limit {
                LimitReached::Calls(calls) => {
                    format!("Error: The limit of {calls} tool calls is reached. {NO_MORE_TOOLS}")
                }
                LimitReached::Tokens(tokens) => {
                    format!("Error: The limit of {tokens} tokens is used up. {NO_MORE_TOOLS}")
                }
                LimitReached::Retries(failures) => format!("Error: {}", failed_too_often(tool, *failures)),
                LimitReached::Budget(exhausted) => format!("Error: {exhausted} {NO_MORE_TOOLS}"),
            },
            Self::Busy { tool } => {
                format!("Error: The tool '{tool}' did not run, because too many tools are running. Try again later.")
            }
            Self::AgentRefused(refusal) => format!("Error: {refusal}"),
            Self::AgentFailed { agent, message } => failure_text(agent, message),
            Self::AgentTimeout { seconds } => Termination::Timeout.final_text(Some(seconds / 60.0)),
        }
    }
}

const NO_MORE_TOOLS: &str = "Do not call any more tools: answer with what you have.";

/// The text that follows the failure after which a tool may not be called again.
#[must_use]
pub fn failed_too_often(tool: &str, failures: u64) -> String {
    let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times in a row") };
    format!("The tool '{tool}' failed {times} and may not be called again: use another tool, or answer without it.")
}

/// A name that is long enough to be recognised.
fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_model_made_up_is_repeated_in_part() {
        let name = "é".repeat(1_000_000);

        for denial in [Denial::Unknown, Denial::OutOfView] {
            let reply = Reply::refusing(&name, &denial);

            assert!(reply.text().chars().count() < 200, "{}", reply.text().len());
        }
        assert!(Reply::UnknownTool { name, similar: None }.text().ends_with(&format!("{}…", "é".repeat(100))));
    }

    #[test]
    fn a_shortened_name_is_not_shortened_again() {
        let once = Reply::refusing(&"x".repeat(101), &Denial::Unknown);

        assert_eq!(once.text().matches('…').count(), 1);
        assert!(Reply::refusing(&"x".repeat(100), &Denial::Unknown).text().ends_with("xx"));
    }
}
