//! Dataclasses.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use super::annotation::{Foreign, Reader, Reading, Trouble};
use super::class::type_name;
use super::field::Given;
use super::field_info::is_field_info;
use super::generic::{Variables, form_name, origin_of};
use super::model::{Kind, description_of, own_annotations};
use super::scope::Home;
use crate::bindings::json::entries_of;
use crate::schema::{ExtraFields, Field, RecordType, Type};

impl<'py> Reader<'py> {
    pub(super) fn read_dataclass(&mut self, class: &Bound<'py, PyType>, variables: &Variables<'py>) -> Reading<Type> {
        let py = self.py;
        let all = class.getattr(intern!(py, "__dataclass_fields__"))?.cast_into::<PyDict>()?;
        let mut fields: Vec<(bool, Field)> = Vec::new();
        for ancestor in class.mro().iter().collect::<Vec<_>>().iter().rev() {
            let ancestor = ancestor.cast::<PyType>()?;
            if !ancestor.hasattr(intern!(py, "__dataclass_fields__"))? {
                continue;
            }
            let own = own_annotations(ancestor)?;
            self.homes.push(Home::of_type(ancestor.as_any().clone()));
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
            self.homes.pop();
        }
        fields.sort_by_key(|(keyword_only, _)| *keyword_only);
        let fields = fields.into_iter().map(|(_, field)| field).collect();
        Ok(Type::Record(RecordType {
            fields,
            description: description_of(class, Kind::Dataclass)?,
            others: ExtraFields::Unstated,
            deprecated: class.hasattr(intern!(py, "__deprecated__"))?,
        }))
    }

    /// One field of a dataclass, and whether it comes after the positional ones.
    fn read_dataclass_field(
        &mut self,
        name: &Bound<'py, PyAny>,
        field: &Bound<'py, PyAny>,
        variables: &Variables<'py>,
    ) -> Reading<Option<(bool, Field)>> {
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
        if let Ok(Some(resolved)) = self.forward(&annotation) {
            annotation = resolved;
        }
        if is_class_variable(&annotation)? {
            return Ok(None);
        }
        if type_name(&annotation) == "InitVar" {
            annotation = annotation.getattr(intern!(py, "type"))?;
        }
        let annotation = self.substitute(&annotation, variables)?;
        let default = match (default, factory) {
            (Some(default), _) if is_field_info(&default)? => self.left_to_pydantic()?,
            (Some(default), _) => Given::Value(default),
            (None, Some(_)) => Given::Untold,
            (None, None) => Given::Nothing,
        };
        let settings = field.getattr(intern!(py, "metadata"))?;
        let name: String = name.extract()?;
        let read = self.read_field(&name, &annotation, &default, Some(&settings))?;
        // `kw_only` is missing on fields that an older Python made.
        let keyword_only = field.getattr(intern!(py, "kw_only")).is_ok_and(|flag| flag.is_truthy().unwrap_or(false));
        Ok(Some((keyword_only, read)))
    }

    /// A `Field(…)` as the default inside a record is for pydantic to read, if it can be asked.
    pub(super) fn left_to_pydantic(&self) -> Reading<Given<'py>> {
        match self.foreign {
            Foreign::Stop => Err(Trouble::AskPydantic),
            Foreign::AskEach => Ok(Given::Untold),
        }
    }
}

fn is_class_variable(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    let form = match origin_of(annotation)? {
        Some(origin) => form_name(&origin),
        None => form_name(annotation),
    };
    Ok(form.as_deref() == Some("ClassVar"))
}
