//! The general way to call a function: `*args` and `**kwargs`, names that only a supplied schema knows, many parameters.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::bindings::registration::{ParameterKind, Signature};
use crate::bindings::schema::{Fallback, fallback_of};
use crate::schema::check::Problem;

/// The call of a function whose parameters do not map one to one to the arguments that the model sends.
pub(super) struct Spread {
    named: Vec<Named>,
    /// The parameter `*args`, if the schema shows it as a list.
    positional: Option<Py<PyString>>,
    /// The parameter `**kwargs`, if the schema shows it as an object.
    keyword: Option<Py<PyString>>,
    /// Presets that no parameter has the name of.
    presets: Py<PyDict>,
}

struct Named {
    name: Py<PyString>,
    kind: ParameterKind,
    is_shown: bool,
    is_context: bool,
    preset: Option<Py<PyAny>>,
    default: Option<Py<PyAny>>,
    /// True if the default is not the one that Python would use by itself.
    is_explicit: bool,
}

type Bindings<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

impl Spread {
    pub(super) fn new(
        py: Python<'_>,
        signature: &Signature,
        presets: &Bound<'_, PyDict>,
        is_shown: &dyn Fn(&str) -> bool,
        is_supplied: bool,
        passes_all: bool,
    ) -> PyResult<Self> {
        // A supplied schema has the arguments themselves: one that is called `kwargs` is passed by this name.
        let is_named = is_supplied && signature.parameters.iter().any(|it| it.kind == ParameterKind::VarKeyword);
        let extra = presets.copy()?;
        let mut spread = Self { named: Vec::new(), positional: None, keyword: None, presets: extra.clone().unbind() };
        for parameter in &signature.parameters {
            let name = parameter.name.clone_ref(py);
            let is_shown = !parameter.is_context && is_shown(name.bind(py).to_str()?);
            match parameter.kind {
                ParameterKind::VarPositional => spread.positional = (is_shown && !is_named).then_some(name),
                ParameterKind::VarKeyword => spread.keyword = (is_shown && !is_named).then_some(name),
                kind => {
                    let is_shown = is_shown || (passes_all && !parameter.is_context);
                    let preset = presets.get_item(&name)?.map(Bound::unbind);
                    if preset.is_some() {
                        extra.del_item(&name)?;
                    }
                    let written = parameter.default.as_ref().map(|value| value.bind(py));
                    let default = match written.map(fallback_of).transpose()? {
                        Some(Fallback::Value(value)) => Some(value),
                        Some(Fallback::None | Fallback::Factory(_)) | None => None,
                    };
                    let is_explicit = default.as_ref().zip(written).is_some_and(|(value, written)| !written.is(value));
                    let is_context = parameter.is_context && preset.is_none();
                    spread.named.push(Named { name, kind, is_shown, is_context, preset, default, is_explicit });
                }
            }
        }
        Ok(spread)
    }

    /// Binds arguments that have been checked against the schema.
    pub(super) fn bind<'py>(
        &self,
        py: Python<'py>,
        input: &Bound<'py, PyDict>,
    ) -> PyResult<Result<Bindings<'py>, Vec<Problem>>> {
        let rest = input.copy()?;
        let mut more = Vec::new();
        if let Some(value) = take(py, &rest, self.positional.as_ref())? {
            more = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        }
        let keywords = PyDict::new(py);
        if let Some(value) = take(py, &rest, self.keyword.as_ref())? {
            let value = value.cast_into::<PyDict>().map_err(PyErr::from)?;
            let problems = self.taken_names(py, &value)?;
            if !problems.is_empty() {
                return Ok(Err(problems));
            }
            keywords.update(value.as_mapping())?;
        }
        let mut arguments = Vec::new();
        // Positional arguments reach `*args` only if every parameter before it is passed by position too.
        let must_be_positional = !more.is_empty();
        for parameter in &self.named {
            let sent =
                if parameter.is_shown || parameter.is_context { take(py, &rest, Some(&parameter.name))? } else { None };
            let preset = parameter.preset.as_ref().map(|value| value.bind(py).clone());
            let value = preset.or(sent);
            let is_positional = parameter.kind == ParameterKind::PositionalOnly
                || (parameter.kind == ParameterKind::PositionalOrKeyword && must_be_positional);
            let value = if is_positional || parameter.is_explicit {
                value.or_else(|| parameter.default.as_ref().map(|value| value.bind(py).clone()))
            } else {
                value
            };
            if is_positional {
                // Without this one, those after it would each slip into the place of another.
                arguments.push(value.ok_or_else(|| {
                    PyTypeError::new_err(format!("missing a required argument: '{}'", parameter.name))
                })?);
            } else if let Some(value) = value {
                keywords.set_item(&parameter.name, value)?;
            }
        }
        arguments.append(&mut more);
        keywords.update(rest.as_mapping())?;
        keywords.update(self.presets.bind(py).as_mapping())?;
        Ok(Ok((PyTuple::new(py, arguments)?, keywords)))
    }

    /// The parameters that are filled with the context of the call.
    pub(super) fn contexts(&self) -> impl Iterator<Item = &Py<PyString>> {
        self.named.iter().filter(|parameter| parameter.is_context).map(|parameter| &parameter.name)
    }

    /// The parameters that the model may send, with what stands in for one that is not sent.
    pub(super) fn shown_defaults(&self) -> impl Iterator<Item = (&Py<PyString>, Option<&Py<PyAny>>)> {
        self.named.iter().filter(|it| it.is_shown && it.preset.is_none()).map(|it| (&it.name, it.default.as_ref()))
    }

    /// Names inside `**kwargs` that belong to a parameter or a preset: the model may not reach those this way.
    fn taken_names(&self, py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Vec<Problem>> {
        let owner = self.keyword.as_ref().map(|name| name.bind(py).to_string()).unwrap_or_default();
        let mut problems = Vec::new();
        for name in keywords.keys() {
            let mut is_taken = self.presets.bind(py).contains(&name)?;
            for parameter in &self.named {
                is_taken = is_taken || name.eq(&parameter.name)?;
            }
            if is_taken {
                problems.push(Problem {
                    path: format!("{owner}.{name}").into(),
                    expected: "a name that no other parameter has".into(),
                    found: format!("`{name}`").into(),
                });
            }
        }
        Ok(problems)
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.presets)?;
        for parameter in &self.named {
            visit.call(&parameter.preset)?;
            visit.call(&parameter.default)?;
        }
        Ok(())
    }
}

/// Takes an argument out of those that are left.
fn take<'py>(
    py: Python<'py>,
    input: &Bound<'py, PyDict>,
    name: Option<&Py<PyString>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(name) = name else { return Ok(None) };
    let value = input.get_item(name.bind(py))?;
    if value.is_some() {
        input.del_item(name.bind(py))?;
    }
    Ok(value)
}
