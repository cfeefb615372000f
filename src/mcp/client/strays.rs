//! The messages of a server that were dropped: they are counted, and those that cannot be read are logged.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::WarningHandler;
use crate::sync::lock;

/// The number of warnings in a period; more are counted.
const MAX_WARNINGS: u64 = 5;
const PERIOD: Duration = Duration::from_secs(60);

/// The dropped messages of one server, over all of its connections.
pub(super) struct Strays {
    server: Arc<str>,
    count: AtomicU64,
    warnings: Mutex<Warnings>,
    handler: Option<WarningHandler>,
}

/// The warnings of a period.
#[derive(Default)]
struct Warnings {
    began: Option<Instant>,
    count: u64,
}

impl Strays {
    pub(super) fn new(server: Arc<str>, handler: Option<WarningHandler>) -> Arc<Self> {
        Arc::new(Self { server, count: AtomicU64::new(0), warnings: Mutex::default(), handler })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a message that belongs to nothing.
    pub(super) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that cannot be read, and logs the reason unless there were many such warnings.
    pub(super) fn add_unreadable(&self, reason: &str) {
        self.add();
        let Some(left_out) = self.admit(Instant::now()) else { return };
        let mut text = format!("dropped a message of MCP server `{}`: {reason}", self.server);
        if left_out > 0 {
            let _ = write!(text, " ({left_out} other warnings were left out)");
        }
        tracing::warn!(target: "toolcrib::mcp", "{text}");
        if let Some(handler) = &self.handler {
            handler(text);
        }
    }

    /// The number of warnings that were left out before this one; none if this one is left out too.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut warnings = lock(&self.warnings);
        let mut left_out = 0;
        if warnings.began.is_none_or(|began| now.duration_since(began) >= PERIOD) {
            left_out = warnings.count.saturating_sub(MAX_WARNINGS);
            *warnings = Warnings { began: Some(now), count: 0 };
        }
        warnings.count += 1;
        (warnings.count <= MAX_WARNINGS).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_few_and_those_left_out_are_counted() {
        let strays = Strays::new("s".into(), None);
        let start = Instant::now();

        let first: Vec<_> = (0..100).map(|_| strays.admit(start)).collect();
        let later = strays.admit(start + PERIOD);

        assert_eq!(first.iter().flatten().count(), 5);
        assert_eq!(later, Some(95));
    }
}
