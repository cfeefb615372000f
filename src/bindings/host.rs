//! The functions of the program that a tool reaches in the middle of its call.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::imported::GET_LOGGER;
use crate::bindings::once::intern;
use crate::native::LogLevel;

/// The functions that a tool reaches in the middle of its call: those of its toolkit, or of the MCP client that calls it.
#[derive(Default)]
pub(crate) struct HostFunctions {
    /// The function that answers questions to the user.
    pub(crate) asker: Option<Py<PyAny>>,
    /// The function that answers requests to a model.
    pub(crate) sampler: Option<Py<PyAny>>,
    /// The receiver of log messages for an MCP client: an object with the methods `wants_log` and `log`.
    pub(crate) log: Option<Py<PyAny>>,
}

impl HostFunctions {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let same = |function: &Option<Py<PyAny>>| function.as_ref().map(|function| function.clone_ref(py));
        Self { asker: same(&self.asker), sampler: same(&self.sampler), log: same(&self.log) }
    }

    /// The same, with the functions of another host where this one has none.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { asker: self.asker.or(other.asker), sampler: self.sampler.or(other.sampler), log: self.log.or(other.log) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.asker)?;
        visit.call(&self.sampler)?;
        visit.call(&self.log)
    }

    /// Logs a message of a native tool, in Python's logger `toolcrib` and for the client.
    pub(crate) fn log(&self, py: Python<'_>, level: LogLevel, text: &str) -> PyResult<()> {
        let logger = GET_LOGGER.get(py)?.call1((intern!(py, "toolcrib"),))?;
        logger.call_method1(intern!(py, "log"), (level_number(level), intern!(py, "%s"), text))?;
        match &self.log {
            Some(log) => log.call_method1(py, intern!(py, "log"), (level_number(level), text)).map(drop),
            None => Ok(()),
        }
    }
}

/// The level of Python's `logging` for a level of the protocol. Those that Python does not have are between its own.
fn level_number(level: LogLevel) -> u8 {
    match level {
        LogLevel::Debug => 10,
        LogLevel::Info => 20,
        LogLevel::Notice => 25,
        LogLevel::Warning => 30,
        LogLevel::Error => 40,
        LogLevel::Critical => 50,
        LogLevel::Alert => 60,
        LogLevel::Emergency => 70,
    }
}

/// The most severe level that a number of Python's `logging` reaches.
pub(crate) fn level_of(number: i64) -> LogLevel {
    let reached = |level: &LogLevel| i64::from(level_number(*level)) <= number;
    LogLevel::ALL.into_iter().rfind(reached).unwrap_or(LogLevel::Debug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_python_is_the_next_one_below_of_the_protocol() {
        let levels = [-1, 5, 10, 19, 20, 29, 35, 45, 50, 1000].map(level_of).map(LogLevel::as_str);

        assert_eq!(
            levels,
            ["debug", "debug", "debug", "debug", "info", "notice", "warning", "error", "critical", "emergency"]
        );
    }
}
