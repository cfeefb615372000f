//! The stream of a call in the models of another library: chunks that add up, and then the whole result.
//!
//! Most calls give one text, or texts that add up; those are converted here. Everything else goes to a Python object with the
//! same interface, which takes the call over where it is: errors, questions, interruptions, images, results that replace others.

use std::mem;

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::close::is_over;
use super::python::drive::{Sent, anext, send};
use super::python::interpreter::GilCell;
use super::python::object::{self, is_stream, raise_stop_async_iteration, raise_stop_iteration};
use super::state::{Origin, State};
use crate::bindings::argument_parser::PyArgumentParser;
use crate::bindings::model::{IdSource, Prototype, ValueFactory, local_time};
use crate::bindings::once::intern;
use crate::bindings::response::{PlainText, PyToolResponse};
use crate::call::ChunkMode;

/// The models of another library: for a block of text, a chunk and the result of a call.
#[pyclass(name = "_ResponseModels", module = "toolcrib._core", frozen)]
pub(crate) struct PyResponseModels {
    text: Prototype<3>,
    chunk: Prototype<3>,
    response: Prototype<3>,
    new_id: ValueFactory,
    now: ValueFactory,
    ids: IdSource,
}

#[pymethods]
impl PyResponseModels {
    #[new]
    fn new(
        text: &Bound<'_, PyAny>,
        chunk: &Bound<'_, PyAny>,
        response: &Bound<'_, PyAny>,
        new_id: (Bound<'_, PyAny>, Bound<'_, PyString>),
        now: (Bound<'_, PyAny>, Bound<'_, PyString>),
    ) -> PyResult<Self> {
        Ok(Self {
            text: Prototype::new(text, ["text", "id", "created_at"])?,
            chunk: Prototype::new(chunk, ["content", "metadata", "id"])?,
            response: Prototype::new(response, ["content", "metadata", "id"])?,
            new_id: ValueFactory::new(&new_id.0, &new_id.1)?,
            now: ValueFactory::new(&now.0, &now.1)?,
            ids: IdSource::new(),
        })
    }

    /// Begin with other ids, in a forked process.
    fn renew_ids(&self, py: Python<'_>) {
        self.ids.renew(py);
    }

    /// Make an id.
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.new_id.value(py, |py| self.ids.uuid(py))
    }

    /// Make a block of text.
    fn text<'py>(&self, text: Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        let stamp = Stamp { id: self.id(py)?.unbind(), time: self.now.value(py, local_time)?.unbind() };
        self.stamped_text(text, &stamp)
    }

    /// Make a chunk of blocks, of a call that goes on.
    fn chunk<'py>(&self, content: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
        let py = content.py();
        self.chunk.with(py, [content.into_any(), PyDict::new(py).into_any(), self.id(py)?])
    }

    /// Make the response of a call that has succeeded.
    fn response<'py>(&self, id: Bound<'py, PyAny>, content: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
        let py = id.py();
        self.response.with(py, [content.into_any(), PyDict::new(py).into_any(), id])
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for prototype in [&self.text, &self.chunk, &self.response] {
            prototype.traverse(&visit)?;
        }
        self.new_id.traverse(&visit)?;
        self.now.traverse(&visit)
    }
}

impl PyResponseModels {
    fn stamped_text<'py>(&self, text: Bound<'py, PyString>, stamp: &Stamp) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        self.text.with(py, [text.into_any(), stamp.id.bind(py).clone(), stamp.time.bind(py).clone()])
    }
}

/// The calls of one tool in these models.
#[pyclass(name = "_ModelCalls", module = "toolcrib._core", frozen)]
pub(crate) struct PyModelCalls {
    models: Py<PyResponseModels>,
    /// The block of a call, without its id and arguments.
    request: Py<PyDict>,
    parse: Py<PyAny>,
    take_state: Option<Py<PyAny>>,
    in_their_words: bool,
    take_over: Py<PyAny>,
}

#[pymethods]
impl PyModelCalls {
    #[new]
    fn new<'py>(
        models: Bound<'py, PyResponseModels>,
        name: Bound<'py, PyString>,
        parse: Py<PyAny>,
        take_state: Option<Py<PyAny>>,
        in_their_words: bool,
        take_over: Py<PyAny>,
    ) -> PyResult<Self> {
        let py = name.py();
        let request = PyDict::new(py);
        request.set_item(intern!(py, "type"), intern!(py, "tool_use"))?;
        request.set_item(intern!(py, "id"), py.None())?;
        request.set_item(intern!(py, "name"), name)?;
        request.set_item(intern!(py, "input"), py.None())?;
        Ok(Self { models: models.unbind(), request: request.unbind(), parse, take_state, in_their_words, take_over })
    }

    /// Begin a call. Its arguments are parsed at the first step.
    ///
    /// Args:
    ///     view: The toolkit, view or session to call through.
    ///     call: The other library's block of the call. Rules were suggested to a user who has approved it.
    ///     state: The state of the agent.
    fn begin<'py>(
        slf: Bound<'py, Self>,
        view: Py<PyAny>,
        call: &Bound<'py, PyAny>,
        state: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyModelStream>> {
        let py = slf.py();
        let request = slf.get().request.bind(py).copy()?;
        request.set_item(intern!(py, "id"), call.getattr(intern!(py, "id"))?)?;
        let arguments = call.getattr(intern!(py, "input"))?.unbind();
        let stream = PyModelStream {
            view,
            request: request.unbind(),
            is_confirmed: call.getattr(intern!(py, "suggested_rules"))?.is_truthy()?,
            progress: GilCell::new(Progress { phase: Phase::New(Begin { arguments, state }), sent: None }),
            calls: slf.unbind(),
        };
        Bound::new(py, stream)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.parse)?;
        visit.call(&self.take_state)?;
        visit.call(&self.take_over)
    }
}

/// The id of a block, and the time at which it was made.
struct Stamp {
    id: Py<PyAny>,
    time: Py<PyAny>,
}

/// The chunks of a call, and then its result, with the interface of an async generator.
///
/// It is not the generator of a function: the event loop registers each of these, which takes longer than the call itself.
#[pyclass(name = "_ModelStream", module = "toolcrib._core", frozen, weakref)]
pub(crate) struct PyModelStream {
    calls: Py<PyModelCalls>,
    view: Py<PyAny>,
    request: Py<PyDict>,
    is_confirmed: bool,
    progress: GilCell<Progress>,
}

struct Progress {
    phase: Phase,
    sent: Option<SentText>,
}

/// The texts that were sent, which are one block of the result.
struct SentText {
    stamp: Stamp,
    texts: Vec<Py<PyString>>,
}

enum Phase {
    New(Begin),
    /// The stream of the call, and the step of it that is awaited.
    Short(Py<PyAny>, Option<Py<PyAny>>),
    /// The object that has taken the call over, and the step of it that is awaited.
    TakenOver(Py<PyAny>, Option<Py<PyAny>>),
    /// A step is running.
    Stepping,
    Ended,
}

/// The arguments that are not parsed yet, and the state of the agent.
struct Begin {
    arguments: Py<PyAny>,
    state: Py<PyAny>,
}

/// The reason for which a call is taken over.
enum Cause<'py> {
    Response(Bound<'py, PyAny>),
    Exception(PyErr),
    /// A method that only the other object has.
    Asked,
}

/// The way in which a step is resumed.
enum Resume<'py> {
    Send,
    Throw(Bound<'py, PyTuple>),
}

impl<'py> Resume<'py> {
    fn on(self, step: &Bound<'py, PyAny>) -> Sent<'py> {
        let py = step.py();
        let Self::Throw(exception) = self else { return send(step, &py.None().into_bound(py)) };
        match step.call_method1(intern!(py, "throw"), exception) {
            Ok(yielded) => Sent::Yielded(yielded),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                match error.value(py).getattr(intern!(py, "value")) {
                    Ok(value) => Sent::Returned(value),
                    Err(error) => Sent::Raised(Box::new(error)),
                }
            }
            Err(error) => Sent::Raised(Box::new(error)),
        }
    }
}

#[pymethods]
impl PyModelStream {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Give the next chunk, or the result.
    fn __anext__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        let taker = slf.get().progress.with(py, |progress| match &progress.phase {
            Phase::New(_) | Phase::Short(_, None) | Phase::Ended => Ok(None),
            Phase::TakenOver(taker, None) => Ok(Some(taker.clone_ref(py))),
            Phase::Short(_, Some(_)) | Phase::TakenOver(_, Some(_)) | Phase::Stepping => Err(running()),
        });
        match taker? {
            Some(taker) => anext(taker.bind(py)),
            None => Ok(slf.into_any()),
        }
    }

    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.step(py, Resume::Send)
    }

    /// Resume the step that is awaited.
    fn send<'py>(&self, py: Python<'py>, _value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, Resume::Send)?.ok_or_else(|| PyErr::fetch(py))
    }

    /// Raise an exception in the step that is awaited.
    #[pyo3(signature = (*exception))]
    fn throw<'py>(&self, exception: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = exception.py();
        self.step(py, Resume::Throw(exception))?.ok_or_else(|| PyErr::fetch(py))
    }

    /// Close the step that is awaited.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let awaited = self.progress.with(py, |progress| match &mut progress.phase {
            Phase::Short(_, awaited) | Phase::TakenOver(_, awaited) => awaited.take(),
            _ => None,
        });
        awaited.map_or(Ok(()), |step| step.bind(py).call_method0(intern!(py, "close")).map(drop))
    }

    /// Do as `__anext__`.
    fn asend<'py>(slf: Bound<'py, Self>, _value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::__anext__(slf)
    }

    /// Close the tool, and raise the exception.
    #[pyo3(signature = (*exception))]
    fn athrow<'py>(&self, exception: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = exception.py();
        self.taken_over(py)?.call_method1(intern!(py, "athrow"), exception)
    }

    /// Close the tool.
    fn aclose<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.taken_over(py)?.call_method0(intern!(py, "aclose"))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.calls)?;
        visit.call(&self.view)?;
        visit.call(&self.request)?;
        let objects = |progress: &Progress| match &progress.phase {
            Phase::New(begin) => visit.call(&begin.state),
            Phase::Short(stream, awaited) | Phase::TakenOver(stream, awaited) => {
                visit.call(stream)?;
                visit.call(awaited)
            }
            Phase::Stepping | Phase::Ended => Ok(()),
        };
        self.progress.visit(&visit, objects).unwrap_or(Ok(()))
    }

    fn __clear__(&self, py: Python<'_>) {
        let phase = self.progress.with(py, |progress| mem::replace(&mut progress.phase, Phase::Ended));
        drop(phase);
    }
}

impl PyModelStream {
    /// One step of the call: an object that the event loop waits for. None if it has raised the end already, without a detour by
    /// `PyErr`: `StopIteration` with a chunk or the result, or `StopAsyncIteration`.
    fn step<'py>(&self, py: Python<'py>, mut resume: Resume<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut phase = self.begin_step(py)?;
        loop {
            let how = mem::replace(&mut resume, Resume::Send);
            phase = match phase {
                Phase::New(begin) => {
                    if let Resume::Throw(exception) = how {
                        self.end_step(py, Phase::New(begin));
                        return Err(raised(&exception));
                    }
                    match self.begin(py, &begin) {
                        Ok(stream) => Phase::Short(stream.unbind(), None),
                        Err(error) => self.take_over(py, None, Cause::Exception(error))?,
                    }
                }
                // Most calls are over with their one response, and have no need to say so by an exception.
                Phase::Short(stream, None) if is_stream(stream.bind(py)) && is_over(stream.bind(py)) => {
                    let result = self.result(py)?;
                    self.end_step(py, Phase::Ended);
                    return Ok(stop(result));
                }
                Phase::Short(stream, awaited) => {
                    let step = match awaited {
                        Some(step) => step.into_bound(py),
                        None => anext(stream.bind(py))?,
                    };
                    match how.on(&step) {
                        Sent::Yielded(waits) => {
                            self.end_step(py, Phase::Short(stream, Some(step.unbind())));
                            return Ok(Some(waits));
                        }
                        Sent::Returned(response) => match self.chunk(&response)? {
                            Some(chunk) => {
                                self.end_step(py, Phase::Short(stream, None));
                                return Ok(stop(chunk));
                            }
                            None => self.take_over(py, Some(stream), Cause::Response(response))?,
                        },
                        Sent::Raised(error) if error.is_instance_of::<PyStopAsyncIteration>(py) => {
                            let result = self.result(py)?;
                            self.end_step(py, Phase::Ended);
                            return Ok(stop(result));
                        }
                        Sent::Raised(error) => self.take_over(py, Some(stream), Cause::Exception(*error))?,
                    }
                }
                Phase::TakenOver(taker, awaited) => {
                    let step = match awaited {
                        Some(step) => step.into_bound(py),
                        None => anext(taker.bind(py))?,
                    };
                    let sent = how.on(&step);
                    let is_waiting = matches!(sent, Sent::Yielded(_));
                    self.end_step(py, Phase::TakenOver(taker, is_waiting.then(|| step.unbind())));
                    return match sent {
                        Sent::Yielded(waits) => Ok(Some(waits)),
                        Sent::Returned(item) => Ok(stop(item)),
                        Sent::Raised(error) => Err(*error),
                    };
                }
                Phase::Ended | Phase::Stepping => {
                    self.end_step(py, Phase::Ended);
                    raise_stop_async_iteration(py);
                    return Ok(None);
                }
            };
        }
    }

    fn begin_step(&self, py: Python<'_>) -> PyResult<Phase> {
        let phase = self.progress.with(py, |progress| mem::replace(&mut progress.phase, Phase::Stepping));
        if matches!(phase, Phase::Stepping) {
            return Err(running());
        }
        Ok(phase)
    }

    fn end_step(&self, py: Python<'_>, phase: Phase) {
        // What is replaced is `Stepping`, which holds no object.
        self.progress.with(py, |progress| progress.phase = phase);
    }

    /// The stream of the call.
    fn begin<'py>(&self, py: Python<'py>, begin: &Begin) -> PyResult<Bound<'py, PyAny>> {
        let calls = self.calls.get();
        if let Some(take_state) = &calls.take_state {
            // In the context in which the function begins.
            take_state.bind(py).call1((&begin.state,))?;
        }
        let (parse, text) = (calls.parse.bind(py), begin.arguments.bind(py));
        let arguments = match (parse.cast_exact::<PyArgumentParser>(), text.cast_exact::<PyString>()) {
            (Ok(parser), Ok(text)) => parser.get().parse(text)?,
            _ => parse.call1((text,))?,
        };
        let request = self.request.bind(py).clone();
        request.set_item(intern!(py, "input"), arguments)?;
        let origin = Origin::of(self.view.bind(py))?;
        object::new(py, || State::stream(origin, request.into_any()))
    }

    /// The chunk of a response that is a text and adds to what was sent; none of any other.
    fn chunk<'py>(&self, response: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = response.py();
        let Some(PlainText { text, mode, stream }) = PyToolResponse::plain_text(response) else { return Ok(None) };
        let is_first = self.progress.with(py, |progress| progress.sent.is_none());
        let is_taken = match mode {
            ChunkMode::Addition => true,
            ChunkMode::Result => is_first && !stream,
            ChunkMode::Progress => false,
        };
        if !is_taken {
            return Ok(None);
        }
        let models = self.models(py);
        let stamp = Stamp { id: models.id(py)?.unbind(), time: models.now.value(py, local_time)?.unbind() };
        let block = models.stamped_text(text.clone(), &stamp)?;
        self.progress.with(py, |progress| match &mut progress.sent {
            Some(sent) => sent.texts.push(text.unbind()),
            None => progress.sent = Some(SentText { stamp, texts: vec![text.unbind()] }),
        });
        models.chunk(PyList::new(py, [block])?).map(Some)
    }

    fn models<'a>(&'a self, py: Python<'a>) -> &'a PyResponseModels {
        self.calls.bind(py).get().models.bind(py).get()
    }

    /// The block of all texts that were sent.
    fn sum<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(SentText { stamp, texts }) = self.progress.with(py, |progress| progress.sent.take()) else {
            return Ok(None);
        };
        let text = match texts.as_slice() {
            [text] => text.bind(py).clone(),
            texts => PyString::intern(py, "").call_method1(intern!(py, "join"), (texts,))?.cast_into::<PyString>()?,
        };
        self.models(py).stamped_text(text, &stamp).map(Some)
    }

    /// The result of a call that has sent texts only, or nothing.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let id = self.request.bind(py).as_any().get_item(intern!(py, "id"))?;
        self.models(py).response(id, PyList::new(py, self.sum(py)?)?)
    }

    /// The object that takes the call over now, if none has.
    fn taken_over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let phase = match self.begin_step(py)? {
            taken @ Phase::TakenOver(..) => taken,
            Phase::Short(stream, _) => self.take_over(py, Some(stream), Cause::Asked)?,
            Phase::New(_) | Phase::Ended | Phase::Stepping => self.take_over(py, None, Cause::Asked)?,
        };
        let taker = match &phase {
            Phase::TakenOver(taker, _) => taker.bind(py).clone(),
            _ => py.None().into_bound(py),
        };
        self.end_step(py, phase);
        Ok(taker)
    }

    /// Gives the call to another object, with all that is known of it.
    fn take_over<'py>(&self, py: Python<'py>, stream: Option<Py<PyAny>>, cause: Cause<'py>) -> PyResult<Phase> {
        let (response, error) = match cause {
            Cause::Response(response) => (Some(response), None),
            Cause::Exception(error) => (None, Some(error.into_value(py))),
            Cause::Asked => (None, None),
        };
        let PyModelCalls { in_their_words, take_over, .. } = self.calls.get();
        let Self { view, request, is_confirmed, .. } = self;
        let known = (view, request, *is_confirmed, *in_their_words, stream, self.sum(py)?, response, error);
        Ok(Phase::TakenOver(take_over.bind(py).call1(known)?.unbind(), None))
    }
}

/// The mistake of stepping a stream from two places.
#[cold]
fn running() -> PyErr {
    PyRuntimeError::new_err("the stream is running already: await one step after another")
}

/// The exception that the arguments of `throw` name.
fn raised(exception: &Bound<'_, PyTuple>) -> PyErr {
    let value = exception.get_item(1).ok().filter(|value| !value.is_none());
    match value.map_or_else(|| exception.get_item(0), Ok) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Ends a step that gives an item.
fn stop(item: Bound<'_, PyAny>) -> Option<Bound<'_, PyAny>> {
    raise_stop_iteration(item);
    None
}
