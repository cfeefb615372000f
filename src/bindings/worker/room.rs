//! Where the thread of a generator waits until its reader has caught up.

use std::sync::{Condvar, Mutex, PoisonError};

use super::lock;

/// Opened once for each wait, before it or during it.
#[derive(Default)]
pub(super) struct Room {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Room {
    pub(super) fn open(&self) {
        *lock(&self.is_open) = true;
        self.opened.notify_one();
    }

    /// Waits for it to be opened; the thread does not hold the GIL.
    pub(super) fn wait(&self) {
        let mut is_open = lock(&self.is_open);
        while !std::mem::take(&mut *is_open) {
            is_open = self.opened.wait(is_open).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
