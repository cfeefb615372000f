//! Parameters and fields of records: the type, the default, and the metadata in `Annotated[…]` and `Field(…)`.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyType};

use super::annotation::{AnnotationReader, PydanticMode, ReadError, ReadResult};
use super::typing::{TypeVariables, TypingObjects, arguments_of, form_name, origin_of};
use super::value::{default_to_json, value_to_json};
use crate::bindings::imported::loaded_module;
use crate::bindings::json::entries_of;
use crate::bindings::once::intern;
use crate::schema::{Entries, Field, Limit, Node, Presence, Type};

/// The default of a field.
#[derive(Default)]
pub(super) enum FieldDefault<'py> {
    /// None: the field is required.
    #[default]
    Missing,
    /// One that a factory makes for each value, or an unknown one.
    Unknown,
    /// This one.
    Value(Bound<'py, PyAny>),
}

impl FieldDefault<'_> {
    fn presence(&self) -> Presence {
        match self {
            Self::Missing => Presence::Required,
            Self::Unknown => Presence::Optional,
            Self::Value(default) => default_to_json(default).map_or(Presence::Optional, Presence::Default),
        }
    }
}

impl<'py> AnnotationReader<'py> {
    /// Reads a field of a record; `settings` is what a dataclass keeps in the field's `metadata`.
    ///
    /// The `variables` of a generic record are replaced in the type only: the metadata of an argument belongs to the type that the
    /// argument is, not to the field.
    pub(super) fn read_field(
        &mut self,
        name: &str,
        annotation: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
        default: &FieldDefault<'py>,
        settings: Option<&Bound<'py, PyAny>>,
    ) -> ReadResult<Field> {
        let (inner, metadata) = self.split(annotation)?;
        if self.pydantic == PydanticMode::WholeSignature && (metadata.renamed || metadata.is_for_a_field()) {
            return Err(ReadError::NeedsPydantic);
        }
        let inner = self.substitute(&inner, variables)?;
        let mut accepts = if let Some(limited) = self.read_limited(&inner, &metadata)? {
            limited
        } else {
            let whole = self.substitute(annotation, variables)?;
            self.read_with_pydantic(&whole)?
        };
        let mut notes = metadata.into_notes();
        if let Some(settings) = settings {
            accepts = add_settings(accepts, &mut notes, settings, self.pydantic)?;
        }
        Ok(Field { name: name.to_owned(), title: None, accepts, presence: default.presence(), notes })
    }

    /// Reads a parameter, whose default may be a `Field(…)`, and the text in its `Annotated`.
    pub(super) fn read_parameter(
        &mut self,
        name: &str,
        annotation: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
    ) -> ReadResult<(Field, Option<String>)> {
        let (inner, mut metadata) = self.split(annotation)?;
        match default {
            Some(default) if is_field_info(default)? => metadata.add_default(default, self.pydantic)?,
            Some(default) if !default.is(self.py.Ellipsis()) => {
                metadata.default = FieldDefault::Value(default.clone());
            }
            _ => {}
        }
        let accepts = match self.read_limited(&inner, &metadata)? {
            Some(limited) => limited,
            None => self.read_with_pydantic(annotation)?,
        };
        let text = metadata.text.take();
        let presence = metadata.default.presence();
        let notes = metadata.into_notes();
        Ok((Field { name: name.to_owned(), title: None, accepts, presence, notes }, text))
    }

    /// Reads a type and puts its limits on it; `None` if only pydantic can do that.
    fn read_limited(&mut self, inner: &Bound<'py, PyAny>, metadata: &Metadata<'py>) -> ReadResult<Option<Type>> {
        let read = self.read(inner)?.referred();
        Ok(metadata.limit(read))
    }

    /// Splits `Annotated[…]` and `Final[…]` into the type and its metadata.
    fn split(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<(Bound<'py, PyAny>, Metadata<'py>)> {
        if annotation.cast::<pyo3::types::PyType>().is_ok() || TypingObjects::get(self.py)?.is_builtin_alias(annotation)
        {
            return Ok((annotation.clone(), Metadata::default()));
        }
        let mut annotation = annotation.clone();
        // Quotes in a module with `from __future__ import annotations` make a string in a string; deeper nesting is not an annotation.
        for _ in 0..2 {
            let Ok(Some(resolved)) = self.resolve_forward_ref(&annotation) else { break };
            annotation = resolved;
        }
        if let Some(origin) = origin_of(&annotation)? {
            match form_name(&origin).as_deref() {
                Some("Annotated") => {
                    let mut arguments = arguments_of(&annotation)?;
                    let inner = arguments.remove(0);
                    return Ok((inner, Metadata::read(arguments, self.pydantic)?));
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

/// Adds the `metadata` of a dataclass field that affects the schema, as pydantic reads it.
fn add_settings(
    mut accepts: Type,
    notes: &mut Entries,
    settings: &Bound<'_, PyAny>,
    pydantic: PydanticMode,
) -> ReadResult<Type> {
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
            // Without effect on a schema, or only a title, which is dropped.
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
                if pydantic == PydanticMode::WholeSignature {
                    return Err(ReadError::NeedsPydantic);
                }
            }
            name => {
                if let Some(limit) = Limit::named(name) {
                    match value_to_json(&value) {
                        Some(value) if !accepts.is_named() => accepts = accepts.limit(limit, value),
                        _ if pydantic == PydanticMode::WholeSignature => return Err(ReadError::NeedsPydantic),
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(accepts)
}

/// The metadata of one annotation: limits, notes and a default.
#[derive(Default)]
pub(super) struct Metadata<'py> {
    edits: Vec<TypeEdit>,
    /// Keys such as `description`, which replace those of the type.
    notes: Entries,
    /// The number of edits that come before the notes.
    before_notes: usize,
    /// True if the field is deprecated.
    deprecated: bool,
    /// The text in `Annotated`, a description if there is no better one.
    pub(super) text: Option<String>,
    /// True if a title was set.
    titled: bool,
    /// True if an alias was set.
    renamed: bool,
    default: FieldDefault<'py>,
}

/// A change of a type by its metadata.
enum TypeEdit {
    Limit(Limit, Node),
    /// A check that the schema does not show.
    Check,
}

impl<'py> Metadata<'py> {
    /// Reads the arguments of `Annotated` after the type.
    pub(super) fn read(items: Vec<Bound<'py, PyAny>>, pydantic: PydanticMode) -> ReadResult<Self> {
        let mut metadata = Self::default();
        let mut fields = 0;
        for item in items {
            let is_field = is_field_info(&item)?;
            fields += usize::from(is_field);
            // Only pydantic knows how to merge several of them.
            let known = fields < 2 && if is_field { metadata.add_field(&item)? } else { metadata.add(&item)? };
            if !known && pydantic == PydanticMode::WholeSignature {
                return Err(ReadError::NeedsPydantic);
            }
        }
        Ok(metadata)
    }

    /// Adds a `Field(…)` that is the default of a parameter.
    fn add_default(&mut self, info: &Bound<'py, PyAny>, pydantic: PydanticMode) -> ReadResult<()> {
        let known = self.is_empty() && self.add_field(info)?;
        if known || pydantic == PydanticMode::EachType { Ok(()) } else { Err(ReadError::NeedsPydantic) }
    }

    fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.notes.is_empty() && !self.titled && matches!(self.default, FieldDefault::Missing)
    }

    /// True if it has a check that the schema does not show.
    pub(super) fn has_hidden_check(&self) -> bool {
        self.edits.iter().any(|edit| matches!(edit, TypeEdit::Check))
    }

    /// True if it has no limits.
    pub(super) fn is_unlimited(&self) -> bool {
        self.edits.is_empty()
    }

    /// True if it has a title or a default, which only fields can have.
    pub(super) fn is_for_a_field(&self) -> bool {
        self.titled || !matches!(self.default, FieldDefault::Missing)
    }

    /// Puts the limits on `accepts`; `None` for a reference, which cannot be limited.
    fn limit(&self, accepts: Type) -> Option<Type> {
        self.is_possible(&accepts).then(|| edit(accepts, &self.edits))
    }

    /// Puts the limits and the notes on `accepts`, in their order; `None` for a reference.
    pub(super) fn limit_and_note(mut self, accepts: Type) -> Option<Type> {
        let (before, after) = self.edits.split_at(self.before_notes);
        let notes = std::mem::take(&mut self.notes);
        self.is_possible(&accepts).then(|| edit(edit(accepts, before).with_notes(notes), after))
    }

    fn is_possible(&self, accepts: &Type) -> bool {
        self.edits.is_empty() || !(accepts.is_named() || is_raw(accepts))
    }

    /// The notes of a field.
    fn into_notes(mut self) -> Entries {
        if self.deprecated {
            self.notes.insert("deprecated", Node::Bool(true));
        }
        self.notes
    }

    /// Adds one item; returns true if it is a known one.
    fn add(&mut self, item: &Bound<'py, PyAny>) -> PyResult<bool> {
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
                self.edits.push(TypeEdit::Check);
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
        // Anything else is meant for another library.
        Ok(!(hooked || module.starts_with("pydantic") || is_class && defined_in_pydantic(item)))
    }

    fn add_limit(&mut self, name: &str, value: &Bound<'py, PyAny>) -> bool {
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
        self.edits.push(TypeEdit::Limit(limit, value));
        true
    }
}

fn edit(accepts: Type, edits: &[TypeEdit]) -> Type {
    edits.iter().fold(accepts, |accepts, edit| match edit {
        TypeEdit::Limit(limit, value) => accepts.limit(*limit, value.clone()),
        TypeEdit::Check => accepts.checked(),
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

/// The JSON form of a limit: a number, text, or a value such as a date, for which JSON Schema has no keyword.
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

impl<'py> Metadata<'py> {
    /// Adds a `Field(…)`; returns true if all of it is known.
    fn add_field(&mut self, info: &Bound<'py, PyAny>) -> PyResult<bool> {
        let attribute = |name: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(info.getattr_opt(name)?.filter(|value| !value.is_none()))
        };
        if info.get_type().name()?.to_str()? != "FieldInfo" || attribute("discriminator")?.is_some() {
            return Ok(false);
        }
        let Some(items) = attribute("metadata")? else {
            return Ok(false);
        };
        let mut known = true;
        for item in items.try_iter()? {
            known &= self.add_field_item(&item?)?;
        }
        self.before_notes = self.edits.len();
        for name in ["description", "examples"] {
            if let Some(value) = attribute(name)? {
                match value_to_json(&value) {
                    Some(value) => self.notes.insert(name, value),
                    None => known = false,
                }
            }
        }
        match attribute("deprecated")? {
            Some(value) if value.cast::<PyString>().is_ok() || value.is_truthy()? => {
                self.notes.insert("deprecated", Node::Bool(true));
            }
            _ => {}
        }
        if let Some(extra) = attribute("json_schema_extra")? {
            match extra.cast::<PyDict>().ok().and_then(|extra| value_to_json(extra.as_any())) {
                Some(Node::Object(extra)) if !extra.contains_key("title") => {
                    self.notes.extend(extra);
                }
                _ => known = false,
            }
        }
        self.titled |= attribute("title")?.is_some() || attribute("field_title_generator")?.is_some();
        self.renamed |= attribute("alias")?.is_some() || attribute("validation_alias")?.is_some();
        if attribute("default_factory")?.is_some() {
            self.default = FieldDefault::Unknown;
        } else if let Some(default) = info.getattr_opt("default")?
            && default.get_type().name()?.to_str()? != "PydanticUndefinedType"
        {
            self.default = FieldDefault::Value(default);
        }
        Ok(known)
    }

    fn add_field_item(&mut self, item: &Bound<'py, PyAny>) -> PyResult<bool> {
        let kind = item.get_type();
        if kind.module()?.to_str()? == "annotated_types" {
            return self.add(item);
        }
        if !kind.name()?.to_str()?.ends_with("PydanticGeneralMetadata") {
            return Ok(false);
        }
        let settings = item.getattr("__dict__")?;
        let settings = settings.cast::<PyDict>()?;
        let mut known = true;
        for (name, value) in entries_of(settings) {
            known &= name.extract::<String>()? == "pattern" && self.add_limit("pattern", &value);
        }
        Ok(known)
    }
}

/// True if `object` was made by pydantic's `Field(…)`, which implies that pydantic has been imported.
pub(super) fn is_field_info(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let simple = object.is_none()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyDict>();
    if simple {
        return Ok(false);
    }
    let Some(fields) = loaded_module(py, intern!(py, "pydantic.fields"))? else { return Ok(false) };
    match fields.getattr_opt(intern!(py, "FieldInfo"))? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}
