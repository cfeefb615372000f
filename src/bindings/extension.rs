//! What an extended model makes of a tool: another schema, other arguments, and a structured finish if one is wanted.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyType};
use serde_json::Value;

use super::call::Plan;
use super::callable::Kind;
use super::imported::FINISH;
use super::json::schema_from_python;
use super::meta::open;
use super::modules::imported;
use super::signature::{ParameterKind, Signature};
use super::tool::PyTool;
use super::value::error_text;
use crate::schema::extend::{added, extend, loosen};
use crate::schema::{Document, FunctionSchema, Node};
use crate::{Error, Result};

/// The model that extends a tool, and what the tool was before.
pub(crate) struct Extension {
    pub(crate) model: Py<PyAny>,
    pub(crate) original: Arc<FunctionSchema>,
    /// Why the model does not fit, if that is to be told only where the schema is read.
    conflict: Option<Error>,
    pub(crate) finish: Option<Finish>,
}

/// What stands around a function that ends a structured conversation.
pub(crate) struct Finish {
    /// Python's half of it, which knows pydantic.
    checker: Py<PyAny>,
    pub(crate) function: Py<PyAny>,
}

/// When and how the fields of a model are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// They are in the schema; a conflict is raised at once.
    Describe,
    /// They are in the schema; a conflict is raised where the schema is read, as AgentScope does.
    DescribeLater,
    /// They are in the schema, and what is sent for them is validated by the model.
    Finish,
}

impl Finish {
    /// The callable with this around it, of the same kind.
    pub(crate) fn around<'py>(&self, callable: &Bound<'py, PyAny>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
        let py = callable.py();
        let method = match kind {
            Kind::Function => intern!(py, "around_function"),
            Kind::Coroutine => intern!(py, "around_coroutine"),
            Kind::Generator => intern!(py, "around_generator"),
            Kind::AsyncGenerator => intern!(py, "around_async_generator"),
        };
        self.checker.bind(py).call_method1(method, (callable,))
    }
}

impl Extension {
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.model)?;
        if let Some(finish) = &self.finish {
            visit.call(&finish.checker)?;
            visit.call(&finish.function)?;
        }
        Ok(())
    }
}

impl PyTool {
    /// Says whether the schema can be told.
    pub(crate) fn check_extension(&self) -> Result<()> {
        let conflict = self.extension.as_ref().and_then(|extension| extension.conflict.clone());
        conflict.map_or(Ok(()), Err)
    }

    /// The tool without a model.
    pub(crate) fn unextended(&self, py: Python<'_>) -> PyResult<Self> {
        let schema = self.original_schema().clone();
        let function = self.registered().clone_ref(py);
        let signature = Signature::read(py, function.bind(py))?;
        let plan = self.plan_for(py, &signature, schema.parameters().value().clone())?;
        Ok(self.with(py, schema, plan, function, None))
    }

    /// The tool with the fields of a model.
    pub(crate) fn extended(&self, py: Python<'_>, model: &Bound<'_, PyAny>, how: Use) -> PyResult<Self> {
        let original = self.original_schema().clone();
        let parameters = original.parameters().value();
        let mut function = self.registered().clone_ref(py);
        let mut signature = Signature::read(py, function.bind(py))?;
        let described = self.describe(py, model)?;
        let (merged, conflict) = match self.merge(py, parameters, described) {
            Ok(merged) => (merged, None),
            Err(error) if how == Use::DescribeLater => (parameters.clone(), Some(error)),
            Err(error) => return Err(error.into()),
        };
        let fields: Vec<String> = added(&merged, parameters).map(str::to_owned).collect();
        let takes_any = signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword);
        // A field may have the name that the function gives to `*args` or `**kwargs`: it is not meant by it.
        signature.parameters.retain(|parameter| {
            !matches!(parameter.kind, ParameterKind::VarPositional | ParameterKind::VarKeyword)
                || !fields.iter().any(|field| parameter.name.bind(py).to_str().is_ok_and(|name| name == field))
        });
        let mut held = merged.clone();
        let mut finish = None;
        if how == Use::Finish {
            held = loosen(&merged, parameters);
            // The fields are told from the rest by their names.
            signature.by_name = true;
            let is_passed = |field: &&String| takes_any || signature.takes(py, field);
            let passed = PyFrozenSet::new(py, fields.iter().filter(is_passed))?;
            let names = PyFrozenSet::new(py, &fields)?;
            let checker = FINISH.get(py)?.call1((model, names, passed))?.unbind();
            let made = Finish { checker, function: function.clone_ref(py) };
            function = made.around(function.bind(py), self.kind)?.unbind();
            finish = Some(made);
        }
        let plan = self.plan_for(py, &signature, held)?;
        let schema = Arc::new(original.with_parameters(&merged.into()));
        let extension = Extension { model: model.clone().unbind(), original, conflict, finish };
        Ok(self.with(py, schema, plan, function, Some(Box::new(extension))))
    }

    /// The tool as it was registered, with another function of the same signature behind it.
    pub(crate) fn redirected(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Self> {
        let schema = self.original_schema().clone();
        let signature = Signature::read(py, function.bind(py))?;
        let plan = self.plan_for(py, &signature, schema.parameters().value().clone())?;
        Ok(self.with(py, schema, plan, function, None))
    }

    fn plan_for(&self, py: Python<'_>, signature: &Signature, parameters: Value) -> PyResult<Plan> {
        let mut parameters = Node::from(parameters);
        if self.meta.is_some() {
            parameters = open(&parameters);
        }
        let document = Arc::new(Document::new(&parameters));
        let handling = self.plan.handling().clone();
        Plan::new(py, &self.name, signature, self.presets.bind(py), &parameters, &document, false, handling)
    }

    /// The schema of the model, in pydantic's words.
    fn describe(&self, py: Python<'_>, model: &Bound<'_, PyAny>) -> PyResult<Value> {
        let described = model.call_method0(intern!(py, "model_json_schema")).and_then(|it| schema_from_python(&it));
        described.map(Value::from).map_err(|cause| {
            let error = Error::UnusableModel { tool: self.name.to_string(), reason: error_text(py, &cause) };
            let error = PyErr::from(error);
            error.set_cause(py, Some(cause));
            error
        })
    }

    fn merge(&self, py: Python<'_>, original: &Value, described: Value) -> Result<Value> {
        let merged = extend(original, &self.name, described)?;
        let presets = self.presets.bind(py);
        let preset = added(&merged, original).find(|field| presets.contains(*field).unwrap_or(false));
        match preset.map(str::to_owned) {
            Some(field) => Err(Error::PresetConflict { tool: self.name.to_string(), field }),
            None => Ok(merged),
        }
    }
}

impl Signature {
    /// Whether an argument of this name has a parameter of its own.
    fn takes(&self, py: Python<'_>, name: &str) -> bool {
        self.parameters.iter().any(|parameter| {
            matches!(parameter.kind, ParameterKind::PositionalOrKeyword | ParameterKind::KeywordOnly)
                && parameter.name.bind(py).to_str().is_ok_and(|other| other == name)
        })
    }
}

/// Refuses what is not a class made with the pydantic that the developer brought.
pub(crate) fn check_model(model: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = model.py();
    let base = match imported(py, intern!(py, "pydantic"))? {
        Some(pydantic) => pydantic.getattr_opt(intern!(py, "BaseModel"))?,
        None => None,
    };
    if let (Ok(class), Some(base)) = (model.cast::<PyType>(), base)
        && class.is_subclass(&base)?
    {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "The extended model must be a child class of pydantic BaseModel, but got {}.",
        model.get_type()
    )))
}
