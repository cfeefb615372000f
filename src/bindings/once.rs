//! Values that are made at first use and kept, without a lock that a fork could copy.
//!
//! pyo3's `PyOnceLock` locks a value, then releases the GIL, takes it again and makes the value; pyo3's `intern!` is such a
//! value. If another thread takes the GIL in between and forks, the lock stays locked in the child, whose own first use waits
//! for ever. So the bindings use these instead, and `clippy.toml` refuses the others.

use std::sync::OnceLock;

use pyo3::prelude::*;

/// A value that is made at first use. Threads may make it at the same time, of which the first is kept.
pub(crate) struct GilOnce<T>(OnceLock<T>);

impl<T> GilOnce<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The value, if it was made.
    #[inline]
    pub(crate) fn get(&self, _py: Python<'_>) -> Option<&T> {
        self.0.get()
    }

    /// The value, made if there is none. `make` may run Python code.
    #[inline]
    pub(crate) fn get_or_init(&self, _py: Python<'_>, make: impl FnOnce() -> T) -> &T {
        self.0.get().unwrap_or_else(|| self.keep(make()))
    }

    /// The same for a value that may fail to be made.
    #[inline]
    pub(crate) fn get_or_try_init<E>(&self, _py: Python<'_>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        match self.0.get() {
            Some(value) => Ok(value),
            None => Ok(self.keep(make()?)),
        }
    }

    /// Keeps a value unless there is one. The GIL is held meanwhile, so that no other thread forks.
    #[cold]
    fn keep(&self, value: T) -> &T {
        self.0.get_or_init(|| value)
    }
}

/// An interned `str`, made at first use.
macro_rules! intern {
    ($py:expr, $text:expr) => {{
        static INTERNED: $crate::bindings::once::GilOnce<pyo3::Py<pyo3::types::PyString>> =
            $crate::bindings::once::GilOnce::new();
        let py = $py;
        INTERNED.get_or_init(py, || pyo3::types::PyString::intern(py, $text).unbind()).bind(py)
    }};
}
pub(crate) use intern;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_thread_waits_for_the_value_of_another_one() {
        static VALUE: GilOnce<u32> = GilOnce::new();
        Python::initialize();
        let other = || Python::attach(|py| *VALUE.get_or_init(py, || 2));

        let first = Python::attach(|py| {
            *VALUE.get_or_init(py, || {
                // At this moment the other thread could fork as well.
                assert_eq!(py.detach(|| thread::spawn(other).join()).ok(), Some(2));
                1
            })
        });

        assert_eq!(first, 2, "the first value is kept");
    }

    #[test]
    fn a_value_that_cannot_be_made_is_made_later() {
        let value = GilOnce::new();
        Python::initialize();

        Python::attach(|py| {
            assert_eq!(value.get_or_try_init(py, || Err("not yet")), Err("not yet"));
            assert_eq!(value.get(py), None);
            assert_eq!(value.get_or_try_init(py, || Ok::<_, ()>(1)), Ok(&1));
        });
    }
}
