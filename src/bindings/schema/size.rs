//! The size of annotations. Types can share their parts, so that a few lines of Python write a schema of any size.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::annotation::Reader;
use super::generic::arguments_of;
use crate::bindings::json::DEEPEST;
use crate::schema::Type;

/// The most parts that the annotation of one parameter may have; no model reads a schema that is larger.
const MOST_PARTS: usize = 20_000;

/// The most parts of an annotation that is shown in full.
const MOST_SHOWN: usize = 1_000;

/// At every so many levels the parts that are still to come are counted before they are read.
const LEVELS: usize = 12;

/// What is wrong with an annotation that is nested too deeply.
pub(super) const TOO_DEEP: &str = "it is nested too deeply, or contains itself without a name";

/// True if the annotation has too many parts for a schema.
pub(super) fn is_too_large(annotation: &Bound<'_, PyAny>) -> bool {
    parts(annotation) > MOST_PARTS
}

/// True if the annotation can be shown in full.
pub(super) fn is_short(annotation: &Bound<'_, PyAny>) -> bool {
    parts(annotation) <= MOST_SHOWN
}

/// What is wrong with an annotation that is too large.
pub(super) fn too_large() -> String {
    format!("it is too large: written out, it has more than {MOST_PARTS} parts")
}

/// Counts the parts of an annotation as if each were written where it is used. Takes as long as there are different ones.
fn parts(annotation: &Bound<'_, PyAny>) -> usize {
    count(annotation, 0, &mut HashMap::new())
}

fn count(annotation: &Bound<'_, PyAny>, depth: usize, known: &mut HashMap<*mut PyObject, usize>) -> usize {
    if depth > DEEPEST || annotation.is_instance_of::<PyType>() || annotation.is_instance_of::<PyString>() {
        return 1;
    }
    if let Some(count) = known.get(&annotation.as_ptr()) {
        return *count;
    }
    let inner = match annotation.getattr_opt(intern!(annotation.py(), "__supertype__")) {
        Ok(Some(inner)) => vec![inner],
        _ => arguments_of(annotation).unwrap_or_default(),
    };
    let parts = inner.iter().fold(1, |sum: usize, part| sum.saturating_add(count(part, depth + 1, known)));
    // What has no parts may have been made for this question, and another object may take over its identity.
    if !inner.is_empty() {
        known.insert(annotation.as_ptr(), parts);
    }
    parts
}

impl<'py> Reader<'py> {
    /// Notes that one more part is read; gives the refusal if that is one too many.
    pub(super) fn count_part(&mut self, annotation: &Bound<'py, PyAny>) -> Option<Type> {
        self.parts += 1;
        if self.depth % LEVELS == LEVELS - 1 && is_too_large(annotation) {
            self.parts = MOST_PARTS + 1;
        }
        self.is_over().then(|| super::refusal::reject(annotation, &too_large()))
    }

    /// The same where Python's types are put together anew.
    pub(super) fn count_rewritten(&mut self) -> PyResult<()> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(PyValueError::new_err(too_large()));
        }
        if self.depth > DEEPEST {
            self.parts = MOST_PARTS + 1;
            return Err(PyValueError::new_err(TOO_DEEP));
        }
        Ok(())
    }

    /// True if no further part of the parameter at hand is read.
    pub(super) fn is_over(&self) -> bool {
        self.parts > MOST_PARTS
    }
}
