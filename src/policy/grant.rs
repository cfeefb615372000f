//! What holds of an answer beyond the call it was given for: until the run is over, or for everything that waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexSet;

use super::Question;

/// How many grants are kept; the oldest makes room for a new one, and is then asked about again.
const MOST: usize = 10_000;

/// One tool as it was when it was allowed, for one caller, and what asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Grant {
    tool: Box<str>,
    schema_hash: [u8; 32],
    caller: Option<Box<str>>,
    question: Question,
}

impl Grant {
    fn new(tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) -> Self {
        Self { tool: tool.into(), schema_hash, caller: caller.map(Into::into), question }
    }
}

/// What was allowed until the run is over, and what waits for an answer.
///
/// It is shared between threads. A tool whose schema changes, another caller, and what another rule asks, is asked about
/// anew.
#[derive(Debug, Default)]
pub struct Grants {
    allowed: Mutex<IndexSet<Grant, ahash::RandomState>>,
    /// How often everything that waited was cancelled.
    cancelled: AtomicU64,
}

/// A question that somebody is asked, which may be cancelled before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    cancelled_before: u64,
}

impl Grants {
    fn allowed(&self) -> MutexGuard<'_, IndexSet<Grant, ahash::RandomState>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a caller use a tool without this question until the run is over.
    pub fn allow(&self, tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) {
        let mut allowed = self.allowed();
        allowed.insert(Grant::new(tool, schema_hash, caller, question));
        if allowed.len() > MOST {
            allowed.shift_remove_index(0);
        }
    }

    /// Whether a caller may use a tool without this question.
    #[must_use]
    pub fn allows(&self, tool: &str, schema_hash: [u8; 32], caller: Option<&str>, question: Question) -> bool {
        self.allowed().contains(&Grant::new(tool, schema_hash, caller, question))
    }

    /// True if nothing is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allowed().is_empty()
    }

    /// Ends the run: everything is asked about again.
    pub fn forget(&self) {
        self.allowed().clear();
    }

    /// Notes that a question is about to be asked.
    #[must_use]
    pub fn wait(&self) -> Ticket {
        Ticket { cancelled_before: self.cancelled.load(Ordering::SeqCst) }
    }

    /// Cancels every question that is being asked; those that are asked later are not.
    pub fn cancel_all(&self) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether a question was cancelled, so that a yes to it does not count.
    #[must_use]
    pub fn is_cancelled(&self, ticket: Ticket) -> bool {
        self.cancelled.load(Ordering::SeqCst) != ticket.cancelled_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Question = Question::Permission;

    #[test]
    fn a_grant_is_for_one_tool_as_it_was_and_one_caller_and_one_question() {
        let grants = Grants::default();

        grants.allow("send", [1; 32], Some("ann"), ASKED);

        assert!(grants.allows("send", [1; 32], Some("ann"), ASKED));
        assert!(!grants.allows("sеnd", [1; 32], Some("ann"), ASKED));
        assert!(!grants.allows("send", [2; 32], Some("ann"), ASKED));
        assert!(!grants.allows("send", [1; 32], Some("eve"), ASKED));
        assert!(!grants.allows("send", [1; 32], None, ASKED));
        assert!(!grants.allows("send", [1; 32], Some("ann"), Question::Rule([1; 16])));
        grants.forget();
        assert!(!grants.allows("send", [1; 32], Some("ann"), ASKED));
    }

    #[test]
    fn grants_are_bounded_and_the_oldest_goes_first() {
        let grants = Grants::default();

        for number in 0..=MOST {
            grants.allow(&number.to_string(), [1; 32], None, ASKED);
        }

        assert!(!grants.allows("0", [1; 32], None, ASKED));
        assert!(grants.allows("1", [1; 32], None, ASKED));
        assert_eq!(grants.allowed().len(), MOST);
    }

    #[test]
    fn cancelling_all_is_for_what_waits_now() {
        let grants = Grants::default();
        let (first, second) = (grants.wait(), grants.wait());

        grants.cancel_all();

        let later = grants.wait();
        assert!(grants.is_cancelled(first) && grants.is_cancelled(second));
        assert!(!grants.is_cancelled(later));
    }
}
