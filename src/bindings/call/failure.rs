//! Exceptions of a tool: the record in the log, and the response that describes them to the model.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};

use super::python::interpreter::is_builtin_class;
use super::request::Peeked;
use super::state::State;
use crate::bindings::imported::{FAILED_CALL, LOG_FAILURE, LOGGER, REDACTED_ERROR, loaded_module};
use crate::bindings::into_response::{bytes_text, class_of, display_text, error_text, field_names, unicode};
use crate::bindings::once::{GilOnce, intern};
use crate::bindings::parameters::class_name;
use crate::bindings::tool::{PyTool, ToolBody};
use crate::bindings::{errors, json, response};
use crate::call::{ErrorMode, Reply};
use crate::policy::mask;

/// The level of the records, `logging.WARNING`.
const WARNING: u8 = 30;

/// The depth to which presets are searched for texts.
const DEEPEST_PRESET: usize = 8;

impl State {
    /// Logs an exception of the tool, and makes the response that describes it. The second part is a stand-in for the
    /// exception, for reports, if its text has secrets.
    pub(super) fn failed<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        exception: &Bound<'py, PyAny>,
        is_late: bool,
    ) -> (PyResult<Bound<'py, PyAny>>, Option<PyErr>) {
        let message = without_preset_hint(py, tool, display_text(exception));
        let secrets = self.secret_texts(py, tool);
        let stand_in = redacted(exception, &message, &secrets);
        if errors::is_busy(exception) {
            return (response::failed(py, Reply::Busy { tool: tool.name.to_string() }, exception.clone()), None);
        }
        // A mistake of the model is its own to correct.
        if !errors::is_mistake(exception) {
            self.log(py, tool, stand_in.as_ref().unwrap_or(exception), self.source());
        }
        let reply = match self.formatted(py, tool, exception, &secrets) {
            Some(reply) => reply,
            None if tool.body == ToolBody::Agent => agent_failure(tool, exception, masked(message, &secrets)),
            None => reply_to(tool.errors, exception, masked(message, &secrets), is_late),
        };
        (response::failed(py, reply, exception.clone()), stand_in.map(PyErr::from_value))
    }

    /// Logs an exception of the tool that is raised to the consumer of the stream.
    #[cold]
    pub(super) fn log_raised(&self, py: Python<'_>, tool: &PyTool, error: &PyErr) {
        let exception = error.clone_ref(py).into_value(py).into_bound(py).into_any();
        if errors::is_busy(&exception) {
            return; // the pool has logged it once for all calls
        }
        let mark = intern!(py, "__toolcrib_logged__");
        // The layers around a tool raise its exception once more.
        if (self.is_layer() && exception.hasattr(mark).unwrap_or(false)) || errors::is_mistake(&exception) {
            return;
        }
        let stand_in = redacted(&exception, &error_text(py, error), &self.secret_texts(py, tool));
        self.log(py, tool, stand_in.as_ref().unwrap_or(&exception), self.source());
        // An exception that takes no attributes is logged by every layer.
        let _ = exception.setattr(mark, true);
    }

    /// Writes the record. Python's logging formats the traceback, and only if a handler wants it.
    fn log(&self, py: Python<'_>, tool: &PyTool, exception: &Bound<'_, PyAny>, source: &str) {
        let write = || {
            if !is_logged(py)? {
                return Ok(());
            }
            let (name, id) = self.identity(py, tool);
            LOG_FAILURE.get(py)?.call1((exception, source, name, id)).map(drop)
        };
        if let Err(error) = write() {
            error.write_unraisable(py, None);
        }
    }

    /// The words for the code that raises exceptions here.
    fn source(&self) -> &'static str {
        if self.is_layer() { "a middleware of tool" } else { "tool" }
    }

    /// The name of the tool that is called, also in a layer around it, and the id of the call.
    fn identity(&self, py: Python<'_>, tool: &PyTool) -> (String, String) {
        let info = self.info(py);
        let named = info.tool.as_deref().filter(|_| self.is_layer()).unwrap_or(&tool.name);
        (named.to_owned(), info.id.clone())
    }

    /// The reply of the toolkit's error formatter, if there is one.
    fn formatted(
        &self,
        py: Python<'_>,
        tool: &PyTool,
        exception: &Bound<'_, PyAny>,
        secrets: &[String],
    ) -> Option<Reply> {
        let permissions = self.permissions_of_layer(py);
        let permissions = permissions.as_ref().map_or(&tool.permissions, |permissions| permissions.as_unbound());
        let formatter = permissions.get().error_formatter(py)?;
        let (name, id) = self.identity(py, tool);
        let format = || {
            let call = FAILED_CALL.get(py)?.call1((&name, id, self.caller(py).as_deref()))?;
            let text = formatter.call1((exception, call))?;
            let text = text.cast::<PyString>().map_err(|_| {
                PyTypeError::new_err(format!("error_formatter must return a string, not {}", class_name(&text)))
            })?;
            Ok::<_, PyErr>(unicode(text).into_owned())
        };
        Some(match format() {
            Ok(text) => Reply::Raised { text: masked(text, secrets) },
            Err(error) => {
                self.log(py, tool, error.into_value(py).bind(py).as_any(), "the error_formatter of tool");
                Reply::undescribed(&name)
            }
        })
    }

    /// The texts that the description of an exception must not have: presets, and secret arguments. AgentScope shows presets.
    fn secret_texts(&self, py: Python<'_>, tool: &PyTool) -> Vec<String> {
        let secrets = &tool.traits.secrets;
        let mut texts = Vec::new();
        if let Some(presets) = &tool.presets {
            for (name, value) in json::entries_of(presets.bind(py)) {
                let is_secret = || secrets.iter().any(|secret| name.eq(&**secret).unwrap_or(false));
                if tool.errors != ErrorMode::Compat || is_secret() {
                    collect_texts(&value, &mut texts, DEEPEST_PRESET);
                }
            }
        }
        if !secrets.is_empty()
            && let Some(sent) = Peeked::arguments(py, self)
            && let Ok(sent) = json::value_from_python(&sent)
        {
            let sent = sent.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(sent);
            texts.extend(tool.plan.redaction().secret_texts(&sent));
        }
        texts
    }
}

/// The message of an exception without Python's hint at a parameter, if that is preset: the model must not learn its name.
fn without_preset_hint(py: Python<'_>, tool: &PyTool, message: String) -> String {
    let Some(presets) = tool.presets.as_ref().filter(|_| tool.errors != ErrorMode::Compat) else { return message };
    // From Python 3.13 on, the refusal of an unknown keyword ends in this way.
    match message.strip_suffix("'?").and_then(|text| text.rsplit_once(". Did you mean '")) {
        Some((refusal, name)) if presets.bind(py).contains(name).unwrap_or(true) => refusal.to_owned(),
        _ => message,
    }
}

/// True if the logger accepts records of this level. It keeps its answers in a dict, which is read here without its own code.
fn is_logged(py: Python<'_>) -> PyResult<bool> {
    // The same dict for the life of a logger, which is cleared when a level changes.
    static ANSWERS: GilOnce<Option<Py<PyDict>>> = GilOnce::new();
    let (logger, level) = (LOGGER.get(py)?, WARNING.into_pyobject(py)?);
    let answers = ANSWERS.get_or_try_init(py, || {
        let answers = logger.getattr_opt(intern!(py, "_cache"))?;
        PyResult::Ok(answers.and_then(|answers| answers.cast_into::<PyDict>().ok()).map(Bound::unbind))
    })?;
    let cached = answers.as_ref().map_or(Ok(None), |answers| answers.bind(py).get_item(&level))?;
    match cached {
        Some(answer) => Ok(answer.is_truthy()? && !logger.getattr(intern!(py, "disabled"))?.is_truthy()?),
        None => logger.call_method1(intern!(py, "isEnabledFor"), (level,))?.is_truthy(),
    }
}

/// The reply to an exception in the run of an agent.
fn agent_failure(tool: &PyTool, exception: &Bound<'_, PyAny>, message: String) -> Reply {
    let message = if message.is_empty() { class_of(exception).to_string() } else { message };
    Reply::AgentFailed { agent: tool.name.to_string(), message }
}

/// The reply to an exception with this message. AgentScope's answers are kept to the letter.
fn reply_to(mode: ErrorMode, exception: &Bound<'_, PyAny>, message: String, is_late: bool) -> Reply {
    // Neither the MCP SDK's error nor that of native tools is a class of the interpreter's own.
    let is_builtin = is_builtin_class(exception);
    if !is_builtin && is_mcp_error(exception) {
        Reply::McpFailed { message }
    } else if mode == ErrorMode::Compat && is_late {
        Reply::FailedInBackground { message }
    } else if mode == ErrorMode::Compat || (!is_builtin && errors::is_native(exception)) {
        Reply::Failed { message }
    } else {
        let class = class_of(exception);
        let class = class.to_string_lossy();
        // The message of an exception that cannot be written is the name of its class.
        Reply::raised(&class, if message == class { "" } else { &message })
    }
}

fn masked(text: String, secrets: &[String]) -> String {
    if secrets.is_empty() { text } else { mask(&text, secrets) }
}

/// An exception of the same class name whose message has no secrets; `None` if the message of this one has none.
fn redacted<'py>(exception: &Bound<'py, PyAny>, message: &str, secrets: &[String]) -> Option<Bound<'py, PyAny>> {
    if secrets.is_empty() {
        return None;
    }
    let shown = mask(message, secrets);
    if shown == message {
        return None;
    }
    let stand_in = REDACTED_ERROR.get(exception.py()).and_then(|redacted| redacted.call1((exception, shown)));
    stand_in.map_err(|error| error.write_unraisable(exception.py(), None)).ok()
}

/// Collects the texts and numbers in a preset, and the texts that Python writes for its objects.
pub(super) fn collect_texts(value: &Bound<'_, PyAny>, texts: &mut Vec<String>, depth: usize) {
    if depth == 0 || value.is_instance_of::<PyBool>() {
    } else if let Ok(text) = value.cast::<PyString>() {
        texts.push(unicode(text).into_owned());
    } else if let Some(bytes) = bytes_text(value) {
        texts.push(bytes);
    } else if value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>() {
        texts.extend(value.str().ok().map(|text| text.to_string_lossy().into_owned()));
    } else if let Ok(dict) = value.cast::<PyDict>() {
        for (_, value) in json::entries_of(dict) {
            collect_texts(&value, texts, depth - 1);
        }
    } else if value.is_exact_instance_of::<PyList>()
        || value.is_exact_instance_of::<PyTuple>()
        || value.is_exact_instance_of::<PySet>()
        || value.is_exact_instance_of::<PyFrozenSet>()
    {
        let items = value.try_iter().into_iter().flatten().flatten();
        items.for_each(|item| collect_texts(&item, texts, depth - 1));
    } else if !value.is_none() {
        collect_object_texts(value, texts, depth);
    }
}

/// Collects the texts of an object: as `str` and `repr` write it, the value of an enumeration, the fields of a record, and the
/// content of pydantic's `SecretStr` and its kin.
fn collect_object_texts(value: &Bound<'_, PyAny>, texts: &mut Vec<String>, depth: usize) {
    let (py, class) = (value.py(), value.get_type());
    // An object that cannot be written is in no text.
    let written = [value.str(), value.repr()].into_iter().flatten();
    texts.extend(written.map(|text| unicode(&text).into_owned()));
    let part = |part: PyResult<Bound<'_, PyAny>>, texts: &mut Vec<String>| {
        if let Ok(part) = part {
            collect_texts(&part, texts, depth - 1);
        }
    };
    if class.hasattr(intern!(py, "__members__")).unwrap_or(false) {
        part(value.getattr(intern!(py, "value")), texts);
    } else if class.hasattr(intern!(py, "get_secret_value")).unwrap_or(false) {
        part(value.call_method0(intern!(py, "get_secret_value")), texts);
    } else if class.hasattr(intern!(py, "__pydantic_fields__")).unwrap_or(false) {
        part(value.getattr(intern!(py, "__dict__")), texts);
    } else {
        let names = field_names(&class).ok().flatten().unwrap_or_default();
        for name in names {
            part(value.getattr(name), texts);
        }
    }
}

/// True for the error of the MCP SDK, if the program uses that, which says that a server answered with an error.
fn is_mcp_error(exception: &Bound<'_, PyAny>) -> bool {
    let py = exception.py();
    let is_one = || {
        let Some(exceptions) = loaded_module(py, intern!(py, "mcp.shared.exceptions"))? else { return Ok(false) };
        // The name in version 1, and that in version 2.
        let class =
            exceptions.getattr(intern!(py, "McpError")).or_else(|_| exceptions.getattr(intern!(py, "MCPError")));
        exception.is_instance(&class?)
    };
    is_one().unwrap_or(false)
}
