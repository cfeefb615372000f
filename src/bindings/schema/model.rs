//! Types with a name: dataclasses, `TypedDict`, `NamedTuple`, enumerations and type aliases.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::annotation::{Reader, Reading};
use super::default::value_to_json;
use super::field::Given;
use super::field_info::is_field_info;
use super::generic::{Typing, Variables, arguments_of, reference_of, variables_of};
use super::refusal::reject;
use super::scope::Home;
use crate::bindings::imported::import_module;
use crate::schema::{Definition, Node, Type};

/// The kinds of class that have fields or members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Dataclass,
    TypedDict,
    NamedTuple,
    Enumeration,
}

impl Kind {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let py = class.py();
        Ok(if class.hasattr(intern!(py, "__required_keys__"))? && class.hasattr(intern!(py, "__total__"))? {
            Some(Self::TypedDict)
        } else if class.hasattr(intern!(py, "_member_map_"))? && class.hasattr(intern!(py, "__members__"))? {
            Some(Self::Enumeration)
        } else if class.is_subclass_of::<PyTuple>()? && class.hasattr(intern!(py, "_fields"))? {
            Some(Self::NamedTuple)
        } else if class.hasattr(intern!(py, "__dataclass_fields__"))? {
            Some(Self::Dataclass)
        } else {
            None
        })
    }
}

impl<'py> Reader<'py> {
    /// Reads a class with fields or members; nothing if `class` is not one.
    ///
    /// `annotation` is the class itself, or the alias that gives it `arguments`.
    pub(super) fn read_record(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        class: &Bound<'py, PyType>,
        arguments: &[Bound<'py, PyAny>],
    ) -> Reading<Option<Type>> {
        let Some(kind) = Kind::of(class)? else {
            return Ok(None);
        };
        if kind == Kind::Enumeration && class.getattr(intern!(self.py, "__members__"))?.is_empty()? {
            // Any enumeration derived from it would do, so there is nothing to list under its name.
            return self.read_foreign(class.as_any()).map(Some);
        }
        let name: String = class.qualname()?.extract()?;
        let variables = if arguments.is_empty() { Vec::new() } else { variables_of(annotation, class.as_any())? };
        let reference = reference_of(class.as_any(), &name, arguments)?;
        self.kept.extend(arguments.iter().cloned());
        let defined = self.define(reference, class.as_any(), |reader| {
            reader.records.push(annotation.clone());
            let read = match kind {
                Kind::Dataclass => reader.read_dataclass(class, &variables),
                Kind::TypedDict => reader.read_typed_dict(class, &variables),
                Kind::NamedTuple => reader.read_named_tuple(class, &variables),
                Kind::Enumeration => read_enumeration(class),
            };
            reader.records.pop();
            read
        })?;
        Ok(Some(match defined {
            Type::Reference(index) if kind == Kind::Enumeration => Type::Repeated(index),
            other => other,
        }))
    }

    /// Reads a type alias with a name of its own.
    pub(super) fn read_alias(&mut self, annotation: &Bound<'py, PyAny>, alias: &Bound<'py, PyAny>) -> Reading<Type> {
        let py = self.py;
        let name: String = alias.getattr(intern!(py, "__name__"))?.extract()?;
        let arguments = if annotation.is(alias) { Vec::new() } else { arguments_of(annotation)? };
        let variables = if arguments.is_empty() { Vec::new() } else { variables_of(annotation, alias)? };
        let reference = reference_of(alias, &name, &arguments)?;
        self.kept.extend(arguments);
        self.define(reference, alias, |reader| {
            let value = alias.getattr(intern!(py, "__value__"))?;
            let value = reader.substitute(&value, &variables)?;
            reader.read(&value)
        })
    }

    /// Reads a definition unless it has been met before, and refers to it.
    fn define(
        &mut self,
        reference: String,
        home: &Bound<'py, PyAny>,
        body: impl FnOnce(&mut Self) -> Reading<Type>,
    ) -> Reading<Type> {
        if let Some(index) = self.met.get(&reference) {
            return Ok(Type::Reference(*index));
        }
        let index = self.definitions.len();
        self.met.insert(reference.clone(), index);
        // A type that contains itself refers to the place that is filled in below.
        self.definitions.push(Definition { reference, body: Type::Any });
        self.homes.push(Home::of_type(home.clone()));
        let outside = self.inside.replace(index);
        let read = body(self);
        self.inside = outside;
        self.homes.pop();
        self.definitions[index].body = read?;
        Ok(Type::Reference(index))
    }

    fn read_named_tuple(&mut self, class: &Bound<'py, PyType>, variables: &Variables<'py>) -> Reading<Type> {
        let py = self.py;
        let annotations = all_annotations(class)?;
        let defaults = class.getattr(intern!(py, "_field_defaults")).ok();
        let mut members = Vec::new();
        for name in class.getattr(intern!(py, "_fields"))?.try_iter()? {
            let name = name?;
            let mut annotation = None;
            for (other, found) in &annotations {
                if other.eq(&name)? {
                    annotation = Some(self.substitute(found, variables)?);
                }
            }
            let default = match defaults.as_ref().and_then(|defaults| defaults.get_item(&name).ok()) {
                Some(default) if is_field_info(&default)? => self.left_to_pydantic()?,
                Some(default) => Given::Value(default),
                None => Given::Nothing,
            };
            let text: String = name.extract()?;
            let any = Typing::get(py)?.any.bind(py).clone();
            let mut member = self.read_field(&text, annotation.as_ref().unwrap_or(&any), &default, None)?;
            let title: String = name.call_method0(intern!(py, "title"))?.extract()?;
            member.title = Some(title.replace('_', " ").trim().to_owned());
            members.push(member);
        }
        Ok(Type::Row(members))
    }
}

fn read_enumeration(class: &Bound<'_, PyType>) -> Reading<Type> {
    let py = class.py();
    let members = class.getattr(intern!(py, "__members__"))?.call_method0(intern!(py, "values"))?;
    let mut values: Vec<Node> = Vec::new();
    for member in members.try_iter()? {
        match value_to_json(&member?.getattr(intern!(py, "value"))?) {
            Some(value) => values.push(value),
            None => return Ok(reject(class.as_any(), "one of its values is not JSON")),
        }
    }
    Ok(Type::Enumeration { values, description: description_of(class, Kind::Enumeration)? })
}

/// What a class says about itself, unless Python wrote it.
pub(super) fn description_of(class: &Bound<'_, PyType>, kind: Kind) -> PyResult<Option<String>> {
    let py = class.py();
    let doc = class.getattr(intern!(py, "__doc__"))?;
    let Ok(doc) = doc.cast_into::<PyString>() else {
        return Ok(None);
    };
    let text = doc.to_string_lossy();
    if text.is_empty() || (kind == Kind::Dataclass && text.starts_with(&format!("{}(", class.name()?))) {
        return Ok(None);
    }
    let clean: String = import_module(py, "inspect")?.call_method1(intern!(py, "cleandoc"), (&doc,))?.extract()?;
    Ok((kind != Kind::Enumeration || clean != "An enumeration.").then_some(clean))
}

pub(super) fn own_annotations<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = class.py();
    let own = class.getattr(intern!(py, "__dict__"))?;
    if let Ok(annotations) = own.get_item(intern!(py, "__annotations__")) {
        return Ok(annotations.cast_into::<PyDict>().ok());
    }
    // From Python 3.14 on they are made when they are asked for.
    if own.contains(intern!(py, "__annotate_func__"))? || own.contains(intern!(py, "__annotate__"))? {
        return Ok(class.getattr(intern!(py, "__annotations__"))?.cast_into::<PyDict>().ok());
    }
    Ok(None)
}

/// The annotations of a class and its ancestors, those of the class last.
pub(super) fn all_annotations<'py>(
    class: &Bound<'py, PyType>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let all = PyDict::new(class.py());
    for ancestor in class.mro().iter().collect::<Vec<_>>().iter().rev() {
        if let Some(own) = own_annotations(ancestor.cast::<PyType>()?)? {
            all.update(own.as_mapping())?;
        }
    }
    Ok(all.iter().collect())
}
