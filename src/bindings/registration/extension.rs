//! Extended models: a pydantic model that adds its fields to the schema of a tool, and perhaps validates them.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyType};
use serde_json::Value;

use super::callable::{CallKind, ParameterKind, Signature};
use super::meta::with_any_switch;
use crate::bindings::call::Plan;
use crate::bindings::imported::{FINISH, loaded_module};
use crate::bindings::into_response::error_text;
use crate::bindings::json::schema_from_python;
use crate::bindings::once::intern;
use crate::bindings::schema::converters_of;
use crate::bindings::tool::PyTool;
use crate::bindings::typed::Converters;
use crate::call::{ArgumentMode, ChunkRule};
use crate::schema::extend::{added, extend, loosen};
use crate::schema::{Document, FunctionSchema, Node};
use crate::{Error, Result};

/// The model that extends a tool, and the original schema.
pub(crate) struct Extension {
    pub(crate) model: Py<PyAny>,
    pub(crate) original: Arc<FunctionSchema>,
    /// The reason why the model does not fit, if it is raised only where the schema is read.
    conflict: Option<Error>,
    pub(crate) finish: Option<Finish>,
}

/// The wrapper of a function that ends a conversation with validated data.
pub(crate) struct Finish {
    /// `toolcrib._finish.Finish`, which validates with pydantic.
    checker: Py<PyAny>,
    pub(crate) function: Py<PyAny>,
}

/// The use of a model's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelUse {
    /// They are added to the schema; a conflict is raised at once.
    Describe,
    /// They are added to the schema; a conflict is raised where the schema is read, as in AgentScope.
    DescribeLater,
    /// They are added to the schema, and the model validates their values.
    Finish,
}

impl Finish {
    /// Wraps a callable; the kind stays the same.
    pub(crate) fn wrap<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        kind: CallKind,
        chunks: ChunkRule,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = callable.py();
        let method = match kind {
            CallKind::Function => intern!(py, "around_function"),
            CallKind::Coroutine => intern!(py, "around_coroutine"),
            CallKind::Generator => intern!(py, "around_generator"),
            CallKind::AsyncGenerator => intern!(py, "around_async_generator"),
        };
        self.checker.bind(py).call_method1(method, (callable, chunks != ChunkRule::AsGiven))
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
    /// Raises the deferred error of a model that does not fit.
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
        Ok(self.rebuilt(py, schema, plan, function, None))
    }

    /// The tool with the fields of a model.
    pub(crate) fn extended(&self, py: Python<'_>, model: &Bound<'_, PyAny>, how: ModelUse) -> PyResult<Self> {
        let original = self.original_schema().clone();
        let parameters = original.parameters().value();
        let mut function = self.registered().clone_ref(py);
        let mut signature = Signature::read(py, function.bind(py))?;
        let described = self.model_schema(py, model)?;
        // The schema is not shown as open, but a model that allows other fields gets them.
        let others = described.get("additionalProperties").filter(|rest| **rest != Value::Bool(false)).cloned();
        let (merged, conflict) = match self.merge(py, parameters, described) {
            Ok(merged) => (merged, None),
            Err(error) if how == ModelUse::DescribeLater => (parameters.clone(), Some(error)),
            Err(error) => return Err(error.into()),
        };
        let fields: Vec<String> = added(&merged, parameters).map(str::to_owned).collect();
        let takes_any = signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword);
        // A field may have the name of the `*args` or `**kwargs` parameter, which it does not refer to.
        signature.parameters.retain(|parameter| {
            !matches!(parameter.kind, ParameterKind::VarPositional | ParameterKind::VarKeyword)
                || !fields.iter().any(|field| parameter.name.bind(py).to_str().is_ok_and(|name| name == field))
        });
        let mut accepted = merged.clone();
        if let (Some(others), Value::Object(accepted)) = (others, &mut accepted) {
            accepted.insert("additionalProperties".to_owned(), others);
        }
        let mut finish = None;
        if how == ModelUse::Finish {
            accepted = loosen(&merged, parameters);
            // Fields are separated from the other arguments by name.
            signature.by_name = true;
            let is_passed = |field: &&String| takes_any || signature.takes(py, field);
            let passed = PyFrozenSet::new(py, fields.iter().filter(is_passed))?;
            let names = PyFrozenSet::new(py, &fields)?;
            let checker = FINISH.get(py)?.call1((model, names, passed))?.unbind();
            let wrapper = Finish { checker, function: function.clone_ref(py) };
            function = wrapper.wrap(function.bind(py), self.kind, self.chunks)?.unbind();
            finish = Some(wrapper);
        }
        let plan = self.plan_for(py, &signature, accepted)?;
        let schema = Arc::new(original.with_parameters(&merged.into()));
        let extension = Extension { model: model.clone().unbind(), original, conflict, finish };
        Ok(self.rebuilt(py, schema, plan, function, Some(Box::new(extension))))
    }

    /// The tool as registered, with another function of the same signature.
    pub(crate) fn with_function(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Self> {
        let schema = self.original_schema().clone();
        let signature = Signature::read(py, function.bind(py))?;
        let plan = self.plan_for(py, &signature, schema.parameters().value().clone())?;
        Ok(self.rebuilt(py, schema, plan, function, None))
    }

    fn plan_for(&self, py: Python<'_>, signature: &Signature, parameters: Value) -> PyResult<Plan> {
        let mut parameters = Node::from(parameters);
        if self.meta.is_some() {
            parameters = with_any_switch(&parameters);
        }
        let document = Arc::new(Document::new(&parameters));
        let handling = self.plan.handling().clone();
        let converters = if handling.arguments == ArgumentMode::Coerce {
            converters_of(py, self.registered().bind(py), signature)?
        } else {
            Converters::default()
        };
        Plan::new(py, &self.name, signature, self.presets(py), &parameters, &document, false, converters, handling)
    }

    /// The JSON Schema of the model by pydantic.
    fn model_schema(&self, py: Python<'_>, model: &Bound<'_, PyAny>) -> PyResult<Value> {
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
        let presets = self.presets(py);
        let preset = added(&merged, original).find(|field| presets.contains(*field).unwrap_or(false));
        match preset.map(str::to_owned) {
            Some(field) => Err(Error::PresetConflict { tool: self.name.to_string(), field }),
            None => Ok(merged),
        }
    }
}

impl Signature {
    /// True if an argument of this name has a parameter of its own.
    fn takes(&self, py: Python<'_>, name: &str) -> bool {
        self.parameters.iter().any(|parameter| {
            matches!(parameter.kind, ParameterKind::PositionalOrKeyword | ParameterKind::KeywordOnly)
                && parameter.name.bind(py).to_str().is_ok_and(|other| other == name)
        })
    }
}

/// Checks that a model is a subclass of `pydantic.BaseModel`.
pub(crate) fn check_model(model: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = model.py();
    let base = match loaded_module(py, intern!(py, "pydantic"))? {
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
