//! What is said about a task in the background, with its fixed texts.

use super::Code;

/// What is said about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A tool begins to run in the background.
    Started {
        /// The tool's name.
        tool: String,
    },
    /// It is not over.
    Running,
    /// It is not over, and somebody has waited for it.
    StillRunning {
        /// How long, as it was asked for.
        seconds: String,
    },
    /// Somebody has cancelled it just now.
    Cancelled,
    /// It was cancelled while somebody waited for it.
    CancelledMeanwhile,
    /// It is over and cannot be cancelled.
    Completed,
    /// Its event loop was closed before it was over.
    LoopClosed,
    /// Nobody knows it.
    Unknown,
}

impl Notice {
    /// The word for it; none if it is what was asked for.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Started { .. } | Self::Cancelled => None,
            Self::Running | Self::StillRunning { .. } => Some(Code::TaskRunning),
            Self::CancelledMeanwhile => Some(Code::Interrupted),
            Self::Completed => Some(Code::TaskFinished),
            Self::LoopClosed => Some(Code::Failed),
            Self::Unknown => Some(Code::UnknownTask),
        }
    }

    /// The text that the model reads about the task `id`.
    #[must_use]
    pub fn text(&self, id: &str) -> String {
        match self {
            Self::Started { tool } => format!(
                "<system-reminder>Tool '{tool}' is executing asynchronously. Task ID: {id}. \
                 Use view_task('{id}') to check status, wait_task('{id}') to wait for completion, \
                 or cancel_task('{id}') to cancel the task.</system-reminder>"
            ),
            Self::Running => format!("Task {id} is still running."),
            Self::StillRunning { seconds } => {
                format!("Task {id} is still running after waiting for {seconds} seconds.")
            }
            Self::Cancelled | Self::CancelledMeanwhile => format!("Task {id} has been cancelled."),
            Self::Completed => format!("Task {id} has already completed and cannot be cancelled."),
            Self::LoopClosed => {
                "Error during async execution: the event loop was closed before the tool had finished.".to_owned()
            }
            Self::Unknown => format!("InvalidTaskIdError: Cannot find async task with ID {id}."),
        }
    }
}
