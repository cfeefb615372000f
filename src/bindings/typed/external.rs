//! Types that another library validates and builds: pydantic's models and types, msgspec's structs.

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

use super::{Conversion, Place};
use crate::bindings::into_response::error_text;
use crate::bindings::json::value_from_python;
use crate::bindings::once::intern;
use crate::schema::check::{Expected, Found, PathStep};

/// A type that another library validates.
pub(crate) struct External {
    pub(crate) library: Library,
    /// The function that validates a value and returns the object.
    pub(crate) validate: Py<PyAny>,
    /// The function that validates JSON text, if values in JSON are validated by rules of their own.
    pub(crate) validate_text: Option<Py<PyAny>>,
}

/// The libraries that validate types of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Pydantic,
    Msgspec,
}

impl External {
    pub(super) fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let text = self.validate_text.as_ref().and_then(|validate| Some((validate, value_from_python(value).ok()?)));
        let validated = match text {
            Some((validate, json)) => validate.bind(py).call1((json.to_string(),)),
            None => self.validate.bind(py).call1((value,)),
        };
        match validated {
            Ok(built) => Some(built),
            Err(error) if !error.is_instance_of::<PyException>(py) => run.refuse_by(place, "", error, value),
            Err(error) => {
                let is_listed = match self.library {
                    Library::Pydantic => list_errors(run, place, error.value(py).as_any(), value).is_ok_and(|any| any),
                    Library::Msgspec => list_message(run, place, &error_text(py, &error), value),
                };
                if is_listed { None } else { run.refuse_by(place, "a valid value", error, value) }
            }
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.validate)?;
        visit.call(&self.validate_text)
    }
}

/// Records the errors of pydantic's `ValidationError`; false for another exception.
fn list_errors(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    error: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = error.py();
    let Some(errors) = error.getattr_opt(intern!(py, "errors"))? else { return Ok(false) };
    let options = PyDict::new(py);
    for option in ["include_url", "include_context"] {
        options.set_item(option, false)?;
    }
    let errors = errors.call((), Some(&options))?.cast_into::<PyList>()?;
    for each in &errors {
        let message: String = each.get_item(intern!(py, "msg"))?.extract()?;
        let is_missing = each.get_item(intern!(py, "type"))?.eq("missing")?;
        let location = each.get_item(intern!(py, "loc"))?.cast_into::<PyTuple>()?;
        let mut steps = place.steps();
        steps.extend(steps_in(value, &location, is_missing));
        let (expected, found) = if is_missing {
            ("a value".to_owned(), Found::NOTHING)
        } else {
            (phrase(&message), Found::of(&each.get_item(intern!(py, "input"))?))
        };
        run.refuse_at(steps, expected.into(), found);
    }
    Ok(!errors.is_empty())
}

/// The part of a location that is in the value. Pydantic also names the members of unions and the functions it was in.
fn steps_in(value: &Bound<'_, PyAny>, location: &Bound<'_, PyTuple>, is_missing: bool) -> Vec<PathStep> {
    let mut steps = Vec::new();
    let mut current = Some(value.clone());
    let last = location.len().saturating_sub(1);
    for (at, step) in location.iter().enumerate() {
        let inner = current.as_ref().and_then(|current| {
            let is_container = current.is_instance_of::<PyDict>() || current.is_instance_of::<PyList>();
            if is_container { current.get_item(&step).ok() } else { None }
        });
        if inner.is_some() || (is_missing && at == last) {
            if let Ok(key) = step.cast::<PyString>() {
                steps.push(PathStep::Key(key.to_string_lossy().into()));
            } else if let Ok(index) = step.cast::<PyInt>().map_err(PyErr::from).and_then(|index| index.extract()) {
                steps.push(PathStep::Index(index));
            }
            current = inner;
        }
    }
    steps
}

/// The phrase after "expected" of a message of pydantic.
fn phrase(message: &str) -> String {
    match message.strip_prefix("Input should be ") {
        Some(rest) => rest.to_owned(),
        None => format!("a valid value ({})", message.strip_prefix("Value error, ").unwrap_or(message)),
    }
}

/// Records a message of msgspec, such as ``Expected `int`, got `str` - at `$.items[0].price` ``.
fn list_message(run: &mut Conversion<'_>, place: &Place<'_>, message: &str, value: &Bound<'_, PyAny>) -> bool {
    let (text, path) = message.rsplit_once(" - at `$").unwrap_or((message, ""));
    let mut steps = place.steps();
    let mut current = Some(value.clone());
    for part in path.trim_end_matches('`').split(['.', '[']).filter(|part| !part.is_empty()) {
        let step = match part.strip_suffix(']').map(str::parse::<usize>) {
            Some(Ok(index)) => {
                current = current.and_then(|current| current.get_item(index).ok());
                PathStep::Index(index)
            }
            // `[...]` stands for any key of a mapping.
            Some(Err(_)) => break,
            None => {
                current = current.and_then(|current| current.get_item(part).ok());
                PathStep::Key(part.into())
            }
        };
        steps.push(step);
    }
    let found = current.map_or(Found::NOTHING, |current| Found::of(&current));
    let text = text.replace('`', "");
    let expected = match text.strip_prefix("Expected ") {
        Some(rest) => rest.split_once(", got ").map_or(rest, |(expected, _)| expected).to_owned(),
        None => format!("a valid value ({text})"),
    };
    run.refuse_at(steps, Expected::from(expected), found);
    true
}

/// The number of fields that a pydantic model was given; 0 for any other object.
pub(super) fn fields_set(object: &Bound<'_, PyAny>) -> usize {
    let set = object.getattr_opt(intern!(object.py(), "__pydantic_fields_set__"));
    set.ok().flatten().and_then(|set| set.len().ok()).unwrap_or(0)
}
