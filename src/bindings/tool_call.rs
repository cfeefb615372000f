//! `ToolCall`: a call that a model asked for, in any format.
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

use super::once::intern;
use super::text::{check_tools, text_format_names, with_tools};
use super::{into_response, json};
use crate::call::{CallError, Change, Repair, RepairKind, ToolCall};
use crate::provider::WireFormat;
use crate::text::{self, CallFormat, TextFormat};

/// A call that a model asked for, in any format.
///
/// It can be used like its `ToolUseBlock`: `call["name"]`, `dict(call)`.
#[pyclass(name = "ToolCall", module = "toolcrib", frozen, weakref, mapping)]
pub(crate) struct PyToolCall {
    pub(crate) call: ToolCall,
}

/// The keys of the `ToolUseBlock` of a call.
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
        let repairs = repairs.map_or_else(|| Ok(Vec::new()), repairs_from_python)?;
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

    /// Read the only call in an object or text.
    ///
    /// A call that cannot be read has an `error`, to which a toolkit responds with the code `bad_call`.
    ///
    /// Args:
    ///     x: A block or call of any provider, as a dictionary, as JSON text or as the object of a library; or text with a
    ///         call in it.
    ///     format: The format, if it is known.
    ///     tools: The toolkit or view whose tools are called. Their schemas declare the types of values in text; without
    ///         them, types are guessed.
    ///
    /// Raises:
    ///     TypeError: If `x` has another type, or `tools` is neither a toolkit nor a view.
    ///     ValueError: If `format` is unknown.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None, tools=None))]
    pub(crate) fn read<'py>(
        x: &Bound<'py, PyAny>,
        format: Option<&str>,
        tools: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let tools = check_tools(tools)?;
        if let Ok(call) = x.cast::<Self>() {
            return read_again(call, tools);
        }
        let format = parse_call_format(format)?;
        let read = if let Ok(text) = x.cast::<PyString>() {
            let text = text.to_string_lossy();
            with_tools(tools, |find| text::read_text(&text, format, find))?
        } else {
            let value = read_foreign(x)?;
            with_tools(tools, |find| value.and_then(|value| text::read_value(&value, format, find)))?
        };
        Bound::new(x.py(), Self { call: call_or_error(read) })
    }

    /// Read all calls of a message, of a list of blocks, or of a whole response. Everything else in it is ignored.
    ///
    /// Args:
    ///     x: As for `read`, or a list of that.
    ///     format: The text format, if it is known.
    ///     tools: As for `read`.
    ///
    /// Raises:
    ///     TypeError: If `x` has another type, or `tools` is neither a toolkit nor a view.
    #[staticmethod]
    #[pyo3(signature = (x, *, format=None, tools=None))]
    fn read_all<'py>(
        x: &Bound<'py, PyAny>,
        format: Option<&str>,
        tools: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, Self>>> {
        let tools = check_tools(tools)?;
        if let Ok(call) = x.cast::<Self>() {
            return Ok(vec![read_again(call, tools)?]);
        }
        let format = parse_call_format(format)?;
        let calls = if let Ok(text) = x.cast::<PyString>() {
            let text = text.to_string_lossy();
            with_tools(tools, |find| text::read_all_text(&text, format, find))?
        } else {
            let is_list = x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
            let value = if is_list { json::from_object(x).map_err(unreadable(x.py())) } else { read_foreign(x)? };
            with_tools(tools, |find| value.and_then(|value| text::read_all_value(&value, format, find)))?
        };
        let calls = calls.unwrap_or_else(|error| vec![ToolCall::unreadable("", error)]);
        calls.into_iter().map(|call| Bound::new(x.py(), Self { call })).collect()
    }

    /// The id that the model or its provider gave the call.
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

    /// The text that the model wrote, if the call came as text.
    #[getter]
    fn raw(&self) -> Option<&str> {
        self.call.raw.as_deref()
    }

    /// The reason why the call cannot be run; None if it can.
    #[getter]
    fn error(&self) -> Option<String> {
        self.call.error.as_ref().map(ToString::to_string)
    }

    /// The repairs that were made to read it: dictionaries with `what`, `at` and `text`.
    #[getter]
    fn repairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        repairs_to_python(py, &self.call.repairs)
    }

    /// The name of the format.
    #[getter]
    fn format(&self) -> &str {
        &self.call.format
    }

    /// True if the end is missing, so that the arguments may be incomplete.
    #[getter]
    fn is_truncated(&self) -> bool {
        self.call.is_truncated
    }

    /// True if an object had a key twice.
    #[getter]
    fn has_duplicate_keys(&self) -> bool {
        self.call.has_duplicate_keys
    }

    /// Return the call as a `ToolUseBlock`.
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

    /// Return the value of a key of the block, or a default.
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

    /// Compare all fields.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        let without = |call: &ToolCall| ToolCall { error: None, ..call.clone() };
        // An error that was pickled is one sentence.
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

    /// Support copying and pickling.
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

/// Reads the call in an object that is not text. One that cannot be read is a call with an error.
pub(crate) fn read_object(object: &Bound<'_, PyAny>, tools: Option<&Bound<'_, PyAny>>) -> PyResult<ToolCall> {
    let value = json::from_object(object).map_err(unreadable(object.py()));
    with_tools(tools, |find| call_or_error(value.and_then(|value| text::read_value(&value, None, find))))
}

/// Reads the call in a text. One that cannot be read is a call with an error.
pub(crate) fn read_text(text: &str, tools: Option<&Bound<'_, PyAny>>) -> PyResult<ToolCall> {
    with_tools(tools, |find| call_or_error(text::read_text(text, None, find)))
}

fn call_or_error(read: Result<ToolCall, CallError>) -> ToolCall {
    read.unwrap_or_else(|error| ToolCall::unreadable("", error))
}

fn parse_call_format(name: Option<&str>) -> PyResult<Option<CallFormat>> {
    let Some(name) = name else { return Ok(None) };
    CallFormat::parse(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = WireFormat::ALL.map(WireFormat::as_str).into_iter().chain(text_format_names()).collect();
        PyValueError::new_err(format!("format must be one of {}, not '{name}'", known.join(", ")))
    })
}

/// Converts an object that may be a call to JSON. An object of another type is an exception for the developer; one that cannot
/// be converted is an error for the model.
fn read_foreign(x: &Bound<'_, PyAny>) -> PyResult<Result<Value, CallError>> {
    if !json::may_be_call(x) {
        let class = x.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a tool call is a mapping, a text or a library's object, not {class}"
        )));
    }
    Ok(json::from_object(x).map_err(unreadable(x.py())))
}

fn unreadable(py: Python<'_>) -> impl Fn(PyErr) -> CallError {
    move |error| CallError::new(format!("the call cannot be read: {}", into_response::error_text(py, &error)), "")
}

/// Parses the text of a call again, with the types that the tools declare. A call that was made by hand, or differs from its
/// text, stays as it is.
pub(crate) fn read_again<'py>(
    call: &Bound<'py, PyToolCall>,
    tools: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyToolCall>> {
    let Some(tools) = tools else { return Ok(call.clone()) };
    match parse_again(&call.get().call, tools)? {
        Some(again) if again != call.get().call => Bound::new(call.py(), PyToolCall { call: again }),
        _ => Ok(call.clone()),
    }
}

fn parse_again(call: &ToolCall, tools: &Bound<'_, PyAny>) -> PyResult<Option<ToolCall>> {
    let format = TextFormat::parse(&call.format).filter(|format| has_no_types(*format));
    let (Some(format), Some(raw), None) = (format, call.raw.as_deref(), &call.error) else { return Ok(None) };
    let guessed = text::parse(raw, format, None);
    let is_same = |guess: &ToolCall| guess.name == call.name && guess.arguments == call.arguments;
    let Some(index) = guessed.iter().position(is_same) else { return Ok(None) };
    let declared = with_tools(Some(tools), |find| text::parse(raw, format, find))?;
    if declared.len() != guessed.len() {
        return Ok(None);
    }
    Ok(declared.into_iter().nth(index).map(|again| ToolCall {
        id: call.id.clone(),
        is_truncated: again.is_truncated || call.is_truncated,
        has_duplicate_keys: again.has_duplicate_keys || call.has_duplicate_keys,
        ..again
    }))
}

/// True if the values of a format are text, whose types only the tool knows.
const fn has_no_types(format: TextFormat) -> bool {
    matches!(format, TextFormat::Xml | TextFormat::Function | TextFormat::Invoke | TextFormat::React)
}

/// Converts repairs to dictionaries.
pub(crate) fn repairs_to_python<'py>(py: Python<'py>, repairs: &[Repair]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for repair in repairs {
        let entry = PyDict::new(py);
        entry.set_item(intern!(py, "what"), PyString::intern(py, repair.what.as_str()))?;
        entry.set_item(intern!(py, "at"), repair.at.to_string())?;
        entry.set_item(intern!(py, "text"), repair.text())?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Converts repairs back from dictionaries.
fn repairs_from_python(repairs: &Bound<'_, PyAny>) -> PyResult<Vec<Repair>> {
    repairs.try_iter()?.map(|entry| repair_from_python(entry?.cast::<PyDict>()?)).collect()
}

fn repair_from_python(entry: &Bound<'_, PyDict>) -> PyResult<Repair> {
    let text = |key: &str| -> PyResult<String> {
        entry.get_item(key)?.map_or_else(|| Ok(String::new()), |text| text.extract())
    };
    let what = text("what")?;
    let Some(kind) = RepairKind::parse(&what) else {
        return Err(PyValueError::new_err(format!("unknown kind of repair: '{what}'")));
    };
    Ok(Repair::of(kind, Change::Reported(text("text")?)).at(text("at")?))
}

/// Adds the class, which is registered as a mapping.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyToolCall>()?;
    let class: Bound<'_, PyType> = module.py().get_type::<PyToolCall>();
    module.py().import("collections.abc")?.getattr("Mapping")?.call_method1("register", (class,))?;
    Ok(())
}
