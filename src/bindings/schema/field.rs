//! One parameter, or one field of a record: its type, its default and its notes together.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::annotation::{Foreign, Reader, Reading, Trouble};
use super::default::{default_to_json, value_to_json};
use super::field_info::is_field_info;
use super::generic::{Typing, arguments_of, form_name, origin_of};
use super::metadata::{FieldDefault, Metadata};
use crate::bindings::json::entries_of;
use crate::schema::{Entries, Field, Limit, Presence, Type};

/// The default a field was given.
pub(super) enum Given<'py> {
    /// None: the field is required.
    Nothing,
    /// One that is made anew each time, or not known at all.
    Untold,
    /// This one.
    Value(Bound<'py, PyAny>),
}

impl Given<'_> {
    fn presence(&self) -> Presence {
        match self {
            Self::Nothing => Presence::Required,
            Self::Untold => Presence::Optional,
            Self::Value(default) => default_to_json(default).map_or(Presence::Optional, Presence::Default),
        }
    }
}

impl<'py> Reader<'py> {
    /// Reads a field of a record; `settings` is what a dataclass keeps in the field's `metadata`.
    pub(super) fn read_field(
        &mut self,
        name: &str,
        annotation: &Bound<'py, PyAny>,
        given: &Given<'py>,
        settings: Option<&Bound<'py, PyAny>>,
    ) -> Reading<Field> {
        let (inner, metadata) = self.split(annotation)?;
        if self.foreign == Foreign::Stop && (metadata.renamed || metadata.is_for_a_field()) {
            return Err(Trouble::AskPydantic);
        }
        let mut accepts = self.read_limited(&inner, &metadata, annotation)?;
        let mut notes = metadata.into_notes();
        if let Some(settings) = settings {
            accepts = add_settings(accepts, &mut notes, settings, self.foreign)?;
        }
        Ok(Field { name: name.to_owned(), title: None, accepts, presence: given.presence(), notes })
    }

    /// Reads a parameter, whose default may be a `Field(…)`, and the text that stands beside its type.
    pub(super) fn read_parameter(
        &mut self,
        name: &str,
        annotation: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
    ) -> Reading<(Field, Option<String>)> {
        let (inner, mut metadata) = self.split(annotation)?;
        let mut given = match default {
            None => Given::Nothing,
            Some(default) if default.is(self.py.Ellipsis()) => Given::Nothing,
            Some(default) if is_field_info(default)? => {
                metadata.add_default(default, self.foreign)?;
                Given::Nothing
            }
            Some(default) => Given::Value(default.clone()),
        };
        if matches!(given, Given::Nothing) {
            given = match &metadata.default {
                FieldDefault::None => Given::Nothing,
                FieldDefault::Factory => Given::Untold,
                FieldDefault::Value(default) => Given::Value(default.clone()),
            };
        }
        let accepts = self.read_limited(&inner, &metadata, annotation)?;
        let text = metadata.text.take();
        let notes = metadata.into_notes();
        Ok((Field { name: name.to_owned(), title: None, accepts, presence: given.presence(), notes }, text))
    }

    fn read_limited(
        &mut self,
        inner: &Bound<'py, PyAny>,
        metadata: &Metadata<'py>,
        whole: &Bound<'py, PyAny>,
    ) -> Reading<Type> {
        let read = self.read(inner)?.referred();
        match metadata.limit(read) {
            Some(limited) => Ok(limited),
            None => self.read_foreign(whole),
        }
    }

    /// Parts `Annotated[…]` and `Final[…]` into the type and what is said about it.
    fn split(&mut self, annotation: &Bound<'py, PyAny>) -> Reading<(Bound<'py, PyAny>, Metadata<'py>)> {
        let is_alias = annotation.get_type().is(Typing::get(self.py)?.generic_alias.bind(self.py));
        if is_alias || annotation.cast::<pyo3::types::PyType>().is_ok() {
            return Ok((annotation.clone(), Metadata::default()));
        }
        let mut annotation = annotation.clone();
        // Quotes in a module whose annotations are all texts make a text of a text; more of them are nobody's annotation.
        for _ in 0..2 {
            let Ok(Some(resolved)) = self.forward(&annotation) else { break };
            annotation = resolved;
        }
        if let Some(origin) = origin_of(&annotation)? {
            match form_name(&origin).as_deref() {
                Some("Annotated") => {
                    let mut arguments = arguments_of(&annotation)?;
                    let inner = arguments.remove(0);
                    return Ok((inner, Metadata::read(arguments, self.foreign)?));
                }
                Some("Final") => {
                    let inner = arguments_of(&annotation)?.remove(0);
                    return self.split(&inner);
                }
                _ => {}
            }
        }
        Ok((annotation, Metadata::default()))
    }
}

/// The settings of a dataclass field that mean something to a schema, as pydantic reads them.
fn add_settings(
    mut accepts: Type,
    notes: &mut Entries,
    settings: &Bound<'_, PyAny>,
    foreign: Foreign,
) -> Reading<Type> {
    if settings.is_empty()? {
        return Ok(accepts);
    }
    let copy = PyDict::new(settings.py());
    copy.update(settings.cast::<pyo3::types::PyMapping>()?)?;
    for (key, value) in entries_of(&copy) {
        let Ok(key) = key.extract::<String>() else {
            continue;
        };
        match key.as_str() {
            _ if value.is_none() => {}
            "description" | "examples" => {
                if let Some(value) = value_to_json(&value) {
                    notes.insert(key, value);
                }
            }
            // Shown nowhere in a schema, or only as a title, which is dropped.
            "title" | "repr" | "exclude" | "frozen" | "init" | "init_var" | "kw_only" => {}
            "alias"
            | "validation_alias"
            | "serialization_alias"
            | "alias_priority"
            | "json_schema_extra"
            | "discriminator"
            | "deprecated"
            | "strict"
            | "default_factory"
            | "default"
            | "max_digits"
            | "decimal_places"
            | "union_mode"
            | "allow_inf_nan"
            | "field_title_generator"
            | "exclude_if"
            | "coerce_numbers_to_str"
            | "fail_fast"
            | "validate_default" => {
                if foreign == Foreign::Stop {
                    return Err(Trouble::AskPydantic);
                }
            }
            name => {
                if let Some(limit) = Limit::named(name) {
                    match value_to_json(&value) {
                        Some(value) if !accepts.is_named() => accepts = accepts.limit(limit, value),
                        _ if foreign == Foreign::Stop => return Err(Trouble::AskPydantic),
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(accepts)
}
