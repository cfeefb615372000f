//! How much a model may write: beyond each of these it gets an error to read, and nothing runs.

/// How deep tags may be nested in a call.
pub const DEPTH: usize = 64;

/// How many bytes one call may have.
pub const CALL_BYTES: usize = 1 << 20;

/// How many calls one message may have.
pub const CALLS: usize = 64;

/// How many bytes are looked at to see whether a call begins.
pub(super) const WINDOW: usize = 512;

/// How many repairs of one call are listed.
pub(super) const REPAIRS: usize = 32;
