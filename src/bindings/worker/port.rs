//! Where an event loop hears of what is ready: one list and one wake-up for all that arrives until it looks.
//!
//! The loop owns its port: it keeps the reader callback, and with it the descriptor, until it is closed or dies. Nothing
//! here keeps a loop alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyAttributeError, PyNotImplementedError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefMethods, PyWeakrefReference};

use super::waiter::Waiter;
use super::{Shared, guard, lock};

/// Something that an event loop waits for.
pub(super) trait Awaited: Send + Sync {
    /// What is to be woken now, if there is anything.
    fn waiter(&self) -> Option<Py<Waiter>>;
}

/// The ports of all loops, found by the loop's address.
#[derive(Default)]
pub(super) struct Ports(Mutex<HashMap<usize, Weak<Port>>>);

pub(super) struct Port {
    shared: &'static Shared,
    key: usize,
    target: Py<PyWeakrefReference>,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    ready: Vec<Weak<dyn Awaited>>,
    signal: Signal,
}

/// How the loop is woken.
#[derive(Default)]
enum Signal {
    /// Through a descriptor that the loop watches.
    #[cfg(unix)]
    Bell(super::wake::Bell),
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

/// Wakes the tasks whose results have arrived; called by the loop, and owned by it.
#[pyclass(frozen, module = "toolcrib._core", name = "_Drain")]
struct Drain(Arc<Port>);

impl Ports {
    /// The port of the loop that runs in this thread.
    pub(super) fn running(&self, py: Python<'_>, shared: &'static Shared) -> PyResult<Arc<Port>> {
        let target = shared.names.get_running_loop.bind(py).call0()?;
        let key = target.as_ptr() as usize;
        let known = lock(&self.0).get(&key).and_then(Weak::upgrade);
        if let Some(port) = known
            && port.is_open()
            && port.target.bind(py).upgrade().is_some_and(|it| it.is(&target))
        {
            return Ok(port);
        }
        let port = Port::open(shared, key, &target)?;
        lock(&self.0).insert(key, Arc::downgrade(&port));
        Ok(port)
    }

    fn forget(&self, port: &Port) {
        let mut ports = lock(&self.0);
        if ports.get(&port.key).is_some_and(|it| std::ptr::eq(it.as_ptr(), port)) {
            ports.remove(&port.key);
        }
    }
}

impl Port {
    fn open(shared: &'static Shared, key: usize, target: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let py = target.py();
        let weak = PyWeakrefReference::new(target)?.unbind();
        let port = Arc::new(Port { shared, key, target: weak, inbox: Mutex::default() });
        let drain = Bound::new(py, Drain(port.clone()))?;
        #[cfg(unix)]
        {
            let bell = super::wake::Bell::new()?;
            let fd = bell.fd();
            lock(&port.inbox).signal = Signal::Bell(bell);
            match watch(target, fd, &drain) {
                Ok(()) => return Ok(port),
                Err(error) if cannot_watch(py, &error) => {}
                Err(error) => return Err(error),
            }
        }
        // A loop without readers keeps nothing for us, so the port is told when the loop dies.
        let weak = Arc::downgrade(&port);
        let died = PyCFunction::new_closure(py, None, None, move |_, _| {
            if let Some(port) = weak.upgrade() {
                port.close();
            }
        })?;
        let death = PyWeakrefReference::new_with(target, died)?.unbind();
        let silent = std::mem::replace(&mut lock(&port.inbox).signal, Signal::Call { drain: drain.unbind(), death });
        drop(silent);
        Ok(port)
    }

    /// The loop, while it lives.
    pub(super) fn target<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.target.bind(py).upgrade()
    }

    fn is_open(&self) -> bool {
        !matches!(lock(&self.inbox).signal, Signal::Gone)
    }

    /// Lets the loop know, from a worker thread, that something is ready.
    pub(super) fn post(&self, py: Python<'_>, what: Weak<dyn Awaited>) {
        self.deliver(py, |ready| {
            ready.push(what);
            ready.len() == 1 // else the loop has been woken and has not looked yet
        });
    }

    /// Lets the loop know once more of what it has heard of but not got to.
    fn post_again(&self, py: Python<'_>, rest: impl Iterator<Item = Weak<dyn Awaited>>) {
        self.deliver(py, |ready| {
            ready.extend(rest);
            !ready.is_empty()
        });
    }

    /// Changes the list of what is ready, and wakes the loop if the change asks for that.
    fn deliver(&self, py: Python<'_>, change: impl FnOnce(&mut Vec<Weak<dyn Awaited>>) -> bool) {
        let drain = {
            let mut inbox = lock(&self.inbox);
            if matches!(inbox.signal, Signal::Gone) || !change(&mut inbox.ready) {
                return;
            }
            match &inbox.signal {
                #[cfg(unix)]
                Signal::Bell(bell) => return bell.ring(),
                Signal::Call { drain, .. } => drain.clone_ref(py).into_any(),
                Signal::Gone => return,
            }
        };
        let Some(target) = self.target(py).map(Bound::unbind) else {
            return;
        };
        match guard::call_method(py, &target, intern!(py, "call_soon_threadsafe"), Some(&drain)) {
            Ok(handle) => guard::release(py, handle),
            Err(closed) => {
                self.close();
                guard::release(py, closed);
            }
        }
        guard::release(py, drain);
        guard::release(py, target);
    }

    fn collect(&self) -> Vec<Weak<dyn Awaited>> {
        let mut inbox = lock(&self.inbox);
        #[cfg(unix)]
        if let Signal::Bell(bell) = &inbox.signal {
            bell.silence();
        }
        std::mem::take(&mut inbox.ready)
    }

    /// Wakes nobody any more; what is under way finds no one to tell.
    fn close(&self) {
        if !self.shared.is_current() {
            return; // in a forked child the locks are out of bounds
        }
        let inbox = std::mem::take(&mut *lock(&self.inbox));
        self.shared.ports.forget(self);
        drop(inbox);
    }
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        if !self.0.shared.is_current() {
            return Ok(());
        }
        let mut ready = self.0.collect().into_iter();
        while let Some(awaited) = ready.next() {
            let Some(waiter) = awaited.upgrade().and_then(|it| it.waiter()) else {
                continue;
            };
            let woken = Waiter::wake(waiter.bind(py));
            if !self.0.shared.is_current() {
                return woken; // the task forked, and this is the child
            }
            if woken.is_err() {
                // The loop is about to stop (`KeyboardInterrupt`, `SystemExit`), but may be started again.
                self.0.post_again(py, ready);
                return woken;
            }
        }
        Ok(())
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Has the loop call `drain` whenever the descriptor is readable.
#[cfg(unix)]
fn watch(target: &Bound<'_, PyAny>, fd: std::os::fd::RawFd, drain: &Bound<'_, Drain>) -> PyResult<()> {
    let py = target.py();
    // The loop copies the context for the callback; the caller's variables are not to live as long as the loop does.
    let context = super::context::Context::empty(py)?;
    let _inside = context.enter(py)?;
    target.call_method1(intern!(py, "add_reader"), (fd, drain)).map(drop)
}

#[cfg(unix)]
fn cannot_watch(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyNotImplementedError>(py) || error.is_instance_of::<PyAttributeError>(py)
}
