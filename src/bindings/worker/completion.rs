//! The completion queue: carries values from threads without the GIL to an event loop, such as responses of native tools.
//!
//! [`completions`] makes both ends of a queue, in the loop's thread. The [`Completer`] may be sent to any thread, runtime
//! or task; it takes no lock that a thread with the GIL holds while it waits, touches no Python object and may outlive the
//! loop and the interpreter. The [`Completions`] belong to the object that is awaited:
//!
//! ```text
//! native thread                              event loop's thread (attached)
//! -------------                              ------------------------------
//!                                            let (completer, results) = completions(py)?;
//! completer.complete(value)                  match results.poll(py)? {
//!   the value is queued                          Polled::Value(value) => …, poll again for more
//!   if the queue was empty: notify               Polled::Ended => the completer was dropped, all values are taken
//!   (one write until the loop drains)            Polled::Wait(waiter) => yield it to the loop, poll again when resumed
//! drop(completer)                            }
//! ```
//!
//! A single result is a queue with one value. A stream that has to wait for its reader sends a permit of a semaphore
//! with each value, which the reader returns by dropping it.
//!
//! Failures:
//! - the loop is closed or freed: notifications do nothing;
//! - the reader is dropped (a cancelled call): further values are dropped by their sender;
//! - the completer is dropped without a value (a panic, an aborted task): the reader gets `Polled::Ended`;
//! - the process forks: in the child `poll` raises, and neither end takes a lock that a lost thread may hold;
//! - the interpreter shuts down: the native side is not affected.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::limits::RunningJob;
use super::pool::{Work, Workers};
use super::waiter::Waiter;
use super::wakeup::{LoopInbox, NativeSignal, NotificationQueue};
use crate::sync::lock;

/// The sending end, for any thread. Dropping it ends the queue.
pub(crate) struct Completer<T> {
    queue: Arc<Mutex<CompletionQueue<T>>>,
    notifier: Notifier,
}

/// Another sending end, which does not keep the queue open.
pub(crate) struct WeakCompleter<T> {
    queue: Weak<Mutex<CompletionQueue<T>>>,
    notifier: Notifier,
}

/// The receiving end, for the event loop that it was made on. Dropping it abandons the work.
pub(crate) struct Completions<T> {
    queue: Arc<Mutex<CompletionQueue<T>>>,
    ticket: Ticket,
}

/// The result of polling a queue.
pub(crate) enum Polled<T> {
    Value(T),
    /// All values are taken, and no more will come.
    Ended,
    /// A waiter of the loop, marked as awaited, so that it can be yielded to the loop as it is. Poll again when it is
    /// done, however that came.
    Wait(Py<PyAny>),
}

struct CompletionQueue<T> {
    values: VecDeque<T>,
    is_ended: bool,
    is_abandoned: bool,
}

/// Makes both ends of a queue to the event loop that runs in this thread.
///
/// # Errors
/// If no event loop is running, or its wake-up cannot be set up.
pub(crate) fn completions<T>(py: Python<'_>) -> PyResult<(Completer<T>, Completions<T>)> {
    let ticket = Ticket::of_running_loop(py)?;
    let queue = CompletionQueue { values: VecDeque::new(), is_ended: false, is_abandoned: false };
    let queue = Arc::new(Mutex::new(queue));
    Ok((Completer { queue: queue.clone(), notifier: ticket.notifier() }, Completions { queue, ticket }))
}

impl<T> Completer<T> {
    /// Sends a value, or drops it if the reader is gone.
    pub(crate) fn complete(&self, value: T) {
        send(&self.queue, &self.notifier, value);
    }

    /// Another sending end.
    pub(crate) fn downgrade(&self) -> WeakCompleter<T> {
        WeakCompleter { queue: Arc::downgrade(&self.queue), notifier: self.notifier.clone() }
    }

    /// True if the reader is gone.
    #[cfg(test)]
    fn is_abandoned(&self) -> bool {
        lock(&self.queue).is_abandoned
    }
}

impl<T> WeakCompleter<T> {
    /// Sends a value, or drops it if the queue has ended or the reader is gone.
    pub(crate) fn complete(&self, value: T) {
        if let Some(queue) = self.queue.upgrade() {
            send(&queue, &self.notifier, value);
        }
    }
}

fn send<T>(queue: &Mutex<CompletionQueue<T>>, notifier: &Notifier, value: T) {
    let is_first = {
        let mut queue = lock(queue);
        if queue.is_abandoned || queue.is_ended {
            drop(queue);
            return drop(value);
        }
        queue.values.push_back(value);
        queue.values.len() == 1
    };
    if is_first {
        // A reader that has values left polls until it has none, so only the first needs a wake-up.
        notifier.notify();
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        if !self.notifier.is_current() {
            return;
        }
        let has_reader = {
            let mut queue = lock(&self.queue);
            queue.is_ended = true;
            !queue.is_abandoned
        };
        if has_reader {
            self.notifier.notify();
        }
    }
}

impl<T> Completions<T> {
    /// Takes the next value, or returns a waiter to yield to the loop.
    ///
    /// # Errors
    /// If the process was forked since the queue was made, or its loop is gone.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<Polled<T>> {
        if !self.ticket.is_current() {
            return Err(PyRuntimeError::new_err("the process was forked while a native tool was running"));
        }
        if let Some(next) = self.next() {
            return Ok(next);
        }
        let waiter = self.ticket.expect(py)?;
        // A value that arrived before the waiter was made has woken none.
        if let Some(next) = self.next() {
            self.ticket.withdraw(py);
            return Ok(next);
        }
        waiter.get().mark_awaited();
        Ok(Polled::Wait(waiter.into_any().unbind()))
    }

    /// Takes a value that is there already.
    pub(crate) fn take(&self) -> Option<T> {
        lock(&self.queue).values.pop_front()
    }

    fn next(&self) -> Option<Polled<T>> {
        let mut queue = lock(&self.queue);
        match queue.values.pop_front() {
            Some(value) => Some(Polled::Value(value)),
            None => queue.is_ended.then_some(Polled::Ended),
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

// The wake-up of the loop

/// Wakes one waiter of an event loop, from any thread and without the GIL.
#[derive(Clone)]
struct Notifier {
    notifications: Arc<NotificationQueue>,
    ticket: u64,
}

/// An entry of an inbox that a [`Notifier`] refers to.
struct Ticket {
    inbox: Arc<LoopInbox>,
    number: u64,
}

impl Ticket {
    /// A ticket of the loop that runs in this thread.
    fn of_running_loop(py: Python<'_>) -> PyResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let workers = Workers::current(py)?;
        let inbox = workers.inboxes.running(py, workers)?;
        Ok(Ticket { inbox, number: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    fn notifier(&self) -> Notifier {
        Notifier { notifications: self.inbox.notifications.clone(), ticket: self.number }
    }

    /// A waiter that the next notification wakes. A notification from before this call does not: check for its cause
    /// once more after this call, and [`withdraw`](Self::withdraw) if there is one.
    fn expect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Waiter>> {
        let state = &self.inbox.state;
        if let Some(waiter) = state.with(py, |it| it.expected.get(&self.number).map(|waiter| waiter.clone_ref(py)))
            && waiter.get().is_pending(py)
        {
            return Ok(waiter.into_bound(py));
        }
        let waiter = self.inbox.waiter(py)?;
        let old = state.with(py, |it| it.expected.insert(self.number, waiter.clone().unbind()));
        drop(old);
        Ok(waiter)
    }

    /// Drops the waiter of the next notification.
    fn withdraw(&self, py: Python<'_>) {
        let waiter = self.inbox.state.with(py, |state| state.expected.remove(&self.number));
        drop(waiter);
    }

    /// False in a child that was forked after the ticket was made: notifications stay in the parent.
    fn is_current(&self) -> bool {
        self.inbox.workers.is_current()
    }
}

impl Notifier {
    /// False in a child that was forked after this was made.
    fn is_current(&self) -> bool {
        self.notifications.workers.is_current()
    }

    /// Wakes the waiter of the ticket, if there is one.
    ///
    /// The loop's descriptor is written to once for all notifications until the loop drains its inbox. The call does
    /// nothing if the loop was closed, in a forked child, and while the interpreter shuts down.
    fn notify(&self) {
        if !self.is_current() {
            return;
        }
        let signal = {
            let mut state = lock(&self.notifications.state);
            if matches!(state.signal, NativeSignal::Gone) {
                return;
            }
            state.tickets.push(self.ticket);
            if state.tickets.len() > 1 {
                return;
            }
            state.signal.clone()
        };
        // The lock is free by now: the loop may run before this thread goes on, and would have to wait for it.
        let inbox = match signal {
            #[cfg(unix)]
            NativeSignal::Fd(fd) => return fd.wake(),
            NativeSignal::Worker(inbox) => inbox,
            NativeSignal::Gone => return,
        };
        // A pool that is closed refuses: there is no loop to wake in an interpreter that shuts down.
        let _ = self.notifications.workers.pool.submit(self.notifications.workers, Arc::new(CallDrain(inbox)));
    }
}

/// Work that calls into a loop without a descriptor, on behalf of a thread that must not attach.
struct CallDrain(Weak<LoopInbox>);

impl Work for CallDrain {
    fn run(self: Arc<Self>, py: Python<'_>, _running: RunningJob) {
        self.refuse(py);
    }

    fn refuse(self: Arc<Self>, py: Python<'_>) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.call_drain(py);
        }
    }

    fn abandon(&self, _py: Python<'_>) {}

    fn name(&self) -> &'static str {
        "event loop"
    }

    fn depth(&self) -> usize {
        usize::MAX // a call waits for it, wherever that is
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::thread;

    use pyo3::types::{PyDict, PyModule};

    use super::*;

    /// An awaitable of the sum of all values of a queue.
    #[pyclass(frozen)]
    struct Sum {
        completions: Completions<u64>,
        sum: Mutex<u64>,
    }

    crate::bindings::worker::await_itself!(Sum);

    #[pymethods]
    impl Sum {
        fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            loop {
                match self.completions.poll(py)? {
                    Polled::Value(value) => *lock(&self.sum) += value,
                    Polled::Ended => return Err(pyo3::exceptions::PyStopIteration::new_err(*lock(&self.sum))),
                    Polled::Wait(waiter) => return Ok(waiter),
                }
            }
        }
    }

    /// Sends `count` ones from a thread that never attaches.
    #[pyfunction]
    fn count_in_thread(py: Python<'_>, count: u64) -> PyResult<Sum> {
        let (completer, completions) = completions(py)?;
        thread::spawn(move || (0..count).for_each(|_| completer.complete(1)));
        Ok(Sum { completions, sum: Mutex::new(0) })
    }

    /// Runs Python code that has `count_in_thread` and returns its `result`.
    fn run(code: &str) -> PyResult<u64> {
        Python::initialize();
        Python::attach(|py| {
            let modules = py.import("sys")?.getattr("modules")?;
            if !modules.contains("toolcrib._worker")? {
                let source = CString::new(include_str!("../../../python/toolcrib/_worker.py"))?;
                let worker = PyModule::from_code(py, &source, c"_worker.py", c"toolcrib._worker")?;
                modules.set_item("toolcrib", PyModule::new(py, "toolcrib")?)?;
                modules.set_item("toolcrib._worker", worker)?;
            }
            let names = PyDict::new(py);
            names.set_item("count_in_thread", wrap_pyfunction!(count_in_thread, py)?)?;
            py.run(&CString::new(code)?, Some(&names), None)?;
            names.as_any().get_item("result")?.extract()
        })
    }

    #[test]
    fn values_of_threads_without_the_gil_reach_their_tasks() -> PyResult<()> {
        let sum = run("\
import asyncio
async def main():
    async def one(count): return await count_in_thread(count)
    return sum(await asyncio.gather(*(one(count) for count in range(200))))
result = asyncio.run(main())
")?;

        assert_eq!(sum, (0..200).sum::<u64>());
        Ok(())
    }

    #[test]
    fn a_loop_without_readers_is_woken_by_a_worker() -> PyResult<()> {
        let sum = run("\
import asyncio
class Loop(asyncio.SelectorEventLoop):
    def add_reader(self, *arguments): raise NotImplementedError
async def main():
    async def one(count): return await count_in_thread(count)
    return sum(await asyncio.gather(*(one(count) for count in range(50))))
loop = Loop()
result = loop.run_until_complete(main())
loop.close()
")?;

        assert_eq!(sum, (0..50).sum::<u64>());
        Ok(())
    }

    #[test]
    fn a_loop_may_be_closed_while_values_arrive() -> PyResult<()> {
        let rounds = run("\
import asyncio
async def main():
    async def one(): return await count_in_thread(100_000)
    tasks = [asyncio.ensure_future(one()) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks: task.cancel()
    await asyncio.wait(tasks)
result = 0
for _ in range(20):
    asyncio.run(main())
    result += 1
")?;

        assert_eq!(rounds, 20);
        Ok(())
    }

    #[test]
    fn a_completer_without_a_reader_can_see_that() -> PyResult<()> {
        run("result = 0")?;
        Python::attach(|py| {
            let asyncio = py.import("asyncio")?;
            let event_loop = asyncio.call_method0("new_event_loop")?;
            asyncio.getattr("_set_running_loop")?.call1((&event_loop,))?;
            let ends = completions::<u64>(py);
            asyncio.getattr("_set_running_loop")?.call1((py.None(),))?;
            let (completer, reader) = ends?;
            assert!(!completer.is_abandoned());

            drop(reader);
            event_loop.call_method0("close")?;

            assert!(completer.is_abandoned());
            completer.complete(1);
            Ok(())
        })
    }
}
