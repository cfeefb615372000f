//! The objects of `typing`: aliases and their arguments, special forms, type variables, and the names of generic types.

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyFunction, PyInt, PyList, PyString, PyTuple, PyType};

use super::annotation::{AnnotationReader, ReadResult, invalid_type, is_forward_ref, type_name};
use super::field::Metadata;
use super::forward_refs::Scope;
use super::value::value_to_json;
use crate::bindings::imported::import_module;
use crate::bindings::json::MAX_DEPTH;
use crate::bindings::once::{GilOnce, intern};
use crate::bindings::typed::is_json_scalar;
use crate::schema::{ArrayKind, Type};

/// The objects of `typing` that annotations are compared with.
pub(super) struct TypingObjects {
    pub(super) generic_alias: Py<PyAny>,
    pub(super) union_type: Py<PyAny>,
    /// The classes of `Literal[…]` and `Union[…]`, which store their origin and their arguments unchanged.
    form_aliases: [Py<PyType>; 2],
    pub(super) get_origin: Py<PyAny>,
    pub(super) get_args: Py<PyAny>,
    pub(super) any: Py<PyAny>,
    pub(super) bare_tuple: Py<PyAny>,
    /// The class of the special forms of `typing`.
    special: Py<PyAny>,
}

impl TypingObjects {
    pub(super) fn get(py: Python<'_>) -> PyResult<&Self> {
        static TYPING: GilOnce<TypingObjects> = GilOnce::new();
        TYPING.get_or_try_init(py, || {
            let typing = import_module(py, "typing")?;
            let types = import_module(py, "types")?;
            Ok(Self {
                generic_alias: types.getattr("GenericAlias")?.unbind(),
                union_type: types.getattr("UnionType")?.unbind(),
                form_aliases: [
                    typing.getattr("Literal")?.get_item(0)?.get_type().unbind(),
                    typing
                        .getattr("Union")?
                        .get_item((py.get_type::<PyInt>(), py.get_type::<PyString>()))?
                        .get_type()
                        .unbind(),
                ],
                get_origin: typing.getattr("get_origin")?.unbind(),
                get_args: typing.getattr("get_args")?.unbind(),
                any: typing.getattr("Any")?.unbind(),
                bare_tuple: typing.getattr("Tuple")?.unbind(),
                special: typing.getattr("_Final")?.unbind(),
            })
        })
    }

    /// True for `Literal[…]` and `Union[…]`.
    fn is_form_alias(&self, kind: &Bound<'_, PyType>) -> bool {
        self.form_aliases.iter().any(|class| kind.is(class))
    }

    /// True for `list[int]` and `int | str`, which the interpreter itself makes and which store their arguments unchanged.
    pub(super) fn is_builtin_alias(&self, annotation: &Bound<'_, PyAny>) -> bool {
        let (py, kind) = (annotation.py(), annotation.get_type());
        kind.is(self.generic_alias.bind(py)) || kind.is(self.union_type.bind(py))
    }
}

/// The variables of a generic class, each with its argument.
pub(super) type TypeVariables<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// The origin of a generic alias.
pub(super) fn origin_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let typing = TypingObjects::get(py)?;
    let kind = object.get_type();
    if kind.is(typing.generic_alias.bind(py)) || typing.is_form_alias(&kind) {
        return object.getattr(intern!(py, "__origin__")).map(Some);
    }
    if kind.is(typing.union_type.bind(py)) {
        return Ok(Some(kind.into_any()));
    }
    if kind.is(py.get_type::<PyType>()) {
        return Ok(None); // a class, the most frequent annotation
    }
    let origin = typing.get_origin.bind(py).call1((object,))?;
    Ok((!origin.is_none()).then_some(origin))
}

/// The arguments of a generic alias.
pub(super) fn arguments_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = object.py();
    let typing = TypingObjects::get(py)?;
    let arguments = if typing.is_builtin_alias(object) || typing.is_form_alias(&object.get_type()) {
        object.getattr(intern!(py, "__args__"))?
    } else {
        typing.get_args.bind(py).call1((object,))?
    };
    Ok(arguments.cast_into::<PyTuple>()?.iter().collect())
}

/// The name of a special form of `typing`, such as `Union` or `Annotated`.
pub(super) fn form_name(form: &Bound<'_, PyAny>) -> Option<String> {
    let py = form.py();
    let module = form.getattr(intern!(py, "__module__")).ok()?.cast_into::<PyString>().ok()?;
    if !matches!(module.to_str().ok()?, "typing" | "typing_extensions" | "types") {
        return None;
    }
    // A special form has its name at hand in `_name`; its `__name__` is made by Python code.
    let (first, second) = (intern!(py, "_name"), intern!(py, "__name__"));
    let (first, second) = if form.is_instance_of::<PyType>() { (second, first) } else { (first, second) };
    form.getattr(first).or_else(|_| form.getattr(second)).ok()?.extract().ok()
}

/// The variables of the generic class `origin`, with the arguments of `alias`.
pub(super) fn variables_of<'py>(alias: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> PyResult<TypeVariables<'py>> {
    let Ok(parameters) = origin.getattr(intern!(alias.py(), "__parameters__")) else {
        return Ok(Vec::new());
    };
    let Ok(parameters) = parameters.cast_into::<PyTuple>() else {
        return Ok(Vec::new());
    };
    let arguments = alias.getattr(intern!(alias.py(), "__args__"))?.cast_into::<PyTuple>()?;
    Ok(parameters.iter().zip(arguments.iter()).collect())
}

impl<'py> AnnotationReader<'py> {
    /// Replaces the variables of a generic class by their arguments.
    pub(super) fn substitute(
        &mut self,
        object: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if variables.is_empty() {
            return Ok(object.clone());
        }
        match self.rewrite(object, variables) {
            // Reading the annotation reports the error.
            Err(_) if self.is_over() => Ok(object.clone()),
            rewritten => rewritten,
        }
    }

    /// Resolves the strings in an annotation at any depth.
    pub(super) fn resolve_deeply(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.rewrite(object, &Vec::new())
    }

    fn rewrite(&mut self, object: &Bound<'py, PyAny>, variables: &TypeVariables<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.count_rewritten()?;
        self.depth += 1;
        let rewritten = self.rewrite_parts(object, variables);
        self.depth -= 1;
        rewritten
    }

    fn rewrite_parts(
        &mut self,
        object: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = match self.resolve_forward_ref(object)? {
            Some(resolved) => resolved,
            None => object.clone(),
        };
        if let Some((_, argument)) = variables.iter().find(|(variable, _)| variable.is(&object)) {
            return Ok(argument.clone());
        }
        if let Ok(list) = object.cast::<PyList>() {
            let items = list.iter().map(|item| self.rewrite(&item, variables)).collect::<PyResult<Vec<_>>>()?;
            let is_same = list.iter().zip(&items).all(|(before, after)| before.is(after));
            return Ok(if is_same { object } else { PyList::new(self.py, items)?.into_any() });
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
        self.rebuild(&object, &origin, after, !variables.is_empty())
    }

    /// Makes the type with other arguments. If some took the place of variables, a choice is simplified, as by pydantic.
    fn rebuild(
        &self,
        object: &Bound<'py, PyAny>,
        origin: &Bound<'py, PyAny>,
        mut arguments: Vec<Bound<'py, PyAny>>,
        simplifies: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let typing = import_module(py, "typing")?;
        let mut origin = origin.clone();
        let form = form_name(&origin);
        if matches!(form.as_deref(), Some("Union" | "UnionType")) {
            if simplifies {
                arguments = simplified(py, arguments)?;
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

/// The members of a choice without those that the others make superfluous.
fn simplified<'py>(py: Python<'py>, mut members: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let any = TypingObjects::get(py)?.any.bind(py);
    if members.iter().any(|member| member.is(any)) {
        return Ok(vec![any.clone()]);
    }
    if !members.iter().all(is_never) {
        members.retain(|member| !is_never(member));
    }
    Ok(members)
}

/// True if `object` is a type without values.
fn is_never(object: &Bound<'_, PyAny>) -> bool {
    matches!(form_name(object).as_deref(), Some("Never" | "NoReturn"))
}

/// The module, name and address of a type, which distinguish two types of the same name.
pub(super) fn reference_of(origin: &Bound<'_, PyAny>, name: &str, arguments: &[Bound<'_, PyAny>]) -> PyResult<String> {
    let py = origin.py();
    let module = origin.getattr(intern!(py, "__module__")).ok().and_then(|module| module.extract::<String>().ok());
    let module = module.unwrap_or_else(|| "<No __module__>".to_owned());
    let mut reference = format!("{module}.{name}:{}", address(origin));
    if !arguments.is_empty() {
        let texts = arguments.iter().map(|argument| Ok(format!("{}:{}", type_text(argument)?, address(argument))));
        reference.push('[');
        reference.push_str(&texts.collect::<PyResult<Vec<_>>>()?.join(","));
        reference.push(']');
    }
    Ok(reference)
}

fn address(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr() as usize
}

/// A type as written in source code, without the names of modules.
fn type_text(object: &Bound<'_, PyAny>) -> PyResult<String> {
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
        // Objects of pydantic define their own representation.
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
        return if object.is_instance(TypingObjects::get(py)?.special.bind(py))? {
            Ok(bare(object.repr()?.extract()?))
        } else {
            object.get_type().qualname()?.extract()
        };
    };
    let mut arguments = arguments_of(object)?;
    if arguments.is_empty() && object.get_type().module()?.to_str()? == "typing" {
        return Ok(bare(object.repr()?.extract()?));
    }
    let form = form_name(&origin);
    if form.as_deref() == Some("Annotated") {
        // Text in the metadata is a value, not the name of a type.
        for item in arguments.iter_mut().skip(1).filter(|item| item.is_instance_of::<PyString>()) {
            *item = item.get_type().into_any();
        }
    }
    let joined = |each: fn(&Bound<'_, PyAny>) -> PyResult<String>| -> PyResult<String> {
        Ok(arguments.iter().map(each).collect::<PyResult<Vec<_>>>()?.join(", "))
    };
    match form.as_deref() {
        Some("Union" | "UnionType") => Ok(format!("Union[{}]", joined(type_text)?)),
        Some("Literal") => {
            let name = qualified_name(object).unwrap_or_else(|| "Literal".to_owned());
            Ok(format!("{name}[{}]", joined(|argument| argument.repr()?.extract())?))
        }
        _ => match qualified_name(object) {
            Some(name) => Ok(format!("{name}[{}]", joined(type_text)?)),
            None => Ok(bare(object.str()?.extract()?)),
        },
    }
}

fn qualified_name(object: &Bound<'_, PyAny>) -> Option<String> {
    object.getattr(intern!(object.py(), "__qualname__")).ok()?.extract().ok()
}

impl<'py> AnnotationReader<'py> {
    pub(super) fn read_tuple(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        arguments: Option<&[Bound<'py, PyAny>]>,
    ) -> ReadResult<Type> {
        let py = self.py;
        let other = |items| Type::Array { items: Box::new(items), kind: ArrayKind::Other };
        let is_bare = annotation.is(TypingObjects::get(py)?.bare_tuple.bind(py));
        let Some(arguments) = arguments.filter(|_| !is_bare) else {
            return Ok(other(Type::Any));
        };
        match arguments {
            [item, rest] if rest.is(py.Ellipsis()) => Ok(other(self.read(item)?)),
            [empty] if empty.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty) => Ok(Type::Tuple(Vec::new())),
            _ if arguments.iter().any(|argument| argument.is(py.Ellipsis())) => {
                Ok(invalid_type(annotation, "`...` is only valid as the last of two items"))
            }
            members => Ok(Type::Tuple(members.iter().map(|member| self.read(member)).collect::<ReadResult<_>>()?)),
        }
    }

    pub(super) fn read_union(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let mut arguments = arguments_of(annotation)?;
        let none = self.py.None();
        let none = none.bind(self.py);
        let is_null = |argument: &Bound<'py, PyAny>| argument.is_none() || argument.is(none.get_type());
        let sentinels = arguments.iter().filter(|argument| is_sentinel(argument)).count();
        if sentinels > 0 && sentinels < arguments.len() {
            arguments.retain(|argument| !is_sentinel(argument));
        }
        let mut choices = Vec::with_capacity(arguments.len());
        for argument in arguments.iter().filter(|argument| !is_null(argument)) {
            choices.push(self.read(argument)?);
        }
        let nullable = choices.len() < arguments.len();
        let choice = match choices.len() {
            0 => return Ok(Type::Null),
            1 => choices.swap_remove(0),
            _ => Type::Union(choices),
        };
        Ok(if nullable { Type::Nullable(Box::new(choice)) } else { choice })
    }

    pub(super) fn read_annotated(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let mut arguments = arguments_of(annotation)?;
        let inner = arguments.remove(0);
        let metadata = Metadata::read(arguments, self.pydantic)?;
        if metadata.is_for_a_field() {
            // Only pydantic handles a default or a title deep inside a type.
            return self.read_with_pydantic(annotation);
        }
        let read = self.read(&inner)?.referred();
        match metadata.limit_and_note(read) {
            Some(read) => Ok(read),
            None => self.read_with_pydantic(annotation),
        }
    }

    pub(super) fn read_variable(&mut self, variable: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let py = self.py;
        if let Ok(has_default) = variable.call_method0(intern!(py, "has_default"))
            && has_default.is_truthy()?
        {
            return self.read(&variable.getattr(intern!(py, "__default__"))?);
        }
        self.scopes.push(Scope::of_type(variable.clone()));
        let read = self.read_bound(variable);
        self.scopes.pop();
        read
    }

    fn read_bound(&mut self, variable: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let py = self.py;
        let constraints = variable.getattr(intern!(py, "__constraints__"))?;
        let constraints = constraints.cast_into::<PyTuple>()?;
        if !constraints.is_empty() {
            // One of them may be a union itself.
            let union = import_module(py, "typing")?.getattr(intern!(py, "Union"))?;
            return self.read(&union.get_item(constraints)?);
        }
        let bound = variable.getattr(intern!(py, "__bound__"))?;
        if bound.is_none() {
            return Ok(Type::Any);
        }
        // A definition that bounds a variable stays one of its own, because subclasses may add to it.
        Ok(match self.read(&bound)? {
            definition @ Type::Reference(_) => Type::Kept(Box::new(definition)),
            other => other,
        })
    }
}

/// True if `class` in `type[class]` restricts the classes that are accepted.
pub(super) fn may_name_a_class(class: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = class.py();
    if class.is(TypingObjects::get(py)?.any.bind(py)) {
        return Ok(false);
    }
    if class.is_none() || class.is_exact_instance_of::<PyType>() || is_forward_ref(class)? {
        return Ok(true);
    }
    if let Some(origin) = origin_of(class)? {
        return match form_name(&origin).as_deref() {
            Some("Union" | "UnionType") => Ok(true),
            Some("Annotated") => may_name_a_class(&class.getattr(intern!(py, "__origin__"))?),
            _ => Ok(false),
        };
    }
    match type_name(class).as_str() {
        "TypeVar" => Ok(!class.getattr(intern!(py, "__bound__"))?.is_none()
            || !class.getattr(intern!(py, "__constraints__"))?.is_empty()?),
        "TypeAliasType" => may_name_a_class(&class.getattr(intern!(py, "__value__"))?),
        _ => Ok(class.cast::<PyType>().is_ok() || form_name(class).as_deref() == Some("Self")),
    }
}

/// The values of `Literal[…]`, also of those that it names by a `TypeAliasType`; `typing` resolves plain aliases itself.
pub(super) fn literal_values<'py>(annotation: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut values: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut open = arguments_of(annotation)?;
    open.reverse();
    // Aliases can contain each other.
    let mut most_aliases = MAX_DEPTH;
    while let Some(value) = open.pop() {
        if is_json_scalar(&value) && most_aliases == MAX_DEPTH {
            values.push(value); // nearly all literals have no others
        } else if type_name(&value) == "TypeAliasType" && most_aliases > 0 {
            most_aliases -= 1;
            open.push(value.getattr(intern!(value.py(), "__value__"))?);
        } else if origin_of(&value)?.is_some_and(|origin| form_name(&origin).as_deref() == Some("Literal")) {
            open.extend(arguments_of(&value)?.into_iter().rev());
        } else if most_aliases == MAX_DEPTH || !values.iter().any(|before| is_same(before, &value)) {
            values.push(value);
        }
    }
    Ok(values)
}

/// True for equal values of one class: `1` and `True` are different values.
fn is_same(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> bool {
    one.get_type().is(other.get_type()) && one.eq(other).unwrap_or(false)
}

/// True for a sentinel, such as `pydantic.MISSING`: a default that JSON has no value for.
pub(super) fn is_sentinel(annotation: &Bound<'_, PyAny>) -> bool {
    let is_alias = || TypingObjects::get(annotation.py()).is_ok_and(|typing| typing.is_builtin_alias(annotation));
    !annotation.is_instance_of::<PyType>()
        && !is_alias()
        && matches!(type_name(annotation).as_str(), "Sentinel" | "sentinel")
}

/// Reads the values of `Literal[…]`.
pub(super) fn read_literal(annotation: &Bound<'_, PyAny>) -> ReadResult<Type> {
    let values: Option<Vec<_>> = literal_values(annotation)?.iter().map(value_to_json).collect();
    Ok(match values {
        Some(values) => Type::Literal(values),
        None => invalid_type(annotation, "one of its values is not JSON"),
    })
}
