//! Log messages of a tool, for its developer or for the client that called it.

use std::fmt;
use std::sync::Arc;

string_enum! {
    /// The severity of a log message, least severe first. The words are those of syslog, which MCP uses too.
    #[derive(PartialOrd, Ord)]
    pub enum LogLevel {
        /// Details for the developer.
        Debug = "debug",
        /// Facts about normal work.
        Info = "info",
        /// Normal but significant facts.
        Notice = "notice",
        /// A condition that may lead to an error.
        Warning = "warning",
        /// An error that the tool survives.
        Error = "error",
        /// A failure of a component.
        Critical = "critical",
        /// A condition that needs action at once.
        Alert = "alert",
        /// The system is unusable.
        Emergency = "emergency",
    }
}

/// The function of a host that logs the messages of its tools. It is called in any thread, and must not block.
#[derive(Clone)]
pub struct Logger {
    /// None if every level is.
    is_wanted: Option<Arc<dyn Fn(LogLevel) -> bool + Send + Sync>>,
    log: Arc<dyn Fn(LogLevel, String) + Send + Sync>,
}

impl Logger {
    /// Makes a logger of a function that takes messages of every level.
    pub fn new(log: impl Fn(LogLevel, String) + Send + Sync + 'static) -> Self {
        Self { is_wanted: None, log: Arc::new(log) }
    }

    /// Makes a logger of a function that takes the messages of some levels, which may change at any time.
    pub fn filtered(
        is_wanted: impl Fn(LogLevel) -> bool + Send + Sync + 'static,
        log: impl Fn(LogLevel, String) + Send + Sync + 'static,
    ) -> Self {
        Self { is_wanted: Some(Arc::new(is_wanted)), log: Arc::new(log) }
    }

    /// True if messages of this level are logged at present.
    #[must_use]
    pub fn wants(&self, level: LogLevel) -> bool {
        self.is_wanted.as_ref().is_none_or(|is_wanted| is_wanted(level))
    }

    /// Logs a message, unless its level is not wanted.
    pub fn log(&self, level: LogLevel, text: impl Into<String>) {
        if self.wants(level) {
            (self.log)(level, text.into());
        }
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Logger").finish_non_exhaustive()
    }
}
