//! Tools and switches as plain records: what copies and pickles of a toolkit are made of, and what a compatible class puts
//! in place of a tool that was edited.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::PyToolkit;
use super::registration::read_aliases;
use crate::bindings::budget::PyResultBudget;
use crate::bindings::parameters::{choice, optional_dict, optional_name_list, optional_seconds, optional_text};
use crate::bindings::registration::{Confirmation, GivenOptions, ModelUse, ToolDraft, ToolOptions, check_model};
use crate::bindings::tool::{OtherNames, PyTool};
use crate::call::{ArgumentMode, ChunkRule, ErrorMode, RunIn};
use crate::registry::{BASIC, Group, Memberships};
use crate::skill::Skill;

/// The entries of a record.
struct Record<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Record<'_, 'py> {
    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn required(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.get(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn flag(&self, name: &str) -> PyResult<bool> {
        self.get(name)?.map_or(Ok(false), |value| value.is_truthy())
    }

    fn names(&self, name: &str) -> PyResult<Vec<String>> {
        Ok(optional_name_list(name, self.get(name)?.as_ref())?.unwrap_or_default())
    }

    fn text(&self, name: &str) -> PyResult<Option<String>> {
        optional_text(name, self.get(name)?.as_ref())
    }

    /// The options of a registration.
    fn options(&self, toolkit: &PyToolkit, name: &str) -> PyResult<ToolOptions<'py>> {
        let run_in = self.text("run_in")?;
        let chunks = self.text("chunks")?;
        Ok(ToolOptions {
            presets: optional_dict("preset_kwargs", self.get("preset_kwargs")?.as_ref())?,
            name: Some(name.to_owned()),
            schema: Some(self.required("json_schema")?),
            keeps_schema_name: true,
            postprocess: self.get("postprocess_func")?.map(Bound::unbind),
            run_in: run_in
                .map(|word| choice("run_in", &word, RunIn::parse(&word), "'thread', 'inline' or 'process'"))
                .transpose()?,
            timeout: optional_seconds("timeout", self.get("timeout")?.as_ref())?,
            async_execution: self.flag("async_execution")?,
            chunks: chunks
                .map(|word| choice("chunks", &word, ChunkRule::parse(&word), "'add' or 'replace'"))
                .transpose()?,
            result_budget: PyResultBudget::read("result_budget", self.get("result_budget")?.as_ref())?,
            response_class: toolkit.response_class(self.0.py()),
            given: GivenOptions {
                tags: self.names("tags")?,
                kind: self.text("kind")?,
                permission: self.text("permission")?.filter(|permission| permission != "auto"),
                confirmation: Confirmation::Silent,
                calls_agents: false,
                secrets: self.names("secrets")?,
                aliases: optional_dict("aliases", self.get("aliases")?.as_ref())?
                    .map(|aliases| read_aliases(&aliases))
                    .transpose()?,
            },
            // Its mistakes were reported when it was first registered.
            is_lenient: true,
            ..ToolOptions::default()
        })
    }
}

#[pymethods]
impl PyToolkit {
    /// Register a tool from its record under a name; one of that name is replaced in its position.
    ///
    /// The schema is listed under the name that it has itself.
    fn _put_tool<'py>(&self, name: &str, record: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyTool>> {
        let (py, record) = (record.py(), Record(record));
        let group = self.registry().group(record.text("group")?.as_deref().unwrap_or(BASIC))?;
        let more = self.other_groups(record.names("groups")?, &group)?;
        let function = record.required("original_func")?;
        let draft = ToolDraft::new(&function, record.options(self, name)?)?;
        let seat = Memberships::among(group, more.into());
        let mut tool = draft.finish_in(py, self, name, seat)?;
        tool.other_names = OtherNames::of(record.text("original_name")?, record.text("mcp_name")?);
        if let Some(model) = record.get("extended_model")? {
            check_model(&model)?;
            let how = if record.flag("is_finish")? { ModelUse::Finish } else { self.model_use() };
            tool = tool.extended(py, &model, how)?;
        }
        let body = Bound::new(py, tool)?;
        let quarantine = record.text("quarantined")?;
        let replaced = {
            let mut registry = self.registry_to_change(py);
            let replaced = registry.insert(PyTool::entry(body.clone().unbind()));
            if let Some(reason) = quarantine {
                registry.quarantine(name, &reason)?;
            }
            replaced
        };
        drop(replaced);
        Ok(body)
    }

    /// A number that changes with every change of the tools and groups.
    #[getter]
    fn _revision(&self) -> u64 {
        self.revision()
    }

    /// Call a function before tools are listed, and before a tool is called, with the name of that tool or None.
    fn _before_use(&self, function: Py<PyAny>) {
        let _ = self.before_use.set(function);
    }

    /// The options of the constructor that are words, for another toolkit.
    #[getter]
    fn _switches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let behaviour = self.behaviour();
        let switches = PyDict::new(py);
        let arguments = match behaviour.arguments {
            ArgumentMode::Coerce => "coerce",
            ArgumentMode::Check => "check",
            ArgumentMode::Pass => "pass",
        };
        let errors = match behaviour.errors {
            ErrorMode::Respond => "respond",
            ErrorMode::Raise => "raise",
            ErrorMode::Compat => "compat",
        };
        let run_in = match behaviour.run_in {
            RunIn::Thread => "thread",
            RunIn::Inline => "inline",
            RunIn::Process => "process",
        };
        switches.set_item("arguments", arguments)?;
        switches.set_item("errors", errors)?;
        switches.set_item("run_in", run_in)?;
        switches.set_item("repair", behaviour.repair.as_str())?;
        Ok(switches)
    }

    /// The function that describes exceptions to the model.
    #[getter]
    fn _error_formatter<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.permissions.get().error_formatter(py)
    }

    /// The groups without `basic` as dictionaries that `_put_group` reads, in the order of their creation.
    #[getter]
    fn _group_records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let groups: Vec<(Arc<Group>, bool)> = {
            let registry = self.registry();
            registry.groups().map(|group| (group.clone(), registry.is_reserved(group.name()))).collect()
        };
        let record = |(group, reserved): &(Arc<Group>, bool)| {
            let record = PyDict::new(py);
            record.set_item("name", group.name())?;
            record.set_item("description", group.description())?;
            record.set_item("active", group.is_active())?;
            record.set_item("notes", group.notes())?;
            record.set_item("reserved", *reserved)?;
            let budget = self.permissions.get().group_budgets(py, [group.name()]).into_iter().next();
            record.set_item("result_budget", budget)?;
            Ok(record)
        };
        groups.iter().map(record).collect()
    }

    /// Create a group from its record.
    fn _put_group(&self, record: &Bound<'_, PyDict>) -> PyResult<()> {
        let record = Record(record);
        let (name, description) = (record.text("name")?.unwrap_or_default(), record.text("description")?);
        let (active, notes, reserved) = (record.flag("active")?, record.text("notes")?, record.flag("reserved")?);
        let budget = PyResultBudget::read("result_budget", record.get("result_budget")?.as_ref())?;
        {
            let mut registry = self.registry();
            registry.create_group(&name, &description.unwrap_or_default(), active, notes)?;
            if reserved {
                registry.reserve_group(&name)?;
            }
        }
        self.permissions.get().set_group_budget(&name, budget);
        Ok(())
    }

    /// Add or replace a skill under a name.
    fn _put_skill(&self, key: String, skill: &Bound<'_, PyDict>) -> PyResult<()> {
        let text = |name: &str| -> PyResult<String> {
            let value = skill.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
            Ok(value.str()?.to_str()?.to_owned())
        };
        let skill = Skill { name: text("name")?, description: text("description")?, dir: text("dir")? };
        self.skills().put(key, skill);
        Ok(())
    }

    /// The introduction of the skills and the template for each, unless they are the defaults.
    #[getter]
    fn _skill_texts(&self) -> (Option<String>, Option<String>) {
        let skills = self.skills();
        let (instruction, template) = skills.texts();
        (instruction.map(str::to_owned), template.map(str::to_owned))
    }

    /// Set the introduction of the skills and the template for each; None for the defaults.
    fn _describe_skills(&self, instruction: Option<&str>, template: Option<&str>) -> PyResult<()> {
        Ok(self.skills().describe_with(instruction, template)?)
    }

    /// Let an object write the spans of calls.
    ///
    /// Its `start(toolkit, tool_call, arguments)` returns a span, or None for none. `record(span, response)` gets the last response,
    /// or None if the call ended with an exception, and `conclude(span, is_good)` is called before the span ends.
    fn _trace_with(&self, conventions: Py<PyAny>) {
        let _ = self.conventions.set(conventions);
    }
}

impl PyToolkit {
    /// Calls the function that has to see each use of the tools first, if there is one. A listing of the tools reports rules that match
    /// none of them.
    pub(crate) fn prepare_use(&self, py: Python<'_>, tool: Option<&str>) -> PyResult<()> {
        if tool.is_none() {
            self.warn_of_rules(py);
        }
        self.before_use.get().map_or(Ok(()), |function| function.bind(py).call1((tool,)).map(drop))
    }

    /// True if there is such a function.
    #[inline]
    pub(crate) fn prepares_use(&self) -> bool {
        self.before_use.get().is_some()
    }

    /// The object that writes the spans of calls.
    pub(crate) fn conventions<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.conventions.get().map(|conventions| conventions.bind(py).clone())
    }
}

#[pymethods]
impl PyTool {
    /// The tool as a dictionary that `Toolkit._put_tool` reads.
    #[getter]
    fn _record<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, tool) = (slf.py(), slf.get());
        let record = PyDict::new(py);
        for name in [
            "group",
            "original_func",
            "json_schema",
            "preset_kwargs",
            "original_name",
            "extended_model",
            "mcp_name",
            "postprocess_func",
            "async_execution",
            "run_in",
            "timeout",
            "chunks",
            "result_budget",
            "tags",
            "kind",
            "permission",
            "secrets",
            "aliases",
            "quarantined",
        ] {
            record.set_item(name, slf.getattr(PyString::intern(py, name))?)?;
        }
        let groups = tool.seat.groups();
        record.set_item("groups", PyList::new(py, groups.iter().skip(1).map(|group| group.name()))?)?;
        let is_finish = tool.extension.as_ref().is_some_and(|extension| extension.finish.is_some());
        record.set_item("is_finish", is_finish)?;
        Ok(record)
    }
}
