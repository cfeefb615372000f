//! What a model is told about the parameters of a Python callable.

mod annotation;
mod ask;
mod class;
mod dataclass;
mod default;
mod field;
mod field_info;
mod form;
mod generic;
mod known;
mod metadata;
mod model;
mod pydantic;
mod refusal;
mod scope;
mod size;
mod typed_dict;
mod value;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};

pub(crate) use self::default::value_to_json;

use self::annotation::{Foreign, Reader, Reading, Trouble};
use self::generic::Typing;
use crate::bindings::signature::{ParameterKind, Signature};
use crate::schema::build::{Parameter, build};
use crate::schema::docstring::{self, Docstring};
use crate::schema::{ArrayKind, Entries, Field, Node, Presence, Refusal, Type};

/// What the caller wants to know, and what is to be kept from the model.
pub(crate) struct Wanted<'a> {
    pub(crate) tool: &'a str,
    pub(crate) include_long_description: bool,
    pub(crate) include_var_positional: bool,
    pub(crate) include_var_keyword: bool,
    /// Whether a parameter is supplied by somebody else.
    pub(crate) hidden: &'a dyn Fn(&str) -> bool,
}

/// What the model is told.
pub(crate) struct Described {
    /// `{"$defs"?, "properties", "required"?, "type": "object"}`
    pub(crate) parameters: Node,
    pub(crate) description: Option<String>,
}

/// One parameter that goes into the schema.
struct Shown<'a, 'py> {
    name: &'a str,
    kind: ParameterKind,
    annotation: Bound<'py, PyAny>,
    default: Option<Bound<'py, PyAny>>,
    /// What the docstring says about it.
    doc: Option<&'a str>,
    hidden: bool,
}

/// What stands in for a parameter that is not sent.
pub(crate) enum Fallback {
    /// Nothing: it must be sent.
    None,
    /// This value.
    Value(Py<PyAny>),
    /// What this function makes, anew for each call.
    Factory(Py<PyAny>),
}

/// Reads the default of a parameter, which may be pydantic's `Field(…)`.
pub(crate) fn fallback_of(default: &Bound<'_, PyAny>) -> PyResult<Fallback> {
    let py = default.py();
    if !field_info::is_field_info(default)? {
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

/// Describes `callable`.
pub(crate) fn describe(
    py: Python<'_>,
    callable: &Bound<'_, PyAny>,
    signature: &Signature,
    wanted: &Wanted<'_>,
) -> PyResult<Described> {
    let docstring = docstring_of(callable)?;
    let shown = shown(py, signature, wanted, docstring.as_ref())?;
    let parameters = match read(callable, &shown, Foreign::Stop) {
        Ok((parameters, definitions)) => build(parameters, &definitions)
            .map_err(|(index, refusal)| unsupported(wanted.tool, shown[index].name, refusal))?,
        Err(Trouble::AskPydantic) => ask::describe(callable, &shown, wanted.tool)?,
        Err(Trouble::Python(error)) => return Err(error),
    };
    let description = docstring.and_then(|docstring| docstring.description(wanted.include_long_description));
    Ok(Described { parameters: Node::Object(parameters), description })
}

fn docstring_of(callable: &Bound<'_, PyAny>) -> PyResult<Option<Docstring>> {
    let Some(doc) = callable.getattr_opt(intern!(callable.py(), "__doc__"))? else {
        return Ok(None);
    };
    match doc.cast::<PyString>() {
        Ok(doc) => Ok(Some(docstring::parse(&doc.to_string_lossy()))),
        Err(_) => Ok(None),
    }
}

fn shown<'a, 'py: 'a>(
    py: Python<'py>,
    signature: &'a Signature,
    wanted: &Wanted<'_>,
    docstring: Option<&'a Docstring>,
) -> PyResult<Vec<Shown<'a, 'py>>> {
    let mut shown = Vec::with_capacity(signature.parameters.len());
    for parameter in &signature.parameters {
        let stars = match parameter.kind {
            ParameterKind::VarPositional if wanted.include_var_positional => "*",
            ParameterKind::VarKeyword if wanted.include_var_keyword => "**",
            ParameterKind::VarPositional | ParameterKind::VarKeyword => continue,
            _ => "",
        };
        let name = parameter.name.bind(py).to_str()?;
        let doc = docstring.and_then(|docstring| {
            let starred = if stars.is_empty() { None } else { docstring.param(&format!("{stars}{name}")) };
            starred.or_else(|| docstring.param(name))
        });
        shown.push(Shown {
            name,
            kind: parameter.kind,
            annotation: match &parameter.annotation {
                Some(annotation) => annotation.bind(py).clone(),
                None => Typing::get(py)?.any.bind(py).clone(),
            },
            default: parameter.default.as_ref().map(|default| default.bind(py).clone()),
            doc,
            hidden: (wanted.hidden)(name),
        });
    }
    Ok(shown)
}

/// Reads every parameter in its turn.
fn read<'py>(
    callable: &Bound<'py, PyAny>,
    shown: &[Shown<'_, 'py>],
    foreign: Foreign,
) -> Reading<(Vec<Parameter>, crate::schema::Definitions)> {
    let mut reader = Reader::new(callable, foreign);
    let mut parameters = Vec::with_capacity(shown.len());
    for each in shown {
        reader.parts = 0;
        let field = each.read(&mut reader)?;
        parameters.push(Parameter { field, hidden: each.hidden });
    }
    Ok((parameters, reader.definitions))
}

impl<'py> Shown<'_, 'py> {
    fn read(&self, reader: &mut Reader<'py>) -> Reading<Field> {
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

    /// The parameter that takes all arguments the others leave over.
    fn rest(&self, accepts: Type, none: Node) -> Field {
        Field { presence: Presence::Default(none), ..Field::required(self.name, accepts) }
    }

    /// The docstring has the first word, then `Field(description=…)`, then a text beside the type.
    fn add_description(&self, notes: &mut Entries, text: Option<String>) {
        let better = self.doc.filter(|doc| !doc.is_empty() || (text.is_none() && !notes.contains_key("description")));
        if let Some(doc) = better {
            notes.insert("description", Node::from(doc.to_owned()));
        } else if let Some(text) = text
            && !notes.contains_key("description")
        {
            notes.insert("description", Node::from(text));
        }
    }

    /// The annotation of what reaches the function, for somebody who knows nothing of stars.
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
fn unsupported(tool: &str, parameter: &str, refusal: Refusal) -> PyErr {
    crate::Error::UnsupportedType {
        tool: tool.to_owned(),
        parameter: parameter.to_owned(),
        annotation: refusal.annotation,
        reason: refusal.reason,
    }
    .into()
}
