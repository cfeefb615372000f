//! `TypedDict`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::annotation::{Reader, Reading};
use super::class::type_name;
use super::field::Given;
use super::generic::{Variables, arguments_of, form_name, origin_of};
use super::model::{Kind, all_annotations, description_of};
use crate::schema::{ExtraFields, RecordType, Type};

impl<'py> Reader<'py> {
    pub(super) fn read_typed_dict(&mut self, class: &Bound<'py, PyType>, variables: &Variables<'py>) -> Reading<Type> {
        let py = self.py;
        let required = class.getattr(intern!(py, "__required_keys__"))?;
        let mut fields = Vec::new();
        for (name, annotation) in all_annotations(class)? {
            let (annotation, qualifiers) = self.unqualified(&annotation)?;
            let annotation = self.substitute(&annotation, variables)?;
            let is_required = (required.contains(&name)? || qualifiers.iter().any(|q| q == "Required"))
                && !qualifiers.iter().any(|q| q == "NotRequired");
            let default = if is_required { Given::Nothing } else { Given::Untold };
            let name: String = name.extract()?;
            fields.push(self.read_field(&name, &annotation, &default, None)?);
        }
        let others = self.other_items(class, variables)?;
        Ok(Type::Record(RecordType {
            fields,
            description: description_of(class, Kind::TypedDict)?,
            others,
            deprecated: class.hasattr(intern!(py, "__deprecated__"))?,
        }))
    }

    /// Takes `Required[…]` and its kin off an annotation.
    fn unqualified(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<(Bound<'py, PyAny>, Vec<String>)> {
        let mut qualifiers = Vec::new();
        let mut annotation = annotation.clone();
        loop {
            if let Ok(Some(resolved)) = self.forward(&annotation) {
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

    /// What a `TypedDict` says about items it does not name.
    fn other_items(&mut self, class: &Bound<'py, PyType>, variables: &Variables<'py>) -> Reading<ExtraFields> {
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

/// A `TypedDict` and those it was derived from, which its `__mro__` does not show.
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
