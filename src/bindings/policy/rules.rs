//! `Policy`: rules from Python and from files, and what they say about a call.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::{PyExplanation, ToolView, value_of};
use crate::bindings::call::explained_arguments;
use crate::bindings::json as bridge;
use crate::bindings::tool_call::PyToolCall;
use crate::bindings::toolkit::PyToolkit;
use crate::call::{ToolCall, ToolFacts};
use crate::policy::{CallFacts, Decision, Policy, PolicyFile, PolicyProblem, Rule, ShadowNote, Tier};

/// Rules, and what to do where none of them says anything.
#[pyclass(name = "Policy", module = "toolcrib", frozen, subclass, weakref)]
#[derive(Default)]
pub(crate) struct PyPolicy {
    core: Arc<Policy>,
    problems: Mutex<Vec<PolicyProblem>>,
}

fn decision_of(word: &str) -> PyResult<Decision> {
    Decision::parse(word)
        .ok_or_else(|| PyValueError::new_err(format!("a decision is 'allow', 'ask' or 'deny', not '{word}'")))
}

fn rule_of(rule: &Bound<'_, PyAny>) -> PyResult<Rule> {
    Ok(Rule::from_value(&value_of(rule, "a rule")?)?)
}

fn rules_of(rules: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Rule>> {
    let Some(rules) = rules else { return Ok(Vec::new()) };
    if rules.is_instance_of::<PyDict>() || rules.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("rules is a list of rules, not one of them"));
    }
    rules.try_iter()?.map(|rule| rule_of(&rule?)).collect()
}

impl PyPolicy {
    pub(crate) fn rules(&self) -> &Arc<Policy> {
        &self.core
    }
}

#[pymethods]
impl PyPolicy {
    #[new]
    #[pyo3(
        signature = (rules=None, default="allow", *, shadow=false),
        text_signature = "(rules=(), default='allow', *, shadow=False)"
    )]
    fn new(rules: Option<&Bound<'_, PyAny>>, default: &str, shadow: bool) -> PyResult<Self> {
        let core = Policy::new(rules_of(rules)?, decision_of(default)?)?;
        core.set_shadow(shadow);
        Ok(Self { core: Arc::new(core), ..Self::default() })
    }

    /// Read rules from TOML files.
    ///
    /// What is wrong with one is told in `problems`, and opens nothing.
    ///
    /// Args:
    ///     default: The file of the program's own rules.
    ///     project: The file of the project's rules.
    ///     user: The file of the user's rules, which is also where an answer `"always"` is saved.
    ///     admin: The file of the machine's rules, which go before all others.
    ///     otherwise: What to do where no rule says anything.
    ///     optional: Whether files may be missing.
    ///
    /// Raises:
    ///     ValueError: If `otherwise` is no decision.
    #[staticmethod]
    #[pyo3(
        signature = (*, default=None, project=None, user=None, admin=None, otherwise="allow", optional=false),
        text_signature = "(*, default=None, project=None, user=None, admin=None, otherwise='allow', optional=False)"
    )]
    fn from_files(
        py: Python<'_>,
        default: Option<PathBuf>,
        project: Option<PathBuf>,
        user: Option<PathBuf>,
        admin: Option<PathBuf>,
        otherwise: &str,
        optional: bool,
    ) -> PyResult<Self> {
        let files = [(Tier::Default, default), (Tier::Project, project), (Tier::User, user), (Tier::Admin, admin)];
        let sources = files.into_iter().filter_map(|(tier, path)| Some(PolicyFile::new(tier, path?)));
        let sources: Vec<PolicyFile> =
            sources.map(|source| if optional { source.optional() } else { source }).collect();
        let otherwise = decision_of(otherwise)?;
        let (core, problems) = py.detach(|| Policy::from_files(sources, otherwise));
        Ok(Self { core: Arc::new(core), problems: Mutex::new(problems), ..Self::default() })
    }

    /// Read the files again; if anything is wrong with them, the rules stay as they are.
    ///
    /// Returns:
    ///     Whether the rules are those of the files now; `problems` says why not.
    fn reload(&self, py: Python<'_>) -> bool {
        let problems = py.detach(|| self.core.reload()).err().unwrap_or_default();
        let is_done = problems.is_empty();
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
        is_done
    }

    /// Add a rule.
    ///
    /// Args:
    ///     rule: A `Rule`, or a dictionary of its fields.
    ///
    /// Returns:
    ///     Its id, which is made if it has none.
    ///
    /// Raises:
    ///     InvalidRuleError: If it is no rule; then nothing changes.
    ///     DuplicateRuleError: If another one has its id; then nothing changes.
    fn add(&self, rule: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(self.core.add(rule_of(rule)?)?.id().to_owned())
    }

    /// Take a rule out; false if no rule has the id.
    fn remove(&self, id: &str) -> bool {
        self.core.remove(id).is_some()
    }

    /// The rules in the order in which they are tried, as dictionaries of their fields.
    #[getter(rules)]
    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        bridge::to_python(py, &Value::Array(self.core.rules().iter().map(|rule| rule.to_value()).collect()))
    }

    /// What is done where no rule says anything: `"allow"`, `"ask"` or `"deny"`.
    #[getter(default)]
    fn otherwise(&self) -> &'static str {
        self.core.default_decision().as_str()
    }

    #[setter(default)]
    fn set_otherwise(&self, default: &str) -> PyResult<()> {
        self.core.set_default(decision_of(default)?);
        Ok(())
    }

    /// Whether the policy only records what it would do; a tool that asks by itself still does.
    #[getter]
    fn shadow(&self) -> bool {
        self.core.is_shadow()
    }

    #[setter]
    fn set_shadow(&self, shadow: bool) {
        self.core.set_shadow(shadow);
    }

    /// What would have been decided without shadow mode: the last thousand times that was something else.
    #[getter]
    fn shadowed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shadowed = self.core.shadowed().iter().filter_map(ShadowNote::to_value).collect();
        bridge::to_python(py, &Value::Array(shadowed))
    }

    /// What is wrong with the files, one text for each fault with its file, rule and reason.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).iter().map(ToString::to_string).collect()
    }

    /// Say what every rule makes of a call, and which one decides.
    ///
    /// Whether there is such a tool, `Toolkit.check` says.
    ///
    /// Args:
    ///     call: The request, in any form that `ToolCall.read` understands.
    ///     toolkit: Where the tool is registered, so that its groups, tags, kind and permission are known.
    ///     caller: Who calls.
    ///
    /// Raises:
    ///     ValueError: If it cannot be read as a call.
    #[pyo3(signature = (call, *, toolkit=None, caller=None))]
    fn explain(
        &self,
        py: Python<'_>,
        call: &Bound<'_, PyAny>,
        toolkit: Option<&Bound<'_, PyToolkit>>,
        caller: Option<&str>,
    ) -> PyResult<PyExplanation> {
        let call = PyToolCall::read(call, None, None)?;
        let ToolCall { name, arguments, error, .. } = &call.get().call;
        if let Some(error) = error {
            return Err(PyValueError::new_err(format!("this cannot be read as a call: {}", error.what)));
        }
        let tool = toolkit.and_then(|toolkit| toolkit.get().find(py, name));
        if let Some(tool) = tool {
            // The arguments that a call would run with; what does not fit is shown as far as that is safe.
            let (whole, shown) = explained_arguments(py, tool.get(), arguments)?;
            let view = ToolView { py, tool: tool.get() };
            return Ok(view.with_facts(caller, |facts| self.core.explain_with(facts, &whole, &shown)).into());
        }
        let facts = CallFacts { caller, ..CallFacts::of(name) };
        Ok(self.core.explain(&facts, arguments).into())
    }

    fn __repr__(&self) -> String {
        format!("Policy({} rules, default='{}')", self.core.rules().len(), self.otherwise())
    }
}
