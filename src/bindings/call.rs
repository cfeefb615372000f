//! `ToolCall`: what a model asked for, from any format.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::borrow::Cow;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple, PyType};
use serde_json::{Map, Value};

use super::{foreign, json, value};
use crate::call::{CallError, Repair, RepairKind, ToolCall, wire};

/// What a model asked for.
///
/// It reads like the block that it stands for: `call["name"]`, `dict(call)`.
#[pyclass(name = "ToolCall", module = "toolcrib", frozen, weakref, mapping)]
pub(crate) struct PyToolCall {
    pub(crate) call: ToolCall,
}

/// The keys of the block that a call stands for.
const KEYS: [&str; 4] = ["type", "id", "name", "input"];

#[pymethods]
impl PyToolCall {
    #[new]
    #[pyo3(signature = (
        name, arguments=None, id=None, *, raw=None, error=None, repairs=None, format="bare", is_truncated=false,
        has_duplicate_keys=false
    ))]
    #[allow(clippy::too_many_arguments, reason = "the fields of a call")]
    fn new(
        name: String,
        arguments: Option<&Bound<'_, PyAny>>,
        id: Option<String>,
        raw: Option<String>,
        error: Option<String>,
        repairs: Option<Vec<Bound<'_, PyDict>>>,
        format: &str,
        is_truncated: bool,
        has_duplicate_keys: bool,
    ) -> PyResult<Self> {
        let arguments = match arguments.map(foreign::to_value).transpose()? {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(PyTypeError::new_err("the arguments of a call are a dictionary")),
        };
        let repairs = repairs.iter().flatten().map(repair_from_python).collect::<PyResult<Vec<_>>>()?;
        let call = ToolCall {
            id,
            raw,
            error: error.map(|what| CallError::new(what, "")),
            repairs,
            is_truncated,
            has_duplicate_keys,
            format: Cow::Owned(format.to_owned()),
            ..ToolCall::new(name, arguments)
        };
        Ok(Self { call })
    }

    /// Read the call that something is, or holds.
    ///
    /// What cannot be read gives a call with an `error`, which a toolkit answers with the code `bad_call`.
    ///
    /// Args:
    ///     x: A block or call of any provider, as a dictionary, as JSON text or as the object of a library; or text with a
    ///         call in it.
    ///     format: Which of the formats it is, where that is known.
    ///
    /// Raises:
    ///     TypeError: If `x` can be nothing of that kind.
    ///     ValueError: If `format` is unknown.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None))]
    fn read<'py>(x: &Bound<'py, PyAny>, format: Option<&str>) -> PyResult<Bound<'py, Self>> {
        if let Ok(call) = x.cast::<Self>() {
            return Ok(call.clone());
        }
        check_format(format)?;
        if let Ok(text) = x.cast::<PyString>() {
            let text = text.to_string_lossy();
            return Bound::new(x.py(), Self::of(wire::read_text(&text, format, &read_texts)));
        }
        let value = match read_foreign(x)? {
            Ok(value) => value,
            Err(error) => return Bound::new(x.py(), Self::of(Err(error))),
        };
        Bound::new(x.py(), Self::of(wire::read(&value, format.and_then(wire::WireFormat::parse))))
    }

    /// Read all calls of a message, of a list of blocks, or of a whole answer. What is no call is passed over.
    ///
    /// Args:
    ///     x: As for `read`, or a list of that.
    ///     format: Which of the text formats to look for, where that is known.
    ///
    /// Raises:
    ///     TypeError: If `x` can be nothing of that kind.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None))]
    fn read_all<'py>(x: &Bound<'py, PyAny>, format: Option<&str>) -> PyResult<Vec<Bound<'py, Self>>> {
        if let Ok(call) = x.cast::<Self>() {
            return Ok(vec![call.clone()]);
        }
        check_format(format)?;
        let calls = if let Ok(text) = x.cast::<PyString>() {
            wire::read_all_text(&text.to_string_lossy(), format, &read_texts)
        } else if x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>() {
            foreign::to_value(x).map_err(unreadable(x.py())).and_then(|value| wire::read_all(&value))
        } else {
            read_foreign(x)?.and_then(|value| wire::read_all(&value))
        };
        let calls = calls.unwrap_or_else(|error| vec![ToolCall::unreadable("", error)]);
        calls.into_iter().map(|call| Bound::new(x.py(), Self { call })).collect()
    }

    /// What the model or its provider calls this call.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.call.id.as_deref()
    }

    /// The tool's name.
    #[getter]
    fn name(&self) -> &str {
        &self.call.name
    }

    /// The arguments, as a copy.
    #[getter]
    pub(crate) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(json::to_python(py, &self.call.arguments)?.cast_into::<PyDict>()?)
    }

    /// What the model wrote, where it came as text.
    #[getter]
    fn raw(&self) -> Option<&str> {
        self.call.raw.as_deref()
    }

    /// Why the call cannot be run; None if it can.
    #[getter]
    fn error(&self) -> Option<String> {
        self.call.error.as_ref().map(ToString::to_string)
    }

    /// What was mended to read it: dictionaries with `what`, `at` and `text`.
    #[getter]
    fn repairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        repairs_to_python(py, &self.call.repairs)
    }

    /// The name of the format it was written in.
    #[getter]
    fn format(&self) -> &str {
        &self.call.format
    }

    /// Whether something is missing at the end, so that the arguments may be only a part of what was meant.
    #[getter]
    fn is_truncated(&self) -> bool {
        self.call.is_truncated
    }

    /// Whether an object had a key twice.
    #[getter]
    fn has_duplicate_keys(&self) -> bool {
        self.call.has_duplicate_keys
    }

    /// Give the call as a `ToolUseBlock`.
    pub(crate) fn to_block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let block = PyDict::new(py);
        for key in KEYS {
            block.set_item(key, self.entry(py, key)?)?;
        }
        Ok(block)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        self.entry(py, key)
    }

    /// Give what the block has under a key, or a default.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if KEYS.contains(&key) { self.entry(py, key).map(Some) } else { Ok(default) }
    }

    /// The keys of the block: `type`, `id`, `name`, `input`.
    #[allow(clippy::unused_self, reason = "every call has the same")]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, KEYS)
    }

    /// The values of the block, in the order of its keys.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.to_block(py).map(|block| block.values())
    }

    /// The entries of the block.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.to_block(py).map(|block| block.items())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    #[allow(clippy::unused_self, reason = "every call has the same")]
    fn __len__(&self) -> usize {
        KEYS.len()
    }

    #[allow(clippy::unused_self, reason = "every call has the same")]
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        key.extract::<&str>().is_ok_and(|key| KEYS.contains(&key))
    }

    /// Compares everything that was read.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        let without = |call: &ToolCall| ToolCall { error: None, ..call.clone() };
        // An error that has been on a journey is one sentence.
        self.error() == other.get().error() && without(&self.call) == without(&other.get().call)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let call = &self.call;
        let mut text = format!("ToolCall({}, {}", PyString::new(py, &call.name).repr()?, self.arguments(py)?.repr()?);
        if let Some(id) = &call.id {
            text.push_str(&format!(", id={}", PyString::new(py, id).repr()?));
        }
        if let Some(error) = self.error() {
            text.push_str(&format!(", error={}", PyString::new(py, &error).repr()?));
        }
        text.push_str(&format!(", format='{}')", call.format));
        Ok(text)
    }

    /// Copying and pickling.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("raw", self.raw())?;
        options.set_item("error", self.error())?;
        options.set_item("repairs", self.repairs(py)?)?;
        options.set_item("format", self.format())?;
        options.set_item("is_truncated", self.is_truncated())?;
        options.set_item("has_duplicate_keys", self.has_duplicate_keys())?;
        let name = PyString::new(py, self.name()).into_any();
        let fields = PyTuple::new(py, [name, self.arguments(py)?.into_any(), self.id().into_bound_py_any(py)?])?;
        Ok((fields, options))
    }
}

impl PyToolCall {
    fn of(read: Result<ToolCall, CallError>) -> Self {
        Self { call: read.unwrap_or_else(|error| ToolCall::unreadable("", error)) }
    }

    fn entry<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        Ok(match key {
            "type" => PyString::intern(py, "tool_use").into_any(),
            "id" => PyString::new(py, self.call.id.as_deref().unwrap_or_default()).into_any(),
            "name" => PyString::new(py, &self.call.name).into_any(),
            "input" => self.arguments(py)?.into_any(),
            _ => return Err(PyKeyError::new_err(key.to_owned())),
        })
    }
}

/// The call that an object is, which is no text; a call with an error if it cannot be read.
pub(crate) fn read_object(object: &Bound<'_, PyAny>) -> ToolCall {
    let value = foreign::to_value(object).map_err(unreadable(object.py()));
    value.and_then(|value| wire::read(&value, None)).unwrap_or_else(|error| ToolCall::unreadable("", error))
}

/// The call that a text has; a call with an error if it cannot be read.
pub(crate) fn read_text(text: &str) -> ToolCall {
    wire::read_text(text, None, &read_texts).unwrap_or_else(|error| ToolCall::unreadable("", error))
}

/// The calls in a text that is no JSON.
fn read_texts(_text: &str, _format: Option<&str>) -> Option<Vec<ToolCall>> {
    None
}

fn check_format(format: Option<&str>) -> PyResult<()> {
    match format {
        Some(word) if wire::WireFormat::parse(word).is_none() => {
            let known: Vec<&str> = wire::WireFormat::ALL.iter().map(|format| format.as_str()).collect();
            Err(PyValueError::new_err(format!("format must be one of {}, not '{word}'", known.join(", "))))
        }
        _ => Ok(()),
    }
}

/// The JSON of an object that may be a call. Of another one the developer is told, and of what cannot be read the model.
fn read_foreign(x: &Bound<'_, PyAny>) -> PyResult<Result<Value, CallError>> {
    if !foreign::is_readable(x) {
        let class = x.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a tool call is a mapping, a text or a library's object, not {class}"
        )));
    }
    Ok(foreign::to_value(x).map_err(unreadable(x.py())))
}

fn unreadable(py: Python<'_>) -> impl Fn(PyErr) -> CallError {
    move |error| CallError::new(format!("the call cannot be read: {}", value::error_text(py, &error)), "")
}

/// Repairs as programs read them.
pub(crate) fn repairs_to_python<'py>(py: Python<'py>, repairs: &[Repair]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for Repair { what, at, text } in repairs {
        let entry = PyDict::new(py);
        entry.set_item("what", PyString::intern(py, what.as_str()))?;
        entry.set_item("at", at)?;
        entry.set_item("text", text)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn repair_from_python(entry: &Bound<'_, PyDict>) -> PyResult<Repair> {
    let text = |key: &str| -> PyResult<String> {
        entry.get_item(key)?.map_or_else(|| Ok(String::new()), |text| text.extract())
    };
    let what = text("what")?;
    let Some(kind) = RepairKind::parse(&what) else {
        return Err(PyValueError::new_err(format!("'{what}' is no kind of repair")));
    };
    Ok(Repair::new(kind, text("text")?).at(text("at")?))
}

/// Adds the class, which counts as a mapping.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyToolCall>()?;
    let class: Bound<'_, PyType> = module.py().get_type::<PyToolCall>();
    module.py().import("collections.abc")?.getattr("Mapping")?.call_method1("register", (class,))?;
    Ok(())
}
