//! From a Python annotation to a type.

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyString, PyType};

use super::class::{asks_for_pydantic, is_forward, known_class, plain_class, type_name};
use super::form::{may_name_a_class, read_literal};
use super::generic::{Typing, arguments_of, form_name, origin_of};
use super::known::Known;
use super::pydantic;
use super::refusal::{first_line, refuse, reject};
use super::scope::{self, Home};
use super::size::{TOO_DEEP, is_too_large, too_large};
use crate::bindings::json::DEEPEST;
use crate::schema::{Definitions, Type};

/// Why an annotation was not read.
pub(super) enum Trouble {
    /// Only pydantic knows what it means.
    AskPydantic,
    /// Python code failed.
    Python(PyErr),
}

impl From<PyErr> for Trouble {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<pyo3::CastIntoError<'_>> for Trouble {
    fn from(error: pyo3::CastIntoError<'_>) -> Self {
        Self::Python(error.into())
    }
}

impl From<pyo3::CastError<'_, '_>> for Trouble {
    fn from(error: pyo3::CastError<'_, '_>) -> Self {
        Self::Python(error.into())
    }
}

pub(super) type Reading<T> = Result<T, Trouble>;

/// What to do with a type that only pydantic knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// Stop, because pydantic will be asked about the whole signature.
    Stop,
    /// Ask about this one type and put the answer in its place.
    AskEach,
}

/// Reads the annotations of one signature.
pub(super) struct Reader<'py> {
    pub(super) py: Python<'py>,
    pub(super) definitions: Definitions,
    /// The definitions by reference.
    pub(super) met: HashMap<String, usize>,
    /// What the annotation at hand was written in, outermost first.
    pub(super) homes: Vec<Home<'py>>,
    /// The record whose fields are being read.
    pub(super) inside: Option<usize>,
    /// The records whose fields are being read, for which `Self` stands, the innermost last.
    pub(super) records: Vec<Bound<'py, PyAny>>,
    /// The string annotations being resolved, each with the record it stands in.
    open: Vec<(String, Option<usize>)>,
    /// Arguments of generic types, kept so that no other object takes over their identity.
    pub(super) kept: Vec<Bound<'py, PyAny>>,
    pub(super) foreign: Foreign,
    pub(super) depth: usize,
    /// How many parts of the parameter at hand have been read.
    pub(super) parts: usize,
}

impl<'py> Reader<'py> {
    pub(super) fn new(callable: &Bound<'py, PyAny>, foreign: Foreign) -> Self {
        Self {
            py: callable.py(),
            definitions: Vec::new(),
            met: HashMap::new(),
            homes: vec![Home::of_callable(callable.clone())],
            inside: None,
            records: Vec::new(),
            open: Vec::new(),
            kept: Vec::new(),
            foreign,
            depth: 0,
            parts: 0,
        }
    }

    /// Reads any annotation.
    pub(super) fn read(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        if let Some(refused) = self.count_part(annotation) {
            return Ok(refused);
        }
        if let Ok(class) = annotation.cast::<PyType>() {
            if let Some(plain) = plain_class(class) {
                return Ok(plain);
            }
        } else if annotation.is_none() {
            return Ok(Type::Null);
        }
        if self.depth >= DEEPEST {
            return Ok(reject(annotation, TOO_DEEP));
        }
        self.depth += 1;
        let read = self.read_any(annotation);
        self.depth -= 1;
        read
    }

    fn read_any(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        let py = self.py;
        if let Ok(class) = annotation.cast::<PyType>() {
            return self.read_class(class);
        }
        let typing = Typing::get(py)?;
        if annotation.get_type().is(typing.generic_alias.bind(py)) {
            let origin = annotation.getattr(intern!(py, "__origin__"))?;
            return self.read_generic(annotation, &origin);
        }
        if annotation.get_type().is(typing.union_type.bind(py)) {
            return self.read_union(annotation);
        }
        if is_forward(annotation)? {
            return self.read_forward(annotation);
        }
        if annotation.is(typing.any.bind(py)) {
            return Ok(Type::Any);
        }
        match origin_of(annotation)? {
            Some(origin) => self.read_form(annotation, &origin),
            None => self.read_object(annotation),
        }
    }

    /// Reads a class that is not one of the commonest.
    fn read_class(&mut self, class: &Bound<'py, PyType>) -> Reading<Type> {
        if let Some(known) = known_class(class)? {
            return self.read_known(known, class.as_any(), None);
        }
        if asks_for_pydantic(class.as_any())? {
            return self.read_foreign(class.as_any());
        }
        match self.read_record(class.as_any(), class, &[])? {
            Some(record) => Ok(record),
            None => Ok(refuse(class.as_any(), "it is a class of your own")),
        }
    }

    /// Reads `origin[…]`.
    fn read_generic(&mut self, alias: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> Reading<Type> {
        let Ok(class) = origin.cast::<PyType>() else {
            return if type_name(origin) == "TypeAliasType" {
                self.read_alias(alias, origin)
            } else {
                Ok(refuse(alias, "it is not a container that JSON knows"))
            };
        };
        let arguments = arguments_of(alias)?;
        if let Some(known) = known_class(class)? {
            return self.read_known(known, alias, Some(&arguments));
        }
        if asks_for_pydantic(class.as_any())? {
            return self.read_foreign(alias);
        }
        // Its arguments are a part of its name.
        if is_too_large(alias) {
            return Ok(reject(alias, &too_large()));
        }
        match self.read_record(alias, class, &arguments)? {
            Some(record) => Ok(record),
            None => Ok(refuse(alias, "it is not a container that JSON knows")),
        }
    }

    fn read_known(
        &mut self,
        known: Known,
        annotation: &Bound<'py, PyAny>,
        arguments: Option<&[Bound<'py, PyAny>]>,
    ) -> Reading<Type> {
        let given = arguments.unwrap_or_default();
        Ok(match known {
            Known::Scalar(scalar) => scalar.to_type(),
            Known::Formatted(name) => Type::Formatted(crate::schema::StringFormat::Named(name)),
            Known::Array(kind) => Type::Array { items: Box::new(self.read_argument(given.first())?), kind },
            Known::Map { countable } => {
                let keys = Box::new(self.read_argument(given.first())?);
                Type::Map { keys, values: Box::new(self.read_argument(given.get(1))?), countable }
            }
            Known::Counter => Type::Map {
                keys: Box::new(self.read_argument(given.first())?),
                values: Box::new(Type::Integer),
                countable: true,
            },
            Known::Tuple => self.read_tuple(annotation, arguments)?,
            Known::Class => match given.first() {
                Some(class) if may_name_a_class(class)? => Type::Any,
                _ => refuse(annotation, "a class is no JSON value"),
            },
        })
    }

    fn read_argument(&mut self, argument: Option<&Bound<'py, PyAny>>) -> Reading<Type> {
        argument.map_or(Ok(Type::Any), |argument| self.read(argument))
    }

    /// Reads an alias of `typing`: a special form, or a class under an older name.
    fn read_form(&mut self, annotation: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> Reading<Type> {
        match form_name(origin).as_deref() {
            Some("Union" | "UnionType") => return self.read_union(annotation),
            Some("Annotated") => return self.read_annotated(annotation),
            Some("Literal") => return read_literal(annotation),
            Some("Final" | "ClassVar" | "Required" | "NotRequired" | "ReadOnly") => {
                let inner = arguments_of(annotation)?;
                return self.read_argument(inner.first());
            }
            _ => {}
        }
        if origin.cast::<PyType>().is_ok() || type_name(origin) == "TypeAliasType" {
            return self.read_generic(annotation, origin);
        }
        Ok(refuse(annotation, "it is not a container that JSON knows"))
    }

    /// Reads what is neither a class nor an alias.
    fn read_object(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        let py = self.py;
        match type_name(annotation).as_str() {
            "TypeVar" => return self.read_variable(annotation),
            "NewType" => return self.read(&annotation.getattr(intern!(py, "__supertype__"))?),
            "TypeAliasType" => return self.read_alias(annotation, annotation),
            "InitVar" => return self.read(&annotation.getattr(intern!(py, "type"))?),
            _ => {}
        }
        if form_name(annotation).as_deref() == Some("Self") {
            return match self.records.last().cloned() {
                Some(record) => self.read(&record),
                None => Ok(reject(annotation, "it means a class only inside that class")),
            };
        }
        if annotation.is_exact_instance_of::<PyFunction>() {
            return Ok(refuse(annotation, "it is a function"));
        }
        if asks_for_pydantic(annotation)? {
            return self.read_foreign(annotation);
        }
        // Not a type at all, such as the builtin `any` or `Never`: nothing can be said about the value.
        Ok(Type::Any)
    }

    /// The object a string annotation stands for, if `annotation` is one.
    pub(super) fn forward(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !is_forward(annotation)? {
            return Ok(None);
        }
        let py = self.py;
        if let Ok(text) = annotation.cast::<PyString>() {
            return scope::resolve(py, &mut self.homes, text, None).map(Some);
        }
        let text = annotation.getattr(intern!(py, "__forward_arg__"))?.cast_into::<PyString>()?;
        let module = annotation.getattr(intern!(py, "__forward_module__"))?;
        let module = (!module.is_none()).then_some(module);
        scope::resolve(py, &mut self.homes, &text, module.as_ref()).map(Some)
    }

    fn read_forward(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        let resolved = match self.forward(annotation) {
            Ok(Some(resolved)) => resolved,
            Ok(None) => return Ok(Type::Any),
            Err(error) => return Ok(reject(annotation, &error.value(self.py).to_string())),
        };
        if resolved.cast::<PyType>().is_ok() {
            return self.read(&resolved);
        }
        let key = (annotation.str()?.extract::<String>()?, self.inside);
        if self.open.contains(&key) {
            return Ok(reject(annotation, "it contains itself: give it a name with `TypeAliasType`"));
        }
        self.open.push(key);
        let read = self.read(&resolved);
        self.open.pop();
        read
    }

    /// Handles a type that only pydantic knows.
    pub(super) fn read_foreign(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<Type> {
        match self.foreign {
            Foreign::Stop => Err(Trouble::AskPydantic),
            Foreign::AskEach => Ok(match pydantic::ask_one(self.py, annotation) {
                Ok((schema, definitions)) => Type::Raw { schema, definitions },
                Err(error) => reject(annotation, first_line(&error.value(self.py).to_string())),
            }),
        }
    }
}
