//! Calls that go on in the background: such a call is answered at once, and a second stream does the work in a task.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::input::Input;
use super::python::object;
use super::start::Refusal;
use super::state::{Phase, State, Step};
use crate::bindings::background;
use crate::call::RunIn;

impl State {
    /// Starts the task and says so. The arguments are checked before, so that a wrong one is answered at once.
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    #[cold]
    pub(super) unsafe fn start_background(&self, py: Python<'_>, input: &impl Input) -> Step {
        // SAFETY: as for the caller; only toolkits make streams.
        Python::attach(|_| unsafe {
            let (arguments, keywords) = match self.bind(py, input) {
                Ok(bound) => bound,
                Err(step) => return step,
            };
            let toolkit = self.toolkit(py);
            let toolkit = toolkit.get();
            let started = Bound::from_owned_ptr_or_err(py, object::new(self.admitted(arguments, keywords)))
                .and_then(|stream| background::begin(toolkit.tasks(py)?, &self.tool().name, &stream));
            match started {
                Ok(response) => {
                    self.finish();
                    Step::Chunk(response.into_ptr())
                }
                Err(error) => self.refuse(Refusal::Raise(error)),
            }
        })
    }

    /// The call that does the work: of the same request and tool. Awaiting it gives the last response.
    unsafe fn admitted(&self, arguments: Bound<'_, PyTuple>, keywords: Option<Bound<'_, PyDict>>) -> Self {
        // SAFETY: the slots hold live objects or nothing.
        unsafe {
            let state = Self::new(ffi::Py_XNewRef(self.toolkit.get()), ffi::Py_XNewRef(self.call.get()), true);
            state.tool.set(ffi::Py_XNewRef(self.tool.get()));
            state.pending.set(arguments.into_ptr());
            state.last.set(keywords.map_or(ptr::null_mut(), Bound::into_ptr));
            state.phase.set(Phase::Admitted);
            state.rare().in_background.set(true);
            state
        }
    }

    /// The first step of the call that does the work.
    ///
    /// # Safety
    /// The thread is attached; the phase is `Admitted`.
    #[cold]
    pub(super) unsafe fn start_admitted(&self) -> Step {
        // SAFETY: in this phase the slots are filled by `admitted`.
        Python::attach(|py| unsafe {
            let arguments = Bound::from_owned_ptr(py, self.pending.take()).cast_into_unchecked::<PyTuple>();
            let keywords = Bound::from_owned_ptr_or_opt(py, self.last.take());
            let keywords = keywords.map(|keywords| keywords.cast_into_unchecked::<PyDict>());
            let tool = self.tool();
            if tool.run_in != RunIn::Inline {
                return self.employ(py, arguments, keywords);
            }
            match tool.function.bind(py).call(arguments, keywords.as_ref()) {
                Ok(result) => self.proceed(result.into_ptr()),
                Err(error) => {
                    error.restore(py);
                    self.fail()
                }
            }
        })
    }
}
