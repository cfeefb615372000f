//! The special forms of `typing`: tuples, unions, literals, `Annotated` and type variables.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::annotation::{Reader, Reading};
use super::class::{is_forward, type_name};
use super::default::value_to_json;
use super::generic::{Typing, arguments_of, form_name, origin_of};
use super::metadata::Metadata;
use super::refusal::reject;
use super::scope::Home;
use crate::bindings::imported::import_module;
use crate::schema::{ArrayKind, Type};

impl<'py> Reader<'py> {
    pub(super) fn read_tuple(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        arguments: Option<&[Bound<'py, PyAny>]>,
    ) -> Reading<Type> {
        let py = self.py;
        let other = |items| Type::Array { items: Box::new(items), kind: ArrayKind::Other };
        let is_bare = annotation.is(Typing::get(py)?.bare_tuple.bind(py));
        let Some(arguments) = arguments.filter(|_| !is_bare) else {
            return Ok(other(Type::Any));
        };
        match arguments {
            [item, rest] if rest.is(py.Ellipsis()) => Ok(other(self.read(item)?)),
            [empty] if empty.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty) => Ok(Type::Tuple(Vec::new())),
            _ if arguments.iter().any(|argument| argument.is(py.Ellipsis())) => {
                Ok(reject(annotation, "only the last of two places can be `...`"))
            }
            members => Ok(Type::Tuple(members.iter().map(|member| self.read(member)).collect::<Reading<_>>()?)),
        }
    }

    pub(super) fn read_union(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        let arguments = arguments_of(annotation)?;
        let none = self.py.None();
        let none = none.bind(self.py);
        let is_null = |argument: &Bound<'py, PyAny>| argument.is_none() || argument.is(none.get_type());
        let mut choices = Vec::with_capacity(arguments.len());
        for argument in arguments.iter().filter(|argument| !is_null(argument)) {
            choices.push(self.read(argument)?);
        }
        let nullable = choices.len() < arguments.len();
        let choice = match choices.len() {
            0 => return Ok(Type::Null),
            1 => choices.swap_remove(0),
            _ => Type::Union(choices),
        };
        Ok(if nullable { Type::Nullable(Box::new(choice)) } else { choice })
    }

    pub(super) fn read_annotated(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        let mut arguments = arguments_of(annotation)?;
        let inner = arguments.remove(0);
        let metadata = Metadata::read(arguments, self.foreign)?;
        if metadata.is_for_a_field() {
            // A default or a title deep inside a type means something to pydantic only.
            return self.read_foreign(annotation);
        }
        let read = self.read(&inner)?.referred();
        match metadata.limit_and_note(read) {
            Some(read) => Ok(read),
            None => self.read_foreign(annotation),
        }
    }

    pub(super) fn read_variable(&mut self, variable: &Bound<'py, PyAny>) -> Reading<Type> {
        let py = self.py;
        if let Ok(has_default) = variable.call_method0(intern!(py, "has_default"))
            && has_default.is_truthy()?
        {
            return self.read(&variable.getattr(intern!(py, "__default__"))?);
        }
        self.homes.push(Home::of_type(variable.clone()));
        let read = self.read_bound(variable);
        self.homes.pop();
        read
    }

    fn read_bound(&mut self, variable: &Bound<'py, PyAny>) -> Reading<Type> {
        let py = self.py;
        let constraints = variable.getattr(intern!(py, "__constraints__"))?;
        let constraints = constraints.cast_into::<PyTuple>()?;
        if !constraints.is_empty() {
            // One of them may be a union itself.
            let union = import_module(py, "typing")?.getattr(intern!(py, "Union"))?;
            return self.read(&union.get_item(constraints)?);
        }
        let bound = variable.getattr(intern!(py, "__bound__"))?;
        if bound.is_none() {
            return Ok(Type::Any);
        }
        // What a variable is bound to may be more than the definition says.
        Ok(match self.read(&bound)? {
            definition @ Type::Reference(_) => Type::Kept(Box::new(definition)),
            other => other,
        })
    }
}

/// Whether `class` in `type[class]` narrows down which classes are meant.
pub(super) fn may_name_a_class(class: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = class.py();
    if class.is(Typing::get(py)?.any.bind(py)) {
        return Ok(false);
    }
    if class.is_none() || class.is_exact_instance_of::<PyType>() || is_forward(class)? {
        return Ok(true);
    }
    if let Some(origin) = origin_of(class)? {
        return match form_name(&origin).as_deref() {
            Some("Union" | "UnionType") => Ok(true),
            Some("Annotated") => may_name_a_class(&class.getattr(intern!(py, "__origin__"))?),
            _ => Ok(false),
        };
    }
    match type_name(class).as_str() {
        "TypeVar" => Ok(!class.getattr(intern!(py, "__bound__"))?.is_none()
            || !class.getattr(intern!(py, "__constraints__"))?.is_empty()?),
        "TypeAliasType" => may_name_a_class(&class.getattr(intern!(py, "__value__"))?),
        _ => Ok(class.cast::<PyType>().is_ok() || form_name(class).as_deref() == Some("Self")),
    }
}

/// Reads the values of `Literal[…]`.
pub(super) fn read_literal(annotation: &Bound<'_, PyAny>) -> Reading<Type> {
    let arguments = arguments_of(annotation)?;
    let values: Option<Vec<_>> = arguments.iter().map(value_to_json).collect();
    Ok(match values {
        Some(values) => Type::Literal(values),
        None => reject(annotation, "one of its values is not JSON"),
    })
}
