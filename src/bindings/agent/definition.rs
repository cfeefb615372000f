//! `AgentDefinition`, an agent as data, with its limits and its prompt.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::{Map, Value};

use super::input::{PyAgentInput, as_dict, read_inputs};
use super::output::PyAgentOutput;
use crate::agent::{AgentDefinition, AgentFile, AgentLimits, AgentParts, AgentPrompt, Inputs, LIMIT_TIME, LIMIT_TURNS};
use crate::bindings::json;
use crate::bindings::parameters::{
    Omittable, class_name, flag, optional_instance, optional_name_list, optional_text, text,
};
use crate::bindings::view::PyToolkitView;
use crate::store::Disk;

/// The limits of one run of an agent; None is without limit.
///
/// Args:
///     turns: The most requests to its model.
///     time: The longest time, in seconds.
///     tokens: The most tokens.
#[pyclass(name = "AgentLimits", module = "toolcrib", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyAgentLimits(pub(crate) AgentLimits);

#[pymethods]
impl PyAgentLimits {
    #[new]
    #[pyo3(
        signature = (turns=Some(LIMIT_TURNS.into()), time=Some(LIMIT_TIME.as_secs_f64()), tokens=None),
        text_signature = "(turns=30, time=600.0, tokens=None)"
    )]
    fn new(turns: Option<i64>, time: Option<f64>, tokens: Option<i64>) -> PyResult<Self> {
        let refused = |name: &str, expected: &str, found: String| {
            PyValueError::new_err(format!("invalid `{name}`: expected {expected}, got {found}"))
        };
        let count = |name: &str, number: i64| {
            u64::try_from(number)
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(|| refused(name, "an integer >= 1", number.to_string()))
        };
        let turns = turns.map(|turns| count("turns", turns)).transpose()?;
        let time = match time {
            Some(seconds) => {
                let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
                Some(time.ok_or_else(|| refused("time", "a number of seconds > 0", seconds.to_string()))?)
            }
            None => None,
        };
        Ok(Self(AgentLimits {
            turns: turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            time,
            tokens: tokens.map(|tokens| count("tokens", tokens)).transpose()?,
        }))
    }

    /// The most requests to its model.
    #[getter]
    fn turns(&self) -> Option<u32> {
        self.0.turns
    }

    /// The longest time, in seconds.
    #[getter]
    fn time(&self) -> Option<f64> {
        self.0.time.map(|time| time.as_secs_f64())
    }

    /// The most tokens.
    #[getter]
    fn tokens(&self) -> Option<u64> {
        self.0.tokens
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let field = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        Ok(format!("AgentLimits(turns={}, time={}, tokens={})", field("turns")?, field("time")?, field("tokens")?))
    }
}

/// The prompt of an agent for given inputs.
#[pyclass(name = "AgentPrompt", module = "toolcrib", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyAgentPrompt(AgentPrompt);

#[pymethods]
impl PyAgentPrompt {
    /// The system prompt, if there is one.
    #[getter]
    fn system_prompt(&self) -> Option<&str> {
        self.0.system_prompt.as_deref()
    }

    /// The first message of the user.
    #[getter]
    fn query(&self) -> &str {
        &self.0.query
    }

    /// The messages before it, as a copy.
    #[getter]
    fn initial_messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        messages(py, self.0.initial_messages.iter())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let field = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        let (system, query, initial) = (field("system_prompt")?, field("query")?, field("initial_messages")?);
        Ok(format!("AgentPrompt(system_prompt={system}, query={query}, initial_messages={initial})"))
    }
}

fn messages<'a, 'py>(
    py: Python<'py>,
    messages: impl ExactSizeIterator<Item = &'a Value>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, messages.map(|message| json::to_python(py, message)).collect::<PyResult<Vec<_>>>()?)
}

/// An agent as data: what the calling model sees of it, its prompt, its tools, its output and its limits.
///
/// Args:
///     name: The name of the tool that the calling model sees.
///     description: The description for the calling model.
///     display_name: The name for people; the name if it is None.
///     inputs: A mapping of names to `AgentInput` or a dict with the same keys, a JSON Schema with `"type": "object"`, or a
///         pydantic model.
///     system_prompt: The system prompt, in which `${name}` stands for an input.
///     query: The first message of the user, with the same placeholders; `"Get Started!"` if it is None.
///     initial_messages: Messages before it, with the same placeholders.
///     tools: The names of the tools that it may use.
///     groups: The groups whose tools it may use.
///     view: A view whose tools it may use.
///     output: The value that it has to give.
///     limits: The limits of one run.
///     model: Its model: a name or a model function.
///     lenient: Treat an input of an unknown type as a string.
///
/// Raises:
///     AgentDefinitionError: If a field is missing or invalid, or an input has an unknown type.
///     InvalidSchemaError: If a JSON Schema is invalid.
#[pyclass(name = "AgentDefinition", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyAgentDefinition {
    definition: Arc<AgentDefinition>,
    inputs: Inputs,
    view: Option<Py<PyToolkitView>>,
    output: Option<Py<PyAgentOutput>>,
    model: Option<Py<PyAny>>,
    lenient: bool,
}

impl PyAgentDefinition {
    /// The definition without its Python objects.
    #[allow(dead_code, reason = "the runner of agents reads it")]
    pub(crate) fn definition(&self) -> &Arc<AgentDefinition> {
        &self.definition
    }

    /// The definition in a file.
    pub(super) fn of_file(py: Python<'_>, file: AgentFile) -> PyResult<Self> {
        let AgentFile { definition, inputs, lenient, .. } = file;
        let output = definition.output().map(|output| Py::new(py, PyAgentOutput::of_file(output.clone())));
        let model = definition.model().map(|model| model.into_pyobject(py).map(|model| model.into_any().unbind()));
        let (output, model) = (output.transpose()?, model.transpose()?);
        Ok(Self { definition: Arc::new(definition), inputs, view: None, output, model, lenient })
    }
}

#[pymethods]
impl PyAgentDefinition {
    #[new]
    #[pyo3(
        signature = (
            name, description, *, display_name=None, inputs=None, system_prompt=None, query=None, initial_messages=None,
            tools=None, groups=None, view=None, output=None, limits=None, model=None, lenient=Omittable(None)
        ),
        text_signature = "(name, description, *, display_name=None, inputs=None, system_prompt=None, query=None, \
                          initial_messages=(), tools=(), groups=(), view=None, output=None, limits=None, model=None, \
                          lenient=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the fields of a definition")]
    fn new(
        name: &Bound<'_, PyAny>,
        description: &Bound<'_, PyAny>,
        display_name: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyAny>>,
        system_prompt: Option<&Bound<'_, PyAny>>,
        query: Option<&Bound<'_, PyAny>>,
        initial_messages: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
        view: Option<&Bound<'_, PyAny>>,
        output: Option<&Bound<'_, PyAny>>,
        limits: Option<&Bound<'_, PyAny>>,
        model: Option<Bound<'_, PyAny>>,
        lenient: Omittable<'_>,
    ) -> PyResult<Self> {
        let inputs = inputs.map_or_else(|| Ok(Inputs::default()), read_inputs)?;
        let lenient = flag("lenient", &lenient, false)?;
        let output = optional_instance::<PyAgentOutput>("output", output)?;
        let limits = optional_instance::<PyAgentLimits>("limits", limits)?;
        let messages = match initial_messages {
            Some(messages) => read_messages(messages)?,
            None => Vec::new(),
        };
        let parts = AgentParts {
            name: text("name", name)?,
            description: text("description", description)?,
            display_name: optional_text("display_name", display_name)?,
            inputs: inputs.clone(),
            system_prompt: optional_text("system_prompt", system_prompt)?,
            query: optional_text("query", query)?,
            initial_messages: messages,
            tools: optional_name_list("tools", tools)?.unwrap_or_default(),
            groups: optional_name_list("groups", groups)?.unwrap_or_default(),
            output: output.as_ref().map(|output| output.get().output.clone()),
            limits: limits.map_or_else(AgentLimits::default, |limits| limits.get().0),
            model: model.as_ref().and_then(|model| model.extract().ok()),
            lenient,
        };
        Ok(Self {
            definition: Arc::new(AgentDefinition::new(parts)?),
            inputs,
            view: optional_instance("view", view)?,
            output,
            model: model.map(Bound::unbind),
            lenient,
        })
    }

    /// Read a definition from a Markdown file: its fields as YAML front matter, and the system prompt below it.
    ///
    /// Raises:
    ///     AgentFileError: If the file does not hold a valid definition.
    ///     FileAccessError: If it cannot be read; `MissingFileError` if it does not exist.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        let file = py.detach(|| AgentFile::read(&Disk, &path))?;
        Self::of_file(py, file)
    }

    /// The name of the tool that the calling model sees.
    #[getter]
    fn name(&self) -> &str {
        self.definition.name()
    }

    /// The description for the calling model.
    #[getter]
    fn description(&self) -> &str {
        self.definition.description()
    }

    /// The name for people.
    #[getter]
    fn display_name(&self) -> &str {
        self.definition.display_name()
    }

    /// The inputs: a dict of `AgentInput`, or a JSON Schema, as a copy.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.inputs {
            Inputs::Schema(schema) => json::schema_to_python(py, schema),
            Inputs::Declared(inputs) => {
                let dict = PyDict::new(py);
                for (name, input) in inputs {
                    dict.set_item(name, PyAgentInput(input.clone()))?;
                }
                Ok(dict.into_any())
            }
        }
    }

    /// The JSON Schema of the inputs, which the calling model sees, as a copy; its `required` is always a list.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::schema_to_python(py, self.definition.parameters())
    }

    /// The system prompt with its placeholders.
    #[getter]
    fn system_prompt(&self) -> Option<&str> {
        self.definition.system_prompt()
    }

    /// The first message of the user with its placeholders.
    #[getter]
    fn query(&self) -> &str {
        self.definition.query()
    }

    /// The messages before it with their placeholders, as a copy.
    #[getter]
    fn initial_messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        messages(py, self.definition.initial_messages())
    }

    /// The names of the tools that it may use.
    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.definition.tools())
    }

    /// The groups whose tools it may use.
    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.definition.groups())
    }

    /// The view whose tools it may use.
    #[getter]
    fn view(&self, py: Python<'_>) -> Option<Py<PyToolkitView>> {
        self.view.as_ref().map(|view| view.clone_ref(py))
    }

    /// The value that it has to give.
    #[getter]
    fn output(&self, py: Python<'_>) -> Option<Py<PyAgentOutput>> {
        self.output.as_ref().map(|output| output.clone_ref(py))
    }

    /// The limits of one run.
    #[getter]
    fn limits(&self) -> PyAgentLimits {
        PyAgentLimits(self.definition.limits())
    }

    /// Its model: a name or a model function.
    #[getter]
    fn model(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.model.as_ref().map(|model| model.clone_ref(py))
    }

    /// True if an input of an unknown type is a string.
    #[getter]
    fn lenient(&self) -> bool {
        self.lenient
    }

    /// Fill in the placeholders. An input that is missing has the default in the schema, if there is one.
    ///
    /// Raises:
    ///     AgentTemplateError: If an input is missing; the text names all of them.
    fn render(&self, inputs: &Bound<'_, PyAny>) -> PyResult<PyAgentPrompt> {
        let inputs = match json::value_from_python(&as_dict("inputs", inputs)?)? {
            Value::Object(inputs) => inputs,
            _ => Map::new(),
        };
        Ok(PyAgentPrompt(self.definition.render(&inputs)?))
    }

    fn __repr__(&self) -> String {
        format!("AgentDefinition(name={:?})", self.definition.name())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.view)?;
        visit.call(&self.output)?;
        visit.call(&self.model)
    }
}

fn read_messages(given: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    let wrong =
        || PyTypeError::new_err(format!("initial_messages must be a list of dictionaries, not {}", class_name(given)));
    if given.is_instance_of::<pyo3::types::PyString>() || given.is_instance_of::<PyDict>() {
        return Err(wrong());
    }
    let read = |message: PyResult<Bound<'_, PyAny>>| json::value_from_python(&message?);
    given.try_iter().map_err(|_| wrong())?.map(read).collect()
}
