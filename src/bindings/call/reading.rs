//! The request of a call, read: its name and its arguments, in whatever form they came.
//!
//! A dict with a name and a dict of arguments is how nearly all of them come, and is not even copied. Everything else goes
//! the slow way, through a [`ToolCall`].

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use super::rare::Mended;
use super::start::Refusal;
use super::state::State;
use crate::bindings::tool_call::{self, PyToolCall};
use crate::bindings::{foreign, json, value};
use crate::call::repair::{RepairMode, read, read_strictly};
use crate::call::{Answer, ArgumentMode, CallError, ToolCall};

/// What a developer is told about an object that can be no call.
pub(super) const NO_CALL: &str = "a tool call is a mapping with `name` and `input`, or what ToolCall.read understands";

/// Whether an object may be a call.
pub(super) fn is_readable(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || foreign::is_readable(object)
}

type Request<'py> = (&'py str, Bound<'py, PyDict>);

impl State {
    /// Reads the name and the arguments.
    ///
    /// # Safety
    /// The thread is attached; `call` is filled.
    #[inline]
    pub(super) unsafe fn request<'py>(&self, py: Python<'py>) -> Result<Request<'py>, Refusal> {
        // SAFETY: as for the caller; borrowed objects are kept alive by `call`.
        unsafe {
            let call = self.call.get();
            if ffi::PyDict_Check(call) == 0 {
                return Python::attach(|_| self.request_of_another_kind(py));
            }
            let spelt = ffi::PyDict_GetItemWithError(call, intern!(py, "name").as_ptr());
            let input = ffi::PyDict_GetItemWithError(call, intern!(py, "input").as_ptr());
            if spelt.is_null() || input.is_null() {
                return Python::attach(|_| self.request_of_another_format(py));
            }
            let name = name_of(spelt)?;
            if ffi::PyDict_CheckExact(input) != 0 {
                return Ok((name, Bound::from_borrowed_ptr(py, input).cast_into_unchecked()));
            }
            let input = Bound::from_borrowed_ptr(py, input);
            Python::attach(|_| {
                // Reading an object that is no dict runs its code, which might take the name out of the block.
                self.inner.set(ffi::Py_NewRef(spelt));
                Ok((name, self.read_input(py, name, input)?))
            })
        }
    }

    /// A request that is no dict: a call that was read before, text, a mapping, or the object of a library.
    unsafe fn request_of_another_kind<'py>(&self, py: Python<'py>) -> Result<Request<'py>, Refusal> {
        let request = self.call.bound(py).ok_or_else(missing_name)?;
        if request.is_instance_of::<PyToolCall>() || request.cast::<PyMapping>().is_err() {
            // SAFETY: as for `request`.
            return unsafe { self.request_of_another_format(py) };
        }
        let block = PyDict::new(py);
        block.update(request.cast::<PyMapping>().map_err(PyErr::from)?)?;
        // Keeps the strings that are borrowed from it alive.
        self.call.set(block.into_any().into_ptr());
        // SAFETY: as for the caller.
        unsafe { self.request(py) }
    }

    /// A request in the format of a provider; it is a block from then on.
    #[cold]
    unsafe fn request_of_another_format<'py>(&self, py: Python<'py>) -> Result<Request<'py>, Refusal> {
        if let Some(error) = PyErr::take(py) {
            return Err(Refusal::Raise(error));
        }
        let request = self.call.bound(py).ok_or_else(missing_name)?;
        let call = as_call(&request, self.toolkit.bound(py).as_ref())?;
        let call = call.get();
        if let Some(error) = &call.call.error {
            return Err(Refusal::Answer(Answer::BadCall { reason: reason(&call.call, error) }));
        }
        let input = to_dict(py, &call.call)?;
        let block = call.to_block(py)?;
        block.set_item(intern!(py, "input"), &input)?;
        let name = block.get_item(intern!(py, "name"))?.ok_or_else(missing_name)?;
        self.call.set(block.into_any().into_ptr());
        let ToolCall { repairs, is_truncated, has_duplicate_keys, .. } = &call.call;
        if !repairs.is_empty() || *is_truncated || *has_duplicate_keys {
            let (repairs, is_truncated, has_duplicate_keys) = (repairs.clone(), *is_truncated, *has_duplicate_keys);
            *self.rare().mended.borrow_mut() = Mended { repairs, is_truncated, has_duplicate_keys };
        }
        // SAFETY: `inner` keeps the name alive until the tool has been found.
        unsafe {
            let name = name.into_ptr();
            self.inner.set(name);
            Ok((name_of(name)?, input))
        }
    }

    /// What middlewares are shown: a block as it came, and any other format as the call that it is.
    pub(super) fn request_for_layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let request = self.call.bound(py).ok_or_else(|| PyRuntimeError::new_err("the request of this call is gone"))?;
        // A call that was read from text has values that were guessed, where its reader did not know the tool.
        if !request.is_instance_of::<PyToolCall>() && is_block(&request)? {
            return Ok(request);
        }
        let call = as_call(&request, self.toolkit.bound(py).as_ref())?.into_any();
        self.call.set(call.clone().into_ptr());
        Ok(call)
    }

    /// Whether arguments of this call are mended.
    fn repair_mode(&self, py: Python<'_>) -> RepairMode {
        // SAFETY: the slots hold a toolkit and a tool, or nothing.
        unsafe {
            if !self.tool.get().is_null() {
                return self.tool().plan.repair();
            }
            if self.toolkit.get().is_null() {
                return RepairMode::On;
            }
            let behaviour = self.toolkit(py).get().behaviour();
            if behaviour.arguments == ArgumentMode::Pass { RepairMode::Off } else { behaviour.repair }
        }
    }

    /// The arguments of a block in whatever form they came: an object, its JSON text, or nothing.
    fn read_input<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        input: Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyDict>, Refusal> {
        if input.is_none() {
            return Ok(PyDict::new(py));
        }
        let input = match input.cast_into::<PyDict>() {
            Ok(input) => return Ok(input.copy()?),
            Err(error) => error.into_inner(),
        };
        if let Ok(text) = input.cast::<PyString>() {
            let text = text.to_string_lossy();
            let is_off = self.repair_mode(py) == RepairMode::Off;
            let reading = if is_off { read_strictly(&text) } else { read(&text) }
                .map_err(|error| bad(format!("the `input` of '{name}' cannot be read: {error}")))?;
            if !reading.repairs.is_empty() {
                *self.rare().mended.borrow_mut() = Mended {
                    repairs: reading.repairs,
                    is_truncated: reading.is_truncated,
                    has_duplicate_keys: reading.has_duplicate_keys,
                };
            }
            return to_dict(py, &ToolCall::new(name, reading.arguments));
        }
        if let Ok(mapping) = input.cast::<PyMapping>() {
            let copy = PyDict::new(py);
            copy.update(mapping)?;
            return Ok(copy);
        }
        Err(bad(format!("the `input` of '{name}' must be an object, not {}", kind_of(&input))))
    }
}

/// The call that a request is.
fn as_call<'py>(request: &Bound<'py, PyAny>, toolkit: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyToolCall>> {
    let request = match request.cast::<PyToolCall>() {
        Ok(call) => return tool_call::declared(call, toolkit),
        Err(_) => request,
    };
    let call = match request.cast::<PyString>() {
        Ok(text) => tool_call::read_text(&text.to_string_lossy(), toolkit)?,
        Err(_) => tool_call::read_object(request, toolkit)?,
    };
    Bound::new(request.py(), PyToolCall { call })
}

/// Whether a request is a block already: a mapping with a name and an input.
fn is_block(request: &Bound<'_, PyAny>) -> PyResult<bool> {
    match request.cast::<PyMapping>() {
        Ok(mapping) => Ok(mapping.contains("name")? && mapping.contains("input")?),
        Err(_) => Ok(false),
    }
}

/// The arguments as Python objects. Python itself refuses some of what is valid JSON: integers of more digits than it likes
/// to read.
fn to_dict<'py>(py: Python<'py>, call: &ToolCall) -> Result<Bound<'py, PyDict>, Refusal> {
    let name = &call.name;
    let object = json::to_python(py, &call.arguments)
        .map_err(|error| bad(format!("the arguments of '{name}' cannot be read: {}", value::error_text(py, &error))))?;
    object.cast_into::<PyDict>().map_err(|_| bad(format!("the arguments of '{name}' must be an object")))
}

fn reason(call: &ToolCall, error: &CallError) -> String {
    if call.name.is_empty() { error.to_string() } else { format!("the call of '{}': {error}", call.name) }
}

fn bad(reason: String) -> Refusal {
    Refusal::Answer(Answer::BadCall { reason })
}

#[cold]
fn missing_name() -> Refusal {
    bad("it has no `name`".to_owned())
}

/// The name as text, borrowed from the object.
///
/// # Safety
/// The caller keeps the object alive.
#[inline]
pub(super) unsafe fn name_of<'a>(name: *mut PyObject) -> Result<&'a str, Refusal> {
    // SAFETY: as for the caller; CPython keeps the UTF-8 form with the string.
    unsafe {
        if ffi::PyUnicode_Check(name) != 0 {
            let mut length = 0;
            let text = ffi::PyUnicode_AsUTF8AndSize(name, &raw mut length);
            if !text.is_null() {
                let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length.unsigned_abs());
                return Ok(std::str::from_utf8_unchecked(bytes));
            }
            ffi::PyErr_Clear();
        }
        Err(Python::attach(|py| {
            let name = Bound::from_borrowed_ptr(py, name);
            let reason = if name.is_instance_of::<PyString>() {
                "its `name` is not valid Unicode".to_owned()
            } else {
                format!("its `name` must be a string, not {}", kind_of(&name))
            };
            bad(reason)
        }))
    }
}

fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("{name}"))
}
