//! Reading of Python annotations as types, the limits on their size, and the refusal of types without a schema.

use std::collections::HashMap;

use pyo3::exceptions::{PyNameError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFunction, PyInt, PyList, PyString, PyTuple, PyType};

use super::forward_refs::{self, Scope};
use super::pydantic;
use super::typing::{TypingObjects, arguments_of, form_name, is_sentinel, may_name_a_class, origin_of, read_literal};
use crate::bindings::imported::import_module;
use crate::bindings::json::{MAX_DEPTH, schema_from_python};
use crate::bindings::once::intern;
use crate::schema::StdlibType;
use crate::schema::{ArrayKind, Definitions, Entries, Node, Refusal, Type, remove_titles};

/// The reason why an annotation was not read.
pub(super) enum ReadError {
    /// Only pydantic can describe it.
    NeedsPydantic,
    /// Python code failed.
    Python(PyErr),
}

impl From<PyErr> for ReadError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<pyo3::CastIntoError<'_>> for ReadError {
    fn from(error: pyo3::CastIntoError<'_>) -> Self {
        Self::Python(error.into())
    }
}

impl From<pyo3::CastError<'_, '_>> for ReadError {
    fn from(error: pyo3::CastError<'_, '_>) -> Self {
        Self::Python(error.into())
    }
}

pub(super) type ReadResult<T> = Result<T, ReadError>;

/// The handling of types that only pydantic can describe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PydanticMode {
    /// Reading stops, and pydantic describes the whole signature.
    WholeSignature,
    /// Pydantic describes each such type by itself.
    EachType,
}

/// Reader of the annotations of one signature.
pub(super) struct AnnotationReader<'py> {
    pub(super) py: Python<'py>,
    pub(super) definitions: Definitions,
    /// Indices into `definitions`, by reference.
    pub(super) by_reference: HashMap<String, usize>,
    /// The scopes in which the current annotation was written, outermost first.
    pub(super) scopes: Vec<Scope<'py>>,
    /// The definition that is being read.
    pub(super) current: Option<usize>,
    /// The records whose fields are being read, innermost last. `Self` refers to the last one.
    pub(super) records: Vec<Bound<'py, PyAny>>,
    /// The string annotations that are being resolved, each with its definition.
    resolving: Vec<(String, Option<usize>)>,
    /// Arguments of generic types, kept alive so that no other object gets their address, which references contain.
    pub(super) kept: Vec<Bound<'py, PyAny>>,
    pub(super) pydantic: PydanticMode,
    pub(super) depth: usize,
    /// The number of parts of the current parameter that have been read.
    pub(super) parts: usize,
}

impl<'py> AnnotationReader<'py> {
    pub(super) fn new(callable: &Bound<'py, PyAny>, pydantic: PydanticMode) -> Self {
        Self {
            py: callable.py(),
            definitions: Vec::new(),
            by_reference: HashMap::new(),
            scopes: vec![Scope::of_callable(callable.clone())],
            current: None,
            records: Vec::new(),
            resolving: Vec::new(),
            kept: Vec::new(),
            pydantic,
            depth: 0,
            parts: 0,
        }
    }

    /// Reads any annotation.
    pub(super) fn read(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        if let Some(refused) = self.count_part(annotation) {
            return Ok(refused);
        }
        if let Ok(class) = annotation.cast::<PyType>() {
            if let Some(plain) = builtin_type(class) {
                return Ok(plain);
            }
        } else if annotation.is_none() {
            return Ok(Type::Null);
        }
        if self.depth >= MAX_DEPTH {
            return Ok(invalid_type(annotation, TOO_DEEP));
        }
        self.depth += 1;
        let read = self.read_any(annotation);
        self.depth -= 1;
        read
    }

    fn read_any(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let py = self.py;
        if let Ok(class) = annotation.cast::<PyType>() {
            return self.read_class(class);
        }
        let typing = TypingObjects::get(py)?;
        if annotation.get_type().is(typing.generic_alias.bind(py)) {
            let origin = annotation.getattr(intern!(py, "__origin__"))?;
            return self.read_generic(annotation, &origin);
        }
        if annotation.get_type().is(typing.union_type.bind(py)) {
            return self.read_union(annotation);
        }
        if is_forward_ref(annotation)? {
            return self.read_forward_ref(annotation);
        }
        if annotation.is(typing.any.bind(py)) {
            return Ok(Type::Any);
        }
        match origin_of(annotation)? {
            Some(origin) => self.read_form(annotation, &origin),
            None => self.read_object(annotation),
        }
    }

    /// Reads a class that `builtin_type` does not cover.
    fn read_class(&mut self, class: &Bound<'py, PyType>) -> ReadResult<Type> {
        if let Some(known) = stdlib_type(class)? {
            return self.read_stdlib(known, class.as_any(), None);
        }
        if has_pydantic_hooks(class.as_any())? {
            return self.read_with_pydantic(class.as_any());
        }
        if is_msgspec_struct(class)? {
            return self.read_with_msgspec(class.as_any());
        }
        match self.read_record(class.as_any(), class, &[])? {
            Some(record) => Ok(record),
            None => Ok(unsupported_type(class.as_any(), "it is a class of your own")),
        }
    }

    /// Reads `origin[…]`.
    fn read_generic(&mut self, alias: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let Ok(class) = origin.cast::<PyType>() else {
            return if type_name(origin) == "TypeAliasType" {
                self.read_alias(alias, origin)
            } else {
                Ok(unsupported_type(alias, "it is not a container that JSON knows"))
            };
        };
        let arguments = arguments_of(alias)?;
        if let Some(known) = stdlib_type(class)? {
            return self.read_stdlib(known, alias, Some(&arguments));
        }
        if has_pydantic_hooks(class.as_any())? {
            return self.read_with_pydantic(alias);
        }
        if is_msgspec_struct(class)? {
            return self.read_with_msgspec(alias);
        }
        // The arguments become a part of its name.
        if is_too_large(alias) {
            return Ok(invalid_type(alias, &too_large()));
        }
        match self.read_record(alias, class, &arguments)? {
            Some(record) => Ok(record),
            None => Ok(unsupported_type(alias, "it is not a container that JSON knows")),
        }
    }

    fn read_stdlib(
        &mut self,
        class: StdlibType,
        annotation: &Bound<'py, PyAny>,
        arguments: Option<&[Bound<'py, PyAny>]>,
    ) -> ReadResult<Type> {
        let given = arguments.unwrap_or_default();
        Ok(match class {
            StdlibType::Plain(plain) => plain,
            StdlibType::Array(kind) => Type::Array { items: Box::new(self.read_argument(given.first())?), kind },
            StdlibType::Map { countable } => {
                let keys = Box::new(self.read_argument(given.first())?);
                Type::Map { keys, values: Box::new(self.read_argument(given.get(1))?), countable }
            }
            StdlibType::Counter => Type::Map {
                keys: Box::new(self.read_argument(given.first())?),
                values: Box::new(Type::Integer),
                countable: true,
            },
            StdlibType::Tuple => self.read_tuple(annotation, arguments)?,
            StdlibType::Class => match given.first() {
                Some(class) if may_name_a_class(class)? => Type::Any,
                _ => unsupported_type(annotation, "a class is not a JSON value"),
            },
        })
    }

    fn read_argument(&mut self, argument: Option<&Bound<'py, PyAny>>) -> ReadResult<Type> {
        argument.map_or(Ok(Type::Any), |argument| self.read(argument))
    }

    /// Reads an alias of `typing`: a special form, or the older name of a class.
    fn read_form(&mut self, annotation: &Bound<'py, PyAny>, origin: &Bound<'py, PyAny>) -> ReadResult<Type> {
        match form_name(origin).as_deref() {
            Some("Union" | "UnionType") => return self.read_union(annotation),
            Some("Annotated") => return self.read_annotated(annotation),
            Some("Literal") => return read_literal(annotation),
            Some("Final" | "ClassVar" | "Required" | "NotRequired" | "ReadOnly") => {
                let inner = arguments_of(annotation)?;
                return self.read_argument(inner.first());
            }
            _ => {}
        }
        if origin.cast::<PyType>().is_ok() || type_name(origin) == "TypeAliasType" {
            return self.read_generic(annotation, origin);
        }
        Ok(unsupported_type(annotation, "it is not a container that JSON knows"))
    }

    /// Reads an object that is neither a class nor an alias.
    fn read_object(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let py = self.py;
        match type_name(annotation).as_str() {
            "TypeVar" => return self.read_variable(annotation),
            "NewType" => return self.read(&annotation.getattr(intern!(py, "__supertype__"))?),
            "TypeAliasType" => return self.read_alias(annotation, annotation),
            "InitVar" => return self.read(&annotation.getattr(intern!(py, "type"))?),
            _ => {}
        }
        if form_name(annotation).as_deref() == Some("Self") {
            return match self.records.last().cloned() {
                Some(record) => self.read(&record),
                None => Ok(invalid_type(annotation, "it has a meaning only inside of a class")),
            };
        }
        if annotation.is_exact_instance_of::<PyFunction>() {
            return Ok(unsupported_type(annotation, "it is a function"));
        }
        if is_sentinel(annotation) {
            return Ok(unsupported_type(annotation, "a sentinel is not a JSON value"));
        }
        if has_pydantic_hooks(annotation)? {
            return self.read_with_pydantic(annotation);
        }
        // Not a type at all, such as the builtin `any` or `Never`: any value may come.
        Ok(Type::Any)
    }

    /// Resolves `annotation` if it is a string annotation.
    pub(super) fn resolve_forward_ref(
        &mut self,
        annotation: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !is_forward_ref(annotation)? {
            return Ok(None);
        }
        let py = self.py;
        if let Ok(text) = annotation.cast::<PyString>() {
            return forward_refs::resolve(py, &mut self.scopes, text, None).map(Some);
        }
        let text = annotation.getattr(intern!(py, "__forward_arg__"))?.cast_into::<PyString>()?;
        let module = annotation.getattr(intern!(py, "__forward_module__"))?;
        let module = (!module.is_none()).then_some(module);
        forward_refs::resolve(py, &mut self.scopes, &text, module.as_ref()).map(Some)
    }

    fn read_forward_ref(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let resolved = match self.resolve_forward_ref(annotation) {
            Ok(Some(resolved)) => resolved,
            Ok(None) => return Ok(Type::Any),
            Err(error) if error.is_instance_of::<PyNameError>(self.py) => {
                return Ok(Type::Unsupported(undefined(annotation, &error.value(self.py).to_string())));
            }
            Err(error) => return Ok(invalid_type(annotation, &error.value(self.py).to_string())),
        };
        if resolved.cast::<PyType>().is_ok() {
            return self.read(&resolved);
        }
        let key = (annotation.str()?.extract::<String>()?, self.current);
        if self.resolving.contains(&key) {
            return Ok(invalid_type(annotation, "it contains itself: give it a name with `TypeAliasType`"));
        }
        self.resolving.push(key);
        let read = self.read(&resolved);
        self.resolving.pop();
        read
    }

    /// Reads a type that only pydantic can describe.
    pub(super) fn read_with_pydantic(&mut self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        match self.pydantic {
            PydanticMode::WholeSignature => Err(ReadError::NeedsPydantic),
            PydanticMode::EachType => Ok(match pydantic::schema_of_type(self.py, annotation) {
                Ok((schema, definitions)) => Type::Raw { schema, definitions },
                Err(error) => invalid_type(annotation, first_line(&error.value(self.py).to_string())),
            }),
        }
    }
}

impl<'py> AnnotationReader<'py> {
    /// Reads a struct, which msgspec describes.
    fn read_with_msgspec(&self, annotation: &Bound<'py, PyAny>) -> ReadResult<Type> {
        let py = self.py;
        let options = PyDict::new(py);
        options.set_item("ref_template", "#/$defs/{name}")?;
        let json = import_module(py, "msgspec.json")?;
        let described = json.call_method(intern!(py, "schema_components"), ((annotation,),), Some(&options));
        let described = match described {
            Ok(described) => described.cast_into::<PyTuple>()?,
            Err(error) => return Ok(invalid_type(annotation, first_line(&error.value(py).to_string()))),
        };
        let schema = described.get_item(0)?.get_item(0)?;
        let part = |part: &Bound<'py, PyAny>| -> PyResult<Entries> {
            let mut node = schema_from_python(part)?;
            remove_titles(&mut node);
            Ok(if let Node::Object(entries) = node { entries } else { Entries::new() })
        };
        Ok(Type::Raw { schema: part(&schema)?, definitions: part(&described.get_item(1)?)? })
    }
}

/// True for a class of msgspec with fields.
fn is_msgspec_struct(class: &Bound<'_, PyType>) -> PyResult<bool> {
    class.hasattr(intern!(class.py(), "__struct_config__"))
}

/// The types of the scalar classes, compared by identity.
pub(super) fn builtin_scalar(class: &Bound<'_, PyType>) -> Option<Type> {
    let py = class.py();
    if class.is(py.get_type::<PyString>()) {
        Some(Type::Text)
    } else if class.is(py.get_type::<PyInt>()) {
        Some(Type::Integer)
    } else if class.is(py.get_type::<PyFloat>()) {
        Some(Type::Number)
    } else if class.is(py.get_type::<PyBool>()) {
        Some(Type::Boolean)
    } else {
        None
    }
}

/// The types of the most common classes, compared by identity.
fn builtin_type(class: &Bound<'_, PyType>) -> Option<Type> {
    let py = class.py();
    if let Some(scalar) = builtin_scalar(class) {
        Some(scalar)
    } else if class.is(py.get_type::<PyList>()) {
        Some(Type::Array { items: Box::new(Type::Any), kind: ArrayKind::List })
    } else if class.is(py.get_type::<PyDict>()) {
        Some(Type::Map { keys: Box::new(Type::Any), values: Box::new(Type::Any), countable: true })
    } else {
        None
    }
}

/// The type of a class of the standard library.
fn stdlib_type(class: &Bound<'_, PyType>) -> PyResult<Option<StdlibType>> {
    let py = class.py();
    if class.is(py.get_type::<PyList>()) {
        return Ok(Some(StdlibType::Array(ArrayKind::List)));
    }
    if class.is(py.get_type::<PyDict>()) {
        return Ok(Some(StdlibType::Map { countable: true }));
    }
    // A class may hide both names behind a property of its metaclass.
    let Ok(module) = class.module() else {
        return Ok(None);
    };
    Ok(StdlibType::by_name(module.to_str()?, class.qualname()?.to_str()?))
}

/// True if an object has one of the hooks by which a type describes itself to pydantic.
pub(super) fn has_pydantic_hooks(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__get_pydantic_core_schema__"))?
        || object.hasattr(intern!(py, "__pydantic_core_schema__"))?
        || object.hasattr(intern!(py, "__get_pydantic_json_schema__"))?
        || object.hasattr(intern!(py, "__pydantic_config__"))?
        || object.hasattr(intern!(py, "__get_validators__"))?
        || is_pydantic_url(object))
}

/// True for the two classes that pydantic knows by their identity and that have no hook.
fn is_pydantic_url(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PyType>().is_ok_and(|class| {
        class.module().is_ok_and(|module| module == "pydantic_core._pydantic_core")
            && class.name().is_ok_and(|name| name == "Url" || name == "MultiHostUrl")
    })
}

/// True for a string annotation and for `typing.ForwardRef`.
pub(super) fn is_forward_ref(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    if annotation.is_exact_instance_of::<PyString>() {
        return Ok(true);
    }
    Ok(type_name(annotation) == "ForwardRef" && annotation.hasattr(intern!(annotation.py(), "__forward_arg__"))?)
}

/// The name of the type of an object.
pub(super) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().ok().and_then(|name| name.extract().ok()).unwrap_or_default()
}

/// The maximum number of parts of one parameter's annotation. Types can share parts, so that a few lines of Python describe
/// a schema of any size; no model can use a larger one.
const MOST_PARTS: usize = 20_000;

/// The maximum number of parts of an annotation that is shown in full.
const MOST_SHOWN: usize = 1_000;

/// The interval of levels at which the remaining parts are counted before they are read.
const LEVELS: usize = 12;

/// The reason for refusing an annotation that is nested too deeply.
const TOO_DEEP: &str = "it is nested too deeply, or contains itself without a name";

/// True if the annotation has too many parts for a schema.
pub(super) fn is_too_large(annotation: &Bound<'_, PyAny>) -> bool {
    parts(annotation) > MOST_PARTS
}

/// True if the annotation can be shown in full.
fn is_short(annotation: &Bound<'_, PyAny>) -> bool {
    parts(annotation) <= MOST_SHOWN
}

/// The reason for refusing an annotation that is too large.
pub(super) fn too_large() -> String {
    format!("it is too large: written out, it has more than {MOST_PARTS} parts")
}

/// Counts the parts of an annotation as if each were written where it is used. The time depends on the distinct parts only.
fn parts(annotation: &Bound<'_, PyAny>) -> usize {
    count(annotation, 0, &mut HashMap::new())
}

fn count(annotation: &Bound<'_, PyAny>, depth: usize, known: &mut HashMap<*mut PyObject, usize>) -> usize {
    if depth > MAX_DEPTH || annotation.is_instance_of::<PyType>() || annotation.is_instance_of::<PyString>() {
        return 1;
    }
    if let Some(count) = known.get(&annotation.as_ptr()) {
        return *count;
    }
    let inner = match annotation.getattr_opt(intern!(annotation.py(), "__supertype__")) {
        Ok(Some(inner)) => vec![inner],
        _ => arguments_of(annotation).unwrap_or_default(),
    };
    let parts = inner.iter().fold(1, |sum: usize, part| sum.saturating_add(count(part, depth + 1, known)));
    // An object without parts may be temporary, and another object may get its address.
    if !inner.is_empty() {
        known.insert(annotation.as_ptr(), parts);
    }
    parts
}

impl<'py> AnnotationReader<'py> {
    /// Counts one more part; returns the refusal if there are too many.
    fn count_part(&mut self, annotation: &Bound<'py, PyAny>) -> Option<Type> {
        self.parts += 1;
        if self.depth % LEVELS == LEVELS - 1 && is_too_large(annotation) {
            self.parts = MOST_PARTS + 1;
        }
        self.is_over().then(|| invalid_type(annotation, &too_large()))
    }

    /// Counts one more part of an annotation that is rebuilt.
    pub(super) fn count_rewritten(&mut self) -> PyResult<()> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(PyValueError::new_err(too_large()));
        }
        if self.depth > MAX_DEPTH {
            self.parts = MOST_PARTS + 1;
            return Err(PyValueError::new_err(TOO_DEEP));
        }
        Ok(())
    }

    /// True if the current parameter has too many parts, so that no further one is read.
    pub(super) fn is_over(&self) -> bool {
        self.parts > MOST_PARTS
    }
}

/// The ways to fix a parameter without a schema.
const ADVICE: &str = "hide it with preset_kwargs, annotate it with a type that JSON knows, or pass json_schema=";

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// The type of an annotation that has no schema.
fn unsupported_type(annotation: &Bound<'_, PyAny>, why: &str) -> Type {
    Type::Unsupported(refusal(annotation, why, false))
}

/// The type of an annotation that is a mistake.
pub(super) fn invalid_type(annotation: &Bound<'_, PyAny>, why: &str) -> Type {
    Type::Unsupported(refusal(annotation, why, true))
}

/// The reason for which an annotation has no schema, with advice.
pub(super) fn refusal(annotation: &Bound<'_, PyAny>, why: &str, mistake: bool) -> Refusal {
    let shown = match annotation.cast::<PyType>() {
        Ok(class) => class.fully_qualified_name().map(|name| name.to_string_lossy().into_owned()),
        Err(_) if is_short(annotation) => annotation.repr().map(|text| text.to_string_lossy().into_owned()),
        Err(_) => Ok(format!("{}[…]", outermost(annotation))),
    };
    Refusal { annotation: shown.unwrap_or_else(|_| "?".to_owned()), reason: format!("{why}; {ADVICE}"), mistake }
}

/// The ways to fix an annotation with a name that is not defined.
const DEFINE: &str = "define or import it in the module of the function, not only under `TYPE_CHECKING`, before the tool is \
                      registered";

/// The reason for which an annotation with an undefined name has no schema, with advice.
fn undefined(annotation: &Bound<'_, PyAny>, why: &str) -> Refusal {
    Refusal { reason: format!("{why}; {DEFINE}"), ..refusal(annotation, why, true) }
}

/// The name of the outermost type of an annotation.
fn outermost(annotation: &Bound<'_, PyAny>) -> String {
    let outermost = origin_of(annotation).ok().flatten().unwrap_or_else(|| annotation.clone());
    let name = outermost.getattr("__name__").and_then(|name| name.extract::<String>());
    name.unwrap_or_else(|_| type_name(&outermost))
}
