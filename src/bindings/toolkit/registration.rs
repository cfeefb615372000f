//! Registration and removal of tools.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyToolkit;
use crate::Error;
use crate::bindings::budget::PyResultBudget;
use crate::bindings::json::entries_of;
use crate::bindings::log_warning;
use crate::bindings::parameters::{
    Omittable, choice, flag, name_list, no_unknown, optional_dict, optional_name_list, optional_seconds, optional_text,
    text,
};
use crate::bindings::registration::{
    Confirmation, GivenOptions, ToolDraft, ToolOptions, parse_namesake, random_suffix,
};
use crate::bindings::tool::PyTool;
use crate::call::{ChunkRule, RunIn};
use crate::near::nearest;
use crate::registry::{BASIC, Group, Memberships, Registry};

/// The name of a new tool, or `None` if the existing one stays. The strategy is parsed only if the name is taken.
fn name_for(registry: &Registry<Py<PyTool>>, wanted: &str, strategy: &str) -> PyResult<Option<Arc<str>>> {
    if registry.find(wanted).is_none() {
        return Ok(Some(wanted.into()));
    }
    Ok(registry.name_for(wanted, parse_namesake(strategy)?, random_suffix)?.map(Into::into))
}

/// An argument as it was passed, if it was.
type Passed<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Reads an option that has two names: toolcrib's, and the longer one of AgentScope.
fn one_of_two(
    (name, short): (&str, Passed<'_, '_>),
    (other, long): (&str, Passed<'_, '_>),
) -> PyResult<Option<String>> {
    if short.is_some() && long.is_some() {
        return Err(PyTypeError::new_err(format!("pass either `{name}` or `{other}`, which are the same option")));
    }
    Ok(optional_text(name, short)?.or(optional_text(other, long)?))
}

/// Reads the alternative names of parameters.
pub(super) fn read_aliases(aliases: &Bound<'_, PyDict>) -> PyResult<HashMap<String, String>> {
    let entry = |(other, name): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((text("a name in aliases", other)?, text("the parameter of an alias", name)?))
    };
    entries_of(aliases).iter().map(entry).collect()
}

impl PyToolkit {
    /// Finds a group to register a tool in. AgentScope suggests no other name.
    fn group_named(&self, name: &str) -> crate::Result<Arc<Group>> {
        let is_compatible = self.is_compatible();
        let registry = self.registry();
        registry.group(name).map_err(|error| match nearest(name, registry.group_ids()) {
            Some(similar) if !is_compatible => {
                Error::NoSuchGroup { name: name.to_owned(), similar: Some(similar.to_owned()) }
            }
            _ => error,
        })
    }

    /// The groups of these names, without repetition and without the first one.
    pub(super) fn other_groups(&self, names: Vec<String>, first: &Arc<Group>) -> PyResult<Vec<Arc<Group>>> {
        let mut more: Vec<Arc<Group>> = Vec::with_capacity(names.len());
        for name in names {
            let group = self.group_named(&name)?;
            if !more.iter().chain([first]).any(|known| Arc::ptr_eq(known, &group)) {
                more.push(group);
            }
        }
        Ok(more)
    }
}

#[pymethods]
impl PyToolkit {
    /// Register a callable as a tool.
    ///
    /// Arguments (a partial, a schema, a dictionary of presets) are copied and never changed. A registration that fails
    /// changes nothing.
    ///
    /// Args:
    ///     tool_func: Any callable. The arguments that a partial has bound become presets.
    ///     group_name: The group it belongs to, which must exist.
    ///     preset_kwargs: Arguments that the developer sets: the model can neither see nor send them.
    ///     func_name: Another name of `name`, as in AgentScope.
    ///     func_description: Another name of `description`, as in AgentScope.
    ///     json_schema: The schema for the model, instead of the one derived from the signature and the docstring:
    ///         `{"type": "function", "function": {...}}`, or the schema of the parameters alone, `{"type": "object", ...}`.
    ///     include_long_description: Include the paragraphs after the first one of the docstring.
    ///     include_var_positional: Let the model send `*args`, as a list under that name.
    ///     include_var_keyword: Let the model send `**kwargs`, as an object under that name.
    ///     postprocess_func: Called with the request block and each response; a true result is delivered instead.
    ///     namesake_strategy: The action if the name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
    ///     async_execution: Return from a call at once and continue it in the background; see `view_task`.
    ///     name: The name for the model, instead of the callable's own.
    ///     description: The description for the model, instead of that in the docstring.
    ///     run_in: The place where it runs, instead of the toolkit's default: `"thread"`, `"inline"` or `"process"`.
    ///     timeout: The seconds after which a call is ended.
    ///     groups: Further groups that it belongs to, which must exist.
    ///     tags: Words by which views and rules select it.
    ///     kind: The kind of effect that it has: `"read"`, `"edit"` (or `"write"`), `"delete"`, `"move"`, `"search"`,
    ///         `"execute"`, `"think"`, `"fetch"` or `"other"`.
    ///     permission: `"auto"`, `"confirm"` if each call needs approval, or `"kind"` if it does where a policy is set and the kind
    ///         is edit, delete, move or execute.
    ///     secrets: The parameters whose values are replaced by `***` in events, logs and approval requests.
    ///     aliases: Names that a model may use by mistake, each with the name of the parameter.
    ///     chunks: The meaning of plain values that a generator yields: `"add"`, the default, appends each to the result,
    ///         `"replace"` makes each the result so far.
    ///     result_budget: The largest size of its results: a `ResultBudget`, or a number of characters.
    ///
    /// Raises:
    ///     TypeError: If `tool_func` is not callable, or an option has the wrong type.
    ///     ValueError: If an option has a value that is not listed here.
    ///     ToolcribError: If the group, the name, the schema or an annotation is wrong; see `toolcrib.errors`.
    #[pyo3(signature = (
        tool_func, group_name=Omittable(None), preset_kwargs=None, func_name=None, func_description=None, json_schema=None,
        include_long_description=Omittable(None), include_var_positional=Omittable(None),
        include_var_keyword=Omittable(None), postprocess_func=None, namesake_strategy=Omittable(None),
        async_execution=Omittable(None), *, name=None, description=None, run_in=None, timeout=None, groups=None, tags=None,
        kind=None, permission=Omittable(None), secrets=None, aliases=None, chunks=None, result_budget=None, **unknown
    ),
    text_signature = "($self, tool_func, group_name='basic', preset_kwargs=None, func_name=None, func_description=None, \
                      json_schema=None, include_long_description=True, include_var_positional=False, \
                      include_var_keyword=False, postprocess_func=None, namesake_strategy='raise', \
                      async_execution=False, *, name=None, description=None, run_in=None, timeout=None, groups=(), \
                      tags=(), kind=None, permission='auto', secrets=(), aliases=None, chunks=None, result_budget=None)")]
    #[allow(clippy::too_many_arguments, reason = "the parameters that AgentScope fixed, and toolcrib's own")]
    fn register_tool_function<'py>(
        &self,
        py: Python<'py>,
        tool_func: &Bound<'py, PyAny>,
        group_name: Omittable<'py>,
        preset_kwargs: Passed<'_, 'py>,
        func_name: Passed<'_, 'py>,
        func_description: Passed<'_, 'py>,
        json_schema: Option<Bound<'py, PyAny>>,
        include_long_description: Omittable<'py>,
        include_var_positional: Omittable<'py>,
        include_var_keyword: Omittable<'py>,
        postprocess_func: Option<Py<PyAny>>,
        namesake_strategy: Omittable<'py>,
        async_execution: Omittable<'py>,
        name: Passed<'_, 'py>,
        description: Passed<'_, 'py>,
        run_in: Passed<'_, 'py>,
        timeout: Passed<'_, 'py>,
        groups: Passed<'_, 'py>,
        tags: Passed<'_, 'py>,
        kind: Passed<'_, 'py>,
        permission: Omittable<'py>,
        secrets: Passed<'_, 'py>,
        aliases: Passed<'_, 'py>,
        chunks: Passed<'_, 'py>,
        result_budget: Passed<'_, 'py>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        no_unknown::<Self>("register_tool_function", unknown)?;
        let group_name = optional_text("group_name", group_name.0.as_ref())?;
        let namesake_strategy = optional_text("namesake_strategy", namesake_strategy.0.as_ref())?;
        let namesake_strategy = namesake_strategy.as_deref().unwrap_or("raise");
        let groups: Vec<String> = optional_name_list("groups", groups)?.unwrap_or_default();
        let run_in = optional_text("run_in", run_in)?;
        let options = ToolOptions {
            presets: optional_dict("preset_kwargs", preset_kwargs)?,
            name: one_of_two(("name", name), ("func_name", func_name))?,
            description: one_of_two(("description", description), ("func_description", func_description))?,
            schema: json_schema,
            keeps_schema_name: false,
            include_long_description: flag("include_long_description", &include_long_description, true)?,
            include_var_positional: flag("include_var_positional", &include_var_positional, false)?,
            include_var_keyword: flag("include_var_keyword", &include_var_keyword, false)?,
            postprocess: postprocess_func,
            run_in: run_in
                .map(|word| choice("run_in", &word, RunIn::parse(&word), "'thread', 'inline' or 'process'"))
                .transpose()?,
            timeout: optional_seconds("timeout", timeout)?,
            async_execution: flag("async_execution", &async_execution, false)?,
            chunks: optional_text("chunks", chunks)?
                .map(|word| choice("chunks", &word, ChunkRule::parse(&word), "'add' or 'replace'"))
                .transpose()?,
            result_budget: PyResultBudget::read("result_budget", result_budget)?,
            given: GivenOptions {
                tags: optional_name_list("tags", tags)?.unwrap_or_default(),
                kind: optional_text("kind", kind)?,
                permission: optional_text("permission", permission.0.as_ref())?
                    .filter(|permission| permission != "auto"),
                confirmation: Confirmation::Silent,
                calls_agents: false,
                secrets: optional_name_list("secrets", secrets)?.unwrap_or_default(),
                aliases: optional_dict("aliases", aliases)?.map(|aliases| read_aliases(&aliases)).transpose()?,
            },
            response_class: self.response_class(py),
            is_lenient: self.is_compatible(),
        };
        let group = self.group_named(group_name.as_deref().unwrap_or(BASIC))?;
        let more = self.other_groups(groups, &group)?;
        let draft = ToolDraft::new(tool_func, options)?;
        let skipped =
            |wanted: &str| log_warning(py, &format!("tool '{wanted}' is already registered, the new one is skipped"));
        let Some(name) = name_for(&self.registry(), draft.name(), namesake_strategy)? else {
            return skipped(draft.name());
        };
        let seat = Memberships::among(group.clone(), more.clone().into());
        let tool = draft.finish_in(py, self, name.clone(), seat)?;
        let body = Py::new(py, tool)?;
        let replaced = {
            let mut registry = self.registry_to_change(py);
            // Python code has run since the lookup of the name and the groups, and perhaps other threads.
            for group in more.iter().chain([&group]) {
                if !Arc::ptr_eq(&registry.group(group.name())?, group) {
                    return Err(Error::UnknownGroup { name: group.name().to_owned() }.into());
                }
            }
            if registry.find(&name).is_some() {
                match name_for(&registry, &name, namesake_strategy)? {
                    None => {
                        drop(registry);
                        return skipped(&name);
                    }
                    Some(still) if still != name => return Err(Error::DuplicateTool { name: name.to_string() }.into()),
                    Some(_) => {}
                }
            }
            registry.insert(PyTool::entry(body))
        };
        if replaced.is_some() {
            log_warning(py, &format!("tool '{name}' was registered before and is replaced"))?;
        }
        Ok(())
    }

    /// Remove a tool; running calls continue.
    ///
    /// Raises:
    ///     UnknownToolError: If there is no such tool and `allow_not_exist` is false.
    #[pyo3(
        signature = (tool_name, allow_not_exist=Omittable(None)),
        text_signature = "($self, tool_name, allow_not_exist=True)"
    )]
    fn remove_tool_function(&self, tool_name: &Bound<'_, PyAny>, allow_not_exist: Omittable<'_>) -> PyResult<()> {
        let (name, allow_not_exist) = (text("tool_name", tool_name)?, flag("allow_not_exist", &allow_not_exist, true)?);
        let removed = self.registry_to_change(tool_name.py()).remove(&name);
        if removed.is_none() && !allow_not_exist {
            return Err(Error::UnknownTool { name }.into());
        }
        Ok(())
    }

    /// Replace the tags of a tool. Views and rules that name tags follow at once.
    ///
    /// Args:
    ///     name: The name of the tool.
    ///     tags: Its new tags, or one.
    ///
    /// Raises:
    ///     UnknownToolError: If there is no such tool.
    ///     ValueError: If a tag is empty.
    fn set_tags(&self, name: &Bound<'_, PyAny>, tags: &Bound<'_, PyAny>) -> PyResult<()> {
        let (name, tags) = (text("name", name)?, name_list::<Vec<Box<str>>, Box<str>>("tags", tags)?);
        if tags.iter().any(|tag| tag.is_empty()) {
            return Err(PyValueError::new_err(format!("tool `{name}`: a tag must not be empty")));
        }
        Ok(self.registry().set_tags(&name, &tags)?)
    }
}
