//! What was mended, as Python programs read it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::call::{Change, Repair, RepairKind};

/// Repairs as programs read them.
pub(crate) fn to_python<'py>(py: Python<'py>, repairs: &[Repair]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for repair in repairs {
        let entry = PyDict::new(py);
        entry.set_item("what", PyString::intern(py, repair.what.as_str()))?;
        entry.set_item("at", repair.at.to_string())?;
        entry.set_item("text", repair.text())?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Repairs as they were shown to a program before.
pub(super) fn from_python(repairs: &Bound<'_, PyAny>) -> PyResult<Vec<Repair>> {
    repairs.try_iter()?.map(|entry| one_from_python(entry?.cast::<PyDict>()?)).collect()
}

fn one_from_python(entry: &Bound<'_, PyDict>) -> PyResult<Repair> {
    let text = |key: &str| -> PyResult<String> {
        entry.get_item(key)?.map_or_else(|| Ok(String::new()), |text| text.extract())
    };
    let what = text("what")?;
    let Some(kind) = RepairKind::parse(&what) else {
        return Err(PyValueError::new_err(format!("'{what}' is no kind of repair")));
    };
    Ok(Repair::of(kind, Change::Reported(text("text")?)).at(text("at")?))
}
