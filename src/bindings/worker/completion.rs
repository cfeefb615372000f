//! Values that threads without the GIL send to an event loop: the results of native tools.
//!
//! [`completions`] makes a pair of ends on the loop's thread. The [`Completer`] goes to any thread, runtime or task; it
//! takes no lock that a thread with the GIL holds while it waits, touches no Python object and may outlive the loop and
//! the interpreter. The [`Completions`] stay with the object that is awaited:
//!
//! ```text
//! native thread                              event loop's thread (attached)
//! -------------                              ------------------------------
//!                                            let (completer, results) = completions(py)?;
//! completer.complete(value)                  match results.poll(py)? {
//!   value joins the queue                        Next::Value(value) => …, poll again for more
//!   if the queue was empty: notify               Next::Ended => the completer was dropped, all values are taken
//!   one write for all until the loop looks       Next::Wait(waiter) => yield it to the loop, poll again when resumed
//! drop(completer)                            }
//! ```
//!
//! A single result is a queue with one value. A stream that has to wait for its reader sends a permit of a semaphore
//! with each value: the reader gives it back by dropping it.
//!
//! What can go wrong, and what happens then:
//! - the loop is closed or dropped: notifications are ignored, `is_abandoned` turns true with the reader;
//! - the reader is dropped (a cancelled call): values are dropped where they are, `is_abandoned` says so;
//! - the completer is dropped without a value (a panic, an aborted task): the reader gets `Next::Ended`;
//! - the process forks: in the child `poll` raises, and neither end takes a lock that a lost thread may hold;
//! - the interpreter shuts down: nothing on the native side knows or needs to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::wakeup::{Notifier, Ticket};
use super::{lock, waiter};

/// The sending end, for any thread. Dropping it ends the queue.
pub(crate) struct Completer<T> {
    queue: Arc<Mutex<Queue<T>>>,
    notifier: Notifier,
}

/// The receiving end, for the event loop that it was made on. Dropping it abandons the work.
pub(crate) struct Completions<T> {
    queue: Arc<Mutex<Queue<T>>>,
    ticket: Ticket,
}

/// The next thing for the reader.
pub(crate) enum Next<T> {
    Value(T),
    /// All values are taken, and there will be no more.
    Ended,
    /// A waiter of the loop, marked as awaited, so that it can be yielded to the loop as it is. Poll again when it is
    /// done, however it got done.
    Wait(Py<PyAny>),
}

struct Queue<T> {
    values: VecDeque<T>,
    is_ended: bool,
    is_abandoned: bool,
}

/// Makes the two ends of a queue to the event loop that runs in this thread.
///
/// # Errors
/// If no event loop is running, or its wake-up cannot be set up.
pub(crate) fn completions<T>(py: Python<'_>) -> PyResult<(Completer<T>, Completions<T>)> {
    let ticket = Ticket::of_running_loop(py)?;
    let queue = Queue { values: VecDeque::new(), is_ended: false, is_abandoned: false };
    let queue = Arc::new(Mutex::new(queue));
    Ok((Completer { queue: queue.clone(), notifier: ticket.notifier() }, Completions { queue, ticket }))
}

impl<T> Completer<T> {
    /// Sends a value; drops it if there is no reader any more.
    pub(crate) fn complete(&self, value: T) {
        let is_first = {
            let mut queue = lock(&self.queue);
            if queue.is_abandoned {
                drop(queue);
                return drop(value);
            }
            queue.values.push_back(value);
            queue.values.len() == 1
        };
        if is_first {
            // A reader that has values left polls until it has none, so only the first needs a wake-up.
            self.notifier.notify();
        }
    }

    /// True when there is no reader any more, so that the work can stop.
    pub(crate) fn is_abandoned(&self) -> bool {
        lock(&self.queue).is_abandoned
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        if !self.notifier.is_current() {
            return;
        }
        lock(&self.queue).is_ended = true;
        self.notifier.notify();
    }
}

impl<T> Completions<T> {
    /// Takes the next value, or hands out a waiter to yield to the loop.
    ///
    /// # Errors
    /// If the process was forked since the queue was made, or its loop is gone.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<Next<T>> {
        if !self.ticket.is_current() {
            return Err(PyRuntimeError::new_err("the process was forked while a native tool was running"));
        }
        if let Some(next) = self.next() {
            return Ok(next);
        }
        let waiter = self.ticket.expect(py)?;
        // A value that arrived before the waiter was there has woken nobody.
        if let Some(next) = self.next() {
            self.ticket.withdraw(py);
            return Ok(next);
        }
        waiter::mark_awaited(&waiter)?;
        Ok(Next::Wait(waiter.unbind()))
    }

    fn next(&self) -> Option<Next<T>> {
        let mut queue = lock(&self.queue);
        match queue.values.pop_front() {
            Some(value) => Some(Next::Value(value)),
            None => queue.is_ended.then_some(Next::Ended),
        }
    }
}

impl<T> Drop for Completions<T> {
    fn drop(&mut self) {
        if !self.ticket.is_current() {
            return;
        }
        let values = {
            let mut queue = lock(&self.queue);
            queue.is_abandoned = true;
            std::mem::take(&mut queue.values)
        };
        drop(values);
        Python::try_attach(|py| self.ticket.withdraw(py));
    }
}
