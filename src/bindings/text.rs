//! Text for and from models: `TextParser`, instructions, and results.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::{Map, Value};

use super::imported::ARTIFACTFLOW_STREAM;
use super::into_response::as_json;
use super::json;
use super::parameters::{Omittable, flag, optional_text, string};
use super::response::{PyToolResponse, shown_value};
use super::tool::PyTool;
use super::tool_call::{PyToolCall, read_object};
use super::view::ToolInView;
use crate::bindings::once::intern;
use crate::schema::{Document, FunctionSchema};
use crate::text::instructions::{self, ToolDescription, frame, write_call};
use crate::text::result::{self, CallResult};
use crate::text::{CallFormat, FindParameters, ParseReport, Parser, TextFormat, TextPiece};

/// Parse the tool calls in a model's text while it arrives.
///
/// Args:
///     format: The format of the calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"`, `"react"`, or `"auto"`
///         for the format of the first call.
///     tools: The toolkit or view whose tools are called. Their schemas declare the types of values; without them, types
///         are guessed.
///     compat: Whether XML is parsed as ArtifactFlow does: code fences are not recognised, types are guessed, and
///         invalid calls are dropped. See `toolcrib.compat.artifactflow`.
///     fallback: Whether, with `compat`, a block that is not well-formed XML is searched for a call.
///
/// Raises:
///     ValueError: If `format` is unknown, or is neither `"auto"` nor `"xml"` with `compat`.
///     TypeError: If `tools` is neither a toolkit nor a view.
///
/// Example:
///     parser = TextParser(tools=toolkit)
///     for piece in parser.feed(delta):
///         print(piece) if isinstance(piece, str) else calls.append(piece)
#[pyclass(name = "TextParser", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyTextParser {
    parser: AnyParser,
    tools: Option<Py<PyAny>>,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each Python object")]
enum AnyParser {
    /// Taken out while it works, because looking up a tool may run any code.
    Native(Mutex<Option<Parser>>),
    /// The Python object that parses as ArtifactFlow does.
    Compat(Py<PyAny>),
}

impl PyTextParser {
    fn with<T>(parser: &Mutex<Option<Parser>>, work: impl FnOnce(&mut Parser) -> PyResult<T>) -> PyResult<T> {
        let Some(mut taken) = parser.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Err(PyRuntimeError::new_err("the parser is at work already, in another thread or further up"));
        };
        let done = work(&mut taken);
        *parser.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
        done
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        parser: &Mutex<Option<Parser>>,
        step: impl FnOnce(&mut Parser, Option<&FindParameters<'_>>) -> Vec<TextPiece>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tools = self.tools.as_ref().map(|tools| tools.bind(py));
        let pieces = Self::with(parser, |parser| with_tools(tools, |find| step(parser, find)))?;
        let list = PyList::empty(py);
        for piece in pieces {
            match piece {
                TextPiece::Text(text) => list.append(text)?,
                TextPiece::Call(call) => list.append(Bound::new(py, PyToolCall { call })?)?,
            }
        }
        Ok(list.into_any())
    }
}

#[pymethods]
impl PyTextParser {
    #[new]
    #[pyo3(
        signature = (format=Omittable(None), tools=None, *, compat=Omittable(None), fallback=Omittable(None)),
        text_signature = "(format='auto', tools=None, *, compat=False, fallback=True)"
    )]
    fn new<'py>(
        py: Python<'py>,
        format: Omittable<'py>,
        tools: Option<&Bound<'py, PyAny>>,
        compat: Omittable<'py>,
        fallback: Omittable<'py>,
    ) -> PyResult<Self> {
        let (compat, fallback) = (flag("compat", &compat, false)?, flag("fallback", &fallback, true)?);
        let format = optional_text("format", format.0.as_ref())?;
        let format = text_format(format.as_deref().unwrap_or("auto"), compat)?;
        let parser = if compat {
            AnyParser::Compat(ARTIFACTFLOW_STREAM.get(py)?.call1((fallback,))?.unbind())
        } else {
            AnyParser::Native(Mutex::new(Some(Parser::new(format))))
        };
        Ok(Self { parser, tools: check_tools(tools)?.map(|tools| tools.clone().unbind()) })
    }

    /// Add the next piece of the message.
    ///
    /// Args:
    ///     text: The piece; the message may be cut anywhere.
    ///
    /// Returns:
    ///     The prose and the complete calls so far, in order. A call that cannot be parsed has an `error`.
    fn feed<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = string("text", text)?.to_string_lossy();
        match &self.parser {
            AnyParser::Native(parser) => self.step(py, parser, |parser, find| parser.feed(&text, find)),
            AnyParser::Compat(parser) => parser.bind(py).call_method1(intern!(py, "feed"), (text,)),
        }
    }

    /// End the message. The next piece begins another one.
    ///
    /// Returns:
    ///     The rest of the message. A call in which the text ends has an `error`.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.parser {
            AnyParser::Native(parser) => self.step(py, parser, Parser::finish),
            AnyParser::Compat(parser) => parser.bind(py).call_method0(intern!(py, "finish")),
        }
    }

    /// The format of the message, and a summary of its calls.
    ///
    /// The `format` and `why` it is that one, the line and column `at` which that was seen, the number of `calls`, and the
    /// number that were `passed_over` because they are in code, quotes, thoughts or comments; the number in `other_formats`,
    /// which were left in the text; `stopped` is the reason why no more were looked for.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.parser {
            AnyParser::Native(parser) => {
                let report = Self::with(parser, |parser| Ok(parser.report().clone()))?;
                report_to_python(py, &report).map(Bound::into_any)
            }
            AnyParser::Compat(parser) => parser.bind(py).getattr(intern!(py, "report")),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let AnyParser::Compat(parser) = &self.parser {
            visit.call(parser)?;
        }
        visit.call(&self.tools)
    }
}

/// Find the tool calls in a whole text.
///
/// Args:
///     text: The model's output.
///     format: The format of the calls; see `TextParser`.
///     tools: The toolkit or view whose tools are called.
///     compat: Whether XML is parsed as ArtifactFlow does.
///     fallback: Whether, with `compat`, a block that is not well-formed XML is searched for a call.
///
/// Returns:
///     The calls in order. One that cannot be parsed has an `error`.
///
/// Raises:
///     ValueError: If `format` is unknown, or is neither `"auto"` nor `"xml"` with `compat`.
///     TypeError: If `tools` is neither a toolkit nor a view.
#[pyfunction]
#[pyo3(
    signature = (text, format=Omittable(None), tools=None, *, compat=Omittable(None), fallback=Omittable(None)),
    text_signature = "(text, format='auto', tools=None, *, compat=False, fallback=True)"
)]
fn parse_tool_calls<'py>(
    text: &Bound<'py, PyAny>,
    format: Omittable<'py>,
    tools: Option<&Bound<'py, PyAny>>,
    compat: Omittable<'py>,
    fallback: Omittable<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let py = text.py();
    let parser = PyTextParser::new(py, format, tools, compat, fallback)?;
    let calls = PyList::empty(py);
    for pieces in [parser.feed(py, text)?, parser.finish(py)?] {
        for piece in pieces.try_iter()? {
            let piece = piece?;
            if piece.is_instance_of::<PyToolCall>() {
                calls.append(piece)?;
            }
        }
    }
    Ok(calls)
}

/// The format of a name; `None` for any.
fn text_format(name: &str, compat: bool) -> PyResult<Option<TextFormat>> {
    match CallFormat::parse(name) {
        Some(CallFormat::Text(None | Some(TextFormat::Xml))) if compat => Ok(Some(TextFormat::Xml)),
        Some(CallFormat::Text(_)) if compat => {
            Err(PyValueError::new_err(format!("only \"xml\" can be read in the compatible way, not '{name}'")))
        }
        Some(CallFormat::Text(format)) => Ok(format),
        _ => {
            let known = text_format_names().join(", ");
            Err(PyValueError::new_err(format!("format must be one of {known}, not '{name}'")))
        }
    }
}

/// The names of the text formats, with `auto`.
pub(crate) fn text_format_names() -> Vec<&'static str> {
    ["auto"].into_iter().chain(TextFormat::ALL.map(TextFormat::as_str)).collect()
}

/// The name of the method of toolkits and views that finds a tool.
fn finder(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "_find_tool")
}

/// Checks that an argument is a toolkit or a view.
pub(crate) fn check_tools<'a, 'py>(tools: Option<&'a Bound<'py, PyAny>>) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
    match tools.filter(|tools| !tools.is_none()) {
        Some(tools) if !tools.hasattr(finder(tools.py()))? => {
            let class = tools.get_type().name()?;
            Err(PyTypeError::new_err(format!("tools must be a Toolkit or a view of one, not {class}")))
        }
        tools => Ok(tools),
    }
}

/// Calls a function with a lookup of the parameters of tools. An exception of the lookup is raised afterwards.
pub(crate) fn with_tools<T>(
    tools: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Option<&FindParameters<'_>>) -> T,
) -> PyResult<T> {
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

fn report_to_python<'py>(py: Python<'py>, report: &ParseReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("format", report.format)?;
    dict.set_item("why", report.why)?;
    dict.set_item("at", report.at.map(|place| (place.line, place.column)))?;
    dict.set_item("calls", report.calls)?;
    dict.set_item("passed_over", report.passed_over)?;
    dict.set_item("other_formats", report.other_formats)?;
    dict.set_item("stopped", report.stopped)?;
    Ok(dict)
}

/// The format of a name.
pub(crate) fn parse_format(name: &str) -> PyResult<TextFormat> {
    TextFormat::parse(name).ok_or_else(|| {
        let names = TextFormat::ALL.map(|format| format!("'{}'", format.as_str())).join(", ");
        PyValueError::new_err(format!("format must be one of {names}, not '{name}'"))
    })
}

/// Writes the instructions for tools with these names and schemas.
pub(crate) fn write_instructions(format: TextFormat, tools: &[(Arc<str>, Arc<FunctionSchema>)]) -> String {
    let descriptions: Vec<String> = tools.iter().map(|(_, schema)| schema.description().unwrap_or_default()).collect();
    let described: Vec<ToolDescription<'_>> = tools
        .iter()
        .zip(&descriptions)
        .map(|((name, schema), description)| ToolDescription { name, description, parameters: schema.parameters() })
        .collect();
    instructions::instructions(format, &described)
}

/// Write the result of a call for a model.
///
/// Args:
///     name: The tool's name.
///     result: A `ToolResponse`, or a dictionary with `success`, `data` and `error`, of which each may be missing.
///     format: The format of the model's calls, which has its own form of results.
///
/// Raises:
///     TypeError: If `result` is neither.
///     ValueError: If `format` is unknown.
#[pyfunction]
#[pyo3(signature = (name, result, *, format="xml"))]
fn format_tool_result(name: &str, result: &Bound<'_, PyAny>, format: &str) -> PyResult<String> {
    let format = parse_format(format)?;
    let (success, data, error) = read_result(result)?;
    Ok(result::format_tool_result(format, name, &CallResult { success, data: data.as_ref(), error: error.as_deref() }))
}

#[pymethods]
impl PyToolResponse {
    /// Write the element `tool_result` for a model that writes its calls in XML; see `format_tool_result`.
    ///
    /// Args:
    ///     call: The call of this response, in any format.
    ///     name: The tool's name, if `call` does not have it.
    ///
    /// Raises:
    ///     TypeError: If neither gives the tool's name.
    #[pyo3(signature = (call=None, *, name=None))]
    fn to_xml(slf: &Bound<'_, Self>, call: Option<&Bound<'_, PyAny>>, name: Option<String>) -> PyResult<String> {
        let called = match (&name, call) {
            (None, Some(call)) => match call.cast::<PyToolCall>() {
                Ok(call) => Some(call.get().call.name.clone()),
                Err(_) if json::may_be_call(call) => Some(read_object(call, None)?.name),
                Err(_) => None,
            },
            _ => None,
        };
        let Some(name) = name.or(called).filter(|name| !name.is_empty()) else {
            return Err(PyTypeError::new_err("to_xml needs the call that the response answers, or the tool's name"));
        };
        format_tool_result(&name, slf.as_any(), TextFormat::Xml.as_str())
    }
}

/// The success, data and error of a response or a dictionary.
fn read_result(result: &Bound<'_, PyAny>) -> PyResult<(bool, Option<Value>, Option<String>)> {
    let py = result.py();
    if result.is_instance_of::<PyToolResponse>() {
        let text = shown_text(result)?;
        if !result.getattr(intern!(py, "ok"))?.is_truthy()? {
            return Ok((false, None, Some(text)));
        }
        let metadata = result.getattr(intern!(py, "metadata"))?;
        let value = match metadata.cast::<PyDict>() {
            Ok(metadata) => shown_value(metadata)?,
            Err(_) => None,
        };
        return Ok((true, Some(value.map_or(Value::String(text), |value| as_json(&value))), None));
    }
    let Ok(result) = result.cast::<PyDict>() else {
        let class = result.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!(
            "a result must be a ToolResponse, or a dictionary with success, data and error, not {class}"
        )));
    };
    let truth = |value: Option<Bound<'_, PyAny>>| value.map_or(Ok(false), |value| value.is_truthy());
    let error = result.get_item(intern!(py, "error"))?;
    let has_error = truth(error.clone())?;
    let error = error.filter(|_| has_error).map(|error| error.str().map(|text| text.to_string_lossy().into_owned()));
    let data = result.get_item(intern!(py, "data"))?.filter(|data| !data.is_none());
    Ok((truth(result.get_item(intern!(py, "success"))?)?, data.map(|data| as_json(&data)), error.transpose()?))
}

/// The text of a response. A block without text is shown by its type.
fn shown_text(response: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = response.py();
    let content = response.getattr(intern!(py, "content"))?;
    if let Ok(text) = content.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    let mut lines = Vec::new();
    for block in content.try_iter()? {
        let block = block?;
        let Ok(block) = block.cast::<PyDict>() else { continue };
        if let Some(text) = block.get_item(intern!(py, "text"))? {
            lines.push(text.str()?.to_string_lossy().into_owned());
        } else if let Some(kind) = block.get_item(intern!(py, "type"))? {
            lines.push(format!("[{}]", kind.str()?.to_string_lossy()));
        }
    }
    Ok(lines.join("\n"))
}

/// Write the instructions around the documentation of each tool.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
fn _frame_instructions(format: &str, documents: Vec<String>) -> PyResult<String> {
    Ok(frame(parse_format(format)?, &documents, false))
}

/// Write a call in a format.
#[pyfunction]
fn _write_call(format: &str, name: &str, arguments: &Bound<'_, PyDict>) -> PyResult<String> {
    let arguments: Map<String, Value> = match json::value_from_python(arguments.as_any())? {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    Ok(write_call(parse_format(format)?, name, &arguments))
}

/// Adds the class and the functions; those with an underscore are for `toolcrib.compat` and not public.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTextParser>()?;
    module.add_function(wrap_pyfunction!(parse_tool_calls, module)?)?;
    module.add_function(wrap_pyfunction!(format_tool_result, module)?)?;
    module.setattr("_frame_instructions", wrap_pyfunction!(_frame_instructions, module)?)?;
    module.setattr("_write_call", wrap_pyfunction!(_write_call, module)?)
}
