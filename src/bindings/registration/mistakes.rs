//! Probable mistakes in a registration: names that no parameter has, methods without their object, names that providers refuse.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::callable::{Callable, ParameterKind};
use super::options::ToolOptions;
use crate::bindings::json::entries_of;
use crate::bindings::once::intern;
use crate::bindings::warn;
use crate::near::did_you_mean;

/// The longest name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// Refuses registrations that cannot work, and warns of those that are probably not meant.
pub(super) fn check(
    py: Python<'_>,
    tool: &str,
    callable: &Callable<'_>,
    options: &ToolOptions<'_>,
    is_named_here: bool,
) -> PyResult<()> {
    let names = Names { py, callable };
    check_presets(tool, &names, options)?;
    check_receiver(tool, callable, options)?;
    if is_named_here && !is_portable(tool) {
        warn(
            py,
            &format!(
                "model providers refuse the tool name `{tool}`: expected 1 to {LONGEST_NAME} letters, digits, `_` and `-`; \
                 pass another one as `name=`"
            ),
        )?;
    }
    Ok(())
}

/// Warns of parameters that the docstring of a function describes, and that the function does not have.
pub(super) fn warn_of_documented(
    py: Python<'_>,
    tool: &str,
    callable: &Callable<'_>,
    documented: &[String],
) -> PyResult<()> {
    let names = Names { py, callable };
    let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let mut unknown =
        documented.iter().map(|name| name.trim_start_matches('*')).filter(|name| !names.has(name)).peekable();
    if unknown.peek().is_none() || names.is_open() {
        return Ok(());
    }
    // The docstring of a class describes its attributes too.
    let function = &callable.function;
    if !function.hasattr(intern!(py, "__code__"))? && !function.hasattr(intern!(py, "__func__"))? {
        return Ok(());
    }
    for name in unknown {
        if is_name(name) {
            let hint = did_you_mean(name, names.all());
            warn(py, &format!("tool `{tool}`: the docstring describes `{name}`, which is not a parameter{hint}"))?;
        }
    }
    Ok(())
}

/// The names of the parameters of a callable.
struct Names<'a, 'py> {
    py: Python<'py>,
    callable: &'a Callable<'py>,
}

impl Names<'_, '_> {
    /// True if it accepts any keyword.
    fn is_open(&self) -> bool {
        self.callable.signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword)
    }

    /// True for a parameter, and for the receiver of a method that was registered without its object.
    fn has(&self, name: &str) -> bool {
        self.all().any(|known| known == name) || (self.callable.signature.lacks_receiver && is_receiver(name))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.callable.signature.parameters.iter().filter_map(|parameter| parameter.name.bind(self.py).to_str().ok())
    }
}

fn is_receiver(name: &str) -> bool {
    matches!(name, "self" | "cls")
}

/// Refuses a preset that no parameter takes: the parameter that was meant would be left to the model.
fn check_presets(tool: &str, names: &Names<'_, '_>, options: &ToolOptions<'_>) -> PyResult<()> {
    let Some(presets) = options.presets.as_ref().filter(|presets| !presets.is_empty() && !names.is_open()) else {
        return Ok(());
    };
    for (name, _) in entries_of(presets) {
        let Ok(name) = name.cast::<PyString>().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if !names.has(&name) {
            let hint = did_you_mean(&name, names.all());
            let message = format!("tool `{tool}`: unknown parameter `{name}` in preset_kwargs{hint}");
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(())
}

/// Refuses a method without its object, which no call could pass.
fn check_receiver(tool: &str, callable: &Callable<'_>, options: &ToolOptions<'_>) -> PyResult<()> {
    if !callable.signature.lacks_receiver {
        return Ok(());
    }
    let is_receiver_preset = |(name, _): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        name.cast::<PyString>().is_ok_and(|name| is_receiver(&name.to_string_lossy()))
    };
    let presets = options.presets.iter().flat_map(entries_of).chain(entries_of(&callable.bound));
    if presets.into_iter().any(|preset| is_receiver_preset(&preset)) {
        return Ok(());
    }
    let function = &callable.function;
    let path = function.getattr("__qualname__").map_or_else(|_| tool.to_owned(), |name| name.to_string());
    Err(PyTypeError::new_err(format!(
        "tool `{tool}`: `{path}` is a method without its object: register the method of an object, \
         or pass the object in preset_kwargs"
    )))
}

/// True for a name that every provider accepts.
fn is_portable(name: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.len() <= LONGEST_NAME && name.bytes().all(is_accepted)
}
