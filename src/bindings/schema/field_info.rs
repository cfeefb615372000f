//! What pydantic's `Field(…)` says, as far as it can be read without pydantic.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use super::default::value_to_json;
use super::metadata::{FieldDefault, Metadata};
use crate::bindings::json::entries_of;
use crate::bindings::modules::imported;
use crate::schema::Node;

impl<'py> Metadata<'py> {
    /// Adds what `Field(…)` says; says whether all of it was understood.
    pub(super) fn add_field(&mut self, info: &Bound<'py, PyAny>) -> PyResult<bool> {
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
            self.default = FieldDefault::Factory;
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

/// Whether `object` is what pydantic's `Field(…)` returns.
///
/// Without pydantic in the process nothing can be.
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
    let Some(fields) = imported(py, intern!(py, "pydantic.fields"))? else { return Ok(false) };
    match fields.getattr_opt(intern!(py, "FieldInfo"))? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}
