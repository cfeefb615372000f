//! What was found out about a message while it was read.

use crate::call::Place;

/// Which format a message is in, why, and what was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The word of the format; `None` as long as no call has been seen and none was asked for.
    pub format: Option<&'static str>,
    /// Why it is that one.
    pub why: &'static str,
    /// Where that was seen.
    pub at: Option<Place>,
    /// How many calls there were, also those that cannot be read.
    pub calls: usize,
    /// How many calls stood in code, quotes, thoughts or comments, and were left there.
    pub passed_over: usize,
    /// Why no more calls were looked for, if so.
    pub stopped: Option<&'static str>,
}
