//! The stack of the thread: calls that are nested in one another have to end before it does.
//!
//! A call inside of a call takes the interpreter's stack frames and ours, about one KiB each time, and up to Python 3.13 the
//! interpreter counts its frames only. With a raised recursion limit the stack would come to its end first, which kills the process.

use std::cell::Cell;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

thread_local! {
    /// The lowest address at which a call may be resumed; the highest one until that is known.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The part of the stack that calls may use, as one of so many. To throw an exception into calls that are nested, to close them and to free
/// them takes up to twice as much of it as to resume them.
const USABLE: usize = 3;

/// The part of a stack of unknown size that is taken for granted.
const ASSUMED: usize = 256 << 10;

/// True if the stack has room for another call.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    let here = address();
    here > LIMIT.get() || is_above_limit(here)
}

/// An address in the present stack frame.
#[inline(always)]
fn address() -> usize {
    let marker = 0_u8;
    std::hint::black_box(&raw const marker) as usize
}

/// The same for the first call of a thread, and for one that seems to be too deep.
#[cold]
fn is_above_limit(here: usize) -> bool {
    let (lowest, highest) = bounds().unwrap_or((here.saturating_sub(ASSUMED), here));
    if LIMIT.get() == usize::MAX {
        LIMIT.set(highest - (highest - lowest) / USABLE);
    }
    // Code that switches stacks may run on one that is not the thread's own.
    here > LIMIT.get() || here < lowest
}

/// The exception for a call that is nested too deeply.
#[cold]
pub(crate) fn too_deep() -> PyErr {
    PyRecursionError::new_err("maximum depth of nested tool calls exceeded: the thread's stack is used up")
}

/// The lowest and the highest address of the thread's stack, on systems that say so.
fn bounds() -> Option<(usize, usize)> {
    // SAFETY: the attributes of this thread are written before they are read, and freed only if they were written. On macOS the
    // calls only read what the system knows about this thread.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    unsafe {
        #[cfg(target_os = "linux")]
        let (lowest, size) = {
            let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
            let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            (lowest as usize, if found == 0 { size } else { 0 })
        };
        #[cfg(target_os = "macos")]
        let (lowest, size) = {
            let (thread, highest) = (libc::pthread_self(), libc::pthread_get_stackaddr_np(libc::pthread_self()));
            let size = libc::pthread_get_stacksize_np(thread);
            ((highest as usize).saturating_sub(size), size)
        };
        (size > 0).then(|| (lowest, lowest.saturating_add(size)))
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    None
}
