//! Generic types: what stands behind an alias, its arguments put in place of its variables, and its name.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyFunction, PyList, PyString, PyTuple, PyType};

use super::annotation::Reader;
use crate::bindings::imported::import_module;

/// The objects of `typing` that annotations are compared with.
pub(super) struct Typing {
    pub(super) generic_alias: Py<PyAny>,
    pub(super) union_type: Py<PyAny>,
    pub(super) get_origin: Py<PyAny>,
    pub(super) get_args: Py<PyAny>,
    pub(super) any: Py<PyAny>,
    pub(super) bare_tuple: Py<PyAny>,
    /// What the special forms of `typing` are instances of.
    special: Py<PyAny>,
}

impl Typing {
    pub(super) fn get(py: Python<'_>) -> PyResult<&Self> {
        static TYPING: PyOnceLock<Typing> = PyOnceLock::new();
        TYPING.get_or_try_init(py, || {
            let typing = import_module(py, "typing")?;
            let types = import_module(py, "types")?;
            Ok(Self {
                generic_alias: types.getattr("GenericAlias")?.unbind(),
                union_type: types.getattr("UnionType")?.unbind(),
                get_origin: typing.getattr("get_origin")?.unbind(),
                get_args: typing.getattr("get_args")?.unbind(),
                any: typing.getattr("Any")?.unbind(),
                bare_tuple: typing.getattr("Tuple")?.unbind(),
                special: typing.getattr("_Final")?.unbind(),
            })
        })
    }
}

/// The arguments a generic class was given, by its variables.
pub(super) type Variables<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// What a generic alias is an alias of.
pub(super) fn origin_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let typing = Typing::get(py)?;
    if object.get_type().is(typing.generic_alias.bind(py)) {
        return object.getattr(intern!(py, "__origin__")).map(Some);
    }
    let origin = typing.get_origin.bind(py).call1((object,))?;
    Ok((!origin.is_none()).then_some(origin))
}

/// The arguments of a generic alias.
pub(super) fn arguments_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = object.py();
    let typing = Typing::get(py)?;
    let arguments = if object.get_type().is(typing.generic_alias.bind(py)) {
        object.getattr(intern!(py, "__args__"))?
    } else {
        typing.get_args.bind(py).call1((object,))?
    };
    Ok(arguments.cast_into::<PyTuple>()?.iter().collect())
}

/// The name a special form of `typing` goes by, such as `Union` or `Annotated`.
pub(super) fn form_name(form: &Bound<'_, PyAny>) -> Option<String> {
    let py = form.py();
    let module: String = form.getattr(intern!(py, "__module__")).ok()?.extract().ok()?;
    if !matches!(module.as_str(), "typing" | "typing_extensions" | "types") {
        return None;
    }
    let name = form.getattr(intern!(py, "__name__")).or_else(|_| form.getattr(intern!(py, "_name"))).ok()?;
    name.extract().ok()
}

/// The variables of the generic class `origin`, with the arguments of `alias`.
pub(super) fn variables_of<'py>(alias: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> PyResult<Variables<'py>> {
    let Ok(parameters) = origin.getattr(intern!(alias.py(), "__parameters__")) else {
        return Ok(Vec::new());
    };
    let Ok(parameters) = parameters.cast_into::<PyTuple>() else {
        return Ok(Vec::new());
    };
    let arguments = alias.getattr(intern!(alias.py(), "__args__"))?.cast_into::<PyTuple>()?;
    Ok(parameters.iter().zip(arguments.iter()).collect())
}

impl<'py> Reader<'py> {
    /// Puts the arguments of a generic class in the place of its variables.
    pub(super) fn substitute(
        &mut self,
        object: &Bound<'py, PyAny>,
        variables: &Variables<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if variables.is_empty() { Ok(object.clone()) } else { self.rewrite(object, variables) }
    }

    /// Resolves the strings in an annotation, however deep they are.
    pub(super) fn resolve_deeply(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.rewrite(object, &Vec::new())
    }

    fn rewrite(&mut self, object: &Bound<'py, PyAny>, variables: &Variables<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = match self.forward(object)? {
            Some(resolved) => resolved,
            None => object.clone(),
        };
        if let Some((_, argument)) = variables.iter().find(|(variable, _)| variable.is(&object)) {
            return Ok(argument.clone());
        }
        if let Ok(list) = object.cast::<PyList>() {
            let items = list.iter().map(|item| self.rewrite(&item, variables)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(self.py, items)?.into_any());
        }
        let Some(origin) = origin_of(&object)? else {
            return Ok(object);
        };
        let before = arguments_of(&object)?;
        if form_name(&origin).as_deref() == Some("Literal") {
            return Ok(object);
        }
        let is_annotated = form_name(&origin).as_deref() == Some("Annotated");
        let mut after = Vec::with_capacity(before.len());
        for (at, argument) in before.iter().enumerate() {
            let keep = is_annotated && at > 0;
            after.push(if keep { argument.clone() } else { self.rewrite(argument, variables)? });
        }
        if before.iter().zip(&after).all(|(before, after)| before.is(after)) {
            return Ok(object);
        }
        self.rebuild(&object, &origin, after)
    }

    fn rebuild(
        &self,
        object: &Bound<'py, PyAny>,
        origin: &Bound<'py, PyAny>,
        mut arguments: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let typing = import_module(py, "typing")?;
        let mut origin = origin.clone();
        let form = form_name(&origin);
        if matches!(form.as_deref(), Some("Union" | "UnionType")) {
            let any = Typing::get(py)?.any.bind(py);
            if arguments.iter().any(|argument| argument.is(any)) {
                // Whatever else it may be is covered by anything.
                arguments = vec![any.clone()];
            } else if !arguments.iter().all(is_never) {
                arguments.retain(|argument| !is_never(argument));
            }
            origin = typing.getattr(intern!(py, "Union"))?;
        } else if origin.cast::<PyType>().is_ok()
            && let Ok(name) = object.getattr(intern!(py, "_name"))
            && let Ok(name) = name.cast_into::<PyString>()
            && let Ok(alias) = typing.getattr(name)
        {
            origin = alias;
        }
        if let [only] = arguments.as_slice() {
            return origin.get_item(only);
        }
        origin.get_item(PyTuple::new(py, arguments)?)
    }
}

/// Whether `object` is a type without values.
fn is_never(object: &Bound<'_, PyAny>) -> bool {
    matches!(form_name(object).as_deref(), Some("Never" | "NoReturn"))
}

/// Where a type comes from, with its identity: what keeps two types of one name apart.
pub(super) fn reference_of(origin: &Bound<'_, PyAny>, name: &str, arguments: &[Bound<'_, PyAny>]) -> PyResult<String> {
    let py = origin.py();
    let module = origin.getattr(intern!(py, "__module__")).ok().and_then(|module| module.extract::<String>().ok());
    let module = module.unwrap_or_else(|| "<No __module__>".to_owned());
    let mut reference = format!("{module}.{name}:{}", identity(origin));
    if !arguments.is_empty() {
        let shown = arguments.iter().map(|argument| Ok(format!("{}:{}", shown(argument)?, identity(argument))));
        reference.push('[');
        reference.push_str(&shown.collect::<PyResult<Vec<_>>>()?.join(","));
        reference.push(']');
    }
    Ok(reference)
}

fn identity(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr() as usize
}

/// A type as it would be written, without the names of modules.
fn shown(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return text.extract();
    }
    if object.is_exact_instance_of::<PyFunction>() || object.is_exact_instance_of::<PyCFunction>() {
        return object.getattr(intern!(py, "__name__"))?.extract();
    }
    if object.is(py.Ellipsis()) {
        return Ok("...".to_owned());
    }
    if object.cast::<PyType>().is_err() && object.hasattr(intern!(py, "__repr_args__"))? {
        // pydantic's own objects say how they want to be shown.
        return object.repr()?.extract();
    }
    let kind: String = object.get_type().name()?.extract()?;
    if matches!(kind.as_str(), "ForwardRef" | "TypeAliasType") {
        return object.str()?.extract();
    }
    if let Ok(class) = object.cast::<PyType>() {
        return class.qualname()?.extract();
    }
    let bare = |text: String| text.replace("typing.", "").replace("typing_extensions.", "");
    let Some(origin) = origin_of(object)? else {
        return if object.is_instance(Typing::get(py)?.special.bind(py))? {
            Ok(bare(object.repr()?.extract()?))
        } else {
            object.get_type().qualname()?.extract()
        };
    };
    let arguments = arguments_of(object)?;
    if arguments.is_empty() && object.get_type().module()?.to_str()? == "typing" {
        return Ok(bare(object.repr()?.extract()?));
    }
    let form = form_name(&origin);
    let joined = |each: fn(&Bound<'_, PyAny>) -> PyResult<String>| -> PyResult<String> {
        Ok(arguments.iter().map(each).collect::<PyResult<Vec<_>>>()?.join(", "))
    };
    match form.as_deref() {
        Some("Union" | "UnionType") => Ok(format!("Union[{}]", joined(shown)?)),
        Some("Literal") => {
            let name = qualified_name(object).unwrap_or_else(|| "Literal".to_owned());
            Ok(format!("{name}[{}]", joined(|argument| argument.repr()?.extract())?))
        }
        _ => match qualified_name(object) {
            Some(name) => Ok(format!("{name}[{}]", joined(shown)?)),
            None => Ok(bare(object.str()?.extract()?)),
        },
    }
}

fn qualified_name(object: &Bound<'_, PyAny>) -> Option<String> {
    object.getattr(intern!(object.py(), "__qualname__")).ok()?.extract().ok()
}
