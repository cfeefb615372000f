//! Questions to pydantic, asked only about annotations that nobody else understands.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bindings::imported::import_module;
use crate::bindings::json::schema_from_python;
use crate::schema::{Entries, Node, remove_titles};

/// A parameter to ask about: its annotation, free of strings, and its default if that is a `Field(…)`.
pub(super) struct Question<'py> {
    pub(super) annotation: Bound<'py, PyAny>,
    pub(super) field: Option<Bound<'py, PyAny>>,
}

/// What pydantic says about several parameters, in their order.
pub(super) struct Answer {
    /// The schema of each, and whether it must be given; nothing for one that wants to stay out of the schema.
    pub(super) parameters: Vec<Option<(Entries, bool)>>,
    pub(super) definitions: Entries,
}

/// Asks about all of `questions` at once, so that they share their definitions.
pub(super) fn ask(py: Python<'_>, questions: &[Question<'_>]) -> PyResult<Answer> {
    // The warnings are about models that the developer never wrote.
    let quiet = import_module(py, "warnings")?.call_method0(intern!(py, "catch_warnings"))?;
    quiet.call_method0(intern!(py, "__enter__"))?;
    let schema = ask_aloud(py, questions);
    quiet.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
    Ok(sort_out(schema?, questions.len()))
}

fn ask_aloud(py: Python<'_>, questions: &[Question<'_>]) -> PyResult<Node> {
    import_module(py, "warnings")?.call_method1(intern!(py, "simplefilter"), (intern!(py, "ignore"),))?;
    let mut model = model(py, questions, &[])?;
    let aliased = aliased(&model)?;
    if !aliased.is_empty() {
        model = self::model(py, questions, &aliased)?;
    }
    schema_from_python(&model.call_method0(intern!(py, "model_json_schema"))?)
}

/// Gives each question its part of the answer.
fn sort_out(schema: Node, questions: usize) -> Answer {
    let Node::Object(mut schema) = without_titles(schema) else {
        return Answer { parameters: Vec::new(), definitions: Entries::new() };
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
    let parameters = (0..questions)
        .map(|index| match properties.remove(&name(index)) {
            Some(Node::Object(property)) => {
                let is_required = required.iter().any(|other| other.as_str() == Some(&name(index)));
                Some((property, is_required))
            }
            _ => None,
        })
        .collect();
    Answer { parameters, definitions }
}

/// Asks about a single type.
pub(super) fn ask_one(py: Python<'_>, annotation: &Bound<'_, PyAny>) -> PyResult<(Entries, Entries)> {
    let question = Question { annotation: annotation.clone(), field: None };
    let mut answer = ask(py, &[question])?;
    let schema = answer.parameters.pop().flatten().map(|(schema, _)| schema).unwrap_or_default();
    Ok((schema, answer.definitions))
}

/// Names that mean nothing to pydantic, because a parameter may have one that does.
fn name(index: usize) -> String {
    format!("p{index}")
}

fn without_titles(mut schema: Node) -> Node {
    remove_titles(&mut schema);
    schema
}

fn model<'py>(py: Python<'py>, questions: &[Question<'py>], aliased: &[String]) -> PyResult<Bound<'py, PyAny>> {
    let pydantic = import_module(py, "pydantic")?;
    let config = PyDict::new(py);
    config.set_item("arbitrary_types_allowed", true)?;
    config.set_item("protected_namespaces", PyTuple::empty(py))?;
    let fields = PyDict::new(py);
    fields.set_item("__config__", config)?;
    for (index, question) in questions.iter().enumerate() {
        let mut annotation = question.annotation.clone();
        let mut default = match &question.field {
            Some(field) => field.clone(),
            None => py.Ellipsis().into_bound(py),
        };
        if aliased.contains(&name(index)) {
            // The name of a parameter is the one its function takes.
            let plain = PyDict::new(py);
            for alias in ["alias", "validation_alias", "serialization_alias"] {
                plain.set_item(alias, py.None())?;
            }
            let plain = pydantic.call_method("Field", (), Some(&plain))?;
            let mut parts = vec![annotation];
            parts.extend(question.field.clone());
            parts.push(plain);
            annotation = import_module(py, "typing")?.getattr("Annotated")?.get_item(PyTuple::new(py, parts)?)?;
            default = py.Ellipsis().into_bound(py);
        }
        fields.set_item(name(index), (annotation, default))?;
    }
    pydantic.call_method("create_model", ("Parameters",), Some(&fields))
}

/// The fields that want to go by another name.
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
