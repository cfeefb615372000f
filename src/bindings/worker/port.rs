//! Where an event loop hears of what is ready: one list and one wake-up for all that arrives until it looks.
//!
//! The loop owns its port: it keeps the reader callback, and with it the descriptor, until it is closed or dies. Nothing
//! here keeps a loop alive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use pyo3::exceptions::{PyAttributeError, PyNotImplementedError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefMethods, PyWeakrefReference};

use super::held::Held;
use super::waiter::{self, Spares};
use super::{Shared, guard, running};

/// The ports of all loops, found by the loop's address.
#[derive(Default)]
pub(super) struct Ports(Held<Known>);

#[derive(Default)]
struct Known {
    all: HashMap<usize, Weak<Port>, ahash::RandomState>,
    /// The port of the loop that was seen running last.
    recent: Option<(running::Mark, Arc<Port>)>,
}

pub(super) struct Port {
    shared: &'static Shared,
    key: usize,
    target: Py<PyWeakrefReference>,
    inbox: Held<Inbox>,
    /// Only a loop that owns its port has any: they know the loop, and it must not be kept alive by others.
    spares: Spares,
}

#[derive(Default)]
struct Inbox {
    /// The futures that are to be woken.
    ready: Vec<Py<PyAny>>,
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
        let mark = running::mark(py);
        if mark.is_some()
            && let Some(port) = self.0.with(py, |known| {
                known.recent.as_ref().filter(|(seen, _)| Some(*seen) == mark).map(|(_, port)| port.clone())
            })
            && port.is_open(py)
        {
            return Ok(port);
        }
        let target = shared.names.get_running_loop.bind(py).call0()?;
        let key = target.as_ptr() as usize;
        let known = self.0.with(py, |known| known.all.get(&key).and_then(Weak::upgrade));
        let port = match known {
            Some(port) if port.is_open(py) && port.target(py).is_some_and(|it| it.is(&target)) => port,
            _ => Port::open(shared, key, &target)?,
        };
        let lasting = running::mark(py).filter(|_| running::is_told_by_mark(py));
        let old = self.0.with(py, |known| {
            let old = known.all.insert(key, Arc::downgrade(&port));
            (old, std::mem::replace(&mut known.recent, lasting.map(|mark| (mark, port.clone()))))
        });
        drop(old);
        Ok(port)
    }

    fn forget(&self, py: Python<'_>, port: &Port) {
        let old = self.0.with(py, |known| {
            let old = known.recent.take_if(|(_, it)| std::ptr::eq(Arc::as_ptr(it), port));
            let is_known = known.all.get(&port.key).is_some_and(|it| std::ptr::eq(it.as_ptr(), port));
            (old, if is_known { known.all.remove(&port.key) } else { None })
        });
        drop(old);
    }
}

impl Port {
    fn open(shared: &'static Shared, key: usize, target: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let py = target.py();
        let weak = PyWeakrefReference::new(target)?.unbind();
        let port = Arc::new(Port { shared, key, target: weak, inbox: Held::default(), spares: Spares::default() });
        let drain = Bound::new(py, Drain(port.clone()))?;
        #[cfg(unix)]
        {
            let bell = super::wake::Bell::new()?;
            let fd = bell.fd();
            port.inbox.with(py, |inbox| inbox.signal = Signal::Bell(bell));
            match watch(target, fd, &drain) {
                Ok(()) => return Ok(port),
                Err(error) if cannot_watch(py, &error) => {}
                Err(error) => return Err(error),
            }
        }
        // A loop without readers keeps nothing for us, so the port is told when the loop dies.
        let weak = Arc::downgrade(&port);
        let died = PyCFunction::new_closure(py, None, None, move |args, _| {
            if let Some(port) = weak.upgrade() {
                port.close(args.py());
            }
        })?;
        let death = PyWeakrefReference::new_with(target, died)?.unbind();
        let signal = Signal::Call { drain: drain.unbind(), death };
        let silent = port.inbox.with(py, |inbox| std::mem::replace(&mut inbox.signal, signal));
        drop(silent);
        Ok(port)
    }

    /// The loop, while it lives.
    pub(super) fn target<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.target.bind(py).upgrade()
    }

    /// A future of the loop that is pending.
    pub(super) fn future<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(spare) = self.spares.take(py) {
            return Ok(spare.into_bound(py));
        }
        let Some(target) = self.target(py) else {
            return Err(PyRuntimeError::new_err("the event loop of a tool that runs in a thread is gone"));
        };
        waiter::create(&target)
    }

    fn is_open(&self, py: Python<'_>) -> bool {
        self.inbox.with(py, |inbox| !matches!(inbox.signal, Signal::Gone))
    }

    /// Has the loop wake a future; called by worker threads.
    pub(super) fn post(&self, py: Python<'_>, future: Py<PyAny>) {
        let mut future = Some(future);
        self.deliver(py, |ready| {
            ready.extend(future.take());
            ready.len() == 1 // else the loop has been woken and has not looked yet
        });
        if let Some(unwanted) = future {
            guard::release(py, unwanted);
        }
    }

    /// Lets the loop know once more of what it has heard of but not got to.
    fn post_again(&self, py: Python<'_>, rest: &mut impl Iterator<Item = Py<PyAny>>) {
        self.deliver(py, |ready| {
            ready.extend(rest);
            !ready.is_empty()
        });
    }

    /// Changes the list of what is ready, and wakes the loop if the change asks for that.
    fn deliver(&self, py: Python<'_>, change: impl FnOnce(&mut Vec<Py<PyAny>>) -> bool) {
        let drain = self.inbox.with(py, |inbox| {
            if matches!(inbox.signal, Signal::Gone) || !change(&mut inbox.ready) {
                return None;
            }
            match &inbox.signal {
                #[cfg(unix)]
                Signal::Bell(bell) => {
                    bell.ring();
                    None
                }
                Signal::Call { drain, .. } => Some(drain.clone_ref(py).into_any()),
                Signal::Gone => None,
            }
        });
        let Some(drain) = drain else { return };
        let Some(target) = self.target(py).map(Bound::unbind) else {
            return;
        };
        match guard::call_method(py, &target, intern!(py, "call_soon_threadsafe"), Some(&drain)) {
            Ok(handle) => guard::release(py, handle),
            Err(closed) => {
                self.close(py);
                guard::release(py, closed);
            }
        }
        guard::release(py, drain);
        guard::release(py, target);
    }

    fn collect(&self, py: Python<'_>) -> (Vec<Py<PyAny>>, bool) {
        self.inbox.with(py, |inbox| {
            #[cfg(unix)]
            if let Signal::Bell(bell) = &inbox.signal {
                bell.silence();
            }
            (std::mem::take(&mut inbox.ready), !matches!(inbox.signal, Signal::Call { .. }))
        })
    }

    /// Wakes nobody any more; what is under way finds no one to tell.
    fn close(&self, py: Python<'_>) {
        if !self.shared.is_current() {
            return; // a forked child leaves alone what the parent shares with its threads
        }
        let inbox = self.inbox.with(py, std::mem::take);
        self.shared.ports.forget(py, self);
        drop((inbox, self.spares.empty(py)));
    }
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let port = &*self.0;
        if !port.shared.is_current() {
            return Ok(());
        }
        let (ready, owns_spares) = port.collect(py);
        let mut ready = ready.into_iter();
        while let Some(future) = ready.next() {
            let woken = waiter::wake(future.into_bound(py), &port.shared.names, owns_spares.then_some(&port.spares));
            if !port.shared.is_current() {
                return woken; // the task forked, and this is the child
            }
            if woken.is_err() {
                // The loop is about to stop (`KeyboardInterrupt`, `SystemExit`), but may be started again.
                port.post_again(py, &mut ready);
                return woken;
            }
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the collector runs in an attached thread, and looking at the lists runs no Python code.
        let py = unsafe { Python::assume_attached() };
        self.0.inbox.with(py, |inbox| inbox.ready.iter().try_for_each(|future| visit.call(future)))?;
        self.0.spares.visit(py, |future| visit.call(future))
    }

    fn __clear__(&self, py: Python<'_>) {
        let ready = self.0.inbox.with(py, |inbox| std::mem::take(&mut inbox.ready));
        drop((ready, self.0.spares.empty(py)));
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        Python::try_attach(|py| self.0.close(py));
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
