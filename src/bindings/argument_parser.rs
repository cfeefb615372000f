//! Arguments from the JSON text of a model, for a library whose own parser repairs what does not fit the schema and is slow.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

/// Parses arguments. Valid JSON that fits the schema is left as it is; anything else goes to the other parser.
#[pyclass(name = "_ArgumentParser", module = "toolcrib._core", frozen)]
pub(crate) struct PyArgumentParser {
    /// `scan_once` of Python's `json`.
    scan: Py<PyAny>,
    required: Py<PyList>,
    /// The types of properties that have one.
    types: Py<PyDict>,
    /// The checks of the other properties.
    checks: Py<PyDict>,
    repair: Py<PyAny>,
}

#[pymethods]
impl PyArgumentParser {
    #[new]
    fn new(scan: Py<PyAny>, required: Py<PyList>, types: Py<PyDict>, checks: Py<PyDict>, repair: Py<PyAny>) -> Self {
        Self { scan, required, types, checks, repair }
    }

    /// Parse arguments.
    ///
    /// Args:
    ///     text: The JSON text.
    #[pyo3(name = "__call__")]
    pub(crate) fn parse<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        if let Ok(json) = text.to_str()
            && let Some(arguments) = plain_object(py, json)?
            && self.fits(arguments.as_any())?
        {
            return Ok(arguments.into_any());
        }
        let scanned = match self.scan.bind(py).call1((text, 0)) {
            Ok(scanned) => Some(scanned.extract::<(Bound<'py, PyAny>, usize)>()?),
            // `StopIteration` is the scanner's word for an empty text.
            Err(error) if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyStopIteration>(py) => {
                None
            }
            Err(error) => return Err(error),
        };
        match scanned {
            Some((arguments, end)) if end == text.len()? && self.fits(&arguments)? => Ok(arguments),
            _ => self.repair.bind(py).call1((text,)),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.checks)?;
        visit.call(&self.repair)
    }
}

impl PyArgumentParser {
    /// True only for arguments that fit the schema.
    fn fits(&self, arguments: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = arguments.py();
        let Ok(arguments) = arguments.cast_exact::<PyDict>() else { return Ok(false) };
        for name in self.required.bind(py) {
            if !arguments.contains(name)? {
                return Ok(false);
            }
        }
        for (name, value) in arguments.iter() {
            if self.types.bind(py).get_item(&name)?.is_some_and(|class| class.is(value.get_type())) {
                continue;
            }
            match self.checks.bind(py).get_item(&name)? {
                Some(check) if check.call1((value,))?.is_truthy()? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The most digits of a number that is read here.
const MAX_DIGITS: usize = 18;

/// The object that a JSON text is, if all its values are integers, flags, null, or strings without escapes: the arguments of most
/// calls. Python's scanner reads all others.
fn plain_object<'py>(py: Python<'py>, json: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(mut rest) = json.strip_prefix('{').map(skip_spaces) else { return Ok(None) };
    let object = PyDict::new(py);
    if rest == "}" {
        return Ok(Some(object));
    }
    loop {
        let Some((key, after)) = plain_string(rest) else { return Ok(None) };
        let Some(after) = skip_spaces(after).strip_prefix(':').map(skip_spaces) else { return Ok(None) };
        let value = if let Some((text, after)) = plain_string(after) {
            rest = after;
            PyString::new(py, text).into_any()
        } else {
            let end = after.find([',', '}', ' ', '\t', '\n', '\r']).unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            rest = after;
            match word {
                "true" => PyBool::new(py, true).to_owned().into_any(),
                "false" => PyBool::new(py, false).to_owned().into_any(),
                "null" => py.None().into_bound(py),
                _ => match plain_integer(word) {
                    Some(number) => number.into_bound_py_any(py)?,
                    None => return Ok(None),
                },
            }
        };
        object.set_item(PyString::new(py, key), value)?;
        rest = skip_spaces(rest);
        match rest.strip_prefix(',') {
            Some(after) => rest = skip_spaces(after),
            None => return Ok((rest == "}").then_some(object)),
        }
    }
}

fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// The string at the beginning of a text, and the rest of that.
fn plain_string(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    let end = text.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
    let (string, rest) = text.split_at(end);
    rest.strip_prefix('"').map(|rest| (string, rest))
}

fn plain_integer(word: &str) -> Option<i64> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_plain = digits.len() <= MAX_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_padding = digits.len() > 1 && digits.starts_with('0');
    if is_plain && !has_padding { word.parse().ok() } else { None }
}
