//! Schemas by pydantic, for signatures with types that only pydantic can describe: of the whole signature, or of as many
//! parameters as pydantic accepts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::annotation::{AnnotationReader, PydanticMode, ReadError, is_too_large, refusal, too_large};
use super::field::{Metadata, is_field_info};
use super::typing::{arguments_of, form_name, origin_of};
use super::value::default_to_json;
use super::{ShownParameter, read, unsupported_error};
use crate::bindings::imported::import_module;
use crate::bindings::json::schema_from_python;
use crate::bindings::once::intern;
use crate::bindings::registration::ParameterKind;
use crate::schema::build::build;
use crate::schema::definitions::{PREFIX, adopt};
use crate::schema::normalize::{same, sort_keys};
use crate::schema::{Entries, Node, Refusal, remove_titles};

/// A parameter with all strings in its annotation resolved, or the reason why that failed.
enum PreparedParameter<'py> {
    Ready(PydanticField<'py>, Option<String>),
    Refused(Refusal),
}

/// Describes the parameters of a callable.
pub(super) fn describe(callable: &Bound<'_, PyAny>, shown: &[ShownParameter<'_, '_>], tool: &str) -> PyResult<Entries> {
    let py = callable.py();
    let mut reader = AnnotationReader::new(callable, PydanticMode::EachType);
    let mut prepared = Vec::with_capacity(shown.len());
    for each in shown {
        reader.parts = 0;
        prepared.push(prepare(&mut reader, each)?);
    }
    // Together, so that definitions get the names that they have in one model.
    let ready: Vec<usize> = indices(&prepared);
    let (accepted, schemas) = match request_schemas(py, &fields_of(&prepared, &ready)) {
        Ok(schemas) => (ready, schemas),
        Err(_) => request_accepted(py, &prepared, &ready),
    };

    let mut properties: Vec<Option<(Node, bool)>> = shown.iter().map(|_| None).collect();
    let PydanticSchemas { parameters, mut definitions } = schemas;
    for (index, parameter) in accepted.iter().zip(parameters) {
        if let (Some((property, required)), PreparedParameter::Ready(_, text)) = (parameter, &prepared[*index]) {
            properties[*index] = Some(shown[*index].finish(property, required, text.clone(), &definitions));
        }
    }
    for (index, each) in shown.iter().enumerate().filter(|(index, _)| !accepted.contains(index)) {
        let property = match &prepared[index] {
            PreparedParameter::Refused(refusal) => Err(refusal.clone()),
            PreparedParameter::Ready(..) => read_type_by_type(callable, each, &mut definitions)?,
        };
        match property {
            Ok(property) => properties[index] = property,
            Err(_) if each.hidden => {}
            Err(refusal) => return Err(unsupported_error(tool, each.name, refusal)),
        }
    }
    Ok(assemble(shown, properties, definitions))
}

/// Requests the schemas of as many parameters of `ready` as pydantic accepts together: one that it refuses must not take the
/// others with it.
fn request_accepted(
    py: Python<'_>,
    prepared: &[PreparedParameter<'_>],
    ready: &[usize],
) -> (Vec<usize>, PydanticSchemas) {
    let mut accepted = Vec::with_capacity(ready.len());
    let mut schemas = PydanticSchemas { parameters: Vec::new(), definitions: Entries::new() };
    for index in ready {
        accepted.push(*index);
        match request_schemas(py, &fields_of(prepared, &accepted)) {
            Ok(more) => schemas = more,
            Err(_) => drop(accepted.pop()),
        }
    }
    (accepted, schemas)
}

fn indices(prepared: &[PreparedParameter<'_>]) -> Vec<usize> {
    (0..prepared.len()).filter(|index| matches!(prepared[*index], PreparedParameter::Ready(..))).collect()
}

fn fields_of<'py>(prepared: &[PreparedParameter<'py>], wanted: &[usize]) -> Vec<PydanticField<'py>> {
    let ready = wanted.iter().filter_map(|index| match &prepared[*index] {
        PreparedParameter::Ready(field, _) => Some(field),
        PreparedParameter::Refused(_) => None,
    });
    ready.cloned().collect()
}

fn prepare<'py>(
    reader: &mut AnnotationReader<'py>,
    shown: &ShownParameter<'_, 'py>,
) -> PyResult<PreparedParameter<'py>> {
    let annotation = match resolve(reader, &shown.annotation) {
        Ok(annotation) => annotation,
        Err(error) => {
            let why = error.value(reader.py).to_string();
            return Ok(PreparedParameter::Refused(refusal(&shown.annotation, &why, true)));
        }
    };
    let text = annotated_text(&annotation)?;
    let field = match &shown.default {
        Some(default) if is_field_info(default)? => Some(default.clone()),
        _ => None,
    };
    Ok(PreparedParameter::Ready(PydanticField { annotation: shown.whole_annotation(&annotation)?, field }, text))
}

/// Resolves the strings in an annotation at any depth.
fn resolve<'py>(reader: &mut AnnotationReader<'py>, annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if annotation.cast::<PyType>().is_ok() || annotation.is_none() {
        return Ok(annotation.clone());
    }
    if let Some(object) = reader.resolve_forward_ref(annotation)? {
        // The result can contain strings again.
        return if object.cast::<PyString>().is_ok() {
            resolve(reader, &object)
        } else {
            resolve_inner(reader, &object)
        };
    }
    resolve_inner(reader, annotation)
}

fn resolve_inner<'py>(
    reader: &mut AnnotationReader<'py>,
    annotation: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if is_too_large(annotation) {
        return Err(PyValueError::new_err(too_large()));
    }
    if annotation.cast::<PyType>().is_ok() || origin_of(annotation)?.is_none() {
        return Ok(annotation.clone());
    }
    let repr: String = annotation.repr()?.extract()?;
    if !repr.contains("ForwardRef(") && !repr.contains(['\'', '"']) {
        return Ok(annotation.clone());
    }
    reader.resolve_deeply(annotation)
}

/// The text in `Annotated`, which describes the parameter.
fn annotated_text(annotation: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    match origin_of(annotation)? {
        Some(origin) if form_name(&origin).as_deref() == Some("Annotated") => {
            let mut items = arguments_of(annotation)?;
            items.remove(0);
            Ok(Metadata::read(items, PydanticMode::EachType).ok().and_then(|metadata| metadata.text))
        }
        _ => Ok(None),
    }
}

/// Reads a parameter that pydantic refuses, with pydantic describing single types only.
fn read_type_by_type<'py>(
    callable: &Bound<'py, PyAny>,
    shown: &ShownParameter<'_, 'py>,
    definitions: &mut Entries,
) -> PyResult<Result<Option<(Node, bool)>, Refusal>> {
    let (parameters, own) = match read(callable, std::slice::from_ref(shown), PydanticMode::EachType) {
        Ok(read) => read,
        Err(ReadError::Python(error)) => return Err(error),
        Err(ReadError::NeedsPydantic) => return Ok(Ok(None)),
    };
    let visible: Vec<_> = parameters
        .into_iter()
        .map(|parameter| crate::schema::build::Parameter { hidden: false, ..parameter })
        .collect();
    let mut built = match build(visible, &own) {
        Ok(built) => built,
        Err((_, refusal)) => return Ok(Err(refusal)),
    };
    let is_required = built.contains_key("required");
    let Some(Node::Object(mut properties)) = built.remove("properties") else {
        return Ok(Ok(None));
    };
    let Some(mut property) = properties.remove(shown.name) else {
        return Ok(Ok(None));
    };
    if let Some(Node::Object(own)) = built.remove("$defs") {
        adopt(definitions, own, &mut property);
    }
    Ok(Ok(Some((property, is_required))))
}

impl ShownParameter<'_, '_> {
    /// Adds the default and the description, which pydantic does not get, to the schema of a parameter.
    fn finish(
        &self,
        mut property: Entries,
        mut required: bool,
        text: Option<String>,
        definitions: &Entries,
    ) -> (Node, bool) {
        let default = match (&self.kind, &self.default) {
            (ParameterKind::VarPositional, _) => Some(Some(Node::Array(Vec::new()))),
            (ParameterKind::VarKeyword, _) => Some(Some(Node::Object(Entries::new()))),
            (_, Some(default)) if default.is(default.py().Ellipsis()) || is_field_info(default).unwrap_or(false) => {
                None
            }
            (_, Some(default)) => Some(default_to_json(default)),
            (_, None) => None,
        };
        if let Some(default) = default {
            required = false;
            match default {
                Some(default) => property.insert("default", default),
                None => drop(property.remove("default")),
            }
        }
        self.add_description(&mut property, text);
        let name = property.get("$ref").and_then(Node::as_str).and_then(|reference| reference.strip_prefix(PREFIX));
        if let Some(definition) = name.and_then(|name| definitions.get(name)).cloned() {
            property.retain(|key, value| key == "$ref" || !definition.get(key).is_some_and(|own| same(own, value)));
        }
        (Node::Object(property), required)
    }
}

fn assemble(shown: &[ShownParameter<'_, '_>], properties: Vec<Option<(Node, bool)>>, definitions: Entries) -> Entries {
    let mut shown_properties = Entries::new();
    let mut required = Vec::new();
    for (each, property) in shown.iter().zip(properties) {
        if let Some((property, is_required)) = property.filter(|_| !each.hidden) {
            shown_properties.insert(each.name.to_owned(), property);
            if is_required {
                required.push(Node::from(each.name.to_owned()));
            }
        }
    }
    let mut built = Entries::new();
    if !definitions.is_empty() {
        built.insert("$defs", Node::Object(definitions));
    }
    built.insert("properties", Node::Object(shown_properties));
    if !required.is_empty() {
        built.insert("required", Node::Array(required));
    }
    built.insert("type", Node::from("object"));
    let mut built = Node::Object(built);
    sort_keys(&mut built);
    match built {
        Node::Object(built) => built,
        _ => Entries::new(),
    }
}

/// A parameter as a field of a pydantic model: its annotation without strings, and its default if that is a `Field(…)`.
#[derive(Clone)]
struct PydanticField<'py> {
    annotation: Bound<'py, PyAny>,
    field: Option<Bound<'py, PyAny>>,
}

/// The schemas of several parameters by pydantic, in their order.
struct PydanticSchemas {
    /// The schema of each, with true if it is required; `None` for one that is excluded from the schema.
    parameters: Vec<Option<(Entries, bool)>>,
    definitions: Entries,
}

/// Requests the schemas of all `fields` at once, so that they share their definitions.
fn request_schemas(py: Python<'_>, fields: &[PydanticField<'_>]) -> PyResult<PydanticSchemas> {
    // The warnings are about a model that the developer did not write.
    let quiet = import_module(py, "warnings")?.call_method0(intern!(py, "catch_warnings"))?;
    quiet.call_method0(intern!(py, "__enter__"))?;
    let schema = model_schema(py, fields);
    quiet.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
    Ok(split_by_field(schema?, fields.len()))
}

fn model_schema(py: Python<'_>, fields: &[PydanticField<'_>]) -> PyResult<Node> {
    import_module(py, "warnings")?.call_method1(intern!(py, "simplefilter"), (intern!(py, "ignore"),))?;
    let mut model = model(py, fields, &[])?;
    let aliased = aliased(&model)?;
    if !aliased.is_empty() {
        model = self::model(py, fields, &aliased)?;
    }
    schema_from_python(&model.call_method0(intern!(py, "model_json_schema"))?)
}

/// Splits the schema of the model into those of its fields.
fn split_by_field(schema: Node, fields: usize) -> PydanticSchemas {
    let Node::Object(mut schema) = without_titles(schema) else {
        return PydanticSchemas { parameters: Vec::new(), definitions: Entries::new() };
    };
    let take = |schema: &mut Entries, key: &str| match schema.remove(key) {
        Some(Node::Object(inner)) => inner,
        _ => Entries::new(),
    };
    let definitions = take(&mut schema, "$defs");
    let mut properties = take(&mut schema, "properties");
    let required: Vec<Node> = match schema.remove("required") {
        Some(Node::Array(names)) => names,
        _ => Vec::new(),
    };
    let parameters = (0..fields)
        .map(|index| match properties.remove(&name(index)) {
            Some(Node::Object(property)) => {
                let is_required = required.iter().any(|other| other.as_str() == Some(&name(index)));
                Some((property, is_required))
            }
            _ => None,
        })
        .collect();
    PydanticSchemas { parameters, definitions }
}

/// Requests the schema of a single type, with its definitions.
pub(super) fn schema_of_type(py: Python<'_>, annotation: &Bound<'_, PyAny>) -> PyResult<(Entries, Entries)> {
    let field = PydanticField { annotation: annotation.clone(), field: None };
    let mut schemas = request_schemas(py, &[field])?;
    let schema = schemas.parameters.pop().flatten().map(|(schema, _)| schema).unwrap_or_default();
    Ok((schema, schemas.definitions))
}

/// The name of a field. Names of parameters are not used, because some have a meaning for pydantic.
fn name(index: usize) -> String {
    format!("p{index}")
}

fn without_titles(mut schema: Node) -> Node {
    remove_titles(&mut schema);
    schema
}

/// The pydantic model of `fields`; those in `aliased` lose their alias.
fn model<'py>(py: Python<'py>, fields: &[PydanticField<'py>], aliased: &[String]) -> PyResult<Bound<'py, PyAny>> {
    let pydantic = import_module(py, "pydantic")?;
    let config = PyDict::new(py);
    config.set_item("arbitrary_types_allowed", true)?;
    config.set_item("protected_namespaces", PyTuple::empty(py))?;
    let definition = PyDict::new(py);
    definition.set_item("__config__", config)?;
    for (index, field) in fields.iter().enumerate() {
        let mut annotation = field.annotation.clone();
        let mut default = match &field.field {
            Some(field) => field.clone(),
            None => py.Ellipsis().into_bound(py),
        };
        if aliased.contains(&name(index)) {
            // A function takes its argument by the name of the parameter, not by the alias.
            let plain = PyDict::new(py);
            for alias in ["alias", "validation_alias", "serialization_alias"] {
                plain.set_item(alias, py.None())?;
            }
            let plain = pydantic.call_method("Field", (), Some(&plain))?;
            let mut parts = vec![annotation];
            parts.extend(field.field.clone());
            parts.push(plain);
            annotation = import_module(py, "typing")?.getattr("Annotated")?.get_item(PyTuple::new(py, parts)?)?;
            default = py.Ellipsis().into_bound(py);
        }
        definition.set_item(name(index), (annotation, default))?;
    }
    pydantic.call_method("create_model", ("Parameters",), Some(&definition))
}

/// The names of the fields that have an alias.
fn aliased(model: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let mut aliased = Vec::new();
    for field in model.getattr("model_fields")?.call_method0("items")?.try_iter()? {
        let (name, field): (String, Bound<'_, PyAny>) = field?.extract()?;
        if !(field.getattr("alias")?.is_none() && field.getattr("validation_alias")?.is_none()) {
            aliased.push(name);
        }
    }
    Ok(aliased)
}
