//! What kind of callable a tool is, decided once, and what a partial has already decided.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use super::imported::PARTIAL;
use super::json::entries_of;
use super::native::PyNativeTool;
use super::register::no_presets;
use super::signature::{ParameterKind, Signature, attributes_of, has_any};

/// What calling a tool's function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The result, or something that says by itself how it is to be run.
    Function,
    /// A coroutine.
    Coroutine,
    /// An async generator.
    AsyncGenerator,
    /// A generator.
    Generator,
}

/// A callable with everything that was decided about it before it came here.
pub(crate) struct Callable<'py> {
    /// What is called.
    pub(crate) function: Bound<'py, PyAny>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) signature: Signature,
    /// The arguments that a partial has bound, by name; not to be written to.
    pub(crate) bound: Bound<'py, PyDict>,
}

impl<'py> Callable<'py> {
    /// Takes a callable apart. The partial itself is only read.
    pub(crate) fn read(callable: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = callable.py();
        if !callable.is_callable() {
            let message = format!("a tool must be callable, not {}", callable.get_type().qualname()?);
            return Err(PyTypeError::new_err(message));
        }
        let mut bound = no_presets(py).clone();
        let mut function = callable.clone();
        let mut positional: Vec<Bound<'py, PyAny>> = Vec::new();
        // CPython flattens a partial of a partial, but not one of a subclass.
        while is_partial(&function)? {
            let earlier = function.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
            positional = earlier.iter().chain(positional).collect();
            let keywords = function.getattr(intern!(py, "keywords"))?.cast_into::<PyDict>()?;
            if bound.is(no_presets(py)) {
                bound = PyDict::new(py);
            }
            for (name, value) in entries_of(&keywords) {
                if !bound.contains(&name)? {
                    bound.set_item(name, value)?;
                }
            }
            function = function.getattr(intern!(py, "func"))?;
        }
        let name = name_of(&function)?;
        if let Ok(native) = function.cast::<PyNativeTool>()
            && positional.is_empty()
        {
            let (kind, signature) = (native.get().call_kind(), native.get().signature(py)?);
            return Ok(Self { function, name, kind, signature, bound });
        }
        let mut signature = Signature::read(py, &function)?;
        let kind = signature.flags.map_or_else(|| kind_of(&function), |flags| Ok(kind_by(flags)))?;
        if signature.lacks_receiver && !positional.is_empty() {
            // The first of them is the receiver: with it the function is a method like any other.
            function = function.call_method1(intern!(py, "__get__"), (positional.remove(0),))?;
            signature = Signature::read(py, &function)?;
        }
        if !positional.is_empty() {
            let takers: Vec<_> = signature
                .parameters
                .iter()
                .filter(|parameter| {
                    matches!(parameter.kind, ParameterKind::PositionalOnly | ParameterKind::PositionalOrKeyword)
                })
                .map(|parameter| parameter.name.clone_ref(py))
                .collect();
            if takers.len() >= positional.len() {
                for (taker, value) in takers.iter().zip(positional) {
                    bound.set_item(taker, value)?;
                }
            } else {
                // Some of them go to `*args`, which has no names: the partial is called as it is.
                positional.insert(0, function);
                function = partial_class(py)?.call1(PyTuple::new(py, positional)?)?;
                signature = Signature::read(py, &function)?;
            }
        }
        Ok(Self { function, name, kind, signature, bound })
    }
}

fn partial_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(PARTIAL.get(py)?.cast::<PyType>()?)
}

fn is_partial(callable: &Bound<'_, PyAny>) -> PyResult<bool> {
    if callable.is_exact_instance_of::<PyFunction>() {
        return Ok(false);
    }
    callable.is_instance(partial_class(callable.py())?)
}

/// The function's own name; an object without one goes by the name of its class.
fn name_of(callable: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = callable.py();
    if let Some(name) = callable.getattr_opt(intern!(py, "__name__"))?
        && let Ok(name) = name.cast::<PyString>()
    {
        return Ok(name.to_string_lossy().into_owned());
    }
    Ok(callable.get_type().name()?.to_string())
}

const GENERATOR: u32 = 0x20;
const COROUTINE: u32 = 0x80;
const ITERABLE_COROUTINE: u32 = 0x100;
const ASYNC_GENERATOR: u32 = 0x200;

fn kind_of(callable: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let py = callable.py();
    if callable.is_instance_of::<PyType>() {
        return Ok(Kind::Function);
    }
    let mut function = callable.clone();
    if !function.is_instance_of::<PyFunction>() {
        // Methods have their function; an object with `__code__` poses as one; any other object has its `__call__`.
        function = match function.getattr_opt(intern!(py, "__func__"))? {
            Some(inner) => inner,
            None if function.hasattr(intern!(py, "__code__"))? => function,
            None => match function.get_type().getattr_opt(intern!(py, "__call__"))? {
                Some(call) => call,
                None => function,
            },
        };
    }
    // Set by `inspect.markcoroutinefunction`.
    let marker = intern!(py, "_is_coroutine_marker");
    let is_marked = match function.cast::<PyFunction>() {
        Ok(function) => has_any(&attributes_of(function)?, &[marker])?,
        Err(_) => function.getattr_opt(marker)?.is_some(),
    };
    if is_marked {
        return Ok(Kind::Coroutine);
    }
    let flags: u32 = match function.getattr_opt(intern!(py, "__code__"))? {
        Some(code) => code.getattr(intern!(py, "co_flags"))?.extract().unwrap_or_default(),
        None => 0,
    };
    Ok(kind_by(flags))
}

/// What calling code with these flags gives.
fn kind_by(flags: u32) -> Kind {
    if flags & (COROUTINE | ITERABLE_COROUTINE) != 0 {
        Kind::Coroutine
    } else if flags & ASYNC_GENERATOR != 0 {
        Kind::AsyncGenerator
    } else if flags & GENERATOR != 0 {
        Kind::Generator
    } else {
        Kind::Function
    }
}
