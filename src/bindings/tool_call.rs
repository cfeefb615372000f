//! `ToolCall`: what a model asked for, from any format.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

mod again;
mod read;
mod repairs;

use std::borrow::Cow;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple, PyType};
use serde_json::{Map, Value};

use super::json;
use super::text::{checked, finding};
use crate::call::{CallError, ToolCall, wire};
pub(crate) use again::declared;
use read::{check_format, read_foreign, read_texts, unreadable};
pub(crate) use read::{read_object, read_text};
pub(crate) use repairs::to_python as repairs_to_python;

/// What a model asked for, from any format.
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
        repairs: Option<&Bound<'_, PyAny>>,
        format: &str,
        is_truncated: bool,
        has_duplicate_keys: bool,
    ) -> PyResult<Self> {
        let arguments = match arguments.map(json::from_object).transpose()? {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(PyTypeError::new_err("the arguments of a call are a dictionary")),
        };
        let repairs = repairs.map_or_else(|| Ok(Vec::new()), repairs::from_python)?;
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
    ///     tools: The toolkit or view whose tools are called; the values in text are then read by their declared types, and
    ///         guessed otherwise.
    ///
    /// Raises:
    ///     TypeError: If `x` can be nothing of that kind, or `tools` is neither a toolkit nor a view.
    ///     ValueError: If `format` is unknown.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None, tools=None))]
    pub(crate) fn read<'py>(
        x: &Bound<'py, PyAny>,
        format: Option<&str>,
        tools: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let tools = checked(tools)?;
        if let Ok(call) = x.cast::<Self>() {
            return declared(call, tools);
        }
        check_format(format)?;
        if let Ok(text) = x.cast::<PyString>() {
            let text = text.to_string_lossy();
            let read = finding(tools, |find| wire::read_text(&text, format, &read_texts(find)))?;
            return Bound::new(x.py(), Self::of(read));
        }
        let value = match read_foreign(x)? {
            Ok(value) => value,
            Err(error) => return Bound::new(x.py(), Self::of(Err(error))),
        };
        let wire = format.and_then(wire::WireFormat::parse);
        let read = finding(tools, |find| wire::read_with(&value, wire, &|text, _| read_texts(find)(text, format)))?;
        Bound::new(x.py(), Self::of(read))
    }

    /// Read all calls of a message, of a list of blocks, or of a whole answer. What is no call is passed over.
    ///
    /// Args:
    ///     x: As for `read`, or a list of that.
    ///     format: Which of the text formats to look for, where that is known.
    ///     tools: As for `read`.
    ///
    /// Raises:
    ///     TypeError: If `x` can be nothing of that kind, or `tools` is neither a toolkit nor a view.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None, tools=None))]
    fn read_all<'py>(
        x: &Bound<'py, PyAny>,
        format: Option<&str>,
        tools: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, Self>>> {
        let tools = checked(tools)?;
        if let Ok(call) = x.cast::<Self>() {
            return Ok(vec![declared(call, tools)?]);
        }
        check_format(format)?;
        let calls = if let Ok(text) = x.cast::<PyString>() {
            let text = text.to_string_lossy();
            finding(tools, |find| wire::read_all_text(&text, format, &read_texts(find)))?
        } else {
            let is_list = x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
            let value = if is_list { json::from_object(x).map_err(unreadable(x.py())) } else { read_foreign(x)? };
            finding(tools, |find| {
                value.and_then(|value| wire::read_all_with(&value, &|text, _| read_texts(find)(text, format)))
            })?
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
        repairs::to_python(py, &self.call.repairs)
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
        let quoted = |text: &str| PyString::new(py, text).repr().map(|text| text.to_string());
        let id = self.id().map(quoted).transpose()?.map_or_else(String::new, |id| format!(", id={id}"));
        let error = self.error().as_deref().map(quoted).transpose()?;
        let error = error.map_or_else(String::new, |error| format!(", error={error}"));
        let (name, arguments, format) = (quoted(self.name())?, self.arguments(py)?.repr()?, self.format());
        Ok(format!("ToolCall({name}, {arguments}{id}{error}, format='{format}')"))
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

/// Adds the class, which counts as a mapping.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyToolCall>()?;
    let class: Bound<'_, PyType> = module.py().get_type::<PyToolCall>();
    module.py().import("collections.abc")?.getattr("Mapping")?.call_method1("register", (class,))?;
    Ok(())
}
