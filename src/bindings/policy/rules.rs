//! `Policy`, the rules from Python and from files, and `Explanation`, the evaluation of each rule for a call.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Value, json};

use super::value_of;
use crate::bindings::call::{ToolView, explained_arguments};
use crate::bindings::json as bridge;
use crate::bindings::parameters::{Omittable, flag, optional_path, optional_text, wrong_type};
use crate::bindings::store::PyStore;
use crate::bindings::tool_call::PyToolCall;
use crate::bindings::toolkit::PyToolkit;
use crate::call::{ToolCall, ToolFacts};
use crate::policy::{
    CallFacts, Decision, Explanation, Policy, PolicyFile, PolicyProblem, Rule, RuleOutcome, ShadowNote, Tier,
};
use crate::sync::lock;

/// Rules that allow or deny calls or ask the approver, and the default decision.
#[pyclass(name = "Policy", module = "toolcrib", frozen, subclass, weakref)]
#[derive(Default)]
pub(crate) struct PyPolicy {
    core: Arc<Policy>,
    problems: Mutex<Vec<PolicyProblem>>,
}

fn decision_of(word: &str) -> PyResult<Decision> {
    Decision::parse(word)
        .ok_or_else(|| PyValueError::new_err(format!("unknown decision '{word}': expected 'allow', 'ask' or 'deny'")))
}

fn rule_of(rule: &Bound<'_, PyAny>) -> PyResult<Rule> {
    Ok(Rule::from_value(&value_of(rule, "a rule")?)?)
}

fn rules_of(rules: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Rule>> {
    let Some(rules) = rules else { return Ok(Vec::new()) };
    if rules.is_instance_of::<PyDict>() || rules.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("rules must be a list of rules, not a single rule"));
    }
    let items = rules.try_iter().map_err(|_| wrong_type("rules", "a list of rules", rules))?;
    items.map(|rule| rule_of(&rule?)).collect()
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
        signature = (rules=None, default=Omittable(None), *, shadow=Omittable(None)),
        text_signature = "(rules=(), default='allow', *, shadow=False)"
    )]
    fn new(rules: Option<&Bound<'_, PyAny>>, default: Omittable<'_>, shadow: Omittable<'_>) -> PyResult<Self> {
        let default = optional_text("default", default.0.as_ref())?;
        let core = Policy::new(rules_of(rules)?, decision_of(default.as_deref().unwrap_or("allow"))?)?;
        core.set_shadow(flag("shadow", &shadow, false)?);
        Ok(Self { core: Arc::new(core), ..Self::default() })
    }

    /// Read rules from TOML files.
    ///
    /// Errors in the content of a file are listed in `problems`; an invalid rule never allows a call.
    ///
    /// Args:
    ///     default: The file of the program's own rules.
    ///     project: The file of the project's rules.
    ///     user: The file of the user's rules, to which an answer `"always"` is saved.
    ///     admin: The file of the machine's rules, which go before all others.
    ///     otherwise: The decision if no rule matches.
    ///     optional: True if files may be missing.
    ///
    /// Raises:
    ///     MissingFileError: If a file does not exist and is not optional.
    ///     FileAccessError: If the operating system does not let a file be read.
    ///     ValueError: If `otherwise` is not a decision.
    #[staticmethod]
    #[pyo3(
        signature = (
            *, default=None, project=None, user=None, admin=None, otherwise=Omittable(None), optional=Omittable(None)
        ),
        text_signature = "(*, default=None, project=None, user=None, admin=None, otherwise='allow', optional=False)"
    )]
    fn from_files(
        py: Python<'_>,
        default: Option<&Bound<'_, PyAny>>,
        project: Option<&Bound<'_, PyAny>>,
        user: Option<&Bound<'_, PyAny>>,
        admin: Option<&Bound<'_, PyAny>>,
        otherwise: Omittable<'_>,
        optional: Omittable<'_>,
    ) -> PyResult<Self> {
        let files = [
            (Tier::Default, optional_path("default", default)?),
            (Tier::Project, optional_path("project", project)?),
            (Tier::User, optional_path("user", user)?),
            (Tier::Admin, optional_path("admin", admin)?),
        ];
        let optional = flag("optional", &optional, false)?;
        let sources = files.into_iter().filter_map(|(tier, path)| Some(PolicyFile::new(tier, path?)));
        let sources: Vec<PolicyFile> =
            sources.map(|source| if optional { source.optional() } else { source }).collect();
        let otherwise = optional_text("otherwise", otherwise.0.as_ref())?;
        let otherwise = decision_of(otherwise.as_deref().unwrap_or("allow"))?;
        let loaded = py.detach(|| {
            sources.iter().try_for_each(PolicyFile::check_readable)?;
            Ok::<_, crate::Error>(Policy::from_files(sources, otherwise))
        });
        let (core, problems) = loaded?;
        Ok(Self { core: Arc::new(core), problems: Mutex::new(problems) })
    }

    /// Read the files again; if one of them has an error, the rules stay as they are.
    ///
    /// Returns:
    ///     True if the rules were replaced; otherwise `problems` lists the errors.
    fn reload(&self, py: Python<'_>) -> bool {
        let problems = py.detach(|| self.core.reload()).err().unwrap_or_default();
        let is_done = problems.is_empty();
        *lock(&self.problems) = problems;
        is_done
    }

    /// Add the saved answers of a store, and save answers `"always"` in it from now on.
    ///
    /// If a file of the user's rules is loaded, answers are saved there instead.
    ///
    /// Raises:
    ///     StoreError: If the store fails; then nothing changes.
    ///     DamagedFileError: If the store has an invalid answer.
    fn use_store(&self, py: Python<'_>, store: &Bound<'_, PyStore>) -> PyResult<()> {
        let store = store.get().core();
        Ok(py.detach(|| self.core.use_store(store))?)
    }

    /// Add a rule.
    ///
    /// Args:
    ///     rule: A `Rule`, or a dictionary of its fields.
    ///
    /// Returns:
    ///     Its id, which is generated if it has none.
    ///
    /// Raises:
    ///     InvalidRuleError: If it is not a valid rule; then nothing changes.
    ///     DuplicateRuleError: If another rule has its id; then nothing changes.
    fn add(&self, rule: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(self.core.add(rule_of(rule)?)?.id().to_owned())
    }

    /// Remove a rule; false if no rule has the id.
    fn remove(&self, id: &str) -> bool {
        self.core.remove(id).is_some()
    }

    /// The rules in the order in which they are evaluated, as dictionaries of their fields.
    #[getter(rules)]
    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        bridge::to_python(py, &Value::Array(self.core.rules().iter().map(|rule| rule.to_value()).collect()))
    }

    /// The decision if no rule matches: `"allow"`, `"ask"` or `"deny"`.
    #[getter(default)]
    fn otherwise(&self) -> &'static str {
        self.core.default_decision().as_str()
    }

    #[setter(default)]
    fn set_otherwise(&self, default: &str) -> PyResult<()> {
        self.core.set_default(decision_of(default)?);
        Ok(())
    }

    /// True if the policy only records its decisions; a tool with `permission="confirm"` still asks.
    #[getter]
    fn shadow(&self) -> bool {
        self.core.is_shadow()
    }

    #[setter]
    fn set_shadow(&self, shadow: bool) {
        self.core.set_shadow(shadow);
    }

    /// The last thousand decisions that would have been different without shadow mode.
    #[getter]
    fn shadowed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shadowed = self.core.shadowed().iter().filter_map(ShadowNote::to_value).collect();
        bridge::to_python(py, &Value::Array(shadowed))
    }

    /// The errors in the files, each as a text with its file, rule and reason.
    #[getter]
    fn problems(&self) -> Vec<String> {
        lock(&self.problems).iter().map(ToString::to_string).collect()
    }

    /// Find rules that never match a tool of a toolkit, because a name or a value in them is misspelt.
    ///
    /// These are the errors in the files (see `problems`), names of tools, servers, groups, tags and arguments that no tool has, and
    /// values that are not written as rules see them. Register all tools before.
    ///
    /// Args:
    ///     toolkit: The toolkit that the policy is for.
    ///
    /// Returns:
    ///     The problems, each as a text with its rule, field and reason; an empty list if there are none.
    fn check(&self, py: Python<'_>, toolkit: &Bound<'_, PyToolkit>) -> PyResult<Vec<String>> {
        let mut problems = self.problems();
        problems.extend(toolkit.get().check_rules(py, &self.core)?.iter().map(ToString::to_string));
        Ok(problems)
    }

    /// Evaluate every rule for a call, and explain which one decides.
    ///
    /// `Toolkit.check` also tests that the tool exists.
    ///
    /// Args:
    ///     call: The request, in any form that `ToolCall.read` understands.
    ///     toolkit: The toolkit of the tool, which knows its groups, tags, kind and permission.
    ///     caller: The name of the caller.
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
            // The arguments that a call would run with. Invalid ones are shown as far as that is safe.
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

/// The decision about a call, with the evaluation of each rule.
#[pyclass(name = "Explanation", module = "toolcrib.policy", frozen)]
pub(crate) struct PyExplanation(Explanation);

impl From<Explanation> for PyExplanation {
    fn from(explanation: Explanation) -> Self {
        Self(explanation)
    }
}

#[pymethods]
impl PyExplanation {
    /// The decision: `"allow"`, `"ask"` or `"deny"`.
    #[getter]
    fn decision(&self) -> &'static str {
        self.0.verdict.decision.as_str()
    }

    /// The id of the rule that decides; None if the tool's own permission or the default does.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.0.verdict.rule().map(|rule| rule.id())
    }

    /// The reason, as text.
    #[getter]
    fn reason(&self) -> String {
        self.0.verdict.reason().into_owned()
    }

    /// The decision without shadow mode; None if it is the same.
    #[getter]
    fn shadowed(&self) -> Option<&'static str> {
        self.0.verdict.shadowed.as_ref().map(|shadowed| shadowed.decision.as_str())
    }

    /// Every rule in the order of evaluation, with its outcome.
    #[getter]
    fn tried<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tried = self.0.tried.iter().map(|tried| {
            let (outcome, failure) = match &tried.outcome {
                RuleOutcome::Decides => ("decides", None),
                RuleOutcome::WouldDecide => ("would_decide", None),
                RuleOutcome::Answered => ("answered", None),
                RuleOutcome::Matches => ("matches", None),
                RuleOutcome::Fails(failure) => ("fails", Some(failure)),
            };
            json!({
                "rule": tried.rule.id(),
                "tier": tried.rule.tier().as_str(),
                "priority": tried.rule.priority(),
                "decision": tried.rule.decision().as_str(),
                "outcome": outcome,
                "condition": failure.map(|failure| &failure.condition),
                "wanted": failure.map(|failure| &failure.wanted),
                "seen": failure.map(|failure| &failure.seen),
            })
        });
        bridge::to_python(py, &Value::Array(tried.collect()))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Explanation(decision='{}', rule={:?})", self.decision(), self.rule())
    }
}
