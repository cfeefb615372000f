//! The switches where the systems that toolcrib unites behave differently.

/// What is done with the arguments before the tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgumentMode {
    /// Converted to the declared type where that is unambiguous, then checked.
    #[default]
    Coerce,
    /// Checked.
    Check,
    /// Handed on; only names that the schema does not show are refused.
    Pass,
}

impl ArgumentMode {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "coerce" => Self::Coerce,
            "check" => Self::Check,
            "pass" => Self::Pass,
            _ => return None,
        })
    }
}

/// What becomes of an exception that a tool raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorMode {
    /// Always a response.
    #[default]
    Respond,
    /// Always an exception for the consumer of the stream.
    Raise,
    /// A response if a function raised, an exception if a generator or a postprocess function did, as in AgentScope.
    Compat,
}

impl ErrorMode {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "respond" => Self::Respond,
            "raise" => Self::Raise,
            "compat" => Self::Compat,
            _ => return None,
        })
    }
}

/// Where the body of a tool runs; asynchronous bodies are always driven on the caller's event loop unless they have a
/// process of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunIn {
    /// In a worker thread.
    #[default]
    Thread,
    /// In the caller's thread, on its event loop.
    Inline,
    /// In a child process that can be killed.
    Process,
}

impl RunIn {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "thread" => Self::Thread,
            "inline" => Self::Inline,
            "process" => Self::Process,
            _ => return None,
        })
    }
}
