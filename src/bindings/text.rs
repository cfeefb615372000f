//! `TextParser`: tool calls in the text of a model.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::tool::PyTool;
use super::tool_call::PyToolCall;
use super::view::ToolInView;
use crate::schema::Document;
use crate::text::{Find, Format, Parser, Piece, Report};

/// Read the tool calls in the text of a model, as it comes.
///
/// Args:
///     format: How the calls are written: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"`, `"react"`, or `"auto"`
///         for whichever the first call is written in.
///     tools: The toolkit or view whose tools are called; values are then read by their declared types, and guessed
///         otherwise.
///     compat: Whether XML is read as ArtifactFlow reads it: code fences do not count, values are guessed, and what is
///         wrong is dropped.
///     fallback: Whether compatible reading searches a block that is not XML for what looks like a call.
///
/// Raises:
///     ValueError: If `format` is unknown, or another than `"auto"` and `"xml"` is to be read in the compatible way.
///     TypeError: If `tools` is neither a toolkit nor a view.
///
/// Example:
///     parser = TextParser(tools=toolkit)
///     for piece in parser.feed(delta):
///         print(piece) if isinstance(piece, str) else calls.append(piece)
#[pyclass(name = "TextParser", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyTextParser {
    /// Taken out while it works, since looking for a tool may run any code.
    parser: Mutex<Option<Parser>>,
    tools: Option<Py<PyAny>>,
}

impl PyTextParser {
    fn with<T>(&self, work: impl FnOnce(&mut Parser) -> PyResult<T>) -> PyResult<T> {
        let Some(mut parser) = self.parser.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Err(PyRuntimeError::new_err("the parser is at work already, in another thread or further up"));
        };
        let done = work(&mut parser);
        *self.parser.lock().unwrap_or_else(PoisonError::into_inner) = Some(parser);
        done
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        step: impl FnOnce(&mut Parser, Option<&Find<'_>>) -> Vec<Piece>,
    ) -> PyResult<Bound<'py, PyList>> {
        let pieces =
            self.with(|parser| finding(self.tools.as_ref().map(|tools| tools.bind(py)), |find| step(parser, find)))?;
        let list = PyList::empty(py);
        for piece in pieces {
            match piece {
                Piece::Text(text) => list.append(text)?,
                Piece::Call(call) => list.append(Bound::new(py, PyToolCall { call })?)?,
            }
        }
        Ok(list)
    }
}

#[pymethods]
impl PyTextParser {
    #[new]
    #[pyo3(signature = (format="auto", tools=None, *, compat=false, fallback=true))]
    fn new(format: &str, tools: Option<&Bound<'_, PyAny>>, compat: bool, fallback: bool) -> PyResult<Self> {
        let parser = Parser::new(read_format(format, compat, fallback)?);
        Ok(Self { parser: Mutex::new(Some(parser)), tools: checked(tools)?.map(|tools| tools.clone().unbind()) })
    }

    /// Take the next piece of the message.
    ///
    /// Args:
    ///     text: What came; it may be cut anywhere.
    ///
    /// Returns:
    ///     What is certain by now, in order: prose, and calls that are complete. A call that cannot be read has an `error`.
    fn feed<'py>(&self, py: Python<'py>, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
        let text = text.to_string_lossy();
        self.step(py, |parser, find| parser.feed(&text, find))
    }

    /// End the message. What is fed afterwards is another one.
    ///
    /// Returns:
    ///     What is left. A call that the text ends in is one with an `error`.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.step(py, Parser::finish)
    }

    /// What has been found out about the message.
    ///
    /// Its `format` and `why` it is that one, `at` which line and column that was seen, how many `calls` there were, and how
    /// many were `passed_over` because they stand in code, quotes, thoughts or
    /// comments; `stopped` says why no more were looked for, if so.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.with(|parser| Ok(parser.report().clone()))?;
        report_to_python(py, &report)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tools)
    }
}

/// Find the tool calls in a whole text.
///
/// Args:
///     text: What the model wrote.
///     format: How the calls are written; see `TextParser`.
///     tools: The toolkit or view whose tools are called.
///     compat: Whether XML is read as ArtifactFlow reads it.
///     fallback: Whether compatible reading searches a block that is not XML for what looks like a call.
///
/// Returns:
///     The calls in order. One that cannot be read has an `error`.
///
/// Raises:
///     ValueError: If `format` is unknown, or another than `"auto"` and `"xml"` is to be read in the compatible way.
///     TypeError: If `tools` is neither a toolkit nor a view.
#[pyfunction]
#[pyo3(signature = (text, format="auto", tools=None, *, compat=false, fallback=true))]
fn parse_tool_calls<'py>(
    text: &Bound<'py, PyString>,
    format: &str,
    tools: Option<&Bound<'py, PyAny>>,
    compat: bool,
    fallback: bool,
) -> PyResult<Vec<PyToolCall>> {
    let format = read_format(format, compat, fallback)?;
    let text = text.to_string_lossy();
    let calls = finding(checked(tools)?, |find| crate::text::parse(&text, format, find))?;
    Ok(calls.into_iter().map(|call| PyToolCall { call }).collect())
}

fn read_format(word: &str, compat: bool, fallback: bool) -> PyResult<Format> {
    match Format::parse(word) {
        None => {
            let known = Format::WORDS.join(", ");
            Err(PyValueError::new_err(format!("format must be one of {known}, not '{word}'")))
        }
        Some(Format::Auto | Format::Xml) if compat => Ok(Format::ArtifactFlow { fallback }),
        Some(_) if compat => {
            Err(PyValueError::new_err(format!("only \"xml\" can be read in the compatible way, not '{word}'")))
        }
        Some(format) => Ok(format),
    }
}

/// What finds tools, as every toolkit and view has it.
fn finder(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "_find_tool")
}

/// The toolkit or view that somebody gave, if it is one.
pub(crate) fn checked<'a, 'py>(tools: Option<&'a Bound<'py, PyAny>>) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
    match tools.filter(|tools| !tools.is_none()) {
        Some(tools) if !tools.hasattr(finder(tools.py()))? => {
            let class = tools.get_type().name()?;
            Err(PyTypeError::new_err(format!("tools must be a Toolkit or a view of one, not {class}")))
        }
        tools => Ok(tools),
    }
}

/// Does something with a way to find the parameters of tools; what goes wrong in it is raised afterwards.
pub(crate) fn finding<T>(tools: Option<&Bound<'_, PyAny>>, work: impl FnOnce(Option<&Find<'_>>) -> T) -> PyResult<T> {
    let Some(tools) = tools else { return Ok(work(None)) };
    let failed = RefCell::new(None);
    let find = |name: &str| {
        parameters(tools, name).unwrap_or_else(|error| {
            failed.borrow_mut().get_or_insert(error);
            None
        })
    };
    let done = work(Some(&find));
    failed.into_inner().map_or(Ok(done), Err)
}

fn parameters(tools: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arc<Document>>> {
    let tool = tools.call_method1(finder(tools.py()), (name,))?;
    if tool.is_none() {
        return Ok(None);
    }
    let tool = match tool.cast::<ToolInView>() {
        Ok(shown) => shown.get().tool.bind(tool.py()).clone(),
        Err(_) => tool.cast_into::<PyTool>()?,
    };
    Ok(Some(Arc::clone(tool.get().schema.parameters())))
}

fn report_to_python<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("format", report.format)?;
    dict.set_item("why", report.why)?;
    dict.set_item("at", report.at.map(|place| (place.line, place.column)))?;
    dict.set_item("calls", report.calls)?;
    dict.set_item("passed_over", report.passed_over)?;
    dict.set_item("stopped", report.stopped)?;
    Ok(dict)
}

/// Adds the class and the function.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTextParser>()?;
    module.add_function(wrap_pyfunction!(parse_tool_calls, module)?)
}
