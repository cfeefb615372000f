//! What a native tool may know about its call.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// The call that a native tool runs for.
///
/// Cloning is cheap, and a clone may outlive the call: its [`cancellation`](Self::cancellation) tells when the call is
/// over.
#[derive(Debug, Clone, Default)]
pub struct ToolContext {
    /// The name that the tool was called by.
    pub tool: Arc<str>,
    /// The id of the call, as the model or its provider wrote it.
    pub call_id: Option<Arc<str>>,
    /// The caller, if one is named.
    pub caller: Option<Arc<str>>,
    /// The moment at which the call times out.
    pub deadline: Option<Instant>,
    /// Cancelled when the call is: the consumer is gone, asked for it, or the deadline has passed.
    ///
    /// The tool's own future is dropped at that moment. The token is for what the tool has started elsewhere, in a task or a
    /// thread of its own.
    pub cancellation: CancellationToken,
}

impl ToolContext {
    /// The context of a call of which only the tool's name is known.
    #[must_use]
    pub fn of(tool: impl Into<Arc<str>>) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }
}
