//! What stands beside the type in `Annotated`: limits, notes and defaults.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};

use super::annotation::{Foreign, Reading, Trouble};
use super::default::value_to_json;
use super::field_info::is_field_info;
use crate::schema::{Entries, Limit, Node, Type};

/// What the metadata of one annotation says.
#[derive(Default)]
pub(super) struct Metadata<'py> {
    pub(super) edits: Vec<Edit>,
    /// Keys such as `description`, written over those of the type.
    pub(super) notes: Entries,
    /// How many edits come before the notes.
    pub(super) before_notes: usize,
    /// Whether it should no longer be used, which only a field can say.
    deprecated: bool,
    /// A text that was put beside the type, a description for want of a better one.
    pub(super) text: Option<String>,
    /// Whether a title was asked for.
    pub(super) titled: bool,
    /// Whether another name was asked for.
    pub(super) renamed: bool,
    pub(super) default: FieldDefault<'py>,
}

/// The default that `Field(…)` was given.
#[derive(Default)]
pub(super) enum FieldDefault<'py> {
    #[default]
    None,
    Value(Bound<'py, PyAny>),
    Factory,
}

pub(super) enum Edit {
    Limit(Limit, Node),
    /// A check that the schema does not show.
    Check,
}

impl<'py> Metadata<'py> {
    /// Reads what follows the type in `Annotated`.
    pub(super) fn read(items: Vec<Bound<'py, PyAny>>, foreign: Foreign) -> Reading<Self> {
        let mut metadata = Self::default();
        let mut fields = 0;
        for item in items {
            let is_field = is_field_info(&item)?;
            fields += usize::from(is_field);
            // How several of them are merged is pydantic's business.
            let known = fields < 2 && if is_field { metadata.add_field(&item)? } else { metadata.add(&item)? };
            if !known && foreign == Foreign::Stop {
                return Err(Trouble::AskPydantic);
            }
        }
        Ok(metadata)
    }

    /// Adds a `Field(…)` that stands in the place of a default.
    pub(super) fn add_default(&mut self, info: &Bound<'py, PyAny>, foreign: Foreign) -> Reading<()> {
        let known = self.is_empty() && self.add_field(info)?;
        if known || foreign == Foreign::AskEach { Ok(()) } else { Err(Trouble::AskPydantic) }
    }

    fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.notes.is_empty() && !self.titled && matches!(self.default, FieldDefault::None)
    }

    /// Whether it says something that only a field can have.
    pub(super) fn is_for_a_field(&self) -> bool {
        self.titled || !matches!(self.default, FieldDefault::None)
    }

    /// Puts the limits on `accepts`; a definition cannot be limited where it is referred to.
    pub(super) fn limit(&self, accepts: Type) -> Option<Type> {
        self.is_possible(&accepts).then(|| edit(accepts, &self.edits))
    }

    /// Puts the limits and the notes on `accepts`, in their order.
    pub(super) fn limit_and_note(mut self, accepts: Type) -> Option<Type> {
        let (before, after) = self.edits.split_at(self.before_notes);
        let notes = std::mem::take(&mut self.notes);
        self.is_possible(&accepts).then(|| edit(edit(accepts, before).with_notes(notes), after))
    }

    fn is_possible(&self, accepts: &Type) -> bool {
        self.edits.is_empty() || !(accepts.is_named() || is_raw(accepts))
    }

    /// The notes of a field.
    pub(super) fn into_notes(mut self) -> Entries {
        if self.deprecated {
            self.notes.insert("deprecated", Node::Bool(true));
        }
        self.notes
    }

    /// Adds one item; says whether it was understood.
    pub(super) fn add(&mut self, item: &Bound<'py, PyAny>) -> PyResult<bool> {
        let py = item.py();
        if let Ok(text) = item.cast::<PyString>() {
            if self.text.is_none() {
                self.text = Some(text.extract()?);
            }
            return Ok(true);
        }
        if item.is_none() {
            return Ok(true);
        }
        if item.getattr(intern!(py, "__is_annotated_types_grouped_metadata__")).is_ok_and(|flag| is_true(&flag)) {
            let mut known = true;
            for part in item.try_iter()? {
                known &= self.add(&part?)?;
            }
            return Ok(known);
        }
        let kind = item.get_type();
        let module: String = kind.module()?.extract()?;
        let name: String = kind.name()?.extract()?;
        match (module.as_str(), name.as_str()) {
            ("annotated_types", "Gt" | "Ge" | "Lt" | "Le" | "MultipleOf" | "MinLen" | "MaxLen") => {
                let attribute = match name.as_str() {
                    "MultipleOf" => "multiple_of".to_owned(),
                    "MinLen" => "min_length".to_owned(),
                    "MaxLen" => "max_length".to_owned(),
                    other => other.to_lowercase(),
                };
                let value = item.getattr(attribute.as_str())?;
                return Ok(self.add_limit(&attribute, &value));
            }
            ("annotated_types", "Predicate" | "Not") => {
                self.edits.push(Edit::Check);
                return Ok(true);
            }
            ("typing_extensions", "Doc") | ("annotated_types", "DocInfo") => {
                self.text = Some(item.getattr("documentation")?.extract()?);
                return Ok(true);
            }
            ("typing_extensions" | "warnings", "deprecated") => {
                self.deprecated = true;
                return Ok(true);
            }
            _ => {}
        }
        let is_class = item.cast::<PyType>().is_ok();
        let hooked = item.hasattr(intern!(py, "__get_pydantic_core_schema__"))?
            || item.hasattr(intern!(py, "__get_pydantic_json_schema__"))?;
        // Anything else is a message between other parties.
        Ok(!(hooked || module.starts_with("pydantic") || is_class && defined_in_pydantic(item)))
    }

    pub(super) fn add_limit(&mut self, name: &str, value: &Bound<'py, PyAny>) -> bool {
        let Some(limit) = Limit::named(name) else {
            return false;
        };
        if value.is_none() {
            return true;
        }
        let value = match value.cast::<PyFloat>() {
            Ok(float) if !float.value().is_finite() => return true,
            _ => match plain_value(value) {
                Some(value) => value,
                None => return false,
            },
        };
        self.edits.push(Edit::Limit(limit, value));
        true
    }
}

fn edit(accepts: Type, edits: &[Edit]) -> Type {
    edits.iter().fold(accepts, |accepts, edit| match edit {
        Edit::Limit(limit, value) => accepts.limit(*limit, value.clone()),
        Edit::Check => accepts.checked(),
    })
}

fn is_true(flag: &Bound<'_, PyAny>) -> bool {
    flag.cast::<PyBool>().is_ok_and(pyo3::types::PyBoolMethods::is_true)
}

fn defined_in_pydantic(class: &Bound<'_, PyAny>) -> bool {
    class.getattr("__module__").and_then(|module| module.extract::<String>()).is_ok_and(|m| m.starts_with("pydantic"))
}

fn is_raw(accepts: &Type) -> bool {
    match accepts {
        Type::Raw { .. } => true,
        Type::Nullable(inner) | Type::Noted { inner, .. } | Type::Keyed { inner, .. } => is_raw(inner),
        _ => false,
    }
}

/// Limits are numbers, text, or things that order only values without a keyword for it, such as dates.
fn plain_value(value: &Bound<'_, PyAny>) -> Option<Node> {
    let plain = value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBool>();
    if plain {
        return value_to_json(value);
    }
    match value.get_type().module().ok()?.to_str().ok()? {
        "re" => value_to_json(&value.getattr("pattern").ok()?),
        "datetime" => value_to_json(value),
        _ => None,
    }
}
