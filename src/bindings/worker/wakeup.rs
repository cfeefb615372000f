//! Results on their way to an event loop: one list and one wake-up for everything that arrives until the loop looks.
//!
//! [`LoopInbox`] belongs to one event loop. The loop watches its descriptor ([`WakeFd`]) and calls [`Drain`], which wakes
//! the waiters whose results have arrived. The loop keeps the reader callback, and with it the descriptor, until it is
//! closed or dies; nothing here keeps a loop alive.
//!
//! Worker threads hold the GIL and post the waiter itself. Threads that never attach to Python (a native tool's runtime)
//! report a ticket instead, through a [`Notifier`]; see `completion` for the queue that carries their values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyAttributeError, PyNotImplementedError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefMethods, PyWeakrefReference};

use super::pool::Work;
use super::{Shared, lock, waiter};
use crate::bindings::call::python::interpreter::{self, Context, GilCell};

/// The inboxes of all event loops, found by the loop's address.
#[derive(Default)]
pub(super) struct LoopInboxes(GilCell<HashMap<usize, Weak<LoopInbox>, ahash::RandomState>>);

/// The results that one event loop has to be woken for.
pub(super) struct LoopInbox {
    pub(super) shared: &'static Shared,
    /// The loop's address.
    key: usize,
    target: Py<PyWeakrefReference>,
    posted: GilCell<Posted>,
    reports: Arc<Reports>,
}

/// The side of an inbox that attached threads use.
#[derive(Default)]
struct Posted {
    /// Waiters to be woken.
    ready: Vec<Py<PyAny>>,
    /// Waiters that a ticket will be reported for.
    expected: HashMap<u64, Py<PyAny>, ahash::RandomState>,
    signal: Signal,
}

/// The way a loop is woken.
#[derive(Default)]
enum Signal {
    /// Through a descriptor that the loop watches.
    #[cfg(unix)]
    Fd(Arc<WakeFd>),
    /// Through `loop.call_soon_threadsafe(drain)`.
    Call {
        drain: Py<Drain>,
        /// Calls back when the loop dies.
        #[allow(dead_code, reason = "a weak reference has to live to call back")]
        death: Py<PyWeakrefReference>,
    },
    /// Not at all: the loop is closed, or not set up yet.
    #[default]
    Gone,
}

/// The side of an inbox that any thread uses. It holds no Python object, so that it can be dropped anywhere.
struct Reports {
    shared: &'static Shared,
    state: Mutex<Reported>,
}

#[derive(Default)]
struct Reported {
    tickets: Vec<u64>,
    signal: ReportSignal,
}

/// The way a loop is woken without the GIL.
#[derive(Default)]
enum ReportSignal {
    #[cfg(unix)]
    Fd(Arc<WakeFd>),
    /// By a worker thread, which calls into the loop.
    Worker(Weak<LoopInbox>),
    #[default]
    Gone,
}

/// Wakes one waiter of an event loop, from any thread and without the GIL.
#[derive(Clone)]
pub(crate) struct Notifier {
    reports: Arc<Reports>,
    ticket: u64,
}

/// A place in an inbox that a [`Notifier`] refers to.
pub(super) struct Ticket {
    inbox: Arc<LoopInbox>,
    number: u64,
}

/// Wakes the tasks whose results have arrived; called by the loop, and owned by it.
#[pyclass(frozen, module = "toolcrib._core", name = "_Drain")]
struct Drain(Arc<LoopInbox>);

impl LoopInboxes {
    /// The inbox of the loop that runs in this thread.
    pub(super) fn running(&self, py: Python<'_>, shared: &'static Shared) -> PyResult<Arc<LoopInbox>> {
        let target = shared.names.get_running_loop.bind(py).call0()?;
        let key = target.as_ptr() as usize;
        let known = self.0.with(py, |known| known.get(&key).and_then(Weak::upgrade));
        if let Some(inbox) = known
            && inbox.is_open(py)
            && inbox.target(py).is_some_and(|it| it.is(&target))
        {
            return Ok(inbox);
        }
        let inbox = LoopInbox::open(shared, key, &target)?;
        let old = self.0.with(py, |known| known.insert(key, Arc::downgrade(&inbox)));
        drop(old);
        Ok(inbox)
    }

    fn forget(&self, py: Python<'_>, inbox: &LoopInbox) {
        let old = self.0.with(py, |known| {
            let is_known = known.get(&inbox.key).is_some_and(|it| std::ptr::eq(it.as_ptr(), inbox));
            if is_known { known.remove(&inbox.key) } else { None }
        });
        drop(old);
    }
}

impl LoopInbox {
    fn open(shared: &'static Shared, key: usize, target: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let py = target.py();
        let inbox = Arc::new(LoopInbox {
            shared,
            key,
            target: PyWeakrefReference::new(target)?.unbind(),
            posted: GilCell::default(),
            reports: Arc::new(Reports { shared, state: Mutex::default() }),
        });
        let drain = Bound::new(py, Drain(inbox.clone()))?;
        #[cfg(unix)]
        {
            let fd = Arc::new(WakeFd::new()?);
            inbox.posted.with(py, |posted| posted.signal = Signal::Fd(fd.clone()));
            match watch(target, &fd, &drain) {
                Ok(()) => {
                    lock(&inbox.reports.state).signal = ReportSignal::Fd(fd);
                    return Ok(inbox);
                }
                Err(error) if cannot_watch(py, &error) => {}
                Err(error) => return Err(error),
            }
        }
        // A loop without readers keeps nothing for us, so the inbox asks to be called when the loop dies.
        let weak = Arc::downgrade(&inbox);
        let died = PyCFunction::new_closure(py, None, None, move |args, _| {
            if let Some(inbox) = weak.upgrade() {
                inbox.close(args.py());
            }
        })?;
        let death = PyWeakrefReference::new_with(target, died)?.unbind();
        let signal = Signal::Call { drain: drain.unbind(), death };
        let unused = inbox.posted.with(py, |posted| std::mem::replace(&mut posted.signal, signal));
        drop(unused);
        lock(&inbox.reports.state).signal = ReportSignal::Worker(Arc::downgrade(&inbox));
        Ok(inbox)
    }

    /// The loop, while it lives.
    fn target<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.target.bind(py).upgrade()
    }

    /// A new waiter of the loop.
    pub(super) fn waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(target) = self.target(py) else {
            return Err(PyRuntimeError::new_err("the event loop of a running tool is gone"));
        };
        waiter::create(&target)
    }

    fn is_open(&self, py: Python<'_>) -> bool {
        self.posted.with(py, |posted| !matches!(posted.signal, Signal::Gone))
    }

    /// Has the loop wake a waiter; called by worker threads.
    pub(super) fn post(&self, py: Python<'_>, waiter: Py<PyAny>) {
        let mut waiter = Some(waiter);
        self.deliver(py, |ready| {
            ready.extend(waiter.take());
            ready.len() == 1 // else the loop has been woken and has not looked yet
        });
        if let Some(unwanted) = waiter {
            interpreter::release(py, unwanted);
        }
    }

    /// Has the loop wake the rest of a batch that was interrupted.
    fn post_again(&self, py: Python<'_>, rest: &mut impl Iterator<Item = Py<PyAny>>) {
        self.deliver(py, |ready| {
            ready.extend(rest);
            !ready.is_empty()
        });
    }

    /// Changes the list of waiters to wake, and wakes the loop if the change asks for that.
    fn deliver(&self, py: Python<'_>, change: impl FnOnce(&mut Vec<Py<PyAny>>) -> bool) {
        let is_call = self.posted.with(py, |posted| {
            if matches!(posted.signal, Signal::Gone) || !change(&mut posted.ready) {
                return false;
            }
            match &posted.signal {
                #[cfg(unix)]
                Signal::Fd(fd) => {
                    fd.wake();
                    false
                }
                Signal::Call { .. } => true,
                Signal::Gone => false,
            }
        });
        if is_call {
            self.call_drain(py);
        }
    }

    /// Asks a loop that watches no descriptor to drain the inbox; called by worker threads, too.
    fn call_drain(&self, py: Python<'_>) {
        let drain = self.posted.with(py, |posted| match &posted.signal {
            Signal::Call { drain, .. } => Some(drain.clone_ref(py).into_any()),
            _ => None,
        });
        let Some(drain) = drain else { return };
        if let Some(target) = self.target(py).map(Bound::unbind) {
            match interpreter::call_method(py, &target, intern!(py, "call_soon_threadsafe"), Some(&drain)) {
                Ok(handle) => interpreter::release(py, handle),
                Err(closed) => {
                    self.close(py);
                    interpreter::release(py, closed);
                }
            }
            interpreter::release(py, target);
        }
        interpreter::release(py, drain);
    }

    /// Takes the waiters to wake. The descriptor is silenced first: a report that comes in between wakes the loop again.
    fn collect(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.posted.with(py, |posted| {
            #[cfg(unix)]
            if let Signal::Fd(fd) = &posted.signal {
                fd.silence();
            }
            let tickets = std::mem::take(&mut lock(&self.reports.state).tickets);
            let mut ready = std::mem::take(&mut posted.ready);
            ready.extend(tickets.iter().filter_map(|ticket| posted.expected.remove(ticket)));
            ready
        })
    }

    /// Wakes no waiter any more; later results are dropped by those who post them.
    fn close(&self, py: Python<'_>) {
        if !self.shared.is_current() {
            return; // a forked child leaves alone what the parent shares with its threads
        }
        let reported = std::mem::take(&mut *lock(&self.reports.state));
        let posted = self.posted.with(py, std::mem::take);
        self.shared.inboxes.forget(py, self);
        drop((reported, posted));
    }
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let inbox = &*self.0;
        if !inbox.shared.is_current() {
            return Ok(());
        }
        let mut ready = inbox.collect(py).into_iter();
        while let Some(waiter) = ready.next() {
            let woken = waiter::wake(waiter.into_bound(py));
            if !inbox.shared.is_current() {
                return woken; // the task forked, and this is the child
            }
            if woken.is_err() {
                // The loop is about to stop (`KeyboardInterrupt`, `SystemExit`), but may be started again.
                inbox.post_again(py, &mut ready);
                return woken;
            }
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let waiters = |posted: &Posted| {
            posted.ready.iter().chain(posted.expected.values()).try_for_each(|waiter| visit.call(waiter))
        };
        self.0.posted.visit(&visit, waiters).unwrap_or(Ok(()))
    }

    fn __clear__(&self, py: Python<'_>) {
        let waiters =
            self.0.posted.with(py, |posted| (std::mem::take(&mut posted.ready), std::mem::take(&mut posted.expected)));
        drop(waiters);
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        Python::try_attach(|py| self.0.close(py));
    }
}

/// Has the loop call `drain` whenever the descriptor is readable.
#[cfg(unix)]
fn watch(target: &Bound<'_, PyAny>, fd: &WakeFd, drain: &Bound<'_, Drain>) -> PyResult<()> {
    let py = target.py();
    // The loop copies the context for the callback; the caller's variables are not to live as long as the loop does.
    let context = Context::empty(py)?;
    let _inside = context.enter(py)?;
    target.call_method1(intern!(py, "add_reader"), (fd.number(), drain)).map(drop)
}

#[cfg(unix)]
fn cannot_watch(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyNotImplementedError>(py) || error.is_instance_of::<PyAttributeError>(py)
}

impl Ticket {
    /// A ticket of the loop that runs in this thread.
    pub(super) fn of_running_loop(py: Python<'_>) -> PyResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let shared = Shared::current(py)?;
        let inbox = shared.inboxes.running(py, shared)?;
        Ok(Ticket { inbox, number: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    pub(super) fn notifier(&self) -> Notifier {
        Notifier { reports: self.inbox.reports.clone(), ticket: self.number }
    }

    /// A waiter that the next notification wakes. A notification from before this call does not: look for its cause
    /// once more after this call, and [`withdraw`](Self::withdraw) if it is there.
    pub(super) fn expect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let posted = &self.inbox.posted;
        if let Some(waiter) = posted.with(py, |it| it.expected.get(&self.number).map(|waiter| waiter.clone_ref(py)))
            && waiter::is_pending(waiter.bind(py))?
        {
            return Ok(waiter.into_bound(py));
        }
        let waiter = self.inbox.waiter(py)?;
        let old = posted.with(py, |it| it.expected.insert(self.number, waiter.clone().unbind()));
        drop(old);
        Ok(waiter)
    }

    /// Expects no notification any more.
    pub(super) fn withdraw(&self, py: Python<'_>) {
        let waiter = self.inbox.posted.with(py, |posted| posted.expected.remove(&self.number));
        drop(waiter);
    }

    /// False in a child that was forked after the ticket was made: notifications stay in the parent.
    pub(super) fn is_current(&self) -> bool {
        self.inbox.shared.is_current()
    }
}

impl Notifier {
    /// False in a child that was forked after this was made.
    pub(crate) fn is_current(&self) -> bool {
        self.reports.shared.is_current()
    }

    /// Wakes the waiter that is expected under the ticket, if there is one.
    ///
    /// The loop's descriptor is written to once for all notifications until the loop looks. A loop that was closed, a
    /// forked child and an interpreter that shuts down ignore the call.
    pub(crate) fn notify(&self) {
        if !self.is_current() {
            return;
        }
        let inbox = {
            let mut state = lock(&self.reports.state);
            if matches!(state.signal, ReportSignal::Gone) {
                return;
            }
            state.tickets.push(self.ticket);
            if state.tickets.len() > 1 {
                return;
            }
            match &state.signal {
                #[cfg(unix)]
                ReportSignal::Fd(fd) => return fd.wake(),
                ReportSignal::Worker(inbox) => inbox.clone(),
                ReportSignal::Gone => return,
            }
        };
        // A pool that is closed refuses: there is no loop to wake in an interpreter that shuts down.
        let _ = self.reports.shared.pool.submit(self.reports.shared, Arc::new(CallDrain(inbox)));
    }
}

/// Calls into a loop that watches no descriptor, in place of a thread that must not attach.
struct CallDrain(Weak<LoopInbox>);

impl Work for CallDrain {
    fn run(self: Arc<Self>, py: Python<'_>) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.call_drain(py);
        }
    }

    fn abandon(&self, _py: Python<'_>) {}
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

    /// An eventfd on Linux, a pair of sockets on other Unixes; neither blocks nor is inherited by programs.
    pub(super) struct WakeFd {
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
        pub(super) fn wake(&self) {
            #[cfg(target_os = "linux")]
            let mut writer = &self.reader;
            #[cfg(not(target_os = "linux"))]
            let mut writer = &self.writer;
            let _ = writer.write(&1_u64.to_ne_bytes());
        }

        /// Makes the descriptor unreadable again.
        pub(super) fn silence(&self) {
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
        fn a_descriptor_woken_twice_is_silenced_once() -> std::io::Result<()> {
            let fd = WakeFd::new()?;

            fd.wake();
            fd.wake();
            fd.silence();

            let left = (&fd.reader).read(&mut [0; 8]);
            assert_eq!(left.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
            Ok(())
        }
    }
}
