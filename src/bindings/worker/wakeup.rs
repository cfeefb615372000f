//! The inbox of an event loop: one list and one wake-up for all results that arrive until the loop drains it.
//!
//! [`LoopInbox`] belongs to one event loop. The loop watches its descriptor ([`WakeFd`]) and calls [`Drain`], which wakes
//! the waiters whose results have arrived. The loop keeps the reader callback, and with it the descriptor, until it is
//! closed or freed; nothing here keeps a loop alive.
//!
//! Worker threads hold the GIL and post the waiter itself. Threads that never attach to Python (those of native tools)
//! post a ticket instead: see `completion`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyAttributeError, PyNotImplementedError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefMethods, PyWeakrefReference};

use super::pool::Workers;
use super::waiter::{Waiter, WaiterEnd};
use crate::bindings::call::python::interpreter::{self, Context, GilCell};
use crate::bindings::once::intern;
use crate::sync::lock;

/// The inboxes of all event loops, found by the loop's address.
#[derive(Default)]
pub(super) struct LoopInboxes(GilCell<InboxCache>);

#[derive(Default)]
struct InboxCache {
    all: HashMap<usize, Weak<LoopInbox>, ahash::RandomState>,
    /// The inbox that was used last, and the version of the thread's state then. Up to Python 3.11 asyncio makes a system
    /// call (for the process id) to find the running loop, which costs as much as starting a job.
    recent: Option<(u64, Arc<LoopInbox>)>,
}

/// The results that one event loop has to be woken for.
pub(super) struct LoopInbox {
    pub(super) workers: &'static Workers,
    /// The loop's address.
    key: usize,
    event_loop: Py<PyWeakrefReference>,
    pub(super) state: GilCell<InboxState>,
    pub(super) notifications: Arc<NotificationQueue>,
}

/// The part of an inbox that attached threads use.
#[derive(Default)]
pub(super) struct InboxState {
    /// Waiters to wake.
    ready: Vec<Py<Waiter>>,
    /// Waiters by the numbers of the tickets that wake them.
    pub(super) expected: HashMap<u64, Py<Waiter>, ahash::RandomState>,
    signal: WakeSignal,
}

/// The means by which attached threads wake a loop.
#[derive(Default)]
enum WakeSignal {
    /// A descriptor that the loop watches.
    #[cfg(unix)]
    Fd(Arc<WakeFd>),
    /// `loop.call_soon_threadsafe(drain)`.
    Call {
        drain: Py<Drain>,
        /// Calls back when the loop is freed.
        #[allow(dead_code, reason = "a weak reference has to live to call back")]
        finalizer: Py<PyWeakrefReference>,
    },
    /// None: the loop is closed, or not set up yet.
    #[default]
    Gone,
}

/// The part of an inbox that any thread uses. It holds no Python object, so that it can be dropped anywhere.
pub(super) struct NotificationQueue {
    pub(super) workers: &'static Workers,
    pub(super) state: Mutex<Notifications>,
}

#[derive(Default)]
pub(super) struct Notifications {
    pub(super) tickets: Vec<u64>,
    pub(super) signal: NativeSignal,
}

/// The means by which threads without the GIL wake a loop.
#[derive(Clone, Default)]
pub(super) enum NativeSignal {
    #[cfg(unix)]
    Fd(Arc<WakeFd>),
    /// A worker thread, which calls into the loop.
    Worker(Weak<LoopInbox>),
    #[default]
    Gone,
}

/// Wakes the tasks whose results have arrived; called by the loop, and owned by it.
#[pyclass(frozen, module = "toolcrib._core", name = "_Drain")]
struct Drain(Arc<LoopInbox>);

impl LoopInboxes {
    /// The inbox of the loop that runs in this thread.
    pub(super) fn running(&self, py: Python<'_>, workers: &'static Workers) -> PyResult<Arc<LoopInbox>> {
        if let Some(version) = interpreter::running_loop_version(py)
            && let Some(inbox) = self.0.with(py, |cache| match &cache.recent {
                Some((seen, inbox)) if *seen == version => Some(inbox.clone()),
                _ => None,
            })
            && inbox.is_open(py)
        {
            return Ok(inbox);
        }
        let inbox = self.of_running_loop(py, workers)?;
        let version = interpreter::running_loop_version(py).filter(|_| interpreter::has_running_loop_version(py));
        let recent = version.map(|version| (version, inbox.clone()));
        let old = self.0.with(py, |cache| std::mem::replace(&mut cache.recent, recent));
        drop(old);
        Ok(inbox)
    }

    fn of_running_loop(&self, py: Python<'_>, workers: &'static Workers) -> PyResult<Arc<LoopInbox>> {
        let event_loop = workers.python.get_running_loop.bind(py).call0()?;
        let key = event_loop.as_ptr() as usize;
        let known = self.0.with(py, |cache| cache.all.get(&key).and_then(Weak::upgrade));
        if let Some(inbox) = known
            && inbox.is_open(py)
            && inbox.event_loop(py).is_some_and(|it| it.is(&event_loop))
        {
            return Ok(inbox);
        }
        let inbox = LoopInbox::open(workers, key, &event_loop)?;
        let old = self.0.with(py, |cache| cache.all.insert(key, Arc::downgrade(&inbox)));
        drop(old);
        Ok(inbox)
    }

    fn forget(&self, py: Python<'_>, inbox: &LoopInbox) {
        let old = self.0.with(py, |cache| {
            let recent = cache.recent.take_if(|(_, it)| std::ptr::eq(Arc::as_ptr(it), inbox));
            let is_known = cache.all.get(&inbox.key).is_some_and(|it| std::ptr::eq(it.as_ptr(), inbox));
            (recent, if is_known { cache.all.remove(&inbox.key) } else { None })
        });
        drop(old);
    }
}

impl LoopInbox {
    fn open(workers: &'static Workers, key: usize, event_loop: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let py = event_loop.py();
        let inbox = Arc::new(LoopInbox {
            workers,
            key,
            event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
            state: GilCell::default(),
            notifications: Arc::new(NotificationQueue { workers, state: Mutex::default() }),
        });
        let drain = Bound::new(py, Drain(inbox.clone()))?;
        #[cfg(unix)]
        {
            let fd = Arc::new(WakeFd::new()?);
            inbox.state.with(py, |state| state.signal = WakeSignal::Fd(fd.clone()));
            match watch(event_loop, &fd, &drain) {
                Ok(()) => {
                    lock(&inbox.notifications.state).signal = NativeSignal::Fd(fd);
                    return Ok(inbox);
                }
                Err(error) if cannot_watch(py, &error) => {}
                Err(error) => return Err(error),
            }
        }
        // A loop without readers holds no reference to the inbox, so the inbox is called when the loop is freed.
        let weak = Arc::downgrade(&inbox);
        let died = PyCFunction::new_closure(py, None, None, move |args, _| {
            if let Some(inbox) = weak.upgrade() {
                inbox.close(args.py());
            }
        })?;
        let finalizer = PyWeakrefReference::new_with(event_loop, died)?.unbind();
        let signal = WakeSignal::Call { drain: drain.unbind(), finalizer };
        let unused = inbox.state.with(py, |state| std::mem::replace(&mut state.signal, signal));
        drop(unused);
        lock(&inbox.notifications.state).signal = NativeSignal::Worker(Arc::downgrade(&inbox));
        Ok(inbox)
    }

    /// The loop, while it lives.
    fn event_loop<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.event_loop.bind(py).upgrade()
    }

    /// A new waiter of the loop.
    pub(super) fn waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Waiter>> {
        let Some(event_loop) = self.event_loop(py) else {
            return Err(PyRuntimeError::new_err("the event loop of a running tool is gone"));
        };
        Waiter::new(&event_loop)
    }

    fn is_open(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| !matches!(state.signal, WakeSignal::Gone))
    }

    /// Makes the loop wake a waiter; called by worker threads.
    pub(super) fn post(&self, py: Python<'_>, waiter: Py<Waiter>) {
        let mut waiter = Some(waiter);
        self.deliver(py, |ready| {
            ready.extend(waiter.take());
            ready.len() == 1 // else the loop was woken already and has not drained the inbox yet
        });
        if let Some(unwanted) = waiter {
            interpreter::release(py, unwanted);
        }
    }

    /// Makes the loop wake the rest of a batch that was interrupted.
    fn post_again(&self, py: Python<'_>, rest: &mut impl Iterator<Item = Py<Waiter>>) {
        self.deliver(py, |ready| {
            ready.extend(rest);
            !ready.is_empty()
        });
    }

    /// Changes the list of waiters to wake, and wakes the loop if the change returns true.
    fn deliver(&self, py: Python<'_>, change: impl FnOnce(&mut Vec<Py<Waiter>>) -> bool) {
        let is_call = self.state.with(py, |state| {
            if matches!(state.signal, WakeSignal::Gone) || !change(&mut state.ready) {
                return false;
            }
            match &state.signal {
                #[cfg(unix)]
                WakeSignal::Fd(fd) => {
                    fd.wake();
                    false
                }
                WakeSignal::Call { .. } => true,
                WakeSignal::Gone => false,
            }
        });
        if is_call {
            self.call_drain(py);
        }
    }

    /// Makes a loop that watches no descriptor drain the inbox; called by worker threads, too.
    pub(super) fn call_drain(&self, py: Python<'_>) {
        let drain = self.state.with(py, |state| match &state.signal {
            WakeSignal::Call { drain, .. } => Some(drain.clone_ref(py).into_any()),
            _ => None,
        });
        let Some(drain) = drain else { return };
        if let Some(event_loop) = self.event_loop(py).map(Bound::unbind) {
            match interpreter::call_method(py, &event_loop, intern!(py, "call_soon_threadsafe"), Some(&drain)) {
                Ok(handle) => interpreter::release(py, handle),
                Err(closed) => {
                    self.close(py);
                    interpreter::release(py, closed);
                }
            }
            interpreter::release(py, event_loop);
        }
        interpreter::release(py, drain);
    }

    /// Takes the waiters to wake. The descriptor is reset first: a ticket that comes in between wakes the loop again.
    fn collect(&self, py: Python<'_>) -> Vec<Py<Waiter>> {
        self.state.with(py, |state| {
            #[cfg(unix)]
            if let WakeSignal::Fd(fd) = &state.signal {
                fd.reset();
            }
            let tickets = std::mem::take(&mut lock(&self.notifications.state).tickets);
            let mut ready = std::mem::take(&mut state.ready);
            ready.extend(tickets.iter().filter_map(|ticket| state.expected.remove(ticket)));
            ready
        })
    }

    /// Closes the inbox: it wakes no waiter any more, and results that are posted later are dropped.
    fn close(&self, py: Python<'_>) {
        if !self.workers.is_current() {
            return; // a forked child leaves alone what the parent shares with its threads
        }
        let notified = std::mem::take(&mut *lock(&self.notifications.state));
        let state = self.state.with(py, std::mem::take);
        self.workers.inboxes.forget(py, self);
        drop((notified, state));
    }
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let inbox = &*self.0;
        if !inbox.workers.is_current() {
            return Ok(());
        }
        let mut ready = inbox.collect(py).into_iter();
        while let Some(waiter) = ready.next() {
            let woken = resume_task(waiter.bind(py));
            if !inbox.workers.is_current() {
                return woken; // the task forked, and this is the child
            }
            if woken.is_err() {
                // The loop is about to stop (`KeyboardInterrupt`, `SystemExit`), but may be run again.
                inbox.post_again(py, &mut ready);
                return woken;
            }
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let waiters = |state: &InboxState| {
            state.ready.iter().chain(state.expected.values()).try_for_each(|waiter| visit.call(waiter))
        };
        self.0.state.visit(&visit, waiters).unwrap_or(Ok(()))
    }

    fn __clear__(&self, py: Python<'_>) {
        let waiters =
            self.0.state.with(py, |state| (std::mem::take(&mut state.ready), std::mem::take(&mut state.expected)));
        drop(waiters);
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        Python::try_attach(|py| self.0.close(py));
    }
}

/// Resumes the task that waits; to be called by the loop itself, outside of any task.
fn resume_task(waiter: &Bound<'_, Waiter>) -> PyResult<()> {
    let py = waiter.py();
    let Some(callbacks) = waiter.get().end(py, WaiterEnd::Done) else { return Ok(()) };
    if let Some(callback) = &callbacks.first
        && callbacks.others.is_empty()
        // The step of a task, or another function written in C: safe to call at once.
        && callback.function.bind(py).is_exact_instance_of::<PyCFunction>()
        // A context that is in use cannot be entered; the loop reports that.
        && let Ok(_entered) = callback.context.enter(py)
    {
        return match interpreter::call_one(py, &callback.function, waiter.as_any().as_unbound()) {
            Ok(nothing) => {
                interpreter::release(py, nothing);
                Ok(())
            }
            Err(exception) => Err(PyErr::from_value(exception.into_bound(py))),
        };
    }
    Waiter::call_soon(waiter, &callbacks)
}

/// Registers `drain` as the loop's callback for a readable descriptor.
#[cfg(unix)]
fn watch(event_loop: &Bound<'_, PyAny>, fd: &WakeFd, drain: &Bound<'_, Drain>) -> PyResult<()> {
    let py = event_loop.py();
    // The loop copies the context for the callback, and the caller's variables must not live as long as the loop does.
    let context = Context::empty(py)?;
    let _inside = context.enter(py)?;
    event_loop.call_method1(intern!(py, "add_reader"), (fd.number(), drain)).map(drop)
}

#[cfg(unix)]
fn cannot_watch(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyNotImplementedError>(py) || error.is_instance_of::<PyAttributeError>(py)
}

#[cfg(unix)]
use fd::WakeFd;

/// The descriptor through which another thread wakes an event loop.
#[cfg(unix)]
mod fd {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsRawFd, RawFd};

    #[cfg(target_os = "linux")]
    use std::fs::File as End;
    #[cfg(not(target_os = "linux"))]
    use std::os::unix::net::UnixStream as End;

    /// An eventfd on Linux, a pair of sockets on other Unixes; it never blocks and is not inherited by programs.
    pub(in crate::bindings::worker) struct WakeFd {
        reader: End,
        #[cfg(not(target_os = "linux"))]
        writer: End,
    }

    impl WakeFd {
        #[cfg(target_os = "linux")]
        pub(super) fn new() -> io::Result<Self> {
            use rustix::event::{EventfdFlags, eventfd};
            Ok(WakeFd { reader: End::from(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?) })
        }

        #[cfg(not(target_os = "linux"))]
        pub(super) fn new() -> io::Result<Self> {
            let (reader, writer) = End::pair()?;
            reader.set_nonblocking(true)?;
            writer.set_nonblocking(true)?;
            Ok(WakeFd { reader, writer })
        }

        /// The descriptor to watch for reading.
        pub(super) fn number(&self) -> RawFd {
            self.reader.as_raw_fd()
        }

        /// Makes the descriptor readable; one whose buffer is full already is.
        pub(in crate::bindings::worker) fn wake(&self) {
            #[cfg(target_os = "linux")]
            let mut writer = &self.reader;
            #[cfg(not(target_os = "linux"))]
            let mut writer = &self.writer;
            let _ = writer.write(&1_u64.to_ne_bytes());
        }

        /// Makes the descriptor unreadable again.
        pub(super) fn reset(&self) {
            let mut bytes = [0; 8];
            while (&self.reader).read(&mut bytes).is_ok_and(|read| read > 0) {
                if cfg!(target_os = "linux") {
                    break; // one read empties an eventfd
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use std::io::{ErrorKind, Read};

        use super::WakeFd;

        #[test]
        fn a_descriptor_woken_twice_is_reset_once() -> std::io::Result<()> {
            let fd = WakeFd::new()?;

            fd.wake();
            fd.wake();
            fd.reset();

            let left = (&fd.reader).read(&mut [0; 8]);
            assert_eq!(left.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
            Ok(())
        }
    }
}
