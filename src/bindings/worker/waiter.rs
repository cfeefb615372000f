//! What a task waits on while a worker is busy: a future as far as asyncio can tell, and cheaper than one.
//!
//! A future that is done has the loop call each of its callbacks later, which costs a handle and a turn of the loop's
//! Python code each. Results of jobs are handed out by the loop itself, at a moment when it might as well make that
//! call, so it is made right there.

use std::iter::Chain;
use std::sync::Mutex;
use std::{option, ptr, vec};

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::context::Context;
use super::{Shared, guard, lock};

/// Waits for news of one job; belongs to one event loop, and is touched in its thread only.
#[pyclass(frozen, module = "toolcrib._core", name = "_Waiter")]
pub(super) struct Waiter {
    shared: &'static Shared,
    target: Py<PyAny>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether it was yielded to the loop by an `await`, and not by mistake.
    is_awaited: bool,
    end: End,
    callbacks: Callbacks,
}

/// There is one of them, as a rule.
#[derive(Default)]
struct Callbacks {
    first: Option<Callback>,
    more: Vec<Callback>,
}

#[derive(Default)]
enum End {
    #[default]
    Pending,
    Done,
    Cancelled(Option<Py<PyAny>>),
}

struct Callback {
    function: Py<PyAny>,
    context: Context,
}

impl Waiter {
    pub(super) fn new(shared: &'static Shared, target: Bound<'_, PyAny>) -> Self {
        Waiter { shared, target: target.unbind(), state: Mutex::default() }
    }

    pub(super) fn is_pending(&self) -> bool {
        matches!(lock(&self.state).end, End::Pending)
    }

    /// Marks it as awaited, so that it can be yielded to the loop as it is.
    pub(super) fn mark_awaited(&self) {
        lock(&self.state).is_awaited = true;
    }

    /// Goes on with what waits; to be called by the loop itself, outside of any task.
    pub(super) fn wake(me: &Bound<'_, Self>) -> PyResult<()> {
        let mut result = Ok(());
        for callback in me.get().end(End::Done).unwrap_or_default() {
            match callback.context.enter(me.py()) {
                Ok(_inside) if result.is_ok() => result = callback.call(me),
                // The loop knows what to do about a context that is in use.
                _ => callback.schedule(me)?,
            }
        }
        result
    }

    /// Comes to an end, if it has not already, and gives the callbacks to be called.
    fn end(&self, end: End) -> Option<Callbacks> {
        let mut state = lock(&self.state);
        if !matches!(state.end, End::Pending) {
            return None;
        }
        state.end = end;
        Some(std::mem::take(&mut state.callbacks))
    }
}

#[pymethods]
impl Waiter {
    #[getter(_asyncio_future_blocking)]
    fn is_awaited(&self) -> bool {
        lock(&self.state).is_awaited
    }

    #[setter(_asyncio_future_blocking)]
    fn set_awaited(&self, is_awaited: bool) {
        lock(&self.state).is_awaited = is_awaited;
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.target.clone_ref(py)
    }

    #[pyo3(signature = (function, /, *, context = None))]
    fn add_done_callback(me: &Bound<'_, Self>, function: Py<PyAny>, context: Option<Py<PyAny>>) -> PyResult<()> {
        let context = context.map_or_else(|| Context::copy(me.py()), |context| Ok(Context::from(context)))?;
        let callback = Callback { function, context };
        {
            let mut state = lock(&me.get().state);
            if matches!(state.end, End::Pending) {
                state.callbacks.push(callback);
                return Ok(());
            }
        }
        callback.schedule(me)
    }

    fn remove_done_callback(&self, function: &Bound<'_, PyAny>) -> PyResult<usize> {
        // Comparing runs anybody's code, so the list is away meanwhile.
        let callbacks = std::mem::take(&mut lock(&self.state).callbacks);
        let (mut kept, mut removed, mut result) = (Vec::new(), 0, Ok(()));
        for callback in callbacks {
            match function.eq(&callback.function) {
                Ok(true) => {
                    removed += 1;
                    continue;
                }
                Ok(false) => {}
                Err(error) => result = Err(error),
            }
            kept.push(callback);
        }
        let mut state = lock(&self.state);
        let added = std::mem::take(&mut state.callbacks);
        kept.into_iter().chain(added).for_each(|callback| state.callbacks.push(callback));
        drop(state);
        result.map(|()| removed)
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(me: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let Some(callbacks) = me.get().end(End::Cancelled(msg)) else {
            return Ok(false);
        };
        callbacks.into_iter().try_for_each(|callback| callback.schedule(me))?;
        Ok(true)
    }

    fn cancelled(&self) -> bool {
        matches!(lock(&self.state).end, End::Cancelled(_))
    }

    fn done(&self) -> bool {
        !self.is_pending()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let names = &self.shared.names;
        let message = match &lock(&self.state).end {
            End::Done => return Ok(()),
            End::Pending => None,
            End::Cancelled(message) => Some(message.as_ref().map(|message| message.clone_ref(py))),
        };
        let error = match message {
            None => names.invalid_state.call1(py, ("Result is not set.",)),
            Some(None) => names.cancelled.call0(py),
            Some(Some(message)) => names.cancelled.call1(py, (message,)),
        };
        Err(PyErr::from_value(error?.into_bound(py)))
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }

    fn __await__(me: Py<Self>) -> Py<Self> {
        me
    }

    fn __iter__(me: Py<Self>) -> Py<Self> {
        me
    }

    fn __next__(me: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        if me.get().is_pending() {
            me.get().mark_awaited();
            return Ok(me.clone().unbind());
        }
        me.get().result(me.py())?;
        Err(PyStopIteration::new_err(()))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let state = lock(&self.state);
        for callback in state.callbacks.first.iter().chain(&state.callbacks.more) {
            visit.call(&callback.function)?;
            visit.call(callback.context.object())?;
        }
        if let End::Cancelled(message) = &state.end {
            visit.call(message)?;
        }
        visit.call(&self.target)
    }

    fn __clear__(&self) {
        let callbacks = std::mem::take(&mut lock(&self.state).callbacks);
        drop(callbacks);
    }
}

impl Callbacks {
    fn push(&mut self, callback: Callback) {
        match self.first {
            None => self.first = Some(callback),
            Some(_) => self.more.push(callback),
        }
    }
}

impl IntoIterator for Callbacks {
    type Item = Callback;
    type IntoIter = Chain<option::IntoIter<Callback>, vec::IntoIter<Callback>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl Callback {
    /// Calls it here and now, in its context, which has been entered.
    fn call(&self, waiter: &Bound<'_, Waiter>) -> PyResult<()> {
        let py = waiter.py();
        let args = [waiter.as_ptr()];
        // SAFETY: live objects, one argument. A task goes on under this call, and whatever it runs may be where the
        // thread is ended.
        let result = unsafe { guard::vectorcall(self.function.as_ptr(), args.as_ptr(), 1, ptr::null_mut()) };
        // SAFETY: an owned reference, or null and an exception is set.
        unsafe { Bound::from_owned_ptr_or_err(py, result) }.map(drop)
    }

    /// Has the loop call it.
    fn schedule(&self, waiter: &Bound<'_, Waiter>) -> PyResult<()> {
        let py = waiter.py();
        let options = PyDict::new(py);
        options.set_item(intern!(py, "context"), self.context.object())?;
        let target = waiter.get().target.bind(py);
        target.call_method(intern!(py, "call_soon"), (&self.function, waiter), Some(&options)).map(drop)
    }
}
