//! The JSON Schema of a Python callable, from its signature and its docstring.
//!
//! - [`describe`] (here) reads each parameter and lets the core build the schema;
//! - `annotation` reads any annotation as a type of the core, and limits its size;
//! - `typing` handles aliases, special forms and type variables, `records` classes with fields and enumerations;
//! - `field` joins the type of a parameter or field with its default and the metadata in `Annotated[…]` and `Field(…)`;
//! - `forward_refs` resolves string annotations, `value` converts defaults and literals to JSON;
//! - `converter` reads annotations once more, as the converters that build typed arguments;
//! - `pydantic` lets pydantic describe the types that only it knows.

mod annotation;
mod converter;
mod field;
mod forward_refs;
mod pydantic;
mod records;
mod typing;
mod value;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};

pub(crate) use self::value::value_to_json;

use self::annotation::{AnnotationReader, PydanticMode, ReadError, ReadResult, is_forward_ref};
use self::converter::{ConverterReader, is_plain_literal};
use self::field::is_field_info;
use self::typing::{TypingObjects, arguments_of, form_name, origin_of};
use crate::bindings::once::intern;
use crate::bindings::registration::{ParameterKind, Signature};
use crate::bindings::typed::{Converter, Converters, ItemsClass, JsonShape, MapClass};
use crate::schema::build::{Parameter, build};
use crate::schema::docstring::{Cleaned, Docstring};
use crate::schema::{ArrayKind, Entries, Field, Node, Presence, Refusal, Type};

/// The options of [`describe`].
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub(crate) struct DescribeOptions<'a> {
    pub(crate) tool: &'a str,
    pub(crate) include_long_description: bool,
    pub(crate) include_var_positional: bool,
    pub(crate) include_var_keyword: bool,
    /// True if the docstring is read exactly as `docstring_parser` does.
    pub(crate) exact_docstring: bool,
    /// True for a parameter that the model does not send.
    pub(crate) hidden: &'a dyn Fn(&str) -> bool,
}

/// The schema of a callable.
#[allow(clippy::struct_field_names, reason = "the description is the field of that name in the schema")]
pub(crate) struct Description {
    /// `{"$defs"?, "properties", "required"?, "type": "object"}`
    pub(crate) parameters: Node,
    pub(crate) description: Option<String>,
    /// The converters of the parameters that are more than JSON values.
    pub(crate) converters: Converters,
    /// The parameters that the docstring names and the schema does not show.
    pub(crate) unshown: Vec<String>,
}

/// A parameter that may go into the schema.
struct ShownParameter<'a, 'py> {
    name: &'a str,
    /// The name as the function has it.
    interned: &'a Bound<'py, PyString>,
    kind: ParameterKind,
    annotation: Bound<'py, PyAny>,
    default: Option<Bound<'py, PyAny>>,
    /// Its description in the docstring.
    doc: Option<&'a str>,
    hidden: bool,
}

/// The value of a parameter that is not sent.
pub(crate) enum Fallback {
    /// None: the parameter is required.
    None,
    /// This value.
    Value(Py<PyAny>),
    /// The result of this function, called for each call.
    Factory(Py<PyAny>),
}

/// Reads the default of a parameter, which may be pydantic's `Field(…)`.
pub(crate) fn fallback_of(default: &Bound<'_, PyAny>) -> PyResult<Fallback> {
    let py = default.py();
    if !is_field_info(default)? {
        return Ok(Fallback::Value(default.clone().unbind()));
    }
    let factory = default.getattr(intern!(py, "default_factory"))?;
    if !factory.is_none() {
        return Ok(Fallback::Factory(factory.unbind()));
    }
    if default.call_method0(intern!(py, "is_required"))?.is_truthy()? {
        return Ok(Fallback::None);
    }
    Ok(Fallback::Value(default.getattr(intern!(py, "default"))?.unbind()))
}

/// True if an annotation of a callable names a class: itself, with arguments, in a union or as text.
pub(crate) fn names_class(
    callable: &Bound<'_, PyAny>,
    annotation: &Bound<'_, PyAny>,
    class: &Bound<'_, PyAny>,
) -> bool {
    if annotation.is(class) {
        return true;
    }
    if annotation.cast::<PyType>().is_ok() && origin_of(annotation).is_ok_and(|origin| origin.is_none()) {
        return false;
    }
    if is_forward_ref(annotation).unwrap_or(false) {
        let resolved = AnnotationReader::new(callable, PydanticMode::EachType).resolve_forward_ref(annotation);
        return matches!(resolved, Ok(Some(resolved)) if !resolved.is_instance_of::<PyString>()
            && names_class(callable, &resolved, class));
    }
    match origin_of(annotation) {
        Ok(Some(origin)) if origin.is(class) => true,
        Ok(Some(origin)) if matches!(form_name(&origin).as_deref(), Some("Union" | "UnionType" | "Annotated")) => {
            arguments_of(annotation).is_ok_and(|parts| parts.iter().any(|part| names_class(callable, part, class)))
        }
        _ => false,
    }
}

/// Describes `callable`.
pub(crate) fn describe(
    py: Python<'_>,
    callable: &Bound<'_, PyAny>,
    signature: &Signature,
    wanted: &DescribeOptions<'_>,
) -> PyResult<Description> {
    let text = docstring_of(callable)?;
    let text = text.as_ref().map(|text| text.to_string_lossy());
    let cleaned = text.as_deref().map(Cleaned::of);
    let docstring = cleaned.as_ref().map(|text| text.read(!wanted.exact_docstring));
    let shown = shown(py, signature, wanted, docstring.as_ref())?;
    let (parameters, converters) = match read(callable, &shown, PydanticMode::WholeSignature) {
        Ok((parameters, definitions)) => {
            let is_typed = |index: &usize| {
                !parameters[*index].field.accepts.is_json_value() && !is_plain_literal(&shown[*index].annotation)
            };
            let typed: Vec<usize> = (0..shown.len()).filter(is_typed).collect();
            let built = build(parameters, &definitions)
                .map_err(|(index, refusal)| unsupported_error(wanted.tool, shown[index].name, refusal))?;
            (built, read_converters(callable, typed.into_iter().map(|index| &shown[index])))
        }
        Err(ReadError::NeedsPydantic) => {
            (pydantic::describe(callable, &shown, wanted.tool)?, read_converters(callable, shown.iter()))
        }
        Err(ReadError::Python(error)) => return Err(error),
    };
    let description = docstring.as_ref().and_then(|docstring| docstring.description(wanted.include_long_description));
    let documented = docstring.iter().flat_map(|docstring| &docstring.params).map(|parameter| &parameter.name);
    let unshown = documented.filter(|name| !shown.iter().any(|each| each.name == **name));
    let unshown = unshown.map(|name| name.clone().into_owned()).collect();
    Ok(Description { parameters: Node::Object(parameters), description, unshown, converters })
}

/// The schema of the results of a callable, from its return annotation.
///
/// None if there is no annotation, or one without a schema of its own: `None`, `Any`, a response, an iterator. No annotation is a
/// mistake here, so that nothing is raised.
pub(crate) fn return_schema(callable: &Bound<'_, PyAny>) -> Option<Node> {
    let annotation = return_annotation(callable).ok()??;
    let mut reader = AnnotationReader::new(callable, PydanticMode::EachType);
    let resolved = match is_forward_ref(&annotation) {
        Ok(true) => reader.resolve_forward_ref(&annotation).ok().flatten()?,
        _ => annotation,
    };
    if resolved.is_none() || !describes_result(&resolved).unwrap_or(false) {
        return None;
    }
    let accepts = reader.read(&resolved).ok()?;
    if matches!(accepts, Type::Any) {
        return None;
    }
    let parameter = Parameter { field: Field::required(RESULT, accepts), hidden: false };
    let mut built = build(vec![parameter], &reader.definitions).ok()?;
    let Some(Node::Object(mut properties)) = built.remove("properties") else { return None };
    let Some(Node::Object(mut schema)) = properties.remove(RESULT) else { return None };
    if let Some(definitions) = built.remove("$defs") {
        schema.push("$defs", definitions);
    }
    Some(Node::Object(schema))
}

/// The name under which the schema of a result is built.
const RESULT: &str = "result";

fn return_annotation<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = callable.py();
    let mut function = callable.clone();
    if function.getattr_opt(intern!(py, "__annotations__"))?.is_none() || function.is_instance_of::<PyType>() {
        // An object is called by the method of its class.
        let Some(call) = function.get_type().getattr_opt(intern!(py, "__call__"))? else { return Ok(None) };
        function = call;
    }
    let Some(annotations) = function.getattr_opt(intern!(py, "__annotations__"))? else { return Ok(None) };
    let Ok(annotations) = annotations.cast_into::<PyDict>() else { return Ok(None) };
    annotations.get_item(intern!(py, "return"))
}

/// False for an annotation of a response, or of a result that is not known before it is awaited or iterated.
fn describes_result(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    const OPEN: [&str; 10] = [
        "ToolResponse",
        "Any",
        "object",
        "Iterator",
        "Iterable",
        "Generator",
        "AsyncIterator",
        "AsyncIterable",
        "AsyncGenerator",
        "Awaitable",
    ];
    let py = annotation.py();
    let class = origin_of(annotation)?.unwrap_or_else(|| annotation.clone());
    if matches!(form_name(&class).as_deref(), Some("Union" | "UnionType" | "Annotated")) {
        return arguments_of(annotation)?.iter().try_fold(true, |all, part| Ok(all && describes_result(part)?));
    }
    let name = class.getattr_opt(intern!(py, "__name__"))?;
    let name = name.and_then(|name| name.extract::<String>().ok()).or_else(|| form_name(&class));
    Ok(name.is_none_or(|name| !OPEN.contains(&name.as_str()) && name != "Coroutine"))
}

/// The description in the docstring of a callable.
pub(crate) fn description_of(callable: &Bound<'_, PyAny>, is_long: bool) -> PyResult<Option<String>> {
    let text = docstring_of(callable)?;
    Ok(text.and_then(|text| Cleaned::of(&text.to_string_lossy()).read(true).description(is_long)))
}

/// The converters of a callable whose schema is supplied.
pub(crate) fn converters_of(
    py: Python<'_>,
    callable: &Bound<'_, PyAny>,
    signature: &Signature,
) -> PyResult<Converters> {
    let wanted = DescribeOptions {
        tool: "",
        include_long_description: false,
        exact_docstring: false,
        include_var_positional: true,
        include_var_keyword: true,
        hidden: &|_| false,
    };
    Ok(read_converters(callable, shown(py, signature, &wanted, None)?.iter()))
}

fn read_converters<'a, 'py: 'a>(
    callable: &Bound<'py, PyAny>,
    shown: impl Iterator<Item = &'a ShownParameter<'a, 'py>>,
) -> Converters {
    let mut shown = shown.filter(|each| !each.hidden).peekable();
    if shown.peek().is_none() {
        return Converters::default();
    }
    let mut reader = ConverterReader::new(callable, shown.size_hint().1.unwrap_or_default());
    for each in shown {
        let has_field = each.default.as_ref().is_some_and(|default| is_field_info(default).unwrap_or(true));
        let wrap = |converter| match each.kind {
            ParameterKind::VarPositional => Converter::Items(Box::new(converter), ItemsClass::List),
            ParameterKind::VarKeyword => {
                Converter::Map(Box::new((Converter::Json(JsonShape::Text), converter)), MapClass::Dict)
            }
            _ => converter,
        };
        reader.read_parameter(each.interned, &each.annotation, wrap, has_field);
    }
    reader.finish()
}

fn docstring_of<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    Ok(callable.getattr_opt(intern!(callable.py(), "__doc__"))?.and_then(|doc| doc.cast_into().ok()))
}

fn shown<'a, 'py: 'a>(
    py: Python<'py>,
    signature: &'a Signature,
    wanted: &DescribeOptions<'_>,
    docstring: Option<&'a Docstring<'a>>,
) -> PyResult<Vec<ShownParameter<'a, 'py>>> {
    let mut shown = Vec::with_capacity(signature.parameters.len());
    for parameter in &signature.parameters {
        let stars = match parameter.kind {
            ParameterKind::VarPositional if wanted.include_var_positional => "*",
            ParameterKind::VarKeyword if wanted.include_var_keyword => "**",
            ParameterKind::VarPositional | ParameterKind::VarKeyword => continue,
            _ => "",
        };
        let interned = parameter.name.bind(py);
        let name = interned.to_str()?;
        let doc = docstring.and_then(|docstring| {
            let starred = if stars.is_empty() { None } else { docstring.param(&format!("{stars}{name}")) };
            starred.or_else(|| docstring.param(name))
        });
        shown.push(ShownParameter {
            name,
            interned,
            kind: parameter.kind,
            annotation: match &parameter.annotation {
                Some(annotation) => annotation.bind(py).clone(),
                None => TypingObjects::get(py)?.any.bind(py).clone(),
            },
            default: parameter.default.as_ref().map(|default| default.bind(py).clone()),
            doc,
            hidden: parameter.is_context || (wanted.hidden)(name),
        });
    }
    Ok(shown)
}

/// Reads all parameters in their order.
fn read<'py>(
    callable: &Bound<'py, PyAny>,
    shown: &[ShownParameter<'_, 'py>],
    mode: PydanticMode,
) -> ReadResult<(Vec<Parameter>, crate::schema::Definitions)> {
    let mut reader = AnnotationReader::new(callable, mode);
    let mut parameters = Vec::with_capacity(shown.len());
    for each in shown {
        reader.parts = 0;
        let field = each.read(&mut reader)?;
        parameters.push(Parameter { field, hidden: each.hidden });
    }
    Ok((parameters, reader.definitions))
}

impl<'py> ShownParameter<'_, 'py> {
    fn read(&self, reader: &mut AnnotationReader<'py>) -> ReadResult<Field> {
        let (mut field, text) = match self.kind {
            ParameterKind::VarPositional => {
                let items = Box::new(reader.read(&self.annotation)?);
                let accepts = Type::Array { items, kind: ArrayKind::List };
                (self.rest(accepts, Node::Array(Vec::new())), None)
            }
            ParameterKind::VarKeyword => {
                let values = Box::new(reader.read(&self.annotation)?);
                let accepts = Type::Map { keys: Box::new(Type::Text), values, countable: true };
                (self.rest(accepts, Node::Object(Entries::new())), None)
            }
            _ => reader.read_parameter(self.name, &self.annotation, self.default.as_ref())?,
        };
        self.add_description(&mut field.notes, text);
        Ok(field)
    }

    /// The parameter that collects the remaining arguments.
    fn rest(&self, accepts: Type, none: Node) -> Field {
        Field { presence: Presence::Default(none), ..Field::required(self.name, accepts) }
    }

    /// Adds the description: the docstring's, else that of `Field(description=…)`, else the text in `Annotated`.
    fn add_description(&self, notes: &mut Entries, text: Option<String>) {
        let better = self.doc.filter(|doc| !doc.is_empty() || (text.is_none() && !notes.contains_key("description")));
        if let Some(doc) = better {
            if notes.is_empty() {
                *notes = Entries::with_capacity(3); // with the default and the type
            }
            notes.insert("description", Node::from(doc.to_owned()));
        } else if let Some(text) = text
            && !notes.contains_key("description")
        {
            notes.insert("description", Node::from(text));
        }
    }

    /// The annotation of the collected arguments, for pydantic, which does not know `*args` and `**kwargs`.
    fn whole_annotation(&self, annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = annotation.py();
        let class = |class: Bound<'py, PyType>| class.into_any();
        match self.kind {
            ParameterKind::VarPositional => class(py.get_type::<PyList>()).get_item(annotation),
            ParameterKind::VarKeyword => {
                class(py.get_type::<PyDict>()).get_item((py.get_type::<PyString>(), annotation))
            }
            _ => Ok(annotation.clone()),
        }
    }
}

/// The exception for a parameter without a schema.
fn unsupported_error(tool: &str, parameter: &str, refusal: Refusal) -> PyErr {
    crate::Error::UnsupportedType {
        tool: tool.to_owned(),
        parameter: parameter.to_owned(),
        annotation: refusal.annotation,
        reason: refusal.reason,
    }
    .into()
}
