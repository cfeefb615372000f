//! The parameters of any Python callable.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use super::imported::{METHOD, import_module};

/// How an argument reaches its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    PositionalOnly,
    PositionalOrKeyword,
    VarPositional,
    KeywordOnly,
    VarKeyword,
}

/// One parameter as it was written.
pub(crate) struct Parameter {
    pub(crate) name: Py<PyString>,
    pub(crate) kind: ParameterKind,
    pub(crate) default: Option<Py<PyAny>>,
    pub(crate) annotation: Option<Py<PyAny>>,
}

/// The parameters of a callable, in order, without the one a method is bound to.
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    /// Whether arguments are passed by name wherever they can be: the signature is one that the callable claims, which need
    /// not be that of the code behind it, or the receiver of a method is missing.
    pub(crate) by_name: bool,
    /// Whether the function is a method that was never bound, whose receiver is not among the parameters.
    pub(crate) lacks_receiver: bool,
    /// The flags of the code that is called, if nobody has said anything about the function besides.
    pub(crate) flags: Option<u32>,
}

const VAR_POSITIONAL: u32 = 0x04;
const VAR_KEYWORD: u32 = 0x08;

impl Signature {
    /// Reads the signature of `callable`.
    ///
    /// Plain functions and methods are read from their code object; everything else is left to `inspect`.
    pub(crate) fn read(py: Python<'_>, callable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let method = if callable.is_exact_instance_of::<PyFunction>() || !callable.get_type().is(method_type(py)?) {
            None
        } else {
            Some(callable.getattr(intern!(py, "__func__"))?)
        };
        let Ok(function) = method.as_ref().unwrap_or(callable).cast_exact::<PyFunction>() else {
            return inspect(py, callable);
        };
        let attributes = attributes_of(function)?;
        let claims = [intern!(py, "__wrapped__"), intern!(py, "__signature__")];
        if has_any(&attributes, &claims)? {
            return inspect(py, callable);
        }
        let (mut signature, flags) = read_code(function, method.is_some())?;
        signature.flags = attributes.is_empty().then_some(flags);
        Ok(signature)
    }
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(METHOD.get(py)?.cast::<PyType>()?)
}

/// What somebody has said about a function. Nearly always that is nothing, and then asking for one attribute would make an
/// exception that says so.
pub(crate) fn attributes_of<'py>(function: &Bound<'py, PyFunction>) -> PyResult<Bound<'py, PyDict>> {
    Ok(function.getattr(intern!(function.py(), "__dict__"))?.cast_into::<PyDict>()?)
}

/// Whether one of these is among the attributes.
pub(crate) fn has_any(attributes: &Bound<'_, PyDict>, names: &[&Bound<'_, PyString>]) -> PyResult<bool> {
    if attributes.is_empty() {
        return Ok(false);
    }
    for name in names {
        if attributes.contains(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The signature that the code has, and the flags of the code.
fn read_code(function: &Bound<'_, PyFunction>, is_bound: bool) -> PyResult<(Signature, u32)> {
    let py = function.py();
    let code = function.getattr(intern!(py, "__code__"))?;
    let names = code.getattr(intern!(py, "co_varnames"))?.cast_into::<PyTuple>()?;
    let positional: usize = code.getattr(intern!(py, "co_argcount"))?.extract()?;
    let positional_only: usize = code.getattr(intern!(py, "co_posonlyargcount"))?.extract()?;
    let keyword_only: usize = code.getattr(intern!(py, "co_kwonlyargcount"))?.extract()?;
    let flags: u32 = code.getattr(intern!(py, "co_flags"))?.extract()?;
    let defaults = function.getattr(intern!(py, "__defaults__"))?.cast_into::<PyTuple>().ok();
    let keyword_defaults = function.getattr(intern!(py, "__kwdefaults__"))?.cast_into::<PyDict>().ok();
    let annotations = function.getattr(intern!(py, "__annotations__"))?.cast_into::<PyDict>().ok();

    let parameter = |at: usize, kind: ParameterKind, default: Option<Py<PyAny>>| -> PyResult<Parameter> {
        let name = names.get_item(at)?.cast_into::<PyString>()?;
        let annotation = match &annotations {
            Some(annotations) => annotations.get_item(&name)?.map(pyo3::Bound::unbind),
            None => None,
        };
        Ok(Parameter { name: name.unbind(), kind, default, annotation })
    };

    let with_default = defaults.as_ref().map_or(0, PyTupleMethods::len);
    let mut parameters = Vec::with_capacity(positional + keyword_only + 2);
    let mut by_name = false;
    for at in 0..positional {
        if at == 0 && (is_bound || is_receiver(&names.get_item(0)?)) {
            by_name = !is_bound;
            continue;
        }
        let kind =
            if at < positional_only { ParameterKind::PositionalOnly } else { ParameterKind::PositionalOrKeyword };
        let default = match &defaults {
            Some(defaults) if at + with_default >= positional => {
                Some(defaults.get_item(at + with_default - positional)?.unbind())
            }
            _ => None,
        };
        parameters.push(parameter(at, kind, default)?);
    }
    let mut rest = positional + keyword_only;
    if flags & VAR_POSITIONAL != 0 {
        parameters.push(parameter(rest, ParameterKind::VarPositional, None)?);
        rest += 1;
    }
    for at in positional..positional + keyword_only {
        let default = match &keyword_defaults {
            Some(defaults) => defaults.get_item(names.get_item(at)?)?.map(pyo3::Bound::unbind),
            None => None,
        };
        parameters.push(parameter(at, ParameterKind::KeywordOnly, default)?);
    }
    if flags & VAR_KEYWORD != 0 {
        parameters.push(parameter(rest, ParameterKind::VarKeyword, None)?);
    }
    Ok((Signature { parameters, by_name, lacks_receiver: by_name, flags: None }, flags))
}

/// Whether a first parameter of this name stands for the object of a method.
fn is_receiver(name: &Bound<'_, PyAny>) -> bool {
    name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|name| matches!(name, "self" | "cls")))
}

fn inspect(py: Python<'_>, callable: &Bound<'_, PyAny>) -> PyResult<Signature> {
    let inspect = import_module(py, "inspect")?;
    let empty = inspect.getattr(intern!(py, "_empty"))?;
    let given = |object: Bound<'_, PyAny>| {
        if object.is(&empty) { None } else { Some(object.unbind()) }
    };
    // Only a function that was never bound still shows its receiver.
    let unbound = callable.is_exact_instance_of::<PyFunction>();

    let signature = inspect.call_method1(intern!(py, "signature"), (callable,))?;
    let shown = signature.getattr(intern!(py, "parameters"))?.call_method0(intern!(py, "values"))?;
    let (mut parameters, mut lacks_receiver) = (Vec::new(), false);
    for (at, shown) in shown.try_iter()?.enumerate() {
        let shown = shown?;
        let name = shown.getattr(intern!(py, "name"))?.cast_into::<PyString>()?;
        let kind = match shown.getattr(intern!(py, "kind"))?.extract::<u8>()? {
            0 => ParameterKind::PositionalOnly,
            1 => ParameterKind::PositionalOrKeyword,
            2 => ParameterKind::VarPositional,
            3 => ParameterKind::KeywordOnly,
            _ => ParameterKind::VarKeyword,
        };
        let positional = matches!(kind, ParameterKind::PositionalOnly | ParameterKind::PositionalOrKeyword);
        if at == 0 && unbound && positional && is_receiver(&name) {
            lacks_receiver = true;
            continue;
        }
        parameters.push(Parameter {
            name: PyString::intern(py, name.to_str()?).unbind(),
            kind,
            default: given(shown.getattr(intern!(py, "default"))?),
            annotation: given(shown.getattr(intern!(py, "annotation"))?),
        });
    }
    Ok(Signature { parameters, by_name: true, lacks_receiver, flags: None })
}
