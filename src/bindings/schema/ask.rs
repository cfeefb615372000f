//! A signature with types that only pydantic knows: ask about all of it, or about as much as pydantic can answer.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::annotation::{Foreign, Reader, Trouble};
use super::default::default_to_json;
use super::field_info::is_field_info;
use super::generic::{arguments_of, form_name, origin_of};
use super::metadata::Metadata;
use super::pydantic::{Answer, Question, ask};
use super::refusal::refusal;
use super::size::{is_too_large, too_large};
use super::{Shown, read, unsupported};
use crate::bindings::signature::ParameterKind;
use crate::schema::build::build;
use crate::schema::definitions::{PREFIX, adopt};
use crate::schema::normalize::{same, sort_keys};
use crate::schema::{Entries, Node, Refusal};

/// A parameter with all strings in its annotation resolved, or why that failed.
enum Prepared<'py> {
    Ready(Question<'py>, Option<String>),
    Refused(Refusal),
}

pub(super) fn describe(callable: &Bound<'_, PyAny>, shown: &[Shown<'_, '_>], tool: &str) -> PyResult<Entries> {
    let py = callable.py();
    let mut reader = Reader::new(callable, Foreign::AskEach);
    let mut prepared = Vec::with_capacity(shown.len());
    for each in shown {
        reader.parts = 0;
        prepared.push(prepare(&mut reader, each)?);
    }
    // Together, so that definitions get the names they would get in one model.
    let ready: Vec<usize> = indices(&prepared);
    let (asked, answer) = match ask(py, &questions(&prepared, &ready)) {
        Ok(answer) => (ready, answer),
        Err(_) => ask_able(py, &prepared, &ready),
    };

    let mut properties: Vec<Option<(Node, bool)>> = shown.iter().map(|_| None).collect();
    let Answer { parameters, mut definitions } = answer;
    for (index, parameter) in asked.iter().zip(parameters) {
        if let (Some((property, required)), Prepared::Ready(_, text)) = (parameter, &prepared[*index]) {
            properties[*index] = Some(shown[*index].finish(property, required, text.clone(), &definitions));
        }
    }
    for (index, each) in shown.iter().enumerate().filter(|(index, _)| !asked.contains(index)) {
        let property = match &prepared[index] {
            Prepared::Refused(refusal) => Err(refusal.clone()),
            Prepared::Ready(..) => alone(callable, each, &mut definitions)?,
        };
        match property {
            Ok(property) => properties[index] = property,
            Err(_) if each.hidden => {}
            Err(refusal) => return Err(unsupported(tool, each.name, refusal)),
        }
    }
    Ok(assemble(shown, properties, definitions))
}

/// Asks about as many of `ready` as pydantic can answer together: two of them can share a definition that only one of
/// them can do without.
fn ask_able(py: Python<'_>, prepared: &[Prepared<'_>], ready: &[usize]) -> (Vec<usize>, Answer) {
    let mut able = Vec::with_capacity(ready.len());
    let mut answer = Answer { parameters: Vec::new(), definitions: Entries::new() };
    for index in ready {
        able.push(*index);
        match ask(py, &questions(prepared, &able)) {
            Ok(better) => answer = better,
            Err(_) => drop(able.pop()),
        }
    }
    (able, answer)
}

fn indices(prepared: &[Prepared<'_>]) -> Vec<usize> {
    (0..prepared.len()).filter(|index| matches!(prepared[*index], Prepared::Ready(..))).collect()
}

fn questions<'py>(prepared: &[Prepared<'py>], wanted: &[usize]) -> Vec<Question<'py>> {
    let ready = wanted.iter().filter_map(|index| match &prepared[*index] {
        Prepared::Ready(question, _) => Some(question),
        Prepared::Refused(_) => None,
    });
    ready.map(|question| Question { annotation: question.annotation.clone(), field: question.field.clone() }).collect()
}

fn prepare<'py>(reader: &mut Reader<'py>, shown: &Shown<'_, 'py>) -> PyResult<Prepared<'py>> {
    let annotation = match resolved(reader, &shown.annotation) {
        Ok(annotation) => annotation,
        Err(error) => {
            let why = error.value(reader.py).to_string();
            return Ok(Prepared::Refused(refusal(&shown.annotation, &why, true)));
        }
    };
    let text = text_beside(&annotation)?;
    let field = match &shown.default {
        Some(default) if is_field_info(default)? => Some(default.clone()),
        _ => None,
    };
    Ok(Prepared::Ready(Question { annotation: shown.whole_annotation(&annotation)?, field }, text))
}

/// Resolves the strings in an annotation, however deep they are.
fn resolved<'py>(reader: &mut Reader<'py>, annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if annotation.cast::<PyType>().is_ok() || annotation.is_none() {
        return Ok(annotation.clone());
    }
    if let Some(object) = reader.forward(annotation)? {
        // What a string stands for can hold strings again.
        return if object.cast::<PyString>().is_ok() { resolved(reader, &object) } else { deeply(reader, &object) };
    }
    deeply(reader, annotation)
}

fn deeply<'py>(reader: &mut Reader<'py>, annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
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

fn text_beside(annotation: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    match origin_of(annotation)? {
        Some(origin) if form_name(&origin).as_deref() == Some("Annotated") => {
            let mut items = arguments_of(annotation)?;
            items.remove(0);
            Ok(Metadata::read(items, Foreign::AskEach).ok().and_then(|metadata| metadata.text))
        }
        _ => Ok(None),
    }
}

/// Reads a parameter that pydantic refuses, asking it about single types only.
fn alone<'py>(
    callable: &Bound<'py, PyAny>,
    shown: &Shown<'_, 'py>,
    definitions: &mut Entries,
) -> PyResult<Result<Option<(Node, bool)>, Refusal>> {
    let (parameters, own) = match read(callable, std::slice::from_ref(shown), Foreign::AskEach) {
        Ok(read) => read,
        Err(Trouble::Python(error)) => return Err(error),
        Err(Trouble::AskPydantic) => return Ok(Ok(None)),
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

impl Shown<'_, '_> {
    /// Adds to pydantic's answer what pydantic was not told.
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

fn assemble(shown: &[Shown<'_, '_>], properties: Vec<Option<(Node, bool)>>, definitions: Entries) -> Entries {
    let mut told = Entries::new();
    let mut required = Vec::new();
    for (each, property) in shown.iter().zip(properties) {
        if let Some((property, is_required)) = property.filter(|_| !each.hidden) {
            told.insert(each.name.to_owned(), property);
            if is_required {
                required.push(Node::from(each.name.to_owned()));
            }
        }
    }
    let mut built = Entries::new();
    if !definitions.is_empty() {
        built.insert("$defs", Node::Object(definitions));
    }
    built.insert("properties", Node::Object(told));
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
