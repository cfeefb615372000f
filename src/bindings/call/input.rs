//! The arguments of a request, in the two forms they come in.

use std::ptr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::python::slot::Slot;
use super::state::State;
use crate::call::Repair;

/// Where the arguments of a request are.
pub(super) trait Input {
    /// The argument of this name, borrowed, or null.
    ///
    /// # Safety
    /// The thread is attached; `name` is an interned string.
    unsafe fn get(&self, name: *mut PyObject) -> *mut PyObject;

    /// How many there are.
    fn len(&self) -> usize;

    /// All of them as a dict, for the slow way.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>>;

    /// Keeps in mind what was mended in them.
    fn note(&self, _repairs: Vec<Repair>) {}
}

/// Arguments of a call that keeps in mind what was mended in them.
pub(super) struct Noted<'a, I>(pub(super) I, pub(super) &'a State);

impl<I: Input> Input for Noted<'_, I> {
    #[inline]
    unsafe fn get(&self, name: *mut PyObject) -> *mut PyObject {
        // SAFETY: as for the trait.
        unsafe { self.0.get(name) }
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.0.to_dict(py)
    }

    fn note(&self, repairs: Vec<Repair>) {
        if !repairs.is_empty() {
            self.1.rare().mended.borrow_mut().repairs.extend(repairs);
        }
    }
}

/// Arguments in a dict, as a model's come.
pub(super) struct InDict<'a, 'py>(pub(super) &'a Bound<'py, PyDict>);

impl Input for InDict<'_, '_> {
    #[inline]
    unsafe fn get(&self, name: *mut PyObject) -> *mut PyObject {
        // SAFETY: as for the trait. An exception can only come from a key with an `__eq__` of its own; the key then counts
        // as unknown.
        unsafe {
            let value = ffi::PyDict_GetItemWithError(self.0.as_ptr(), name);
            if value.is_null() && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
            }
            value
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(self.0.clone().unbind().into_bound(py))
    }
}

/// Arguments as Python passes keywords: a tuple of names and a tuple of values.
pub(super) struct InPairs<'py> {
    names: Option<Bound<'py, PyTuple>>,
    values: Bound<'py, PyTuple>,
}

impl<'py> InPairs<'py> {
    /// Takes the tuples out of where a call keeps them until it starts.
    ///
    /// # Safety
    /// `names` is empty or holds a tuple, `values` holds one.
    #[inline]
    pub(super) unsafe fn taken(py: Python<'py>, names: &Slot, values: &Slot) -> Self {
        // SAFETY: as for the caller; what is taken is owned.
        unsafe {
            let names = Bound::from_owned_ptr_or_opt(py, names.take());
            let values = Bound::from_owned_ptr(py, values.take());
            Self { names: names.map(|names| names.cast_into_unchecked()), values: values.cast_into_unchecked() }
        }
    }
}

impl Input for InPairs<'_> {
    #[inline]
    unsafe fn get(&self, name: *mut PyObject) -> *mut PyObject {
        // SAFETY: both tuples are of the same length; names that Python passes are interned, so that the pointer decides.
        unsafe {
            let Some(names) = &self.names else { return ptr::null_mut() };
            for index in 0..ffi::PyTuple_GET_SIZE(names.as_ptr()) {
                if ffi::PyTuple_GET_ITEM(names.as_ptr(), index) == name {
                    return ffi::PyTuple_GET_ITEM(self.values.as_ptr(), index);
                }
            }
            ptr::null_mut()
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.values.len()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.names.iter().flatten().zip(&self.values) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}
