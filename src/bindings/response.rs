//! `ToolResponse`: one chunk of the result of a call.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::ffi::PyTypeObject;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, PyTypeInfo};
use serde_json::{Map, Value, json};

use super::foreign_response::own;
use super::imported::{COPY, FORMAT_TIME, LOCAL_TIME};
use super::into_response::{as_json, chunk_of_text, of_text, short_repr, unicode};
use super::json::{self, entries_of};
use super::parameters::{Omittable, choice, flag, string};
use super::result_message::content_to_json;
use crate::bindings::once::intern;
use crate::call::{ChunkMode, Code, LateMetadata, Notice, Reply, STRUCTURED_CONTENT, ToolResponse};
use crate::sync::lock;

/// One chunk of the result of a tool call.
///
/// Two responses are equal if their first six fields and their modes are; AgentScope's has no mode.
#[pyclass(name = "ToolResponse", module = "toolcrib", subclass, weakref)]
pub(crate) struct PyToolResponse {
    /// The blocks for the model, in order.
    #[pyo3(get, set)]
    pub(super) content: Py<PyAny>,
    /// Data for the program, which the model does not see. It is complete only without `late`.
    metadata: Option<Py<PyAny>>,
    /// More metadata, of which Python objects are made when it is asked for.
    late: Option<Box<LateMetadata>>,
    /// True if the response is part of a stream of several.
    #[pyo3(get, set)]
    pub(super) stream: bool,
    /// True for the last response of a call.
    #[pyo3(get, set)]
    pub(super) is_last: bool,
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
    pub(super) mode: ChunkMode,
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

/// A second as local time. The last one is kept: most responses of a program fall into the same second as others.
pub(crate) fn local_second(py: Python<'_>, second: u64) -> PyResult<Arc<str>> {
    static LAST: Mutex<Option<(u64, Arc<str>)>> = Mutex::new(None);
    if let Some((_, text)) = lock(&LAST).as_ref().filter(|(last, _)| *last == second) {
        return Ok(text.clone());
    }
    let local = LOCAL_TIME.get(py)?.call1((second,))?;
    let text: String = FORMAT_TIME.get(py)?.call1(("%Y-%m-%d %H:%M:%S", local))?.extract()?;
    let text: Arc<str> = text.into();
    *lock(&LAST) = Some((second, text.clone()));
    Ok(text)
}

#[pymethods]
impl PyToolResponse {
    #[new]
    #[pyo3(
        signature = (
            content, metadata=None, stream=Omittable(None), is_last=Omittable(None), is_interrupted=Omittable(None),
            id=None, *, code=None, mode=Omittable(None)
        ),
        text_signature = "(content, metadata=None, stream=False, is_last=True, is_interrupted=False, id=None, *, \
                          code=None, mode='result')"
    )]
    #[allow(clippy::too_many_arguments, reason = "the fields of a response, in the order that AgentScope fixed")]
    fn new(
        content: Py<PyAny>,
        metadata: Option<Py<PyAny>>,
        stream: Omittable<'_>,
        is_last: Omittable<'_>,
        is_interrupted: Omittable<'_>,
        id: Option<Py<PyAny>>,
        code: Option<&Bound<'_, PyAny>>,
        mode: Omittable<'_>,
    ) -> PyResult<Self> {
        let (stream, is_last) = (flag("stream", &stream, false)?, flag("is_last", &is_last, true)?);
        let is_interrupted = flag("is_interrupted", &is_interrupted, false)?;
        let code = code.map(|code| string("code", code)).transpose()?.map(|code| code.clone().unbind());
        let mode = mode.0.as_ref().map_or(Ok(ChunkMode::Result), |mode| parse_mode(string("mode", mode)?.to_str()?))?;
        Ok(Self { code, mode, ..Self::with(content, metadata, stream, is_last, is_interrupted, id) })
    }

    /// Data for the program, which the model does not see.
    #[getter]
    fn metadata<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if slf.borrow().late.is_some() {
            Self::settle(slf)?;
        }
        Ok(slf.borrow().metadata.as_ref().map(|metadata| metadata.bind(slf.py()).clone()))
    }

    #[setter]
    fn set_metadata(&mut self, metadata: Option<Py<PyAny>>) {
        (self.metadata, self.late) = (metadata, None);
    }

    /// The relation to the result of the call: `"progress"`, `"addition"` or `"result"`.
    #[getter]
    fn mode<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let word = match self.mode {
            ChunkMode::Progress => intern!(py, ChunkMode::Progress.as_str()),
            ChunkMode::Addition => intern!(py, ChunkMode::Addition.as_str()),
            ChunkMode::Result => intern!(py, ChunkMode::Result.as_str()),
        };
        word.clone()
    }

    #[setter]
    fn set_mode(&mut self, mode: &str) -> PyResult<()> {
        self.mode = parse_mode(mode)?;
        Ok(())
    }

    /// A unique id.
    #[getter]
    fn id<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (at, salt) = match &slf.borrow().id {
            ResponseId::Given(id) => return Ok(id.bind(py).clone()),
            ResponseId::Made { at, salt } => (*at, *salt),
        };
        let second = local_second(py, at.as_secs())?;
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

    /// Compares the six fields of AgentScope's class, so that the two can be compared with each other, and the mode, which
    /// that class does not have.
    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if let Ok(other) = other.cast::<Self>()
            && other.borrow().mode != slf.borrow().mode
        {
            return false.into_py_any(py);
        }
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
            .map(|field| Ok(format!("{field}={}", short_repr(&slf.getattr(*field)?)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let code = slf.borrow().code.as_ref().map_or_else(String::new, |code| format!(", code='{code}'"));
        let mode = match slf.borrow().mode {
            ChunkMode::Result => String::new(),
            mode => format!(", mode='{}'", mode.as_str()),
        };
        Ok(format!("{}({}{code}{mode})", slf.get_type().name()?, fields.join(", ")))
    }

    /// Copying and pickling, with the attributes that a subclass may add.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let fields = Self::fields(slf)?;
        let state = match slf.getattr_opt(intern!(py, "__dict__"))? {
            Some(attributes) => attributes.cast_into::<PyDict>()?.copy()?,
            None => PyDict::new(py),
        };
        state.set_item(intern!(py, "code"), &slf.borrow().code)?;
        state.set_item(intern!(py, "mode"), slf.borrow().mode(py))?;
        PyTuple::new(py, [slf.get_type().into_any(), fields.into_any(), state.into_any()])
    }

    /// Copy the response, with its exception.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get_type_ptr() == exact_type(slf.py()) {
            return copied(slf).map(Bound::into_any);
        }
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
            (self.metadata, self.late) = (None, None);
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
        Self {
            content,
            metadata,
            late: None,
            stream,
            is_last,
            is_interrupted,
            code: None,
            exception: None,
            mode: ChunkMode::Result,
            id,
        }
    }

    /// Makes Python objects of the metadata that was text.
    #[cold]
    fn settle(response: &Bound<'_, Self>) -> PyResult<()> {
        let py = response.py();
        let (before, late) = {
            let mut fields = response.borrow_mut();
            let before = fields.metadata.as_ref().map(|metadata| metadata.clone_ref(py));
            (before, fields.late.take())
        };
        let metadata = match before {
            Some(metadata) => metadata.into_bound(py).cast_into::<PyDict>()?,
            None => PyDict::new(py),
        };
        let mut made: Option<(&Arc<str>, Bound<'_, PyAny>)> = None;
        for (name, text) in late.iter().flat_map(|late| late.entries()) {
            let value = match &made {
                Some((same, value)) if Arc::ptr_eq(same, text) => value.clone(),
                _ => json::text_to_python(py, text)?,
            };
            metadata.set_item(name, &value)?;
            made = Some((text, value));
        }
        response.borrow_mut().metadata = Some(metadata.into_any().unbind());
        Ok(())
    }

    /// The six fields, in the order in which a constructor takes them.
    pub(crate) fn fields<'py>(response: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, id) = (response.py(), Self::id(response)?);
        let metadata = Self::metadata(response)?.map_or_else(|| py.None(), Bound::unbind);
        let fields = response.borrow();
        let flag = |flag: bool| PyBool::new(py, flag).to_owned().into_any();
        let flags = [flag(fields.stream), flag(fields.is_last), flag(fields.is_interrupted)];
        let [stream, is_last, is_interrupted] = flags;
        let content = fields.content.bind(py).clone();
        PyTuple::new(py, [content, metadata.into_bound(py), stream, is_last, is_interrupted, id])
    }

    /// The code, and the mode unless it is the usual one: what the six fields do not say.
    pub(crate) fn extras<'py>(response: &Bound<'py, Self>) -> (Option<Py<PyString>>, Option<Bound<'py, PyString>>) {
        let (py, fields) = (response.py(), response.borrow());
        let mode = (fields.mode != ChunkMode::Result).then(|| fields.mode(py));
        (fields.code.as_ref().map(|code| code.clone_ref(py)), mode)
    }

    /// The text of a response that is one block of text and says nothing else.
    pub(crate) fn plain_text<'py>(response: &Bound<'py, PyAny>) -> Option<PlainText<'py>> {
        let py = response.py();
        let fields = response.cast_exact::<Self>().ok()?.try_borrow().ok()?;
        let has_metadata = match &fields.metadata {
            Some(metadata) => metadata.bind(py).is_truthy().unwrap_or(true),
            None => fields.late.is_some(),
        };
        if has_metadata || !fields.ok() {
            return None;
        }
        let content = fields.content.bind(py).cast::<PyList>().ok().filter(|content| content.len() == 1)?;
        let block = content.get_item(0).ok()?.cast_into::<PyDict>().ok().filter(|block| block.len() == 2)?;
        block.get_item(intern!(py, "type")).ok()??;
        let text = block.get_item(intern!(py, "text")).ok()??.cast_into::<PyString>().ok()?;
        Some(PlainText { text, mode: fields.mode, stream: fields.stream })
    }

    /// A copy with the same objects in it.
    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            content: self.content.clone_ref(py),
            metadata: self.metadata.as_ref().map(|metadata| metadata.clone_ref(py)),
            late: self.late.clone(),
            stream: self.stream,
            is_last: self.is_last,
            is_interrupted: self.is_interrupted,
            code: self.code.as_ref().map(|code| code.clone_ref(py)),
            exception: self.exception.as_ref().map(|exception| exception.clone_ref(py)),
            mode: self.mode,
            id: match &self.id {
                ResponseId::Given(id) => ResponseId::Given(id.clone_ref(py)),
                ResponseId::Made { at, salt } => ResponseId::Made { at: *at, salt: *salt },
            },
        }
    }
}

/// A response that is a text.
pub(crate) struct PlainText<'py> {
    pub(crate) text: Bound<'py, PyString>,
    pub(crate) mode: ChunkMode,
    pub(crate) stream: bool,
}

fn parse_mode(word: &str) -> PyResult<ChunkMode> {
    choice("mode", word, ChunkMode::parse(word), "'progress', 'addition' or 'result'")
}

/// The type object, for comparing pointers.
#[inline]
pub(crate) fn exact_type(py: Python<'_>) -> *mut PyTypeObject {
    PyToolResponse::type_object_raw(py)
}

/// A block of text.
pub(crate) fn text_block<'py>(py: Python<'py>, text: Bound<'py, PyString>) -> PyResult<Bound<'py, PyDict>> {
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
        Code::LimitExceeded => intern!(py, Code::LimitExceeded.as_str()),
        Code::Busy => intern!(py, Code::Busy.as_str()),
        Code::UnknownTask => intern!(py, Code::UnknownTask.as_str()),
        Code::TaskRunning => intern!(py, Code::TaskRunning.as_str()),
        Code::TaskFinished => intern!(py, Code::TaskFinished.as_str()),
        Code::ToolNotAvailable => intern!(py, Code::ToolNotAvailable.as_str()),
    };
    word.clone().unbind()
}

pub(super) fn make<'py>(
    py: Python<'py>,
    content: Bound<'py, PyAny>,
    metadata: Option<Py<PyAny>>,
    code: Option<Py<PyString>>,
) -> PyResult<Bound<'py, PyToolResponse>> {
    let response = PyToolResponse {
        content: content.unbind(),
        metadata,
        late: None,
        stream: false,
        is_last: true,
        is_interrupted: false,
        code,
        exception: None,
        mode: ChunkMode::Result,
        id: ResponseId::new(),
    };
    Bound::new(py, response)
}

/// The fields of a response that are part of a result.
pub(crate) struct ResultFields<'py> {
    pub(crate) content: Bound<'py, PyAny>,
    pub(crate) metadata: Option<Bound<'py, PyAny>>,
    pub(crate) code: Option<Py<PyString>>,
}

/// The fields of a response that are part of a result.
pub(crate) fn result_fields<'py>(response: &Bound<'py, PyToolResponse>) -> PyResult<ResultFields<'py>> {
    let py = response.py();
    let metadata = PyToolResponse::metadata(response)?;
    let fields = response.borrow();
    Ok(ResultFields {
        content: fields.content.bind(py).clone(),
        metadata,
        code: fields.code.as_ref().map(|code| code.clone_ref(py)),
    })
}

/// The blocks of a response.
pub(crate) fn content<'py>(response: &Bound<'py, PyToolResponse>) -> Bound<'py, PyAny> {
    response.borrow().content.bind(response.py()).clone()
}

/// The failure of a call, as its last response says: the text, and the exception if the tool raised one. `None` if it
/// succeeded.
pub(crate) fn failure(response: &Bound<'_, PyToolResponse>) -> PyResult<Option<(String, Option<PyErr>)>> {
    let py = response.py();
    let exception = {
        let fields = response.borrow();
        if fields.ok() {
            return Ok(None);
        }
        fields.exception.as_ref().map(|exception| PyErr::from_value(exception.bind(py).clone()))
    };
    let text = response.borrow().text(py)?;
    Ok(Some((text, exception)))
}

/// The value that a response was made of, or else its text.
pub(crate) fn value<'py>(response: &Bound<'py, PyToolResponse>) -> PyResult<Bound<'py, PyAny>> {
    let py = response.py();
    if let Some(metadata) = PyToolResponse::metadata(response)?
        && let Ok(metadata) = metadata.cast::<PyDict>()
        && let Some(value) = metadata.get_item(intern!(py, "value"))?
    {
        return Ok(value);
    }
    let text = response.borrow().text(py)?;
    Ok(PyString::new(py, &text).into_any())
}

/// The mode of a response.
pub(crate) fn mode(response: &Bound<'_, PyToolResponse>) -> ChunkMode {
    response.borrow().mode
}

/// A copy of a response with the same objects in it. A subclass is copied as Python does, with its own attributes.
pub(crate) fn copied<'py>(response: &Bound<'py, PyToolResponse>) -> PyResult<Bound<'py, PyToolResponse>> {
    let py = response.py();
    if response.get_type_ptr() == exact_type(py) {
        let copy = response.borrow().clone_ref(py);
        return Bound::new(py, copy);
    }
    Ok(COPY.get(py)?.call1((response,))?.cast_into::<PyToolResponse>()?)
}

/// A copy of a response, which may be the tool's to use again, with an entry in its metadata.
pub(crate) fn with_metadata<'py>(
    response: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    entry: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = response.py();
    let Ok(response) = response.cast::<PyToolResponse>() else { return Ok(response.clone()) };
    let before = PyToolResponse::metadata(response)?;
    let metadata = match before.map(Bound::cast_into::<PyDict>) {
        Some(Ok(entries)) => entries.copy()?,
        Some(Err(value)) => {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "value"), value.into_inner())?;
            metadata
        }
        None => PyDict::new(py),
    };
    metadata.set_item(name, entry)?;
    let copy = copied(response)?;
    copy.borrow_mut().metadata = Some(metadata.into_any().unbind());
    Ok(copy.into_any())
}

/// The response as that of an interrupted call; a copy if it is not marked, because it may be the function's to use again.
pub(crate) fn marked_interrupted<'py>(response: &Bound<'py, PyToolResponse>) -> PyResult<Bound<'py, PyToolResponse>> {
    if response.borrow().is_interrupted {
        return Ok(response.clone());
    }
    let copy = copied(response)?;
    copy.borrow_mut().is_interrupted = true;
    Ok(copy)
}

/// A response with one text block.
pub(crate) fn text<'py>(py: Python<'py>, text: Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    of_text(py, text, None).map(Bound::into_any)
}

/// A notice of progress, with metadata.
pub(crate) fn progress<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    metadata: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyToolResponse>> {
    let response = chunk_of_text(py, text, None, ChunkMode::Progress)?;
    response.borrow_mut().metadata = Some(metadata.into_any().unbind());
    Ok(response)
}

/// Converts a response of the core.
pub(crate) fn from_core(py: Python<'_>, response: ToolResponse) -> PyResult<Bound<'_, PyAny>> {
    let ToolResponse { content, metadata, late, stream, is_last, is_interrupted, code: word, mode, id } = response;
    let blocks = PyList::empty(py);
    for block in &content {
        blocks.append(block_to_python(py, block)?)?;
    }
    let content = blocks.into_any().unbind();
    let metadata = metadata.map(|metadata| json::to_python(py, &metadata).map(Bound::unbind)).transpose()?;
    let id = id.map(|id| id.into_py_any(py)).transpose()?;
    let response = PyToolResponse {
        code: word.map(|word| code(py, word)),
        mode,
        late: (!late.is_empty()).then(|| Box::new(late)),
        ..PyToolResponse::with(content, metadata, stream, is_last, is_interrupted, id)
    };
    Ok(Bound::new(py, response)?.into_any())
}

/// The Python object for a block. Most are texts, whose keys are interned.
fn block_to_python<'py>(py: Python<'py>, block: &Value) -> PyResult<Bound<'py, PyAny>> {
    let mut entries = block.as_object().into_iter().flatten();
    if let (Some((first, Value::String(kind))), Some((second, Value::String(text))), None) =
        (entries.next(), entries.next(), entries.next())
        && (&**first, &**kind, &**second) == ("type", "text", "text")
    {
        return Ok(text_block(py, PyString::new(py, text))?.into_any());
    }
    json::to_python(py, block)
}

/// The value in the metadata of a response that a model may be shown; none if the result was cut to a budget. The structured content
/// of an MCP server is cut itself.
pub(crate) fn shown_value<'py>(metadata: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = metadata.py();
    let report = metadata.get_item(intern!(py, "budget"))?;
    let is_cut = report.is_some_and(|report| report.contains(intern!(py, "characters")).unwrap_or(false));
    metadata.get_item(if is_cut { intern!(py, STRUCTURED_CONTENT) } else { intern!(py, "value") })
}

/// Converts a response to one of the core. Of its metadata only the value and the progress are kept: the rest is for the program.
pub(crate) fn to_core(response: &Bound<'_, PyToolResponse>) -> PyResult<ToolResponse> {
    let py = response.py();
    let metadata = PyToolResponse::metadata(response)?;
    let copy = response.borrow().clone_ref(py);
    let content = match content_to_json(copy.content.bind(py))? {
        Value::Array(blocks) => blocks,
        text => vec![json!({"type": "text", "text": text})],
    };
    let mut kept = Map::new();
    if let Some(Ok(metadata)) = metadata.as_ref().map(|metadata| metadata.cast::<PyDict>()) {
        for name in ["value", "progress"] {
            if let Some(entry) = metadata.get_item(name)? {
                kept.insert(name.to_owned(), as_json(&entry));
            }
        }
    }
    let code = copy.code.as_ref().map(|code| match code.bind(py).to_str() {
        Ok("unknown_tool") => Code::UnknownTool,
        Ok("tool_not_available") => Code::ToolNotAvailable,
        // Which of the others it is makes no difference outside of this process.
        _ => Code::Failed,
    });
    Ok(ToolResponse {
        content,
        metadata: (!kept.is_empty()).then_some(Value::Object(kept)),
        late: LateMetadata::default(),
        stream: copy.stream,
        is_last: copy.is_last,
        is_interrupted: copy.is_interrupted,
        code,
        mode: copy.mode,
        id: None,
    })
}

/// One of toolcrib's own responses.
pub(crate) fn answer<'py>(py: Python<'py>, answer: &Reply) -> PyResult<Bound<'py, PyAny>> {
    answer_with(py, answer, None)
}

/// The response to an exception of a tool, which it keeps.
pub(crate) fn failed<'py>(py: Python<'py>, reply: Reply, exception: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let code = Some(code(py, reply.code()));
    let content = PyList::new(py, [text_block(py, PyString::new(py, &reply.into_text()))?])?;
    let response = PyToolResponse::with(content.into_any().unbind(), None, false, true, false, None);
    let response = PyToolResponse { code, exception: Some(exception.unbind()), ..response };
    Ok(Bound::new(py, response)?.into_any())
}

/// One of toolcrib's own responses, with metadata.
pub(crate) fn answer_with<'py>(
    py: Python<'py>,
    answer: &Reply,
    metadata: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = PyString::new(py, &answer.text());
    let content = PyList::new(py, [text_block(py, text)?])?.into_any();
    make(py, content, metadata.map(Bound::unbind), Some(code(py, answer.code()))).map(Bound::into_any)
}

/// A copy of a response with another text block at the end.
pub(crate) fn with_text<'py>(response: &Bound<'py, PyAny>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = response.py();
    let (name, content) = (intern!(py, "content"), PyList::empty(py));
    let before = response.getattr(name)?;
    match before.cast::<PyString>() {
        Ok(text) => content.append(text_block(py, text.clone())?)?,
        Err(_) => before.try_iter()?.try_for_each(|block| content.append(block?))?,
    }
    content.append(text_block(py, PyString::new(py, text))?)?;
    let copy = COPY.get(py)?.call1((response,))?;
    copy.setattr(name, content)?;
    Ok(copy)
}

/// The notice about the background task `id`, which is in the metadata.
pub(crate) fn notice<'py>(py: Python<'py>, notice: &Notice, id: &str) -> PyResult<Bound<'py, PyAny>> {
    let content = PyList::new(py, [text_block(py, PyString::new(py, &notice.text(id)))?])?.into_any();
    let metadata = PyDict::new(py);
    metadata.set_item(intern!(py, "task_id"), id)?;
    let code = notice.code().map(|word| code(py, word));
    make(py, content, Some(metadata.into_any().unbind()), code).map(Bound::into_any)
}

/// The response of a cancelled call: its result so far with a note. That belongs to the consumer and is not modified.
pub(crate) fn interrupted<'py>(
    py: Python<'py>,
    last: Option<Bound<'py, PyAny>>,
    is_function: bool,
    note: &Reply,
) -> PyResult<Bound<'py, PyAny>> {
    let note = text_block(py, PyString::new(py, &note.text()))?;
    let content = PyList::empty(py);
    let (mut metadata, mut stream) = (None, is_function);
    if let Some(last) = last {
        let last = own(&last)?;
        metadata = PyToolResponse::metadata(&last)?.map(Bound::unbind);
        let last = last.borrow();
        match last.content.bind(py).cast::<PyString>() {
            Ok(text) => content.append(text_block(py, text.clone())?)?,
            Err(_) => last.content.bind(py).try_iter()?.try_for_each(|block| content.append(block?))?,
        }
        stream = last.stream;
    }
    content.append(note)?;
    let response = PyToolResponse {
        content: content.into_any().unbind(),
        metadata,
        late: None,
        stream,
        is_last: true,
        is_interrupted: true,
        code: Some(code(py, Code::Interrupted)),
        exception: None,
        mode: ChunkMode::Result,
        id: ResponseId::new(),
    };
    Ok(Bound::new(py, response)?.into_any())
}
