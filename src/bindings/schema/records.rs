//! Types with a name: dataclasses, `TypedDict`, `NamedTuple`, enumerations and type aliases.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::annotation::{AnnotationReader, PydanticMode, ReadError, ReadResult, invalid_type, type_name};
use super::field::{FieldDefault, is_field_info};
use super::forward_refs::Scope;
use super::typing::{TypeVariables, TypingObjects, arguments_of, form_name, origin_of, reference_of, variables_of};
use super::value::value_to_json;
use crate::bindings::imported::import_module;
use crate::bindings::json::entries_of;
use crate::bindings::once::intern;
use crate::schema::{Definition, ExtraFields, Field, Node, RecordType, Type};

/// The kinds of class that have fields or members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Dataclass,
    Attrs,
    TypedDict,
    NamedTuple,
    Enumeration,
}

impl RecordKind {
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let py = class.py();
        Ok(if class.hasattr(intern!(py, "__required_keys__"))? && class.hasattr(intern!(py, "__total__"))? {
            Some(Self::TypedDict)
        } else if class.hasattr(intern!(py, "_member_map_"))? && class.hasattr(intern!(py, "__members__"))? {
            Some(Self::Enumeration)
        } else if class.is_subclass_of::<PyTuple>()? && class.hasattr(intern!(py, "_fields"))? {
            Some(Self::NamedTuple)
        } else if class.hasattr(intern!(py, "__dataclass_fields__"))? {
            Some(Self::Dataclass)
        } else if class.hasattr(intern!(py, "__attrs_attrs__"))? {
            Some(Self::Attrs)
        } else {
            None
        })
    }
}

impl<'py> AnnotationReader<'py> {
    /// Reads a class with fields or members; `None` if `class` is not one.
    ///
    /// `annotation` is the class itself, or the alias that gives it `arguments`.
    pub(super) fn read_record(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        class: &Bound<'py, PyType>,
        arguments: &[Bound<'py, PyAny>],
    ) -> ReadResult<Option<Type>> {
        let Some(kind) = RecordKind::of(class)? else {
            return Ok(None);
        };
        if kind == RecordKind::Enumeration && class.getattr(intern!(self.py, "__members__"))?.is_empty()? {
            // Members of any enumeration derived from it are valid, so there are no values to list under its name.
            return self.read_with_pydantic(class.as_any()).map(Some);
        }
        let name: String = class.qualname()?.extract()?;
        let variables = if arguments.is_empty() { Vec::new() } else { variables_of(annotation, class.as_any())? };
        let reference = reference_of(class.as_any(), &name, arguments)?;
        self.kept.extend(arguments.iter().cloned());
        let defined = self.define(reference, class.as_any(), |reader| {
            reader.records.push(annotation.clone());
            let read = match kind {
                RecordKind::Dataclass => reader.read_dataclass(class, &variables),
                RecordKind::Attrs => reader.read_attrs_class(class, &variables),
                RecordKind::TypedDict => reader.read_typed_dict(class, &variables),
                RecordKind::NamedTuple => reader.read_named_tuple(class, &variables),
                RecordKind::Enumeration => read_enumeration(class),
            };
            reader.records.pop();
            read
        })?;
        Ok(Some(match defined {
            Type::Reference(index) if kind == RecordKind::Enumeration => Type::Repeated(index),
            other => other,
        }))
    }

    /// Reads a type alias with a name of its own.
    pub(super) fn read_alias(&mut self, annotation: &Bound<'py, PyAny>, alias: &Bound<'py, PyAny>) -> ReadResult<Type> {
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

    /// Reads a definition unless it is already there, and returns a reference to it.
    fn define(
        &mut self,
        reference: String,
        scope: &Bound<'py, PyAny>,
        body: impl FnOnce(&mut Self) -> ReadResult<Type>,
    ) -> ReadResult<Type> {
        if let Some(index) = self.by_reference.get(&reference) {
            return Ok(Type::Reference(*index));
        }
        let index = self.definitions.len();
        self.by_reference.insert(reference.clone(), index);
        // A type that contains itself refers to this entry, whose body follows below.
        self.definitions.push(Definition { reference, body: Type::Any });
        self.scopes.push(Scope::of_type(scope.clone()));
        let outer = self.current.replace(index);
        let read = body(self);
        self.current = outer;
        self.scopes.pop();
        self.definitions[index].body = read?;
        Ok(Type::Reference(index))
    }

    fn read_named_tuple(&mut self, class: &Bound<'py, PyType>, variables: &TypeVariables<'py>) -> ReadResult<Type> {
        let py = self.py;
        let annotations = all_annotations(class)?;
        let defaults = class.getattr(intern!(py, "_field_defaults")).ok();
        let mut members = Vec::new();
        for name in class.getattr(intern!(py, "_fields"))?.try_iter()? {
            let name = name?;
            let mut annotation = None;
            for (other, found) in &annotations {
                if other.eq(&name)? {
                    // Here the metadata of an argument is that of the field.
                    annotation = Some(self.substitute(found, variables)?);
                }
            }
            let default = match defaults.as_ref().and_then(|defaults| defaults.get_item(&name).ok()) {
                Some(default) if is_field_info(&default)? => self.default_for_pydantic()?,
                Some(default) => FieldDefault::Value(default),
                None => FieldDefault::Missing,
            };
            let text: String = name.extract()?;
            let any = TypingObjects::get(py)?.any.bind(py).clone();
            let annotation = annotation.as_ref().unwrap_or(&any);
            let mut member = self.read_field(&text, annotation, &Vec::new(), &default, None)?;
            let title: String = name.call_method0(intern!(py, "title"))?.extract()?;
            member.title = Some(title.replace('_', " ").trim().to_owned());
            members.push(member);
        }
        Ok(Type::Row(members))
    }
}

fn read_enumeration(class: &Bound<'_, PyType>) -> ReadResult<Type> {
    let py = class.py();
    let members = class.getattr(intern!(py, "__members__"))?.call_method0(intern!(py, "values"))?;
    let mut values: Vec<Node> = Vec::new();
    for member in members.try_iter()? {
        match value_to_json(&member?.getattr(intern!(py, "value"))?) {
            Some(value) => values.push(value),
            None => return Ok(invalid_type(class.as_any(), "one of its values is not JSON")),
        }
    }
    Ok(Type::Enumeration { values, description: description_of(class, RecordKind::Enumeration)? })
}

/// The docstring of a class, unless Python generated it.
fn description_of(class: &Bound<'_, PyType>, kind: RecordKind) -> PyResult<Option<String>> {
    let py = class.py();
    let doc = class.getattr(intern!(py, "__doc__"))?;
    let Ok(doc) = doc.cast_into::<PyString>() else {
        return Ok(None);
    };
    let text = doc.to_string_lossy();
    if text.is_empty()
        || (matches!(kind, RecordKind::Dataclass | RecordKind::Attrs)
            && text.starts_with(&format!("{}(", class.name()?)))
    {
        return Ok(None);
    }
    let clean: String = import_module(py, "inspect")?.call_method1(intern!(py, "cleandoc"), (&doc,))?.extract()?;
    Ok((kind != RecordKind::Enumeration || clean != "An enumeration.").then_some(clean))
}

/// The annotations of a class without those of its ancestors.
pub(super) fn own_annotations<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = class.py();
    let own = class.getattr(intern!(py, "__dict__"))?;
    if let Ok(annotations) = own.get_item(intern!(py, "__annotations__")) {
        return Ok(annotations.cast_into::<PyDict>().ok());
    }
    // Since Python 3.14 they are evaluated on access.
    if own.contains(intern!(py, "__annotate_func__"))? || own.contains(intern!(py, "__annotate__"))? {
        return Ok(class.getattr(intern!(py, "__annotations__"))?.cast_into::<PyDict>().ok());
    }
    Ok(None)
}

/// The annotations of a class and its ancestors; those of the class come last.
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

impl<'py> AnnotationReader<'py> {
    fn read_dataclass(&mut self, class: &Bound<'py, PyType>, variables: &TypeVariables<'py>) -> ReadResult<Type> {
        let py = self.py;
        let all = class.getattr(intern!(py, "__dataclass_fields__"))?.cast_into::<PyDict>()?;
        let mut fields: Vec<(bool, Field)> = Vec::new();
        for ancestor in class.mro().iter().collect::<Vec<_>>().iter().rev() {
            let ancestor = ancestor.cast::<PyType>()?;
            if !ancestor.hasattr(intern!(py, "__dataclass_fields__"))? {
                continue;
            }
            let own = own_annotations(ancestor)?;
            self.scopes.push(Scope::of_type(ancestor.as_any().clone()));
            for (name, field) in entries_of(&all) {
                if own.as_ref().is_some_and(|own| own.contains(&name).unwrap_or(false))
                    && let Some(field) = self.read_dataclass_field(&name, &field, variables)?
                {
                    match fields.iter_mut().find(|(_, other)| other.name == field.1.name) {
                        Some(other) => *other = field,
                        None => fields.push(field),
                    }
                }
            }
            self.scopes.pop();
        }
        fields.sort_by_key(|(keyword_only, _)| *keyword_only);
        let fields = fields.into_iter().map(|(_, field)| field).collect();
        Ok(Type::Record(RecordType {
            fields,
            description: description_of(class, RecordKind::Dataclass)?,
            others: ExtraFields::Unstated,
            deprecated: class.hasattr(intern!(py, "__deprecated__"))?,
        }))
    }

    /// Reads one field of a dataclass; the flag is true if it is keyword-only.
    fn read_dataclass_field(
        &mut self,
        name: &Bound<'py, PyAny>,
        field: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
    ) -> ReadResult<Option<(bool, Field)>> {
        let py = self.py;
        let given = |name: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
            let value = field.getattr(name)?;
            Ok((type_name(&value) != "_MISSING_TYPE").then_some(value))
        };
        let default = given(intern!(py, "default"))?;
        let factory = given(intern!(py, "default_factory"))?;
        let constructed = field.getattr(intern!(py, "init"))?.is_truthy()?;
        if !constructed && default.is_none() && factory.is_none() {
            return Ok(None);
        }
        let mut annotation = field.getattr(intern!(py, "type"))?;
        if let Ok(Some(resolved)) = self.resolve_forward_ref(&annotation) {
            annotation = resolved;
        }
        if is_class_variable(&annotation)? {
            return Ok(None);
        }
        if type_name(&annotation) == "InitVar" {
            annotation = annotation.getattr(intern!(py, "type"))?;
        }
        let default = match (default, factory) {
            (Some(default), _) if is_field_info(&default)? => self.default_for_pydantic()?,
            (Some(default), _) => FieldDefault::Value(default),
            (None, Some(_)) => FieldDefault::Unknown,
            (None, None) => FieldDefault::Missing,
        };
        let settings = field.getattr(intern!(py, "metadata"))?;
        let name: String = name.extract()?;
        let read = self.read_field(&name, &annotation, variables, &default, Some(&settings))?;
        // `kw_only` is missing on fields that an older Python made.
        let keyword_only = field.getattr(intern!(py, "kw_only")).is_ok_and(|flag| flag.is_truthy().unwrap_or(false));
        Ok(Some((keyword_only, read)))
    }

    fn read_attrs_class(&mut self, class: &Bound<'py, PyType>, variables: &TypeVariables<'py>) -> ReadResult<Type> {
        let py = self.py;
        let mut fields = Vec::new();
        for field in class.getattr(intern!(py, "__attrs_attrs__"))?.try_iter()? {
            let field = field?;
            if !field.getattr(intern!(py, "init"))?.is_truthy()? {
                continue;
            }
            let mut annotation = field.getattr(intern!(py, "type"))?;
            if annotation.is_none() {
                annotation = TypingObjects::get(py)?.any.bind(py).clone();
            }
            let default = field.getattr(intern!(py, "default"))?;
            let default = match type_name(&default).as_str() {
                "_Nothing" | "NothingType" => FieldDefault::Missing,
                // Made anew for each object.
                "Factory" => FieldDefault::Unknown,
                _ => FieldDefault::Value(default),
            };
            // The parameter of the class: the name without leading underscores, unless another is given.
            let name: String = field.getattr(intern!(py, "alias"))?.extract()?;
            fields.push(self.read_field(&name, &annotation, variables, &default, None)?);
        }
        Ok(Type::Record(RecordType {
            fields,
            description: description_of(class, RecordKind::Attrs)?,
            others: ExtraFields::Unstated,
            deprecated: class.hasattr(intern!(py, "__deprecated__"))?,
        }))
    }

    /// The default of a record's field that is a `Field(…)`: only pydantic can read it.
    fn default_for_pydantic(&self) -> ReadResult<FieldDefault<'py>> {
        match self.pydantic {
            PydanticMode::WholeSignature => Err(ReadError::NeedsPydantic),
            PydanticMode::EachType => Ok(FieldDefault::Unknown),
        }
    }
}

pub(super) fn is_class_variable(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    let form = match origin_of(annotation)? {
        Some(origin) => form_name(&origin),
        None => form_name(annotation),
    };
    Ok(form.as_deref() == Some("ClassVar"))
}

impl<'py> AnnotationReader<'py> {
    fn read_typed_dict(&mut self, class: &Bound<'py, PyType>, variables: &TypeVariables<'py>) -> ReadResult<Type> {
        let py = self.py;
        let required = class.getattr(intern!(py, "__required_keys__"))?;
        let mut fields = Vec::new();
        for (name, annotation) in all_annotations(class)? {
            let (annotation, qualifiers) = self.unqualified(&annotation)?;
            let is_required = (required.contains(&name)? || qualifiers.iter().any(|q| q == "Required"))
                && !qualifiers.iter().any(|q| q == "NotRequired");
            let default = if is_required { FieldDefault::Missing } else { FieldDefault::Unknown };
            let name: String = name.extract()?;
            fields.push(self.read_field(&name, &annotation, variables, &default, None)?);
        }
        let others = self.other_items(class, variables)?;
        Ok(Type::Record(RecordType {
            fields,
            description: description_of(class, RecordKind::TypedDict)?,
            others,
            deprecated: class.hasattr(intern!(py, "__deprecated__"))?,
        }))
    }

    /// Removes `Required[…]`, `NotRequired[…]` and `ReadOnly[…]` from an annotation.
    pub(super) fn unqualified(
        &mut self,
        annotation: &Bound<'py, PyAny>,
    ) -> ReadResult<(Bound<'py, PyAny>, Vec<String>)> {
        let mut qualifiers = Vec::new();
        let mut annotation = annotation.clone();
        loop {
            if let Ok(Some(resolved)) = self.resolve_forward_ref(&annotation) {
                annotation = resolved;
            }
            let Some(origin) = origin_of(&annotation)? else {
                break;
            };
            let Some(form) = form_name(&origin) else {
                break;
            };
            match form.as_str() {
                "Required" | "NotRequired" | "ReadOnly" => {
                    qualifiers.push(form);
                    annotation = arguments_of(&annotation)?.remove(0);
                }
                "Annotated" => {
                    let mut arguments = arguments_of(&annotation)?;
                    let (inner, more) = self.unqualified(&arguments[0])?;
                    if more.is_empty() {
                        break;
                    }
                    qualifiers.extend(more);
                    arguments[0] = inner;
                    annotation = origin.get_item(PyTuple::new(self.py, arguments)?)?;
                }
                _ => break,
            }
        }
        Ok((annotation, qualifiers))
    }

    /// The type of the items that a `TypedDict` does not name.
    fn other_items(&mut self, class: &Bound<'py, PyType>, variables: &TypeVariables<'py>) -> ReadResult<ExtraFields> {
        let py = self.py;
        for ancestor in typed_dict_ancestry(class)? {
            let own = ancestor.getattr(intern!(py, "__dict__"))?;
            let closed = own.get_item(intern!(py, "__closed__")).ok().filter(|closed| !closed.is_none());
            if let Some(closed) = closed {
                return Ok(if closed.is_truthy()? { ExtraFields::Forbidden } else { ExtraFields::Unstated });
            }
            let Ok(items) = own.get_item(intern!(py, "__extra_items__")) else {
                continue;
            };
            if matches!(type_name(&items).as_str(), "NoExtraItemsType" | "_NoExtraItemsType") || items.is_none() {
                continue;
            }
            let (items, _) = self.unqualified(&items)?;
            if form_name(&items).as_deref() == Some("Never") {
                return Ok(ExtraFields::Forbidden);
            }
            let items = self.substitute(&items, variables)?;
            return Ok(ExtraFields::Typed(Box::new(self.read(&items)?)));
        }
        Ok(ExtraFields::Unstated)
    }
}

/// A `TypedDict` and its bases, which its `__mro__` does not show.
fn typed_dict_ancestry<'py>(class: &Bound<'py, PyType>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = class.py();
    let mut ancestry = vec![class.as_any().clone()];
    let mut at = 0;
    while at < ancestry.len() {
        if let Ok(bases) = ancestry[at].getattr(intern!(py, "__orig_bases__")) {
            for base in bases.try_iter()? {
                let base = base?;
                let base = origin_of(&base)?.unwrap_or(base);
                if base.cast::<PyType>().is_ok() && !ancestry.iter().any(|other| other.is(&base)) {
                    ancestry.push(base);
                }
            }
        }
        at += 1;
    }
    Ok(ancestry)
}
