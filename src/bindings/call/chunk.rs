//! The chunks of a generator: each is marked as a part of its stream and collected, and the whole result is the last
//! response. Tools that follow AgentScope's rule ([`ChunkRule::AsGiven`]) and middlewares do without this stage.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::close::is_over;
use super::python::interpreter::GilCell;
use super::python::{attached, object};
use super::state::{Phase, State};
use crate::bindings::foreign_response::is_interrupted;
use crate::bindings::into_response::{Content, chunk_of_text, collected, into_response, streamed};
use crate::bindings::json::entries_of;
use crate::bindings::once::intern;
use crate::bindings::response::{self, PyToolResponse, ResultFields};
use crate::call::{ChunkMode, ChunkRule};

/// An item of a generator, as the consumer gets it.
pub(super) enum Chunk<'py> {
    /// One response of several.
    Part(Bound<'py, PyAny>),
    /// The last response, which the stream of another call has made.
    Last(Bound<'py, PyAny>),
    /// None: it says how the last response is made.
    Completion,
}

impl State {
    /// True if the chunks of the tool are collected.
    #[inline(always)]
    pub(super) fn collects(&self, py: Python<'_>) -> bool {
        self.tool(py).get().chunks != ChunkRule::AsGiven
    }

    /// Collects an item, and makes the chunk of it.
    pub(super) fn collect<'py>(&self, py: Python<'py>, item: Bound<'py, PyAny>) -> PyResult<Chunk<'py>> {
        let tool = self.tool(py);
        if tool.get().extension.is_some()
            && let Ok(completion) = item.cast_exact::<Completion>()
        {
            self.whole(py)?.get().complete_by(py, completion.get().0.clone_ref(py));
            return Ok(Chunk::Completion);
        }
        let content = Content::of(item)?;
        if let Content::Response(response) = &content {
            if self.passes_on_last(py) {
                return Ok(Chunk::Last(response.clone().into_any()));
            }
            // The call that the tool passes on was cancelled: this is the last response, and the cancellation follows.
            if is_interrupted(response.as_any()) {
                self.whole(py)?.get().replace(response);
                return Ok(Chunk::Part(response.clone().into_any()));
            }
        }
        let whole = self.whole(py)?;
        let whole = whole.get();
        let plain_mode = tool.get().chunks.plain_mode();
        let (response, mode) = match content {
            Content::Response(response) => {
                let mode = response::mode(&response);
                if mode == ChunkMode::Addition {
                    whole.append(&response)?;
                }
                (streamed(&response, false, mode)?, mode)
            }
            Content::Text(text) => {
                if plain_mode == ChunkMode::Addition {
                    whole.push(py, Part::Text(text.clone().unbind()));
                }
                (chunk_of_text(py, text, None, plain_mode)?, plain_mode)
            }
            Content::Value(text, value) => {
                if plain_mode == ChunkMode::Addition {
                    whole.push(py, Part::Value(text.clone().unbind(), value.clone().unbind()));
                }
                (chunk_of_text(py, text, Some(value), plain_mode)?, plain_mode)
            }
        };
        if mode == ChunkMode::Result {
            whole.replace(&response);
        }
        Ok(Chunk::Part(response.into_any()))
    }

    /// True if the tool gave the stream of another call, and its last response is here.
    fn passes_on_last(&self, py: Python<'_>) -> bool {
        self.phase.get() == Phase::AsyncGenerator
            && self.inner.get(py).is_some_and(|inner| object::is_stream(&inner) && is_over(&inner))
    }

    /// The result so far; an empty one before the first chunk.
    fn whole<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Whole>> {
        if let Some(whole) = self.whole.get(py) {
            return Ok(whole.cast_into::<Whole>()?);
        }
        let whole = Bound::new(py, Whole::default())?;
        self.whole.set(whole.clone().into_any());
        Ok(whole)
    }

    /// The whole result of a generator that has come to its end, as the last response.
    pub(super) fn whole_response<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let whole = self.whole(py)?;
        let response = whole.get().response(py)?;
        match whole.get().completion(py) {
            // It sees the response as the consumer would.
            Some(completion) => into_response(completion.bind(py).call1((response,))?),
            None => Ok(response.into_any()),
        }
    }

    /// The result that an interruption repeats: what was collected, unless a postprocess function may have changed it on
    /// its way to the consumer, and otherwise the last chunk.
    pub(super) fn result_so_far<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.delivered.get() {
            return Ok(None);
        }
        if self.whole.is_empty() || self.tool(py).get().postprocess.is_some() {
            return Ok(self.last.get(py));
        }
        let response = self.whole(py)?.get().response(py)?;
        streamed(&response, true, ChunkMode::Result).map(|response| Some(response.into_any()))
    }

    /// The response with the marks of a last one, if it ends a stream of several.
    #[inline(always)]
    pub(super) fn as_last<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        if !self.delivered.get() || !self.collects(py) {
            return response;
        }
        attached(py, |py| marked(py, response, true, ChunkMode::Result))
    }

    /// The replacement that a postprocess function gave for a chunk, with the marks of that chunk.
    pub(super) fn as_chunk<'py>(
        &self,
        py: Python<'py>,
        replacement: Bound<'py, PyAny>,
        replaced: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyAny> {
        match replaced.cast::<PyToolResponse>() {
            Ok(chunk) if self.collects(py) => {
                let is_interrupted = is_interrupted(replaced);
                let replacement = marked(py, replacement, is_interrupted, response::mode(chunk));
                if is_interrupted { as_interrupted(py, replacement) } else { replacement }
            }
            _ => replacement,
        }
    }
}

/// The response of an interrupted call, marked as such.
fn as_interrupted<'py>(py: Python<'py>, response: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let Ok(own) = response.cast::<PyToolResponse>() else { return response };
    match response::marked_interrupted(own) {
        Ok(marked) => marked.into_any(),
        Err(error) => {
            error.write_unraisable(py, Some(&response));
            response
        }
    }
}

/// The response with these marks. It is worth more than they are, so that an error of a copy is unraisable.
fn marked<'py>(py: Python<'py>, response: Bound<'py, PyAny>, is_last: bool, mode: ChunkMode) -> Bound<'py, PyAny> {
    let Ok(own) = response.cast::<PyToolResponse>() else { return response };
    match streamed(own, is_last, mode) {
        Ok(marked) => marked.into_any(),
        Err(error) => {
            error.write_unraisable(py, Some(&response));
            response
        }
    }
}

/// The result so far of a generator. It is a Python object, so that the collector sees what it holds.
#[pyclass(name = "_Whole", module = "toolcrib._core", frozen)]
#[derive(Default)]
struct Whole(GilCell<Collected>);

/// The collected chunks: [`WholeResult`](crate::call::WholeResult) for Python objects, which keeps references instead of copies.
#[derive(Default)]
struct Collected {
    /// The last chunk that replaced everything before it; the parts come after it.
    base: Option<Py<PyToolResponse>>,
    parts: Vec<Part>,
    /// The merged metadata of additions.
    metadata: Option<Py<PyDict>>,
    code: Option<Py<PyString>>,
    /// The function that makes the last response out of the whole result.
    completion: Option<Py<PyAny>>,
}

/// A part of the result that was added.
enum Part {
    Text(Py<PyString>),
    Block(Py<PyAny>),
    /// A value that is not text, with its JSON text.
    Value(Py<PyString>, Py<PyAny>),
}

impl Whole {
    fn push(&self, py: Python<'_>, part: Part) {
        self.0.with(py, |collected| collected.parts.push(part));
    }

    /// Starts anew with the result so far.
    fn replace(&self, result: &Bound<'_, PyToolResponse>) {
        let base = Some(result.clone().unbind());
        let before = self.0.with(result.py(), |collected| {
            let completion = collected.completion.take();
            std::mem::replace(collected, Collected { base, completion, ..Collected::default() })
        });
        drop(before);
    }

    /// Adds the content of a response. Texts and blocks are taken as they are now: the tool may change them afterwards.
    fn append(&self, response: &Bound<'_, PyToolResponse>) -> PyResult<()> {
        let py = response.py();
        let ResultFields { content, metadata, code } = response::result_fields(response)?;
        let mut parts = parts_of(&content)?;
        let metadata = metadata.filter(|metadata| !metadata.is_none());
        let value = metadata.as_ref().and_then(plain_value);
        if let (Some(value), [Part::Text(text)]) = (value, parts.as_slice()) {
            parts = vec![Part::Value(text.clone_ref(py), value.unbind())];
        } else if let Some(metadata) = metadata {
            let merged = match self.0.with(py, |collected| collected.metadata.as_ref().map(|it| it.clone_ref(py))) {
                Some(merged) => merged.into_bound(py),
                None => PyDict::new(py),
            };
            merge(&merged, &metadata)?;
            let before = self.0.with(py, |collected| collected.metadata.replace(merged.unbind()));
            drop(before);
        }
        let before = self.0.with(py, |collected| {
            collected.parts.extend(parts);
            code.and_then(|code| collected.code.replace(code))
        });
        drop(before);
        Ok(())
    }

    fn complete_by(&self, py: Python<'_>, completion: Py<PyAny>) {
        let before = self.0.with(py, |collected| collected.completion.replace(completion));
        drop(before);
    }

    fn completion(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.with(py, |collected| collected.completion.as_ref().map(|it| it.clone_ref(py)))
    }

    /// A response with the whole result.
    fn response<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyToolResponse>> {
        // Copied out, because Python code may run while the response is made.
        let Collected { base, mut parts, metadata, code, .. } = self.0.with(py, |collected| collected.clone_ref(py));
        let Some(base) = base.map(|base| response::result_fields(base.bind(py))).transpose()? else {
            if let Some((text, values)) = list_of_values(py, &parts)? {
                let (content, metadata) = (PyList::new(py, [response::text_block(py, text)?])?, PyDict::new(py));
                metadata.set_item(intern!(py, "value"), values)?;
                return collected(content.into_any(), Some(metadata.into_any()), code);
            }
            let metadata = metadata.map(|metadata| metadata.into_bound(py));
            return collected(joined(py, parts)?.into_any(), without_value(metadata)?, code);
        };
        if parts.is_empty() && metadata.is_none() {
            let content = match base.content.cast_exact::<PyList>() {
                Ok(blocks) => blocks.get_slice(0, blocks.len()).into_any(),
                Err(_) => base.content,
            };
            return collected(content, base.metadata, code.or(base.code));
        }
        let merged = PyDict::new(py);
        for metadata in base.metadata.into_iter().chain(metadata.map(|it| it.into_bound(py).into_any())) {
            merge(&merged, &metadata)?;
        }
        parts.splice(..0, parts_of(&base.content)?);
        collected(joined(py, parts)?.into_any(), without_value(Some(merged))?, code.or(base.code))
    }
}

#[pymethods]
impl Whole {
    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let visited = self.0.visit(&visit, |collected| {
            visit.call(&collected.base)?;
            visit.call(&collected.metadata)?;
            visit.call(&collected.completion)?;
            collected.parts.iter().try_for_each(|part| match part {
                Part::Text(_) => Ok(()),
                Part::Block(object) | Part::Value(_, object) => visit.call(object),
            })
        });
        visited.unwrap_or(Ok(()))
    }

    fn __clear__(&self, py: Python<'_>) {
        let collected = self.0.with(py, std::mem::take);
        drop(collected);
    }
}

impl Collected {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            base: self.base.as_ref().map(|it| it.clone_ref(py)),
            parts: self.parts.iter().map(|part| part.clone_ref(py)).collect(),
            metadata: self.metadata.as_ref().map(|it| it.clone_ref(py)),
            code: self.code.as_ref().map(|it| it.clone_ref(py)),
            completion: self.completion.as_ref().map(|it| it.clone_ref(py)),
        }
    }
}

impl Part {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.clone_ref(py)),
            Self::Block(block) => Self::Block(block.clone_ref(py)),
            Self::Value(text, value) => Self::Value(text.clone_ref(py), value.clone_ref(py)),
        }
    }
}

/// The content of a response as parts, which later changes to its blocks do not reach.
fn parts_of(content: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    if content.is_none() {
        return Ok(Vec::new());
    }
    if let Ok(text) = content.cast::<PyString>() {
        return Ok(vec![Part::Text(text.clone().unbind())]);
    }
    content.try_iter()?.map(|block| part_of(&block?)).collect()
}

fn part_of(block: &Bound<'_, PyAny>) -> PyResult<Part> {
    let py = block.py();
    let Ok(entries) = block.cast_exact::<PyDict>() else { return Ok(Part::Block(block.clone().unbind())) };
    if entries.len() == 2
        && entries.get_item(intern!(py, "type"))?.is_some_and(|kind| is_text(&kind))
        && let Some(text) = entries.get_item(intern!(py, "text"))?
        && let Ok(text) = text.cast_into::<PyString>()
    {
        return Ok(Part::Text(text.unbind()));
    }
    Ok(Part::Block(entries.copy()?.into_any().unbind()))
}

fn is_text(kind: &Bound<'_, PyAny>) -> bool {
    kind.cast::<PyString>().is_ok_and(|kind| kind.to_str().is_ok_and(|kind| kind == "text"))
}

/// The value in the metadata of a response that was made from it.
fn plain_value<'py>(metadata: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let metadata = metadata.cast::<PyDict>().ok().filter(|metadata| metadata.len() == 1)?;
    metadata.get_item(intern!(metadata.py(), "value")).ok().flatten()
}

/// Adds metadata to other metadata; later entries win. Metadata that is not a dictionary belongs to one response alone.
fn merge(merged: &Bound<'_, PyDict>, metadata: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(metadata) = metadata.cast::<PyDict>() {
        for (name, value) in entries_of(metadata) {
            merged.set_item(name, value)?;
        }
    }
    Ok(())
}

/// Metadata without `value`, which stands for a whole response.
fn without_value(metadata: Option<Bound<'_, PyDict>>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(metadata) = metadata else { return Ok(None) };
    let metadata = metadata.copy()?;
    let name = intern!(metadata.py(), "value");
    if metadata.contains(name)? {
        metadata.del_item(name)?;
    }
    Ok((!metadata.is_empty()).then(|| metadata.into_any()))
}

/// The list of values and its JSON text, if there is nothing but values.
fn list_of_values<'py>(
    py: Python<'py>,
    parts: &[Part],
) -> PyResult<Option<(Bound<'py, PyString>, Bound<'py, PyList>)>> {
    let (texts, values) = (PyList::empty(py), PyList::empty(py));
    for part in parts {
        let Part::Value(text, value) = part else { return Ok(None) };
        texts.append(text)?;
        values.append(value)?;
    }
    if values.is_empty() {
        return Ok(None);
    }
    let text = format!("[{}]", join(intern!(py, ", "), &texts)?.to_str()?);
    Ok(Some((PyString::new(py, &text), values)))
}

/// The blocks for parts, with adjacent texts joined.
fn joined(py: Python<'_>, parts: Vec<Part>) -> PyResult<Bound<'_, PyList>> {
    let (blocks, texts) = (PyList::empty(py), PyList::empty(py));
    let end_text = || {
        if !texts.is_empty() {
            blocks.append(response::text_block(py, join(intern!(py, ""), &texts)?)?)?;
            texts.del_slice(0, texts.len())?;
        }
        PyResult::Ok(())
    };
    for part in parts {
        match part {
            Part::Text(text) | Part::Value(text, _) => texts.append(text)?,
            Part::Block(block) => {
                end_text()?;
                blocks.append(block)?;
            }
        }
    }
    end_text()?;
    Ok(blocks)
}

fn join<'py>(separator: &Bound<'py, PyString>, texts: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyString>> {
    Ok(separator.call_method1(intern!(texts.py(), "join"), (texts,))?.cast_into()?)
}

/// The last item of a finish function: makes the last response out of the whole result.
#[pyclass(name = "_Completion", module = "toolcrib._core", frozen)]
pub(crate) struct Completion(Py<PyAny>);

#[pymethods]
impl Completion {
    #[new]
    fn new(function: Py<PyAny>) -> Self {
        Self(function)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}
