//! The switches where the systems that toolcrib unites behave differently.

use super::ChunkRule;

/// Treatment of the arguments before the tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgumentMode {
    /// Converted to the declared type where that is unambiguous, then checked.
    #[default]
    Coerce,
    /// Checked.
    Check,
    /// Handed on; only names that are preset are refused.
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

/// Treatment of arguments that have to be repaired before a tool can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairMode {
    /// They are repaired, and the response lists the repairs.
    #[default]
    On,
    /// The tool does not run; the reply lists the repairs that would be needed.
    Explain,
    /// Nothing is repaired.
    Off,
}

impl RepairMode {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "on" => Self::On,
            "explain" => Self::Explain,
            "off" => Self::Off,
            _ => return None,
        })
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Explain => "explain",
            Self::Off => "off",
        }
    }
}

/// Treatment of an error that a tool raises.
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

/// The part of a tool that raised an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSource {
    /// A function or coroutine, or the call of a generator before its first chunk.
    Function,
    /// A generator that is being read.
    Stream,
    /// A function that works on the tool's responses.
    Postprocess,
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

    /// True if an error becomes a response, false if it is raised to the consumer of the stream. A background task has no
    /// consumer to raise to unless the developer asked for it.
    #[must_use]
    pub const fn responds(self, source: ErrorSource, in_background: bool) -> bool {
        match self {
            Self::Respond => true,
            Self::Raise => false,
            Self::Compat => in_background || matches!(source, ErrorSource::Function),
        }
    }
}

/// Place where the body of a tool runs; asynchronous bodies are always driven on the caller's event loop unless they have a
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

/// The switches of a toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behaviour {
    /// Treatment of arguments.
    pub arguments: ArgumentMode,
    /// Treatment of arguments that have to be repaired.
    pub repair: RepairMode,
    /// Treatment of a tool's errors.
    pub errors: ErrorMode,
    /// Place where synchronous bodies run.
    pub run_in: RunIn,
    /// Treatment of the chunks of generators.
    pub chunks: ChunkRule,
}

impl Behaviour {
    /// The repair mode that applies: arguments that are passed on as they came are never repaired.
    #[must_use]
    pub fn repair(&self) -> RepairMode {
        if self.arguments == ArgumentMode::Pass { RepairMode::Off } else { self.repair }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compat_responds_to_functions_and_in_the_background_only() {
        use ErrorSource::{Function, Postprocess, Stream};

        for (source, in_background, responds) in [
            (Function, false, true),
            (Stream, false, false),
            (Postprocess, false, false),
            (Function, true, true),
            (Stream, true, true),
            (Postprocess, true, true),
        ] {
            assert_eq!(ErrorMode::Compat.responds(source, in_background), responds, "{source:?} {in_background}");
            assert!(ErrorMode::Respond.responds(source, in_background));
            assert!(!ErrorMode::Raise.responds(source, in_background));
        }
    }
}
