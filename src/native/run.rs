//! One run of a native tool: the stream of its responses, errors and panics included.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::{Reply, ToolResponse};

/// The responses of a tool's own code.
pub(super) type Responses = Pin<Box<dyn Stream<Item = Result<ToolResponse, ToolError>> + Send>>;

/// An error that a native tool returns: a text that the model reads.
///
/// Every [`std::error::Error`] becomes one with `?`; its sources are part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
    is_mistake: bool,
}

impl ToolError {
    /// Makes an error with this text.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_mistake: false }
    }

    /// Makes an error for a mistake of the model, which the text tells it how to correct. It is answered like any other error, but
    /// is not one of the developer, and therefore not logged.
    #[must_use]
    pub fn mistake(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_mistake: true }
    }

    /// True for a mistake of the model.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        self.is_mistake
    }

    /// The text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `ToolError` is not a `std::error::Error` itself, so that every type that is one can become a `ToolError`.
impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors include the text of their source.
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Self { message, is_mistake: false }
    }
}

/// The failure that ends a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The arguments are valid for the schema, but not for the type of the parameters.
    Arguments(String),
    /// The tool returned an error.
    Returned(ToolError),
    /// The tool panicked, with this message.
    Panicked(String),
}

impl Failure {
    /// The reply to the model.
    #[must_use]
    pub fn reply(&self, tool: &str) -> Reply {
        match self {
            Self::Arguments(reason) => {
                Reply::InvalidArguments { text: format!("Error: Invalid arguments for tool '{tool}': {reason}") }
            }
            Self::Returned(error) => Reply::Failed { message: error.message.clone() },
            Self::Panicked(message) => Reply::Failed { message: failed_internally(message) },
        }
    }
}

/// A tool that runs: the stream of its responses.
///
/// The tool starts with the first poll. The run ends after the first failure, and a panic of the tool is such a failure.
/// Dropping the run drops the tool's future and cancels the token of its context.
#[must_use = "a tool does nothing unless its responses are polled"]
pub struct Run {
    state: RunState,
    /// True if it blocks its thread.
    blocks: bool,
    cancel: DropGuard,
}

/// The code of a tool with its arguments, called by the first poll.
pub(super) type Begin = Box<dyn FnOnce() -> Result<Responses, Failure> + Send>;

enum RunState {
    Fresh(Begin),
    Running(Responses),
    Over,
}

impl Run {
    /// Makes a run whose responses come from `begin`.
    pub(super) fn new(token: CancellationToken, begin: Begin) -> Self {
        Self { state: RunState::Fresh(begin), blocks: false, cancel: token.drop_guard() }
    }

    /// The same run, of a tool whose code blocks its thread.
    pub(super) fn blocking(mut self) -> Self {
        self.blocks = true;
        self
    }

    /// True if it blocks its thread.
    pub(super) fn blocks(&self) -> bool {
        self.blocks
    }

    /// The token that its end cancels.
    pub(super) fn token(&self) -> &CancellationToken {
        self.cancel.token()
    }

    /// Polls the tool's own code once.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<ToolResponse>, Failure>> {
        if let RunState::Fresh(_) = self.state
            && let RunState::Fresh(begin) = std::mem::replace(&mut self.state, RunState::Over)
        {
            self.state = RunState::Running(caught(begin)??);
        }
        let RunState::Running(responses) = &mut self.state else { return Poll::Ready(Ok(None)) };
        // A stream that has panicked is dropped, and never polled again.
        match caught(|| responses.as_mut().poll_next(context))? {
            Poll::Pending => Poll::Pending,
            Poll::Ready(response) => Poll::Ready(response.transpose().map_err(Failure::Returned)),
        }
    }

    /// Drops the tool's code, whose destructors may panic as well.
    fn end(&mut self) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, RunState::Over);
        caught(|| drop(state))
    }
}

impl Stream for Run {
    type Item = Result<ToolResponse, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let step = std::task::ready!(self.step(context)).transpose();
        if matches!(step, Some(Ok(_))) {
            return Poll::Ready(step);
        }
        let ended = self.end();
        Poll::Ready(step.or_else(|| ended.err().map(Err)))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Calls code of a tool, and turns its panic into a failure.
fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Failure::Panicked(panic_message(&*panic)))
}

thread_local! {
    /// True in a thread of the tools that block.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that tools may block.
pub(super) fn let_block() {
    MAY_BLOCK.set(true);
}

/// Runs a function in a thread for blocking work, which may be this one. It runs on if the call is cancelled meanwhile.
///
/// # Errors
///
/// The panic of the function.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    if MAY_BLOCK.get() {
        return Ok(work()); // the run catches its panic
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(ToolError::new(failed_internally(&panic_message(&*panic)))),
            // The runtime shuts down, and drops this future as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The text about a panic.
fn failed_internally(message: &str) -> String {
    format!("the tool failed internally: {message}")
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn blocking_work_gives_its_result_or_its_panic() {
        assert_eq!(blocking(|| 7).await, Ok(7));

        let failed = blocking(|| -> u32 { panic!("no {}", "disk") }).await;

        assert_eq!(failed, Err(ToolError::new("the tool failed internally: no disk")));
    }
}
