//! `ResultBudget`: the largest size of results.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use super::into_response::error_text;
use super::log_warning;
use super::parameters::class_name;
use super::store::PyStore;
use crate::call::{ResultBudget, estimate_tokens};

/// True once there is a budget in this process. Calls look for budgets only then.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// True if there may be budgets.
#[inline]
pub(crate) fn budgets_are_in_use() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// Limit the size of results that a model reads.
#[pyclass(name = "ResultBudget", module = "toolcrib", frozen)]
pub(crate) struct PyResultBudget {
    characters: Option<usize>,
    tokens: Option<usize>,
    count: Option<Py<PyAny>>,
    store: Option<Py<PyStore>>,
}

impl PyResultBudget {
    /// Reads a budget, or a number of characters.
    pub(crate) fn read(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<Self>>> {
        let Some(given) = given else { return Ok(None) };
        if let Ok(budget) = given.cast::<Self>() {
            return Ok(Some(budget.clone().unbind()));
        }
        if !is_integer(given) {
            let class = class_name(given);
            let message = format!("{name} must be a ResultBudget or a number of characters, not {class}");
            return Err(PyTypeError::new_err(message));
        }
        let budget = Self::new(Some(given), None, None, None)?;
        Py::new(given.py(), budget).map(Some)
    }

    /// The budget in the core. Its counter calls Python code, so it is used while attached and not kept.
    pub(crate) fn core(&self, py: Python<'_>) -> ResultBudget {
        let characters = self.characters.map(ResultBudget::characters);
        let tokens = self.tokens.map(ResultBudget::tokens).map(|budget| match &self.count {
            None => budget,
            Some(count) => {
                let count = count.clone_ref(py);
                budget.counted_by(move |text| Python::attach(|py| counted(count.bind(py), text)))
            }
        });
        characters.into_iter().chain(tokens).reduce(ResultBudget::and).unwrap_or_default()
    }

    pub(crate) fn store(&self) -> Option<&Py<PyStore>> {
        self.store.as_ref()
    }
}

/// The number of tokens by a function of the program. If it fails, they are estimated: the result is worth having.
fn counted(count: &Bound<'_, PyAny>, text: &str) -> usize {
    let py = count.py();
    count.call1((text,)).and_then(|tokens| tokens.extract()).unwrap_or_else(|error| {
        let message = format!("the token counter of a result budget failed: {}", error_text(py, &error));
        if let Err(error) = log_warning(py, &message) {
            error.write_unraisable(py, Some(count));
        }
        estimate_tokens(text)
    })
}

fn is_integer(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>()
}

fn positive(name: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !is_integer(given) {
        return Err(PyTypeError::new_err(format!("{name} must be an integer, not {}", class_name(given))));
    }
    let number: Option<usize> = given.extract().ok();
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| PyValueError::new_err(format!("{name} must be a positive number, not {given}")))
}

#[pymethods]
impl PyResultBudget {
    #[new]
    #[pyo3(signature = (characters=None, *, tokens=None, count=None, store=None))]
    fn new(
        characters: Option<&Bound<'_, PyAny>>,
        tokens: Option<&Bound<'_, PyAny>>,
        count: Option<Bound<'_, PyAny>>,
        store: Option<Py<PyStore>>,
    ) -> PyResult<Self> {
        if characters.is_none() && tokens.is_none() {
            return Err(PyTypeError::new_err("a result budget needs `characters` or `tokens`"));
        }
        if let Some(count) = &count {
            if !count.is_callable() {
                return Err(PyTypeError::new_err(format!("count must be callable, not {}", class_name(count))));
            }
            if tokens.is_none() {
                return Err(PyTypeError::new_err("`count` counts tokens, and needs `tokens`"));
            }
        }
        let limit = |name: &str, given: Option<&Bound<'_, PyAny>>| given.map(|given| positive(name, given)).transpose();
        let budget = Self {
            characters: limit("characters", characters)?,
            tokens: limit("tokens", tokens)?,
            count: count.map(Bound::unbind),
            store,
        };
        IN_USE.store(true, Ordering::Relaxed);
        Ok(budget)
    }

    /// The most characters; None if they are not limited.
    #[getter]
    fn characters(&self) -> Option<usize> {
        self.characters
    }

    /// The most tokens; None if they are not limited.
    #[getter]
    fn tokens(&self) -> Option<usize> {
        self.tokens
    }

    /// The function that counts the tokens of a text; None if they are estimated.
    #[getter]
    fn count(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.count.as_ref().map(|count| count.clone_ref(py))
    }

    /// The store that keeps the whole text of results that are cut, as artifacts.
    #[getter(store)]
    fn get_store(&self, py: Python<'_>) -> Option<Py<PyStore>> {
        self.store.as_ref().map(|store| store.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut fields: Vec<String> = Vec::new();
        fields.extend(self.characters.map(|most| format!("characters={most}")));
        fields.extend(self.tokens.map(|most| format!("tokens={most}")));
        for (name, object) in [("count", self.count.as_ref()), ("store", self.store.as_ref().map(Py::as_any))] {
            if let Some(object) = object {
                fields.push(format!("{name}={}", object.bind(py).repr()?));
            }
        }
        Ok(format!("ResultBudget({})", fields.join(", ")))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.count)?;
        visit.call(&self.store)
    }
}
