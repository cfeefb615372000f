//! What a developer is told about an annotation without a schema.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::generic::origin_of;
use super::size::is_short;
use crate::schema::{Refusal, Type};

/// What is to be done about a parameter without a schema.
const ADVICE: &str = "hide it with preset_kwargs, annotate it with a type that JSON knows, or pass json_schema=";

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// Says why an annotation has no schema.
pub(super) fn refuse(annotation: &Bound<'_, PyAny>, why: &str) -> Type {
    Type::Unsupported(refusal(annotation, why, false))
}

/// Says what is wrong with an annotation.
pub(super) fn reject(annotation: &Bound<'_, PyAny>, why: &str) -> Type {
    Type::Unsupported(refusal(annotation, why, true))
}

pub(super) fn refusal(annotation: &Bound<'_, PyAny>, why: &str, mistake: bool) -> Refusal {
    let shown = match annotation.cast::<PyType>() {
        Ok(class) => class.fully_qualified_name().map(|name| name.to_string_lossy().into_owned()),
        Err(_) if is_short(annotation) => annotation.repr().map(|text| text.to_string_lossy().into_owned()),
        Err(_) => Ok(format!("{}[…]", outermost(annotation))),
    };
    Refusal { annotation: shown.unwrap_or_else(|_| "?".to_owned()), reason: format!("{why}; {ADVICE}"), mistake }
}

/// The name of what an annotation is at its outermost.
fn outermost(annotation: &Bound<'_, PyAny>) -> String {
    let outermost = origin_of(annotation).ok().flatten().unwrap_or_else(|| annotation.clone());
    let name = outermost.getattr("__name__").and_then(|name| name.extract::<String>());
    name.unwrap_or_else(|_| super::class::type_name(&outermost))
}
