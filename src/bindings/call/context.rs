//! The context of a call: what a tool with a `ToolContext` parameter is given, and the reports that it sends while it runs.
//!
//! A report is a response of mode `progress`. It joins the stream as soon as the reader asks for the next response. A reader that waits
//! is woken for it: the stream hands out a future of its own in place of the one that the tool waits for, and remembers that
//! one in [`Held`]. Calls of tools without a context never come here.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::cold::Cold;
use super::python::slot::Slot;
use super::run::Given;
use super::state::{Phase, State, Step};
use super::task;
use crate::bindings::host::HostFunctions;
use crate::bindings::imported::TOOL_CONTEXT;
use crate::bindings::native;
use crate::bindings::once::intern;
use crate::bindings::view::PyToolkitView;
use crate::call::CallInfo;
use crate::native::ToolContext;
use crate::sync::lock;

/// The most reports that wait for the reader; the oldest are dropped.
const MOST_REPORTS: usize = 256;

/// The way from a context to the stream of its call, for any thread.
#[pyclass(name = "_CallPort", module = "toolcrib._core", frozen)]
#[derive(Default)]
pub(crate) struct CallPort {
    reports: Mutex<VecDeque<Py<PyAny>>>,
    /// The future that the reader waits for, with its event loop.
    reader: Mutex<Option<(Py<PyAny>, Py<PyAny>)>>,
    is_closed: AtomicBool,
    /// The identity of the call, if it was made for the run of an agent before the call itself needed it.
    info: OnceLock<Arc<CallInfo>>,
}

#[pymethods]
impl CallPort {
    /// Send a response to the stream of the call; it is dropped if the call is over.
    pub(crate) fn report(&self, py: Python<'_>, response: Bound<'_, PyAny>) -> PyResult<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let dropped = {
            let mut reports = lock(&self.reports);
            reports.push_back(response.unbind());
            if reports.len() > MOST_REPORTS { reports.pop_front() } else { None }
        };
        drop(dropped);
        let reader = lock(&self.reader).take();
        if let Some((event_loop, future)) = reader {
            let wake = Bound::new(py, Wake { future })?;
            // A loop that is closed has no reader any more.
            let _ = event_loop.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (wake,));
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(reports) = self.reports.try_lock() {
            reports.iter().try_for_each(|report| visit.call(report))?;
        }
        if let Ok(reader) = self.reader.try_lock()
            && let Some((event_loop, future)) = &*reader
        {
            visit.call(event_loop)?;
            visit.call(future)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl CallPort {
    /// The identity of the call, made when it is first asked for.
    pub(crate) fn info(&self, make: impl FnOnce() -> CallInfo) -> Arc<CallInfo> {
        self.info.get_or_init(|| Arc::new(make())).clone()
    }

    /// Sets the identity of the call.
    pub(super) fn set_info(&self, info: Arc<CallInfo>) {
        // The same one, if it was set before.
        let _ = self.info.set(info);
    }

    fn take_report<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        lock(&self.reports).pop_front().map(|report| report.into_bound(py))
    }

    /// Ends the reports of a call that is over.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let (reports, reader) = (std::mem::take(&mut *lock(&self.reports)), lock(&self.reader).take());
        drop((reports, reader));
    }
}

/// A callback that ends the wait of the reader.
#[pyclass(frozen, module = "toolcrib")]
struct Wake {
    future: Py<PyAny>,
}

#[pymethods]
impl Wake {
    #[pyo3(signature = (*_arguments))]
    fn __call__(&self, py: Python<'_>, _arguments: &Bound<'_, PyAny>) -> PyResult<()> {
        let future = self.future.bind(py);
        if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
            future.call_method1(intern!(py, "set_result"), (py.None(),))?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.future)
    }
}

/// The step of the tool that a report has come before.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum HeldKind {
    #[default]
    Nothing,
    /// The tool waits for this future.
    Future,
    Result,
    Item,
    End,
    Error,
}

/// A step of the tool that waits until the reports before it are read.
pub(super) struct Held {
    kind: Cell<HeldKind>,
    /// The future, result, item or exception.
    object: Slot,
    /// The callback of the future.
    wake: Slot,
}

impl Held {
    pub(super) const fn nothing() -> Self {
        Self { kind: Cell::new(HeldKind::Nothing), object: Slot::empty(), wake: Slot::empty() }
    }

    /// True if no step is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.kind.get() == HeldKind::Nothing
    }

    fn hold<'py>(&self, py: Python<'py>, given: Given<'py>) {
        let (kind, object) = match given {
            Given::Wait(future) => (HeldKind::Future, Some(future)),
            Given::Result(result) => (HeldKind::Result, Some(result)),
            Given::Item(item) => (HeldKind::Item, Some(item)),
            Given::End => (HeldKind::End, None),
            Given::Error(error) => (HeldKind::Error, Some(error.into_value(py).into_bound(py).into_any())),
        };
        self.kind.set(kind);
        if let Some(object) = object {
            self.object.set(object);
        }
    }

    /// Takes the step back; a future is no longer watched.
    fn take<'py>(&self, py: Python<'py>) -> Option<Given<'py>> {
        let (kind, object) = (self.kind.take(), self.object.take(py));
        let wake = self.wake.take(py);
        Some(match (kind, object) {
            (HeldKind::Future, Some(future)) => {
                if let Some(wake) = wake {
                    let _ = future.call_method1(intern!(py, "remove_done_callback"), (wake,));
                }
                Given::Wait(future)
            }
            (HeldKind::Result, Some(result)) => Given::Result(result),
            (HeldKind::Item, Some(item)) => Given::Item(item),
            (HeldKind::End, _) => Given::End,
            (HeldKind::Error, Some(error)) => Given::error(PyErr::from_value(error)),
            _ => return None,
        })
    }

    pub(super) fn release(&self, py: Python<'_>) {
        drop(self.take(py));
    }

    pub(super) fn objects(&self) -> [*mut pyo3::ffi::PyObject; 2] {
        [self.object.visited(), self.wake.visited()]
    }
}

impl State {
    /// The port to this stream.
    pub(super) fn port<'py>(&self, py: Python<'py>) -> Option<Bound<'py, CallPort>> {
        port(py, self.cold.get()?)
    }

    /// The context of the call, which its tool, its middlewares and its approver share.
    pub(crate) fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cold = self.cold();
        if let Some(context) = cold.context.get(py) {
            return Ok(context);
        }
        let port = Bound::new(py, CallPort::default())?;
        let info = self.info(py);
        let session = self.viewed(py).and_then(|view| PyToolkitView::session_object(&view));
        let (timeout, name) = match self.tool.get(py) {
            Some(tool) => (tool.get().timeout, Some(tool.get().name.to_string())),
            None => (None, info.tool.clone()),
        };
        let HostFunctions { asker, sampler, log } = self.host(py);
        let caller = info.caller.as_deref();
        let fields = (&port, name, &info.id, caller, session, timeout, asker, sampler, log);
        let context = TOOL_CONTEXT.get(py)?.call1(fields)?;
        if let Some(confirmation) = cold.confirmation.get(py) {
            context.setattr(intern!(py, "_confirmation"), confirmation)?;
        }
        cold.context.set(context.clone());
        cold.port.set(port.into_any());
        Ok(context)
    }

    /// The functions that the tool reaches in the middle of the call.
    pub(super) fn host(&self, py: Python<'_>) -> HostFunctions {
        match self.viewed(py) {
            Some(view) => view.get().host(py),
            None => self.toolkit.get(py).map(|toolkit| toolkit.get().host(py)).unwrap_or_default(),
        }
    }

    /// Sets the facts of the call on the result of calling a tool that is written in Rust.
    #[cold]
    pub(super) fn identify_native(&self, py: Python<'_>, result: &Bound<'_, PyAny>) {
        let host = self.host(py);
        // The session is a part of questions.
        let session = host.asker.as_ref().and_then(|_| PyToolkitView::session_object(&self.viewed(py)?));
        native::identify(result, self.native_context(py), host, session.map(|session| session.into_any().unbind()));
    }

    /// The context for a tool that is written in Rust.
    fn native_context(&self, py: Python<'_>) -> ToolContext {
        let (info, tool) = (self.info(py), self.tool(py));
        let timeout = tool.get().timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        ToolContext {
            call_id: Some(info.id.as_str().into()),
            caller: info.caller.clone(),
            session: info.session_id().cloned(),
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            ..ToolContext::of(tool.get().name.clone())
        }
    }

    /// Goes on with the step that was held back; `None` if the tool can be resumed.
    pub(super) fn step_held<'py>(&self, py: Python<'py>, cold: &Cold) -> Option<Step<'py>> {
        let given = cold.held.take(py)?;
        if let Given::Wait(future) = &given
            && is_done(future)
        {
            return None;
        }
        Some(self.advance(py, given))
    }

    /// The coroutine, or the step of an async generator, that waits for a future while the stream has delivered a report.
    pub(super) fn waiting_behind_report<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let is_waiting = self.cold.get()?.held.kind.get() == HeldKind::Future;
        let can_unwind = matches!(self.phase.get(), Phase::Coroutine | Phase::AsyncGenerator);
        self.waiting(py).filter(|_| is_waiting && can_unwind)
    }

    /// Cancels the future that the tool waits for, as the task would do that waited for it itself; `None` if there is none, or
    /// it cannot be cancelled, or is done by that: then the tool gets the cancellation at once, so that calls inside of calls
    /// end in one turn of the event loop.
    pub(super) fn cancel_held<'py>(&self, py: Python<'py>, error: &PyErr) -> Option<Step<'py>> {
        let cold = self.cold.get()?;
        let given = cold.held.take(py)?;
        let Given::Wait(future) = &given else { return None };
        if self.phase.get() == Phase::Job || !task::is_cancellation(py, error).unwrap_or(false) {
            return None;
        }
        let is_cancelled = future.call_method0(intern!(py, "cancel")).and_then(|cancelled| cancelled.is_truthy());
        (is_cancelled.unwrap_or(false) && !is_done(future)).then(|| self.advance(py, given))
    }
}

/// Delivers a report before the step of the tool that came after it, or else gives the step back. The reader is woken for a
/// report while the tool waits.
#[cold]
pub(super) fn report_first<'py>(py: Python<'py>, cold: &Cold, given: Given<'py>) -> Result<Step<'py>, Given<'py>> {
    let Some(port) = port(py, cold) else { return Err(given) };
    if let Some(report) = port.get().take_report(py) {
        cold.held.hold(py, given);
        return Ok(Step::Chunk(report));
    }
    let Given::Wait(future) = given else { return Err(given) };
    match watch(port.get(), cold, &future) {
        Ok(Some(waiter)) => {
            cold.held.hold(py, Given::Wait(future));
            Ok(Step::Suspend(waiter))
        }
        // Not a future, but a turn that is given to the event loop.
        Ok(None) => Err(Given::Wait(future)),
        Err(error) => Err(Given::error(error)),
    }
}

fn port<'py>(py: Python<'py>, cold: &Cold) -> Option<Bound<'py, CallPort>> {
    cold.port.get(py)?.cast_into().ok()
}

fn is_done(future: &Bound<'_, PyAny>) -> bool {
    let done = future.call_method0(intern!(future.py(), "done"));
    done.and_then(|done| done.is_truthy()).unwrap_or(true)
}

/// A future that is done when `future` is, or when there is a report; `None` if `future` is not one of asyncio.
fn watch<'py>(port: &CallPort, cold: &Cold, future: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = future.py();
    let blocking = intern!(py, "_asyncio_future_blocking");
    if future.getattr_opt(blocking)?.is_none() {
        return Ok(None);
    }
    let event_loop = task::running_loop(py)?;
    let waiter = event_loop.call_method0(intern!(py, "create_future"))?;
    // The task sees the waiter as what was awaited, and not the future.
    future.setattr(blocking, false)?;
    waiter.setattr(blocking, true)?;
    let wake = Bound::new(py, Wake { future: waiter.clone().unbind() })?;
    future.call_method1(intern!(py, "add_done_callback"), (&wake,))?;
    cold.held.wake.set(wake.into_any());
    let old = lock(&port.reader).replace((event_loop.unbind(), waiter.clone().unbind()));
    drop(old);
    // A report that came in between has found no reader.
    if !lock(&port.reports).is_empty() {
        waiter.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(Some(waiter))
}

impl Cold {
    /// Ends the reports of the call.
    pub(super) fn close_port(&self, py: Python<'_>) {
        if let Some(port) = port(py, self) {
            port.get().close();
        }
        self.held.release(py);
    }
}
