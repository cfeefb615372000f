//! How a call ended, as a trace tells it.

use crate::call::Code;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It went well, as far as it was wanted: a stream that is left early did.
    Completed,
    /// An answer with a code took the place of a result.
    Answered {
        /// The word for what went wrong.
        code: String,
    },
    /// An exception came out of the tool, whether the consumer saw it or a response in its place.
    Raised {
        /// The exception's class.
        class: String,
        /// What it said.
        message: String,
    },
    /// The call was cancelled.
    Cancelled,
}

impl Outcome {
    /// What a response says by the code it has, if it has one.
    #[must_use]
    pub fn of_code(code: Option<&str>) -> Self {
        match code {
            None => Self::Completed,
            Some(code) if code == Code::Interrupted.as_str() => Self::Cancelled,
            Some(code) => Self::Answered { code: code.to_owned() },
        }
    }

    /// The value of `error.type`; none when all went well.
    #[must_use]
    pub fn error_type(&self) -> Option<&str> {
        match self {
            Self::Completed => None,
            Self::Answered { code } => Some(code),
            Self::Raised { class, .. } => Some(class),
            Self::Cancelled => Some("CancelledError"),
        }
    }

    /// What the status says beside being an error. An answer is not repeated, because it may quote the arguments.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        match self {
            Self::Raised { class, message } if message.is_empty() => Some(class.clone()),
            Self::Raised { class, message } => Some(format!("{class}: {message}")),
            Self::Cancelled => Some("the call was cancelled".to_owned()),
            Self::Completed | Self::Answered { .. } => None,
        }
    }

    /// Whether the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self == Self::Cancelled
    }
}
