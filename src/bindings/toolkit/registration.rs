//! Registration and removal of tools.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyToolkit;
use crate::Error;
use crate::bindings::log_warning;
use crate::bindings::parameters::choice;
use crate::bindings::registration::{
    GivenOptions, ToolDraft, ToolOptions, is_meta_tool_of, parse_namesake, random_suffix,
};
use crate::bindings::tool::PyTool;
use crate::call::{ErrorMode, RunIn};
use crate::registry::{Group, Memberships, Registry};

/// The name of a new tool, or `None` if the existing one stays. The strategy is parsed only if the name is taken.
fn name_for(registry: &Registry<Py<PyTool>>, wanted: &str, strategy: &str) -> PyResult<Option<Arc<str>>> {
    if registry.find(wanted).is_none() {
        return Ok(Some(wanted.into()));
    }
    Ok(registry.name_for(wanted, parse_namesake(strategy)?, random_suffix)?.map(Into::into))
}

/// The permission, unless it is the default.
fn explicit_permission(permission: &str) -> Option<String> {
    (permission != "auto").then(|| permission.to_owned())
}

impl PyToolkit {
    /// The groups of these names, without repetition and without the first one.
    fn other_groups(&self, names: Vec<String>, first: &Arc<Group>) -> PyResult<Vec<Arc<Group>>> {
        let mut more: Vec<Arc<Group>> = Vec::with_capacity(names.len());
        for name in names {
            let group = self.registry().group(&name)?;
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
    ///     func_name: The name for the model, instead of the callable's own.
    ///     func_description: The description for the model, instead of that in the docstring.
    ///     json_schema: The schema for the model, instead of the one derived from the signature and the docstring.
    ///     include_long_description: Include the paragraphs after the first one of the docstring.
    ///     include_var_positional: Let the model send `*args`, as a list under that name.
    ///     include_var_keyword: Let the model send `**kwargs`, as an object under that name.
    ///     postprocess_func: Called with the request block and each response; a true result is delivered instead.
    ///     namesake_strategy: The action if the name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
    ///     async_execution: Return from a call at once and continue it in the background; see `view_task`.
    ///     run_in: The place where it runs, instead of the toolkit's default: `"thread"`, `"inline"` or `"process"`.
    ///     timeout: The seconds after which a call is ended.
    ///     groups: Further groups that it belongs to, which must exist.
    ///     tags: Words by which views and rules select it.
    ///     kind: The kind of effect that it has: `"read"`, `"edit"` (or `"write"`), `"delete"`, `"move"`, `"search"`,
    ///         `"execute"`, `"think"`, `"fetch"` or `"other"`.
    ///     permission: `"auto"`, or `"confirm"` if each call needs approval.
    ///     secrets: The parameters whose values are replaced by `***` in events, logs and approval requests.
    ///     aliases: Names that a model may use by mistake, each with the name of the parameter.
    ///
    /// Raises:
    ///     TypeError: If `tool_func` is not callable, or an option has the wrong type.
    ///     ValueError: If an option has a value that is not listed here.
    ///     ToolcribError: If the group, the name, the schema or an annotation is wrong; see `toolcrib.errors`.
    #[pyo3(signature = (
        tool_func, group_name="basic", preset_kwargs=None, func_name=None, func_description=None, json_schema=None,
        include_long_description=true, include_var_positional=false, include_var_keyword=false,
        postprocess_func=None, namesake_strategy="raise", async_execution=false, *, run_in=None, timeout=None,
        groups=Vec::new(), tags=Vec::new(), kind=None, permission="auto", secrets=Vec::new(), aliases=None
    ),
    text_signature = "($self, tool_func, group_name='basic', preset_kwargs=None, func_name=None, func_description=None, \
                      json_schema=None, include_long_description=True, include_var_positional=False, \
                      include_var_keyword=False, postprocess_func=None, namesake_strategy='raise', \
                      async_execution=False, *, run_in=None, timeout=None, groups=(), tags=(), kind=None, \
                      permission='auto', secrets=(), aliases=None)")]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "the parameters that AgentScope fixed"
    )]
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
        async_execution: bool,
        run_in: Option<&str>,
        timeout: Option<f64>,
        groups: Vec<String>,
        tags: Vec<String>,
        kind: Option<String>,
        permission: &str,
        secrets: Vec<String>,
        aliases: Option<HashMap<String, String>>,
    ) -> PyResult<()> {
        let group = self.registry().group(group_name)?;
        let more = self.other_groups(groups, &group)?;
        let run_in = run_in
            .map(|word| choice("run_in", word, RunIn::parse(word), "'thread', 'inline' or 'process'"))
            .transpose()?;
        let draft = ToolDraft::new(
            tool_func,
            ToolOptions {
                presets: preset_kwargs,
                name: func_name,
                description: func_description,
                schema: json_schema,
                include_long_description,
                include_var_positional,
                include_var_keyword,
                exact_docstring: self.behaviour().errors == ErrorMode::Compat,
                postprocess: postprocess_func,
                run_in,
                timeout,
                async_execution,
                given: GivenOptions { tags, kind, permission: explicit_permission(permission), secrets, aliases },
            },
        )?;
        let is_meta = is_meta_tool_of(self, draft.function())?;
        let skipped =
            |wanted: &str| log_warning(py, &format!("tool '{wanted}' is already registered, the new one is skipped"));
        let Some(name) = name_for(&self.registry(), draft.name(), namesake_strategy)? else {
            return skipped(draft.name());
        };
        let seat = Memberships::among(group.clone(), more.clone().into());
        let permissions = self.permissions(py).clone().unbind();
        let tool = draft.finish(py, name.clone(), seat, self.behaviour(), permissions, is_meta)?;
        let body = Py::new(py, tool)?;
        let replaced = {
            let mut registry = self.registry();
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
    #[pyo3(signature = (tool_name, allow_not_exist=true))]
    fn remove_tool_function(&self, tool_name: &str, allow_not_exist: bool) -> PyResult<()> {
        let removed = self.registry().remove(tool_name);
        if removed.is_none() && !allow_not_exist {
            return Err(Error::UnknownTool { name: tool_name.to_owned() }.into());
        }
        Ok(())
    }
}
