//! Classes with fields: dataclasses, attrs classes, named tuples and typed dictionaries.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::{Conversion, Converter, Place, items_of};
use crate::bindings::json::entries_of;
use crate::schema::check::{Expected, Found, PathStep, UnknownName};

/// A class with fields.
pub(crate) struct Record {
    class: Py<PyType>,
    name: String,
    form: RecordForm,
    fields: Box<[RecordField]>,
}

/// The form of a record in JSON and in a call of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordForm {
    /// An object; the class is called with its fields by name.
    Class,
    /// An array; the class is called with its items in order.
    Row,
    /// An object that stays a dict.
    Dict,
}

/// A field of a record.
pub(crate) struct RecordField {
    /// The key in JSON, which is also the parameter of the class.
    pub(crate) name: Py<PyString>,
    /// `None` if its JSON value stays as it is.
    pub(crate) converter: Option<Converter>,
}

impl Record {
    pub(crate) fn new(class: &Bound<'_, PyType>, form: RecordForm, fields: Vec<RecordField>) -> PyResult<Self> {
        Ok(Self { class: class.clone().unbind(), name: class.name()?.to_string(), form, fields: fields.into() })
    }

    /// The converters of its fields if it stays a dict.
    pub(crate) fn dict_converters(&self) -> Option<impl Iterator<Item = &Converter>> {
        (self.form == RecordForm::Dict).then(|| self.fields.iter().filter_map(|field| field.converter.as_ref()))
    }

    pub(super) fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        if self.form != RecordForm::Dict && value.is_instance(self.class.bind(py)).unwrap_or(false) {
            return Some(value.clone());
        }
        let before = run.problems.len();
        let built = match self.form {
            RecordForm::Row => {
                let arguments = self.convert_items(run, place, value)?;
                if run.has_failed_since(before) {
                    return None;
                }
                PyTuple::new(py, arguments).and_then(|arguments| self.class.bind(py).call1(arguments))
            }
            RecordForm::Class | RecordForm::Dict => {
                let Ok(dict) = value.cast::<PyDict>() else { return run.refuse(place, "an object", value) };
                let fields = match self.form {
                    RecordForm::Dict => self.convert_entries(run, place, dict),
                    _ => self.convert_fields(run, place, dict),
                };
                if run.has_failed_since(before) {
                    return None;
                }
                match fields {
                    Ok(fields) if self.form == RecordForm::Class => self.class.bind(py).call((), Some(&fields)),
                    fields => fields.map(Bound::into_any),
                }
            }
        };
        run.built(place, format_args!("a valid {}", self.name), built, value)
    }

    /// The arguments of the class, by name. A key that is not a field is refused, because the class would never see it.
    fn convert_fields<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = dict.py();
        let fields = PyDict::new(py);
        let mut known = 0;
        for field in &self.fields {
            let name = field.name.bind(py);
            let Some(value) = dict.get_item(name)? else { continue };
            known += 1;
            let converted = match &field.converter {
                Some(converter) => converter.convert(run, &place.key(name.to_str()?), &value),
                None => Some(value),
            };
            if let Some(converted) = converted {
                fields.set_item(name, converted)?;
            }
        }
        if known < dict.len() {
            self.refuse_unknown(run, place, dict)?;
        }
        Ok(fields)
    }

    /// The dict with its values converted: the same one if nothing changes.
    fn convert_entries<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = dict.py();
        let mut output = dict.clone();
        for field in &self.fields {
            let Some(converter) = &field.converter else { continue };
            let name = field.name.bind(py);
            let Some(value) = dict.get_item(name)? else { continue };
            let Some(built) = converter.convert(run, &place.key(name.to_str()?), &value) else { continue };
            if !built.is(&value) {
                if output.is(dict) {
                    output = dict.copy()?;
                }
                output.set_item(name, built)?;
            }
        }
        Ok(output)
    }

    #[cold]
    fn refuse_unknown(&self, run: &mut Conversion<'_>, place: &Place<'_>, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = dict.py();
        let known: Vec<String> = self.fields.iter().map(|field| field.name.bind(py).to_string()).collect();
        for (key, value) in entries_of(dict) {
            let key = key.str()?.to_string_lossy().into_owned();
            if !known.contains(&key) {
                let mut steps = place.steps();
                steps.push(PathStep::Key(key.into()));
                let unknown = UnknownName { noun: "field", near: None, known: known.clone(), more: 0 };
                run.refuse_at(steps, Expected::Name(Box::new(unknown)), Found::of(&value));
            }
        }
        Ok(())
    }

    /// The arguments of the class, in order.
    fn convert_items<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Vec<Bound<'py, PyAny>>> {
        let items = items_of(value).filter(|items| items.len() <= self.fields.len());
        let Some(items) = items else {
            run.refuse(place, format!("an array of at most {} items", self.fields.len()), value);
            return None;
        };
        let convert = |(index, (field, item)): (usize, (&RecordField, Bound<'py, PyAny>))| match &field.converter {
            Some(converter) => converter.convert(run, &place.index(index), &item),
            None => Some(item),
        };
        Some(self.fields.iter().zip(items).enumerate().filter_map(convert).collect())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        self.fields
            .iter()
            .filter_map(|field| field.converter.as_ref())
            .try_for_each(|converter| converter.traverse(visit))
    }
}
