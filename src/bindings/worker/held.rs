//! State that the GIL guards: only attached threads touch it, and the module declares that it needs the GIL, so that is
//! one at a time. A lock would cost each call more than all that is done under it.

use std::cell::RefCell;

use pyo3::prelude::*;

/// A value that attached threads share.
#[derive(Default)]
pub(super) struct Held<T>(RefCell<T>);

// SAFETY: a reference to the value lives only as long as a call of `with`, which asks for the proof that the thread is
// attached; the GIL orders what attached threads do.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T> Held<T> {
    pub(super) const fn new(value: T) -> Self {
        Held(RefCell::new(value))
    }

    /// Looks at the value or changes it. Nothing that may run Python code or let go of the GIL belongs in there, not even
    /// dropping an object: whoever came by meanwhile would panic.
    #[inline]
    pub(super) fn with<R>(&self, _py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}
