//! What a task waits on while a worker is busy: a future of its loop, woken at less than the usual cost.
//!
//! A future that comes to its end has the loop call each of its callbacks later, which costs a handle and a turn of the
//! loop's Python code each. Results of jobs are handed out by the loop itself, at a moment when it might as well make
//! that call, so it is made right there. And as making a future costs as much as all the rest, one that only asyncio's
//! own task has waited on stays pending, without the task's callback, and the task is shown another that is done: the
//! next call can wait on it again. In every other case a future is what it seems to be.

use std::ptr;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use super::context::Context;
use super::held::Held;
use super::{Names, guard};

/// How many futures are kept for the next calls.
const KEPT: usize = 256;

/// The futures of one event loop that can be waited on again.
#[derive(Default)]
pub(super) struct Spares(Held<Futures>);

#[derive(Default)]
pub(super) struct Futures {
    pending: Vec<Py<PyAny>>,
    done: Option<Py<PyAny>>,
}

impl Spares {
    /// A pending future that nobody else knows.
    pub(super) fn take(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.with(py, |futures| futures.pending.pop())
    }

    /// All of them, for whoever has to let go of them.
    pub(super) fn empty(&self, py: Python<'_>) -> Futures {
        self.0.with(py, std::mem::take)
    }

    /// Shows each to the collector, until a visit fails.
    pub(super) fn visit<E>(&self, py: Python<'_>, mut visit: impl FnMut(&Py<PyAny>) -> Result<(), E>) -> Result<(), E> {
        self.0.with(py, |futures| futures.pending.iter().chain(&futures.done).try_for_each(&mut visit))
    }

    fn keep(&self, py: Python<'_>, future: Bound<'_, PyAny>) {
        let mut future = Some(future.unbind());
        self.0.with(py, |futures| {
            if futures.pending.len() < KEPT {
                futures.pending.extend(future.take());
            }
        });
    }

    /// A future of the same loop that is done.
    fn done<'py>(&self, future: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = future.py();
        if let Some(done) = self.0.with(py, |futures| futures.done.as_ref().map(|done| done.clone_ref(py))) {
            return Ok(done.into_bound(py));
        }
        let done = create(&future.call_method0(intern!(py, "get_loop"))?)?;
        done.call_method1(intern!(py, "set_result"), (py.None(),))?;
        let old = self.0.with(py, |futures| futures.done.replace(done.clone().unbind()));
        drop(old);
        Ok(done)
    }
}

/// A new future of an event loop.
pub(super) fn create<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    event_loop.call_method0(intern!(event_loop.py(), "create_future"))
}

pub(super) fn is_pending(future: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!future.call_method0(intern!(future.py(), "done"))?.is_truthy()?)
}

/// Marks a future as awaited, so that it can be yielded to the loop as it is.
pub(super) fn mark_awaited(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    // SAFETY: three live objects.
    match unsafe {
        ffi::PyObject_SetAttr(future.as_ptr(), intern!(py, "_asyncio_future_blocking").as_ptr(), ffi::Py_True())
    } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

/// Goes on with what waits; to be called by the loop itself, outside of any task.
pub(super) fn wake(future: Bound<'_, PyAny>, names: &Names, spares: Option<&Spares>) -> PyResult<()> {
    let py = future.py();
    if let Some(wakeup) = Wakeup::of(&future, names)
        && let Ok(_inside) = wakeup.context.enter(py)
    {
        return wakeup.call(future, names, spares);
    }
    // The loop knows what to do about callbacks of any kind, and about a context that is in use.
    if is_pending(&future)? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// How asyncio's own task goes on after a wait, and the context it does that in.
struct Wakeup<'py> {
    function: Bound<'py, PyAny>,
    context: Context,
}

impl<'py> Wakeup<'py> {
    /// The one callback of a future, if both are asyncio's own.
    fn of(future: &Bound<'py, PyAny>, names: &Names) -> Option<Self> {
        let py = future.py();
        // SAFETY: live objects, whose types are checked before they are looked into; the list keeps the pair alive, and the
        // pair what is in it, until those have references of their own.
        unsafe {
            if ffi::Py_TYPE(future.as_ptr()).cast() != names.future.as_ptr() {
                return None;
            }
            // `None` where there are no callbacks. Asking may fail where asyncio is another than it was, which is as good.
            let callbacks = future.getattr(intern!(py, "_callbacks")).ok()?;
            if ffi::PyList_CheckExact(callbacks.as_ptr()) == 0 || ffi::PyList_GET_SIZE(callbacks.as_ptr()) != 1 {
                return None;
            }
            let pair = ffi::PyList_GET_ITEM(callbacks.as_ptr(), 0);
            if ffi::PyTuple_CheckExact(pair) == 0 || ffi::PyTuple_GET_SIZE(pair) != 2 {
                return None;
            }
            let (function, context) = (ffi::PyTuple_GET_ITEM(pair, 0), ffi::PyTuple_GET_ITEM(pair, 1));
            if ffi::PyCFunction_CheckExact(function) == 0 || ffi::PyContext_CheckExact(context) == 0 {
                return None;
            }
            let function = Bound::from_borrowed_ptr(py, function);
            let context = Context::from(Bound::from_borrowed_ptr(py, context).unbind());
            is_wakeup(&function, names).then_some(Self { function, context })
        }
    }

    /// Calls it in its context, which has been entered, as if the future were done.
    fn call(&self, future: Bound<'py, PyAny>, names: &Names, spares: Option<&Spares>) -> PyResult<()> {
        let py = future.py();
        // One reference is the one here, the other the task's. Whoever has a third might look at the future again. From
        // Python 3.14 on a future knows the tasks that wait for it, and forgets one only when it is shown to that.
        // SAFETY: a live object.
        let is_private = || unsafe { ffi::Py_REFCNT(future.as_ptr()) } == 2;
        let spares = spares.filter(|_| cfg!(not(Py_3_14)) && is_private());
        let done = spares.map(|spares| spares.done(&future)).transpose()?;
        let args = [future.as_ptr(), self.function.as_ptr()];
        // SAFETY: live objects, two arguments: the method belongs to the future's own type.
        let removed = unsafe { ffi::PyObject_Vectorcall(names.remove.as_ptr(), args.as_ptr(), 2, ptr::null_mut()) };
        // SAFETY: an owned reference, or null and an exception is set.
        unsafe { Bound::from_owned_ptr_or_err(py, removed) }?;
        if done.is_none() {
            future.call_method1(intern!(py, "set_result"), (py.None(),))?;
        }
        let args = [done.as_ref().unwrap_or(&future).as_ptr()];
        // SAFETY: live objects, one argument. A task goes on under this call, and whatever it runs may be where the
        // thread is ended.
        let result = unsafe { guard::vectorcall(self.function.as_ptr(), args.as_ptr(), 1, ptr::null_mut()) };
        // SAFETY: an owned reference, or null and an exception is set.
        let result = unsafe { Bound::from_owned_ptr_or_err(py, result) }.map(drop);
        if let Some(spares) = spares
            // SAFETY: a live object.
            && unsafe { ffi::Py_REFCNT(future.as_ptr()) } == 1
        {
            spares.keep(py, future);
        }
        result
    }
}

/// Whether a function written in C is the one by which asyncio's tasks go on.
fn is_wakeup(function: &Bound<'_, PyAny>, names: &Names) -> bool {
    // SAFETY: the caller has checked that this is a function written in C.
    let code = unsafe { ffi::PyCFunction_GetFunction(function.as_ptr()) };
    let Some(code) = code.map(|code| code as usize) else { return false };
    let py = function.py();
    let known = names.wakeup.with(py, |known| *known);
    if known != 0 {
        return known == code;
    }
    let is_named = function.getattr(intern!(py, "__name__")).is_ok_and(|name| name.eq("task_wakeup").unwrap_or(false));
    let owner = function.getattr(intern!(py, "__self__"));
    let is_wakeup = is_named && owner.is_ok_and(|owner| owner.is_instance(names.task.bind(py)).unwrap_or(false));
    if is_wakeup {
        names.wakeup.with(py, |known| *known = code);
    }
    is_wakeup
}
