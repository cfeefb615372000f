//! `ToolResponse`: one chunk of the result of a call, and its conversion to the message formats of providers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::PyTypeObject;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, PyTypeInfo, intern};
use serde_json::Value;

use super::imported::{FORMAT_TIME, LOCAL_TIME};
use super::into_response::{display_text, unicode};
use super::json::{self, entries_of};
use super::tool_call::{PyToolCall, read_object};
use crate::call::{Code, Notice, Reply, ToolResponse};
use crate::provider::{self, ToolResult};

/// One chunk of the result of a tool call.
///
/// Two responses are equal if their first six fields are, also if one of them is AgentScope's.
#[pyclass(name = "ToolResponse", module = "toolcrib", subclass, weakref)]
pub(crate) struct PyToolResponse {
    /// The blocks for the model, in order.
    #[pyo3(get, set)]
    content: Py<PyAny>,
    /// Data for the program, which the model does not see.
    #[pyo3(get, set)]
    metadata: Option<Py<PyAny>>,
    /// True if further chunks follow.
    #[pyo3(get, set)]
    stream: bool,
    /// True for the last response of a call.
    #[pyo3(get, set)]
    is_last: bool,
    /// True if the call was cancelled.
    #[pyo3(get, set)]
    is_interrupted: bool,
    /// The code of the failure; None if the call succeeded.
    #[pyo3(get, set)]
    code: Option<Py<PyString>>,
    /// The exception that the tool raised; None if it raised none.
    ///
    /// It is neither compared nor pickled. It keeps the frames of its traceback alive, with their variables: set it to None to
    /// release them.
    #[pyo3(get, set)]
    exception: Option<Py<PyAny>>,
    id: ResponseId,
}

/// The id of a response. Few are ever read, so the text is made on access.
enum ResponseId {
    Given(Py<PyAny>),
    Made { at: Duration, salt: u32 },
}

impl ResponseId {
    fn new() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Made { at, salt: salt() }
    }
}

/// Three bytes that differ from response to response, so that ids of the same millisecond differ too.
fn salt() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    static START: LazyLock<u32> = LazyLock::new(|| {
        #[allow(clippy::cast_possible_truncation, reason = "any bits do")]
        let start = RandomState::new().hash_one(std::process::id()) as u32;
        start
    });
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // An odd factor spreads the count over all values before one comes again.
    START.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x009E_3779)) & 0x00FF_FFFF
}

#[pymethods]
impl PyToolResponse {
    #[new]
    #[pyo3(signature = (content, metadata=None, stream=false, is_last=true, is_interrupted=false, id=None, *, code=None))]
    #[allow(clippy::too_many_arguments, reason = "the fields of a response, in the order that AgentScope fixed")]
    fn new(
        content: Py<PyAny>,
        metadata: Option<Py<PyAny>>,
        stream: bool,
        is_last: bool,
        is_interrupted: bool,
        id: Option<Py<PyAny>>,
        code: Option<Py<PyString>>,
    ) -> Self {
        Self { code, ..Self::with(content, metadata, stream, is_last, is_interrupted, id) }
    }

    /// A unique id.
    #[getter]
    fn id<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (at, salt) = match &slf.borrow().id {
            ResponseId::Given(id) => return Ok(id.bind(py).clone()),
            ResponseId::Made { at, salt } => (*at, *salt),
        };
        let local = LOCAL_TIME.get(py)?.call1((at.as_secs(),))?;
        let second: String = FORMAT_TIME.get(py)?.call1(("%Y-%m-%d %H:%M:%S", local))?.extract()?;
        let id = format!("{second}.{:03}_{salt:06x}", at.subsec_millis()).into_bound_py_any(py)?;
        slf.borrow_mut().id = ResponseId::Given(id.clone().unbind());
        Ok(id)
    }

    #[setter]
    fn set_id(&mut self, id: Py<PyAny>) {
        self.id = ResponseId::Given(id);
    }

    /// The text of all text blocks, joined by line breaks.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let content = self.content.bind(py);
        if let Ok(text) = content.cast::<PyString>() {
            return Ok(unicode(text).into_owned());
        }
        let mut texts = Vec::new();
        for block in content.try_iter()? {
            let block = block?;
            if let Ok(block) = block.cast::<PyDict>()
                && let Some(text) = block.get_item(intern!(py, "text"))?
                && let Ok(text) = text.cast::<PyString>()
            {
                texts.push(unicode(text).into_owned());
            }
        }
        Ok(texts.join("\n"))
    }

    /// True if the call succeeded: there is no code, and it was not interrupted.
    #[getter]
    fn ok(&self) -> bool {
        self.code.is_none() && !self.is_interrupted
    }

    /// Compares the six fields of AgentScope's class, so that the two can be compared with each other.
    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        for field in FIELDS {
            let Some(theirs) = other.getattr_opt(field)? else { return Ok(py.NotImplemented()) };
            if !slf.getattr(field)?.eq(theirs)? {
                return false.into_py_any(py);
            }
        }
        true.into_py_any(py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let fields = FIELDS
            .iter()
            .map(|field| Ok(format!("{field}={}", slf.getattr(*field)?.repr()?)))
            .collect::<PyResult<Vec<_>>>()?;
        let code = slf.borrow().code.as_ref().map_or_else(String::new, |code| format!(", code='{code}'"));
        Ok(format!("{}({}{code})", slf.get_type().name()?, fields.join(", ")))
    }

    /// Copying and pickling, with the attributes that a subclass may add.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let fields = FIELDS.iter().map(|field| slf.getattr(*field)).collect::<PyResult<Vec<_>>>()?;
        let state = match slf.getattr_opt(intern!(py, "__dict__"))? {
            Some(attributes) => attributes.cast_into::<PyDict>()?.copy()?,
            None => PyDict::new(py),
        };
        state.set_item(intern!(py, "code"), &slf.borrow().code)?;
        PyTuple::new(py, [slf.get_type().into_any(), PyTuple::new(py, fields)?.into_any(), state.into_any()])
    }

    /// Copy the response, with its exception.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (class, fields, state): (Bound<'py, PyAny>, Bound<'py, PyTuple>, Bound<'py, PyDict>) =
            Self::__reduce__(slf)?.extract()?;
        let copy = class.call1(fields)?;
        copy.call_method1(intern!(slf.py(), "__setstate__"), (state,))?;
        let exception = slf.borrow().exception.as_ref().map(|exception| exception.clone_ref(slf.py()));
        if exception.is_some() {
            copy.setattr(intern!(slf.py(), "exception"), exception)?;
        }
        Ok(copy)
    }

    fn __setstate__(slf: &Bound<'_, Self>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        for (name, value) in entries_of(state) {
            slf.setattr(name.cast::<PyString>()?, value)?;
        }
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.content)?;
        visit.call(&self.metadata)?;
        visit.call(&self.exception)?;
        if let ResponseId::Given(id) = &self.id {
            visit.call(id)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        Python::attach(|py| {
            self.content = py.None();
            self.metadata = None;
            self.exception = None;
        });
    }
}

pub(crate) const FIELDS: [&str; 6] = ["content", "metadata", "stream", "is_last", "is_interrupted", "id"];

impl PyToolResponse {
    /// A response with the fields of AgentScope's class.
    #[inline]
    pub(crate) fn with(
        content: Py<PyAny>,
        metadata: Option<Py<PyAny>>,
        stream: bool,
        is_last: bool,
        is_interrupted: bool,
        id: Option<Py<PyAny>>,
    ) -> Self {
        let id = id.map_or_else(ResponseId::new, ResponseId::Given);
        Self { content, metadata, stream, is_last, is_interrupted, code: None, exception: None, id }
    }
}

/// The type object, for comparing pointers.
#[inline]
pub(crate) fn exact_type(py: Python<'_>) -> *mut PyTypeObject {
    PyToolResponse::type_object_raw(py)
}

fn text_block<'py>(py: Python<'py>, text: Bound<'py, PyString>) -> PyResult<Bound<'py, PyDict>> {
    let block = PyDict::new(py);
    block.set_item(intern!(py, "type"), intern!(py, "text"))?;
    block.set_item(intern!(py, "text"), text)?;
    Ok(block)
}

fn code(py: Python<'_>, code: Code) -> Py<PyString> {
    let word = match code {
        Code::BadCall => intern!(py, Code::BadCall.as_str()),
        Code::UnknownTool => intern!(py, Code::UnknownTool.as_str()),
        Code::InactiveGroup => intern!(py, Code::InactiveGroup.as_str()),
        Code::InvalidArguments => intern!(py, Code::InvalidArguments.as_str()),
        Code::Failed => intern!(py, Code::Failed.as_str()),
        Code::Interrupted => intern!(py, Code::Interrupted.as_str()),
        Code::Timeout => intern!(py, Code::Timeout.as_str()),
        Code::Denied => intern!(py, Code::Denied.as_str()),
        Code::Pending => intern!(py, Code::Pending.as_str()),
        Code::Cancelled => intern!(py, Code::Cancelled.as_str()),
        Code::UnknownTask => intern!(py, Code::UnknownTask.as_str()),
        Code::TaskRunning => intern!(py, Code::TaskRunning.as_str()),
        Code::TaskFinished => intern!(py, Code::TaskFinished.as_str()),
        Code::ToolNotAvailable => intern!(py, Code::ToolNotAvailable.as_str()),
    };
    word.clone().unbind()
}

fn make<'py>(
    py: Python<'py>,
    content: Bound<'py, PyAny>,
    metadata: Option<Py<PyAny>>,
    code: Option<Py<PyString>>,
) -> PyResult<Bound<'py, PyAny>> {
    let response = PyToolResponse {
        content: content.unbind(),
        metadata,
        stream: false,
        is_last: true,
        is_interrupted: false,
        code,
        exception: None,
        id: ResponseId::new(),
    };
    Ok(Bound::new(py, response)?.into_any())
}

/// A response with one text block, and the value in the metadata.
pub(crate) fn text<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    value: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let metadata = match value {
        None => None,
        Some(value) => {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "value"), value)?;
            Some(metadata.into_any().unbind())
        }
    };
    let content = PyList::new(py, [text_block(py, text)?])?.into_any();
    make(py, content, metadata, None)
}

/// A response without content, for a generator that yielded nothing.
pub(crate) fn empty(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    make(py, PyList::empty(py).into_any(), None, None)
}

/// Converts a response of the core.
pub(crate) fn from_core(py: Python<'_>, response: ToolResponse) -> PyResult<Bound<'_, PyAny>> {
    let ToolResponse { content, metadata, stream, is_last, is_interrupted, code: word, id } = response;
    let content = json::to_python(py, &Value::Array(content))?.unbind();
    let metadata = metadata.map(|metadata| json::to_python(py, &metadata).map(Bound::unbind)).transpose()?;
    let id = id.map(|id| id.into_py_any(py)).transpose()?;
    let response = PyToolResponse {
        code: word.map(|word| code(py, word)),
        ..PyToolResponse::with(content, metadata, stream, is_last, is_interrupted, id)
    };
    Ok(Bound::new(py, response)?.into_any())
}

/// One of toolcrib's own responses.
pub(crate) fn answer<'py>(py: Python<'py>, answer: &Reply) -> PyResult<Bound<'py, PyAny>> {
    answer_with(py, answer, None)
}

/// The response to an exception of a tool, which it keeps.
pub(crate) fn failed<'py>(py: Python<'py>, reply: &Reply, exception: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let response = answer(py, reply)?.cast_into::<PyToolResponse>()?;
    response.borrow_mut().exception = Some(exception.unbind());
    Ok(response.into_any())
}

/// One of toolcrib's own responses, with metadata.
pub(crate) fn answer_with<'py>(
    py: Python<'py>,
    answer: &Reply,
    metadata: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = PyString::new(py, &answer.text());
    let content = PyList::new(py, [text_block(py, text)?])?.into_any();
    make(py, content, metadata.map(Bound::unbind), Some(code(py, answer.code())))
}

/// The notice about the background task `id`, which is in the metadata.
pub(crate) fn notice<'py>(py: Python<'py>, notice: &Notice, id: &str) -> PyResult<Bound<'py, PyAny>> {
    let content = PyList::new(py, [text_block(py, PyString::new(py, &notice.text(id)))?])?.into_any();
    let metadata = PyDict::new(py);
    metadata.set_item(intern!(py, "task_id"), id)?;
    make(py, content, Some(metadata.into_any().unbind()), notice.code().map(|word| code(py, word)))
}

/// The response of a cancelled call: the last chunk with a note. The chunk itself belongs to the consumer and is not modified.
pub(crate) fn interrupted<'py>(
    py: Python<'py>,
    last: Option<Bound<'py, PyAny>>,
    is_function: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let note = text_block(py, PyString::new(py, &Reply::Interrupted.text()))?;
    let content = PyList::empty(py);
    let (mut metadata, mut stream) = (None, is_function);
    if let Some(last) = last {
        let last = last.cast_into::<PyToolResponse>()?;
        let last = last.borrow();
        match last.content.bind(py).cast::<PyString>() {
            Ok(text) => content.append(text_block(py, text.clone())?)?,
            Err(_) => last.content.bind(py).try_iter()?.try_for_each(|block| content.append(block?))?,
        }
        metadata = last.metadata.as_ref().map(|metadata| metadata.clone_ref(py));
        stream = last.stream;
    }
    content.append(note)?;
    let response = PyToolResponse {
        content: content.into_any().unbind(),
        metadata,
        stream,
        is_last: true,
        is_interrupted: true,
        code: Some(code(py, Code::Interrupted)),
        exception: None,
        id: ResponseId::new(),
    };
    Ok(Bound::new(py, response)?.into_any())
}

/// True if a response already says that the call was cancelled.
pub(crate) fn is_interrupted(response: &Bound<'_, PyAny>) -> bool {
    response.cast::<PyToolResponse>().is_ok_and(|response| response.borrow().is_interrupted)
}

/// Converts a response of another library that has the same fields.
pub(crate) fn adopt<'py>(foreign: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = foreign.py();
    let mut fields = Vec::with_capacity(FIELDS.len());
    for field in FIELDS {
        match foreign.getattr_opt(field)? {
            Some(value) => fields.push(value),
            None => return Ok(None),
        }
    }
    let class = PyToolResponse::type_object(py);
    Ok(Some(class.call1(PyTuple::new(py, fields)?)?))
}

/// A response as JSON, with the id and the name of its call.
struct CallResult {
    content: Value,
    value: Option<Value>,
    is_error: bool,
    id: Option<String>,
    is_custom: bool,
    name: Option<String>,
}

impl CallResult {
    fn new(response: &Bound<'_, PyToolResponse>, call: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let py = response.py();
        let content = content_to_json(&response.getattr(intern!(py, "content"))?)?;
        let metadata = response.getattr(intern!(py, "metadata"))?;
        let value = match metadata.cast::<PyDict>() {
            // A value without a JSON form is represented by the text alone.
            Ok(metadata) => metadata.get_item(intern!(py, "value"))?.and_then(|value| json::from_object(&value).ok()),
            Err(_) => None,
        };
        let is_error = !response.getattr(intern!(py, "ok"))?.is_truthy()?;
        let mut result = Self { content, value, is_error, id: None, is_custom: false, name: None };
        if let Some(call) = call {
            result.set_call(call)?;
        }
        Ok(result)
    }

    /// Sets the id and the name from a call in any format, or from its id.
    fn set_call(&mut self, call: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(id) = call.cast::<PyString>() {
            self.id = Some(id.to_string());
            return Ok(());
        }
        let read;
        let call = if let Ok(call) = call.cast::<PyToolCall>() {
            &call.get().call
        } else if json::may_be_call(call) {
            read = read_object(call, None)?;
            &read
        } else {
            let class = call.get_type().name()?;
            return Err(PyTypeError::new_err(format!("call must be a tool call or its id, not {class}")));
        };
        self.id.clone_from(&call.id);
        self.is_custom = call.format.ends_with("_custom");
        self.name = Some(call.name.clone()).filter(|name| !name.is_empty());
        Ok(())
    }

    /// Checks that there is an id, without which a provider refuses the message.
    fn with_id(self, method: &str, is_call_given: bool) -> PyResult<Self> {
        if self.id.is_some() {
            return Ok(self);
        }
        if is_call_given {
            return Err(PyValueError::new_err(format!(
                "missing id: {method} needs the id of the call, and `call` has none; pass the id itself"
            )));
        }
        Err(PyTypeError::new_err(format!(
            "missing argument: {method} needs `call`, the call of this response or its id"
        )))
    }

    fn write<'py>(&self, py: Python<'py>, write: fn(ToolResult<'_>) -> Value) -> PyResult<Bound<'py, PyAny>> {
        let written = write(ToolResult {
            content: &self.content,
            value: self.value.as_ref(),
            is_error: self.is_error,
            id: self.id.as_deref(),
            is_custom: self.is_custom,
            name: self.name.as_deref(),
        });
        json::to_python(py, &written)
    }
}

/// The content as JSON; a block without a JSON form is written as by `str`.
fn content_to_json(content: &Bound<'_, PyAny>) -> PyResult<Value> {
    if content.is_instance_of::<PyString>() {
        return json::from_object(content);
    }
    let mut blocks = Vec::new();
    for block in content.try_iter()? {
        let block = block?;
        blocks.push(json::from_object(&block).unwrap_or_else(|_| Value::from(display_text(&block))));
    }
    Ok(Value::Array(blocks))
}

#[pymethods]
impl PyToolResponse {
    /// Return the message with the role `tool` of OpenAI's chat completions, which holds text only.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, call)?.with_id("to_openai", call.is_some())?.write(slf.py(), provider::to_openai)
    }

    /// Return the item that answers a call in OpenAI's responses API.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_openai_responses<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = CallResult::new(slf, call)?.with_id("to_openai_responses", call.is_some())?;
        result.write(slf.py(), provider::to_openai_responses)
    }

    /// Return Anthropic's `tool_result` block.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///
    /// Raises:
    ///     TypeError: If `call` is missing or not a call.
    ///     ValueError: If `call` has no id.
    #[pyo3(signature = (call=None))]
    fn to_anthropic<'py>(slf: &Bound<'py, Self>, call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, call)?.with_id("to_anthropic", call.is_some())?.write(slf.py(), provider::to_anthropic)
    }

    /// Return Gemini's `functionResponse` part.
    ///
    /// Args:
    ///     call: The call of this response, in any format, or its id.
    ///     name: The tool's name, if `call` does not have it.
    ///
    /// Raises:
    ///     TypeError: If neither has the name of the tool, or `call` is not a call.
    #[pyo3(signature = (call=None, *, name=None))]
    fn to_gemini<'py>(
        slf: &Bound<'py, Self>,
        call: Option<&Bound<'py, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut result = CallResult::new(slf, call)?;
        result.name = name.or(result.name);
        if result.name.is_none() {
            return Err(PyTypeError::new_err(
                "missing argument: to_gemini needs `name`, the name of the tool, or a `call` that has it",
            ));
        }
        result.write(slf.py(), provider::to_gemini)
    }

    /// Return MCP's `CallToolResult`.
    fn to_mcp<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        CallResult::new(slf, None)?.write(slf.py(), provider::to_mcp)
    }
}
