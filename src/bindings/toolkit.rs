//! `Toolkit`: the registry, and the one way to call.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString, PyTuple};

use super::group::PyToolGroup;
use super::log;
use super::register::{Behaviour, Draft, Wishes, namesake, suffix};
use super::tool::PyTool;
use crate::Error;
use crate::call::{Answer, ArgumentMode, ErrorMode, RunIn};
use crate::registry::{BASIC, Group, Namesake, Registry, Tool};

/// Keep tools, tell a model about them, and call them.
///
/// A toolkit may be used from several threads and event loops at once. It is always true, also when it is empty.
#[pyclass(name = "Toolkit", module = "toolcrib._core", frozen, subclass, weakref)]
pub(crate) struct PyToolkit {
    registry: Mutex<Registry<Py<PyTool>>>,
    /// Set by `__init__`, so that a subclass may have a constructor of its own.
    behaviour: Mutex<Behaviour>,
    /// The serialised listing with the revision it was made at.
    listing: Mutex<Option<(u64, Py<PyBytes>)>>,
}

impl PyToolkit {
    fn registry(&self) -> MutexGuard<'_, Registry<Py<PyTool>>> {
        // The registry is whole between any two of its methods, also when a panic came in between.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behaviour(&self) -> Behaviour {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the tool of a call and sees whether its group is on.
    #[inline]
    pub(crate) fn admit<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Answer> {
        let registry = self.registry();
        let Some(tool) = registry.find(name) else {
            return Err(Answer::UnknownTool { name: name.to_owned() });
        };
        if !tool.group.is_active() {
            let group = tool.group.name().to_owned();
            return Err(Answer::InactiveGroup { tool: name.to_owned(), group });
        }
        Ok(tool.body.bind(py).clone())
    }
}

fn choice<T>(option: &str, word: &str, parsed: Option<T>, choices: &str) -> PyResult<T> {
    parsed.ok_or_else(|| PyValueError::new_err(format!("{option} must be {choices}, not '{word}'")))
}

/// The name for a new tool, or none if the old one stays. The word for the strategy is read only if it is needed.
fn name_for(registry: &Registry<Py<PyTool>>, wanted: &str, strategy: &str) -> PyResult<Option<String>> {
    let is_taken = registry.find(wanted).is_some();
    let strategy = if is_taken { namesake(strategy)? } else { Namesake::default() };
    Ok(registry.name_for(wanted, strategy, suffix)?)
}

#[pymethods]
impl PyToolkit {
    #[new]
    #[pyo3(
        signature = (*_arguments, **_options),
        text_signature = "(*, arguments='coerce', errors='respond', run_in='thread')"
    )]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        Self { registry: Mutex::default(), behaviour: Mutex::default(), listing: Mutex::default() }
    }

    #[pyo3(signature = (*, arguments="coerce", errors="respond", run_in="thread"))]
    fn __init__(&self, arguments: &str, errors: &str, run_in: &str) -> PyResult<()> {
        let run_in_mode = RunIn::parse(run_in).filter(|mode| *mode != RunIn::Process);
        let behaviour = Behaviour {
            arguments: choice("arguments", arguments, ArgumentMode::parse(arguments), "'coerce', 'check' or 'pass'")?,
            errors: choice("errors", errors, ErrorMode::parse(errors), "'respond', 'raise' or 'compat'")?,
            run_in: choice("run_in", run_in, run_in_mode, "'thread' or 'inline'")?,
        };
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
        Ok(())
    }

    /// Make a callable a tool.
    ///
    /// What is passed in (a partial, a schema, a dictionary of presets) is copied and never changed, and a registration
    /// that fails changes nothing.
    ///
    /// Args:
    ///     tool_func: Anything that can be called. What a partial has bound is preset.
    ///     group_name: The group it belongs to, which must exist.
    ///     preset_kwargs: Arguments that the developer decides: the model can neither see nor send them.
    ///     func_name: The name the model calls it by, instead of the callable's own.
    ///     func_description: What the model is told, instead of the docstring's description.
    ///     json_schema: What the model is told, instead of what the signature and the docstring say.
    ///     include_long_description: Whether the paragraphs after the docstring's first are told.
    ///     include_var_positional: Whether the model may send `*args`, as a list under that name.
    ///     include_var_keyword: Whether the model may send `**kwargs`, as an object under that name.
    ///     postprocess_func: Called with the request block and each response; a true result is delivered instead.
    ///     namesake_strategy: What to do when the name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
    ///     run_in: Where it runs, instead of the toolkit's own choice: `"thread"`, `"inline"` or `"process"`.
    ///     timeout: After how many seconds a call is ended.
    ///
    /// Raises:
    ///     TypeError: If `tool_func` cannot be called, or an option has the wrong type.
    ///     ValueError: If an option has a value that is not listed here.
    ///     ToolcribError: If the group, the name, the schema or an annotation is wrong; see `toolcrib.errors`.
    #[pyo3(signature = (
        tool_func, group_name="basic", preset_kwargs=None, func_name=None, func_description=None, json_schema=None,
        include_long_description=true, include_var_positional=false, include_var_keyword=false,
        postprocess_func=None, namesake_strategy="raise", *, run_in=None, timeout=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the parameters that AgentScope fixed")]
    fn register_tool_function<'py>(
        &self,
        py: Python<'py>,
        tool_func: &Bound<'py, PyAny>,
        group_name: &str,
        preset_kwargs: Option<Bound<'py, PyDict>>,
        func_name: Option<String>,
        func_description: Option<String>,
        json_schema: Option<Bound<'py, PyAny>>,
        include_long_description: bool,
        include_var_positional: bool,
        include_var_keyword: bool,
        postprocess_func: Option<Py<PyAny>>,
        namesake_strategy: &str,
        run_in: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let group = self.registry().group(group_name)?;
        let run_in = run_in
            .map(|word| choice("run_in", word, RunIn::parse(word), "'thread', 'inline' or 'process'"))
            .transpose()?;
        let draft = Draft::new(
            tool_func,
            Wishes {
                presets: preset_kwargs,
                name: func_name,
                description: func_description,
                schema: json_schema,
                include_long_description,
                include_var_positional,
                include_var_keyword,
                postprocess: postprocess_func,
                run_in,
                timeout,
            },
        )?;
        let wanted = draft.name.clone();
        let skipped = || log::warning(py, &format!("tool '{wanted}' is already registered, the new one is skipped"));
        let Some(name) = name_for(&self.registry(), &wanted, namesake_strategy)? else { return skipped() };
        let tool = draft.finish(py, &name, group.clone(), self.behaviour(), name != wanted)?;
        let schema = tool.schema.clone();
        let body = Py::new(py, tool)?;
        let replaced = {
            let mut registry = self.registry();
            // Python code has run since the name and the group were looked up, and in its pauses other threads.
            if !Arc::ptr_eq(&registry.group(group_name)?, &group) {
                return Err(Error::UnknownGroup { name: group_name.to_owned() }.into());
            }
            match name_for(&registry, &name, namesake_strategy)? {
                None => {
                    drop(registry);
                    return skipped();
                }
                Some(still) if still != name => return Err(Error::DuplicateTool { name }.into()),
                Some(_) => registry.insert(Tool { name: name.into(), group, schema, body }),
            }
        };
        if replaced.is_some() {
            log::warning(py, &format!("tool '{wanted}' was registered before and is replaced"))?;
        }
        Ok(())
    }

    /// Take a tool out; calls that are running go on.
    ///
    /// Raises:
    ///     UnknownToolError: If there is no such tool and `allow_not_exist` is false.
    #[pyo3(signature = (tool_name, allow_not_exist=true))]
    fn remove_tool_function(&self, tool_name: &str, allow_not_exist: bool) -> PyResult<()> {
        let removed = self.registry().remove(tool_name);
        if removed.is_none() && !allow_not_exist {
            return Err(Error::UnknownTool { name: tool_name.to_owned() }.into());
        }
        Ok(())
    }

    /// Add a group, to register tools in and to switch on and off.
    ///
    /// Raises:
    ///     DuplicateGroupError: If the name is taken, as `basic` always is.
    #[pyo3(signature = (group_name, description, active=false, notes=None))]
    fn create_tool_group(
        &self,
        group_name: &str,
        description: &str,
        active: bool,
        notes: Option<String>,
    ) -> PyResult<()> {
        Ok(self.registry().create_group(group_name, description, active, notes)?)
    }

    /// Switch groups on or off.
    ///
    /// A name that no group has is ignored; `basic` is always on, which a warning in the log `toolcrib` says.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is not a list of strings.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn update_tool_groups(&self, py: Python<'_>, group_names: Vec<String>, active: bool) -> PyResult<()> {
        if group_names.iter().any(|name| name == BASIC) {
            log::warning(py, "the 'basic' tool group is always active")?;
        }
        self.registry().set_active(group_names.iter().map(String::as_str), active);
        Ok(())
    }

    /// Remove groups together with their tools.
    ///
    /// A name that no group has is ignored.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is neither a string nor a list of strings.
    ///     BasicGroupError: If `basic` is among them; then nothing is removed.
    fn remove_tool_groups(&self, group_names: &Bound<'_, PyAny>) -> PyResult<()> {
        let names: Vec<String> = if let Ok(name) = group_names.cast::<PyString>() {
            vec![name.extract()?]
        } else {
            let names = group_names.cast::<PyList>().ok().and_then(|names| names.extract().ok());
            names.ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "The group_names must be a list of strings, but got {}.",
                    group_names.get_type()
                ))
            })?
        };
        // Bound to a name, so that the tools are dropped after the lock is.
        let removed = self.registry().remove_groups(&names)?;
        drop(removed);
        Ok(())
    }

    /// Describe the tools of all active groups, in the order they were registered.
    ///
    /// Returns:
    ///     One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.
    fn get_json_schemas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tools: Vec<Py<PyTool>> = self.registry().listed().map(|tool| tool.body.clone_ref(py)).collect();
        let schemas = tools.iter().map(|tool| tool.get().schema_copy(py)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, schemas)
    }

    /// Give the same list as JSON text, which is kept until something changes.
    fn get_json_schemas_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = self.registry();
        let revision = registry.revision();
        if let Some((made_at, bytes)) = &*listing
            && *made_at == revision
        {
            return Ok(bytes.clone_ref(py));
        }
        let schemas: Vec<_> = registry.listed().map(|tool| tool.schema.as_ref()).collect();
        let text = serde_json::to_vec(&schemas)
            .map_err(|error| PyValueError::new_err(format!("the schemas cannot be written: {error}")))?;
        let bytes = PyBytes::new(py, &text).unbind();
        *listing = Some((revision, bytes.clone_ref(py)));
        Ok(bytes)
    }

    /// Join the notes of the active groups, each under the heading `## About Tool Group '<name>'`.
    fn get_activated_notes(&self) -> String {
        self.registry().activated_notes()
    }

    /// Remove all tools and all groups but `basic`.
    fn clear(&self) {
        let removed = self.registry().clear();
        drop(removed);
    }

    fn _find_tool(&self, name: &Bound<'_, PyString>) -> Option<Py<PyTool>> {
        // Text that is not valid Unicode names nothing.
        let text = name.to_str().ok()?;
        self.registry().find(text).map(|tool| tool.body.clone_ref(name.py()))
    }

    fn _find_group(&self, name: &Bound<'_, PyString>) -> Option<PyToolGroup> {
        let text = name.to_str().ok().filter(|text| *text != BASIC)?;
        self.registry().group(text).ok().map(Into::into)
    }

    fn _all_tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tools: Vec<Py<PyTool>> = self.registry().tools().map(|tool| tool.body.clone_ref(py)).collect();
        tools.iter().map(|tool| (&*tool.get().name, tool)).into_py_dict(py)
    }

    fn _all_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups: Vec<Arc<Group>> = self.registry().groups().cloned().collect();
        let all = PyDict::new(py);
        for group in groups {
            all.set_item(group.name().to_owned(), Py::new(py, PyToolGroup::from(group))?)?;
        }
        Ok(all)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that holds the lock is using the toolkit, which is then not garbage.
        if let Ok(registry) = self.registry.try_lock() {
            registry.tools().try_for_each(|tool| visit.call(&tool.body))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.clear();
    }
}
