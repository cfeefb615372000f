//! The beginning of a call: read the request, find the tool, see whether it may be called, bind the arguments, run.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::bind::{Bind, Call};
use super::drive::await_iter;
use super::input::{InDict, InPairs, Input, Noted};
use super::reading::name_of;
use super::state::{Phase, State, Step};
use crate::bindings::callable::Kind;
use crate::bindings::response;
use crate::bindings::worker::Job;
use crate::call::{Answer, RunIn};

/// How far a generator in a worker thread may run ahead of its consumer.
const CHUNKS_AHEAD: usize = 32;

impl State {
    /// The first step. Nothing of this happens before it, so that a call that is dropped has done nothing, and whether the
    /// tool may be called is decided at the moment it runs.
    ///
    /// # Safety
    /// The thread is attached; the phase is `Ready`.
    #[inline]
    pub(super) unsafe fn start(&self) -> Step {
        // SAFETY: as for the caller; `toolkit` was filled when the stream was made.
        unsafe {
            let py = Python::assume_attached();
            if self.rare.get().is_some_and(|rare| rare.is_to_claim())
                && let Some(step) = self.claim()
            {
                return step;
            }
            if self.is_layered(py) {
                return self.start_layered();
            }
            self.start_core(py)
        }
    }

    /// The first step inside of all middlewares.
    #[inline]
    pub(super) unsafe fn start_core(&self, py: Python<'_>) -> Step {
        // SAFETY: as for `start`.
        unsafe {
            if self.single {
                let input = InPairs::taken(py, &self.last, &self.pending);
                return match name_of(self.call.get()) {
                    Ok(name) => self.admit(py, name, Noted(input, self)),
                    Err(refusal) => self.refuse(refusal),
                };
            }
            match self.request(py) {
                Ok((name, input)) => self.admit(py, name, Noted(InDict(&input), self)),
                Err(refusal) => self.refuse(refusal),
            }
        }
    }

    /// Finds the tool, sees whether it may be called, and calls it.
    #[allow(clippy::inline_always, reason = "all of it is on the path of every call, once for each form of arguments")]
    #[inline(always)]
    unsafe fn admit(&self, py: Python<'_>, name: &str, input: impl Input) -> Step {
        // SAFETY: as for `start`; the slots are filled as the phases ask for.
        unsafe {
            match self.admitted_tool(py, name) {
                Ok(tool) => self.tool.set(tool.into_ptr()),
                Err(answer) => return self.refuse(Refusal::Answer(answer)),
            }
            self.run(input)
        }
    }

    /// Calls the tool that was found, if it may run.
    #[allow(clippy::inline_always, reason = "all of it is on the path of every call, once for each form of arguments")]
    #[inline(always)]
    pub(super) unsafe fn run(&self, input: impl Input) -> Step {
        // SAFETY: as for `start`; `tool` is filled.
        unsafe {
            if let Some(answer) = self.doubt(&input) {
                return self.refuse(Refusal::Answer(answer));
            }
            if self.is_cleared() { self.execute(input) } else { self.judge(input) }
        }
    }

    /// Calls the tool that was found and may run.
    #[allow(clippy::inline_always, reason = "all of it is on the path of every call, once for each form of arguments")]
    #[inline(always)]
    pub(super) unsafe fn execute(&self, input: impl Input) -> Step {
        // SAFETY: as for `start`; `tool` is filled.
        unsafe {
            let tool = self.tool();
            if self.single && tool.postprocess.is_some() {
                self.keep_block(&input);
            }
            if tool.async_execution {
                return self.start_background(Python::assume_attached(), &input);
            }
            if tool.run_in != RunIn::Inline {
                return self.start_job(&input);
            }
            let result = match tool.plan.call(&tool.function, &input) {
                Call::Returned(result) => result,
                Call::Raised => return self.fail(),
                Call::Refused(answer) => return self.refuse(Refusal::Answer(answer)),
            };
            drop(input);
            self.proceed(result)
        }
    }

    /// The function was called: goes on with what it returned, which is owned.
    ///
    /// # Safety
    /// The thread is attached; `tool` is filled.
    #[inline]
    pub(super) unsafe fn proceed(&self, result: *mut PyObject) -> Step {
        // SAFETY: as for the caller; the slots are filled as the phases ask for.
        unsafe {
            match self.tool().kind {
                Kind::Function => self.settle(result),
                Kind::Coroutine => {
                    let iterator = await_iter(result);
                    if iterator.is_null() {
                        return self.fail();
                    }
                    self.inner.set(iterator);
                    self.phase.set(Phase::Coroutine);
                    self.step_coroutine(ffi::Py_None())
                }
                Kind::AsyncGenerator => {
                    self.inner.set(result);
                    self.phase.set(Phase::AsyncGenerator);
                    self.step_async_generator(ffi::Py_None())
                }
                Kind::Generator => {
                    self.inner.set(result);
                    self.phase.set(Phase::Generator);
                    self.step_generator(ffi::Py_None())
                }
            }
        }
    }

    /// Runs the body in a worker thread or a child process.
    #[cold]
    unsafe fn start_job(&self, input: &impl Input) -> Step {
        // SAFETY: as for `start`.
        unsafe {
            Python::attach(|py| match self.bind(py, input) {
                Ok((arguments, keywords)) => self.employ(py, arguments, keywords),
                Err(step) => step,
            })
        }
    }

    /// The arguments of the call, or the step that answers for them.
    ///
    /// # Safety
    /// As for `start`; `tool` is filled.
    pub(super) unsafe fn bind<'py>(&self, py: Python<'py>, input: &impl Input) -> Result<Arguments<'py>, Step> {
        // SAFETY: as for the caller.
        unsafe {
            match self.tool().plan.bind_any(py, input) {
                Ok(Bind::Ready(arguments, keywords)) => Ok((arguments, keywords)),
                Ok(Bind::Refused(answer)) => Err(self.refuse(Refusal::Answer(answer))),
                Err(error) => {
                    error.restore(py);
                    Err(self.fail())
                }
            }
        }
    }

    /// Gives the work to a worker thread.
    ///
    /// # Safety
    /// As for `start`; `tool` is filled.
    pub(super) unsafe fn employ<'py>(
        &self,
        py: Python<'py>,
        arguments: Bound<'py, PyTuple>,
        keywords: Option<Bound<'py, PyDict>>,
    ) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            let started = self.tool().errand(py).and_then(|(callable, give_up)| {
                Job::start(py, callable, arguments, keywords, CHUNKS_AHEAD, give_up.map(Bound::unbind))
            });
            match started {
                Ok(job) => {
                    if self.rare().job.set(job).is_err() {
                        PyRuntimeError::new_err("a tool call runs one job").restore(py);
                        return self.fail();
                    }
                    self.phase.set(Phase::Job);
                    self.poll_job(py)
                }
                Err(error) => {
                    error.restore(py);
                    self.fail()
                }
            }
        }
    }

    /// Ends the call before the tool has run.
    #[cold]
    pub(super) unsafe fn refuse(&self, refusal: Refusal) -> Step {
        Python::attach(|py| {
            self.finish();
            let response = match refusal {
                Refusal::Answer(answer) => response::answer(py, &answer),
                Refusal::Raise(error) => Err(error),
            };
            match response {
                Ok(response) => Step::Chunk(response.into_ptr()),
                Err(error) => {
                    error.restore(py);
                    Step::Raise
                }
            }
        })
    }

    /// Writes down the request of `Toolkit.call` as a block, which postprocess functions are shown.
    #[cold]
    unsafe fn keep_block(&self, input: &impl Input) {
        Python::attach(|py| {
            let Some(name) = self.call.bound(py) else { return };
            match input.to_dict(py).and_then(|input| block(&name, input.as_any())) {
                Ok(block) => self.call.set(block.into_any().into_ptr()),
                Err(error) => error.write_unraisable(py, None),
            }
        });
    }
}

/// What a function is called with.
type Arguments<'py> = (Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);

/// A request that did not come as a block, written as one.
pub(super) fn block<'py>(name: &Bound<'py, PyAny>, input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = name.py();
    let block = PyDict::new(py);
    block.set_item(intern!(py, "type"), intern!(py, "tool_use"))?;
    block.set_item(intern!(py, "id"), intern!(py, ""))?;
    block.set_item(intern!(py, "name"), name)?;
    block.set_item(intern!(py, "input"), input)?;
    Ok(block)
}

/// Why a call ends before its tool runs.
pub(super) enum Refusal {
    /// The model is told.
    Answer(Answer),
    /// The developer is told.
    Raise(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raise(error)
    }
}
