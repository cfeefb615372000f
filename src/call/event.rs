//! What can be heard of a call while it is under way.

/// What happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It starts.
    CallStart,
    /// A response is delivered.
    Chunk,
    /// Somebody is asked whether it may run.
    PermissionRequest,
    /// It is decided whether it may run.
    PermissionResult,
    /// It has ended, in whatever way.
    CallEnd,
    /// It went wrong.
    Error,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::CallStart, Self::Chunk, Self::PermissionRequest, Self::PermissionResult, Self::CallEnd, Self::Error];

    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallStart => "call_start",
            Self::Chunk => "chunk",
            Self::PermissionRequest => "permission_request",
            Self::PermissionResult => "permission_result",
            Self::CallEnd => "call_end",
            Self::Error => "error",
        }
    }
}
